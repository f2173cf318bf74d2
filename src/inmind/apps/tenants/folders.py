"""Tenants on a disk: each is a home, in a folder of homes.

Whoever can write to the folder is an operator; a tenant is handed its home, and nothing else. A home is erased in one
transaction of its journal, in which all tables go and a mark comes: nobody can open it any more, and who has it open
can write nothing more to it. The files follow, that journal last, so that whoever is killed meanwhile leaves what is
still listed and opens as nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import unquote

import apsw

from inmind.core.paths import DATABASE, as_file, checked_home
from inmind.errors import Damaged, InmindError, InvalidInput, NotDurable, StorageFull, StoreBusy, UnsafeStorage
from inmind.memory.bundle.staging import aside, sweep
from inmind.store.file_operations import fsync_folder, make_private_folder, translate_os_error
from inmind.store.named_sql import load_queries
from inmind.store.sqlite.connection import APPLICATION_ID, is_disk_full
from inmind.store.sqlite.store import BUSY_SECONDS, SqliteStore
from inmind.store.tenants import (
    EMPTY_INVENTORY,
    Inventory,
    MemoryLocation,
    Tenant,
    Tenants,
    check_tenant_name,
    name_exists,
    tenant_not_found,
)

ERASED = 0x696E6D78
"""In the header of a journal instead of ours: what was in it is gone for good."""

_TRIES = 3
_sql = load_queries("tenants")


class TenantHomes:
    """The Tenants of one folder."""

    def __init__(self, folder: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._folder = checked_home(folder).absolute()
        self._busy_seconds = busy_seconds
        if os.path.lexists(self._folder / DATABASE):
            expected = "a folder that homes are in, and not a home itself"
            raise InvalidInput(field="home", value=str(folder), expected=expected)

    @property
    def place(self) -> str:
        return str(self._folder)

    def list_all(self) -> Sequence[Tenant]:
        found = [Tenant(name=name, can_log_in=True, bytes=_size(home)) for name, home in self._homes()]
        return sorted(found, key=lambda one: one.name)

    @contextmanager
    def open_as_operator(self, name: str) -> Generator[Path]:
        yield self._home(check_tenant_name(name))

    def inventory(self, name: str) -> Inventory:
        home = self._home(check_tenant_name(name))
        with self._journal(home) as journal:
            if not _is_erased(journal):
                return _inventory(journal)
        _remove(home)
        raise tenant_not_found(name, self.place, (one for one, _ in self._homes()))

    def identity(self, name: str) -> object:
        home = dict(self._homes()).get(check_tenant_name(name))
        return None if home is None else _identity(home)

    def is_within(self, others: Tenants, name: str) -> bool:
        folder, home = self._folder.resolve(), others.identity(name)
        return any(_identity(above) == home for above in (folder, *folder.parents) if above.exists())

    @contextmanager
    def create(self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None) -> Generator[Path]:
        home = self._folder / as_file(check_tenant_name(name))
        with suppress(OSError):
            os.rmdir(home)
        if os.path.lexists(home):
            if continues is None or not _is_home(home) or not continues(home):
                raise name_exists(name)
            sweep(home)
            yield home
            return
        make_private_folder(self._folder)
        with aside(home) as folder:
            yield (made := folder / "home")
            SqliteStore(made / DATABASE).close()
            try:
                os.rename(made, home)
            except OSError as error:
                raise name_exists(name) if os.path.lexists(home) else translate_os_error(error, home) from error
            fsync_folder(self._folder)

    def address(self, name: str, password: str) -> str:  # noqa: ARG002 -- a folder asks nobody for one
        return str(self._folder / as_file(check_tenant_name(name)))

    def admit(self, name: str, password: str) -> None:
        """Whoever may read the folder is let in."""

    def missing_features(self, name: str) -> str:  # noqa: ARG002 -- whatever it is called
        return ""

    @contextmanager
    def lock(self, name: str) -> Generator[_Held]:
        home = self._home(check_tenant_name(name))
        with self._journal(home, writing=True) as journal:
            yield (held := _Held(home, journal))
        if held.is_erased:
            _remove(home)

    def erase(self, name: str) -> Inventory:
        with self.lock(name) as held:
            was = held.inventory()
            held.erase()
        return was

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _homes(self) -> Iterator[tuple[str, Path]]:
        try:
            entries = sorted(os.scandir(self._folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate_os_error(error, self._folder) from error
        for entry in entries:
            with suppress(InvalidInput):
                name = check_tenant_name(unquote(entry.name))
                if as_file(name) == entry.name and _is_home(Path(entry.path)):
                    yield name, Path(entry.path)

    def _home(self, name: str) -> Path:
        """By the folder's own list: a disk may take another name for this one."""
        for there, home in self._homes():
            if there == name:
                return home
        with suppress(OSError):
            os.rmdir(self._folder / as_file(name))  # somebody was killed before this was gone too: it is empty
        raise tenant_not_found(name, self.place, (one for one, _ in self._homes()))

    @contextmanager
    def _journal(self, home: Path, *, writing: bool = False) -> Generator[Any]:
        """The journal, in one transaction. What was written is in the file itself afterwards, and not in a log beside
        it that is removed before it.
        """
        path = home.resolve() / DATABASE
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        connection: Any = None
        try:
            connection = apsw.Connection(str(path), flags=flags)
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            connection.pragma("synchronous", "full")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            if connection.pragma("application_id") not in (APPLICATION_ID, ERASED):
                raise UnsafeStorage(place=str(path), reason="it is a database of another program")
            yield connection
            connection.execute("COMMIT")
            if writing:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise self._translated(error, connection, path) from error
        finally:
            if connection is not None:
                connection.close()  # which takes back what was not committed

    def _translated(self, error: apsw.Error, connection: Any, path: Path) -> InmindError:
        place, reason = str(path), str(error)
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=place, seconds=self._busy_seconds)
        if connection is not None and is_disk_full(error, connection):
            return StorageFull(place=place)
        if isinstance(error, apsw.IOError):
            return NotDurable(place=place, reason=reason)
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError):
            return UnsafeStorage(place=place, reason=reason)
        return Damaged(place=place, reason=reason)


class _Held:
    """A home whose journal is locked for writing: the system unlocks it, should its holder be killed."""

    def __init__(self, home: Path, journal: Any) -> None:
        self.place, self._journal = home, journal
        self.is_erased = False

    def inventory(self) -> Inventory:
        return _inventory(self._journal)

    def erase(self) -> None:
        for (table,) in self._journal.execute(_sql("tables")).fetchall():
            quoted = table.replace('"', '""')
            self._journal.execute(f'DROP TABLE "{quoted}"')
        self._journal.execute("CREATE TABLE erased (at TEXT DEFAULT CURRENT_TIMESTAMP)")
        self._journal.pragma("application_id", ERASED)
        self.is_erased = True


def _inventory(journal: Any) -> Inventory:
    if _is_erased(journal):
        return EMPTY_INVENTORY
    versions, keys = (cast(list[tuple[str, int]], journal.execute(_sql(of)).fetchall()) for of in ("versions", "keys"))
    return Inventory(versions=dict(versions), keys_by_stream=dict(keys))


def _is_erased(journal: Any) -> bool:
    """Somebody was killed before its files were gone."""
    return journal.pragma("application_id") == ERASED


def _is_home(path: Path) -> bool:
    """A folder of its own with a journal in it; a link is neither."""
    try:
        folder, journal = os.lstat(path), os.lstat(path / DATABASE)
    except OSError:
        return False
    return stat.S_ISDIR(folder.st_mode) and stat.S_ISREG(journal.st_mode)


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _size(home: Path) -> int:
    total = 0
    for folder, _, files in os.walk(home):
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, file)).st_size
    return total


def _remove(home: Path) -> None:
    """Links are removed and not followed. Who had it open may just be writing one of its pages: then once more."""
    for tries in range(1, _TRIES + 1):
        try:
            for entry in sorted(os.scandir(home), key=lambda entry: (entry.name == DATABASE, entry.name)):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            os.rmdir(home)
            fsync_folder(home.parent)
            return
        except OSError as error:
            if tries == _TRIES:
                raise translate_os_error(error, home) from error
