"""Dreams: whether one was left behind, whether they keep failing, and what waits for the next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from inmind.apps.doctor.fix_hints import Steps
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.apps.doctor.streams import Folded
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

LONG = timedelta(days=2)
"""For which a note waits where dreams come as they should: every two hours, whenever anybody is there to have them."""


def dreams(of: Folded[ResourceState], now: datetime, steps: Steps) -> Iterator[Finding]:
    """Nothing of what sessions of nobody in particular share: they do not dream."""
    if of.owner == ANONYMOUS:
        return
    dreaming, again = of.stream.state.dreams, steps.inmind("dream", "run", of.owner)
    if dreaming.running is not None and not dreaming.running.is_held(now):
        running = dreaming.running
        seen = (
            f"dream {running.dream} of {of.owner} never ended (begun {running.began:%Y-%m-%d %H:%M}, {running.stage})"
        )
        yield LEASES.warning(f"{seen}; it holds up nobody", again)
    if dreaming.failures >= FAILURES_BEFORE_BACKOFF:
        seen = f"{dreaming.failures} dreams of {of.owner} in a row came to nothing: {_reason(of, DreamFailed)}"
        yield FAILURES.warning(f"{seen}; the next ones wait longer and longer", f"see to that, then {again}")
    elif dreaming.model_failures >= FAILURES_BEFORE_BACKOFF:
        seen = (
            f"a model was asked {dreaming.model_failures} times in vain for {of.owner}: {_reason(of, DreamCommitted)}"
        )
        yield FAILURES.warning(f"{seen}; rules dream meanwhile", f"see to the model, then {again}")
    notes = waiting(of)
    since = min((_moment(note.at) for note in notes), default=now)
    if now - since > LONG:
        seen = f"{counted(len(notes), 'note')} of {of.owner} waiting, the oldest since {since:%Y-%m-%d}"
        yield NOTES.warning(seen, f"{again}, or let {steps.inmind('worker')} do that from now on")


def waiting(of: Folded[ResourceState]) -> list[PageNote]:
    return [] if of.owner == ANONYMOUS else parse_notes(of.stream.state.documents.text(NOTES_PAGE_PATH))


def _reason(of: Folded[ResourceState], kind: type[DreamFailed] | type[DreamCommitted]) -> str:
    """Why the last one did not get what it wanted."""
    ends = (event.payload for event in reversed(of.events) if isinstance(event.payload, kind))
    match next(ends, None):
        case DreamFailed(code=code, reason=reason):
            return f"{code}: {reason}"
        case DreamCommitted(fallback_reason=reason) if reason:
            return str(reason)
        case _:
            return "their programs were killed"


def _moment(stamp: str) -> datetime:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):  # a person may have written any number of days there
        return datetime.max.replace(tzinfo=UTC)
