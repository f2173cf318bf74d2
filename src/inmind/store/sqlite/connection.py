"""Opening of SQLite database files: journal mode, pragmas, and checks that the file is a memory."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import apsw

from inmind.core.paths import INDEX, RESOURCES, SESSIONS
from inmind.errors import StoreBusy
from inmind.store.atomic_files import LOCK_FILE
from inmind.store.named_sql import load_script

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

_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


def is_disk_full(error: apsw.Error, connection: Any) -> bool:
    """Was there no room on the disk? SQLite tells that in two ways."""
    failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
    return isinstance(error, apsw.FullError) or (failed_io and connection.system_errno in _DISK_FULL_ERRORS)


def find_remains(journal: Path) -> str:
    """What shows that a journal which is missing or empty was there once; empty if it is there, or never was."""
    return find_remains_if_empty(journal, lambda: file_size(journal) == 0)


class SqliteCursor(Protocol):
    def fetchall(self) -> list[tuple[Any, ...]]: ...
    def fetchone(self) -> tuple[Any, ...] | None: ...
    @property
    def get(self) -> Any: ...


class SqliteConnection(Protocol):
    """The part of apsw's connection that is used here; its own annotations need a newer Python than ours."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def system_errno(self) -> int: ...
    def execute(self, statements: str, bindings: Sequence[object] | None = None) -> SqliteCursor: ...
    def last_insert_rowid(self) -> int: ...
    def pragma(self, name: str, value: object = None) -> Any: ...
    def set_busy_timeout(self, milliseconds: int) -> None: ...
    def close(self) -> None: ...


PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "full"),
    ("foreign_keys", True),
    ("trusted_schema", False),
    ("cell_size_check", True),
    ("secure_delete", True),
    ("journal_size_limit", 1_048_576),
)


def find_remains_if_empty(journal: Path, is_empty: Callable[[], bool]) -> str:
    """Nothing of this is made before the tables of the journal are committed: so one that is empty, and still is after
    something of it was seen, is not just being made by somebody else.
    """
    left = next(_files_made_after_journal(journal.parent), "") if is_empty() else ""
    return left if left and is_empty() else ""


def _files_made_after_journal(home: Path) -> Iterator[str]:
    """What memory alone puts into a home. Pages prove nothing, since a person may have begun them, and neither do
    sessions of the older kind: nobody locks their folders.
    """
    if file_size(home / INDEX) > 0:
        yield INDEX
    for lock in chain(home.glob(f"{RESOURCES}/*/{LOCK_FILE}"), home.glob(f"{SESSIONS}/*/*/{LOCK_FILE}")):
        if lock.resolve().is_relative_to(home.resolve()):  # a link leads to somebody else's
            yield lock.parent.relative_to(home).as_posix()


def migrate(connection: SqliteConnection) -> int:
    """Run the missing migrations and return the schema version of the file.

    Each migration is one transaction. If several processes migrate at once, one of them runs each step.
    """
    while (version := int(connection.pragma("user_version"))) < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.pragma("user_version") == version:
                connection.execute(load_script(MIGRATIONS[version]))
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version + 1)
            connection.execute("COMMIT")
        except BaseException:
            roll_back(connection)
            raise
    return version


def newer_schema(version: int) -> str:
    """Return why a schema of this version cannot be written; empty if it can."""
    if version <= len(MIGRATIONS):
        return ""
    return f"it has schema {version}, this inmind knows {len(MIGRATIONS)}: upgrade inmind to write"


def file_identity(path: Path) -> tuple[int, int] | None:
    """Which file it is: one that was removed goes on taking writes from whoever has it open, and keeps none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def file_size(path: Path) -> int:
    """Of a file; below 0 for what is none, and 0 where there is nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def count_tables(connection: SqliteConnection) -> int:
    return connection.execute("SELECT count(*) FROM sqlite_schema").get


def roll_back(connection: SqliteConnection) -> None:
    """SQLite has rolled back by itself after some errors; a transaction left open would block every other writer."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
