"""What a new MEMORY.md has to be, whoever proposed it. If a single guard says no, the old one stays.

Each edit was checked by itself before. The guards look at what came of all of them together, and know the page only as
it was and as it would be: they hold however the checks are changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.fact_checks import normalize_words
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS, TextSize, measure, page_limit
from inmind.dreams.page.page import MemoryPage, PagePart, entry_text, parse_page, render_page
from inmind.dreams.page.pointers import MAX_POINTERS, distinctive_words, parse_pointer
from inmind.dreams.page.sections import Section

MIN_MATURE_CHARACTERS = 2_000
"""Characters from which on a page has something to lose."""

MIN_SUBSTANCE_CHARACTERS = 50
MIN_BOND_SHARE = 0.3

IDENTITY_SECTIONS = (Section.PHENOTYPE, Section.BOND)
"""Who the agent is and whom it works for: no tool and no page of the web has a say in that."""


@frozen(kw_only=True)
class PageChange:
    """A page before and after, and what is known of the way between."""

    before: str
    after: str
    dream_lines: Mapping[str, PageLine]
    """Of those after, the ones that dreams wrote."""
    required_texts: tuple[str, ...] = ()
    """What has to stand there still: people's entries, and what else must."""
    retired_count: int = 0
    """Lines that a proposal took away."""
    max_retired: int = 0


def run_guards(change: PageChange) -> tuple[GuardVerdict, ...]:
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
    """Of so many characters, are only so few left?

    A page that was over its room has to have become shorter.
    """
    return before > MIN_MATURE_CHARACTERS and 2 * after < min(before, MAX_PAGE_CHARACTERS)


def surviving_share(before: Iterable[str], after: Iterable[str]) -> float:
    """The part of the words that is still there."""
    old, new = set(distinctive_words_in(before)), set(distinctive_words_in(after))
    return len(old & new) / len(old) if old else 1.0


def distinctive_words_in(entries: Iterable[str]) -> Iterator[str]:
    return (normalize_words(word) for entry in entries for word in distinctive_words(entry))


def _check_mass_drop(change: PageChange) -> str:
    before, after = len(change.before), len(change.after)
    return f"{after:,} characters are left of {before:,}" if is_mass_drop(before, after) else ""


def _check_pointers(after: MemoryPage, lines: Mapping[str, PageLine]) -> str:
    """People may point at as much as they like."""
    pointers = [text for _, text in after.all_entries() if parse_pointer(text)]
    too_many = len(pointers) > MAX_POINTERS and any(text in lines for text in pointers)
    return f"{len(pointers)} pointers are more than {MAX_POINTERS}" if too_many else ""


def _check_substance(before: MemoryPage, after: MemoryPage) -> str:
    """Headings with next to nothing under them.

    A page that has never said more is young, and not collapsed.
    """
    size_before, size_after = (sum(len(text) for _, text in page.all_entries()) for page in (before, after))
    return f"{size_after} characters are no state" if size_after < MIN_SUBSTANCE_CHARACTERS <= size_before else ""


def _check_bond(change: PageChange, before: MemoryPage, after: MemoryPage) -> str:
    """What stands there word for word has survived: all of a page by hand now stands above the state."""
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
    """What it says line by line, whatever list the lines are in."""
    return frozenset(map(entry_text, text.split("\n"))) - {""}


def contains_lines(text: str, lines: Collection[str]) -> bool:
    """Is each of its lines one of these, whole?

    "Use tabs" does not stand where "Never use tabs" does.
    """
    return all(line in lines for line in line_set(text))


def _check_share(change: PageChange) -> str:
    too_many = change.retired_count > change.max_retired
    return f"{change.retired_count} lines were to leave; {change.max_retired} may, in one dream" if too_many else ""


def _check_trust(lines: Iterable[PageLine]) -> str:
    data_lines = [line.text for line in lines if line.section in IDENTITY_SECTIONS and line.trust <= Trust.DATA]
    return f"from tools or the web: {data_lines[0][:80]}" if data_lines else ""


def _check_size(change: PageChange, after: MemoryPage) -> str:
    """One that was over its room already, with lines that no search finds again, may stay so, and must not grow."""
    size_after, size_before = measure(change.after), measure(change.before) + _FRAME_SIZE
    fits = size_after.fits_in(
        page_limit(render_page(without_dream_lines(after, change.dream_lines)))
    ) or size_after.fits_in(size_before)
    return (
        "" if fits else f"{size_after.characters:,} characters, {size_after.tokens:,} tokens are more than a page has"
    )


def without_dream_lines(page: MemoryPage, lines: Mapping[str, PageLine]) -> MemoryPage:
    """The page without what dreams wrote on it."""
    parts = (
        PagePart(part.heading, tuple(entry for entry in part.entries if entry_text(entry) not in lines))
        for part in page.parts
    )
    return replace(page, parts=tuple(parts))


_FRAME_SIZE = TextSize(400, 120)
"""The title, the line of the last dream and the headings, which a page may have been without."""
