"""MEMORY.md while a dream rewrites it: all seven sections in their order, and around them what people wrote.

The one thing here that changes. Lines come and go by their words, and whatever nobody names stays where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.adopt_existing import FOLLOWS, with_dreams_below
from inmind.dreams.page.limits import Size, size
from inmind.dreams.page.page import TITLE, Block, Page, Part, blocks_of, level_of, parts_of, read, said
from inmind.dreams.page.pointers import pointed
from inmind.dreams.page.sections import Section


@frozen(kw_only=True)
class Ground:
    now: datetime
    mood: str = ""
    lines: Mapping[str, PageLine]
    """Lines that dreams have written, by their text. Whatever else stands on the page is people's."""
    theirs: Mapping[str, str]
    """Entries of people that are crystals by now, each with its crystal: they may be found again."""
    seed: frozenset[str] = frozenset()
    """Entries that stood there before the first dream, which dreams may say in their own words."""
    weights: Mapping[Section, float]
    """How much each section counts right now."""
    finds: Callable[[str], frozenset[str]]
    """What a search for some words brings up: crystals, by their ids."""
    source_text: Callable[[str], str]
    """What a crystal or a note says; nothing where there is none of that id."""
    source_trust: Callable[[str], Trust]
    must: tuple[PageLine, ...] = ()
    """Lines that have to stand on the page, in these words, whatever else does."""


class Sheet:
    def __init__(self, text: str, lines: Mapping[str, PageLine]) -> None:
        page = read(text)
        standing = {entry for _, entry in page.everything()}
        self.lines = {line: made for line, made in lines.items() if line in standing}
        """Those that dreams wrote, of all that stands here."""
        self.untouched = not (page.title or page.header or self.lines)
        """No dream has written here yet: what stands here is not to be changed."""
        if self.untouched:
            page = Page(above=text)
        self._above = page.above
        self._gone_above: set[str] = set()
        self._places = _arranged(page.parts)
        self._spots: dict[str, list[_Spot]] = {}
        self._where: dict[str, Section | None] = {}
        self._pointing: dict[str, None] = {}
        self.grown, self.changes = Size(0, 0), 0
        """What has come to the page less what has gone from it, and in how many steps: to write a page of ten thousand
        lines for each that leaves would take minutes."""
        self._index()

    def __contains__(self, text: object) -> bool:
        return text in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    def section_of(self, text: str) -> Section | None:
        """Where it stands; None for what stands under no heading of ours."""
        return self._where.get(text)

    @property
    def theirs(self) -> list[str]:
        """What people wrote, in the order of the page."""
        return [text for text in self._where if text not in self.lines]

    def entries(self, section: Section) -> list[str]:
        return [text for text, where in self._where.items() if where is section]

    def pointers(self) -> list[str]:
        """Lines of ours under Crystal Pointers, the oldest first."""
        own = (text for text in self._pointing if text in self.lines)
        return [text for text in own if self.lines[text].section == Section.POINTERS]

    def pointers_of_people(self) -> list[str]:
        return [text for text in self._pointing if text not in self.lines]

    def write(self, line: PageLine, *, instead_of: Iterable[str] = ()) -> None:
        """A line of ours: in the place of the first of these that is in its section, or at the end of that."""
        section = Section(line.section)
        again = [line.text] if line.text in self.lines else []
        freed = [spot for text in dict.fromkeys((*instead_of, *again)) for spot in self.strike(text)]
        place = self._place(section)
        self._put(
            place, line.text, f"- {line.text}", at=min((at for where, at in freed if where is place), default=None)
        )
        self.lines[line.text] = line

    def attach(self, section: Section, entry: str) -> None:
        """Somebody's entry, as it stood."""
        self._put(self._place(section), said(entry), entry)

    def strike(self, text: str) -> list[_Spot]:
        """It stands here no more, and where it stood. What people wrote goes however often they did; of a line of ours
        somebody may have said the very same elsewhere, and that stays."""
        if text not in self:
            return []
        line, spots = self.lines.pop(text, None), self._spots.pop(text, [])
        going = spots if line is None else spots and [min(spots, key=lambda spot: _unlike(line, spot))]
        for place, at in going:
            self._resize(place.entries.pop(at)[1], -1)
        above = self._where_above(text)
        if above and (line is None or not spots):
            self._gone_above.add(text)
            self._resize(f"- {text}", -1)
            above = False
        if stays := [spot for spot in spots if spot not in going]:
            self._spots[text] = stays
            self._where[text] = stays[-1][0].section
        elif above:
            self._where[text] = None
        else:
            del self._where[text]
            self._pointing.pop(text, None)
        return going

    def page(self, header: str) -> Page:
        self._above, self._gone_above = without(self._above, self._gone_above), set()
        above = with_dreams_below(self._above) if self.untouched else self._above
        return Page(above=above, title=TITLE, header=header, parts=tuple(place.part for place in self._places))

    def _place(self, section: Section) -> _Place:
        return next(place for place in self._places if place.section is section)

    def _put(self, place: _Place, text: str, entry: str, *, at: int | None = None) -> None:
        self._spots.setdefault(text, []).append((place, place.put(text, entry, at=at)))
        self._where[text] = place.section
        if place.section is Section.POINTERS or pointed(text):
            self._pointing[text] = None
        self._resize(entry, 1)

    def _resize(self, entry: str, sign: Literal[1, -1]) -> None:
        taken = size(f"{entry}\n")
        self.grown = self.grown + taken if sign > 0 else self.grown - taken
        self.changes += 1

    def _where_above(self, text: str) -> bool:
        return text in self._said_above and text not in self._gone_above

    def _index(self) -> None:
        self._said_above = frozenset(text for part in parts_of(self._above) for text in part.said)
        self._where = dict.fromkeys(text for part in parts_of(self._above) for text in part.said)
        for place in self._places:
            for at, (text, _) in place.entries.items():
                if text:
                    self._where[text] = place.section
                    self._spots.setdefault(text, []).append((place, at))
        own = (text for text, line in self.lines.items() if line.section == Section.POINTERS)
        self._pointing = dict.fromkeys((*own, *filter(pointed, self._where)))


class _Place:
    """What stands under one heading, each entry by a number that grows down the page."""

    def __init__(self, part: Part) -> None:
        self.heading, self.section = part.heading, part.section
        self.entries = {at: (said(entry), entry) for at, entry in enumerate(part.entries)}
        self._end = len(self.entries)

    @property
    def part(self) -> Part:
        return Part(self.heading, tuple(entry for _, (_, entry) in sorted(self.entries.items())))

    def put(self, text: str, entry: str, *, at: int | None = None) -> int:
        """At a number that has become free, or behind all others."""
        if at is None:
            at, self._end = self._end, self._end + 1
        self.entries[at] = (text, entry)
        return at


_Spot = tuple[_Place, int]


def _unlike(line: PageLine, spot: _Spot) -> tuple[bool, bool]:
    """How little an entry is as the dream wrote it: it may have been moved, and marked otherwise."""
    place, at = spot
    return place.section != line.section, place.entries[at][1] != f"- {line.text}"


def _arranged(parts: Iterable[Part]) -> list[_Place]:
    """Our sections in their order, each once, and people's headings behind whichever they stood behind."""
    groups: dict[Section | None, list[_Place]] = {None: [], **{section: [] for section in Section}}
    behind: Section | None = None
    for part in parts:
        place = _Place(part)
        behind = part.section or behind
        if part.section and groups[behind]:
            for text, entry in place.entries.values():
                groups[behind][0].put(text, entry)
        else:
            groups[behind].append(place)
    for section in Section:
        groups[section] = groups[section] or [_Place(Part(f"## {section}"))]
    return [place for group in groups.values() for place in group]


def without(above: str, texts: Collection[str]) -> str:
    """People's text without some entries, without the headings that had nothing else to stand over, and at last without
    the line that parts it from the state."""
    if not texts:
        return above
    lines = above.split("\n")
    blocks = list(blocks_of(lines))
    gone = {block for block in blocks if block.what != "heading" and _says(lines, block) in texts}
    if not gone:
        return above
    gone |= _bared(lines, blocks, gone)
    kept = [lines[block.begin] for block in blocks if block not in gone]
    if all(line in ("---", FOLLOWS) for line in kept):
        return ""
    for block in sorted(gone, reverse=True):
        end = block.end
        apart = block.begin == 0 or not lines[block.begin - 1].strip()
        while apart and end < len(lines) - 1 and not lines[end].strip():
            end += 1
        del lines[block.begin : end]
    return "\n".join(lines)


def _bared(lines: Sequence[str], blocks: Iterable[Block], gone: Collection[Block]) -> set[Block]:
    """Headings that stood over something which is gone, and over nothing else that says anything."""
    over: list[tuple[Block, list[Block]]] = []
    path: list[tuple[Block, list[Block]]] = []
    for block in blocks:
        if block.what == "heading":
            level = level_of(lines[block.begin])
            path = [(heading, below) for heading, below in path if level_of(lines[heading.begin]) < level]
            path.append((block, []))
            over.append(path[-1])
        else:
            for _, below in path:
                below.append(block)
    return {
        heading
        for heading, below in over
        if any(block in gone for block in below)
        and not any(_says(lines, block) for block in below if block not in gone)
    }


def _says(lines: Sequence[str], block: Block) -> str:
    return said("\n".join(line.rstrip("\r") for line in lines[block.begin : block.end]))
