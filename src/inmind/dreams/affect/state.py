"""What a resource feels, folded from its stream: the levels, what raised them, what fails and what was noted of it.

Nothing here knows why something is raised: hosts, rules and ledgers all leave the same event. Two things are
remembered beside the levels because rules need them. What has failed and has not worked since, so that the success
that ends it is known for one; and when a level was last noted, so that it is not noted again all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import AffectSpiked
from inmind.core.frozen import frozen
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.dreams.affect.levels import SPIKES, LevelChange, Levels

HIGH_LEVEL: Final = 0.7
"""Above this a level is worth a note."""

QUIET_PERIOD: Final = timedelta(minutes=10)
"""So soon the same failure, or the same level, is no news."""

MAX_FAILING: Final = 100
"""Failures that are remembered. One that is older than so many others is not waited for any more."""


class SpikeCause(NamedTuple):
    """What has brought a level to where it is: the last that raised it, or that made it high while it is.

    A tuple, since JSON knows tuples.
    """

    why: str
    session: str
    trust: int
    """See Trust: how far the words of `why` may be believed."""
    event: str


@frozen(kw_only=True)
class AffectState:
    """What is felt after some event."""

    levels: Levels = field(default_factory=Levels)
    """As they were then: `levels.then(now)` is what they are."""
    failing: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """What has failed and has not worked since, each with when that was last felt; the latest last."""
    causes: Mapping[str, SpikeCause] = field(default_factory=dict[str, SpikeCause])
    """Of each level, by its name."""
    noted_at: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """When each level was last noted by itself."""

    def apply(self, event: Event) -> AffectState:
        payload = event.payload
        if isinstance(payload, AffectSpiked):
            return self.with_spike(payload, at=event.at, trust=event.trust, event=event.id)
        if (
            isinstance(payload, NoteAdded)
            and event.origin is Origin.OPERATOR
            and (level := level_in_note(payload.text))
        ):
            return self.with_note(level, event.at)
        return self

    def with_spike(self, spike: AffectSpiked, *, at: datetime, trust: Trust, event: str = "") -> AffectState:
        """A spike that a later version knows, and this one does not, moves nothing."""
        if spike.spike not in SPIKES:
            return self
        before, added = self.levels.decayed_to(at).by_name, SPIKES[spike.spike]._asdict()
        lifted = [level for level, more in added.items() if more > 0 and before[level] <= HIGH_LEVEL]
        cause = SpikeCause(spike.reason, spike.session, int(trust), event)
        failing = dict(self.failing)
        if spike.subject:
            for ended in self.resolved_by(spike.subject):
                del failing[ended]
            if spike.spike == "error":
                failing = {**dict(list(failing.items())[1 - MAX_FAILING :]), spike.subject: at}
        return replace(
            self,
            levels=self.levels.spiked(spike.spike, at),
            failing=failing,
            causes={**self.causes, **dict.fromkeys(lifted, cause)},
        )

    def with_note(self, level: str, at: datetime) -> AffectState:
        return replace(self, noted_at={**self.noted_at, level: at})

    def resolved_by(self, about: str) -> list[str]:
        """What of all that fails is over once this works: itself, and whatever is a part of it."""
        return [one for one in self.failing if one == about or one.startswith(f"{about} ")]

    def freeze(self) -> dict[str, Any]:
        levels = self.levels
        return {
            "levels": [*levels.by_name.values(), None if levels.at is None else to_microseconds(levels.at)],
            "failing": {about: to_microseconds(at) for about, at in self.failing.items()},
            "causes": dict(self.causes),
            "noted": {level: to_microseconds(at) for level, at in self.noted_at.items()},
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> AffectState:
        dopamine, cortisol, oxytocin, at = frozen["levels"]
        return cls(
            levels=Levels(
                dopamine=dopamine,
                cortisol=cortisol,
                oxytocin=oxytocin,
                at=None if at is None else from_microseconds(at),
            ),
            failing={about: from_microseconds(at) for about, at in frozen["failing"].items()},
            causes={level: SpikeCause(*cause) for level, cause in frozen["causes"].items()},
            noted_at={level: from_microseconds(at) for level, at in frozen["noted"].items()},
        )


def is_strong_affect(levels: Levels) -> bool:
    """Is so much felt that a dream should not wait for its time?"""
    return levels.dopamine > 0.7 or levels.cortisol > 0.8


def is_recent(at: datetime | None, now: datetime, within: timedelta) -> bool:
    """Was it just now?

    What lies ahead was dated by a clock that has been put right since, and does not count.
    """
    return at is not None and timedelta() <= now - at < within


def level_history(events: Iterable[Event], *, since: datetime, until: datetime, step: timedelta) -> list[Levels]:
    """The levels at every step from one moment to another, for a plot.

    `events`: all that were ever raised, in their order; what lies before `since` is where it begins.
    """
    levels, points, at = Levels(), list[Levels](), since
    for event in events:
        if not isinstance(event.payload, AffectSpiked) or event.payload.spike not in SPIKES:
            continue
        while at <= until and at < event.at:
            points.append(replace(levels.decayed_to(at), at=at))
            at += step
        levels = levels.spiked(event.payload.spike, event.at)
    while at <= until:
        points.append(replace(levels.decayed_to(at), at=at))
        at += step
    return points


def high_level_note(level: str, value: float, cause: SpikeCause | None, *, still: bool = False) -> str:
    """How a note says that a level is high; `level_told` reads it again."""
    why = f": {cause.why}" if cause and cause.why else ""
    where = f" (session {cause.session})" if cause and cause.session else ""
    return f"[AUTO] {level.capitalize()} is {'still ' if still else ''}high ({value:.2f}){why}{where}."


def level_in_note(note: str) -> str:
    """The level that a note says is high; empty where it is another note."""
    name, _, said = note.removeprefix("[AUTO] ").partition(" is ")
    level = name.lower()
    reads = note == f"[AUTO] {level.capitalize()} is {said}" and said.removeprefix("still ").startswith("high (")
    return level if reads and level in LevelChange._fields else ""
