"""The seven sections of MEMORY.md, and their weights by affect."""

from __future__ import annotations

from enum import StrEnum

from inmind.dreams.affect.levels import BASELINES, Levels


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
