"""Long texts in passages: what a question asks about is said in a few sentences, wherever it stands.

A message of ten thousand characters shares a word with every question, and a vector of it points nowhere. So it is
looked up passage by passage, and is worth what its best one is worth. A passage is a piece of the text as it stands
there, and ends where a sentence or a line does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PASSAGE_CHARS = 700
"""Characters of a passage: about 120 words, which is what an embedder reads whole."""

_END = re.compile(r"[.!?](?=\s)|[。！？][」』”’）]*|\n+")
_PAUSE = re.compile(r"[\s,;:|/)\]}，、；：）」』।။]")


def split_passages(text: str) -> list[str]:
    """The passages of a text, in order; a short one is a passage itself."""
    if len(text) <= MAX_PASSAGE_CHARS:
        return [text] if text.strip() else []
    found: list[str] = []
    start = end = 0
    for boundary in _boundaries(text):
        if boundary - start > MAX_PASSAGE_CHARS and end > start:
            found.append(text[start:end].strip())
            start = end
        end = boundary
    return [passage for passage in (*found, text[start:end].strip()) if passage]


def _boundaries(text: str) -> Iterator[int]:
    """Where a passage may end: behind each sentence, and inside of those that are too long for one."""
    position = 0
    for end in (*(found.end() for found in _END.finditer(text)), len(text)):
        while end - position > MAX_PASSAGE_CHARS:
            position = _pause_before_limit(text, position)
            yield position
        if end > position:
            yield (position := end)


def _pause_before_limit(text: str, start: int) -> int:
    """The last place between two words that leaves most of a passage together; or the middle of an endless one."""
    pauses = [found.end() for found in _PAUSE.finditer(text, start + MAX_PASSAGE_CHARS // 2, start + MAX_PASSAGE_CHARS)]
    return pauses[-1] if pauses else start + MAX_PASSAGE_CHARS
