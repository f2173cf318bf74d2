"""MEMORY.md as a value: people's text above, the line of the last dream, and sections with their entries.

    # Working Memory State

    _Last dream: 2026-03-12T16:00:00Z | Mood: calm_

    ## The Bond

    - Prefers tabs over spaces

Everybody may write this page, so reading it never fails and never drops a word: whatever it does not understand is an
entry like any other, and comes out again where it stood. An entry is an item of a list with the lines that are indented
below it, or a paragraph. What is fenced or commented out is no heading, whatever it looks like.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from textwrap import dedent
from typing import Literal, NamedTuple

from inmind.core.frozen import frozen
from inmind.core.text import Cut, cut
from inmind.core.tokens import Counter
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.page.sections import Section, section_named

TITLE = "# Working Memory State"


@frozen
class Part:
    """What stands under one heading."""

    heading: str
    """The line itself, `## The Bond`; empty for what stands under none."""
    entries: tuple[str, ...] = ()
    """Verbatim, but for the ends of lines."""

    @property
    def section(self) -> Section | None:
        return section_named(self.heading)

    @property
    def said(self) -> tuple[str, ...]:
        return tuple(text for entry in self.entries if (text := said(entry)))


@frozen(kw_only=True)
class Page:
    above: str = ""
    """What people wrote before the title of the state, verbatim; without a state, that is everything."""
    title: str = ""
    """As it stands there; empty where somebody has taken it away."""
    header: str = ""
    """The line that tells of the last dream; empty before the first."""
    parts: tuple[Part, ...] = ()

    def entries(self, section: Section) -> tuple[str, ...]:
        """What a section says, entry by entry."""
        return tuple(text for part in self.parts if part.section is section for text in part.said)

    def everything(self) -> Iterator[tuple[Section | None, str]]:
        """All that the page says, each with its section; None for what stands above, or under people's own headings."""
        for part in parts_of(self.above):
            yield from ((None, text) for text in part.said)
        for part in self.parts:
            yield from ((part.section, text) for text in part.said)


def read(text: str) -> Page:
    """The page that a text is. The state begins with its title; where that is missing, with the first line of ours."""
    mark = _BOM if text.startswith(_BOM) else ""
    lines = text.removeprefix(mark).split("\n")
    blocks = list(blocks_of(lines))
    begin = _begin(lines, blocks)
    if begin is None:
        return Page(above=text)
    above, rest = lines[:begin], lines[begin:]
    title = rest.pop(0).strip() if _is_title(rest[0]) else ""
    # What stands around the line of the last dream is read as it will be written: without that between.
    told = next((block.begin for block in blocks_of(rest) if block.what == "header"), None)
    header = "" if told is None else rest.pop(told).strip()
    return Page(
        above=mark + "".join(f"{line}\n" for line in above),
        title=title,
        header=header,
        parts=tuple(_parts(rest, blocks_of(rest))),
    )


def written(page: Page) -> str:
    """The text of a page. What is read of it is the page again."""
    said = "\n\n".join(filter(None, (page.title, page.header, *map(_shown, page.parts))))
    return page.above + (f"{said}\n" if said else "")


def said(entry: str) -> str:
    """An entry without the mark and the indent of its list; nothing for what says nothing: a comment, or a rule."""
    bare = entry.strip()
    if _RULE.fullmatch(bare) or (bare.startswith("<!--") and bare.find("-->") == len(bare) - len("-->")):
        return ""
    first, _, more = entry.partition("\n")
    return "\n".join([_MARK.sub("", first, count=1).strip(), *([dedent(more)] if more else [])]).strip()


def header(now: datetime, mood: str = "") -> str:
    """The line that tells of a dream."""
    feeling = " ".join(mood.split()).replace("_", " ")
    return f"_Last dream: {format_timestamp(now)}{f' | Mood: {feeling}' if feeling else ''}_"


def parts_of(text: str) -> list[Part]:
    """A text by its headings, whosever they are."""
    lines = text.split("\n")
    return list(_parts(lines, blocks_of(lines)))


class Block(NamedTuple):
    """Lines that belong together, from one to before another."""

    begin: int
    end: int
    what: Literal["heading", "header", "entry"]


def blocks_of(lines: Sequence[str]) -> Iterator[Block]:
    """Everything but blank lines, in order."""
    behind = _closings(lines)
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        what = _kind(lines[at])
        end = _end(lines, at, behind) if what == "entry" else at + 1
        yield Block(at, end, what)
        at = end


def level_of(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


_BOM = "\ufeff"
_MARK = re.compile(r"\A\s*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)")
_RULE = re.compile(r"(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")
_HEADING = re.compile(r"#{1,6}[ \t]+\S.*")
_HEADER = re.compile(r"\s*_Last dream:.*_\s*")
_OPENING = re.compile(r"\s*(?:(`{3,})[^`]*|(~{3,}).*)")
_CLOSING = re.compile(r"\s*(`{3,}|~{3,})\s*")

# A fence is closed by one of its kind that is no shorter. Nobody needs to tell apart longer ones than these.
_LONGEST_FENCE = 8


def _kind(line: str) -> Literal["heading", "header", "entry"]:
    if _HEADING.fullmatch(line.rstrip()):
        return "heading"
    return "header" if _HEADER.fullmatch(line) else "entry"


def _is_title(line: str) -> bool:
    return line.strip().casefold() == TITLE.casefold()


def _begin(lines: Sequence[str], blocks: Sequence[Block]) -> int | None:
    """Where the state begins: with its title, or else with the line of the last dream, or else with a section."""
    ours: tuple[Callable[[Block], bool], ...] = (
        lambda block: block.what == "heading" and _is_title(lines[block.begin]),
        lambda block: block.what == "header",
        lambda block: block.what == "heading" and section_named(lines[block.begin]) is not None,
    )
    return next((block.begin for is_ours in ours for block in blocks if is_ours(block)), None)


def _end(lines: Sequence[str], begin: int, behind: Callable[[int], int]) -> int:
    """Behind the last line of an entry. A blank line ends a paragraph; an item goes on behind it where it is indented,
    since an editor may have taken the indent from the blank line."""
    item, own = _MARK.match(lines[begin]) is not None, _indent(lines[begin])
    end = behind(begin)
    while end < len(lines):
        line = lines[end]
        if not line.strip():
            below = end + 1
            while below < len(lines) and not lines[below].strip():
                below += 1
            if not item or below == len(lines) or _indent(lines[below]) <= own:
                break
            end = below
            continue
        another = _MARK.match(line) and (not item or _indent(line) <= own)
        if another or _kind(line) != "entry":
            break
        end = behind(end)
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _closings(lines: Sequence[str]) -> Callable[[int], int]:
    """Behind which line ends what begins at some line: a fence or a comment at its end, all else, and what nobody
    closes, there and then. Known from one look at all lines: a page may have nothing but openings.

    A comment that goes on to the next one was not closed: somebody's slip must not hide what stands before ours.
    """
    ends: dict[str, list[int]] = {}
    opened: int | None = None
    for number, line in enumerate(lines):
        opened = number if line.lstrip().startswith("<!--") else opened
        if "-->" in line and opened is not None:
            ends.setdefault(f"<!-- {opened}", []).append(number)
        if fence := _CLOSING.fullmatch(line):
            ends.setdefault(fence[1][:_LONGEST_FENCE], []).append(number)

    def behind(at: int) -> int:
        if lines[at].lstrip().startswith("<!--"):
            marks, first = [f"<!-- {at}"], at
        elif fence := _OPENING.fullmatch(lines[at]):
            mark: str = fence[1] or fence[2]
            longer = range(min(len(mark), _LONGEST_FENCE), _LONGEST_FENCE + 1)
            marks, first = [mark[0] * length for length in longer], at + 1
        else:
            return at + 1
        places = [(ends[mark], bisect_left(ends[mark], first)) for mark in marks if mark in ends]
        return min((there[n] for there, n in places if n < len(there)), default=at) + 1

    return behind


def _parts(lines: Sequence[str], blocks: Iterator[Block] | Sequence[Block]) -> Iterator[Part]:
    heading, entries = "", list[str]()
    for block in blocks:
        if block.what != "heading":
            entries.append("\n".join(line.rstrip("\r") for line in lines[block.begin : block.end]))
            continue
        if heading or entries:
            yield Part(heading, tuple(entries))
        heading, entries = lines[block.begin].rstrip("\r"), []
    if heading or entries:
        yield Part(heading, tuple(entries))


def _shown(part: Part) -> str:
    """Items of a list stand line by line, all else apart."""
    shown = [part.heading] if part.heading else []
    before = None
    for entry in part.entries:
        item = _MARK.match(entry)
        if shown:
            shown.append("\n" if before and item else "\n\n")
        shown.append(entry)
        before = item
    return "".join(shown)


def beginning(text: str, *, budget: int, count: Counter, pointer: str) -> Cut:
    """Its first entries, as many as fit above the pointer: half an entry can lose its "not", and a heading with nothing
    under it says nothing. Where not even one fits, it is cut like any text."""
    if count(text) <= budget:
        return Cut(text, 0)
    lines = text.split("\n")
    ends = [block.end for block in blocks_of(lines) if block.what == "entry"]

    def shown(end: int) -> str:
        return "\n".join([*lines[:end], pointer])

    kept = bisect_right(ends, budget, key=lambda end: count(shown(end)))
    if not kept:
        return cut(text, budget=budget, count=count, pointer=pointer)
    return Cut(shown(ends[kept - 1]), len(lines) - ends[kept - 1])
