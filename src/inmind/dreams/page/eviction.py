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
from inmind.dreams.page.draft import PageDraft, RewriteContext
from inmind.dreams.page.guards import (
    MIN_BOND_SHARE,
    contains_lines,
    distinctive_words_in,
    is_mass_drop,
    line_set,
    surviving_share,
    without_dream_lines,
)
from inmind.dreams.page.limits import MAX_PAGE_SIZE, TextSize, measure, page_limit
from inmind.dreams.page.page import render_page
from inmind.dreams.page.pointers import candidate_pointers
from inmind.dreams.page.retire import replace_with_pointer
from inmind.dreams.page.sections import Section

MIN_PROTECTED_IMPORTANCE = 0.9
"""From this importance on no proposal takes a line away: it leaves by its age, and for want of room."""

DERIVED_SECTIONS = (Section.GAPS, Section.SKILLS)
"""Sections that every dream tells from what it knows: nothing is lost with a line of theirs."""

_MAX_RETIRED_SHARE, _MIN_RETIRED_LIMIT = 0.3, 3

USER_LINE_IMPORTANCE = 0.75
"""Importance of what people wrote on the page."""

_SECTION_HALF_LIVES = {
    Section.PHENOTYPE: timedelta(days=60),
    Section.BOND: timedelta(days=60),
    Section.ACTIVE: timedelta(days=5),
}
_DEFAULT_HALF_LIFE = timedelta(days=14)


def max_retired(number: int) -> int:
    """How many of so many may leave in one dream."""
    return max(_MIN_RETIRED_LIMIT, int(number * _MAX_RETIRED_SHARE))


def line_worth(line: PageLine, context: RewriteContext) -> float:
    """By its importance, by how much its section counts right now, and by its age."""
    section = Section(line.section)
    age = max(timedelta(0), context.now - _parse_datetime(line.at, context.now))
    return (
        line.importance
        * context.weights.get(section, 1.0)
        * 0.5 ** (age / _SECTION_HALF_LIVES.get(section, _DEFAULT_HALF_LIFE))
    )


def is_too_long(draft: PageDraft) -> bool:
    return not _PageMeasure(draft).is_within_limit


@frozen(kw_only=True)
class Eviction:
    evicted: tuple[PageLine, ...] = ()
    """Lines and entries that stood on the page before and have left it."""
    not_added: tuple[PageLine, ...] = ()
    """What this dream would have added, and has no room."""


def evict_lines(
    draft: PageDraft,
    added: Collection[str],
    context: RewriteContext,
    *,
    before: str,
    bond: Collection[str],
    max_leaving: int,
) -> Eviction:
    """Bring a page inside its room.

    `added` are lines that this dream brings; of the others so many may leave.
    `before`, `bond`: the page, and what its Bond said, before anything was done.

    Each step takes one line from those that may go, so it ends; what no search would find again stays.
    """
    evictor = _Evictor(draft, added, context, before=len(before), bond=bond)
    lines = evictor.lines_by_worth()
    last_resort = [line for line in lines if line.text not in added and not is_lossless(line)][max_leaving:]
    last_resort_texts = {line.text for line in last_resort}
    evictor.evict_until(
        (line for line in lines if line.text not in last_resort_texts), until=lambda measure: measure.fits
    )
    evictor.evict_until(last_resort, until=lambda measure: measure.fits)
    evictor.evict_until(_user_lines(draft, context), until=lambda measure: measure.is_within_limit)
    evictor.evict_until(evictor.pointers(), until=lambda measure: measure.fits)
    return Eviction(evicted=tuple(evictor.evicted), not_added=tuple(evictor.not_added))


def is_derived(line: PageLine) -> bool:
    """Does every dream tell it from what it knows?

    So with a figure that memory has worked out itself, of no source in
    particular."""
    is_figure = line.section == Section.NICHE and (line.kind == "economics" or not line.sources)
    return line.section in DERIVED_SECTIONS or is_figure


def is_lossless(line: PageLine) -> bool:
    """Is nothing lost with it?"""
    return is_derived(line) or line.section == Section.POINTERS


def is_required(text: str, context: RewriteContext) -> bool:
    return bool(context.required_lines) and any(
        contains_lines(item.text, line_set(text)) for item in context.required_lines
    )


def keeps_bond(
    bond: Collection[str], draft: PageDraft, *, removed: Collection[str], added: Collection[str] = ()
) -> bool:
    """Is enough left of what the Bond was before, without some lines and with others?"""
    if all(draft.section_of(text) is not Section.BOND for text in removed):
        return True
    remaining = (text for text in draft.entries(Section.BOND) if text not in removed)
    return surviving_share(bond, (*remaining, *added)) >= MIN_BOND_SHARE


def user_line(text: str, draft: PageDraft, context: RewriteContext) -> PageLine:
    """What somebody wrote, as if it were a line of ours."""
    sources = (context.user_lines[text],) if text in context.user_lines else ()
    section = draft.section_of(text) or Section.ACTIVE
    return PageLine(section, text, sources, importance=USER_LINE_IMPORTANCE, trust=Trust.PERSON)


class _Evictor:
    def __init__(
        self, draft: PageDraft, added: Collection[str], context: RewriteContext, *, before: int, bond: Collection[str]
    ) -> None:
        self._draft, self._added, self._context = draft, added, context
        self._before, self._bond = before, _BondWords(bond, draft.entries(Section.BOND))
        self._measure = _PageMeasure(draft)
        self.evicted: list[PageLine] = []
        self.not_added: list[PageLine] = []

    def lines_by_worth(self) -> list[PageLine]:
        """Lines of ours that may go, the first to go first."""
        evictable = (line for text, line in self._draft.dream_lines.items() if not is_required(text, self._context))
        lines = (line for line in evictable if line.section != Section.POINTERS)
        return sorted(lines, key=lambda line: line_worth(line, self._context))

    def pointers(self) -> list[PageLine]:
        lines = map(self._draft.dream_lines.__getitem__, self._draft.dream_pointers())
        return sorted(lines, key=lambda line: line.importance)

    def evict_until(self, lines: Iterable[PageLine], *, until: Callable[[_PageMeasure], bool]) -> None:
        for line in lines:
            if until(self._measure):
                return
            if self._evict(line):
                (self.not_added if line.text in self._added else self.evicted).append(line)

    def _evict(self, line: PageLine) -> bool:
        in_bond = self._draft.section_of(line.text) is Section.BOND
        if line.text in self._added or is_lossless(line):
            self._draft.remove(line.text)
        else:
            is_drop = is_mass_drop(self._before, self._measure.characters - len(line.text))
            if is_drop or (in_bond and not self._bond.can_lose(line.text)):
                return False
            if not replace_with_pointer(self._draft, line, candidate_pointers(line.text), self._context):
                return False
        if in_bond:
            self._bond.lose(line.text)
        return True


class _BondWords:
    """How much is left of what the Bond was, while one entry after another leaves: to read all of it for each would
    take minutes where somebody has written much."""

    def __init__(self, before: Iterable[str], now: Iterable[str]) -> None:
        self._words_before = frozenset(distinctive_words_in(before))
        self._word_counts = Counter(word for text in now for word in self._words(text))

    def can_lose(self, text: str) -> bool:
        """Is enough left without it?"""
        lost = sum(self._word_counts[word] == 1 for word in self._words(text))
        return len(self._word_counts) - lost >= MIN_BOND_SHARE * len(self._words_before)

    def lose(self, text: str) -> None:
        self._word_counts.subtract(words := self._words(text))
        for word in words:
            if self._word_counts[word] <= 0:
                del self._word_counts[word]

    def _words(self, text: str) -> frozenset[str]:
        return self._words_before.intersection(distinctive_words_in([text]))


def _user_lines(draft: PageDraft, context: RewriteContext) -> list[PageLine]:
    """Entries that are crystals, those that stand first on the page; none before dreams have written below them."""
    entries = draft.user_lines
    evictable = [text for text in entries if text in context.user_lines and not is_required(text, context)]
    return [
        user_line(text, draft, context)
        for text in ([] if draft.is_unwritten else evictable)[: max_retired(len(entries))]
    ]


class _PageMeasure:
    """How long a page is.

    It is written and measured anew before anybody hears that it is short enough; as long as it
    is too long by far, what has changed since is added up instead.

    Tokens of lines do not add up to those of a page: each is rounded, by up to one for each change. And a heading of
    people's goes with the last that stood below it, so a page is not left unmeasured for long.
    """

    def __init__(self, draft: PageDraft) -> None:
        self._draft = draft
        self._measure()

    @property
    def fits(self) -> bool:
        """Inside its room, or people have filled that, and dreams keep to their part."""
        self._remeasure_near(self._limit)
        return self._size.fits_in(self._limit)

    @property
    def is_within_limit(self) -> bool:
        """Inside its room, whoever has written it."""
        self._remeasure_near(MAX_PAGE_SIZE)
        return self._size.fits_in(MAX_PAGE_SIZE)

    @property
    def characters(self) -> int:
        """At least."""
        return self._size.characters - 2 * self._unmeasured_changes

    @property
    def _size(self) -> TextSize:
        return self._base + self._draft.size_change

    @property
    def _unmeasured_changes(self) -> int:
        return self._draft.change_count - self._measured_changes

    def _remeasure_near(self, limit: TextSize) -> None:
        min_size = self._size - TextSize(2 * self._unmeasured_changes, self._unmeasured_changes)
        if self._unmeasured_changes and (
            min_size.fits_in(limit) or self._unmeasured_changes * _REMEASURE_FRACTION > len(self._draft)
        ):
            self._measure()

    def _measure(self) -> None:
        page = self._draft.to_page("")
        self._base = measure(render_page(page)) + _HEADER_SIZE - self._draft.size_change
        self._limit = page_limit(render_page(without_dream_lines(page, self._draft.dream_lines)))
        self._measured_changes = self._draft.change_count


def _parse_datetime(text: str, now: datetime) -> datetime:
    """When a line was last true; one that does not say so is new."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return now
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_REMEASURE_FRACTION = 4
"""One of so many entries of a page may change before it is measured again."""

_HEADER_SIZE = TextSize(120, 40)
"""The line of the dream, whatever the mood is."""
