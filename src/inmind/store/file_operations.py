"""File operations by folder descriptor, which follow no links, and their errors."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from inmind.core.frozen import frozen
from inmind.errors import InmindError, NotDurable, StorageFull, UnsafeStorage

_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_RENAME_EXCHANGE = 2


CHUNK_BYTES = 1_048_576


# A file system's clock ticks every few milliseconds: a write right after our read can leave the same timestamp.
MIN_SIGNATURE_AGE_NANOSECONDS = 50_000_000


@frozen
class FileSignature:
    """Values of `stat`. If they are the same and old enough, the bytes are the same."""

    inode: int
    size: int
    changed_at: int

    def is_reliable(self, now: int) -> bool:
        return now - self.changed_at > MIN_SIGNATURE_AGE_NANOSECONDS


@frozen
class FileState:
    """Content and signature of a file.

    `read_error`: why it cannot be read; empty if it was read.
    """

    data: bytes | None = None
    signature: FileSignature | None = None
    """Taken before the bytes were read. If it is reliable, every later write changes it."""
    read_at: int = 0
    max_bytes: int = 0
    """The number of bytes requested. One more was read to detect larger files."""
    has_other_links: bool = False
    """The file has another name, perhaps in another folder, so its author is unknown."""
    read_error: str = ""

    @property
    def is_complete(self) -> bool:
        """True if all bytes of the file were read."""
        return self.data is not None and len(self.data) <= self.max_bytes

    @property
    def reliable_signature(self) -> FileSignature | None:
        """The signature, if every later change is sure to alter it."""
        return self.signature if self.signature and self.signature.is_reliable(self.read_at) else None


def make_private_folder(path: Path) -> None:
    """Create the folder and its missing parents, durably and readable only by the owner."""
    with translated_os_errors(path):
        if path.is_dir():
            return
        make_private_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            fsync_folder(path.parent)
        if not path.is_dir():
            raise UnsafeStorage(place=str(path), reason="it is not a folder")


def create_private_file(path: Path) -> None:
    """Create an empty file readable only by the owner, unless it exists.

    Safe for a database: the file is only opened if it is new.
    """
    with translated_os_errors(path), contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS, 0o600))
        fsync_folder(path.parent)


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading. Links and pipes are refused: a pipe could block forever."""
    descriptor = os.open(path, os.O_RDONLY | SAFE_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return os.fdopen(descriptor, "rb")


def fsync_folder(path: Path) -> None:
    with opened(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        os.fsync(descriptor)


SAFE_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@contextlib.contextmanager
def opened(path: str | Path, flags: int, *, dir_fd: int | None = None) -> Generator[int]:
    """Yield a descriptor that is closed at the end. A new file is readable only by the owner."""
    descriptor = os.open(path, flags, 0o600, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_at(folder: int, leaf: str, max_bytes: int) -> FileState:
    with opened(leaf, os.O_RDONLY | SAFE_FLAGS, dir_fd=folder) as descriptor:
        time = now_nanoseconds()
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return FileState(read_error=_REASONS[errno.ENOTSUP])
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            data = stream.read(max_bytes + 1)
        linked = status.st_nlink > 1
        return FileState(
            data=data, signature=signature_of(status), read_at=time, max_bytes=max_bytes, has_other_links=linked
        )


def open_subfolder(folder: int, name: str, *, create: bool) -> int:
    """Open a folder inside a folder. With `create` it is created durably for the owner only."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
        os.fsync(folder)
    return os.open(name, flags, dir_fd=folder)


def open_unlinked(folder: int, leaf: str) -> int:
    """Open a file for appending. A file with several links is replaced by a new one.

    Otherwise the appended bytes would also appear under the other name.
    """
    flags = os.O_RDWR | os.O_CREAT | SAFE_FLAGS
    descriptor = os.open(leaf, flags, 0o600, dir_fd=folder)
    if os.fstat(descriptor).st_nlink < 2:
        return descriptor
    os.close(descriptor)
    os.unlink(leaf, dir_fd=folder)
    return os.open(leaf, flags, 0o600, dir_fd=folder)


def check_name(step: str) -> None:
    """Refuse a step that could lead to another folder.

    Names are validated before; this is a safeguard.
    """
    if step in ("", ".", "..") or "/" in step or "\x00" in step:
        raise OSError(errno.EINVAL, "not a name")


def refuse_special_file(folder: int, leaf: str) -> None:
    """Refuse to replace a folder, link or device: a person put it there."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTSUP, "not a plain file")


def write_new(folder: int, name: str, data: bytes) -> None:
    with opened(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE_FLAGS, dir_fd=folder) as descriptor:
        write_all(descriptor, data)
        os.fsync(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def link_new(folder: int, swap: str, leaf: str) -> bool:
    """Give the file its final name if that does not exist yet.

    A link, because a rename would overwrite a file that an editor has just saved.
    """
    try:
        os.link(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # not every file system has links
        os.rename(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    os.unlink(swap, dir_fd=folder)
    return True


def link_or_copy(folder: int, leaf: str, kept: str) -> bool:
    """Give the bytes of `leaf` a second name; False if another file has that name."""
    try:
        os.link(leaf, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        return True
    except FileExistsError:
        return _is_same_file(folder, leaf, kept)
    except OSError:  # not every file system has links
        pass
    try:
        _copy(folder, leaf, kept)
        return True
    except FileExistsError:
        return _is_same_file(folder, leaf, kept)


def _copy(folder: int, leaf: str, kept: str) -> None:
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
    with _open_for_reading(folder, leaf) as source, opened(kept, new, dir_fd=folder) as target:
        try:
            while data := source.read(CHUNK_BYTES):
                write_all(target, data)
            os.fsync(target)
        except OSError:
            os.unlink(kept, dir_fd=folder)
            raise


def _is_same_file(folder: int, leaf: str, other: str) -> bool:
    """Compare two files by identity, then by content, in chunks because they may be large."""
    with _open_for_reading(folder, leaf) as one, _open_for_reading(folder, other) as two:
        first, second = os.fstat(one.fileno()), os.fstat(two.fileno())
        if os.path.samestat(first, second):
            return True
        if first.st_size != second.st_size or not stat.S_ISREG(second.st_mode):
            return False
        while data := one.read(CHUNK_BYTES):
            if data != two.read(CHUNK_BYTES):
                return False
        return True


def _open_for_reading(folder: int, leaf: str) -> BinaryIO:
    return os.fdopen(os.open(leaf, os.O_RDONLY | SAFE_FLAGS, dir_fd=folder), "rb")


def swap_in(folder: int, swap: str, leaf: str, data: bytes, expected: FileState) -> bool:
    """Give the swap file its final name if the file there is still `expected`."""
    if expected.data is None:
        done = link_new(folder, swap, leaf)
    elif _exchange_names(folder, swap, leaf):
        return _keep_if_expected(folder, swap, leaf, data, expected)
    elif done := still_matches(folder, leaf, expected):
        os.rename(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder)
    if not done:
        os.unlink(swap, dir_fd=folder)
    return done


def _keep_if_expected(folder: int, swap: str, leaf: str, data: bytes, expected: FileState) -> bool:
    """After an exchange: delete the displaced file if it was `expected`, else put it back."""
    if still_matches(folder, swap, expected):
        os.unlink(swap, dir_fd=folder)
        return True
    _exchange_names(folder, swap, leaf)
    if still_matches(folder, swap, FileState(data=data, max_bytes=len(data))):
        os.unlink(swap, dir_fd=folder)
    else:  # saved again in between: the newest version is put back, the earlier one stays as the swap file
        _exchange_names(folder, swap, leaf)
    return False


def still_matches(folder: int, leaf: str, expected: FileState) -> bool:
    """True if the file is still as expected.

    If only its beginning was read, the inode must be the same.
    """
    try:
        now = read_at(folder, leaf, expected.max_bytes)
    except OSError:
        return False
    return now.data == expected.data and (now.is_complete or _inode(now) == _inode(expected))


def _inode(state: FileState) -> int | None:
    return state.signature.inode if state.signature else None


def _exchange_names(folder: int, swap: str, leaf: str) -> bool:
    """Exchange two files atomically. False if there is no second file or no system support."""
    rename = _renameat2()
    return rename is not None and (rename(folder, os.fsencode(swap), folder, os.fsencode(leaf), _RENAME_EXCHANGE) == 0)


@cache
def _renameat2() -> Callable[..., int] | None:
    """Return Linux's renameat2, if available.

    On other systems a plain rename is used, which can overwrite a file that an editor saves at the same moment.
    """
    import ctypes  # imported late: only writers need it

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


def signature_of(status: os.stat_result) -> FileSignature:
    return FileSignature(
        inode=status.st_ino, size=status.st_size, changed_at=max(status.st_mtime_ns, status.st_ctime_ns)
    )


@contextlib.contextmanager
def translated_os_errors(place: Path) -> Generator[None]:
    """Raise the inmind error for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise translate_os_error(error, place) from error


def translate_os_error(error: OSError, place: Path) -> InmindError:
    if error.errno in _DISK_FULL_ERRORS:
        return StorageFull(place=str(place))
    if error.errno == errno.EIO:
        return NotDurable(place=str(place), reason=os.strerror(errno.EIO))
    return UnsafeStorage(place=str(place), reason=describe_os_error(error))


# The system's messages for these describe the call, not the file.
_REASONS = {
    errno.ELOOP: "it is a link, and links are not followed",
    errno.ENOTDIR: "its path contains a link or a file, and links are not followed",
    errno.ENOTSUP: "it is not a plain file",
}


def describe_os_error(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)


def now_nanoseconds() -> int:
    """The clock that file timestamps are compared with."""
    return time.time_ns()
