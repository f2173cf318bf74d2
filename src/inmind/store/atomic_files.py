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
import fcntl
import os
import stat
import threading
from collections.abc import Generator, Sequence
from itertools import chain, count
from pathlib import Path

from inmind.core.fork import register_after_fork
from inmind.store.file_operations import (
    CHUNK_BYTES,
    SAFE_FLAGS,
    FileSignature,
    FileState,
    check_name,
    describe_os_error,
    link_new,
    link_or_copy,
    make_private_folder,
    open_subfolder,
    open_unlinked,
    read_at,
    refuse_special_file,
    signature_of,
    still_matches,
    swap_in,
    translate_os_error,
    write_all,
    write_new,
)

_PART, _SWAP = ".inmind-part-", ".inmind-swap-"

DAMAGED_SUFFIX = ".damaged-"
"""Stands in the name of what was kept aside: what a file showed that nobody can have meant."""

LOCK_FILE = ".lock"


class Folder:
    """One folder of live files, held open by descriptor for as long as an operation lasts.

    What changes files is called with the folder `locked`.
    """

    def __init__(self, path: Path, *, home: Path | None = None) -> None:
        """`home`: down to here links are followed, and from here on not; by default the folder itself."""
        self.path = path
        self._home = home or path
        self._steps = path.relative_to(self._home).parts
        self._root = f"{path}/"

    def signature(self, name: str) -> FileSignature | None:
        """Cheap enough for every call; None when there is nothing to see."""
        try:
            return signature_of(os.stat(self._root + name, follow_symlinks=False))
        except OSError:
            return None

    def list_files(self, sub: str) -> dict[str, str]:
        """What stands in a sub-folder, by name, and what it is if it is no file. Not our own, other hidden ones and the
        copies that editors keep."""
        try:
            with self._open_subfolder(sub.split("/")) as folder, os.scandir(folder) as entries:
                return {
                    entry.name: _special_kind(entry)
                    for entry in sorted(entries, key=_entry_name)
                    if _is_visible(entry.name)
                }
        except OSError:
            return {}

    def first_non_folder(self, name: str) -> str:
        """The first step on the way to a file that is there and is no folder: a link is not one, and not followed."""
        inside = name.split("/")[:-1]
        for root, steps in ((self._home, self._steps), (self.path, inside)):
            for end in range(1, len(steps) + 1):
                way = "/".join(steps[:end])
                try:
                    if not stat.S_ISDIR(os.lstat(f"{root}/{way}").st_mode):
                        return way
                except OSError:  # nor is anything behind it
                    return ""
        return ""

    def make_subfolder(self, sub: str) -> None:
        """A sub-folder, unless there is one."""
        try:
            with self._open_subfolder(sub.split("/"), create=True):
                pass
        except OSError as error:
            raise translate_os_error(error, self.path / sub) from error

    def read(self, name: str, *, max_bytes: int) -> FileState:
        try:
            with self._open_parent(name) as (folder, leaf):
                return read_at(folder, leaf, max_bytes)
        except FileNotFoundError:
            return FileState()
        except OSError as error:
            return FileState(read_error=describe_os_error(error))

    def replace(self, name: str, data: bytes) -> None:
        """Put the bytes there, durably, whatever stood there before: for files that only we write."""
        with self._write_part(name, data) as (folder, part, leaf):
            os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def exchange(self, name: str, data: bytes, *, expected: FileState) -> bool:
        """Put the bytes where `found` still stands. False: something else came to stand there, and it stays."""
        with self._write_part(name, data) as (folder, part, leaf):
            swap = _SWAP + leaf
            os.rename(part, swap, src_dir_fd=folder, dst_dir_fd=folder)
            done = (
                link_new(folder, swap, leaf) if expected.data is None else swap_in(folder, swap, leaf, data, expected)
            )
            if expected.data is None and not done:
                os.unlink(swap, dir_fd=folder)
            os.fsync(folder)
            return done

    def remove(self, name: str, *, expected: FileState) -> bool:
        """Take away what `found` says. False: something else came to stand there, and it stays."""
        try:
            with self._open_parent(name) as (folder, leaf):
                swap = _SWAP + leaf
                os.rename(leaf, swap, src_dir_fd=folder, dst_dir_fd=folder)
                matches = still_matches(folder, swap, expected)
                if matches:
                    os.unlink(swap, dir_fd=folder)
                else:
                    link_new(folder, swap, leaf)  # if it was saved yet again, this one is found beside it
                os.fsync(folder)
                return matches
        except FileNotFoundError:
            return expected.data is None
        except OSError as error:
            raise translate_os_error(error, self.path / name) from error

    def save_aside(self, name: str, *, new_name: str) -> str:
        """A second name, in the same folder, for what is about to be displaced; answers with it.

        A link and not a copy: it holds all bytes, however many, and those that a slow editor is still writing. Where
        other bytes have that name already it gets a number.
        """
        try:
            with self._open_parent(name) as (folder, leaf):
                between = name.removesuffix(leaf)
                wanted = new_name.removeprefix(between)
                names = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
                return between + next(kept for kept in names if link_or_copy(folder, leaf, kept))
        except OSError as error:
            raise translate_os_error(error, self.path / new_name) from error

    def read_swap(self, name: str, *, max_bytes: int) -> FileState:
        """What a killed writer of this file held in its hands."""
        *between, leaf = name.split("/")
        return self.read("/".join((*between, _SWAP + leaf)), max_bytes=max_bytes)

    def delete_swap(self, name: str) -> None:
        with contextlib.suppress(OSError), self._open_parent(name) as (folder, leaf):
            os.unlink(_SWAP + leaf, dir_fd=folder)

    def clean_up(self) -> list[str]:
        """Remove the parts of killed writers; answers with the files that have something displaced beside them."""
        displaced: list[str] = []
        try:
            with self._open_subfolder(()) as top:
                for way, _, leaves, folder in os.fwalk(".", dir_fd=top):
                    for leaf in leaves:
                        if leaf.startswith(_PART):
                            with contextlib.suppress(OSError):
                                os.unlink(leaf, dir_fd=folder)
                        elif leaf.startswith(_SWAP):
                            displaced.append(os.path.normpath(f"{way}/{leaf.removeprefix(_SWAP)}"))
        except OSError as error:
            raise translate_os_error(error, self.path) from error
        return displaced

    @contextlib.contextmanager
    def open_append(self, name: str) -> Generator[AppendFile]:
        """A file right in this folder that is only added to, with the folder locked."""
        with self.lock():
            try:
                with self._open_parent(name) as (folder, leaf):
                    descriptor = open_unlinked(folder, leaf)
                try:
                    yield AppendFile(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise translate_os_error(error, self.path / name) from error

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """One writer of this folder's files at a time, over all threads and processes.

        A POSIX record lock, not flock: a child forked in the middle does not inherit it and so cannot keep
        it for ever. It is per process, hence the mutex; and it is gone when any descriptor of its file is closed
        in this process, hence a file that nobody has a reason to read.
        """
        with _mutexes.get(self._root):
            try:
                descriptor = self._open_lock()
            except OSError as error:
                raise translate_os_error(error, self.path / LOCK_FILE) from error
            try:
                yield
            finally:
                os.close(descriptor)

    def _open_lock(self) -> int:
        with self._open_subfolder((), create=True) as folder:
            descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | SAFE_FLAGS, 0o600, dir_fd=folder)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def _write_part(self, name: str, data: bytes) -> Generator[tuple[int, str, str]]:
        """The bytes on the disk, under a name of their own, beside the place where they shall stand."""
        try:
            with self._open_parent(name, create=True) as (folder, leaf):
                refuse_special_file(folder, leaf)
                part = _PART + leaf
                try:
                    write_new(folder, part, data)
                    yield folder, part, leaf
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(part, dir_fd=folder)
        except OSError as error:
            raise translate_os_error(error, self.path / name) from error

    @contextlib.contextmanager
    def _open_parent(self, name: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """The descriptor of the folder that holds `name`."""
        *between, leaf = name.split("/")
        check_name(leaf)
        with self._open_subfolder(between, create=create) as folder:
            yield folder, leaf

    @contextlib.contextmanager
    def _open_subfolder(self, between: Sequence[str], *, create: bool = False) -> Generator[int]:
        """The descriptor of a folder below this one, opened step by step without following links."""
        for step in between:
            check_name(step)
        if create:
            make_private_folder(self._home)
        folder = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for step in (*self._steps, *between):
                inner = open_subfolder(folder, step, create=create)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


class AppendFile:
    """An open file, for as long as it is locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_end(self, size: int) -> bytes:
        return os.pread(self._descriptor, size, max(0, len(self) - size))

    def count_lines(self, size: int) -> int:
        """How many lines end in the first `upto` bytes."""
        starts = range(0, size, CHUNK_BYTES)
        return sum(os.pread(self._descriptor, min(CHUNK_BYTES, size - start), start).count(b"\n") for start in starts)

    def truncate(self, keep: int) -> None:
        os.ftruncate(self._descriptor, keep)

    def append(self, data: bytes) -> None:
        """Not synced: what is added can be made again."""
        length = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            write_all(self._descriptor, data)
        except OSError:
            self.truncate(length)
            raise


class _FolderMutexes:
    """One for each place: record locks hold between processes only, whoever in this one has the place open."""

    def __init__(self) -> None:
        self._by_place: dict[str, threading.Lock] = {}
        register_after_fork(self)

    def get(self, place: str) -> threading.Lock:
        return self._by_place.setdefault(place, threading.Lock())

    def after_fork(self) -> None:
        self._by_place.clear()


_mutexes = _FolderMutexes()


def is_leftover(name: str) -> bool:
    """Was a file left by a writer that was killed? Whoever opens its folder next looks at it and takes it away."""
    return name.startswith((_PART, _SWAP))


def _is_visible(name: str) -> bool:
    return not name.startswith((".", "#")) and not name.endswith("~")


def _special_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return ""
    if entry.is_symlink():
        return "a link"
    return "a folder" if entry.is_dir(follow_symlinks=False) else "no plain file"


def _entry_name(entry: os.DirEntry[str]) -> str:
    return entry.name
