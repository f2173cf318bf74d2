"""Reads the SQLite databases of a home without any write.

Nothing is created, migrated, recovered or checkpointed. A normal SQLite connection writes even for reads: it creates
missing files of the write-ahead log, recovers the log's index after a killed process, and checkpoints the log when the
last connection closes. How to prevent that depends on the files next to the database:

- the log's index (-shm) exists: a process has the database open, or was killed. The index is read and never written; if
  no live process holds it, SQLite builds another one in memory.
- a log without an index: an exclusive connection keeps the index in memory. That takes a lock, but writes no byte.
- neither: there is no writer, so the database is read as an immutable file. `read_undisturbed` reads again if it
  changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import apsw

from inmind.core.frozen import frozen
from inmind.errors import UnsafeStorage
from inmind.search.extract import MessageReader
from inmind.search.index.base import BATCH_SIZE
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.search.index.sqlite import SqliteIndex
from inmind.store.protocol import Snapshot, Store
from inmind.store.rows import load_queries
from inmind.store.sqlite.connection import file_size, journal_mode
from inmind.store.sqlite.store import SqliteStore

BUSY_SECONDS = 5.0

MAX_FLAWS = 20
"""Maximum number of errors listed for a file: one damaged page can cause thousands."""

MAX_ATTEMPTS = 3
"""Attempts to read a database without a writer starting or ending in between."""

_EXCLUSIVE, _EXISTING_SHM, _IMMUTABLE, _READ_ONLY = "mode=rw", "mode=ro&readonly_shm=1", "immutable=1", "mode=ro"
_sql = load_queries("index")

T = TypeVar("T")


class ReadMode(NamedTuple):
    """A way to open a database without writing, chosen by the files next to it."""

    path: Path
    access: str
    """URI parameters of the connection."""
    fingerprint: tuple[int, int] | None
    """Size and modification time of an immutable file: the read is valid only if they do not change."""

    @classmethod
    def choose(cls, path: Path) -> ReadMode:
        """Without a safe write-ahead log a plain read-only mode is enough."""
        if journal_mode(apsw.sqlite_lib_version()) != "wal" or file_size(Path(f"{path}-journal")) > 0:
            return cls(path, _READ_ONLY, None)
        if Path(f"{path}-shm").exists():
            return cls(path, _EXISTING_SHM, None)
        if file_size(Path(f"{path}-wal")) > 0:
            return cls(path, _EXCLUSIVE, None)
        try:
            status = os.stat(path)
        except OSError:
            return cls(path, _IMMUTABLE, None)
        return cls(path, _IMMUTABLE, (status.st_size, status.st_mtime_ns))


def read_undisturbed(path: Path, read: Callable[[ReadMode], T]) -> T | None:
    """Result of the first undisturbed read; None after MAX_ATTEMPTS disturbed ones.

    A read is disturbed if a writer appears or disappears.
    """
    for _ in range(MAX_ATTEMPTS):
        mode = ReadMode.choose(path)
        result = read(mode)
        if ReadMode.choose(path) == mode:
            return result
    return None


class ReadOnlyStore(SqliteStore):
    """The journal of a home, read-only.

    Ignores snapshots, because they are checked against the events.
    """

    def __init__(self, mode: ReadMode) -> None:
        self._mode = mode
        super().__init__(mode.path, busy_seconds=BUSY_SECONDS)

    @property
    def schema(self) -> int:
        with self._read_connection() as connection:
            return int(connection.pragma("user_version"))

    @contextmanager
    def read_transaction(self) -> Generator[None]:
        """All reads in the block see one state of the database.

        Keep it short: the write-ahead log cannot shrink during it.
        """
        with self._read_connection() as connection:
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def flaws(self) -> list[str]:
        """Errors that SQLite finds in the file, and rows with a dangling foreign key."""
        with self._read_connection() as connection:
            errors = _flaws(connection)
            orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [*errors, *(f"row {row} of {table} refers to none of {of}" for table, row, of, _ in orphans)][:MAX_FLAWS]

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:  # noqa: ARG002 -- the signature of the protocol
        """None: a state that is compared with a snapshot must not be derived from it."""
        return None

    def stored_snapshot(self, stream: str, *, fold: int) -> Snapshot | None:
        return super().snapshot(stream, fold_version=fold)

    def _connect(self) -> Any:
        connection = _connect_readonly(self._mode)
        with self._close_on_error(connection):
            self._refuse_foreign_database(connection)
        return connection


@frozen(kw_only=True)
class IndexStatus:
    """State of an index that has the current schema version and belongs to this journal."""

    events_behind: int
    """Events that it has not taken in yet, of at most BATCH_SIZE."""
    crystals: int
    embedders: dict[str, int]
    """Number of embedded crystals by embedder."""


class ReadOnlyIndex(SqliteIndex):
    """The index of a home, read-only: not caught up and not rebuilt."""

    def __init__(self, mode: ReadMode, store: Store, read: MessageReader) -> None:
        self._mode = mode
        super().__init__(mode.path, store, read, busy_seconds=BUSY_SECONDS)

    def status(self) -> IndexStatus | None:
        """Its state; None if it has another schema version or belongs to another journal."""
        with self._connected() as connection:
            if not self._matches_journal(connection):
                return None
            upto = connection.execute(_sql("position")).get
            return IndexStatus(
                events_behind=len(self._store.events_since(upto, kinds=INDEXED_KINDS, limit=BATCH_SIZE)),
                crystals=connection.execute(_sql("count_crystals")).get,
                embedders=dict(connection.execute(_sql("embedders")).fetchall()),
            )

    def flaws(self) -> list[str]:
        with self._connected() as connection:
            return _flaws(connection)

    def _connect(self) -> Any:
        return _connect_readonly(self._mode)


def _connect_readonly(mode: ReadMode) -> Any:
    path, exclusive = mode.path, mode.access == _EXCLUSIVE
    if not path.is_file():  # opening a pipe would block
        raise UnsafeStorage(place=str(path), reason="it is not a regular file")
    flags = apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READWRITE if exclusive else apsw.SQLITE_OPEN_READONLY)
    try:
        connection: Any = apsw.Connection(f"file:{quote(str(path))}?{mode.access}", flags=flags)
    except apsw.Error as error:
        raise UnsafeStorage(place=str(path), reason=str(error)) from error
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    for pragma, value in (("query_only", True), ("trusted_schema", False), ("cell_size_check", True)):
        connection.pragma(pragma, value)
    if exclusive:
        connection.pragma("locking_mode", "exclusive")
    return connection


def _flaws(connection: Any) -> list[str]:
    rows: Sequence[tuple[str]] = connection.execute(f"PRAGMA integrity_check({MAX_FLAWS})").fetchall()
    return [flaw for (flaw,) in rows if flaw != "ok"]
