"""Guards: checks of every new MEMORY.md. If one of them fails, the old page stays.

Each edit was checked before. The guards check the combined result and only know the page before and after, so they do
not depend on the checks of edits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.edits import normalize_words
from inmind.dreams.page.page import (
    MAX_PAGE_CHARACTERS,
    MemoryPage,
    PagePart,
    Section,
    TextSize,
    entry_text,
    measure,
    page_limit,
    parse_page,
    render_page,
)
from inmind.dreams.page.pointers import MAX_POINTERS, distinctive_words, parse_pointer

MIN_MATURE_CHARACTERS = 2_000
"""Size from which the mass_drop guard applies."""

MIN_SUBSTANCE_CHARACTERS = 50
MIN_BOND_SHARE = 0.3

IDENTITY_SECTIONS = (Section.PHENOTYPE, Section.BOND)
"""Sections about the agent and its user. Data from tools or the web must not appear there."""


@frozen(kw_only=True)
class PageChange:
    """A page before and after a rewrite."""

    before: str
    after: str
    dream_lines: Mapping[str, PageLine]
    """Lines of the new page that dreams wrote."""
    required_texts: tuple[str, ...] = ()
    """Texts that must still be on the page: entries of users and required lines."""
    retired_count: int = 0
    """Lines that the proposal removed."""
    max_retired: int = 0


def run_guards(change: PageChange) -> tuple[GuardVerdict, ...]:
    """The verdict of each guard."""
    before, after = parse_page(change.before), parse_page(change.after)
    return tuple(GuardVerdict(guard, not detail, detail) for guard, detail in _failures(change, before, after))


def _failures(change: PageChange, before: MemoryPage, after: MemoryPage) -> Iterator[tuple[str, str]]:
    """Each guard with the reason why it fails; empty if it passes."""
    dropped = is_mass_drop(len(change.before), len(change.after))
    yield "mass_drop", f"{len(change.after):,} characters are left of {len(change.before):,}" if dropped else ""

    # Users may write any number of pointers.
    pointers = [text for _, text in after.all_entries() if parse_pointer(text)]
    too_many = len(pointers) > MAX_POINTERS and any(text in change.dream_lines for text in pointers)
    yield "pointers", f"{len(pointers)} pointers, at most {MAX_POINTERS} are allowed" if too_many else ""

    # Almost only headings remain. A young page may be short.
    had, has = (sum(len(text) for _, text in page.all_entries()) for page in (before, after))
    is_empty = has < MIN_SUBSTANCE_CHARACTERS <= had
    yield "substance", f"{has} characters of content are too few" if is_empty else ""

    # Text that is still on the page verbatim counts: an adopted page is above the state now.
    bond, lines = before.entries(Section.BOND), line_set(change.after)
    still_there = (text for text in bond if contains_lines(text, lines))
    share = surviving_share(bond, (*after.entries(Section.BOND), *still_there))
    yield "bond", f"{share:.0%} of the Bond's words are left" if share < MIN_BOND_SHARE else ""

    entries = {text for _, text in after.all_entries()}
    missing = [text for text in change.required_texts if text not in entries and not contains_lines(text, lines)]
    yield "retention", f"{len(missing)} missing, first of them: {missing[0][:80]}" if missing else ""

    allowed = f"at most {change.max_retired} are allowed in one dream"
    is_over = change.retired_count > change.max_retired
    yield "share", f"{change.retired_count} lines retired, {allowed}" if is_over else ""

    data = [
        line.text
        for line in change.dream_lines.values()
        if line.section in IDENTITY_SECTIONS and line.trust <= Trust.DATA
    ]
    yield "trust", f"from tools or the web: {data[0][:80]}" if data else ""

    # A page may stay above the limit if it has not grown: lines that no search finds cannot be evicted.
    size, size_before = measure(change.after), measure(change.before) + _FRAME_SIZE
    limit = page_limit(render_page(without_dream_lines(after, change.dream_lines)))
    fits = size.fits_in(limit) or size.fits_in(size_before)
    yield "room", "" if fits else f"{size.characters:,} characters, {size.tokens:,} tokens exceed the page limit"


def is_mass_drop(before: int, after: int) -> bool:
    """True if a mature page loses more than half.

    A page above the limit may shrink to half of the limit.
    """
    return before > MIN_MATURE_CHARACTERS and 2 * after < min(before, MAX_PAGE_CHARACTERS)


def surviving_share(before: Iterable[str], after: Iterable[str]) -> float:
    """The share of distinctive words that remain."""
    old, new = set(distinctive_words_in(before)), set(distinctive_words_in(after))
    return len(old & new) / len(old) if old else 1.0


def distinctive_words_in(entries: Iterable[str]) -> Iterator[str]:
    return (normalize_words(word) for entry in entries for word in distinctive_words(entry))


def line_set(text: str) -> frozenset[str]:
    """The lines of a text without list marks."""
    return frozenset(map(entry_text, text.split("\n"))) - {""}


def contains_lines(text: str, lines: Collection[str]) -> bool:
    """True if each line of the text is one of these.

    "Use tabs" is not part of "Never use tabs".
    """
    return all(line in lines for line in line_set(text))


def without_dream_lines(page: MemoryPage, lines: Mapping[str, PageLine]) -> MemoryPage:
    """The page without the lines of dreams."""
    parts = (
        PagePart(part.heading, tuple(entry for entry in part.entries if entry_text(entry) not in lines))
        for part in page.parts
    )
    return replace(page, parts=tuple(parts))


_FRAME_SIZE = TextSize(400, 120)
"""Title, header and headings, which the page may not have had before."""
