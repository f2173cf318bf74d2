"""Tenants on a disk: each is a home in one folder.

A user who can write to the folder is an operator; a tenant gets access to its home only. A home is erased in one
transaction of its journal, which drops all tables and sets a mark: it cannot be opened again, and open connections
cannot write to it. Then the files are removed, the journal last, so that an interrupted erase leaves a home that is
still listed but opens as erased.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import apsw

from inmind.core.paths import DATABASE, check_home, to_file_name
from inmind.errors import Damaged, InvalidInput, NotDurable, NotFound, StorageFull, StoreBusy, StoreError, UnsafeStorage
from inmind.memory.bundle.export_bundle import remove_leftovers, staging_folder
from inmind.store.file_operations import fsync_folder, make_private_folder, translate_os_error
from inmind.store.rows import load_queries
from inmind.store.sqlite.connection import APPLICATION_ID, file_identity, is_disk_full
from inmind.store.sqlite.store import BUSY_SECONDS, SqliteStore
from inmind.store.tenants import (
    EMPTY_INVENTORY,
    Inventory,
    LockedTenant,
    MemoryLocation,
    Tenant,
    Tenants,
    check_tenant_name,
    name_exists,
    tenant_not_found,
)

ERASED = 0x696E6D78
"""Application id of an erased journal."""

_MAX_ATTEMPTS = 3
_sql = load_queries("tenants")


class TenantHomes(Tenants):
    """The tenants of one folder."""

    def __init__(self, folder: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._folder = check_home(folder).absolute()
        self.place = str(self._folder)
        self._busy_seconds = busy_seconds
        if os.path.lexists(self._folder / DATABASE):
            raise InvalidInput(field="home", value=str(folder), expected="a folder of homes, not a home")

    def list_all(self) -> Sequence[Tenant]:
        return [Tenant(name=name, can_log_in=True, bytes=_size(home)) for name, home in sorted(self._homes())]

    @contextmanager
    def open_as_operator(self, name: str) -> Generator[Path]:
        yield self._home(name)

    def inventory(self, name: str) -> Inventory:
        home = self._home(name)
        with self._journal(home) as journal:
            if not _is_erased(journal):
                return _read_inventory(journal)
        _remove(home)
        raise self._not_found(name)

    def identity(self, name: str) -> object:
        home = dict(self._homes()).get(check_tenant_name(name))
        return None if home is None else file_identity(home)

    def is_within(self, others: Tenants, name: str) -> bool:
        folder, home = self._folder.resolve(), others.identity(name)
        return any(file_identity(above) == home for above in (folder, *folder.parents) if above.exists())

    @contextmanager
    def create(self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None) -> Generator[Path]:
        home = self._path(name)
        with suppress(OSError):
            os.rmdir(home)
        if os.path.lexists(home):
            if continues is None or not _is_home(home) or not continues(home):
                raise name_exists(name)
            remove_leftovers(home)
            yield home
            return
        make_private_folder(self._folder)
        with staging_folder(home) as folder:
            yield (staged := folder / "home")
            SqliteStore(staged / DATABASE).close()
            try:
                os.rename(staged, home)
            except OSError as error:
                raise name_exists(name) if os.path.lexists(home) else translate_os_error(error, home) from error
            fsync_folder(self._folder)

    def address(self, name: str, password: str) -> str:  # noqa: ARG002 -- a folder has no password
        return str(self._path(name))

    @contextmanager
    def lock(self, name: str) -> Generator[LockedTenant]:
        home = self._home(name)
        with self._journal(home, writing=True) as journal:
            yield LockedTenant(home, partial(_read_inventory, journal), partial(_erase_tables, journal))
            is_erased = _is_erased(journal)
        if is_erased:
            _remove(home)

    def erase(self, name: str) -> Inventory:
        with self.lock(name) as locked:
            inventory = locked.inventory()
            locked.erase()
        return inventory

    def close(self) -> None: ...

    def _path(self, name: str) -> Path:
        return self._folder / to_file_name(check_tenant_name(name))

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
                if to_file_name(name) == entry.name and _is_home(Path(entry.path)):
                    yield name, Path(entry.path)

    def _home(self, name: str) -> Path:
        """Find a home by the listing.

        A file system may match another name, for example in another case.
        """
        path = self._path(name)
        if home := dict(self._homes()).get(name):
            return home
        with suppress(OSError):
            os.rmdir(path)  # empty folder of an interrupted erase
        raise self._not_found(name)

    def _not_found(self, name: str) -> NotFound:
        return tenant_not_found(name, self.place, (one for one, _ in self._homes()))

    @contextmanager
    def _journal(self, home: Path, *, writing: bool = False) -> Generator[Any]:
        """Open the journal in one transaction.

        A write is checkpointed into the database file, so that it does not depend on the write-ahead log.
        """
        path = home.resolve() / DATABASE
        connection: Any = None
        try:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
            connection.set_busy_timeout(int(self._busy_seconds * 1000))
            connection.pragma("synchronous", "full")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            if connection.pragma("application_id") not in (APPLICATION_ID, ERASED):
                raise UnsafeStorage(place=str(path), reason="it is a database of another application")
            yield connection
            connection.execute("COMMIT")
            if writing:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise self._translate_error(error, connection, str(path)) from error
        finally:
            if connection is not None:
                connection.close()  # rolls back an open transaction

    def _translate_error(self, error: apsw.Error, connection: Any, place: str) -> StoreError:
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=place, seconds=self._busy_seconds)
        if connection is not None and is_disk_full(error, connection):
            return StorageFull(place=place)
        if isinstance(error, apsw.IOError):
            return NotDurable(place=place, reason=str(error))
        if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError):
            return UnsafeStorage(place=place, reason=str(error))
        return Damaged(place=place, reason=str(error))


def _erase_tables(journal: Any) -> None:
    for (table,) in journal.execute(_sql("tables")).fetchall():
        quoted = table.replace('"', '""')
        journal.execute(f'DROP TABLE "{quoted}"')
    journal.execute("CREATE TABLE erased (at TEXT DEFAULT CURRENT_TIMESTAMP)")
    journal.pragma("application_id", ERASED)


def _read_inventory(journal: Any) -> Inventory:
    if _is_erased(journal):
        return EMPTY_INVENTORY
    versions, keys = (dict[str, int](journal.execute(_sql(of)).fetchall()) for of in ("versions", "keys"))
    return Inventory(versions=versions, keys_by_stream=keys)


def _is_erased(journal: Any) -> bool:
    """True if it is erased; its files may remain if the process was killed."""
    return journal.pragma("application_id") == ERASED


def _is_home(path: Path) -> bool:
    """True for a real folder with a regular journal file; links do not count."""
    try:
        folder, journal = os.lstat(path), os.lstat(path / DATABASE)
    except OSError:
        return False
    return stat.S_ISDIR(folder.st_mode) and stat.S_ISREG(journal.st_mode)


def _size(home: Path) -> int:
    total = 0
    for folder, _, files in os.walk(home):
        for file in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, file)).st_size
    return total


def _remove(home: Path) -> None:
    """Remove the files without following links.

    Retries, because a process may still be writing a live file.
    """
    for attempt in range(1, _MAX_ATTEMPTS + 1):
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
            if attempt == _MAX_ATTEMPTS:
                raise translate_os_error(error, home) from error
