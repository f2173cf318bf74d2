"""Bulk import of events into a SQLite store."""

from __future__ import annotations

from inmind.core.encoding import to_microseconds
from inmind.core.events.base import Event
from inmind.core.stream_names import owner_from_first_event
from inmind.errors import Conflict
from inmind.store.named_sql import load_queries
from inmind.store.protocol import ImportedEvent, Receipt
from inmind.store.rows import event_from_row, event_row, receipt_from_row
from inmind.store.sqlite.connection import SqliteConnection

_sql = load_queries("queries")


class SqliteImport:
    """A BulkImport in one transaction.

    It keeps the id and version of each stream, and no events.
    """

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self._streams: dict[str, tuple[int, int]] = {}

    def add_event(self, event: Event) -> ImportedEvent:
        number, version = self._find_or_add_stream(event.stream)
        row = event_row(event)
        if event.seq == version + 1:
            self._connection.execute(_sql("add_event"), (number, *row))
            position = self._connection.last_insert_rowid()
            if event.seq == 1:
                self._connection.execute(
                    _sql("set_owner"), (number, owner_from_first_event(event.stream, event.payload))
                )
            self._streams[event.stream] = number, event.seq
            return ImportedEvent(position, is_new=True)
        position, *stored = self._connection.execute(_sql("event_at"), (number, event.seq)).fetchone() or (0,)
        if not stored or event_row(event_from_row(event.stream, stored)) != row:
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=version)
        return ImportedEvent(position, is_new=False)

    def add_receipt(self, receipt: Receipt) -> bool:
        number, version = self._find_or_add_stream(receipt.stream)
        key, appended = receipt.key, receipt.appended
        row = self._connection.execute(_sql("receipt"), (number, key.value)).fetchone()
        if row is None:
            values = (key.request, appended.first, appended.last, to_microseconds(appended.at))
            self._connection.execute(_sql("add_key"), (number, key.value, *values))
        elif receipt_from_row(receipt.stream, key.value, row) != receipt:
            raise Conflict(stream=receipt.stream, expected=appended.last, actual=version)
        return row is None

    def _find_or_add_stream(self, name: str) -> tuple[int, int]:
        """Return the id and version of a stream."""
        if (stream := self._streams.get(name)) is None:
            row = self._connection.execute(_sql("stream_id"), (name,)).fetchone()
            number = row[0] if row else self._connection.execute(_sql("add_stream"), (name,)).get
            stream = self._streams[name] = number, self._connection.execute(_sql("version"), (number,)).get
        return stream
