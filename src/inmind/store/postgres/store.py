"""The journal in a PostgreSQL database, shared by any number of processes and machines.

An append is one statement: one transaction and one round trip. It locks the rows of the stream and of its owner, so
writers of one resource wait for each other and writers of different resources never do. See `database` for schemas and
lost connections.

Leases depend on the time, and clocks of machines differ, so a process whose clock is off uses that of the server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg

from inmind.core.encoding import from_microseconds, to_json, to_microseconds
from inmind.core.events.base import Event
from inmind.core.paths import owner_from_first_event
from inmind.errors import Conflict, KeyReused, ReadOnly
from inmind.store.postgres.connection import Connection, Cursor
from inmind.store.postgres.database import MIGRATIONS, Database
from inmind.store.protocol import AppendResult, Batch, ImportedEvent, Key, Receipt, Store
from inmind.store.rows import event_from_row, event_row

log = logging.getLogger("inmind")

IMPORT_BATCH_SIZE = 500
"""Number of imported events sent together."""

_VERSION_CONFLICT, _NEWER_SCHEMA = "IM001", "IM002"


class PostgresStore(Store):
    """A Store in one tenant's schema. See `Store` for its guarantees."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sql = database.statements("shared", "postgres/queries")
        self._thread_state = threading.local()
        self.clock = ServerClock(self._server_time)

    @classmethod
    def open(
        cls, url: str, *, seconds: float | None = None, max_connections: int | None = None, create: bool = True
    ) -> PostgresStore:
        """Open the store at a URL.

        `seconds`: timeout of a call. `max_connections`: of this process. `create`: create a missing schema instead of
        raising NotFound.
        """
        return cls(Database(url, seconds=seconds, max_connections=max_connections, create=create))

    def _server_time(self) -> datetime:
        return self.database.read(lambda connection: connection.execute("SELECT clock_timestamp()").get)

    @property
    def read_only_reason(self) -> str:
        """Why this store refuses writes; empty if it does not."""
        return self.database.read_only_reason

    def append(
        self, batch: Batch, *, at: datetime, key: Key | None = None, companion: Batch | None = None
    ) -> AppendResult:
        stamp = to_microseconds(at)
        at = from_microseconds(stamp)
        if key is None and companion is None and batch.expected > 0 and len(batch.drafts) == 1:
            _, _, kind, origin, trust, _, sources, body = event_row(batch.events(at)[0])
            values = [len(MIGRATIONS), batch.stream, batch.expected, stamp, kind, origin, trust, sources, body]
            if self.database.write(lambda connection: connection.execute(self._sql("append_one"), values).get):
                return batch.result(at)
        stream, owner, expected, events = _batch_values(batch, at)
        values = [len(MIGRATIONS), stream, owner, expected, stamp, key and key.value, key and key.request, events]
        if companion:
            values += _batch_values(companion, at)
        statement = "append_with_companion" if companion else "append"
        repeated, request, first, last, then = self._run_append(statement, values, retryable=key is not None)
        if repeated and key is not None and request != key.request:
            raise KeyReused(key=key.caller_key)
        return AppendResult(first=first, last=last, at=from_microseconds(then), repeated=repeated)

    @contextmanager
    def consistent_read(self) -> Generator[None]:
        with self.database.transaction(snapshot=True):
            yield

    @contextmanager
    def bulk_import(self) -> Generator[PostgresImport]:
        with self.database.transaction() as connection:
            try:
                connection.execute(self._sql("refuse_newer_schema"), (len(MIGRATIONS),))
            except psycopg.Error as error:
                self._refuse_if_newer_schema(error)
                raise
            bulk = self._thread_state.adoption = PostgresImport(self.database, connection, self._sql)
            try:
                yield bulk
                bulk.flush()
            finally:
                self._thread_state.adoption = None

    def close(self) -> None:
        self.database.close()

    def _fetch_rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        bulk: PostgresImport | None = getattr(self._thread_state, "adoption", None)
        if bulk is not None and bulk.connection is self.database.held_connection:
            bulk.flush()
        return self.database.read(lambda connection: connection.execute(self._sql(statement), values).fetchall())

    def _write(self, statement: str, *values: object, retryable: bool = True) -> list[tuple[Any, ...]]:
        def run(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = connection.execute(self._sql(statement), values)
            return cursor.fetchall() if cursor.description else []

        return self.database.write(run, retryable=retryable)

    def _run_append(self, statement: str, values: Sequence[object], *, retryable: bool) -> tuple[Any, ...]:
        """Run an append. `retryable`: it has a key, so it can be repeated if the reply is lost."""

        def run(connection: Connection) -> tuple[Any, ...]:
            try:
                return connection.execute(self._sql(statement), values).fetchall()[0]
            except psycopg.Error as error:
                self._refuse_if_newer_schema(error)
                if error.sqlstate != _VERSION_CONFLICT:
                    raise
                actual, _, stream = (error.diag.message_detail or "").partition(" ")
                expected = values[3] if stream == values[1] else values[10]
                raise Conflict(stream=stream, expected=cast(int, expected), actual=int(actual)) from error

        return self.database.write(run, retryable=retryable)

    def _refuse_if_newer_schema(self, error: psycopg.Error) -> None:
        """Refuse writes if the statement reports that a newer inmind has migrated the schema."""
        if error.sqlstate == _NEWER_SCHEMA:
            self.database.check_schema_version(int(error.diag.message_detail or 0))
            raise ReadOnly(place=self.database.place, reason=self.database.read_only_reason) from error


def _batch_values(batch: Batch, at: datetime) -> tuple[str, str, int, str]:
    """The arguments of an append: stream, owner, version, events."""
    owner = owner_from_first_event(batch.stream, batch.drafts[0].payload) if batch.drafts and not batch.expected else ""
    rows = map(event_row, batch.events(at))
    return batch.stream, owner, batch.expected, to_json([(*row[2:5], *row[6:]) for row in rows])


TOLERANCE = timedelta(seconds=5)
"""Clock differences up to this are ignored."""


def local_time() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """This machine's clock, corrected by its offset from the server's."""

    def __init__(self, server_time: Callable[[], datetime], clock: Callable[[], datetime] = local_time) -> None:
        self._server_time, self._clock = server_time, clock
        self._offset = timedelta()

    def __call__(self) -> datetime:
        return self._clock() - self._offset

    def synchronize(self) -> None:
        """Measure the offset. The round-trip time, by the local clock, limits its precision."""
        before = self._clock()
        server_time = self._server_time()
        after = self._clock()
        offset = before + (after - before) / 2 - server_time
        offset = offset if abs(offset) > TOLERANCE + (after - before) / 2 else timedelta()
        if abs(offset - self._offset) > TOLERANCE:
            message = "the clock of this machine differs from the database's by %g s; using the database's time"
            log.warning(message, round(offset.total_seconds(), 1))
        self._offset = offset


class _ImportedStream:
    """A locked stream."""

    def __init__(self, id: int, owner: int, version: int) -> None:
        self.id, self.owner, self.version = id, owner, version


class PostgresImport:
    """A BulkImport in one transaction, which sends events in batches.

    The row of each owner stays locked until the end, and positions are assigned under that lock. So events that other
    writers store in its streams come before all imported ones, or after them. It keeps a few numbers for each stream,
    and the events that were not sent yet.
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
            if len(self._unsent_rows) >= IMPORT_BATCH_SIZE:
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
        elif Receipt.from_row(receipt.stream, key.value, row) != receipt:
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
            rows = self._execute("reserve_positions", (IMPORT_BATCH_SIZE,)).fetchall()
            self._reserved_positions = [number for (number,) in reversed(rows)]
        self._last_positions[owner] = position = self._reserved_positions.pop()
        return position

    def _execute(self, statement: str, values: Sequence[object]) -> Cursor:
        self._database.extend_deadline()
        return self.connection.execute(self._sql(statement), values)

    def _fetch_row(self, statement: str, *values: object) -> tuple[Any, ...]:
        [row] = self._execute(statement, values).fetchall()
        return row
