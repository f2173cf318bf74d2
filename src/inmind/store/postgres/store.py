"""The journal in a PostgreSQL database, shared by any number of processes and machines.

An append is one statement: one transaction and one round trip. It locks the rows of the stream and of its owner, so
writers of one resource wait for each other and writers of different resources never do. See `database` for schemas and
lost connections.

Leases depend on the time, and clocks of machines differ, so a process whose clock is off uses that of the server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg

from inmind.core.encoding import from_microseconds, to_json, to_microseconds
from inmind.core.events.base import Draft, Event
from inmind.core.stream_names import owner_from_first_event
from inmind.errors import Conflict, KeyReused, ReadOnly
from inmind.store.postgres.bulk_import import PostgresImport
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import MIGRATIONS, Database
from inmind.store.protocol import (
    AppendResult,
    Batch,
    Key,
    PublishedVersion,
    RateWindow,
    Receipt,
    Snapshot,
    StreamInfo,
    StreamSummary,
)
from inmind.store.rows import batch_rows, event_from_row, event_or_none, receipt_from_row, stream_info_from_row

_MAX_INTEGER = 2**63 - 1
_VERSION_CONFLICT, _NEWER_SCHEMA = "IM001", "IM002"


class PostgresStore:
    """A Store in one tenant's schema. See `Store` for its guarantees."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sql = database.statements("queries")
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
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        at: datetime,
        key: Key | None = None,
        companion: Batch | None = None,
    ) -> AppendResult:
        stamp = to_microseconds(at)
        if key is None and companion is None and expected > 0 and len(drafts) == 1:
            ((_, _, kind, origin, trust, _, sources, body),) = batch_rows(Batch(stream, drafts, expected), stamp)
            values = [len(MIGRATIONS), stream, expected, stamp, kind, origin, trust, sources, body]
            if self.database.write(lambda connection: connection.execute(self._sql("append_one"), values).get):
                return AppendResult(first=expected + 1, last=expected + 1, at=from_microseconds(stamp), repeated=False)
        name, owner, version, events = _batch_values(Batch(stream, drafts, expected), stamp)
        values = [len(MIGRATIONS), name, owner, version, stamp, key and key.value, key and key.request, events]
        if companion is None:
            row = self._run_append("append", values, retryable=key is not None)
        else:
            row = self._run_append(
                "append_with_companion", [*values, *_batch_values(companion, stamp)], retryable=key is not None
            )
        repeated, request, first, last, then = row
        if repeated and key is not None and request != key.request:
            raise KeyReused(key=key.caller_key)
        return AppendResult(first=first, last=last, at=from_microseconds(then), repeated=repeated)

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        bounds = (stream, _clamp(after), _clamp(_MAX_INTEGER if until is None else until))
        rows = (
            self._fetch_rows("events", bounds) if kind is None else self._fetch_rows("events_of_kind", (*bounds, kind))
        )
        return [event_from_row(stream, row) for row in rows]

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        rows = self._fetch_rows("events_since", (_clamp(position), list(kinds), limit, owner))
        return [(row[0], event_or_none(row[1], row[2:])) for row in rows]

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        last_event: tuple[int, int] = (0, 0)
        while True:
            rows = self._fetch_rows("all_events", (*last_event, _clamp(position), owner, batch_size))
            yield from ((row[1], event_or_none(row[2], row[3:])) for row in rows)
            if len(rows) < batch_size:
                return
            last_event = rows[-1][0], rows[-1][1]

    def last_position(self, *, owner: str | None = None) -> int:
        return self._fetch_rows("last_position", (owner,))[0][0]

    @contextmanager
    def consistent_read(self) -> Generator[None]:
        with self.database.transaction(snapshot=True):
            yield

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._fetch_rows("owners", (after, limit))]

    def version(self, stream: str) -> int:
        rows = self._fetch_rows("version", (stream,))
        return rows[0][0] if rows else 0

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        for request, first, last, at in self._fetch_rows("receipt", (stream, key.value)):
            if request != key.request:
                raise KeyReused(key=key.caller_key)
            return AppendResult(first=first, last=last, at=from_microseconds(at), repeated=True)
        return None

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        return [
            receipt_from_row(stream, key, row) for key, *row in self._fetch_rows("receipts", (stream, after, limit))
        ]

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        last_key: tuple[int, str] = (0, "")
        while True:
            rows = self._fetch_rows("all_receipts", (*last_key, batch_size))
            yield from (receipt_from_row(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < batch_size:
                return
            last_key = rows[-1][0], rows[-1][2]

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

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._fetch_rows("stream_names", (prefix, f"{prefix}\U0010ffff", limit, owner))]

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        return [
            stream_info_from_row(row)
            for row in self._fetch_rows("stream_infos", (prefix, f"{prefix}\U0010ffff", limit, owner))
        ]

    def summary(self, stream: str) -> StreamSummary:
        rows = self._fetch_rows("summary", (stream,))
        return StreamSummary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self._write_idempotent("save_snapshot", (stream, snapshot.seq, snapshot.fold_version, snapshot.body))

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        rows = self._fetch_rows("snapshot", (stream, fold_version, _clamp(_MAX_INTEGER if until is None else until)))
        return Snapshot(seq=rows[0][0], fold_version=rows[0][1], body=rows[0][2]) if rows else None

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        return {
            path: PublishedVersion(digest=digest, seq=seq)
            for path, digest, seq in self._fetch_rows("published_versions", (stream,))
        }

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None:
        self._write_idempotent("mark_published", (stream, path, version.digest, version.seq))

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        """See Store.

        Retried if the reply is lost: counting twice refuses too early, never too late.
        """
        values = (window.name, window.start_microseconds, amount, limit, window.expired_before)
        return self.database.write(
            lambda connection: connection.execute(self._sql("try_consume"), values).fetchone() is not None,
            retryable=True,
        )

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        values = (window.name, window.start_microseconds, amount)
        self.database.write(lambda connection: connection.execute(self._sql("adjust_usage"), values))

    def usage(self, window: RateWindow) -> int:
        rows = self._fetch_rows("usage", (window.name, window.start_microseconds))
        return rows[0][0] if rows else 0

    def close(self) -> None:
        self.database.close()

    def _fetch_rows(self, name: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        bulk: PostgresImport | None = getattr(self._thread_state, "adoption", None)
        if bulk is not None and bulk.connection is self.database.held_connection:
            bulk.flush()
        return self.database.read(lambda connection: connection.execute(self._sql(name), values).fetchall())

    def _write_idempotent(self, name: str, values: Sequence[object]) -> None:
        """Run a write that may be repeated."""
        self.database.write(lambda connection: connection.execute(self._sql(name), values), retryable=True)

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


def _batch_values(batch: Batch, stamp: int) -> tuple[str, str, int, str]:
    """The arguments of an append: stream, owner, version, events."""
    owner = owner_from_first_event(batch.stream, batch.drafts[0].payload) if batch.drafts and not batch.expected else ""
    return batch.stream, owner, batch.expected, to_json([(*row[2:5], *row[6:]) for row in batch_rows(batch, stamp)])


def _clamp(value: int) -> int:
    """Limit a number to the range of a bigint column."""
    return max(-_MAX_INTEGER, min(value, _MAX_INTEGER))


log = logging.getLogger("inmind")

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
