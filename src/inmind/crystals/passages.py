"""Long texts in passages: what a question asks about is said in a few sentences, wherever it stands.

A message of ten thousand characters shares a word with every question, and a vector of it points nowhere. So it is
looked up passage by passage, and is worth what its best one is worth. A passage ends where a sentence or a line does.
"""

from __future__ import annotations

import re

MOST = 700
"""Characters of a passage: about 120 words, which is what an embedder reads whole."""

_END = re.compile(r"(?<=[.!?。！？])(?:\s+|(?<=[。！？]))|\n+")


def passages(text: str) -> list[str]:
    """The passages of a text, in order; a short one is a passage itself."""
    if len(text) <= MOST:
        return [text] if text.strip() else []
    found: list[str] = []
    open_one = ""
    for sentence in _END.split(text):
        for piece in _pieces(sentence.strip()):
            if open_one and len(open_one) + 1 + len(piece) > MOST:
                found.append(open_one)
                open_one = piece
            else:
                open_one = f"{open_one}\n{piece}" if open_one else piece
    return [*found, open_one] if open_one else found


def _pieces(sentence: str) -> list[str]:
    """A sentence, or what has no end that we know: then the last space that leaves most of it together."""
    pieces: list[str] = []
    while len(sentence) > MOST:
        space = sentence.rfind(" ", MOST // 2, MOST)
        at = space if space > 0 else MOST
        pieces.append(sentence[:at])
        sentence = sentence[at:].lstrip()
    return [*pieces, sentence] if sentence else pieces
