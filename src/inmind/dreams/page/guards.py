"""Guards: checks of every new MEMORY.md. If one of them fails, the old page stays.

Each edit was checked before. The guards check the combined result and only know the page before and after, so they do
not depend on the checks of edits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
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


def run_guards(
    before: str,
    after: str,
    dream_lines: Mapping[str, PageLine],
    *,
    required_texts: Iterable[str] = (),
    retired_count: int = 0,
    max_retired: int = 0,
) -> Iterator[GuardVerdict]:
    """The verdict of each guard about a page before and after a rewrite.

    `dream_lines`: lines of the new page that dreams wrote. `required_texts`: entries of users and required lines, which
    must still be on the page. `retired_count`: how many lines the proposal removed.
    """

    def verdict(guard: str, is_broken: bool, detail: str) -> GuardVerdict:
        return GuardVerdict(guard, not is_broken, detail if is_broken else "")

    old, new = parse_page(before), parse_page(after)
    dropped = is_mass_drop(len(before), len(after))
    yield verdict("mass_drop", dropped, f"{len(after):,} characters are left of {len(before):,}")

    # Users may write any number of pointers.
    pointers = [text for _, text in new.all_entries() if parse_pointer(text)]
    too_many = len(pointers) > MAX_POINTERS and any(text in dream_lines for text in pointers)
    yield verdict("pointers", too_many, f"{len(pointers)} pointers, at most {MAX_POINTERS} are allowed")

    # Almost only headings remain. A young page may be short.
    had, has = (sum(len(text) for _, text in page.all_entries()) for page in (old, new))
    yield verdict("substance", has < MIN_SUBSTANCE_CHARACTERS <= had, f"{has} characters of content are too few")

    # Text that is still on the page verbatim counts: an adopted page is above the state now.
    bond, lines = old.entries(Section.BOND), line_set(after)
    still_there = (text for text in bond if contains_lines(text, lines))
    share = surviving_share(bond, (*new.entries(Section.BOND), *still_there))
    yield verdict("bond", share < MIN_BOND_SHARE, f"{share:.0%} of the Bond's words are left")

    entries = {text for _, text in new.all_entries()}
    missing = [text for text in required_texts if text not in entries and not contains_lines(text, lines)]
    yield verdict("retention", bool(missing), f"{len(missing)} missing, first of them: {''.join(missing[:1])[:80]}")

    over = f"{retired_count} lines retired, at most {max_retired} are allowed in one dream"
    yield verdict("share", retired_count > max_retired, over)

    people = (line for line in dream_lines.values() if line.section in IDENTITY_SECTIONS)
    data = [line.text for line in people if line.trust <= Trust.DATA]
    yield verdict("trust", bool(data), f"from tools or the web: {''.join(data[:1])[:80]}")

    # A page may stay above the limit if it has not grown: lines that no search finds cannot be evicted.
    size, limit = measure(after), page_limit(render_page(without_dream_lines(new, dream_lines)))
    fits = size.fits_in(limit) or size.fits_in(measure(before) + _FRAME_SIZE)
    yield verdict("room", not fits, f"{size.characters:,} characters, {size.tokens:,} tokens exceed the page limit")


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
