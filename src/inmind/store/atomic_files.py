"""Files that are written atomically, without following links, and private to the user.

A write creates a temporary file in the same folder (0600), writes all bytes, calls fsync, renames it, and calls fsync
on the folder. For files that people edit too, the rename *exchanges* the two files if the system supports it. The
replaced file can then be inspected: if an editor saved in the last microsecond, its file is put back. Every step uses a
descriptor, starting at the home, so no link or race can lead out of it. The path of the home itself may contain links;
links below it are not followed.

A killed writer may leave a temporary file of one of two kinds, distinguished by name. A `part` was written by us and
may be incomplete. A `swap` is complete and is either ours or the file it replaced, which may be the only copy of a
person's text: check it before deleting it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from collections.abc import Generator, Sequence
from itertools import chain, count
from operator import attrgetter
from pathlib import Path

from inmind.core.fork import register_after_fork
from inmind.store import file_operations as files
from inmind.store.file_operations import FileSignature, FileState

_PART_PREFIX, _SWAP_PREFIX = ".inmind-part-", ".inmind-swap-"

DAMAGED_SUFFIX = ".damaged-"
"""Part of the name under which a damaged file is saved."""

LOCK_FILE = ".lock"


class Folder:
    """One folder of live files, opened by descriptor for each operation.

    Methods that change files require the folder's `lock`.
    """

    def __init__(self, path: Path, *, home: Path | None = None) -> None:
        """`home`: links are followed up to here and not below. Default: the folder itself."""
        self.path = path
        self._home = home or path
        self._steps = path.relative_to(self._home).parts
        self._root = f"{path}/"

    def signature(self, name: str) -> FileSignature | None:
        """Return the file's signature, or None if it does not exist. It costs one `stat`."""
        try:
            return files.signature_of(os.stat(self._root + name, follow_symlinks=False))
        except OSError:
            return None

    def list_files(self, sub: str) -> dict[str, str] | None:
        """List a subfolder: names, each with its type if it is not a regular file.

        None if it cannot be listed. Hidden files, including our own, and backup copies of editors are left out.
        """
        try:
            with self._open_subfolder(sub.split("/")) as folder, os.scandir(folder) as entries:
                return {
                    entry.name: _special_kind(entry)
                    for entry in sorted(entries, key=attrgetter("name"))
                    if not entry.name.startswith((".", "#")) and not entry.name.endswith("~")
                }
        except OSError:
            return None

    def first_non_folder(self, name: str) -> str:
        """Return the first step of the path to a file that exists and is not a folder.

        A link is not a folder and is not followed.
        """
        inside = name.split("/")[:-1]
        for root, steps in ((self._home, self._steps), (self.path, inside)):
            for end in range(1, len(steps) + 1):
                path = "/".join(steps[:end])
                try:
                    if not stat.S_ISDIR(os.lstat(f"{root}/{path}").st_mode):
                        return path
                except OSError:  # it does not exist, so neither does anything below it
                    return ""
        return ""

    def make_subfolder(self, sub: str) -> None:
        """Create a subfolder unless it exists."""
        with files.translated_os_errors(self.path / sub), self._open_subfolder(sub.split("/"), create=True):
            pass

    def read(self, name: str, *, max_bytes: int) -> FileState:
        try:
            with self._open_parent(name) as (folder, leaf):
                return files.read_at(folder, leaf, max_bytes)
        except FileNotFoundError:
            return FileState()
        except OSError as error:
            return FileState(read_error=files.describe_os_error(error))

    def replace(self, name: str, data: bytes) -> None:
        """Replace the content durably, without a check. For files that only inmind writes."""
        with self._write_part(name, data) as (folder, part, leaf):
            os.rename(part, leaf, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def exchange(self, name: str, data: bytes, *, expected: FileState) -> bool:
        """Replace the file if it is still `expected`.

        False: another writer changed it, and it is kept.
        """
        with self._write_part(name, data) as (folder, part, leaf):
            swap = _SWAP_PREFIX + leaf
            os.rename(part, swap, src_dir_fd=folder, dst_dir_fd=folder)
            done = files.swap_in(folder, swap, leaf, data, expected)
            os.fsync(folder)
            return done

    def remove(self, name: str, *, expected: FileState) -> bool:
        """Remove the file if it is still `expected`.

        False: another writer changed it, and it is kept.
        """
        try:
            with self._open_parent(name) as (folder, leaf):
                swap = _SWAP_PREFIX + leaf
                os.rename(leaf, swap, src_dir_fd=folder, dst_dir_fd=folder)
                matches = files.still_matches(folder, swap, expected)
                if matches:
                    os.unlink(swap, dir_fd=folder)
                else:
                    files.link_new(folder, swap, leaf)  # if it was saved again, this version stays as the swap file
                os.fsync(folder)
                return matches
        except FileNotFoundError:
            return expected.data is None
        except OSError as error:
            raise files.translate_os_error(error, self.path / name) from error

    def save_aside(self, name: str, *, new_name: str) -> str:
        """Give a file that will be replaced a second name in the same folder; returns the name.

        A link instead of a copy: it keeps all bytes, including those that a slow editor is still writing. If another
        file has that name, a number is added.
        """
        with files.translated_os_errors(self.path / new_name), self._open_parent(name) as (folder, leaf):
            between = name.removesuffix(leaf)
            base_name = new_name.removeprefix(between)
            names = chain([base_name], (f"{base_name}-{number}" for number in count(2)))
            return between + next(kept for kept in names if files.link_or_copy(folder, leaf, kept))

    def read_swap(self, name: str, *, max_bytes: int) -> FileState:
        """Read the swap file that a killed writer left."""
        *between, leaf = name.split("/")
        return self.read("/".join((*between, _SWAP_PREFIX + leaf)), max_bytes=max_bytes)

    def delete_swap(self, name: str) -> None:
        with contextlib.suppress(OSError), self._open_parent(name) as (folder, leaf):
            os.unlink(_SWAP_PREFIX + leaf, dir_fd=folder)

    def clean_up(self) -> list[str]:
        """Remove part files of killed writers; returns the names of files that have a swap file."""
        displaced: list[str] = []
        with files.translated_os_errors(self.path), self._open_subfolder(()) as top:
            for parent, _, leaves, folder in os.fwalk(".", dir_fd=top):
                for leaf in leaves:
                    if leaf.startswith(_PART_PREFIX):
                        with contextlib.suppress(OSError):
                            os.unlink(leaf, dir_fd=folder)
                    elif leaf.startswith(_SWAP_PREFIX):
                        displaced.append(os.path.normpath(f"{parent}/{leaf.removeprefix(_SWAP_PREFIX)}"))
        return displaced

    @contextlib.contextmanager
    def open_append(self, name: str) -> Generator[AppendFile]:
        """Open a file of this folder that is only appended to, with the folder locked."""
        with self.lock(), files.translated_os_errors(self.path / name):
            with self._open_parent(name) as (folder, leaf):
                descriptor = files.open_unlinked(folder, leaf)
            try:
                yield AppendFile(descriptor)
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def lock(self) -> Generator[None]:
        """Allow one writer of this folder at a time, over all threads and processes.

        A POSIX record lock, not flock: a child forked meanwhile does not inherit it and so cannot keep it. It is held
        per process, so threads need a mutex too. It is released when any descriptor of its file is closed in this
        process, so it is on a file that is never read.
        """
        with _mutexes.get(self._root):
            with files.translated_os_errors(self.path / LOCK_FILE):
                descriptor = self._open_lock()
            try:
                yield
            finally:
                os.close(descriptor)

    def _open_lock(self) -> int:
        with self._open_subfolder((), create=True) as folder:
            descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | files.SAFE_FLAGS, 0o600, dir_fd=folder)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @contextlib.contextmanager
    def _write_part(self, name: str, data: bytes) -> Generator[tuple[int, str, str]]:
        """Write the bytes durably to a part file in the folder of the target file."""
        with files.translated_os_errors(self.path / name), self._open_parent(name, create=True) as (folder, leaf):
            files.refuse_special_file(folder, leaf)
            part = _PART_PREFIX + leaf
            try:
                files.write_new(folder, part, data)
                yield folder, part, leaf
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)

    @contextlib.contextmanager
    def _open_parent(self, name: str, *, create: bool = False) -> Generator[tuple[int, str]]:
        """Yield the descriptor of the folder that contains `name`."""
        *between, leaf = name.split("/")
        files.check_name(leaf)
        with self._open_subfolder(between, create=create) as folder:
            yield folder, leaf

    @contextlib.contextmanager
    def _open_subfolder(self, between: Sequence[str], *, create: bool = False) -> Generator[int]:
        """Yield the descriptor of a folder below this one, without following links."""
        for step in between:
            files.check_name(step)
        if create:
            files.make_private_folder(self._home)
        folder = os.open(self._home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for step in (*self._steps, *between):
                inner = files.open_subfolder(folder, step, create=create)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


class AppendFile:
    """A file that is open for appending, for as long as its folder is locked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __len__(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read_end(self, size: int) -> bytes:
        return os.pread(self._descriptor, size, max(0, len(self) - size))

    def count_lines(self, size: int) -> int:
        """Count the line ends in the first `size` bytes."""
        count = 0
        for start in range(0, size, files.CHUNK_BYTES):
            count += os.pread(self._descriptor, min(files.CHUNK_BYTES, size - start), start).count(b"\n")
        return count

    def truncate(self, keep: int) -> None:
        os.ftruncate(self._descriptor, keep)

    def append(self, data: bytes) -> None:
        """Append without fsync: the content can be written again from the journal."""
        length = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            files.write_all(self._descriptor, data)
        except OSError:
            self.truncate(length)
            raise


class _FolderMutexes:
    """One mutex for each folder: record locks do not exclude threads of the same process."""

    def __init__(self) -> None:
        self._by_place: dict[str, threading.Lock] = {}
        register_after_fork(self)

    def get(self, place: str) -> threading.Lock:
        return self._by_place.setdefault(place, threading.Lock())

    def after_fork(self) -> None:
        self._by_place.clear()


_mutexes = _FolderMutexes()


def is_leftover(name: str) -> bool:
    """True for a file left by a killed writer. Opening its folder cleans it up."""
    return name.startswith((_PART_PREFIX, _SWAP_PREFIX))


def _special_kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return ""
    if entry.is_symlink():
        return "a link"
    return "a folder" if entry.is_dir(follow_symlinks=False) else "no plain file"
