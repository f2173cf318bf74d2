"""Checks of the journal: readable events, no gaps, and snapshots that match their events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from inmind.apps.doctor.result import Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.sqlite_readonly import ReadOnlyStore
from inmind.core.events.base import Event, Fold
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE
from inmind.core.stream_names import SESSION_PREFIX
from inmind.errors import Damaged
from inmind.session.state import ResourceFold, SessionFold
from inmind.store.protocol import Clock
from inmind.store.stream import Stream

EVENTS = Check(Subject.JOURNAL, "events")
SNAPSHOTS = Check(Subject.JOURNAL, "snapshots")
CLOCK = Check(Subject.JOURNAL, "clock")

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""Tolerated difference between the clocks of processes."""

WRITE_SECONDS = 10.0
"""Time that writing committed events to files may take on a slow, busy machine."""

_DROP_SNAPSHOTS = "DELETE FROM snapshots"

S = TypeVar("S")


class _EventMissing(Exception):
    """An event number is missing before a later event."""


@frozen
class CheckedStream(Generic[S]):
    """A stream whose events are all readable."""

    stream: Stream[S]
    events: Sequence[Event]
    fold: int
    """Version of the fold."""

    @property
    def owner(self) -> str:
        """Id of the session or resource."""
        return self.stream.name.partition("/")[2]


def load_stream(store: ReadOnlyStore, name: str, clock: Clock) -> CheckedStream[Any]:
    """Fold a stream from its first event, without snapshots."""
    fold: Fold[Any] = SessionFold(name) if name.startswith(SESSION_PREFIX) else ResourceFold(name)
    events = store.read(name)
    if missing := _first_missing(events):
        raise _EventMissing(f"{name} lacks event {missing} but has later ones")
    return CheckedStream(Stream(store, name, fold, clock), events, fold.version)


def describe_stream_error(name: str, error: Exception, hints: FixHints) -> DoctorFinding:
    """Finding for an exception while a stream was checked."""
    match error:
        case _EventMissing():
            return EVENTS.trouble(str(error), hints.restore_backup)
        case Damaged(place=where, reason=reason):
            fix = "`pip install --upgrade inmind`" if "upgrade inmind" in reason else hints.restore_backup
            return EVENTS.trouble(f"{where if name in where else name} is damaged: {reason}", fix)
        case _:
            message = f"{name} cannot be folded: {type(error).__name__}: {error}"
            return EVENTS.trouble(message, hints.restore_backup)


def check_snapshots(store: ReadOnlyStore, checked: CheckedStream[Any], hints: FixHints) -> Iterator[DoctorFinding]:
    """Check that the stored snapshot equals the fold of the events, byte for byte."""
    stored = store.stored_snapshot(checked.stream.name, fold=checked.fold)
    if stored is None:
        return
    drop = f"{hints.sql(_DROP_SNAPSHOTS, DATABASE)} (snapshots are a cache and are created again)"
    if not checked.stream.has_valid_digest(stored):
        yield SNAPSHOTS.warning(f"the one of {checked.stream.name} has a wrong checksum and is not used", drop)
    elif (
        stored.seq > checked.stream.version
        or checked.stream.make_snapshot(checked.stream.state_at(stored.seq), stored.seq) != stored
    ):
        yield SNAPSHOTS.trouble(f"the one of {checked.stream.name} does not match its events", drop)


def check_clock(checked: CheckedStream[Any], now: datetime) -> Iterator[DoctorFinding]:
    """Find events in the future."""
    if checked.events and (latest := max(event.at for event in checked.events)) > now + MAX_CLOCK_SKEW:
        message = f"{checked.stream.name} has events of {latest:%Y-%m-%d %H:%M} UTC, but it is {now:%Y-%m-%d %H:%M}"
        yield CLOCK.warning(message, "set the clock of this machine if it is wrong (`date`); otherwise wait until then")


def is_stream_recent(checked: CheckedStream[Any], now: datetime) -> bool:
    """True if a process may still be writing the newest event to files."""
    return bool(checked.events) and is_recent((now - checked.events[-1].at).total_seconds())


def is_recent(seconds: float) -> bool:
    """True if a writer that started this long ago may still be writing.

    Returns False for negative ages.
    """
    return 0 <= seconds < WRITE_SECONDS


def _first_missing(events: Sequence[Event]) -> int:
    """First missing event number; 0 if none is missing."""
    return next((place for place, event in enumerate(events, start=1) if event.seq != place), 0)
