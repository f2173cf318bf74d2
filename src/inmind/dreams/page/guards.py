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
from inmind.dreams.page.page import MemoryPage, PagePart, entry_text, parse_page, render_page
from inmind.dreams.page.pointers import MAX_POINTERS, distinctive_words, parse_pointer
from inmind.dreams.page.sections import MAX_PAGE_CHARACTERS, Section, TextSize, measure, page_limit

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
    return tuple(
        GuardVerdict(guard, not detail, detail)
        for guard, detail in (
            ("mass_drop", _check_mass_drop(change)),
            ("pointers", _check_pointers(after, change.dream_lines)),
            ("substance", _check_substance(before, after)),
            ("bond", _check_bond(change, before, after)),
            ("retention", _check_retention(change, after)),
            ("share", _check_share(change)),
            ("trust", _check_trust(change.dream_lines.values())),
            ("room", _check_size(change, after)),
        )
    )


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


def _check_mass_drop(change: PageChange) -> str:
    before, after = len(change.before), len(change.after)
    return f"{after:,} characters are left of {before:,}" if is_mass_drop(before, after) else ""


def _check_pointers(after: MemoryPage, lines: Mapping[str, PageLine]) -> str:
    """Users may write any number of pointers."""
    pointers = [text for _, text in after.all_entries() if parse_pointer(text)]
    too_many = len(pointers) > MAX_POINTERS and any(text in lines for text in pointers)
    return f"{len(pointers)} pointers, at most {MAX_POINTERS} are allowed" if too_many else ""


def _check_substance(before: MemoryPage, after: MemoryPage) -> str:
    """Fails if almost only headings remain. A young page may be short."""
    size_before, size_after = (sum(len(text) for _, text in page.all_entries()) for page in (before, after))
    return (
        f"{size_after} characters of content are too few"
        if size_after < MIN_SUBSTANCE_CHARACTERS <= size_before
        else ""
    )


def _check_bond(change: PageChange, before: MemoryPage, after: MemoryPage) -> str:
    """Text that is still on the page verbatim counts: an adopted page is above the state now."""
    bond, lines = before.entries(Section.BOND), line_set(change.after)
    share = surviving_share(
        bond, (*after.entries(Section.BOND), *(text for text in bond if contains_lines(text, lines)))
    )
    return f"{share:.0%} of the Bond's words are left" if share < MIN_BOND_SHARE else ""


def _check_retention(change: PageChange, after: MemoryPage) -> str:
    entries, lines = {text for _, text in after.all_entries()}, line_set(change.after)
    missing = [text for text in change.required_texts if text not in entries and not contains_lines(text, lines)]
    return f"{len(missing)} missing, first of them: {missing[0][:80]}" if missing else ""


def line_set(text: str) -> frozenset[str]:
    """The lines of a text without list marks."""
    return frozenset(map(entry_text, text.split("\n"))) - {""}


def contains_lines(text: str, lines: Collection[str]) -> bool:
    """True if each line of the text is one of these.

    "Use tabs" is not part of "Never use tabs".
    """
    return all(line in lines for line in line_set(text))


def _check_share(change: PageChange) -> str:
    too_many = change.retired_count > change.max_retired
    return (
        f"{change.retired_count} lines retired, at most {change.max_retired} are allowed in one dream"
        if too_many
        else ""
    )


def _check_trust(lines: Iterable[PageLine]) -> str:
    data_lines = [line.text for line in lines if line.section in IDENTITY_SECTIONS and line.trust <= Trust.DATA]
    return f"from tools or the web: {data_lines[0][:80]}" if data_lines else ""


def _check_size(change: PageChange, after: MemoryPage) -> str:
    """Fails if the page exceeds its limit, unless it did before and has not grown.

    Lines that no search finds cannot be evicted, so a page may stay above the limit.
    """
    size_after, size_before = measure(change.after), measure(change.before) + _FRAME_SIZE
    fits = size_after.fits_in(
        page_limit(render_page(without_dream_lines(after, change.dream_lines)))
    ) or size_after.fits_in(size_before)
    return "" if fits else f"{size_after.characters:,} characters, {size_after.tokens:,} tokens exceed the page limit"


def without_dream_lines(page: MemoryPage, lines: Mapping[str, PageLine]) -> MemoryPage:
    """The page without the lines of dreams."""
    parts = (
        PagePart(part.heading, tuple(entry for entry in part.entries if entry_text(entry) not in lines))
        for part in page.parts
    )
    return replace(page, parts=tuple(parts))


_FRAME_SIZE = TextSize(400, 120)
"""Title, header and headings, which the page may not have had before."""
