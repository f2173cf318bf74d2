"""One section of a page, read and replaced without touching the others.

A model that rewrites a whole page to change one line drops what it did not think of; so it may name the section. A
section is a heading and everything up to the next heading of its level or above; headings inside fenced code are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*")
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")


def section_of(text: str, heading: str) -> str:
    """What stands under a heading; empty where there is no such heading."""
    lines = text.split("\n")
    place = _place(lines, heading)
    return "\n".join(lines[place[0] : place[1]]).strip("\n") if place else ""


def with_section(text: str, heading: str, body: str) -> str:
    """The page with this body under that heading; a heading that is not there comes at the end."""
    lines = text.split("\n")
    place = _place(lines, heading)
    if place is None:
        above = text.rstrip("\n")
        return f"{above}\n\n## {heading.strip('# ')}\n\n{body.strip(chr(10))}\n".lstrip("\n")
    begin, end = place
    written = [*lines[:begin], "", *body.strip("\n").split("\n"), ""]
    return "\n".join([*written, *lines[end:]])


def _place(lines: Sequence[str], heading: str) -> tuple[int, int] | None:
    """The lines of a section's body: from behind its heading to the next one that is not below it."""
    wanted = _title(heading)
    headings = list(_headings(lines))
    for number, (line, level, title) in enumerate(headings):
        if title == wanted:
            return line + 1, next((at for at, other, _ in headings[number + 1 :] if other <= level), len(lines))
    return None


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Line, level and title of each."""
    fence = ""
    for number, line in enumerate(lines):
        if mark := _FENCE.match(line):
            kind = mark[1][0]
            fence = "" if fence == kind else fence or kind
        elif not fence and (match := _HEADING.fullmatch(line)):
            yield number, len(match[1]), _title(match[2])


def _title(heading: str) -> str:
    return " ".join(heading.strip().lstrip("#").split()).casefold()
