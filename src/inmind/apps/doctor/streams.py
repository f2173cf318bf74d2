"""The streams: whether every event reads back, none is missing, and snapshots say what the events add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from inmind.apps.doctor.result import Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.sqlite_readonly import ReadOnlyStore
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

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""By which clocks of one machine's programs may differ, and nobody be wrong."""

WRITE_SECONDS = 10.0
"""Seconds that showing in a file what was committed may take, on a slow disk and a machine with much else to do."""

_DROP_SNAPSHOTS = "DELETE FROM snapshots"

S = TypeVar("S")


class _EventMissing(Exception):
    """An event is not there though a later one is."""


@frozen
class CheckedStream(Generic[S]):
    """A stream that reads back."""

    stream: Stream[S]
    events: Sequence[Event]
    fold: int
    """The version of the fold."""

    @property
    def owner(self) -> str:
        """The session, or the resource."""
        return self.stream.name.partition("/")[2]


def load_stream(store: ReadOnlyStore, name: str, clock: Clock) -> CheckedStream[Any]:
    """From the very beginning, without the help of a snapshot."""
    fold: Fold[Any] = SessionFold(name) if name.startswith(SESSION_PREFIX) else ResourceFold(name)
    events = store.read(name)
    if missing := _first_missing(events):
        raise _EventMissing(f"{name} has no event {missing}, and events behind it")
    return CheckedStream(Stream(store, name, fold, clock), events, fold.version)


def describe_stream_error(name: str, error: Exception, hints: FixHints) -> DoctorFinding:
    """What it was that a stream could not be gone through for."""
    match error:
        case _EventMissing():
            return EVENTS.trouble(str(error), hints.restore_backup)
        case Damaged(place=where, reason=reason):
            fix = "`pip install --upgrade inmind`" if "upgrade inmind" in reason else hints.restore_backup
            return EVENTS.trouble(f"{where if name in where else name} is damaged: {reason}", fix)
        case _:
            message = f"{name} does not add up to a state: {type(error).__name__}: {error}"
            return EVENTS.trouble(message, hints.restore_backup)


def check_snapshots(store: ReadOnlyStore, checked: CheckedStream[Any], hints: FixHints) -> Iterator[DoctorFinding]:
    """Whether the snapshot of a stream is what its events fold to, byte for byte."""
    stored = store.stored_snapshot(checked.stream.name, fold=checked.fold)
    if stored is None:
        return
    drop = f"{hints.sql(_DROP_SNAPSHOTS, DATABASE)}: they only save time, and come again"
    if not checked.stream.has_valid_digest(stored):
        yield SNAPSHOTS.warning(f"that of {checked.stream.name} is not as it was written, and not used", drop)
    elif (
        stored.seq > checked.stream.version
        or checked.stream.make_snapshot(checked.stream.state_at(stored.seq), stored.seq) != stored
    ):
        yield SNAPSHOTS.trouble(f"that of {checked.stream.name} says something else than its events", drop)


def check_clock(checked: CheckedStream[Any], now: datetime) -> Iterator[DoctorFinding]:
    """Whether something has happened that has not happened yet."""
    if checked.events and (latest := max(event.at for event in checked.events)) > now + MAX_CLOCK_SKEW:
        message = f"{checked.stream.name} has events of {latest:%Y-%m-%d %H:%M} UTC, and it is {now:%Y-%m-%d %H:%M}"
        yield CLOCK.warning(message, "set the clock of this machine if it is wrong (`date`); else it passes by then")


def is_stream_recent(checked: CheckedStream[Any], now: datetime) -> bool:
    """Whether somebody may still be about to show in files what has happened last."""
    return bool(checked.events) and is_recent((now - checked.events[-1].at).total_seconds())


def is_recent(seconds: float) -> bool:
    """Whether somebody who has written something that long ago may still be at it. Nobody is from the future."""
    return 0 <= seconds < WRITE_SECONDS


def _first_missing(events: Sequence[Event]) -> int:
    """The first number that is not there though a later one is; 0 where none is missing."""
    return next((place for place, event in enumerate(events, start=1) if event.seq != place), 0)
