"""Lines that memory generates on a page, among those of people and of the model.

Memory must find its own lines again, to move, count and remove them, and must touch nothing else. So they end in a
mark:

    - wrote src/session.py ·

A dot costs one token, while a comment would cost five in every request, and it has no meaning in Markdown. The mark is
no proof: a model that sees such lines writes similar ones. A line is moved or removed only if it has the mark and
memory knows that it entered this text. Text added after the dot, or a lost dot, makes the line the writer's own; a
text that another writer has already written is not entered again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from inmind.core.text import escape_markup, shorten
from inmind.documents.overview.sections import text_lines

MARK = "·"
MAX_LINE_CHARACTERS = 180

IsKnown = Callable[[str], bool]
"""True for a line that memory entered."""

_BULLET = re.compile(r"\A\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_WORD = re.compile(r"[^\W_]")
# Starts a heading or a fence at the start of a line, also in a list.
_BLOCK_START = re.compile(r"#|```|~~~")
_COMMENT_ESCAPES = {"<!--": "&lt;!--", "-->": "--&gt;"}


def generated_line(text: str, *, max_characters: int = MAX_LINE_CHARACTERS) -> str:
    """Return a marked list item on one line.

    No heading, comment or fence begins or ends in it.
    """
    line = escape_markup(" ".join(text.split())).rstrip(f" {MARK}")
    for mark, escaped in _COMMENT_ESCAPES.items():
        line = line.replace(mark, escaped)
    line = _BLOCK_START.sub(r"\\\g<0>", line, count=1) if _BLOCK_START.match(line) else line
    return f"- {shorten(line, max_characters)} {MARK}"


def is_generated(line: str) -> bool:
    """True if the line has the form of a generated line."""
    line = line.strip()
    return line.startswith(("- ", "* ", "+ ")) and line.endswith(f" {MARK}")


def line_text(line: str) -> str:
    """Return the text of a line without bullet and mark."""
    text = _BULLET.sub("", line, count=1).strip()
    return text.removesuffix(MARK).rstrip() if is_generated(line) else text


def has_no_words(line: str) -> bool:
    """True for rules, empty bullets and blank lines."""
    return _WORD.search(line_text(line)) is None


@lru_cache(maxsize=1_024)
def comparison_key(line: str) -> str:
    """Return a key that is equal for lines with the same words.

    It is cached, since pages are compared often.
    """
    return " ".join(line_text(line).split()).casefold()


def split_generated(lines: Sequence[str], is_known: IsKnown) -> tuple[list[str], list[str]]:
    """Split lines into known generated ones and all others, in order.

    Fenced or commented lines are others.
    """
    own = {number for number, line in text_lines(lines) if is_generated(line) and is_known(line)}
    return (
        [line.strip() for number, line in enumerate(lines) if number in own],
        [line for number, line in enumerate(lines) if number not in own],
    )


def insert_generated(others: Sequence[str], generated: Sequence[str]) -> list[str]:
    """Insert generated lines at the top of a section, after its template comment."""
    top = _end_of_guide_comment(others)
    # Markdown reads a paragraph right below a list as part of its last item.
    separator = [""] if generated and others[top:] and _is_paragraph(others[top]) else []
    return [*others[:top], *generated, *separator, *(others[top:] or ([""] if generated else []))]


def _end_of_guide_comment(lines: Sequence[str]) -> int:
    top = place = 0
    while place < len(lines):
        if lines[place].lstrip().startswith("<!--"):
            place = next((n for n in range(place, len(lines)) if "-->" in lines[n]), len(lines))
            if place == len(lines):
                break
            top = place + 1
        elif lines[place].strip():
            break
        place += 1
    return top


def _is_paragraph(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("- ", "* ", "+ ", "#"))
