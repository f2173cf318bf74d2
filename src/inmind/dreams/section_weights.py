"""How much each section of MEMORY.md counts right now, by how things have been going.

A line's worth is multiplied by this when the page is full, so it decides what stays in front: after warm words what is
known of the user, after a win or a failure what is going on. At rest every section counts the same, and nothing counts
for less than that: a mood brings things forward, it does not push others out of memory. Pointers fade by themselves,
gaps come and go with what is known, skills with what is done: no mood moves them.
"""

from __future__ import annotations

from inmind.dreams.affect.levels import BASELINES, Levels
from inmind.dreams.page.sections import Section


def weights(levels: Levels) -> dict[Section, float]:
    """By section, from 1 at rest to 2 with its level at the top."""
    dopamine, cortisol, oxytocin = (
        max(0.0, (level - base) / (1 - base)) for level, base in zip(levels.named.values(), BASELINES, strict=True)
    )
    return dict.fromkeys(Section, 1.0) | {Section.BOND: 1 + oxytocin, Section.ACTIVE: 1 + max(dopamine, cortisol)}
