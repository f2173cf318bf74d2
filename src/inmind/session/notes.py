"""Notes of a resource, or of an anonymous session.

A note is stored when `add` returns. Its page and its embedding follow in the background.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from inmind.core.events import encode_payload
from inmind.core.events.base import Draft, Event, EventId, Origin
from inmind.core.events.crystals import CrystalCreated, NoteAdded, NoteWithdrawn
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import NOTES_PAGE_PATH, Document, validate_text
from inmind.documents.notes_page import PageNote, parse_notes, prepend_notes, remove_pieces, to_page_note
from inmind.errors import NotFound
from inmind.search.note import DEFAULT_IMPORTANCE, Note, validate_note, validate_note_origin
from inmind.session.context import DocumentFiles
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Store
from inmind.store.stream import Decision, Stream, key_for

if TYPE_CHECKING:
    from inmind.session.context import SessionContext

NotesState = SessionState | ResourceState
"""The state of a stream with notes."""

Submit = Callable[[str, Callable[[], object]], None]
"""Runs a task in the background. Tasks with the same name run once."""


class NoteInput(ABC):
    """Calls that save notes: of a session, or of its resource."""

    @abstractmethod
    def _note_writer(self) -> NoteWriter: ...

    def note(
        self,
        text: str,
        *,
        importance: float = DEFAULT_IMPORTANCE,
        kind: str = "general",
        valence: float = 0.0,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> Note:
        """Save a note for a resource, or for a session without one.

        It is in every prompt until a dream has processed it, and can always be searched. It is stored when this
        returns, in one commit; its page, memory/scratch.md, follows in the background. `kind`: fact, preference, goal
        and so on. `valence`: -1 to 1. `valid_from`, `valid_to`: when it is true. `origin`: who wrote it.
        """
        payload = validate_note(text, importance, kind, valence, valid_from, valid_to)
        return self._note_writer().add(payload, origin=origin, key=key)


class NoteWriter:
    """Adds notes to one stream."""

    def __init__(
        self, stream: Stream[Any], files: DocumentFiles, *, submit: Submit, schedule_embedding: Callable[[], None]
    ) -> None:
        self._stream, self._files = stream, files
        self._submit, self._schedule_embedding = submit, schedule_embedding

    def add(self, payload: NoteAdded, *, origin: object, key: str | None) -> Note:
        """Append a note. `origin`: who wrote it."""
        checked_origin = validate_note_origin(origin)
        checked_key = None if key is None else key_for(key, "note", encode_payload(payload), checked_origin)
        appended = self._stream.append(Draft(payload=payload, origin=checked_origin), key=checked_key)
        self.publish()
        return Note(
            id=f"{self._stream.name}#{appended.first}",
            text=payload.text,
            date=appended.at,
            importance=payload.importance,
            kind=payload.category,
            repeated=appended.repeated,
        )

    def publish(self) -> None:
        """Write the notes page and embed new notes, in the background."""
        self._submit(f"notes of {self._stream.name}", self._files.publish)
        self._schedule_embedding()

    def withdraw(self, id: str, *, store: Store, key: str | None) -> None:
        """Withdraw a note, in the stream of the notes only: no session can undo it."""
        self._files.read_edits()
        note = find_note(store, self._stream.name, id)
        checked_key = key_for(key, "withdraw", id)
        self._stream.commit(lambda state, _: Decision(withdrawal_drafts(state, note), None), key=checked_key)
        self.publish()


def withdraw_note(context: SessionContext, id: str, *, key: str | None) -> Sequence[Event]:
    """Withdraw a note so that `Session.undo` can restore it.

    Returns the events appended to the session's stream. The event goes into the stream that has the note, and also into
    the session's stream, which `undo` reverts.
    """
    stream, resource, is_anonymous = context.stream, context.resource, context.is_anonymous
    note = find_note(context.store, stream.name if is_anonymous else resource.name, id)

    def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
        if is_anonymous:
            return Decision(withdrawal_drafts(state, note), None)
        drafts = withdrawal_drafts(resource.state, note)
        return Decision(drafts[:1], None, companion=drafts)

    resource.refresh()
    return stream.commit(decide, key=key_for(key, "withdraw", id), companion=resource).events


def revert_withdrawals(context: SessionContext, state: SessionState, target: int) -> list[Draft]:
    """Events for the resource that restore its notes as of `target` in the session."""
    resource = context.resource
    events = context.store.read(context.stream.name, kind=NoteWithdrawn.kind)
    if context.is_anonymous or not events:
        return []
    before = context.stream.state_at(target).withdrawn_notes
    on_page = {
        event.payload.note: event.payload.on_page
        for event in events
        if isinstance(event.payload, NoteWithdrawn) and event.payload.withdrawn
    }
    drafts: list[Draft] = []
    for id in sorted(state.withdrawn_notes ^ before):
        note = find_note(context.store, resource.name, id)
        resource_state = resource.preview(resource.state, resource.version, drafts, note.at)
        if id in before:
            drafts += withdrawal_drafts(resource_state, note)
        else:
            drafts += _restore_drafts(resource_state, note, was_on_page=on_page.get(id, False))
    return drafts


def find_note(store: Store, stream: str, id: str) -> Event:
    """The event of a note in a stream. Raises NotFound."""
    parsed = EventId.parse(validate_text(id, field="id"))
    if parsed and parsed.stream == stream and parsed.seq > 0:
        for event in store.read(stream, after=parsed.seq - 1, until=parsed.seq):
            is_typed = isinstance(event.payload, CrystalCreated) and event.origin is Origin.FILE
            if is_typed or isinstance(event.payload, NoteAdded):
                return event
    raise NotFound(what="note", name=id, hint="session.note returns the id, and resource.notes() lists them")


def withdrawal_drafts(state: NotesState, note: Event) -> list[Draft]:
    """Events that withdraw a note and remove it from the notes page.

    None if it is withdrawn already.
    """
    if note.id in state.withdrawn_notes:
        return []
    page, line, on_page = _find_line(state, note)
    drafts = [Draft(payload=NoteWithdrawn(note.id, on_page=on_page), origin=Origin.OPERATOR)]
    return [*drafts, *([_page_draft(page, remove_pieces(page.text, [line], []))] if page and line and on_page else [])]


def _restore_drafts(state: NotesState, note: Event, *, was_on_page: bool) -> list[Draft]:
    """Events that restore a withdrawn note."""
    page, line, on_page = _find_line(state, note)
    drafts = [Draft(payload=NoteWithdrawn(note.id, withdrawn=False), origin=Origin.OPERATOR)]
    if page and line and was_on_page and not on_page:
        page = replace(page, trust=min(page.trust, note.trust))
        drafts.append(_page_draft(page, prepend_notes(page.text, [line])))
    return drafts if note.id in state.withdrawn_notes else []


def _find_line(state: NotesState, note: Event) -> tuple[Document | None, PageNote | None, bool]:
    """The notes page, the line of a note on it, and whether the page has that line."""
    page = state.documents.by_path.get(NOTES_PAGE_PATH)
    line = to_page_note(note.payload, note.at) if isinstance(note.payload, NoteAdded) else None
    return page, line, page is not None and line in parse_notes(page.text)


def _page_draft(page: Document, text: str) -> Draft:
    """The notes page with another text. Its notes keep their source and trust."""
    written = DocumentWritten(path=NOTES_PAGE_PATH, text=text)
    return Draft(payload=written, origin=Origin.OPERATOR, sources=(page.source,), trust=page.trust)
