"""Which lines leave a page that is over its room.

The least worth goes first. What was on the page before leaves for a pointer, and only a part of that in one dream as
long as something else can go; what this dream would add may simply stay out, since its notes and crystals are found all
the same. People's entries leave last of all, when they can be found again by a pointer, a part of them in one dream.
Where people fill the room by themselves, dreams keep to a part of it. Most of the Bond never leaves in one dream, room
or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.draft import Ground, Sheet
from inmind.dreams.page.guards import LEAST_OF_THE_BOND, by_people, is_mass_drop, lines_in, stands, survives, words_in
from inmind.dreams.page.limits import MOST, Size, room_beside, size
from inmind.dreams.page.page import written
from inmind.dreams.page.pointers import candidates
from inmind.dreams.page.retire import faded
from inmind.dreams.page.sections import Section

PRECIOUS = 0.9
"""From this importance on no proposal takes a line away: it leaves by its age, and for want of room."""

TOLD_ANEW = (Section.GAPS, Section.SKILLS)
"""Sections that every dream tells from what it knows: nothing is lost with a line of theirs."""

_SHARE, _AT_LEAST = 0.3, 3

THEIRS = 0.75
"""Importance of what people wrote on the page."""

_HALF_LIVES = {
    Section.PHENOTYPE: timedelta(days=60),
    Section.BOND: timedelta(days=60),
    Section.ACTIVE: timedelta(days=5),
}
_HALF_LIFE = timedelta(days=14)


def share(number: int) -> int:
    """How many of so many may leave in one dream."""
    return max(_AT_LEAST, int(number * _SHARE))


def worth(line: PageLine, ground: Ground) -> float:
    """By its importance, by how much its section counts right now, and by its age."""
    section = Section(line.section)
    age = max(timedelta(0), ground.now - _moment(line.at, ground.now))
    return line.importance * ground.weights.get(section, 1.0) * 0.5 ** (age / _HALF_LIVES.get(section, _HALF_LIFE))


def is_over(sheet: Sheet) -> bool:
    return not _Measure(sheet).is_small


@frozen(kw_only=True)
class Fitted:
    left: tuple[PageLine, ...] = ()
    """Lines and entries that stood on the page before and have left it."""
    kept_out: tuple[PageLine, ...] = ()
    """What this dream would have added, and has no room."""


def fitted(
    sheet: Sheet, added: Collection[str], ground: Ground, *, before: str, bond: Collection[str], leaving: int
) -> Fitted:
    """Bring a page inside its room. `added` are lines that this dream brings; of the others so many may leave.
    `before`, `bond`: the page, and what its Bond said, before anything was done.

    Each step takes one line from those that may go, so it ends; what no search would find again stays.
    """
    fitting = _Fitting(sheet, added, ground, before=len(before), bond=bond)
    own = fitting.by_worth()
    late = [line for line in own if line.text not in added and not is_lossless(line)][leaving:]
    waits = {line.text for line in late}
    fitting.let_go((line for line in own if line.text not in waits), until=lambda measure: measure.fits)
    fitting.let_go(late, until=lambda measure: measure.fits)
    fitting.let_go(_of_people(sheet, ground), until=lambda measure: measure.is_small)
    fitting.let_go(fitting.pointers(), until=lambda measure: measure.fits)
    return Fitted(left=tuple(fitting.left), kept_out=tuple(fitting.kept_out))


def is_told_anew(line: PageLine) -> bool:
    """Does every dream tell it from what it knows? So with a figure that memory has worked out itself, of no source in
    particular."""
    figure = line.section == Section.NICHE and (line.kind == "economics" or not line.sources)
    return line.section in TOLD_ANEW or figure


def is_lossless(line: PageLine) -> bool:
    """Is nothing lost with it?"""
    return is_told_anew(line) or line.section == Section.POINTERS


def must_stay(text: str, ground: Ground) -> bool:
    return bool(ground.must) and any(stands(item.text, lines_in(text)) for item in ground.must)


def spares_bond(bond: Collection[str], sheet: Sheet, *, gone: Collection[str], put: Collection[str] = ()) -> bool:
    """Is enough left of what the Bond was before, without some lines and with others?"""
    if all(sheet.section_of(text) is not Section.BOND for text in gone):
        return True
    rest = (text for text in sheet.entries(Section.BOND) if text not in gone)
    return survives(bond, (*rest, *put)) >= LEAST_OF_THE_BOND


def of_people(text: str, sheet: Sheet, ground: Ground) -> PageLine:
    """What somebody wrote, as if it were a line of ours."""
    sources = (ground.theirs[text],) if text in ground.theirs else ()
    section = sheet.section_of(text) or Section.ACTIVE
    return PageLine(section, text, sources, importance=THEIRS, trust=Trust.PERSON)


class _Fitting:
    def __init__(
        self, sheet: Sheet, added: Collection[str], ground: Ground, *, before: int, bond: Collection[str]
    ) -> None:
        self._sheet, self._added, self._ground = sheet, added, ground
        self._before, self._bond = before, _Bond(bond, sheet.entries(Section.BOND))
        self._measure = _Measure(sheet)
        self.left: list[PageLine] = []
        self.kept_out: list[PageLine] = []

    def by_worth(self) -> list[PageLine]:
        """Lines of ours that may go, the first to go first."""
        free = (line for text, line in self._sheet.lines.items() if not must_stay(text, self._ground))
        lines = (line for line in free if line.section != Section.POINTERS)
        return sorted(lines, key=lambda line: worth(line, self._ground))

    def pointers(self) -> list[PageLine]:
        lines = map(self._sheet.lines.__getitem__, self._sheet.pointers())
        return sorted(lines, key=lambda line: line.importance)

    def let_go(self, lines: Iterable[PageLine], *, until: Callable[[_Measure], bool]) -> None:
        for line in lines:
            if until(self._measure):
                return
            if self._leaves(line):
                (self.kept_out if line.text in self._added else self.left).append(line)

    def _leaves(self, line: PageLine) -> bool:
        bonded = self._sheet.section_of(line.text) is Section.BOND
        if line.text in self._added or is_lossless(line):
            self._sheet.strike(line.text)
        else:
            drops = is_mass_drop(self._before, self._measure.characters - len(line.text))
            if drops or (bonded and not self._bond.spares(line.text)):
                return False
            if not faded(self._sheet, line, candidates(line.text), self._ground):
                return False
        if bonded:
            self._bond.lose(line.text)
        return True


class _Bond:
    """How much is left of what the Bond was, while one entry after another leaves: to read all of it for each would
    take minutes where somebody has written much."""

    def __init__(self, before: Iterable[str], now: Iterable[str]) -> None:
        self._old = frozenset(words_in(before))
        self._said = Counter(word for text in now for word in self._words(text))

    def spares(self, text: str) -> bool:
        """Is enough left without it?"""
        lost = sum(self._said[word] == 1 for word in self._words(text))
        return len(self._said) - lost >= LEAST_OF_THE_BOND * len(self._old)

    def lose(self, text: str) -> None:
        self._said.subtract(words := self._words(text))
        for word in words:
            if self._said[word] <= 0:
                del self._said[word]

    def _words(self, text: str) -> frozenset[str]:
        return self._old.intersection(words_in([text]))


def _of_people(sheet: Sheet, ground: Ground) -> list[PageLine]:
    """Entries that are crystals, those that stand first on the page; none before dreams have written below them."""
    theirs = sheet.theirs
    found = [text for text in theirs if text in ground.theirs and not must_stay(text, ground)]
    return [of_people(text, sheet, ground) for text in ([] if sheet.untouched else found)[: share(len(theirs))]]


class _Measure:
    """How long a page is. It is written and measured anew before anybody hears that it is short enough; as long as it
    is too long by far, what has changed since is added up instead.

    Tokens of lines do not add up to those of a page: each is rounded, by up to one for each change. And a heading of
    people's goes with the last that stood below it, so a page is not left unmeasured for long.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._take()

    @property
    def fits(self) -> bool:
        """Inside its room, or people have filled that, and dreams keep to their part."""
        self._make_sure(self._room)
        return self._size.within(self._room)

    @property
    def is_small(self) -> bool:
        """Inside its room, whoever has written it."""
        self._make_sure(MOST)
        return self._size.within(MOST)

    @property
    def characters(self) -> int:
        """At least."""
        return self._size.characters - 2 * self._unsure

    @property
    def _size(self) -> Size:
        return self._base + self._sheet.grown

    @property
    def _unsure(self) -> int:
        return self._sheet.changes - self._changes

    def _make_sure(self, room: Size) -> None:
        least = self._size - Size(2 * self._unsure, self._unsure)
        if self._unsure and (least.within(room) or self._unsure * _SURE > len(self._sheet)):
            self._take()

    def _take(self) -> None:
        page = self._sheet.page("")
        self._base = size(written(page)) + _HEADER - self._sheet.grown
        self._room = room_beside(written(by_people(page, self._sheet.lines)))
        self._changes = self._sheet.changes


def _moment(text: str, now: datetime) -> datetime:
    """When a line was last true; one that does not say so is new."""
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        return now
    return said if said.tzinfo else said.replace(tzinfo=UTC)


_SURE = 4
"""One of so many entries of a page may change before it is measured again."""

_HEADER = Size(120, 40)
"""The line of the dream, whatever the mood is."""
