"""Affect of a resource, folded from its stream: levels, causes and failing calls.

The fold does not know why a spike happened: hosts, rules and economics all append the same event. Rules need two more
facts: what failed and has not succeeded since, to recognize the success that resolves it; and when a level was last
noted, to avoid repeated notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import AffectSpiked
from inmind.core.frozen import frozen
from inmind.dreams.affect.levels import SPIKES, LevelChange, Levels

AUTO_MARK: Final = "[AUTO]"
"""The first word of an automatic note."""

HIGH_LEVEL: Final = 0.7
"""Above this, a level gets an automatic note."""

QUIET_PERIOD: Final = timedelta(minutes=10)
"""Within this time, the same failure or level is not reported again."""

MAX_FAILING: Final = 100
"""Failing calls that are remembered, the latest ones."""


class SpikeCause(NamedTuple):
    """The cause of a level: the last spike that raised it or lifted it above the bar.

    A tuple, because snapshots are JSON.
    """

    why: str
    session: str
    trust: int
    """A Trust value for the words of the cause."""
    event: str


@frozen(kw_only=True)
class AffectState:
    """Affect after some event."""

    levels: Levels = field(default_factory=Levels)
    """As of the last spike; `levels.decayed_to(now)` is the current value."""
    failing: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """Keys of calls that failed and have not succeeded since, with the time of the last signal; latest last."""
    causes: Mapping[str, SpikeCause] = field(default_factory=dict[str, SpikeCause])
    """The cause of each level, by its name."""
    noted_at: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """When each level last got an automatic note."""

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
        """The state after a spike. A spike of a newer version that is unknown here changes nothing."""
        if spike.spike not in SPIKES:
            return self
        before, added = self.levels.decayed_to(at).by_name, SPIKES[spike.spike]._asdict()
        raised = [level for level, change in added.items() if change > 0 and before[level] <= HIGH_LEVEL]
        cause = SpikeCause(spike.reason, spike.session, int(trust), event)
        failing = dict(self.failing)
        if spike.subject:
            for resolved in self.resolved_by(spike.subject):
                del failing[resolved]
            if spike.spike == "error":
                failing = {**dict(list(failing.items())[1 - MAX_FAILING :]), spike.subject: at}
        return replace(
            self,
            levels=self.levels.after_spike(spike.spike, at),
            failing=failing,
            causes={**self.causes, **dict.fromkeys(raised, cause)},
        )

    def with_note(self, level: str, at: datetime) -> AffectState:
        return replace(self, noted_at={**self.noted_at, level: at})

    def resolved_by(self, about: str) -> list[str]:
        """Failing calls that are resolved when this succeeds: itself and its parts."""
        return [key for key in self.failing if key == about or key.startswith(f"{about} ")]


def is_strong_affect(levels: Levels) -> bool:
    """True if the next dream should come earlier than scheduled."""
    return levels.dopamine > 0.7 or levels.cortisol > 0.8


def is_recent(at: datetime | None, now: datetime, within: timedelta) -> bool:
    """True within a duration before `now`.

    Times in the future are from a wrong clock and do not count.
    """
    return at is not None and timedelta() <= now - at < within


def level_history(events: Iterable[Event], *, since: datetime, until: datetime, step: timedelta) -> list[Levels]:
    """The levels at every step between two times, for a plot.

    `events`: all spikes in order, including those before `since`.
    """
    levels, points, at = Levels(), list[Levels](), since
    for event in events:
        if not isinstance(event.payload, AffectSpiked) or event.payload.spike not in SPIKES:
            continue
        while at <= until and at < event.at:
            points.append(replace(levels.decayed_to(at), at=at))
            at += step
        levels = levels.after_spike(event.payload.spike, event.at)
    while at <= until:
        points.append(replace(levels.decayed_to(at), at=at))
        at += step
    return points


def high_level_note(level: str, value: float, cause: SpikeCause | None, *, still: bool = False) -> str:
    """The text of an automatic note; `level_in_note` parses it."""
    why = f": {cause.why}" if cause and cause.why else ""
    about = _session_text(cause.session) if cause and cause.session else ""
    return f"{AUTO_MARK} {level.capitalize()} is {'still ' if still else ''}high ({value:.2f}){why}{about}."


def level_in_note(note: str) -> str:
    """The level that an automatic note reports as high; empty for other notes."""
    name, _, rest = note.removeprefix(f"{AUTO_MARK} ").partition(" is ")
    level = name.lower()
    is_auto_note = note == f"{AUTO_MARK} {level.capitalize()} is {rest}" and rest.removeprefix("still ").startswith(
        "high ("
    )
    return level if is_auto_note and level in LevelChange._fields else ""


def is_auto_note_about(note: str, session: str) -> bool:
    """True for an automatic note whose cause is in this session."""
    return bool(level_in_note(note)) and note.endswith(f"{_session_text(session)}.")


def _session_text(session: str) -> str:
    return f" (session {session})"
