"""Opening of SQLite files: journal mode, pragmas, migrations, and checks of the file."""

from __future__ import annotations

import errno
import logging
import os
import stat
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import apsw

from inmind.core.encoding import to_json
from inmind.core.json import is_list
from inmind.core.paths import INDEX, RESOURCES, SESSIONS
from inmind.errors import Damaged, StoreBusy, UnsafeStorage
from inmind.store.atomic_files import LOCK_FILE
from inmind.store.file_operations import create_private_file
from inmind.store.rows import load_script

log = logging.getLogger("inmind")

SqliteConnection = Any
"""A connection of apsw, whose own annotations need a newer Python."""

APPLICATION_ID = 0x696E6D64
"""Written into the file's header, to distinguish a memory from databases of other programs."""


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
    "0012_note_withdrawals",
)
"""Named migrations, appended and never edited. The file's user_version is the number of those applied."""

_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def journal_mode(library: str) -> str:
    """Return WAL, or the rollback journal if this version of SQLite has the WAL-reset bug.

    The bug (two connections checkpoint and write at the same instant, which can corrupt the file) was fixed in 3.51.3
    and in the maintenance releases 3.50.7 and 3.44.6.
    """
    version = tuple(int(number) for number in library.split("."))
    sound = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    return "wal" if sound else "delete"


def open_database(path: Path, *, busy_seconds: float) -> SqliteConnection:
    """Open a file that only its owner can read, created if it does not exist."""
    create_private_file(path)
    try:
        connection: SqliteConnection = apsw.Connection(str(path))
    except apsw.Error as error:
        raise UnsafeStorage(place=str(path), reason=str(error)) from error
    connection.set_busy_timeout(int(busy_seconds * 1000))
    return connection


def set_up_connection(
    connection: SqliteConnection, pragmas: Iterable[tuple[str, Any]], *, place: Path, busy_seconds: float
) -> None:
    """Set the journal mode, then the pragmas.

    The mode needs exclusive access, for which SQLite's busy timeout does not wait.
    """
    mode = journal_mode(apsw.sqlite_lib_version())
    deadline = time.monotonic() + busy_seconds
    while True:
        with suppress(apsw.BusyError):
            if connection.pragma("journal_mode", mode) == mode:
                break
        if time.monotonic() > deadline:
            raise StoreBusy(place=str(place), seconds=busy_seconds)
        time.sleep(0.01)
    for pragma, value in pragmas:
        connection.pragma(pragma, value)


def is_disk_full(error: apsw.Error, connection: Any) -> bool:
    """True if the disk was full, which SQLite reports in two ways."""
    failed_io = isinstance(error, apsw.IOError | apsw.CantOpenError)
    return isinstance(error, apsw.FullError) or (failed_io and connection.system_errno in _DISK_FULL_ERRORS)


PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "full"),
    ("foreign_keys", True),
    ("trusted_schema", False),
    ("cell_size_check", True),
    ("secure_delete", True),
    ("journal_size_limit", 1_048_576),
)


def find_remains(journal: Path, is_empty: Callable[[], bool] | None = None) -> str:
    """Return a file that proves that a journal, now missing or empty, was there; else empty.

    These files are created only after the journal's tables were committed. So a journal that is still empty after one
    of them was found is not just being created by another process.
    """
    is_empty = is_empty or (lambda: file_size(journal) == 0)
    remains = next(_files_made_after_journal(journal.parent), "") if is_empty() else ""
    return remains if remains and is_empty() else ""


def _files_made_after_journal(home: Path) -> Iterator[str]:
    """Yield files that only inmind creates in a home.

    Pages prove nothing, since a person may have written them, and neither do sessions of older versions, whose folders
    have no lock file.
    """
    if file_size(home / INDEX) > 0:
        yield INDEX
    for lock in chain(home.glob(f"{RESOURCES}/*/{LOCK_FILE}"), home.glob(f"{SESSIONS}/*/*/{LOCK_FILE}")):
        if lock.resolve().is_relative_to(home.resolve()):  # a link may lead to another home
            yield lock.parent.relative_to(home).as_posix()


def migrate(connection: SqliteConnection) -> int:
    """Run the missing migrations and return the schema version of the file.

    Each migration is one transaction. If several processes migrate at once, one of them runs each step.
    """
    while (version := int(connection.pragma("user_version"))) < len(MIGRATIONS):
        with transaction(connection):
            if connection.pragma("user_version") == version:
                connection.execute(load_script(MIGRATIONS[version]))
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version + 1)
    return version


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode.

    A removed file still accepts writes of processes that have it open, and loses them.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def file_size(path: Path) -> int:
    """Return the size of a file; 0 if it does not exist, -1 if it is not a regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def refuse_lost_journal(path: Path, is_empty: Callable[[], bool] | None = None) -> None:
    """Refuse to start a new journal if an earlier one was lost: it would overwrite its pages.

    Also call it before SQLite opens the file: next to an empty file it deletes the write-ahead log, which may hold the
    last writes.
    """
    if remains := find_remains(path, is_empty):
        reason = (
            f"it is missing or empty, but {remains} belongs to a memory that was here (to start over, move it away)"
        )
        raise Damaged(place=str(path), reason=reason)


def warn_if_no_wal(path: Path) -> None:
    if journal_mode(library := apsw.sqlite_lib_version()) != "wal":
        log.warning(
            "SQLite %s can corrupt a write-ahead log shared by two processes: %s uses the slower rollback journal; "
            "install apsw 3.51.3 or later",
            library,
            path,
        )


def count_tables(connection: SqliteConnection) -> int:
    return connection.execute("SELECT count(*) FROM sqlite_schema").get


def lists_as_json(values: Iterable[object]) -> list[object]:
    """Return the values of a statement; it reads a list with `json_each`."""
    return [to_json(value) if is_list(value) else value for value in values]


@contextmanager
def transaction(connection: SqliteConnection) -> Generator[None]:
    """Commit the block, or roll it back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(apsw.Error):
            roll_back(connection)
        raise


def roll_back(connection: SqliteConnection) -> None:
    """Roll back unless SQLite did: an open transaction would block every other writer."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
