"""Three levels between 0 and 1: dopamine, cortisol, oxytocin. They rise by what happens and fall back on their own.

Each falls toward its baseline by half every so many minutes. That has a closed form, so nothing ticks: levels are kept
as they were when something last happened, and what they are at any later moment is worked out when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.frozen import frozen


class LevelChange(NamedTuple):
    """What a spike adds to each level."""

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
"""What raises them, and by how much. A memory that was looked for and found pleases a little; one that was not, not."""


@frozen(kw_only=True)
class Levels:
    """The levels at a moment."""

    dopamine: float = BASELINES.dopamine
    cortisol: float = BASELINES.cortisol
    oxytocin: float = BASELINES.oxytocin
    at: datetime | None = None
    """None: nothing has ever happened, so they are at their baselines whenever one looks."""

    def decayed_to(self, now: datetime) -> Levels:
        """What they have fallen to by then. A clock that was set back changes nothing."""
        if self.at is None or now <= self.at:
            return self
        fallen = (
            base + (level - base) * 0.5 ** ((now - self.at) / half)
            for level, base, half in zip(self.by_name.values(), BASELINES, HALF_LIVES, strict=True)
        )
        return Levels(**dict(zip(self.by_name, fallen, strict=True)), at=now)

    def spiked(self, spike: str, now: datetime) -> Levels:
        """What they rise to by a spike. None leaves the room between 0 and 1.

        Time goes on from this moment, also where it is an earlier one: a clock that was wrong for a minute must not
        hold the levels up until it would have been right.
        """
        then = self.decayed_to(now)
        risen = (
            min(1.0, max(0.0, level + more)) for level, more in zip(then.by_name.values(), SPIKES[spike], strict=True)
        )
        return Levels(**dict(zip(self.by_name, risen, strict=True)), at=now)

    @property
    def by_name(self) -> dict[str, float]:
        return {"dopamine": self.dopamine, "cortisol": self.cortisol, "oxytocin": self.oxytocin}


CALM: Final = "calm"


_MOOD_WORDS: Final = {
    "dopamine": ((0.7, "elated"), (0.4, "motivated")),
    "cortisol": ((0.7, "under strain"), (0.3, "tense")),
    "oxytocin": ((0.7, "warmly attached"), (0.45, "socially engaged")),
}
"""Of each level the words for being above so much, the strongest first."""


_LISTLESS_BELOW: Final = 0.08
"""Below this little dopamine is left: search after search has found nothing."""


def describe_mood(levels: Levels) -> str:
    """One word for each level that stands out; calm, where none does."""
    words = [
        next((word for least, word in _MOOD_WORDS[level] if value > least), "")
        for level, value in levels.by_name.items()
    ]
    if levels.dopamine < _LISTLESS_BELOW:
        words[0] = "listless"
    return ", ".join(filter(None, words)) or CALM
