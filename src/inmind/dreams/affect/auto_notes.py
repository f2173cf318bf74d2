"""Automatic notes about high levels.

An agent in the middle of a success or a failure is unlikely to note it. So a spike that lifts a level above the bar
adds a note in the same commit, and a level that stays high is noted again every half hour.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import AffectSpiked
from inmind.core.text import escape_markup, shorten
from inmind.dreams.affect.state import HIGH_LEVEL, QUIET_PERIOD, AffectState, SpikeCause, high_level_note, is_recent

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
