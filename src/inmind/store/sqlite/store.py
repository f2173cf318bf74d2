"""The journal in one SQLite file, shared by all processes and threads of one machine.

Every write transaction begins IMMEDIATE (so it cannot fail midway because another writer was first), commits with
synchronous=FULL, and checks the version that it is based on. After a failed fsync the store refuses writes until it is
reopened: a second fsync may succeed without having written.

The library is apsw's, not Python's: the one that Python 3.11 links can corrupt a WAL that two processes checkpoint.
Nothing in this process may `open()` the database file, since closing any descriptor of it would drop SQLite's locks. No
connection is open while the process forks (see `core/fork`); parent and child open new ones.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import apsw

from inmind.core.encoding import from_microseconds, to_json, to_microseconds
from inmind.core.events.base import Draft, Event
from inmind.core.fork import SqliteConnectionOwner
from inmind.core.stream_names import owner_from_first_event
from inmind.errors import (
    Closed,
    Conflict,
    Damaged,
    KeyReused,
    NotDurable,
    ReadOnly,
    StorageFull,
    StoreBusy,
    StoreError,
    UnsafeStorage,
)
from inmind.store.file_operations import create_private_file
from inmind.store.named_sql import load_queries
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
from inmind.store.sqlite.bulk_import import SqliteImport
from inmind.store.sqlite.connection import (
    APPLICATION_ID,
    PRAGMAS,
    SqliteConnection,
    count_tables,
    file_identity,
    file_size,
    is_disk_full,
    migrate,
    newer_schema,
    refuse_lost_journal,
    roll_back,
    set_journal_mode,
    warn_if_no_wal,
)

log = logging.getLogger("inmind")


BUSY_SECONDS = 30.0
_MAX_INTEGER = 2**63 - 1
_sql = load_queries("queries")

_READ_ERRORS = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
"""I/O errors of reading. All others concern writing: opening or recovering a store can write."""

_NOT_WRITABLE = "opening it requires write permission, if only for the lock; the content was not checked"


class SqliteStore(SqliteConnectionOwner):
    """A Store in one SQLite file. See `Store` for its guarantees."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._closed = False
        self._file_identity: tuple[int, int] | None = None
        self._read_only_reason = ""
        self._stream_ids: dict[str, int] = {}
        super().__init__()
        with self._lock:
            self._connection = self._connect()
            warn_if_no_wal(self.path)

    # -- the Store protocol --------------------------------------------------------------------------------

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
        last = expected + len(drafts)
        batches = [Batch(stream, drafts, expected), *([companion] if companion else [])]
        rows = [batch_rows(batch, stamp) for batch in batches]
        with self._write_transaction() as connection:
            stream_id = self._stream_id(connection, stream, create=True)
            if key and (earlier := self._receipt(connection, stream_id, key)):
                return earlier
            stream_ids = [stream_id, *(self._stream_id(connection, batch.stream, create=True) for batch in batches[1:])]
            for number, batch, new_rows in zip(stream_ids, batches, rows, strict=True):
                actual = self._version(connection, number)
                if actual != batch.expected:
                    raise Conflict(stream=batch.stream, expected=batch.expected, actual=actual)
                for row in new_rows:
                    connection.execute(_sql("add_event"), (number, *row))
                if new_rows and not actual:
                    owner = owner_from_first_event(batch.stream, batch.drafts[0].payload)
                    connection.execute(_sql("set_owner"), (number, owner))
            if key:
                connection.execute(_sql("add_key"), (stream_ids[0], key.value, key.request, expected + 1, last, stamp))
        for number, batch in zip(stream_ids, batches, strict=True):
            self._stream_ids[batch.stream] = number
        return AppendResult(first=expected + 1, last=last, at=from_microseconds(stamp))

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        with self._read_connection() as connection:
            number = self._stream_id(connection, stream)
            if not number:
                return []
            bounds = (number, after, _MAX_INTEGER if until is None else until)
            if kind is None:
                rows = connection.execute(_sql("events"), bounds).fetchall()
            else:
                rows = connection.execute(_sql("events_of_kind"), (*bounds, kind)).fetchall()
        return [event_from_row(stream, row) for row in rows]

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        """See Store.

        Here events of all owners can be followed: with one writer, position order is commit order.
        """
        with self._read_connection() as connection:
            bounds = (position, to_json(kinds), limit)
            if owner is None:
                rows = connection.execute(_sql("events_since"), bounds).fetchall()
            else:
                rows = connection.execute(_sql("events_since_of_owner"), (*bounds, owner)).fetchall()
        return [(row[0], event_or_none(row[1], row[2:])) for row in rows]

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        last = 0
        while True:
            with self._read_connection() as connection:
                rows = connection.execute(_sql("all_events"), (last, position, owner, batch_size)).fetchall()
            yield from ((row[0], event_or_none(row[1], row[2:])) for row in rows)
            if len(rows) < batch_size:
                return
            last = rows[-1][0]

    def last_position(self, *, owner: str | None = None) -> int:
        with self._read_connection() as connection:
            if owner is None:
                return connection.execute(_sql("last_position")).get
            return connection.execute(_sql("last_position_of"), (owner,)).get

    def consistent_read(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: reads up to a position are consistent without a transaction."""
        return contextlib.nullcontext()

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        with self._read_connection() as connection:
            rows = connection.execute(_sql("owners"), (after, -1 if limit is None else limit)).fetchall()
        return [name for (name,) in rows]

    def version(self, stream: str) -> int:
        with self._read_connection() as connection:
            return self._version(connection, self._stream_id(connection, stream))

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        with self._read_connection() as connection:
            return self._receipt(connection, self._stream_id(connection, stream), key)

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        with self._read_connection() as connection:
            bounds = (self._stream_id(connection, stream), after, limit)
            rows = connection.execute(_sql("receipts"), bounds).fetchall()
        return [receipt_from_row(stream, key, row) for key, *row in rows]

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        last_key: tuple[int, str] = (0, "")
        while True:
            with self._read_connection() as connection:
                rows = connection.execute(_sql("all_receipts"), (*last_key, batch_size)).fetchall()
            yield from (receipt_from_row(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < batch_size:
                return
            last_key = rows[-1][0], rows[-1][2]

    @contextlib.contextmanager
    def bulk_import(self) -> Generator[SqliteImport]:
        try:
            with self._write_transaction() as connection:
                yield SqliteImport(connection)
        except BaseException:
            self._stream_ids.clear()  # ids created in this transaction will be reused for other streams
            raise

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        bounds = (prefix, f"{prefix}\U0010ffff", owner, -1 if limit is None else limit)
        with self._read_connection() as connection:
            rows = connection.execute(_sql("stream_names"), bounds).fetchall()
        return [name for (name,) in rows]

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        bounds = (prefix, f"{prefix}\U0010ffff", owner, -1 if limit is None else limit)
        with self._read_connection() as connection:
            rows = connection.execute(_sql("stream_infos"), bounds).fetchall()
        return [stream_info_from_row(row) for row in rows]

    def summary(self, stream: str) -> StreamSummary:
        with self._read_connection() as connection:
            rows = connection.execute(_sql("summary"), (self._stream_id(connection, stream),)).fetchall()
        return StreamSummary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with self._write_transaction() as connection:
            number = self._stream_id(connection, stream)
            connection.execute(_sql("save_snapshot"), (number, snapshot.seq, snapshot.fold_version, snapshot.body))

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        with self._read_connection() as connection:
            bounds = (self._stream_id(connection, stream), fold_version, _MAX_INTEGER if until is None else until)
            row = connection.execute(_sql("snapshot"), bounds).fetchone()
        return Snapshot(seq=row[0], fold_version=row[1], body=row[2]) if row else None

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        with self._read_connection() as connection:
            rows = connection.execute(_sql("published_versions"), (self._stream_id(connection, stream),)).fetchall()
        return {path: PublishedVersion(digest=digest, seq=seq) for path, digest, seq in rows}

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None:
        with self._write_transaction() as connection:
            number = self._stream_id(connection, stream)
            connection.execute(_sql("mark_published"), (number, path, version.digest, version.seq))

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        with self._write_transaction() as connection:
            connection.execute(_sql("delete_expired_usage"), (window.name, window.expired_before))
            row = connection.execute(
                _sql("try_consume"), (window.name, window.start_microseconds, amount, limit)
            ).fetchone()
        return row is not None

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        with self._write_transaction() as connection:
            connection.execute(_sql("adjust_usage"), (window.name, window.start_microseconds, amount))

    def usage(self, window: RateWindow) -> int:
        with self._read_connection() as connection:
            return connection.execute(_sql("usage"), (window.name, window.start_microseconds)).get or 0

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None

    @property
    def read_only_reason(self) -> str:
        """Why this store refuses writes; empty if it does not."""
        return self._read_only_reason

    # -- transactions --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _write_transaction(self) -> Generator[SqliteConnection]:
        with self._lock:
            connection = self._open_connection()
            if self._read_only_reason:
                raise ReadOnly(place=str(self.path), reason=self._read_only_reason)
            if file_identity(self.path) != self._file_identity:
                raise NotDurable(place=str(self.path), reason="it was removed or replaced while it was in use")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    self._refuse_newer_schema(connection)
                    yield connection
                except BaseException:
                    roll_back(connection)
                    raise
                connection.execute("COMMIT")
            except apsw.Error as error:
                translated = self._translate_error(error, connection, writing=True)
                with contextlib.suppress(apsw.Error):
                    roll_back(connection)
                raise translated from error

    @contextlib.contextmanager
    def _read_connection(self) -> Generator[SqliteConnection]:
        with self._lock:
            connection = self._open_connection()
            try:
                yield connection
            except apsw.Error as error:
                raise self._translate_error(error, connection, writing=False) from error
            except UnicodeDecodeError as error:
                raise Damaged(place=str(self.path), reason=str(error)) from error

    def _open_connection(self) -> SqliteConnection:
        if self._closed:
            raise Closed
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _translate_error(self, error: apsw.Error, connection: SqliteConnection, *, writing: bool) -> StoreError:
        """Return the inmind error.

        After a write that the disk did not confirm, this store refuses writes.

        Only an I/O error means that the disk did not confirm; a value that is too large or a violated constraint does
        not.
        """
        place, reason = str(self.path), str(error)
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=place, seconds=self._busy_seconds)
        if is_disk_full(error, connection):
            return StorageFull(place=place)
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._read_only_reason = f"the file is damaged ({reason})"
            return Damaged(place=place, reason=reason)
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError) and not writing:
            return UnsafeStorage(place=place, reason=reason if self._is_writable() else _NOT_WRITABLE)
        if isinstance(error, apsw.ReadOnlyError):
            return ReadOnly(place=place, reason=reason)
        failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
        if failed_io and (writing or getattr(error, "extendedresult", 0) not in _READ_ERRORS):
            self._read_only_reason = f"an earlier write was not confirmed by the disk ({reason}); open it again"
            return NotDurable(place=place, reason=reason)
        if writing:  # not an I/O error: this write was refused, the next one may succeed
            return StoreError(f"{place} refused the write ({reason}): nothing was stored")
        return Damaged(place=place, reason=reason)

    def _is_writable(self) -> bool:
        return all(os.access(place, os.W_OK) for place in (self.path.parent, self.path))

    def _stream_id(self, connection: SqliteConnection, stream: str, *, create: bool = False) -> int:
        """Return the id of a stream.

        A new id is cached only after its transaction has committed (see `append`).
        """
        if (known := self._stream_ids.get(stream)) is not None:
            return known
        row = connection.execute(_sql("stream_id"), (stream,)).fetchone()
        if row is None and create:
            return connection.execute(_sql("add_stream"), (stream,)).get
        if row is None:
            return 0
        self._stream_ids[stream] = row[0]
        return row[0]

    @staticmethod
    def _version(connection: SqliteConnection, number: int) -> int:
        return connection.execute(_sql("version"), (number,)).get

    @staticmethod
    def _receipt(connection: SqliteConnection, number: int, key: Key) -> AppendResult | None:
        row = connection.execute(_sql("receipt"), (number, key.value)).fetchone()
        if row is None:
            return None
        request, first, last, at = row
        if request != key.request:
            raise KeyReused(key=key.caller_key)
        return AppendResult(first=first, last=last, at=from_microseconds(at), repeated=True)

    # -- opening -------------------------------------------------------------------------------------------

    def _connect(self) -> SqliteConnection:
        refuse_lost_journal(self.path, lambda: file_size(self.path) == 0)
        create_private_file(self.path)
        try:
            connection = cast(SqliteConnection, apsw.Connection(str(self.path)))
        except apsw.Error as error:
            raise UnsafeStorage(place=str(self.path), reason=str(error)) from error
        with self._close_on_error(connection):
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            self._refuse_foreign_database(connection)
            set_journal_mode(connection, place=self.path, busy_seconds=self._busy_seconds)
            for pragma, value in PRAGMAS:
                connection.pragma(pragma, value)
            self._check_schema_version(migrate(connection))
        self._file_identity = file_identity(self.path)
        return connection

    @contextlib.contextmanager
    def _close_on_error(self, connection: SqliteConnection) -> Generator[None]:
        """Translate errors of a connection that was just opened, and close it."""
        try:
            yield
        except apsw.Error as error:
            translated = self._translate_error(error, connection, writing=False)
            connection.close()
            raise translated from error
        except StoreError:
            connection.close()
            raise

    def _refuse_foreign_database(self, connection: SqliteConnection) -> None:
        """Refuse a database of another program, or an empty one if an earlier journal was lost.

        The order matters: another process may be creating the store, and commits tables and application id together.
        """
        if count_tables(connection) and connection.pragma("application_id") != APPLICATION_ID:
            raise UnsafeStorage(place=str(self.path), reason="it is a database of another program")
        refuse_lost_journal(self.path, lambda: not count_tables(connection))

    def _refuse_newer_schema(self, connection: SqliteConnection) -> None:
        """Refuse writes if a newer inmind has migrated the file since it was opened."""
        if self._check_schema_version(int(connection.pragma("user_version"))):
            raise ReadOnly(place=str(self.path), reason=self._read_only_reason)

    def _check_schema_version(self, version: int) -> bool:
        """Return True, and refuse writes from now on, if the schema is newer than this inmind."""
        if reason := newer_schema(version):
            self._read_only_reason = reason
        return bool(reason)
