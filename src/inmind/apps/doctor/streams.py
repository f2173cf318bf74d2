"""The streams: whether every event reads back, none is missing, and snapshots say what the events add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from inmind.apps.doctor.fix_hints import Steps
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.apps.doctor.sqlite_readonly import StoreLookedAt
from inmind.core.events.base import Event
from inmind.core.events.fold import Fold
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE
from inmind.core.streams import SESSION_PREFIX
from inmind.errors import Damaged
from inmind.session.state import ResourceFold, SessionFold
from inmind.store.protocol import Clock
from inmind.store.stream import Stream

EVENTS = Check(Subject.JOURNAL, "events")
SNAPSHOTS = Check(Subject.JOURNAL, "snapshots")
CLOCK = Check(Subject.JOURNAL, "clock")

SKEW = timedelta(minutes=5)
"""By which clocks of one machine's programs may differ, and nobody be wrong."""

WRITING = 10.0
"""Seconds that showing in a file what was committed may take, on a slow disk and a machine with much else to do."""

_DROP = "DELETE FROM snapshots"

S = TypeVar("S")


class _Lost(Exception):
    """An event is not there though a later one is."""


@frozen
class Folded(Generic[S]):
    """A stream that reads back."""

    stream: Stream[S]
    events: Sequence[Event]
    fold: int
    """The version of the fold."""

    @property
    def owner(self) -> str:
        """The session, or the resource."""
        return self.stream.name.partition("/")[2]


def folded(store: StoreLookedAt, name: str, clock: Clock) -> Folded[Any]:
    """From the very beginning, without the help of a snapshot."""
    fold: Fold[Any] = SessionFold(name) if name.startswith(SESSION_PREFIX) else ResourceFold(name)
    events = store.read(name)
    if lost := _missing(events):
        raise _Lost(f"{name} has no event {lost}, and events behind it")
    return Folded(Stream(store, name, fold, clock), events, fold.version)


def unfit(name: str, error: Exception, steps: Steps) -> Finding:
    """What it was that a stream could not be gone through for."""
    match error:
        case _Lost():
            return EVENTS.trouble(str(error), steps.bring_back)
        case Damaged(place=where, reason=reason):
            mend = "`pip install --upgrade inmind`" if "upgrade inmind" in reason else steps.bring_back
            return EVENTS.trouble(f"{where if name in where else name} is damaged: {reason}", mend)
        case _:
            seen = f"{name} does not add up to a state: {type(error).__name__}: {error}"
            return EVENTS.trouble(seen, steps.bring_back)


def snapshots(store: StoreLookedAt, of: Folded[Any], steps: Steps) -> Iterator[Finding]:
    """Whether the snapshot of a stream is what its events fold to, byte for byte."""
    kept = store.kept_snapshot(of.stream.name, fold=of.fold)
    if kept is None:
        return
    drop = f"{steps.sql(_DROP, DATABASE)}: they only save time, and come again"
    if not of.stream.is_sealed(kept):
        yield SNAPSHOTS.warning(f"that of {of.stream.name} is not as it was written, and not used", drop)
    elif kept.seq > of.stream.version or of.stream.snapshot_of(of.stream.at(kept.seq), kept.seq) != kept:
        yield SNAPSHOTS.trouble(f"that of {of.stream.name} says something else than its events", drop)


def ahead(of: Folded[Any], now: datetime) -> Iterator[Finding]:
    """Whether something has happened that has not happened yet."""
    if of.events and (latest := max(event.at for event in of.events)) > now + SKEW:
        seen = f"{of.stream.name} has events of {latest:%Y-%m-%d %H:%M} UTC, and it is {now:%Y-%m-%d %H:%M}"
        yield CLOCK.warning(seen, "set the clock of this machine if it is wrong (`date`); else it passes by then")


def is_fresh(of: Folded[Any], now: datetime) -> bool:
    """Whether somebody may still be about to show in files what has happened last."""
    return bool(of.events) and is_young((now - of.events[-1].at).total_seconds())


def is_young(seconds: float) -> bool:
    """Whether somebody who has written something that long ago may still be at it. Nobody is from the future."""
    return 0 <= seconds < WRITING


def _missing(events: Sequence[Event]) -> int:
    """The first number that is not there though a later one is; 0 where none is missing."""
    return next((place for place, event in enumerate(events, start=1) if event.seq != place), 0)
