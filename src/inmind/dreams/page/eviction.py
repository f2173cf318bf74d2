"""Replace lines with pointers, and evict lines from a page above its size limit.

A line is replaced only by a pointer that finds its sources. Without one it stays.

The line with the least worth is evicted first. A line that was on the page is replaced by a pointer; one dream evicts
only a share of these as long as other lines can be evicted. A line that this dream would add is left out without a
pointer: its sources remain searchable. Entries of users are evicted last, only if a pointer finds them again, and only
a share in one dream. If user text alone fills the page, dreams get an additional fraction. One dream never evicts more
than a share of The Bond, even if the page stays above the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.fair_turns import giving_way
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
from inmind.dreams.page.page import (
    MAX_PAGE_CHARACTERS,
    MAX_PAGE_SIZE,
    Section,
    TextSize,
    measure,
    page_limit,
    render_page,
)
from inmind.dreams.page.pointers import (
    MAX_KEYWORDS,
    MAX_POINTERS,
    TOPIC_SEPARATOR,
    Pointer,
    candidate_pointers,
    format_pointer,
    make_pointer,
    parse_pointer,
)

MAX_CHECKED_SOURCES = 5
"""Sources of a line that a search must return. More would not fit into the search result."""

MAX_POINTER_CHARACTERS = MAX_PAGE_CHARACTERS // 5
"""Characters of all pointers together, so that new lines still fit on a full page."""

MAX_TOPICS = 3
"""Topics of one pointer."""

_MAX_MERGE_ATTEMPTS = 3
"""Number of pointers with which a surplus one may be merged. Each attempt costs a search."""


def replace_with_pointer(
    draft: PageDraft, line: PageLine, candidates: Iterable[Pointer], context: RewriteContext
) -> bool:
    """Replace a line with the first pointer that finds its sources.

    Returns False, without a change, if none does.
    """
    pointer = next((candidate for candidate in candidates if _finds_sources(candidate, line.sources, context)), None)
    if pointer is None:
        return False
    draft.remove(line.text)
    _write_pointer(draft, _pointer_line(pointer, [line]), context)
    return True


def limit_pointers(draft: PageDraft, context: RewriteContext) -> None:
    """Reduce the pointers to their maximum number and size.

    Two are merged if possible. Otherwise the least important one is removed, the oldest among equals; its sources
    remain searchable.
    """
    limit = max(0, MAX_POINTERS - len(draft.user_pointers()))
    while len(texts := draft.dream_pointers()) > limit or sum(map(len, texts)) > MAX_POINTER_CHARACTERS:
        lines = [draft.dream_lines[text] for text in texts]
        least_important = min(lines, key=lambda line: (line.importance, line.at))
        for pair in _merge_candidates(lines, least_important):
            if merged := _merge_pointers(pair, context):
                draft.write_line(merged, instead_of=[line.text for line in pair])
                break
        else:
            draft.remove(least_important.text)


def _merge_candidates(lines: Sequence[PageLine], least_important: PageLine) -> Iterator[tuple[PageLine, PageLine]]:
    """Pairs to merge: the two oldest, then the least important with the most similar ones."""
    if len(lines) > 1:
        yield lines[0], lines[1]
    words = _keyword_set(least_important)
    others = [line for line in lines if line is not least_important]
    most_similar = sorted(others, key=lambda line: len(words & _keyword_set(line)), reverse=True)
    yield from ((line, least_important) for line in most_similar[:_MAX_MERGE_ATTEMPTS])


def _write_pointer(draft: PageDraft, line: PageLine, context: RewriteContext) -> None:
    """Write a pointer, merged with one to the same topic if it still finds both.

    If a user has written the same pointer, that one is kept.
    """
    topic = _parse(line).topic.casefold()
    for text in draft.dream_pointers():
        existing = draft.dream_lines[text]
        if _parse(existing).topic.casefold() == topic and (merged := _merge_pointers((existing, line), context)):
            draft.write_line(merged, instead_of=[text])
            return
    if (existing := draft.dream_lines.get(line.text)) is not None:
        line = line._replace(sources=_interleave_sources([existing, line]))
    elif line.text in draft:
        return
    draft.write_line(line)
    limit_pointers(draft, context)


def _merge_pointers(lines: Sequence[PageLine], context: RewriteContext) -> PageLine | None:
    """One pointer for several, if its search finds the sources of each."""
    pointers = [_parse(line) for line in lines]
    words = dict.fromkeys(word for pointer in pointers for word in pointer.keywords.split())
    topics = dict.fromkeys(topic for pointer in pointers for topic in pointer.topic.split(TOPIC_SEPARATOR))
    if len(topics) > MAX_TOPICS:
        return None
    shortest = [pointer.keywords for pointer in pointers]
    for keywords in (*shortest, *([" ".join(words)] if len(words) <= MAX_KEYWORDS else [])):
        pointer = make_pointer(*topics, keywords=keywords)
        if all(_finds_sources(pointer, line.sources, context) for line in lines):
            return _pointer_line(pointer, lines)
    return None


def _keyword_set(line: PageLine) -> frozenset[str]:
    return frozenset(_parse(line).keywords.casefold().split())


def _pointer_line(pointer: Pointer, lines: Sequence[PageLine]) -> PageLine:
    return PageLine(
        section=Section.POINTERS,
        text=format_pointer(pointer),
        sources=_interleave_sources(lines),
        importance=max(line.importance for line in lines),
        at=max(line.at for line in lines),
        trust=min(line.trust for line in lines),
    )


def _parse(line: PageLine) -> Pointer:
    return parse_pointer(line.text) or Pointer(line.text, "")


def _interleave_sources(lines: Iterable[PageLine]) -> tuple[str, ...]:
    """Sources of several lines in turn, so that the checked ones include each line."""
    turns = zip_longest(*(line.sources for line in lines))
    return tuple(dict.fromkeys(source for turn in turns for source in turn if source))


def _finds_sources(pointer: Pointer, sources: Sequence[str], context: RewriteContext) -> bool:
    return bool(sources) and context.search(pointer.keywords).issuperset(sources[:MAX_CHECKED_SOURCES])


MIN_PROTECTED_IMPORTANCE = 0.9
"""From this importance a proposal cannot retire a line. Only eviction removes it."""

DERIVED_SECTIONS = (Section.GAPS, Section.SKILLS)
"""Sections that every dream derives again. Nothing is lost with their lines."""

_MAX_RETIRED_SHARE, _MIN_RETIRED_LIMIT = 0.3, 3

USER_LINE_IMPORTANCE = 0.75
"""Importance of entries that users wrote."""

_SECTION_HALF_LIVES = {
    Section.PHENOTYPE: timedelta(days=60),
    Section.BOND: timedelta(days=60),
    Section.ACTIVE: timedelta(days=5),
}
_DEFAULT_HALF_LIFE = timedelta(days=14)


def max_retired(number: int) -> int:
    """The maximum number of lines that one dream may retire, of this many."""
    return max(_MIN_RETIRED_LIMIT, int(number * _MAX_RETIRED_SHARE))


def line_worth(line: PageLine, context: RewriteContext) -> float:
    """Importance, multiplied by the weight of the section and decayed by age."""
    section = Section(line.section)
    age = max(timedelta(0), context.now - _parse_datetime(line.at, context.now))
    return (
        line.importance
        * context.weights.get(section, 1.0)
        * 0.5 ** (age / _SECTION_HALF_LIVES.get(section, _DEFAULT_HALF_LIFE))
    )


def evict_lines(
    draft: PageDraft,
    added: Collection[str],
    context: RewriteContext,
    *,
    before: str,
    bond: Collection[str],
    max_evicted: int,
) -> tuple[list[PageLine], list[PageLine]]:
    """Bring a page below its size limit.

    Returns the lines that were evicted, and those of this dream that are left out.

    `added`: lines of this dream. `max_evicted`: how many of the others may be evicted. `before`, `bond`: the page and
    the entries of its Bond before any edit. Each step removes one candidate, so it terminates. Lines that no search
    finds stay.
    """
    bond_words = _BondWords(bond, draft.entries(Section.BOND))
    evicted: list[PageLine] = []
    not_added: list[PageLine] = []

    def evict_line(line: PageLine, page_characters: int) -> bool:
        in_bond = draft.section_of(line.text) is Section.BOND
        if line.text in added or is_lossless(line):
            draft.remove(line.text)
        elif (
            is_mass_drop(len(before), page_characters - len(line.text))
            or (in_bond and not bond_words.can_lose(line.text))
            or not replace_with_pointer(draft, line, candidate_pointers(line.text), context)
        ):
            return False
        if in_bond:
            bond_words.lose(line.text)
        (not_added if line.text in added else evicted).append(line)
        return True

    def evict(lines: Iterable[PageLine], *, limit: TextSize | None = None) -> None:
        """Evict the first lines until the page fits.

        The page is measured again after as many lines as it has too much: rendering a page of ten thousand lines after
        each of them would take minutes. Pointers that replace lines take a part of the room.
        """
        remaining = iter(lines)
        while True:
            page = draft.to_page("")
            size = measure(render_page(page)) + _HEADER_SIZE
            excess = size - (limit or page_limit(render_page(without_dream_lines(page, draft.dream_lines))))
            freed = TextSize(0, 0)
            if excess.fits_in(freed):
                return
            for line in remaining:
                if evict_line(line, size.characters - freed.characters):
                    freed += measure(f"- {line.text}\n")
                    if excess.fits_in(freed):
                        break
            else:
                return

    by_worth = sorted(
        (
            line
            for text, line in giving_way(draft.dream_lines.items())
            if line.section != Section.POINTERS and not is_required(text, context)
        ),
        key=lambda line: line_worth(line, context),
    )
    last_resort = [line for line in by_worth if line.text not in added and not is_lossless(line)][max_evicted:]
    last_resort_texts = {line.text for line in last_resort}
    evict(line for line in by_worth if line.text not in last_resort_texts)
    evict(last_resort)
    evict(_user_lines(draft, context), limit=MAX_PAGE_SIZE)
    pointers = [draft.dream_lines[text] for text in draft.dream_pointers()]
    evict(sorted(pointers, key=lambda line: line.importance))
    return evicted, not_added


def is_derived(line: PageLine) -> bool:
    """True if every dream derives the line again: a gap, a skill, or a figure without sources."""
    is_figure = line.section == Section.NICHE and (line.kind == "economics" or not line.sources)
    return line.section in DERIVED_SECTIONS or is_figure


def is_lossless(line: PageLine) -> bool:
    """True if nothing is lost when the line is removed."""
    return is_derived(line) or line.section == Section.POINTERS


def is_required(text: str, context: RewriteContext) -> bool:
    """True if the text contains a required line."""
    return bool(context.required_lines) and any(
        contains_lines(item.text, line_set(text)) for item in context.required_lines
    )


def keeps_bond(
    bond: Collection[str], draft: PageDraft, *, removed: Collection[str], added: Collection[str] = ()
) -> bool:
    """True if enough of the former Bond remains after removing and adding lines."""
    if all(draft.section_of(text) is not Section.BOND for text in removed):
        return True
    remaining = (text for text in draft.entries(Section.BOND) if text not in removed)
    return surviving_share(bond, (*remaining, *added)) >= MIN_BOND_SHARE


def user_line(text: str, draft: PageDraft, context: RewriteContext) -> PageLine:
    """An entry of a user as a PageLine."""
    sources = (context.user_lines[text],) if text in context.user_lines else ()
    section = draft.section_of(text) or Section.ACTIVE
    return PageLine(section, text, sources, importance=USER_LINE_IMPORTANCE, trust=Trust.PERSON)


class _BondWords:
    """Counts the remaining words of the Bond while entries are evicted.

    Reading all of it again for each entry would take minutes for a long page.
    """

    def __init__(self, before: Iterable[str], now: Iterable[str]) -> None:
        self._words_before = frozenset(distinctive_words_in(before))
        self._word_counts = Counter(word for text in now for word in self._words(text))

    def can_lose(self, text: str) -> bool:
        """True if enough remains without this text."""
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
    """Entries of users that have a crystal, first ones first; none before the first dream."""
    entries = draft.user_lines
    evictable = [text for text in entries if text in context.user_lines and not is_required(text, context)]
    return [
        user_line(text, draft, context)
        for text in ([] if draft.is_unwritten else evictable)[: max_retired(len(entries))]
    ]


def _parse_datetime(text: str, now: datetime) -> datetime:
    """The time of a line. A line without one counts as new."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return now
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_HEADER_SIZE = TextSize(120, 40)
"""Reserved for the header, with any mood."""
