"""Long texts in passages: what a question asks about is said in a few sentences, wherever it stands.

A message of ten thousand characters shares a word with every question, and a vector of it points nowhere. So it is
looked up passage by passage, and is worth what its best one is worth. A passage is a piece of the text as it stands
there, and ends where a sentence or a line does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST = 700
"""Characters of a passage: about 120 words, which is what an embedder reads whole."""

_END = re.compile(r"[.!?](?=\s)|[。！？][」』”’）]*|\n+")
_PAUSE = re.compile(r"[\s,;:|/)\]}，、；：）」』।။]")


def passages(text: str) -> list[str]:
    """The passages of a text, in order; a short one is a passage itself."""
    if len(text) <= MOST:
        return [text] if text.strip() else []
    found: list[str] = []
    start = end = 0
    for upto in _ends(text):
        if upto - start > MOST and end > start:
            found.append(text[start:end].strip())
            start = end
        end = upto
    return [passage for passage in (*found, text[start:end].strip()) if passage]


def _ends(text: str) -> Iterator[int]:
    """Where a passage may end: behind each sentence, and inside of those that are too long for one."""
    at = 0
    for end in (*(found.end() for found in _END.finditer(text)), len(text)):
        while end - at > MOST:
            at = _pause(text, at)
            yield at
        if end > at:
            yield (at := end)


def _pause(text: str, at: int) -> int:
    """The last place between two words that leaves most of a passage together; or the middle of an endless one."""
    pauses = [found.end() for found in _PAUSE.finditer(text, at + MOST // 2, at + MOST)]
    return pauses[-1] if pauses else at + MOST
