"""Words that come from memory itself, and must not be learned again as if they were news.

A model that was shown a note repeats it in its answer; a host's file tool reads the overview back. If that became a
crystal, the next search would find it twice, each time with a younger date, and a mistake would confirm itself. So what
memory has shown in a session is remembered by its runs of words, and a passage made of such runs is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from zlib import crc32

RUN = 4
"""Words in a row. Some are said again by chance; passages that are made of nothing else are not."""

MOSTLY = 0.6
"""The share of its words from which on a passage is an echo."""

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")


def runs(text: str) -> set[int]:
    """Every run of words in a text, as a number."""
    words = _words(text)
    return {_run(words, at) for at in range(len(words) - RUN + 1)}


def is_echo(passage: str, shown: Collection[int]) -> bool:
    """Is it mostly made of what was shown? What is shorter than a run is too little to tell."""
    words = _words(passage)
    covered = [False] * len(words)
    for at in range(len(words) - RUN + 1):
        if _run(words, at) in shown:
            covered[at : at + RUN] = [True] * RUN
    return bool(words) and sum(covered) >= MOSTLY * len(words)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _run(words: list[str], at: int) -> int:
    return crc32(" ".join(words[at : at + RUN]).encode())
