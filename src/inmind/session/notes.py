"""Notes of a resource, or of an anonymous session.

A note is stored when `add` returns. Its page and its embedding follow in the background.
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
"""Runs a task in the background. Tasks with the same name run once."""


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
