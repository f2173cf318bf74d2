"""A home's databases, for whoever only looks: not a byte is made, migrated, repaired or checkpointed by it.

Reading is no such thing to SQLite by itself. It makes the files of a write-ahead log that are not there, recovers the
log's index that a killed process has left, and folds the log into the database when the last one leaves. What keeps it
from that depends on what stands beside the database:

- the log's index (-shm): somebody has it open, or was killed. It is read and never written; where nobody alive vouches
  for it, SQLite builds another one in memory.
- a log without an index: whoever has the database for himself keeps one in memory. That takes a lock, and no byte.
- neither: nobody writes, so it is read as a file that does not change. `undisturbed` looks again where it did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw

from inmind.core.frozen import frozen
from inmind.errors import UnsafeStorage
from inmind.search.index.base import AT_A_TIME, VERSION
from inmind.search.index.indexer import FOLLOWED, Read
from inmind.search.index.sqlite import SqliteIndex
from inmind.store.named_sql import load_queries
from inmind.store.protocol import Snapshot, Store
from inmind.store.sqlite import MIGRATIONS, SqliteStore, journal_mode

BUSY_SECONDS = 5.0

MAX_FLAWS = 20
"""That are told of one file: a damaged page can make thousands."""

MAX_ATTEMPTS = 3
"""At a database to which somebody began to write, or ceased to, while it was looked at."""

_REFUSAL = "it is only looked at"
_EXCLUSIVE, _EXISTING_SHM, _IMMUTABLE, _READ_ONLY = "mode=rw", "mode=ro&readonly_shm=1", "immutable=1", "mode=ro"
_sql = load_queries("index")

T = TypeVar("T")


@frozen
class ReadMode:
    """How a database can be read without a trace, by what stands beside it."""

    path: Path
    access: str
    fingerprint: tuple[int, int]
    """Of the file: what is read as one that does not change had better not."""

    @classmethod
    def choose(cls, path: Path) -> ReadMode:
        return cls(path, _choose_access(path), _fingerprint(path))

    @property
    def is_still_valid(self) -> bool:
        """Whether what was read by it can be relied on: nobody has begun to write to what was taken to stand still."""
        now = ReadMode.choose(self.path)
        return now.access == self.access and (self.access != _IMMUTABLE or now.fingerprint == self.fingerprint)


def read_undisturbed(path: Path, read: Callable[[ReadMode], T]) -> T | None:
    """What is message by a look that nobody's coming or going has disturbed; None where there was none in LOOKS."""
    for _ in range(MAX_ATTEMPTS):
        mode = ReadMode.choose(path)
        result = read(mode)
        if mode.is_still_valid:
            return result
    return None


class ReadOnlyStore(SqliteStore):
    """The journal of a home as it is. What would write is refused, and no snapshot is believed."""

    def __init__(self, mode: ReadMode) -> None:
        self._mode = mode
        super().__init__(mode.path, busy_seconds=BUSY_SECONDS)

    @property
    def schema(self) -> int:
        with self._read_connection() as connection:
            return int(connection.pragma("user_version"))

    @property
    def known_schema(self) -> int:
        return len(MIGRATIONS)

    @contextmanager
    def read_transaction(self) -> Generator[None]:
        """Everything that is read inside is of one moment, whatever others write meanwhile.

        Not for long: what they have written since is kept beside the database until it is over.
        """
        with self._read_connection() as connection:
            connection.execute("BEGIN")
            try:
                yield
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def flaws(self) -> list[str]:
        """What SQLite finds wrong with its own file, and rows that refer to none."""
        with self._read_connection() as connection:
            found = _flaws(connection)
            orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [*found, *(f"row {row} of {table} refers to none of {of}" for table, row, of, _ in orphans)][:MAX_FLAWS]

    def snapshot(self, stream: str, *, fold: int, until: int | None = None) -> Snapshot | None:  # noqa: ARG002 -- the port's
        """None: what is to be compared with a snapshot must not have begun with it."""
        return None

    def stored_snapshot(self, stream: str, *, fold: int) -> Snapshot | None:
        return super().snapshot(stream, fold_version=fold)

    def _connect(self) -> Any:
        self._refusal = _REFUSAL
        connection = _connect_readonly(self._mode)
        with self._close_on_error(connection):
            self._refuse_foreign_database(connection)
        return connection


@frozen(kw_only=True)
class IndexStatus:
    """How far an index is."""

    is_current: bool
    """Of our shape, and made of this journal."""
    behind: int
    """Events that it has not taken in yet, of at most AT_A_TIME."""
    crystals: int
    embedders: dict[str, int]
    """Which have made vectors, and how many crystals each has been through."""


class ReadOnlyIndex(SqliteIndex):
    """The index of a home as it is: not caught up, and not made anew."""

    def __init__(self, mode: ReadMode, store: Store, read: Read) -> None:
        self._mode = mode
        super().__init__(mode.path, store, read, busy_seconds=BUSY_SECONDS)

    def status(self) -> IndexStatus:
        with self._using() as connection:
            if connection.pragma("user_version") != VERSION or not self._is_ours(connection):
                return IndexStatus(is_current=False, behind=0, crystals=0, embedders={})
            upto = connection.execute(_sql("upto")).get
            return IndexStatus(
                is_current=True,
                behind=len(self._store.events_since(upto, kinds=FOLLOWED, limit=AT_A_TIME)),
                crystals=connection.execute(_sql("many_crystals")).get,
                embedders=dict(connection.execute(_sql("embedders")).fetchall()),
            )

    def flaws(self) -> list[str]:
        with self._using() as connection:
            return _flaws(connection)

    def _connect(self) -> Any:
        return _connect_readonly(self._mode)


def _choose_access(path: Path) -> str:
    """Where its log cannot be trusted there is none, and none is needed."""
    if journal_mode(apsw.sqlite_lib_version()) != "wal" or _size(path, "-journal"):
        return _READ_ONLY
    if Path(f"{path}-shm").exists():
        return _EXISTING_SHM
    return _EXCLUSIVE if _size(path, "-wal") else _IMMUTABLE


def _connect_readonly(mode: ReadMode) -> Any:
    path, exclusive = mode.path, mode.access == _EXCLUSIVE
    if not path.is_file():  # whoever opens a pipe to read it waits for ever
        raise UnsafeStorage(place=str(path), reason="it is not a plain file")
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


def _size(path: Path, suffix: str) -> int:
    try:
        return os.stat(f"{path}{suffix}").st_size
    except OSError:
        return 0


def _fingerprint(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
