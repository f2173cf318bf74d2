"""One resource of a memory: its notes, dreams, affect and economics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inmind.core.events.base import Event, Origin
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.paths import check_name, require_resource, working_directory
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, parse_notes
from inmind.errors import NotFound
from inmind.memory.context import MemoryContext, SearchInput
from inmind.memory.listing import SessionInfo, checked_limit, is_known_resource, list_sessions
from inmind.memory.session_opener import checked_seconds
from inmind.search.note import Note
from inmind.session.notes import NoteInput, NoteWriter
from inmind.session.state import ResourceState
from inmind.store.stream import key_for

if TYPE_CHECKING:
    from inmind.jobs.consolidation import Consolidation
    from inmind.jobs.dream_history import Dream
    from inmind.memory.resource_ledger import Affect, Economics


class Resource(SearchInput, NoteInput):
    """A user, team or project that owns sessions and notes: `memory.resource("ada")`.

    The sessions of a resource share its notes, its MEMORY.md and its entities. Getting a Resource stores nothing: it
    exists as soon as a session or a note names it.
    """

    def __init__(self, context: MemoryContext, name: str) -> None:
        self.name = check_name(name, "resource")
        super().__init__(context, [self.name])

    def __repr__(self) -> str:
        return f"<Resource {self.name!r} of {str(self._context.backend)!r}>"

    @property
    def state(self) -> ResourceState:
        """Pages, scratchpads, affect and dreams, with the latest edits of the live files."""
        stream = self._context.resource_stream(self.name)
        self._context.resource_files(self.name, stream).read_edits()
        return stream.state

    def sessions(self, *, cwd: str | Path | None = None, limit: int | None = None) -> list[SessionInfo]:
        """The sessions of the resource, the most recently used first.

        `cwd`: only those started in this folder.
        """
        folder = None if cwd is None else working_directory(cwd)
        return list_sessions(self._context.backend, cwd=folder, resource=self.name, limit=checked_limit(limit))

    # -- notes and search ----------------------------------------------------------------------------------

    def withdraw(self, note_id: str, *, key: str | None = None) -> None:
        """Withdraw a note: it leaves the notes page, prompts and search, and stays in the journal.

        A note withdrawn with `Session.withdraw` can be restored by `undo` of that session; this one cannot.
        """
        self._note_writer().withdraw(note_id, store=self._context.store, key=key)

    def notes(self, *, all: bool = False) -> list[Note]:
        """The notes that wait for a dream, in the order of their page.

        `all`: every note that was not withdrawn, the oldest first. A note that a person typed into memory/scratch.md
        gets its id from the next dream; until then it is empty.
        """
        stream = self._context.resource_stream(require_resource(self.name))
        self._context.resource_files(self.name, stream).read_edits()
        page = parse_notes(stream.state.documents.text(NOTES_PAGE_PATH))
        saved = self._context.store.read(stream.name, kind=NoteAdded.kind)
        if all:
            return [_note(event) for event in saved if event.id not in stream.state.withdrawn_notes]
        typed = self._context.store.read(stream.name, kind=CrystalCreated.kind)
        return _waiting_notes(page, [*saved, *(event for event in typed if event.origin is Origin.FILE)])

    def consolidate(self, *, seconds: float | None = None) -> Consolidation:
        """Merge duplicate crystals, mark superseded ones, and expire faded ones.

        With `seconds`, it stops after about that time, not counting the time to read all notes; the next call continues
        from there.
        """
        limit = None if seconds is None else checked_seconds(seconds, "seconds")
        return self._context.upkeep().consolidate(self.name, limit)

    def _note_writer(self) -> NoteWriter:
        self._context.check_open()
        stream = self._context.resource_stream(owner := require_resource(self.name))
        return self._context.note_writer(stream, self._context.resource_files(owner, stream), owner)

    # -- dreams --------------------------------------------------------------------------------------------

    def dream(
        self,
        *,
        watch: Callable[[str, str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: str | None = None,
    ) -> Dream:
        """Update MEMORY.md from the notes and from all activity since the last dream.

        The model that the memory was opened with proposes the changes; without one, rules do. If the guards refuse the
        proposal, nothing changes and the result says why. DreamRunning if another process dreams for this resource. A
        dream whose process has died is resumed instead, and so is the dream that the same `key` has started. `watch` is
        called with each phase, `cancelled` is polled between steps.
        """
        owner = require_resource(self.name)
        known = is_known_resource(self._context.store, owner)
        if not known and not self._context.backend.has_resource_files(owner):
            raise NotFound(what="resource", name=owner, hint="no session names it, and it has no notes")
        return self._context.dream(owner, "asked", watch=watch, cancelled=cancelled, key=key)

    def dreams(self, *, limit: int | None = None) -> list[Dream]:
        """The dreams of the resource with their results, the newest first, at most `limit`."""
        return self._context.dream_history(require_resource(self.name)).newest(limit)

    def get_dream(self, dream: int | None = None) -> Dream:
        """One dream with its result, by its number; without a number the newest."""
        return self._context.dream_history(require_resource(self.name)).get(dream)

    def undo_dream(self, dream: int | None = None, *, key: str | None = None) -> Dream:
        """Undo the last dream: restore MEMORY.md and put its notes back.

        Edits that people made to MEMORY.md since are kept.
        """
        owner = require_resource(self.name)
        files = self._context.resource_files(owner, stream := self._context.resource_stream(owner))
        files.read_edits()
        undone = self._context.dream_history(owner, stream).undo(dream, key_for(key, "undo_dream", owner, dream))
        files.publish()
        return undone

    def cancel_dream(self, *, key: str | None = None) -> bool:
        """End the running dream, in any process, without changes. Returns False if none is running."""
        owner = require_resource(self.name)
        return self._context.dream_history(owner).cancel(key_for(key, "call_off_dream", owner))

    # -- affect and economics ------------------------------------------------------------------------------

    @property
    def affect(self) -> Affect:
        """The affect levels of the resource: current values, mood, history."""
        from inmind.memory.resource_ledger import Affect

        return Affect(self._context, require_resource(self.name))

    @property
    def economics(self) -> Economics:
        """Earnings, spending and offers of the resource: `record` and `report`."""
        from inmind.memory.resource_ledger import Economics

        return Economics(self._context, require_resource(self.name))


def _waiting_notes(page: Iterable[PageNote], events: Iterable[Event]) -> list[Note]:
    """The notes of a page with their ids. Of equal notes, the newer event is used first."""
    from inmind.jobs.dream_history import as_page_note

    by_text = defaultdict[PageNote | None, list[Event]](list)
    for event in sorted(events, key=lambda event: event.seq):
        by_text[as_page_note(event)].append(event)
    notes: list[Note] = []
    for line in page:
        at = datetime.fromisoformat(line.at).astimezone(UTC)
        typed = Note(id="", text=line.text, date=at, importance=line.importance)
        notes.append(_note(by_text[line].pop()) if by_text[line] else typed)
    return notes


def _note(event: Event) -> Note:
    payload = event.payload
    if not isinstance(payload, NoteAdded | CrystalCreated):
        raise NotFound(what="note", name=event.id)
    return Note(id=event.id, text=payload.text, date=event.at, importance=payload.importance, kind=payload.category)
