"""Detects text that repeats shown memory, so that it is not indexed again.

A model that was shown a note repeats it in its answer; a file tool reads the overview back. If it were indexed again,
the next search would find it twice with a newer date, and an error would confirm itself. So the word runs that memory
has shown in a session are stored, and a passage made of such runs is skipped.

All other text is indexed. A correction shares most of its words with the original and differs in a number, a name or a
"not", so it must not be skipped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from zlib import crc32

MIN_RUN_WORDS, MAX_RUN_WORDS = 4, 6
"""Length of word runs.

Short runs repeat by chance, but passages made only of them do not. Longer runs show which words were shown
together: "Ada works as a" and "works as a baker" may come from lines about two people."""

MIN_ECHO_SHARE = 0.6
"""Minimum share of words that an echo has from shown text; the others introduce the quote."""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
    r"|(?<!\w)[-−+<>](?=\d)|[$€£¥₹%‰°±≠≤≥]|[!=]="
)
"""Signs that change the meaning of a statement count as words."""

_BREAK = re.compile(r"[.!?;:…][^\w\s]*\s|[。！？；：|]|\n")
"""Text between two words at which a statement ends."""

_QUOTING_WORDS = """
a according also an and are as dream earlier found from here i in is it last looked me memory mentioned my note noted
notes of on our per previously quote read recall recorded remember s said saved say says since so stated that the this
to told up was we were what which wrote you your
根据 按照 据 记忆 记录 笔记 记得 记着 之前 以前 此前 先前 上次 刚才 你 您 我 我们 说 说过 提到 提过 提及 告诉 告诉过
写道 写着 显示 如下 所述 所说 的 了 过 是 在 中 里 和 与 以及 也 这 那
"""
"""Words that introduce or connect quotes, and those of the heading over notes.

It has no negation, number or name."""


def word_runs(text: str) -> set[int]:
    """Return the hash of every word run in a text."""
    words = _split_words(text)
    return {
        _run_hash(words, at, length)
        for length in range(MIN_RUN_WORDS, MAX_RUN_WORDS + 1)
        for at in range(len(words) - length + 1)
    }


def is_echo(passage: str, shown_runs: Collection[int]) -> bool:
    """Return True if a passage consists of shown text and words that quote it.

    A passage shorter than a run is never an echo. Two stretches of shown text must be separated by the end of a
    statement: text combined from both was never shown, because the omitted words may have been a "not".
    """
    text = passage.lower()
    matches = [*_WORD.finditer(text)]
    words = [word[0] for word in matches]
    breaks = [bool(_BREAK.search(text, previous.end(), following.start())) for previous, following in pairwise(matches)]
    quoted, end_of_last = 0, 0
    for start, end in _stretches(words, shown_runs):
        is_separate = start >= end_of_last and (quoted == 0 or any(breaks[end_of_last - 1 : start]))
        if (
            not is_separate
            or not _is_quoting(words[end_of_last:start])
            or not _was_shown_together(words[start:end], shown_runs)
        ):
            return False
        quoted, end_of_last = quoted + end - start, end
    return quoted > 0 and quoted >= MIN_ECHO_SHARE * len(words) and _is_quoting(words[end_of_last:])


def _stretches(words: list[str], shown_runs: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each stretch of shown words."""
    start = None
    for at in range(len(words) - MIN_RUN_WORDS + 2):
        if at <= len(words) - MIN_RUN_WORDS and _run_hash(words, at, MIN_RUN_WORDS) in shown_runs:
            start = at if start is None else start
        elif start is not None:
            yield start, at + MIN_RUN_WORDS - 1
            start = None


def _was_shown_together(stretch: list[str], shown_runs: Collection[int]) -> bool:
    """Return True if the words were shown together, not in separate places."""
    length = min(len(stretch), MAX_RUN_WORDS)
    return all(_run_hash(stretch, at, length) in shown_runs for at in range(len(stretch) - length + 1))


def _is_quoting(words: list[str]) -> bool:
    return _QUOTING_PATTERN.fullmatch("".join(f"{word} " for word in words)) is not None


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _run_hash(words: list[str], at: int, length: int) -> int:
    return crc32(" ".join(words[at : at + length]).encode())


_QUOTING_PHRASES = [" ".join(_split_words(phrase)) for phrase in _QUOTING_WORDS.split()]
_QUOTING_PATTERN = re.compile(f"(?:(?:{'|'.join(sorted(_QUOTING_PHRASES, key=len, reverse=True))}) )*+")
