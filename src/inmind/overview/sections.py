"""One section of a page, read and replaced without touching the others.

A model that rewrites a whole page to change one line drops what it did not think of; so it may name the section. A
section is a heading and everything up to the next heading of its level or above. What is fenced, commented out or in
the head of the page is no heading, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from inmind.overview.head import parted

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)", re.DOTALL)
_CLOSING = re.compile(r"(?:\A|(?<=[ \t]))#++\Z")
_FENCE = re.compile(r" {0,3}(?:(```+)([^`]*)|(~~~+)(.*))")
_COMMENT = re.compile(r" {0,3}<!--")


def section_of(text: str, heading: str) -> str:
    """What stands under a heading; empty where there is no such heading."""
    lines = parted(text)[1].split("\n")
    place = _place(lines, heading)
    return "\n".join(lines[place[0] : place[1]]).strip("\n") if place else ""


def with_section(text: str, heading: str, body: str) -> str:
    """The page with this body under that heading; a heading that is not there comes at the end.

    Models repeat the heading in front of the body: it is said once.
    """
    written = _body(body, heading)
    return with_lines(text, [heading], lambda _: written)


def with_lines(text: str, headings: Sequence[str], change: Callable[[Sequence[str]], Sequence[str] | None]) -> str:
    """The page with the lines under a heading changed: under the first of these that it has.

    If it has none of them, the first comes at the end, unless there is nothing to say. None takes the section away.
    """
    head, page = parted(text)
    lines = page.split("\n")
    place = next((found for heading in headings if (found := _place(lines, heading))), None)
    if place is not None:
        begin, end = place
        changed = change(lines[begin:end])
        kept = lines[: begin - 1] if changed is None else [*lines[:begin], *changed]
        return head + "\n".join([*kept, *lines[end:]])
    changed = change([])
    if not changed:
        return text
    above = page.rstrip("\n")
    if head and not head.endswith("\n"):
        head += "\n"
    return head + "\n".join([*([above, ""] if above else []), f"## {_bare(headings[0])}", *changed])


def plain(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines that are neither fenced nor commented out, with their numbers.

    A fence is closed by one of its kind, no shorter and with nothing behind it. One that nobody closes hides nothing,
    nor does such a comment: all that was added behind it would be lost from sight.
    """
    place = 0
    never_closed: dict[str, int] = {}
    while place < len(lines):
        kind, length = _opened(lines[place])
        if kind and length < never_closed.get(kind, length + 1):
            closing = _closing(lines, place, kind, length)
            if closing is not None:
                place = closing + 1
                continue
            never_closed[kind] = length
        yield place, lines[place]
        place += 1


def headings_in(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Line, level and words of each heading."""
    for number, line in plain(lines):
        if match := _HEADING.match(line):
            yield number, len(match[1]), _bare(line)


def _opened(line: str) -> tuple[str, int]:
    """What a line opens, if anything: a comment, or a fence of so many marks."""
    if _COMMENT.match(line):
        return "<", 0
    if match := _FENCE.fullmatch(line):
        marks = match[1] or match[3]
        return marks[0], len(marks)
    return "", 0


def _closing(lines: Sequence[str], place: int, kind: str, length: int) -> int | None:
    if kind == "<":
        return next((n for n in range(place, len(lines)) if "-->" in lines[n]), None)
    closes = re.compile(rf" {{0,3}}{kind}{{{length},}}\s*")
    return next((n for n in range(place + 1, len(lines)) if closes.fullmatch(lines[n])), None)


def _body(body: str, heading: str) -> list[str]:
    """Its lines, with one blank line before and behind."""
    lines = body.strip("\n").split("\n")
    if _HEADING.match(lines[0]) and _title(lines[0]) == _title(heading):
        lines = "\n".join(lines[1:]).strip("\n").split("\n")
    return ["", *lines, ""] if lines != [""] else [""]


def _place(lines: Sequence[str], heading: str) -> tuple[int, int] | None:
    """The lines of a section's body: from behind its heading to the next one that is not below it."""
    wanted = _title(heading)
    headings = list(headings_in(lines))
    for number, (line, level, words) in enumerate(headings):
        if words.casefold() == wanted:
            return line + 1, next((at for at, other, _ in headings[number + 1 :] if other <= level), len(lines))
    return None


def _bare(heading: str) -> str:
    """A heading as somebody names it, with its marks or without."""
    match = _HEADING.match(heading.strip())
    return " ".join((_CLOSING.sub("", match[2].rstrip()) if match else heading).split())


def _title(heading: str) -> str:
    return _bare(heading).casefold()
