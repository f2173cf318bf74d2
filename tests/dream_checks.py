"""Invariants of a resource that dreams, checked in the journal.

A note is in exactly one committed dream or waits on the page of notes; search finds it in both cases. A dream ends
once, and a dream that failed, was cancelled or lost its lease has changed nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from inmind import Memory
from inmind.core.events.base import Event
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamCommitted, DreamFailed, DreamStarted, DreamUnderway, DreamUndone
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes, to_page_note

ADA = "ada"


@dataclass(frozen=True)
class Account:
    """The ids of processed and of waiting notes."""

    taken_in: list[str]
    waiting: list[str]


def account_for_notes(memory: Memory, *, removed: Collection[str] = (), resource: str = ADA) -> Account:
    """Fail if a note is lost or duplicated, except texts that a user removed from the page."""
    events = events_of(memory, resource)
    notes = {event.id: event.payload for event in events if isinstance(event.payload, NoteAdded)}
    page_notes = {
        event.id: to_page_note(event.payload, event.at) for event in events if isinstance(event.payload, NoteAdded)
    }
    taken_in = [note for event in committed_dreams(events) for note in _commit_of(event).notes]
    assert len(taken_in) == len(set(taken_in)), f"processed twice: {Counter(taken_in).most_common(1)}"
    pending = Counter(parse_notes(text_of(memory, NOTES_PAGE_PATH, resource)))
    waiting: list[str] = []
    for id, note in notes.items():
        if id in taken_in:
            continue
        if pending[page_notes[id]] > 0:
            pending[page_notes[id]] -= 1
            waiting.append(id)
        else:
            assert note.text in removed, f"lost: {note.text!r}"
    again = [page_note for page_note in pending.elements() if page_note in page_notes.values()]
    assert not again, f"processed, and waiting again: {again}"
    crystals = [event.payload.text for event in events if isinstance(event.payload, CrystalCreated)]
    for id, note in notes.items():
        assert note.text not in crystals, f"stored twice: {note.text!r}"
        assert memory.get(id).text == note.text
    return Account(taken_in, waiting)


def search_finds(memory: Memory, text: str, *, resource: str = ADA) -> bool:
    """Whether search finds this text in any crystal."""
    hits = memory.resource(resource).search(text, limit=50)
    return any(text in hit.crystal.text for hit in hits)


def check_dream_order(memory: Memory, *, resource: str = ADA) -> None:
    """Check that each dream ends at most once, and that only the last started dream advances."""
    running = 0
    finished: set[int] = set()
    for event in events_of(memory, resource):
        match event.payload:
            case DreamStarted():
                running = event.seq
            case DreamCommitted(dream=dream) | DreamFailed(dream=dream):
                assert dream not in finished, f"dream {dream} has ended twice"
                assert dream == running, f"dream {dream} ended after dream {running} had started"
                finished.add(dream)
                running = 0
            case stage if isinstance(stage, DreamUnderway):
                assert stage.dream == running, f"dream {stage.dream} advanced after dream {running} had started"
            case _:
                pass


def check_files(memory: Memory, *, resource: str = ADA) -> None:
    """Check that the files match the journal, without leftovers; a database has no files."""
    if memory.home is None:
        return
    folder = folder_of(memory.home, resource)
    for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH):
        if text := text_of(memory, path, resource):
            assert (folder / path).read_text("utf-8") == text, path
    leftovers = [file.name for file in folder.rglob("*") if file.name.startswith(".inmind-")]
    assert leftovers == [], leftovers


def committed_dreams(events: Sequence[Event]) -> list[Event]:
    """Dreams that were committed and not undone."""
    undone = {event.payload.dream for event in events if isinstance(event.payload, DreamUndone)}
    return [
        event for event in events if isinstance(event.payload, DreamCommitted) and event.payload.dream not in undone
    ]


def pages_of(memory: Memory, *, resource: str = ADA) -> list[str]:
    """All versions of MEMORY.md, the newest last."""
    written = [event.payload for event in events_of(memory, resource) if isinstance(event.payload, DocumentWritten)]
    return [page.text for page in written if page.path == MEMORY_PAGE_PATH]


def events_of(memory: Memory, resource: str = ADA) -> Sequence[Event]:
    return memory._context.store.read(f"resource/{resource}")  # pyright: ignore[reportPrivateUsage] -- no public API yet


def text_of(memory: Memory, path: str, resource: str = ADA) -> str:
    state = memory._context.resource_stream(resource).state  # pyright: ignore[reportPrivateUsage] -- past files and sessions
    return state.documents.text(path)


def folder_of(home: Path | str, resource: str = ADA) -> Path:
    return Path(home) / "resources" / resource


def without_header(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("_Last dream")]


def _commit_of(event: Event) -> DreamCommitted:
    assert isinstance(event.payload, DreamCommitted)
    return event.payload
