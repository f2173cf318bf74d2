"""Files that are never half written, never followed through a link, and never open to others.

A write is: a temporary file in the same folder (0600), all bytes, fsync, rename, fsync of the folder. Where
people write too, the rename *exchanges* the two if the system can, so that what stood there is still in hand and
can be looked at: an editor that saved in the last microsecond is not overwritten, its file is put back.
Every step goes through a descriptor, from the home down, so no link or race can lead out of it. The home is wherever
its owner put it, behind a link too; a link below it is somebody's way out, and is not followed.

A killed writer leaves one of two things behind, told apart by name. A `part` is ours and perhaps incomplete. A
`swap` is complete and either ours or what stood in its place, which may be the only copy of a person's words: who
knows all the versions looks at it first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO

from inmind.core.fork import tell_after_fork
from inmind.core.frozen import frozen
from inmind.errors import InmindError, NotDurable, StorageFull, UnsafeStorage

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_RENAME_EXCHANGE = 2
_PART, _SWAP = ".inmind-part-", ".inmind-swap-"

DAMAGED = ".damaged-"
"""Stands in the name of what was kept aside: what a file showed that nobody can have meant."""

LOCK = ".lock"
_CHUNK = 1_048_576

# A file system's clock ticks every few milliseconds: a write right after our look can leave the same stamp.
RACY_NANOSECONDS = 50_000_000


@frozen
class Signature:
    """What `stat` says: if it is the same, and not too young to tell, the bytes are the same."""

    inode: int
    size: int
    changed: int

    def settled(self, now: int) -> bool:
        return now - self.changed > RACY_NANOSECONDS


@frozen
class Found:
    """What stands at a path. `unreadable` says why it cannot be read; that is never the same as empty."""

    data: bytes | None = None
    signature: Signature | None = None
    """From before the bytes were read: whatever is written after has another one, if this is settled."""
    looked: int = 0
    most: int = 0
    """How many bytes were asked for; one more was read, so that too many can be told."""
    linked: bool = False
    """The same file has another name, perhaps in another folder: nobody can tell whose words these are."""
    unreadable: str = ""

    @property
    def whole(self) -> bool:
        """All bytes that stand there were read."""
        return self.data is not None and len(self.data) <= self.most

    @property
    def settled(self) -> Signature | None:
        """The signature, if a later change is sure to show in it."""
        return self.signature if self.signature and self.signature.settled(self.looked) else None


class Folder:
    """One folder of live files, held open by descriptor for as long as an operation lasts.

    What changes files is called with the folder `locked`.
    """

    def __init__(self, path: Path, *, home: Path | None = None) -> None:
        """`home`: down to here links are followed, and from here on not; by default the folder itself."""
        self.path = path
        self._home = home or path
        self._way = path.relative_to(self._home).parts
        self._root = f"{path}/"

    def signature(self, name: str) -> Signature | None:
        """Cheap enough for every call; None when there is nothing to see."""
        try:
            return _signature(os.stat(self._root + name, follow_symlinks=False))
        except OSError:
            return None

    def listed(self, sub: str) -> dict[str, str]:
        """What stands in a sub-folder, by name, and what it is if it is no file. Not our own, other hidden ones and the
        copies that editors keep."""
        try:
            with self._within(sub.split("/")) as folder, os.scandir(folder) as entries:
                return {entry.name: _kind(entry) for entry in sorted(entries, key=_name) if _visible(entry.name)}
        except OSError:
            return {}

    def barred(self, name: str) -> str:
        """The first step on the way to a file that is there and is no folder: a link is not one, and not followed."""
        inside = name.split("/")[:-1]
        for root, steps in ((self._home, self._way), (self.path, inside)):
            for end in range(1, len(steps) + 1):
                way = "/".join(steps[:end])
                try:
                    if not stat.S_ISDIR(os.lstat(f"{root}/{way}").st_mode):
                        return way
                except OSError:  # nor is anything behind it
                    return ""
        return ""

    def make(self, sub: str) -> None:
        """A sub-folder, unless there is one."""
        try:
            with self._within(sub.split("/"), create=True):
                pass
        except OSError as error:
            raise translated(error, self.path / sub) from error

    def read(self, name: str, *, most: int) -> Found:
        try:
            with self._holding(name) as (folder, leaf):
                return _read(folder, leaf, most)
        except FileNotFoundError:
            return Found()
        except OSError as error:
            return Found(unreadable=_reason(error))

    def replace(self, name: str, data: bytes) -> None:
        """Put the bytes there, durably, whatever stood there before: for files that only we write."""
        with self._placing(name, data) as (folder, part, leaf):
            os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def exchange(self, name: str, data: bytes, *, found: Found) -> bool:
        """Put the bytes where `found` still stands. False: something else came to stand there, and it stays."""
        with self._placing(name, data) as (folder, part, leaf):
            swap = _SWAP + leaf
            os.rename(part, swap, src_dir_fd=folder, dst_dir_fd=folder)
            done = _put_new(folder, swap, leaf) if found.data is None else _swap_in(folder, swap, leaf, data, found)
            if found.data is None and not done:
                os.unlink(swap, dir_fd=folder)
            os.fsync(folder)
            return done

    def remove(self, name: str, *, found: Found) -> bool:
        """Take away what `found` says. False: something else came to stand there, and it stays."""
        try:
            with self._holding(name) as (folder, leaf):
                swap = _SWAP + leaf
                os.rename(leaf, swap, src_dir_fd=folder, dst_dir_fd=folder)
                taken = _stands(folder, swap, found)
                if taken:
                    os.unlink(swap, dir_fd=folder)
                else:
                    _put_new(folder, swap, leaf)  # if it was saved yet again, this one is found beside it
                os.fsync(folder)
                return taken
        except FileNotFoundError:
            return found.data is None
        except OSError as error:
            raise translated(error, self.path / name) from error

    def keep(self, name: str, *, kept_as: str) -> str:
        """A second name, in the same folder, for what is about to be displaced; answers with it.

        A link and not a copy: it holds all bytes, however many, and those that a slow editor is still writing. Where
        other bytes have that name already it gets a number.
        """
        try:
            with self._holding(name) as (folder, leaf):
                between = name.removesuffix(leaf)
                wanted = kept_as.removeprefix(between)
                names = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
                return between + next(kept for kept in names if _kept(folder, leaf, kept))
        except OSError as error:
            raise translated(error, self.path / kept_as) from error

    def displaced(self, name: str, *, most: int) -> Found:
        """What a killed writer of this file held in its hands."""
        *between, leaf = name.split("/")
        return self.read("/".join((*between, _SWAP + leaf)), most=most)

    def drop_displaced(self, name: str) -> None:
        with contextlib.suppress(OSError), self._holding(name) as (folder, leaf):
            os.unlink(_SWAP + leaf, dir_fd=folder)

    def tidy(self) -> list[str]:
        """Remove the parts of killed writers; answers with the files that have something displaced beside them."""
        displaced: list[str] = []
        try:
            with self._within(()) as top:
                for way, _, leaves, folder in os.fwalk(".", dir_fd=top):
                    for leaf in leaves:
                        if leaf.startswith(_PART):
                            with contextlib.suppress(OSError):
                                os.unlink(leaf, dir_fd=folder)
                        elif leaf.startswith(_SWAP):
                            displaced.append(os.path.normpath(f"{way}/{leaf.removeprefix(_SWAP)}"))
        except OSError as error:
            raise translated(error, self.path) from error
        return displaced

    @contextlib.contextmanager
    def growing(self, name: str) -> Generator[Growing]:
        """A file right in this folder that is only added to, with the folder locked."""
        with self.locked():
            try:
                with self._holding(name) as (folder, leaf):
                    descriptor = _open_alone(folder, leaf)
                try:
                    yield Growing(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise translated(error, self.path / name) from error

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """One writer of this folder's files at a time, over all threads and processes.

        A POSIX record lock, not flock: a child forked in the middle does not inherit it and so cannot keep
        it for ever. It is per process, hence the mutex; and it is gone when any descriptor of its file is closed
        in this process, hence a file that nobody has a reason to read.
        """
        with _mutexes.of(self._root):
            try:
                descriptor = self._open_lock()
            except OSError as error:
                raise translated(error, self.path / LOCK) from error
            try:
                yield
            finally:
                os.close(descriptor)

    def _open_lock(self) -> int:
        with self._within((), create=True) as folder:
            descriptor = os.open(LOCK, os.O_RDWR | os.O_CREAT | _SAFE, 0o600, dir_fd=folder)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def _placing(self, name: str, data: bytes) -> Generator[tuple[int, str, str]]:
        """The bytes on the disk, under a name of their own, beside the place where they shall stand."""
        try:
            with self._holding(name, create=True) as (folder, leaf):
                _refuse_special(folder, leaf)
                part = _PART + leaf
                try:
                    _write_all(folder, part, data)
                    yield folder, part, leaf
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(part, dir_fd=folder)
        except OSError as error:
            raise translated(error, self.path / name) from error

    @contextlib.contextmanager
    def _holding(self, name: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """The descriptor of the folder that holds `name`."""
        *between, leaf = name.split("/")
        _refuse_leading_out(leaf)
        with self._within(between, create=create) as folder:
            yield folder, leaf

    @contextlib.contextmanager
    def _within(self, between: Sequence[str], *, create: bool = False) -> Generator[int]:
        """The descriptor of a folder below this one, opened step by step without following links."""
        for step in between:
            _refuse_leading_out(step)
        if create:
            make_private(self._home)
        folder = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for step in (*self._way, *between):
                inner = _step_into(folder, step, create=create)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


class Growing:
    """An open file, for as long as it is locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size

    def end(self, size: int) -> bytes:
        return os.pread(self._descriptor, size, max(0, len(self) - size))

    def lines(self, upto: int) -> int:
        """How many lines end in the first `upto` bytes."""
        starts = range(0, upto, _CHUNK)
        return sum(os.pread(self._descriptor, min(_CHUNK, upto - start), start).count(b"\n") for start in starts)

    def cut(self, keep: int) -> None:
        os.ftruncate(self._descriptor, keep)

    def append(self, data: bytes) -> None:
        """Not synced: what is added can be made again."""
        length = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            _pour(self._descriptor, data)
        except OSError:
            self.cut(length)
            raise


class _Mutexes:
    """One for each place: record locks hold between processes only, whoever in this one has the place open."""

    def __init__(self) -> None:
        self._by_place: dict[str, threading.Lock] = {}
        tell_after_fork(self)

    def of(self, place: str) -> threading.Lock:
        return self._by_place.setdefault(place, threading.Lock())

    def after_fork(self) -> None:
        self._by_place.clear()


_mutexes = _Mutexes()


def make_private(path: Path) -> None:
    """The folder and its missing parents, for the owner alone, and on the disk."""
    try:
        if path.is_dir():
            return
        make_private(path.parent)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            sync_folder(path.parent)
        if not path.is_dir():
            raise UnsafeStorage(place=str(path), reason="it is not a folder")
    except OSError as error:
        raise translated(error, path) from error


def create_private(path: Path) -> None:
    """An empty file for the owner alone, unless there is one. Safe on a database: it is opened only if it is new."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600))
        sync_folder(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise translated(error, path) from error


def is_leftover(name: str) -> bool:
    """Was a file left by a writer that was killed? Whoever opens its folder next looks at it and takes it away."""
    return name.startswith((_PART, _SWAP))


def open_plain(path: Path) -> BinaryIO:
    """A file to read, by nobody's link and no pipe: that would wait for ever."""
    descriptor = os.open(path, os.O_RDONLY | _SAFE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file")
    return os.fdopen(descriptor, "rb")


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def _read(folder: int, leaf: str, most: int) -> Found:
    descriptor = os.open(leaf, os.O_RDONLY | _SAFE, dir_fd=folder)
    try:
        looked = nanoseconds()
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Found(unreadable=_REASONS[errno.ENOTSUP])
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            data = stream.read(most + 1)
        linked = status.st_nlink > 1
        return Found(data=data, signature=_signature(status), looked=looked, most=most, linked=linked)
    finally:
        os.close(descriptor)


def _step_into(folder: int, name: str, *, create: bool) -> int:
    """The descriptor of a folder in a folder. A new one is for the owner alone, and on the disk."""
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


def _open_alone(folder: int, leaf: str) -> int:
    """To add to a file. One that has another name as well loses this one: what is added would show there too."""
    flags = os.O_RDWR | os.O_CREAT | _SAFE
    descriptor = os.open(leaf, flags, 0o600, dir_fd=folder)
    if os.fstat(descriptor).st_nlink < 2:
        return descriptor
    os.close(descriptor)
    os.unlink(leaf, dir_fd=folder)
    return os.open(leaf, flags, 0o600, dir_fd=folder)


def _refuse_leading_out(step: str) -> None:
    """Names are checked where they are made; here nothing is left that could mean another folder."""
    if step in ("", ".", "..") or "/" in step or "\x00" in step:
        raise OSError(errno.EINVAL, "not a name")


def _refuse_special(folder: int, leaf: str) -> None:
    """A folder, link or device in a live file's place was put there by somebody: it is not ours to replace."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTSUP, "not a plain file")


def _write_all(folder: int, name: str, data: bytes) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600, dir_fd=folder)
    try:
        _pour(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pour(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _put_new(folder: int, swap: str, leaf: str) -> bool:
    """Where nothing stands: a link, since a rename would overwrite what an editor has just put there."""
    try:
        os.link(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # not every file system has links
        os.rename(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder)
        return True
    os.unlink(swap, dir_fd=folder)
    return True


def _kept(folder: int, leaf: str, kept: str) -> bool:
    """Do these bytes have that name now? Not if others have it."""
    try:
        os.link(leaf, kept, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return _same(folder, leaf, kept)
    except OSError:  # not every file system has links
        return _copied(folder, leaf, kept)
    return True


def _copied(folder: int, leaf: str, kept: str) -> bool:
    with _opened(folder, leaf) as source:
        try:
            target = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o600, dir_fd=folder)
        except FileExistsError:
            return _same(folder, leaf, kept)
        try:
            while data := source.read(_CHUNK):
                _pour(target, data)
            os.fsync(target)
        except OSError:
            os.unlink(kept, dir_fd=folder)
            raise
        finally:
            os.close(target)
    return True


def _same(folder: int, leaf: str, other: str) -> bool:
    """Are two files one, or alike in every byte? Read in pieces, since they may be larger than memory."""
    with _opened(folder, leaf) as one, _opened(folder, other) as two:
        first, second = os.fstat(one.fileno()), os.fstat(two.fileno())
        if os.path.samestat(first, second):
            return True
        if first.st_size != second.st_size or not stat.S_ISREG(second.st_mode):
            return False
        while data := one.read(_CHUNK):
            if data != two.read(_CHUNK):
                return False
        return True


def _opened(folder: int, leaf: str) -> BinaryIO:
    return os.fdopen(os.open(leaf, os.O_RDONLY | _SAFE, dir_fd=folder), "rb")


def _swap_in(folder: int, swap: str, leaf: str, data: bytes, found: Found) -> bool:
    if not _exchange(folder, swap, leaf):
        still = _stands(folder, leaf, found)
        if still:
            os.rename(swap, leaf, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.unlink(swap, dir_fd=folder)
        return still
    if _stands(folder, swap, found):
        os.unlink(swap, dir_fd=folder)
        return True
    _exchange(folder, swap, leaf)
    if _stands(folder, swap, Found(data=data, most=len(data))):
        os.unlink(swap, dir_fd=folder)
    else:  # saved once more meanwhile: that one belongs in the place, the earlier one is found beside it
        _exchange(folder, swap, leaf)
    return False


def _stands(folder: int, leaf: str, found: Found) -> bool:
    """Of what is too large only the beginning was read; there it has to be the same file."""
    try:
        now = _read(folder, leaf, found.most)
    except OSError:
        return False
    return now.data == found.data and (now.whole or _inode(now) == _inode(found))


def _inode(found: Found) -> int | None:
    return found.signature.inode if found.signature else None


def _exchange(folder: int, swap: str, leaf: str) -> bool:
    """False where there is nothing to exchange with, or the system cannot."""
    rename = _renameat2()
    return rename is not None and (rename(folder, os.fsencode(swap), folder, os.fsencode(leaf), _RENAME_EXCHANGE) == 0)


@cache
def _renameat2() -> Callable[..., int] | None:
    """Linux has it; elsewhere a plain rename must do, with a window of microseconds for an editor's save."""
    import ctypes  # only whoever writes a file needs it

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


def _signature(status: os.stat_result) -> Signature:
    return Signature(inode=status.st_ino, size=status.st_size, changed=max(status.st_mtime_ns, status.st_ctime_ns))


def _visible(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return ""
    if entry.is_symlink():
        return "a link"
    return "a folder" if entry.is_dir(follow_symlinks=False) else "no plain file"


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def translated(error: OSError, place: Path) -> InmindError:
    if error.errno in _FULL:
        return StorageFull(place=str(place))
    if error.errno == errno.EIO:
        return NotDurable(place=str(place), reason=os.strerror(errno.EIO))
    return UnsafeStorage(place=str(place), reason=_reason(error))


# The system's own words for these are about its calls, not about what stands there.
_REASONS = {
    errno.ELOOP: "it is a link, and links are not followed",
    errno.ENOTDIR: "a link or a file stands on the way there, and links are not followed",
    errno.ENOTSUP: "it is not a plain file",
}


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)


def nanoseconds() -> int:
    """The clock that file stamps are compared with."""
    return time.time_ns()
