"""The seven sections of MEMORY.md."""

from __future__ import annotations

from enum import StrEnum

from inmind.dreams.affect.levels import BASELINES, Levels


class Section(StrEnum):
    """By the heading, in the order of the page."""

    PHENOTYPE = "The Phenotype"
    """Who the agent is becoming."""
    BOND = "The Bond"
    """Whom it works for, and how the two get along."""
    NICHE = "The Niche"
    """What it is to others: its place among them, what it earns."""
    ACTIVE = "Active Context"
    """What is going on: goals, open tasks, what to avoid, what went well."""
    POINTERS = "Crystal Pointers"
    """What has faded, and the words that find it again."""
    GAPS = "Curiosity Gaps"
    SKILLS = "Emerging Skills"


def section_from_heading(heading: str) -> Section | None:
    """The section that a heading means, whatever else people or older pages have put behind its name."""
    name = heading.lstrip("#").strip().casefold()
    return next(
        (section for section in Section if name == section.casefold() or name.startswith(f"{section.casefold()} (")),
        None,
    )


def section_weights(levels: Levels) -> dict[Section, float]:
    """By section, from 1 at rest to 2 with its level at the top."""
    dopamine, cortisol, oxytocin = (
        max(0.0, (level - base) / (1 - base)) for level, base in zip(levels.by_name.values(), BASELINES, strict=True)
    )
    return dict.fromkeys(Section, 1.0) | {Section.BOND: 1 + oxytocin, Section.ACTIVE: 1 + max(dopamine, cortisol)}
