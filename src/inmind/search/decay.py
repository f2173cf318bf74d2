"""What a crystal is worth by now, and when it is worth so little that it leaves search.

Two things keep a crystal: that somebody goes on finding it, and that its writer called it important. They are kept
apart, since each fails alone. What was found often is not what matters (the weather is looked up daily), and what
matters may wait a year for its question. So one half of the score moves and the other half never does:

    dynamic = relevance of its kind x (1 - e^(-0.2 (accesses + 1))) x 0.5^(days since it was last found / half-life)
    score   = 0.5 x dynamic + 0.5 x importance^2

The half-life is 16 days, and up to twice that for what touched somebody. Importance counts squared, so that "a little
important" is far from "important", and so that 0.2 is exactly the line: whatever was declared at least that stays for
ever, and whatever was declared less has to be found now and then. Days until a crystal
expires, counted from when it was last found, where nobody felt anything about it:

    importance   general, never found   episode, never found   fact, found five times
    0.0                   24                     22                       61
    0.1                   30                     28                       68
    0.15                  43                     41                       80
    0.2                 never                  never                    never

Expiring takes a crystal out of search and never out of the journal. A frozen one does not fade at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import exp
from typing import Final

from inmind.core.frozen import frozen
from inmind.search.crystal import Crystal

HALF_LIFE: Final = timedelta(days=16)

MIN_SCORE: Final = 0.02

KIND_RELEVANCE: Final[Mapping[str, float]] = {
    "preference": 1.0,
    "relationship": 1.0,
    "goal": 0.9,
    "skill": 0.9,
    "fact": 0.8,
    "insight": 0.8,
    "task_pattern": 0.7,
    "general": 0.6,
    "episode": 0.55,
}
"""How likely a later conversation is to want one of its kind: what a person is like holds for all of them, what
happened once for few."""

# Declared importance weighs as much as everything that happens to a crystal.
_IMPORTANCE_SHARE = 0.5

# How much each access brings: with three of them it has more than half of its worth, and no number makes it whole.
_ACCESS_RATE = 0.2


@frozen
class CrystalScore:
    """A score and what it is made of, each from 0 to 1."""

    dynamic: float
    """Moves: rises when it is found, falls while it is not."""
    declared: float
    """Stands: the importance that its writer gave it, squared."""

    @property
    def total(self) -> float:
        return (1 - _IMPORTANCE_SHARE) * self.dynamic + _IMPORTANCE_SHARE * self.declared


def score_crystal(crystal: Crystal, now: datetime) -> CrystalScore:
    """What it is worth at this moment. A clock that was set back makes nothing older or newer than new."""
    age = timedelta() if crystal.lifecycle == "frozen" else now - (crystal.accessed or crystal.at)
    return compute_score(
        kind=crystal.kind,
        importance=crystal.importance,
        valence=crystal.valence,
        accesses=crystal.accesses,
        age=age,
    )


def compute_score(*, kind: str, importance: float, valence: float, accesses: int, age: timedelta) -> CrystalScore:
    """The same of what a crystal is made of. `age`: since it was last found, or said; none of a frozen one."""
    access_factor = 1 - exp(-_ACCESS_RATE * (accesses + 1))
    freshness = 0.5 ** (max(timedelta(), age) / (HALF_LIFE * (1 + abs(valence))))
    return CrystalScore(KIND_RELEVANCE[kind] * access_factor * freshness, importance**2)


def is_expired(crystal: Crystal, now: datetime) -> bool:
    """Is it worth so little by now that it shall leave search?"""
    return crystal.lifecycle != "frozen" and score_crystal(crystal, now).total < MIN_SCORE
