"""Affect levels between 0 and 1: dopamine, cortisol and oxytocin.

Spikes raise the levels, and each decays to its baseline by half-life. This has a closed form, so no timer is needed:
levels are stored as of the last spike, and the value at a later time is computed on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.frozen import frozen


class LevelChange(NamedTuple):
    """The change of each level by a spike."""

    dopamine: float = 0.0
    cortisol: float = 0.0
    oxytocin: float = 0.0


BASELINES: Final = LevelChange(0.15, 0.02, 0.20)
HALF_LIVES: Final = (timedelta(minutes=30), timedelta(minutes=60), timedelta(minutes=45))

SPIKES: Final[Mapping[str, LevelChange]] = {
    "reward": LevelChange(dopamine=0.3),
    "error": LevelChange(cortisol=0.3),
    "social": LevelChange(oxytocin=0.3),
    "achievement": LevelChange(dopamine=0.4, oxytocin=0.2),
    "urgency": LevelChange(cortisol=0.4),
    "sale": LevelChange(dopamine=0.15, oxytocin=0.05),
    "recall": LevelChange(dopamine=0.05),
    "missed": LevelChange(dopamine=-0.05),
}
"""The change of each spike. A search with a hit raises dopamine a little; one without a hit lowers it."""


@frozen(kw_only=True)
class Levels:
    """The levels at one time."""

    dopamine: float = BASELINES.dopamine
    cortisol: float = BASELINES.cortisol
    oxytocin: float = BASELINES.oxytocin
    at: datetime | None = None
    """None if nothing has happened yet: the levels are at their baselines at any time."""

    def decayed_to(self, now: datetime) -> Levels:
        """The levels at a later time. An earlier time changes nothing."""
        if self.at is None or now <= self.at:
            return self
        values = (
            base + (level - base) * 0.5 ** ((now - self.at) / half)
            for level, base, half in zip(self.by_name.values(), BASELINES, HALF_LIVES, strict=True)
        )
        return Levels(**dict(zip(self.by_name, values, strict=True)), at=now)

    def after_spike(self, spike: str, now: datetime) -> Levels:
        """The levels after a spike, limited to 0 and 1.

        Decay continues from this time, even if it is earlier than the last: a clock that was wrong for a minute must
        not stop the decay until that time is reached.
        """
        decayed = self.decayed_to(now)
        values = (
            min(1.0, max(0.0, level + change))
            for level, change in zip(decayed.by_name.values(), SPIKES[spike], strict=True)
        )
        return Levels(**dict(zip(self.by_name, values, strict=True)), at=now)

    def __str__(self) -> str:
        return ", ".join(f"{name} {level:.2f}" for name, level in self.by_name.items())

    @property
    def by_name(self) -> dict[str, float]:
        return {"dopamine": self.dopamine, "cortisol": self.cortisol, "oxytocin": self.oxytocin}


CALM: Final = "calm"


_MOOD_WORDS: Final = {
    "dopamine": ((0.7, "elated"), (0.4, "motivated")),
    "cortisol": ((0.7, "under strain"), (0.3, "tense")),
    "oxytocin": ((0.7, "warmly attached"), (0.45, "socially engaged")),
}
"""For each level: minimum and word, strongest first."""


_LISTLESS_BELOW: Final = 0.08
"""Dopamine is this low only after many searches without a hit."""


def describe_mood(levels: Levels) -> str:
    """One word for each notable level, or `calm`. Shown on MEMORY.md and to users."""
    words = [
        next((word for minimum, word in _MOOD_WORDS[level] if value > minimum), "")
        for level, value in levels.by_name.items()
    ]
    if levels.dopamine < _LISTLESS_BELOW:
        words[0] = "listless"
    return ", ".join(filter(None, words)) or CALM
