"""A folder beside the place of something that is still being made: it gets its name when all of it is there.

Whoever makes it holds a lock, which ends with its process, however that ends. So what a killed one has left is known,
and is taken away by the next who makes something at the same place: it holds all that was ever said.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from inmind.store.file_operations import translate_os_error

_PREFIX = ".inmind-bundle-"
_LOCK = "lock"


@contextmanager
def aside(place: Path) -> Generator[Path]:
    """For the owner alone; gone afterwards, with what is still in it."""
    try:
        sweep(place)
        folder, lock = _held(place.parent)
    except OSError as error:
        raise translate_os_error(error, place) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(place: Path) -> None:
    """Take away what nobody holds any more."""
    for left in place.parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another's, or gone meanwhile
            if left.lstat().st_uid == os.geteuid():
                _take_away(left)


def _held(parent: Path) -> tuple[Path, int]:
    """A new one, and its lock. Somebody may have taken it for a leftover before it was locked: then another."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _is_held(lock) and (folder / _LOCK).exists():
                return folder, lock
            os.close(lock)


def _is_held(lock: int) -> bool:
    """Where a file system has no locks it is ours as it is, and what is left there nobody takes away."""
    try:
        return _locked(lock)
    except OSError:
        return True


def _take_away(left: Path) -> None:
    try:
        lock = os.open(left / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return left.rmdir()  # ended before it had a lock
    try:
        if _locked(lock):
            shutil.rmtree(left, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(descriptor: int) -> bool:
    """Of this open file, not of this process, as record locks are: two threads may be at one place."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
