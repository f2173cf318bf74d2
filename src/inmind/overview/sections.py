"""One section of a page, read and replaced without touching the others.

A model that rewrites a whole page to change one line drops what it did not think of; so it may name the section. A
section is a heading and everything up to the next heading of its level or above; headings inside fenced code are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(```+|~~~+)(.*)")


def section_of(text: str, heading: str) -> str:
    """What stands under a heading; empty where there is no such heading."""
    lines = text.split("\n")
    place = _place(lines, heading)
    return "\n".join(lines[place[0] : place[1]]).strip("\n") if place else ""


def with_section(text: str, heading: str, body: str) -> str:
    """The page with this body under that heading; a heading that is not there comes at the end.

    Models repeat the heading in front of the body: it is said once.
    """
    lines = text.split("\n")
    written = _body(body, heading)
    place = _place(lines, heading)
    if place is None:
        above = text.rstrip("\n")
        return "\n".join([*([above, ""] if above else []), f"## {_bare(heading)}", *written])
    begin, end = place
    return "\n".join([*lines[:begin], *written, *lines[end:]])


def _body(body: str, heading: str) -> list[str]:
    """Its lines, with one blank line before and behind."""
    lines = body.strip("\n").split("\n")
    if (match := _HEADING.fullmatch(lines[0])) and _title(match[2]) == _title(heading):
        lines = "\n".join(lines[1:]).strip("\n").split("\n")
    return ["", *lines, ""] if lines != [""] else [""]


def _place(lines: Sequence[str], heading: str) -> tuple[int, int] | None:
    """The lines of a section's body: from behind its heading to the next one that is not below it."""
    wanted = _title(heading)
    headings = list(_headings(lines))
    for number, (line, level, title) in enumerate(headings):
        if title == wanted:
            return line + 1, next((at for at, other, _ in headings[number + 1 :] if other <= level), len(lines))
    return None


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Line, level and title of each. A fence is closed by one of its kind, no shorter and with nothing behind it."""
    fence = ""
    for number, line in enumerate(lines):
        if mark := _FENCE.fullmatch(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif not fence and (match := _HEADING.fullmatch(line)):
            yield number, len(match[1]), _title(match[2])


def _bare(heading: str) -> str:
    """A heading as somebody names it, with its marks or without."""
    match = _HEADING.fullmatch(heading.strip())
    return " ".join((match[2] if match else heading).split())


def _title(heading: str) -> str:
    return _bare(heading).casefold()
