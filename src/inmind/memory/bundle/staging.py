"""A temporary folder next to a file that is being written.

The file is moved out of the folder when it is complete. The process holds a lock on the folder, which ends with the
process. The next writer at the same place finds the folders of killed processes unlocked and removes them: they contain
copies of private data.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from inmind.store.file_operations import translated_os_errors

_PREFIX = ".inmind-bundle-"
_LOCK = "lock"


@contextmanager
def staging_folder(place: Path) -> Generator[Path]:
    """A private folder, removed at the end with its contents."""
    with translated_os_errors(place):
        remove_leftovers(place)
        folder, lock = _create_locked(place.parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers(place: Path) -> None:
    """Remove the folders of processes that have ended."""
    for leftover in place.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # owned by another user, or already removed
            if leftover.lstat().st_uid == os.geteuid():
                _remove_if_unlocked(leftover)


def _create_locked(parent: Path) -> tuple[Path, int]:
    """A new folder and its lock.

    Another process may remove the folder before it is locked: then try again.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _try_lock_if_supported(lock) and (folder / _LOCK).exists():
                return folder, lock
            os.close(lock)


def _try_lock_if_supported(lock: int) -> bool:
    """True on file systems without locks too; leftovers are never removed there."""
    try:
        return _try_lock(lock)
    except OSError:
        return True


def _remove_if_unlocked(leftover: Path) -> None:
    try:
        lock = os.open(leftover / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return leftover.rmdir()  # its process ended before it created the lock
    try:
        if _try_lock(lock):
            shutil.rmtree(leftover, ignore_errors=True)
    finally:
        os.close(lock)


def _try_lock(descriptor: int) -> bool:
    """Lock the open file, not the process as record locks do: two threads may use one place."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
