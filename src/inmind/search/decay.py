"""Scores the current value of a crystal and decides when it expires.

Two things keep a crystal searchable: repeated access, and the importance its author declared. They are separate,
because each fails alone: frequent access does not mean important (the weather is looked up daily), and an important
fact may wait a year for its question. One half of the score changes over time, the other half never does:

    dynamic = relevance of its kind x (1 - e^(-0.2 (accesses + 1))) x 0.5^(days since last access / half-life)
    score   = 0.5 x dynamic + 0.5 x importance^2

The half-life is 16 days, and up to twice that for a strong valence. Importance counts squared, so that small values
matter little, and so that 0.2 is the exact limit: a crystal with at least that importance never expires, one with less
expires unless it is accessed. Days from the last access until a crystal with neutral valence expires:

    importance   general, no access     episode, no access     fact, five accesses
    0.0                   24                     22                       61
    0.1                   30                     28                       68
    0.15                  43                     41                       80
    0.2                 never                  never                    never

Search skips an expired crystal; it stays in the journal. A pinned crystal never expires.
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
"""Probability that a later conversation needs a crystal of this kind.

Facts about a person stay relevant, single events rarely."""

# Declared importance weighs as much as the dynamic half.
_IMPORTANCE_SHARE = 0.5

# Effect of each access: three give more than half of the dynamic value, and no number gives all of it.
_ACCESS_RATE = 0.2


@frozen
class CrystalScore:
    """A score and its two components, each from 0 to 1."""

    dynamic: float
    """Rises with each access and falls over time."""
    declared: float
    """Declared importance, squared. Constant."""

    @property
    def total(self) -> float:
        return (1 - _IMPORTANCE_SHARE) * self.dynamic + _IMPORTANCE_SHARE * self.declared


def score_crystal(crystal: Crystal, now: datetime) -> CrystalScore:
    """Return the score at this time. A clock that was set back counts as no time passed."""
    age = timedelta() if crystal.lifecycle == "frozen" else now - (crystal.accessed or crystal.at)
    return compute_score(
        kind=crystal.kind,
        importance=crystal.importance,
        valence=crystal.valence,
        accesses=crystal.accesses,
        age=age,
    )


def compute_score(*, kind: str, importance: float, valence: float, accesses: int, age: timedelta) -> CrystalScore:
    """Return the score for given values.

    `age` is the time since the last access or the statement; zero if pinned.
    """
    access_factor = 1 - exp(-_ACCESS_RATE * (accesses + 1))
    freshness = 0.5 ** (max(timedelta(), age) / (HALF_LIFE * (1 + abs(valence))))
    return CrystalScore(KIND_RELEVANCE[kind] * access_factor * freshness, importance**2)


def is_expired(crystal: Crystal, now: datetime) -> bool:
    """Return True if the score is below MIN_SCORE and the crystal is not pinned."""
    return crystal.lifecycle != "frozen" and score_crystal(crystal, now).total < MIN_SCORE
