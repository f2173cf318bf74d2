"""Checks of dreams: expired leases, repeated failures, and notes that wait too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from inmind.apps.doctor.result import Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.streams import CheckedStream
from inmind.core.events.dreams import DreamCommitted, DreamFailed
from inmind.core.stream_names import ANONYMOUS
from inmind.core.text import count_noun
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, parse_notes
from inmind.dreams.schedule import FAILURES_BEFORE_BACKOFF
from inmind.session.state import ResourceState

LEASES = Check(Subject.DREAMS, "leases")
FAILURES = Check(Subject.DREAMS, "failures")
NOTES = Check(Subject.DREAMS, "notes")

MAX_NOTE_AGE = timedelta(days=2)
"""A note that waits longer means that dreams do not run; normally they run every two hours of use."""


def check_dreams(checked: CheckedStream[ResourceState], now: datetime, hints: FixHints) -> Iterator[DoctorFinding]:
    """Findings about the dreams of one resource. Anonymous sessions do not dream."""
    if checked.owner == ANONYMOUS:
        return
    dreaming, run_dream = checked.stream.state.dreams, hints.inmind("dream", "run", checked.owner)
    if dreaming.running is not None and not dreaming.running.is_held(now):
        running = dreaming.running
        started = f"started {running.started_at:%Y-%m-%d %H:%M}, in phase {running.phase}"
        yield LEASES.warning(f"dream {running.dream} of {checked.owner} never ended ({started}); harmless", run_dream)
    if dreaming.failures >= FAILURES_BEFORE_BACKOFF:
        message = f"the last {dreaming.failures} dreams of {checked.owner} failed: {_last_reason(checked, DreamFailed)}"
        yield FAILURES.warning(f"{message}; dreams are delayed by a backoff", f"fix the cause, then {run_dream}")
    elif dreaming.model_failures >= FAILURES_BEFORE_BACKOFF:
        reason = _last_reason(checked, DreamCommitted)
        message = f"the last {dreaming.model_failures} model calls for {checked.owner} failed: {reason}"
        yield FAILURES.warning(f"{message}; dreams use rules until then", f"fix the model, then {run_dream}")
    notes = waiting_notes(checked)
    since = min((_parse_time(note.at) for note in notes), default=now)
    if now - since > MAX_NOTE_AGE:
        message = f"{count_noun(len(notes), 'note')} of {checked.owner} waiting, the oldest since {since:%Y-%m-%d}"
        yield NOTES.warning(message, f"{run_dream}, or keep {hints.inmind('worker')} running")


def waiting_notes(checked: CheckedStream[ResourceState]) -> list[PageNote]:
    return [] if checked.owner == ANONYMOUS else parse_notes(checked.stream.state.documents.text(NOTES_PAGE_PATH))


def _last_reason(checked: CheckedStream[ResourceState], kind: type[DreamFailed] | type[DreamCommitted]) -> str:
    """Reason of the last failure."""
    ends = (event.payload for event in reversed(checked.events) if isinstance(event.payload, kind))
    match next(ends, None):
        case DreamFailed(code=code, reason=reason):
            return f"{code}: {reason}"
        case DreamCommitted(fallback_reason=reason) if reason:
            return str(reason)
        case _:
            return "the process was killed"


def _parse_time(stamp: str) -> datetime:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):  # users can edit the notes page and write any date
        return datetime.max.replace(tzinfo=UTC)
