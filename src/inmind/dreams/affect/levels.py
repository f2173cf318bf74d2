"""Three levels between 0 and 1: dopamine, cortisol, oxytocin. They rise by what happens and fall back on their own.

Each falls toward its baseline by half every so many minutes. That has a closed form, so nothing ticks: levels are kept
as they were when something last happened, and what they are at any later moment is worked out when somebody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.frozen import frozen


class Change(NamedTuple):
    """What a spike adds to each level."""

    dopamine: float = 0.0
    cortisol: float = 0.0
    oxytocin: float = 0.0


BASELINES: Final = Change(0.15, 0.02, 0.20)
HALF_LIVES: Final = (timedelta(minutes=30), timedelta(minutes=60), timedelta(minutes=45))

SPIKES: Final[Mapping[str, Change]] = {
    "reward": Change(dopamine=0.3),
    "error": Change(cortisol=0.3),
    "social": Change(oxytocin=0.3),
    "achievement": Change(dopamine=0.4, oxytocin=0.2),
    "urgency": Change(cortisol=0.4),
    "sale": Change(dopamine=0.15, oxytocin=0.05),
    "recall": Change(dopamine=0.05),
    "missed": Change(dopamine=-0.05),
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

    def then(self, now: datetime) -> Levels:
        """What they have fallen to by then. A clock that was set back changes nothing."""
        if self.at is None or now <= self.at:
            return self
        fallen = (
            base + (level - base) * 0.5 ** ((now - self.at) / half)
            for level, base, half in zip(self.named.values(), BASELINES, HALF_LIVES, strict=True)
        )
        return Levels(**dict(zip(self.named, fallen, strict=True)), at=now)

    def after(self, spike: str, now: datetime) -> Levels:
        """What they rise to by a spike. None leaves the room between 0 and 1.

        Time goes on from this moment, also where it is an earlier one: a clock that was wrong for a minute must not
        hold the levels up until it would have been right.
        """
        then = self.then(now)
        risen = (
            min(1.0, max(0.0, level + more)) for level, more in zip(then.named.values(), SPIKES[spike], strict=True)
        )
        return Levels(**dict(zip(self.named, risen, strict=True)), at=now)

    @property
    def named(self) -> dict[str, float]:
        return {"dopamine": self.dopamine, "cortisol": self.cortisol, "oxytocin": self.oxytocin}


CALM: Final = "calm"


_WORDS: Final = {
    "dopamine": ((0.7, "elated"), (0.4, "motivated")),
    "cortisol": ((0.7, "under strain"), (0.3, "tense")),
    "oxytocin": ((0.7, "warmly attached"), (0.45, "socially engaged")),
}
"""Of each level the words for being above so much, the strongest first."""


_LISTLESS: Final = 0.08
"""Below this little dopamine is left: search after search has found nothing."""


def mood(levels: Levels) -> str:
    """One word for each level that stands out; calm, where none does."""
    words = [
        next((word for least, word in _WORDS[level] if value > least), "") for level, value in levels.named.items()
    ]
    if levels.dopamine < _LISTLESS:
        words[0] = "listless"
    return ", ".join(filter(None, words)) or CALM
