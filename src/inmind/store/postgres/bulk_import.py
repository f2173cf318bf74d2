"""Bulk import of events into a PostgreSQL store: one transaction, events sent in batches.

The row of each owner stays locked until the end, and positions are assigned under that lock. So events that other
writers store in its streams come before all imported ones, or after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inmind.core.encoding import to_microseconds
from inmind.core.events.base import Event
from inmind.core.stream_names import owner_from_first_event
from inmind.errors import Conflict
from inmind.store.postgres.connection import Connection, Cursor
from inmind.store.postgres.database import Database
from inmind.store.protocol import ImportedEvent, Receipt
from inmind.store.rows import event_from_row, event_row, receipt_from_row

BATCH_SIZE = 500
"""Number of events sent together."""


class _ImportedStream:
    """A locked stream."""

    def __init__(self, id: int, owner: int, version: int) -> None:
        self.id, self.owner, self.version = id, owner, version


class PostgresImport:
    """A BulkImport.

    It keeps a few numbers for each stream, and the events that were not sent yet.
    """

    def __init__(self, database: Database, connection: Connection, statement: Callable[[str], str]) -> None:
        self._database, self.connection, self._sql = database, connection, statement
        self._streams: dict[str, _ImportedStream] = {}
        self._last_positions: dict[int, int] = {}
        """Last position of each locked owner."""
        self._owner_ids: dict[str, int] = {}
        self._reserved_positions: list[int] = []
        self._unsent_rows: list[tuple[object, ...]] = []
        self._changed_streams: dict[int, _ImportedStream] = {}
        """Streams of the unsent rows."""

    def add_event(self, event: Event) -> ImportedEvent:
        stream, row = self._lock_stream(event.stream), event_row(event)
        if event.seq == stream.version + 1:
            if event.seq == 1:
                stream.owner = self._lock_owner(owner_from_first_event(event.stream, event.payload))
            position = self._next_position(stream.owner)
            self._unsent_rows.append((stream.owner, position, stream.id, *row))
            stream.version = event.seq
            self._changed_streams[stream.id] = stream
            if len(self._unsent_rows) >= BATCH_SIZE:
                self.flush()
            return ImportedEvent(position, is_new=True)
        self.flush()
        key = (stream.owner, stream.id, min(event.seq, 2**63 - 1))
        position, *stored = self._execute("event_at", key).fetchone() or (0,)
        if not stored or event_row(event_from_row(event.stream, stored)) != row:
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=stream.version)
        return ImportedEvent(position, is_new=False)

    def add_receipt(self, receipt: Receipt) -> bool:
        stream, key, appended = self._lock_stream(receipt.stream), receipt.key, receipt.appended
        row = self._execute("receipt_by_id", (stream.id, key.value)).fetchone()
        if row is None:
            values = (key.request, appended.first, appended.last, to_microseconds(appended.at))
            self._execute("add_key", (stream.id, key.value, *values))
        elif receipt_from_row(receipt.stream, key.value, row) != receipt:
            raise Conflict(stream=receipt.stream, expected=appended.last, actual=stream.version)
        return row is None

    def flush(self) -> None:
        """Send the unsent rows, so that reads see them."""
        if not self._unsent_rows:
            return
        rows, self._unsent_rows = self._unsent_rows, []
        self._database.extend_deadline()
        with self.connection.cursor().copy(self._sql("add_events").encode()) as copy:
            for row in rows:
                copy.write_row(row)
        changed, self._changed_streams = self._changed_streams, {}
        streams = [(stream.id, stream.owner, stream.version) for stream in changed.values()]
        self._execute("update_streams", [*map(list, zip(*streams, strict=True))])
        owners = [(owner, self._last_positions[owner]) for owner in {stream.owner for stream in changed.values()}]
        self._execute("update_owners", [*map(list, zip(*owners, strict=True))])

    def _lock_stream(self, name: str) -> _ImportedStream:
        if (stream := self._streams.get(name)) is None:
            id, owner, version = self._fetch_row("lock_stream", name)
            stream = self._streams[name] = _ImportedStream(id, owner, version)
            if owner and owner not in self._last_positions:
                self._last_positions[owner] = self._fetch_row("lock_owner_by_id", owner)[1]
        return stream

    def _lock_owner(self, name: str) -> int:
        if name not in self._owner_ids:
            id, position = self._fetch_row("lock_owner", name)
            self._owner_ids[name] = id
            self._last_positions.setdefault(id, position)
        return self._owner_ids[name]

    def _next_position(self, owner: int) -> int:
        """Return a position after all of this owner's.

        Positions reserved before it was locked may be too low.
        """
        while not self._reserved_positions or self._reserved_positions[-1] <= self._last_positions[owner]:
            rows = self._execute("reserve_positions", (BATCH_SIZE,)).fetchall()
            self._reserved_positions = [number for (number,) in reversed(rows)]
        self._last_positions[owner] = position = self._reserved_positions.pop()
        return position

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        self._database.extend_deadline()
        return self.connection.execute(self._sql(statement), values)

    def _fetch_row(self, statement: str, *values: object) -> tuple[Any, ...]:
        row = self._execute(statement, values).fetchone()
        if row is None:
            raise LookupError(f"{statement} returned no row")
        return row
