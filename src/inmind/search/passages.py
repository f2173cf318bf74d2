"""Splits long texts into passages.

A message of ten thousand characters shares a word with every query, and its vector has no direction. So it is
indexed by passage and scored by its best one. A passage is a contiguous piece of the text that ends at a sentence
or line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PASSAGE_CHARS = 700
"""About 120 words, which embedders read completely."""

_END = re.compile(r"[.!?](?=\s)|[。！？][」』”’）]*|\n+")
_PAUSE = re.compile(r"[\s,;:|/)\]}，、；：）」』।။]")


def split_passages(text: str) -> list[str]:
    """Return the passages of a text, in order; a short text is one passage."""
    if len(text) <= MAX_PASSAGE_CHARS:
        return [text] if text.strip() else []
    passages: list[str] = []
    start = end = 0
    for boundary in _boundaries(text):
        if boundary - start > MAX_PASSAGE_CHARS and end > start:
            passages.append(text[start:end].strip())
            start = end
        end = boundary
    return [passage for passage in (*passages, text[start:end].strip()) if passage]


def _boundaries(text: str) -> Iterator[int]:
    """Yield positions where a passage may end: after sentences, and inside overlong ones."""
    position = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while end - position > MAX_PASSAGE_CHARS:
            position = _pause_before_limit(text, position)
            yield position
        if end > position:
            yield (position := end)


def _pause_before_limit(text: str, start: int) -> int:
    """Return the last word boundary before the limit, or the limit itself."""
    pauses = [match.end() for match in _PAUSE.finditer(text, start + MAX_PASSAGE_CHARS // 2, start + MAX_PASSAGE_CHARS)]
    return pauses[-1] if pauses else start + MAX_PASSAGE_CHARS
