"""Where somebody's notes go: a resource's, or those of a session that is nobody's in particular.

A note is safe when `take` answers, which waits for the journal and for nothing else: the page that shows it, and what
finds it by its meaning, follow in a moment. So it is the same whether it was taken in a session or beside all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inmind.core.events.base import Draft
from inmind.core.events.codec import encode_payload
from inmind.core.events.crystals import NoteAdded
from inmind.search.note import Note, validate_note_origin
from inmind.session.backend import DocumentFiles
from inmind.store.stream import Stream, key_for

Submit = Callable[[str, Callable[[], object]], None]
"""Have something done in a moment, under a name by which twice is once."""


class NoteWriter:
    """The notes of one stream."""

    def __init__(
        self, stream: Stream[Any], files: DocumentFiles, *, soon: Submit, keep_found: Callable[[], None]
    ) -> None:
        self._stream, self._files, self._submit, self._schedule_embedding = stream, files, soon, keep_found

    def add(self, what: NoteAdded, *, origin: object, key: str | None) -> Note:
        """`origin`: whose words it is."""
        taker, name = validate_note_origin(origin), self._stream.name
        named = None if key is None else key_for(key, "note", encode_payload(what), taker)
        appended = self._stream.append(Draft(payload=what, origin=taker), key=named)
        self.publish()
        return Note(
            id=f"{name}#{appended.first}",
            text=what.text,
            date=appended.at,
            importance=what.importance,
            kind=what.category,
            repeated=appended.repeated,
        )

    def publish(self) -> None:
        """What was taken stands on its page in a moment, and is found."""
        self._submit(f"notes of {self._stream.name}", self._files.publish)
        self._schedule_embedding()
