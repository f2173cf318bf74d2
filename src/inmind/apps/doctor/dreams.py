"""Dreams: whether one was left behind, whether they keep failing, and what waits for the next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from inmind.apps.doctor.result import Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.streams import CheckedStream
from inmind.core.events.dreams import DreamCommitted, DreamFailed
from inmind.core.streams import ANONYMOUS
from inmind.core.text import counted
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, parse_notes
from inmind.dreams.schedule import FAILURES_BEFORE_BACKOFF
from inmind.session.state import ResourceState

LEASES = Check(Subject.DREAMS, "leases")
FAILURES = Check(Subject.DREAMS, "failures")
NOTES = Check(Subject.DREAMS, "notes")

MAX_NOTE_AGE = timedelta(days=2)
"""For which a note waits where dreams come as they should: every two hours, whenever anybody is there to have them."""


def check_dreams(checked: CheckedStream[ResourceState], now: datetime, hints: FixHints) -> Iterator[DoctorFinding]:
    """Nothing of what sessions of nobody in particular share: they do not dream."""
    if checked.owner == ANONYMOUS:
        return
    dreaming, run_dream = checked.stream.state.dreams, hints.inmind("dream", "run", checked.owner)
    if dreaming.running is not None and not dreaming.running.is_held(now):
        running = dreaming.running
        message = f"dream {running.dream} of {checked.owner} never ended (begun {running.began:%Y-%m-%d %H:%M}, {running.stage})"
        yield LEASES.warning(f"{message}; it holds up nobody", run_dream)
    if dreaming.failures >= FAILURES_BEFORE_BACKOFF:
        message = f"{dreaming.failures} dreams of {checked.owner} in a row came to nothing: {_last_reason(checked, DreamFailed)}"
        yield FAILURES.warning(f"{message}; the next ones wait longer and longer", f"see to that, then {run_dream}")
    elif dreaming.model_failures >= FAILURES_BEFORE_BACKOFF:
        message = f"a model was asked {dreaming.model_failures} times in vain for {checked.owner}: {_last_reason(checked, DreamCommitted)}"
        yield FAILURES.warning(f"{message}; rules dream meanwhile", f"see to the model, then {run_dream}")
    notes = waiting_notes(checked)
    since = min((_parse_time(note.at) for note in notes), default=now)
    if now - since > MAX_NOTE_AGE:
        message = f"{counted(len(notes), 'note')} of {checked.owner} waiting, the oldest since {since:%Y-%m-%d}"
        yield NOTES.warning(message, f"{run_dream}, or let {hints.inmind('worker')} do that from now on")


def waiting_notes(checked: CheckedStream[ResourceState]) -> list[PageNote]:
    return [] if checked.owner == ANONYMOUS else parse_notes(checked.stream.state.documents.text(NOTES_PAGE_PATH))


def _last_reason(checked: CheckedStream[ResourceState], kind: type[DreamFailed] | type[DreamCommitted]) -> str:
    """Why the last one did not get what it wanted."""
    ends = (event.payload for event in reversed(checked.events) if isinstance(event.payload, kind))
    match next(ends, None):
        case DreamFailed(code=code, reason=reason):
            return f"{code}: {reason}"
        case DreamCommitted(fallback_reason=reason) if reason:
            return str(reason)
        case _:
            return "their programs were killed"


def _parse_time(stamp: str) -> datetime:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):  # a person may have written any number of days there
        return datetime.max.replace(tzinfo=UTC)
