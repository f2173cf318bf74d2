"""The lines of a page that memory keeps itself, among those of people and of the model.

A page belongs to whoever writes on it. What memory notes there by rule it must find again, to move it to the front, to
count it and to let it go, and it must touch nothing else; so its lines end in a mark:

    - wrote src/session.py ·

A dot at the end costs a token, where a comment would cost five in every request, and it means nothing in Markdown. It
is a sign and no proof: a model that sees such lines writes some of its own. So nothing is moved or let go by its mark
alone, but only if memory knows to have entered those words. Whoever adds to such a line writes behind the dot, and has
made it theirs; one that lost its dot in a rewrite is theirs too, and what somebody says already is not said again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from inmind.core.text import inert, shortened
from inmind.documents.overview.sections import text_lines

MARK = "·"
MAX_LINE_CHARACTERS = 180

IsKnown = Callable[[str], bool]
"""Is a line one that memory knows to have entered?"""

_BULLET = re.compile(r"\A\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_WORD = re.compile(r"[^\W_]")
# What opens something at the start of a line, in a list as well.
_BLOCK_START = re.compile(r"#|```|~~~")
_COMMENT_ESCAPES = {"<!--": "&lt;!--", "-->": "--&gt;"}


def generated_line(text: str, *, max_characters: int = MAX_LINE_CHARACTERS) -> str:
    """A line of ours: one line whatever the text, and no heading, comment or fence begins or ends in it."""
    line = inert(" ".join(text.split())).rstrip(f" {MARK}")
    for mark, escaped in _COMMENT_ESCAPES.items():
        line = line.replace(mark, escaped)
    line = _BLOCK_START.sub(r"\\\g<0>", line, count=1) if _BLOCK_START.match(line) else line
    return f"- {shortened(line, max_characters)} {MARK}"


def is_generated(line: str) -> bool:
    """Does it look like one of ours?"""
    line = line.strip()
    return line.startswith(("- ", "* ", "+ ")) and line.endswith(f" {MARK}")


def line_text(line: str) -> str:
    """What a line says, without its bullet and its mark."""
    said = _BULLET.sub("", line, count=1).strip()
    return said.removesuffix(MARK).rstrip() if is_generated(line) else said


def has_no_words(line: str) -> bool:
    """A rule, an empty bullet, a blank line."""
    return _WORD.search(line_text(line)) is None


@lru_cache(maxsize=1_024)
def comparison_key(line: str) -> str:
    """The same for two lines that say the same, whichever way they are set. Remembered, as pages are asked often."""
    return " ".join(line_text(line).split()).casefold()


def split_generated(lines: Sequence[str], is_known: IsKnown) -> tuple[list[str], list[str]]:
    """Those of ours, and all others, in their order. What is fenced or commented out is not ours."""
    own = {number for number, line in text_lines(lines) if is_generated(line) and is_known(line)}
    return (
        [line.strip() for number, line in enumerate(lines) if number in own],
        [line for number, line in enumerate(lines) if number not in own],
    )


def insert_generated(others: Sequence[str], generated: Sequence[str]) -> list[str]:
    """The lines of a section with these as ours: on top, behind the comment that guides whoever writes there."""
    top = _end_of_guide_comment(others)
    # A paragraph right below a list would be read as part of its last item.
    apart = [""] if generated and others[top:] and _is_paragraph(others[top]) else []
    return [*others[:top], *generated, *apart, *(others[top:] or ([""] if generated else []))]


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
