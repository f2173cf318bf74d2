"""The sections of MEMORY.md, their weights by affect, and size limits of the page.

A large context window gets the whole page that a dream writes. A smaller one gets a part of it. The pending notes share
the budget: they are newer than the page, so they come first, with up to a quarter.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from inmind.core.frozen import frozen
from inmind.core.tokens import estimator
from inmind.dreams.affect import BASELINES, Levels


class Section(StrEnum):
    """The headings, in the order of the page."""

    PHENOTYPE = "The Phenotype"
    """Who the agent is becoming."""
    BOND = "The Bond"
    """The user, and how the two get along."""
    NICHE = "The Niche"
    """The agent's place among others, and what it earns."""
    ACTIVE = "Active Context"
    """Current work: goals, open tasks, what to avoid, what went well."""
    POINTERS = "Crystal Pointers"
    """Topics that were removed from the page, and the keywords that find them."""
    GAPS = "Curiosity Gaps"
    SKILLS = "Emerging Skills"


def section_from_heading(heading: str) -> Section | None:
    """The section of a heading, also with a suffix in parentheses; None for other headings."""
    name = heading.lstrip("#").strip().casefold()
    return next(
        (section for section in Section if name == section.casefold() or name.startswith(f"{section.casefold()} (")),
        None,
    )


def section_weights(levels: Levels) -> dict[Section, float]:
    """Weight of each section by the current levels, from 1 at rest to 2 at the maximum.

    The worth of a line is multiplied by the weight when the page is full. Warm words raise The Bond; a win or a failure
    raises Active Context. No weight is below 1: affect raises lines and lowers none. Pointers, gaps and skills are not
    affected.
    """
    dopamine, cortisol, oxytocin = (
        max(0.0, (level - base) / (1 - base)) for level, base in zip(levels.by_name.values(), BASELINES, strict=True)
    )
    return dict.fromkeys(Section, 1.0) | {Section.BOND: 1 + oxytocin, Section.ACTIVE: 1 + max(dopamine, cortisol)}


MAX_PAGE_CHARACTERS: Final = 6_000
MAX_PAGE_TOKENS: Final = 2_000

_DREAM_FRACTION: Final = 4
"""Dreams may use this fraction (1/n) of the limit in addition, if user text alone fills the page."""

_PROMPT_CHARACTERS_BY_WINDOW: Final = ((200_000, 8_000), (128_000, 6_000), (64_000, 4_000))
"""Minimum context window, and the characters for page and notes in it."""

_MIN_PROMPT_CHARACTERS: Final = 3_200

_NOTES_FRACTION: Final = 4
"""Notes may use this fraction (1/n) if they need it."""


@frozen
class TextSize:
    """Characters and tokens of a text."""

    characters: int
    tokens: int

    def fits_in(self, other: TextSize) -> bool:
        return self.characters <= other.characters and self.tokens <= other.tokens

    def __add__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters + other.characters, self.tokens + other.tokens)

    def __sub__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters - other.characters, self.tokens - other.tokens)


MAX_PAGE_SIZE: Final = TextSize(MAX_PAGE_CHARACTERS, MAX_PAGE_TOKENS)


def measure(text: str) -> TextSize:
    return TextSize(len(text), _count_tokens(text))


def page_limit(user_text: str) -> TextSize:
    """The size limit of a page, given the text of users on it. Users are not limited."""
    user_size = measure(user_text)
    dream_part = TextSize(MAX_PAGE_CHARACTERS // _DREAM_FRACTION, MAX_PAGE_TOKENS // _DREAM_FRACTION)
    return MAX_PAGE_SIZE if user_size.fits_in(MAX_PAGE_SIZE) else user_size + dream_part


def prompt_characters(window: int) -> int:
    """Characters for page and notes together, by context window."""
    return next(
        (characters for min_window, characters in _PROMPT_CHARACTERS_BY_WINDOW if window >= min_window),
        _MIN_PROMPT_CHARACTERS,
    )


def split_prompt_characters(window: int, state: str, notes: str) -> tuple[int, int]:
    """Characters for the page and for the notes. Each may use what the other does not need."""
    total = prompt_characters(window)
    notes_characters = min(len(notes), max(total // _NOTES_FRACTION, total - len(state)))
    return total - notes_characters, notes_characters


_count_tokens = estimator()
