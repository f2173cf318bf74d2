"""What has to be true of a resource that dreams, whatever has happened to it; looked up in the journal, not believed.

A note is in one dream that stands, or it waits on the page of notes, and never both or neither; its words are found
either way. A dream has one end, and none that was given up, called off or overtaken has changed anything.
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
    """Where each note of a resource is."""

    taken_in: list[str]
    waiting: list[str]


def accounted(memory: Memory, *, taken_off: Collection[str] = (), resource: str = ADA) -> Account:
    """Fails where a note is lost or doubled; `taken_off`: the words of those that a person took off the page."""
    events = events_of(memory, resource)
    notes = {event.id: event.payload for event in events if isinstance(event.payload, NoteAdded)}
    jottings = {
        event.id: to_page_note(event.payload, event.at) for event in events if isinstance(event.payload, NoteAdded)
    }
    taken_in = [note for event in standing(events) for note in _dreamt(event).notes]
    assert len(taken_in) == len(set(taken_in)), f"taken in twice: {Counter(taken_in).most_common(1)}"
    stands = Counter(parse_notes(text_of(memory, NOTES_PAGE_PATH, resource)))
    waiting: list[str] = []
    for id, note in notes.items():
        if id in taken_in:
            continue
        if stands[jottings[id]] > 0:
            stands[jottings[id]] -= 1
            waiting.append(id)
        else:
            assert note.text in taken_off, f"lost: {note.text!r}"
    again = [jotting for jotting in stands.elements() if jotting in jottings.values()]
    assert not again, f"taken in, and waits again: {again}"
    crystals = [event.payload.text for event in events if isinstance(event.payload, CrystalCreated)]
    for id, note in notes.items():
        assert note.text not in crystals, f"there twice: {note.text!r}"
        assert memory.get(id).text == note.text
    return Account(taken_in, waiting)


def found(memory: Memory, text: str, *, resource: str = ADA) -> bool:
    """Does a search bring up these words, as whatever they have become?"""
    hits = memory.resource(resource).search(text, limit=50)
    return any(text in hit.crystal.text for hit in hits)


def in_order(memory: Memory, *, resource: str = ADA) -> None:
    """Each dream has one end at most, and only the one that has begun last comes to it, or to any stage before it."""
    running = 0
    ended: set[int] = set()
    for event in events_of(memory, resource):
        match event.payload:
            case DreamStarted():
                running = event.seq
            case DreamCommitted(dream=dream) | DreamFailed(dream=dream):
                assert dream not in ended, f"dream {dream} has ended twice"
                assert dream == running, f"dream {dream} has ended, and dream {running} had begun since"
                ended.add(dream)
                running = 0
            case what if isinstance(what, DreamUnderway):
                assert what.dream == running, f"dream {what.dream} went on, and dream {running} had begun since"
            case _:
                pass


def shown(memory: Memory, *, resource: str = ADA) -> None:
    """The files say what the journal says, and nothing lies about; a database has none."""
    if memory.home is None:
        return
    folder = folder_of(memory.home, resource)
    for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH):
        if text := text_of(memory, path, resource):
            assert (folder / path).read_text("utf-8") == text, path
    lying = [file.name for file in folder.rglob("*") if file.name.startswith(".inmind-")]
    assert lying == [], lying


def standing(events: Sequence[Event]) -> list[Event]:
    """Dreams that have come to their end and were not undone."""
    undone = {event.payload.dream for event in events if isinstance(event.payload, DreamUndone)}
    return [
        event for event in events if isinstance(event.payload, DreamCommitted) and event.payload.dream not in undone
    ]


def pages_of(memory: Memory, *, resource: str = ADA) -> list[str]:
    """Everything that MEMORY.md has ever said, the newest last."""
    written = [event.payload for event in events_of(memory, resource) if isinstance(event.payload, DocumentWritten)]
    return [page.text for page in written if page.path == MEMORY_PAGE_PATH]


def events_of(memory: Memory, resource: str = ADA) -> Sequence[Event]:
    return memory._context.store.read(f"resource/{resource}")  # pyright: ignore[reportPrivateUsage] -- it has no door of its own


def text_of(memory: Memory, path: str, resource: str = ADA) -> str:
    owned = memory._context.resource_stream(resource).state  # pyright: ignore[reportPrivateUsage] -- past files and sessions
    return owned.documents.text(path)


def folder_of(home: Path | str, resource: str = ADA) -> Path:
    return Path(home) / "resources" / resource


def without_header(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("_Last dream")]


def _dreamt(event: Event) -> DreamCommitted:
    assert isinstance(event.payload, DreamCommitted)
    return event.payload
