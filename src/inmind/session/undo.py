"""Undo of changes and removal of the last messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import HistorySpliced, Reverted
from inmind.errors import InvalidInput, NotFound
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext, whole_number
from inmind.session.notes import NoteWithdrawals
from inmind.session.state import SessionState, is_file_edit
from inmind.store.stream import Decision, key_for


class SessionUndo:
    """Reverts changes of one session by appending events; nothing is deleted."""

    def __init__(self, context: SessionContext, compactor: Compactor, withdrawals: NoteWithdrawals) -> None:
        self._id, self._stream, self._store, self._resource = (
            context.id,
            context.stream,
            context.store,
            context.resource,
        )
        self._compactor, self._withdrawals = compactor, withdrawals

    def undo(self, *, to: int | None = None, key: str | None = None) -> int:
        """See `Session.undo`."""
        checked_key = key_for(key, "undo", to)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, int]:
            target = state.undo_target if to is None else whole_number(to, "to", minimum=1)
            if not state.opening_end <= target < state.seq or target == 0:
                if to is None:
                    raise NotFound(
                        what="change to undo in", name=self._id, hint="nothing has changed since it was opened"
                    )
                raise NotFound(
                    what="earlier event",
                    name=target,
                    hint=f"the session was opened with {state.opening_end}, its last event is {state.seq}",
                )
            if to is not None:
                self._check_batch_end(target)
            reverted = Draft(payload=Reverted(to=target), origin=Origin.USER)
            companion = self._withdrawals.revert_drafts(state, target)
            return Decision([reverted, *self._file_edits_since(state, target)], target, companion=companion)

        self._resource.refresh()
        done = self._stream.commit(decide, key=checked_key, companion=self._resource)
        if done.result is not None:
            return done.result
        (event,) = self._store.read(self._stream.name, after=done.appended.first - 1, until=done.appended.first)
        return event.payload.to if isinstance(event.payload, Reverted) else 0

    def remove_last_messages(self, messages: int, *, key: str | None = None) -> Sequence[Event]:
        """Remove the last messages from the conversation. Returns the appended events."""
        last = whole_number(messages, "messages", minimum=1)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            count = len(state.conversation)
            if last > count:
                raise InvalidInput(field="messages", value=last, expected=f"at most {count}, the number of messages")
            removed = [Draft(payload=HistorySpliced(count - last, count, 0), origin=Origin.USER)]
            return Decision([*removed, *self._compactor.undone_by_edits(state, removed, now)], None)

        done = self._stream.commit(decide, key=key_for(key, "take_back", last))
        return done.events

    def _file_edits_since(self, state: SessionState, seq: int) -> list[Draft]:
        """Pages as people last saved them after an event; they are kept when the rest is reverted."""
        written = self._store.read(self._stream.name, after=seq, until=state.seq, kind=DocumentWritten.kind)
        saved = {
            event.payload.path: event
            for event in written
            if isinstance(event.payload, DocumentWritten) and is_file_edit(event)
        }
        return [
            Draft(payload=event.payload, origin=Origin.FILE, sources=(event.id,), trust=event.trust)
            for event in saved.values()
        ]

    def _check_batch_end(self, seq: int) -> None:
        """Check that an event ends a batch. In the middle of one, tool calls would have no answers."""
        (following,) = self._store.read(self._stream.name, after=seq, until=seq + 1)
        if not following.starts_batch:
            starts = [event.seq for event in self._store.read(self._stream.name) if event.starts_batch]
            first = max(start for start in starts if start <= seq)
            last = min((start for start in starts if start > seq), default=self._stream.version + 1) - 1
            raise InvalidInput(field="to", value=seq, expected=f"the last event of a change: {first - 1} or {last}")
