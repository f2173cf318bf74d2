"""Affect of a resource: levels of dopamine, cortisol and oxytocin, and notes about them.

Levels are between 0 and 1. Spikes raise the levels, and each decays to its baseline by half-life. This has a closed
form, so no timer is needed: levels are stored as of the last spike, and the value at a later time is computed on
demand.

Levels, causes and failing calls are folded from the stream. The fold does not know why a spike happened: hosts, rules
and economics all append the same event. Rules need two more facts: what failed and has not succeeded since, to
recognize the success that resolves it; and when a level was last noted, to avoid repeated notes.

An agent in the middle of a success or a failure is unlikely to note it. So a spike that lifts a level above the bar
adds a note in the same commit, and a level that stays high is noted again every half hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Draft, Event, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import AffectSpiked
from inmind.core.frozen import frozen
from inmind.core.text import escape_markup, shorten

BASELINES: Final = {"dopamine": 0.15, "cortisol": 0.02, "oxytocin": 0.20}
HALF_LIVES: Final = {
    "dopamine": timedelta(minutes=30),
    "cortisol": timedelta(minutes=60),
    "oxytocin": timedelta(minutes=45),
}

SPIKES: Final[Mapping[str, Mapping[str, float]]] = {
    "reward": {"dopamine": 0.3},
    "error": {"cortisol": 0.3},
    "social": {"oxytocin": 0.3},
    "achievement": {"dopamine": 0.4, "oxytocin": 0.2},
    "urgency": {"cortisol": 0.4},
    "sale": {"dopamine": 0.15, "oxytocin": 0.05},
    "recall": {"dopamine": 0.05},
    "missed": {"dopamine": -0.05},
}
"""The change of each spike. A search with a hit raises dopamine a little; one without a hit lowers it."""


@frozen(kw_only=True)
class Levels:
    """The levels at one time."""

    dopamine: float = BASELINES["dopamine"]
    cortisol: float = BASELINES["cortisol"]
    oxytocin: float = BASELINES["oxytocin"]
    at: datetime | None = None
    """None if nothing has happened yet: the levels are at their baselines at any time."""

    def decayed_to(self, now: datetime) -> Levels:
        """The levels at a later time. An earlier time changes nothing."""
        if self.at is None or now <= self.at:
            return self
        values = {
            name: BASELINES[name] + (level - BASELINES[name]) * 0.5 ** ((now - self.at) / HALF_LIVES[name])
            for name, level in self.by_name.items()
        }
        return Levels(**values, at=now)

    def after_spike(self, spike: str, now: datetime) -> Levels:
        """The levels after a spike, limited to 0 and 1.

        Decay continues from this time, even if it is earlier than the last: a clock that was wrong for a minute must
        not stop the decay until that time is reached.
        """
        values = {
            name: min(1.0, max(0.0, level + SPIKES[spike].get(name, 0.0)))
            for name, level in self.decayed_to(now).by_name.items()
        }
        return Levels(**values, at=now)

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
        match event.payload:
            case AffectSpiked() as spike:
                return self.with_spike(spike, at=event.at, trust=event.trust, event=event.id)
            case NoteAdded(text=text) if event.origin is Origin.OPERATOR and (level := level_in_note(text)):
                return self.with_note(level, event.at)
            case _:
                return self

    def with_spike(self, spike: AffectSpiked, *, at: datetime, trust: Trust, event: str = "") -> AffectState:
        """The state after a spike. A spike of a newer version that is unknown here changes nothing."""
        if spike.spike not in SPIKES:
            return self
        before = self.levels.decayed_to(at).by_name
        raised = [name for name, change in SPIKES[spike.spike].items() if change > 0 and before[name] <= HIGH_LEVEL]
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
    spikes = deque((event.at, event.payload.spike) for event in events if isinstance(event.payload, AffectSpiked))
    levels, points, at = Levels(), list[Levels](), since
    while at <= until:
        while spikes and spikes[0][0] <= at:
            spiked_at, spike = spikes.popleft()
            levels = levels.after_spike(spike, spiked_at) if spike in SPIKES else levels
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
    return level if is_auto_note and level in BASELINES else ""


def is_auto_note_about(note: str, session: str) -> bool:
    """True for an automatic note whose cause is in this session."""
    return bool(level_in_note(note)) and note.endswith(f"{_session_text(session)}.")


def _session_text(session: str) -> str:
    return f" (session {session})"


NOTE_IMPORTANCE: Final = 0.8
REPEAT_INTERVAL: Final = timedelta(minutes=30)

_MAX_CAUSE_CHARACTERS: Final = 90
"""Characters quoted of the cause."""

_VALENCES: Final = {"dopamine": 0.5, "cortisol": -0.5, "oxytocin": 0.5}


def add_auto_notes(affect: AffectState, spikes: Iterable[Draft], now: datetime) -> list[Draft]:
    """The spikes, each followed by a note for every level that it lifts above the bar."""
    drafts: list[Draft] = []
    for draft in spikes:
        drafts.append(draft)
        if not isinstance(draft.payload, AffectSpiked):
            continue
        before = affect.levels.decayed_to(now).by_name
        affect = affect.with_spike(draft.payload, at=now, trust=draft.effective_trust)
        for level, value in affect.levels.by_name.items():
            if before[level] <= HIGH_LEVEL < value and not is_recent(affect.noted_at.get(level), now, QUIET_PERIOD):
                affect = affect.with_note(level, now)
                drafts.append(_build_note(level, value, affect.causes.get(level), sources=draft.sources))
    return drafts


def due_notes(affect: AffectState, now: datetime) -> list[Draft]:
    """A note for each level that is still high and was not noted in the last half hour."""
    high = {level: value for level, value in affect.levels.decayed_to(now).by_name.items() if value > HIGH_LEVEL}
    waiting = [level for level in high if not is_recent(affect.noted_at.get(level), now, REPEAT_INTERVAL)]
    causes = {level: affect.causes.get(level) for level in waiting}
    return [
        _build_note(level, high[level], cause, sources=(cause.event,) if cause and cause.event else (), still=True)
        for level, cause in causes.items()
    ]


def _build_note(
    level: str, value: float, cause: SpikeCause | None, *, sources: tuple[str, ...], still: bool = False
) -> Draft:
    """The draft of a note. It has the trust of its cause, although the words are generated."""
    trust = Trust(cause.trust) if cause else None
    if cause and cause.why and trust is Trust.DATA:
        cause = cause._replace(why=_quote(cause.why))
    note = NoteAdded(
        high_level_note(level, value, cause, still=still), importance=NOTE_IMPORTANCE, valence=_VALENCES[level]
    )
    return Draft(payload=note, origin=Origin.OPERATOR, sources=sources, trust=trust)


def _quote(why: str) -> str:
    """Quote a cause as data: it contains a tool name, chosen by the tool's author."""
    text = shorten(escape_markup(why), _MAX_CAUSE_CHARACTERS).replace('"', "'")
    return f'"{text}"'
