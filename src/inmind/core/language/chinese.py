"""Chinese words, and the Japanese ones that share their characters."""

from __future__ import annotations

from inmind.core.language.tables import Language

CHINESE = Language(
    code="zh",
    spaced=False,
    negations="不|没|别|勿|禁止|無|无|未",
    hedges="可能|也许|或许|大概",
    hypotheticals="如果|要是|假设|假如|比如|例如|想象",
    reports="说|告诉|写道",
    temporary="今天|今晚|暂时|这次|刚才",
    question_starts="请问|有谁知道|为什么|如何|什么时候|哪里|哪儿",
    question_ends="[吗嗎呢么]",
    first_person="我|私|僕|俺",
    second_person="你|您|あなた",
)
