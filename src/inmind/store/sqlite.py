"""The journal in one SQLite file, shared by any number of processes and threads on one machine.

The contract is kept by few means: every write transaction begins IMMEDIATE (so it never finds out in the middle
that it was overtaken), commits with synchronous=FULL, and names the version it was decided on. After a failed
fsync the store stops writing until it is reopened: a second fsync may succeed without having written.

The library is apsw's, not Python's: the one that Python 3.11 links can corrupt a WAL that two processes
checkpoint. Nothing in this process may `open()` the database file, since closing any descriptor of it would
drop SQLite's locks. No connection is open while the process forks (see `fork`); both sides take a new one.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Event
from inmind.core.fork import Connected
from inmind.core.paths import INDEX, RESOURCES, SESSIONS
from inmind.core.streams import owner_from_first_event
from inmind.core.timestamps import from_microseconds, to_microseconds
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
from inmind.store.atomic_files import LOCK, create_private
from inmind.store.named_sql import named, script
from inmind.store.protocol import Adopted, Appended, Batch, Begun, Key, Published, Receipt, Snapshot, Summary, Window
from inmind.store.rows import as_row, begun_of, event_of, readable, receipt_of, rows_of

log = logging.getLogger("inmind")

APPLICATION_ID = 0x696E6D64
"""Written into the file's header, so that nobody's other database is taken for a memory."""

MIGRATIONS = (
    "0001_journal",
    "0002_snapshots",
    "0003_live_files",
    "0004_entities",
    "0005_scratchpads",
    "0006_compactions",
    "0007_crystals",
    "0008_dreams",
    "0009_dream_stages",
    "0010_owners",
    "0011_allowances",
)
"""Named steps, appended and never edited. The file's user_version is how many of them it has."""

BUSY_SECONDS = 30.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FOREVER = 2**63 - 1
_sql = named("queries")

_UNREADABLE = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
"""All other failures of the disk concern writing: opening a store can write, and so can recovering one."""

_MAY_NOT_WRITE = "opening it takes the right to write there, if only to lock it; what is in it is not in question"


def journal_mode(library: str) -> str:
    """WAL where the linked SQLite is sound, the rollback journal where its WAL-reset bug can corrupt the file.

    The bug (two connections checkpoint and write at the same instant) was fixed in 3.51.3 and in the
    maintenance releases 3.50.7 and 3.44.6.
    """
    version = tuple(int(number) for number in library.split("."))
    sound = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    return "wal" if sound else "delete"


def set_journal_mode(connection: Any, *, place: Path, busy_seconds: float) -> None:
    """Switching needs the file for a moment alone, and SQLite does not wait for that by itself."""
    mode = journal_mode(apsw.sqlite_lib_version())
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            if connection.pragma("journal_mode", mode) == mode:
                return
        except apsw.BusyError:
            pass
        if time.monotonic() > deadline:
            raise StoreBusy(place=str(place), seconds=busy_seconds)
        time.sleep(0.01)


def is_full(error: apsw.Error, connection: Any) -> bool:
    """Was there no room on the disk? SQLite tells that in two ways."""
    failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
    return isinstance(error, apsw.FullError) or (failed_io and connection.system_errno in _FULL)


def left_of(journal: Path) -> str:
    """What shows that a journal which is missing or empty was there once; empty if it is there, or never was."""
    return _left_of(journal, lambda: _size(journal) == 0)


class _Cursor(Protocol):
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    @property
    def get(self) -> Any: ...


class _Connection(Protocol):
    """The part of apsw's connection that is used here; its own annotations need a newer Python than ours."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def system_errno(self) -> int: ...
    def execute(self, statements: str, bindings: Sequence[object] | None = None) -> _Cursor: ...
    def last_insert_rowid(self) -> int: ...
    def pragma(self, name: str, value: object = None) -> Any: ...
    def set_busy_timeout(self, milliseconds: int) -> None: ...
    def close(self) -> None: ...


class SqliteStore(Connected):
    """A Store on one SQLite file. See `Store` for what it promises."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._closed = False
        self._opened: tuple[int, int] | None = None
        self._refusal = ""
        self._stream_ids: dict[str, int] = {}
        super().__init__()
        with self._lock:
            self._connection = self._connect()
            self._say_if_slow()

    # -- the port ------------------------------------------------------------------------------------------

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        at: datetime,
        key: Key | None = None,
        beside: Batch | None = None,
    ) -> Appended:
        stamp = to_microseconds(at)
        last = expected + len(drafts)
        batches = [Batch(stream, drafts, expected), *([beside] if beside else [])]
        rows = [rows_of(batch, stamp) for batch in batches]
        with self._writing() as connection:
            first = self._stream_id(connection, stream, create=True)
            if key and (earlier := self._receipt(connection, first, key)):
                return earlier
            numbers = [first, *(self._stream_id(connection, batch.stream, create=True) for batch in batches[1:])]
            for number, batch, theirs in zip(numbers, batches, rows, strict=True):
                actual = self._version(connection, number)
                if actual != batch.expected:
                    raise Conflict(stream=batch.stream, expected=batch.expected, actual=actual)
                for row in theirs:
                    connection.execute(_sql("add_event"), (number, *row))
                if theirs and not actual:
                    owner = owner_from_first_event(batch.stream, batch.drafts[0].payload)
                    connection.execute(_sql("belong"), (number, owner))
            if key:
                connection.execute(_sql("add_key"), (numbers[0], key.value, key.request, expected + 1, last, stamp))
        for number, batch in zip(numbers, batches, strict=True):
            self._stream_ids[batch.stream] = number
        return Appended(first=expected + 1, last=last, at=from_microseconds(stamp))

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        with self._reading() as connection:
            number = self._stream_id(connection, stream)
            if not number:
                return []
            bounds = (number, after, _FOREVER if until is None else until)
            if kind is None:
                rows = connection.execute(_sql("events"), bounds).fetchall()
            else:
                rows = connection.execute(_sql("events_of_kind"), (*bounds, kind)).fetchall()
        return [event_of(stream, row) for row in rows]

    def since(
        self, position: int, *, kinds: Sequence[str], most: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        """Here everybody's can be followed: one writer at a time makes positions the order in which all was stored."""
        with self._reading() as connection:
            bounds = (position, to_json(kinds), most)
            if owner is None:
                rows = connection.execute(_sql("events_since"), bounds).fetchall()
            else:
                rows = connection.execute(_sql("events_since_of"), (*bounds, owner)).fetchall()
        return [(row[0], readable(row[1], row[2:])) for row in rows]

    def all_up_to(self, position: int, *, most: int, owner: str | None = None) -> Iterator[tuple[int, Event | None]]:
        before = 0
        while True:
            with self._reading() as connection:
                rows = connection.execute(_sql("all_events"), (before, position, owner, most)).fetchall()
            yield from ((row[0], readable(row[1], row[2:])) for row in rows)
            if len(rows) < most:
                return
            before = rows[-1][0]

    def position(self, *, owner: str | None = None) -> int:
        with self._reading() as connection:
            if owner is None:
                return connection.execute(_sql("position")).get
            return connection.execute(_sql("position_of"), (owner,)).get

    def moment(self) -> contextlib.AbstractContextManager[None]:
        """All up to a position is of one moment by itself."""
        return contextlib.nullcontext()

    def owners(self, *, after: str | None = None, most: int | None = None) -> Sequence[str]:
        with self._reading() as connection:
            rows = connection.execute(_sql("owners"), (after, -1 if most is None else most)).fetchall()
        return [name for (name,) in rows]

    def version(self, stream: str) -> int:
        with self._reading() as connection:
            return self._version(connection, self._stream_id(connection, stream))

    def receipt(self, stream: str, key: Key) -> Appended | None:
        with self._reading() as connection:
            return self._receipt(connection, self._stream_id(connection, stream), key)

    def receipts(self, stream: str, *, after: str | None = None, most: int) -> Sequence[Receipt]:
        with self._reading() as connection:
            bounds = (self._stream_id(connection, stream), after, most)
            rows = connection.execute(_sql("receipts"), bounds).fetchall()
        return [receipt_of(stream, key, row) for key, *row in rows]

    def all_receipts(self, *, most: int) -> Iterator[Receipt]:
        behind: tuple[int, str] = (0, "")
        while True:
            with self._reading() as connection:
                rows = connection.execute(_sql("all_receipts"), (*behind, most)).fetchall()
            yield from (receipt_of(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < most:
                return
            behind = rows[-1][0], rows[-1][2]

    @contextlib.contextmanager
    def adopting(self) -> Generator[_Adoption]:
        try:
            with self._writing() as connection:
                yield _Adoption(connection)
        except BaseException:
            self._stream_ids.clear()  # numbers that were read inside will be given to other streams
            raise

    def streams(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[str]:
        bounds = (prefix, f"{prefix}\U0010ffff", owner, -1 if most is None else most)
        with self._reading() as connection:
            rows = connection.execute(_sql("stream_names"), bounds).fetchall()
        return [name for (name,) in rows]

    def begun(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[Begun]:
        bounds = (prefix, f"{prefix}\U0010ffff", owner, -1 if most is None else most)
        with self._reading() as connection:
            rows = connection.execute(_sql("begun"), bounds).fetchall()
        return [begun_of(row) for row in rows]

    def summary(self, stream: str) -> Summary:
        with self._reading() as connection:
            rows = connection.execute(_sql("summary"), (self._stream_id(connection, stream),)).fetchall()
        return Summary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def keep_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with self._writing() as connection:
            number = self._stream_id(connection, stream)
            connection.execute(_sql("keep_snapshot"), (number, snapshot.seq, snapshot.fold, snapshot.body))

    def snapshot(self, stream: str, *, fold: int, until: int | None = None) -> Snapshot | None:
        with self._reading() as connection:
            bounds = (self._stream_id(connection, stream), fold, _FOREVER if until is None else until)
            row = connection.execute(_sql("snapshot"), bounds).fetchone()
        return Snapshot(seq=row[0], fold=row[1], body=row[2]) if row else None

    def published(self, stream: str) -> dict[str, Published]:
        with self._reading() as connection:
            rows = connection.execute(_sql("published"), (self._stream_id(connection, stream),)).fetchall()
        return {path: Published(digest=digest, seq=seq) for path, digest, seq in rows}

    def mark_published(self, stream: str, path: str, shown: Published) -> None:
        with self._writing() as connection:
            number = self._stream_id(connection, stream)
            connection.execute(_sql("mark_published"), (number, path, shown.digest, shown.seq))

    def allow(self, window: Window, amount: int, *, most: int) -> bool:
        with self._writing() as connection:
            connection.execute(_sql("forget_allowances"), (window.name, window.stale))
            row = connection.execute(_sql("allow"), (window.name, window.stamp, amount, most)).fetchone()
        return row is not None

    def settle(self, window: Window, amount: int) -> None:
        with self._writing() as connection:
            connection.execute(_sql("settle"), (window.name, window.stamp, amount))

    def used(self, window: Window) -> int:
        with self._reading() as connection:
            return connection.execute(_sql("used"), (window.name, window.stamp)).get or 0

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None

    @property
    def refusal(self) -> str:
        """Why this store takes no writes; empty when it does."""
        return self._refusal

    # -- transactions --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Generator[_Connection]:
        with self._lock:
            connection = self._usable()
            if self._refusal:
                raise ReadOnly(place=str(self.path), reason=self._refusal)
            if _identity(self.path) != self._opened:
                raise NotDurable(place=str(self.path), reason="it was removed, or replaced, while it was in use")
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    self._refuse_newer(connection)
                    yield connection
                except BaseException:
                    _roll_back(connection)
                    raise
                connection.execute("COMMIT")
            except apsw.Error as error:
                translated = self._translated(error, connection, writing=True)
                with contextlib.suppress(apsw.Error):
                    _roll_back(connection)
                raise translated from error

    @contextlib.contextmanager
    def _reading(self) -> Generator[_Connection]:
        with self._lock:
            connection = self._usable()
            try:
                yield connection
            except apsw.Error as error:
                raise self._translated(error, connection, writing=False) from error
            except UnicodeDecodeError as error:
                raise Damaged(place=str(self.path), reason=str(error)) from error

    def _usable(self) -> _Connection:
        if self._closed:
            raise Closed
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _translated(self, error: apsw.Error, connection: _Connection, *, writing: bool) -> StoreError:
        """What the caller can act on. After a write that the disk did not confirm, this store is done writing.

        Only the disk can fail to confirm: a value that is too large or a row that a rule forbids says nothing of it.
        """
        place, reason = str(self.path), str(error)
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=place, seconds=self._busy_seconds)
        if is_full(error, connection):
            return StorageFull(place=place)
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            self._refusal = f"the file is damaged ({reason})"
            return Damaged(place=place, reason=reason)
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError) and not writing:
            return UnsafeStorage(place=place, reason=reason if self._may_write() else _MAY_NOT_WRITE)
        if isinstance(error, apsw.ReadOnlyError):
            return ReadOnly(place=place, reason=reason)
        failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
        if failed_io and (writing or getattr(error, "extendedresult", 0) not in _UNREADABLE):
            self._refusal = f"an earlier write was not confirmed by the disk ({reason}); open it again"
            return NotDurable(place=place, reason=reason)
        if writing:  # the disk has no part in it: this one write was not taken, the next one may be
            return StoreError(f"{place} did not take this ({reason}): nothing was stored")
        return Damaged(place=place, reason=reason)

    def _may_write(self) -> bool:
        return all(os.access(place, os.W_OK) for place in (self.path.parent, self.path))

    def _stream_id(self, connection: _Connection, stream: str, *, create: bool = False) -> int:
        """Remembered only after the transaction that made it has committed (see `append`)."""
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
    def _version(connection: _Connection, number: int) -> int:
        return connection.execute(_sql("version"), (number,)).get

    @staticmethod
    def _receipt(connection: _Connection, number: int, key: Key) -> Appended | None:
        row = connection.execute(_sql("receipt"), (number, key.value)).fetchone()
        if row is None:
            return None
        request, first, last, at = row
        if request != key.request:
            raise KeyReused(key=key.named)
        return Appended(first=first, last=last, at=from_microseconds(at), repeated=True)

    # -- opening -------------------------------------------------------------------------------------------

    def _connect(self) -> _Connection:
        self._refuse_lost(lambda: _size(self.path) == 0)
        create_private(self.path)
        try:
            connection = cast(_Connection, apsw.Connection(str(self.path)))
        except apsw.Error as error:
            raise UnsafeStorage(place=str(self.path), reason=str(error)) from error
        with self._closed_unless_ours(connection):
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            self._refuse_foreign(connection)
            set_journal_mode(connection, place=self.path, busy_seconds=self._busy_seconds)
            for pragma, value in _PRAGMAS:
                connection.pragma(pragma, value)
            self._migrate(connection)
        self._opened = _identity(self.path)
        return connection

    @contextlib.contextmanager
    def _closed_unless_ours(self, connection: _Connection) -> Generator[None]:
        """What is found wrong with a database that has just been opened is said, and it is not kept open."""
        try:
            yield
        except apsw.Error as error:
            translated = self._translated(error, connection, writing=False)
            connection.close()
            raise translated from error
        except StoreError:
            connection.close()
            raise

    def _refuse_foreign(self, connection: _Connection) -> None:
        """In this order: another process may be making the store, and its tables come with our mark in one commit."""
        if _tables(connection) and connection.pragma("application_id") != APPLICATION_ID:
            raise UnsafeStorage(place=str(self.path), reason="it is a database of another program")
        self._refuse_lost(lambda: not _tables(connection))

    def _refuse_lost(self, is_empty: Callable[[], bool]) -> None:
        """A journal that is begun where one is gone would take its pages over. Asked before SQLite is, too: beside an
        empty file it takes the log away, which may hold all that was written last.
        """
        if left := _left_of(self.path, is_empty):
            reason = (
                f"it is missing or empty, and {left} is of a memory that was here (to begin anew, move all of it away)"
            )
            raise Damaged(place=str(self.path), reason=reason)

    def _migrate(self, connection: _Connection) -> None:
        """Bring the file to our schema, a committed step at a time; of several processes, each step has one winner."""
        while (have := int(connection.pragma("user_version"))) < len(MIGRATIONS):
            connection.execute("BEGIN IMMEDIATE")
            try:
                if connection.pragma("user_version") == have:
                    connection.execute(script(MIGRATIONS[have]))
                    connection.pragma("application_id", APPLICATION_ID)
                    connection.pragma("user_version", have + 1)
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise
        self._is_newer(have)

    def _refuse_newer(self, connection: _Connection) -> None:
        """A newer inmind may have come since this was opened."""
        if self._is_newer(int(connection.pragma("user_version"))):
            raise ReadOnly(place=str(self.path), reason=self._refusal)

    def _is_newer(self, have: int) -> bool:
        if have > len(MIGRATIONS):
            self._refusal = f"it has schema {have}, this inmind knows {len(MIGRATIONS)}: upgrade inmind to write"
        return have > len(MIGRATIONS)

    def _say_if_slow(self) -> None:
        if journal_mode(library := apsw.sqlite_lib_version()) != "wal":
            log.warning(
                "SQLite %s can damage a write-ahead log that two processes share: %s uses the slower rollback journal; "
                "install apsw 3.51.3 or later",
                library,
                self.path,
            )


class _Adoption:
    """One transaction. It keeps a number for each stream that it met, and nothing of their events."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._met: dict[str, tuple[int, int]] = {}

    def add(self, event: Event) -> Adopted:
        number, version = self._stream(event.stream)
        row = as_row(event)
        if event.seq == version + 1:
            self._connection.execute(_sql("add_event"), (number, *row))
            position = self._connection.last_insert_rowid()
            if event.seq == 1:
                self._connection.execute(_sql("belong"), (number, owner_from_first_event(event.stream, event.payload)))
            self._met[event.stream] = number, event.seq
            return Adopted(position, new=True)
        position, *there = self._connection.execute(_sql("event_at"), (number, event.seq)).fetchone() or (0,)
        if not there or as_row(event_of(event.stream, there)) != row:
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=version)
        return Adopted(position, new=False)

    def keep(self, receipt: Receipt) -> bool:
        number, version = self._stream(receipt.stream)
        key, appended = receipt.key, receipt.appended
        row = self._connection.execute(_sql("receipt"), (number, key.value)).fetchone()
        if row is None:
            stood = (key.request, appended.first, appended.last, to_microseconds(appended.at))
            self._connection.execute(_sql("add_key"), (number, key.value, *stood))
        elif receipt_of(receipt.stream, key.value, row) != receipt:
            raise Conflict(stream=receipt.stream, expected=appended.last, actual=version)
        return row is None

    def _stream(self, name: str) -> tuple[int, int]:
        """Its number in this file, and its version."""
        if (met := self._met.get(name)) is None:
            row = self._connection.execute(_sql("stream_id"), (name,)).fetchone()
            number = row[0] if row else self._connection.execute(_sql("add_stream"), (name,)).get
            met = self._met[name] = number, self._connection.execute(_sql("version"), (number,)).get
        return met


_PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "full"),
    ("foreign_keys", True),
    ("trusted_schema", False),
    ("cell_size_check", True),
    ("secure_delete", True),
    ("journal_size_limit", 1_048_576),
)


def _left_of(journal: Path, is_empty: Callable[[], bool]) -> str:
    """Nothing of this is made before the tables of the journal are committed: so one that is empty, and still is after
    something of it was seen, is not just being made by somebody else.
    """
    left = next(_made_later(journal.parent), "") if is_empty() else ""
    return left if left and is_empty() else ""


def _made_later(home: Path) -> Iterator[str]:
    """What memory alone puts into a home. Pages prove nothing, since a person may have begun them, and neither do
    sessions of the older kind: nobody locks their folders.
    """
    if _size(home / INDEX) > 0:
        yield INDEX
    for lock in chain(home.glob(f"{RESOURCES}/*/{LOCK}"), home.glob(f"{SESSIONS}/*/*/{LOCK}")):
        if lock.resolve().is_relative_to(home.resolve()):  # a link leads to somebody else's
            yield lock.parent.relative_to(home).as_posix()


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is: one that was removed goes on taking writes from whoever has it open, and keeps none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _size(path: Path) -> int:
    """Of a file; below 0 for what is none, and 0 where there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _tables(connection: _Connection) -> int:
    return connection.execute("SELECT count(*) FROM sqlite_schema").get


def _roll_back(connection: _Connection) -> None:
    """SQLite has rolled back by itself after some errors; a transaction left open would block every other writer."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
