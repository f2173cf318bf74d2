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
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import Event
from inmind.core.fork import SqliteConnectionOwner
from inmind.core.paths import owner_from_first_event
from inmind.errors import (
    Closed,
    Conflict,
    Damaged,
    NotDurable,
    ReadOnly,
    StorageFull,
    StoreBusy,
    StoreError,
    UnsafeStorage,
)
from inmind.store.protocol import AppendResult, Batch, ImportedEvent, Key, Receipt, Store
from inmind.store.rows import event_from_row, event_row, load_queries
from inmind.store.sqlite import connection as sqlite
from inmind.store.sqlite.connection import SqliteConnection

log = logging.getLogger("inmind")


BUSY_SECONDS = 30.0

_sql = load_queries("shared", "queries", for_sqlite=True)

_READ_ERRORS = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
"""I/O errors of reading. All others concern writing: opening or recovering a store can write."""

_NOT_WRITABLE = "opening it requires write permission, if only for the lock; the content was not checked"


class SqliteStore(SqliteConnectionOwner, Store):
    """A Store in one SQLite file. See `Store` for its guarantees."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._closed = False
        self._file_identity: tuple[int, int] | None = None
        self._read_only_reason = ""
        super().__init__()
        with self._lock:
            self._connection = self._connect()
            sqlite.warn_if_no_wal(self.path)

    # -- the Store protocol --------------------------------------------------------------------------------

    def append(
        self, batch: Batch, *, at: datetime, key: Key | None = None, companion: Batch | None = None
    ) -> AppendResult:
        stamp = to_microseconds(at)
        batches = [batch, *([companion] if companion else [])]
        result = batch.result(from_microseconds(stamp))
        rows = [list(map(event_row, one.events(result.at))) for one in batches]
        with self._write_transaction() as connection:
            if key and (earlier := self.receipt(batch.stream, key)):
                return earlier
            for one, new_rows in zip(batches, rows, strict=True):
                actual = connection.execute(_sql("version"), (one.stream,)).get
                if actual != one.expected:
                    raise Conflict(stream=one.stream, expected=one.expected, actual=actual)
                if actual:
                    number = connection.execute(_sql("stream_id"), (one.stream,)).get
                else:
                    owner = owner_from_first_event(one.stream, one.drafts[0].payload) if new_rows else None
                    number = connection.execute(_sql("add_stream"), (one.stream, owner)).get
                for row in new_rows:
                    connection.execute(_sql("add_event"), (number, *row))
                if key and one is batch:
                    values = (number, key.value, key.request, result.first, result.last, stamp)
                    connection.execute(_sql("add_key"), values)
        return result

    def consistent_read(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: reads up to a position are consistent without a transaction."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def bulk_import(self) -> Generator[SqliteImport]:
        with self._write_transaction() as connection:
            yield SqliteImport(connection)

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

    def _fetch_rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._read_connection() as connection:
            return connection.execute(_sql(statement), sqlite.lists_as_json(values)).fetchall()

    def _write(self, statement: str, *values: object, retryable: bool = True) -> list[tuple[Any, ...]]:  # noqa: ARG002 -- a local write is not retried
        with self._write_transaction() as connection:
            return connection.execute(_sql(statement), values).fetchall()

    # -- transactions --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _write_transaction(self) -> Generator[SqliteConnection]:
        with self._lock:
            connection = self._open_connection()
            if self._read_only_reason:
                raise ReadOnly(place=str(self.path), reason=self._read_only_reason)
            if sqlite.file_identity(self.path) != self._file_identity:
                raise NotDurable(place=str(self.path), reason="it was removed or replaced while it was in use")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    if self._check_schema_version(int(connection.pragma("user_version"))):
                        raise ReadOnly(place=str(self.path), reason=self._read_only_reason)
                    yield connection
                except BaseException:
                    sqlite.roll_back(connection)
                    raise
                connection.execute("COMMIT")
            except apsw.Error as error:
                translated = self._translate_error(error, connection, writing=True)
                with contextlib.suppress(apsw.Error):
                    sqlite.roll_back(connection)
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
        if sqlite.is_disk_full(error, connection):
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

    # -- opening -------------------------------------------------------------------------------------------

    def _connect(self) -> SqliteConnection:
        sqlite.refuse_lost_journal(self.path)
        connection = sqlite.open_database(self.path, busy_seconds=self._busy_seconds)
        with self._close_on_error(connection):
            self._refuse_foreign_database(connection)
            sqlite.set_up_connection(connection, sqlite.PRAGMAS, place=self.path, busy_seconds=self._busy_seconds)
            self._check_schema_version(sqlite.migrate(connection))
        self._file_identity = sqlite.file_identity(self.path)
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
        if sqlite.count_tables(connection) and connection.pragma("application_id") != sqlite.APPLICATION_ID:
            raise UnsafeStorage(place=str(self.path), reason="it is a database of another program")
        sqlite.refuse_lost_journal(self.path, lambda: not sqlite.count_tables(connection))

    def _check_schema_version(self, version: int) -> bool:
        """Return True, and refuse writes from now on, if a newer inmind has migrated the file."""
        if is_newer := version > len(sqlite.MIGRATIONS):
            known = len(sqlite.MIGRATIONS)
            self._read_only_reason = f"it has schema {version}, this inmind knows {known}: upgrade inmind to write"
        return is_newer


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
            if event.seq == 1:
                self._add_stream(event.stream, owner_from_first_event(event.stream, event.payload))
            self._connection.execute(_sql("add_event"), (number, *row))
            position = self._connection.last_insert_rowid()
            self._streams[event.stream] = number, event.seq
            return ImportedEvent(position, is_new=True)
        position, *stored = self._connection.execute(_sql("event_at"), (number, event.seq)).fetchone() or (0,)
        if not stored or event_row(event_from_row(event.stream, stored)) != row:
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=version)
        return ImportedEvent(position, is_new=False)

    def add_receipt(self, receipt: Receipt) -> bool:
        number, version = self._find_or_add_stream(receipt.stream)
        key, appended = receipt.key, receipt.appended
        row = self._connection.execute(_sql("receipt"), (receipt.stream, key.value)).fetchone()
        if row is None:
            values = (key.request, appended.first, appended.last, to_microseconds(appended.at))
            self._connection.execute(_sql("add_key"), (number, key.value, *values))
        elif Receipt.from_row(receipt.stream, key.value, row) != receipt:
            raise Conflict(stream=receipt.stream, expected=appended.last, actual=version)
        return row is None

    def _find_or_add_stream(self, name: str) -> tuple[int, int]:
        """Return the id and version of a stream."""
        if (stream := self._streams.get(name)) is None:
            version = self._connection.execute(_sql("version"), (name,)).get
            row = self._connection.execute(_sql("stream_id"), (name,)).fetchone()
            stream = self._streams[name] = row[0] if row else self._add_stream(name, None), version
        return stream

    def _add_stream(self, name: str, owner: str | None) -> int:
        """Add a stream, or set its owner."""
        return self._connection.execute(_sql("add_stream"), (name, owner)).get
