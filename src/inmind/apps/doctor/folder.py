"""Checks of the folder: existence, permissions, file system, free space, file types.

The folder is scanned once, without following links or opening files; the checks use only that scan.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from inmind.apps.doctor.result import Check, DoctorFinding, FixHints, Subject
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE, INDEX
from inmind.core.text import count_noun
from inmind.store.atomic_files import DAMAGED_SUFFIX, is_leftover
from inmind.store.filesystem import Mount
from inmind.store.sqlite.connection import find_remains

HOME = Check(Subject.PLACE, "home")
ACCESS = Check(Subject.PLACE, "permissions")
WRITING = Check(Subject.PLACE, "writing")
FILE_TYPES = Check(Subject.PLACE, "files")
DISK = Check(Subject.PLACE, "file system")
SPACE = Check(Subject.PLACE, "free space")
SIZE = Check(Subject.PLACE, "size")

LOW_SPACE_BYTES, MIN_SPACE_BYTES = 200 * 2**20, 20 * 2**20
"""Free bytes for a warning and for trouble. A dream, a migration and a checkpoint each write the data once more."""

MAX_WAL_BYTES = 64 * 2**20
"""A longer write-ahead log means that a reader holds an old snapshot; normally the log shrinks to 1 MB."""

_OTHERS_ANY, _OTHERS_WRITE = stat.S_IRWXG | stat.S_IRWXO, stat.S_IWGRP | stat.S_IWOTH
"""Mode bits of users other than the owner."""

_MAX_DEPTH = 8
"""Folder levels; inmind creates fewer."""

_FILE_TYPES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@frozen
class FileEntry:
    """A path below the home; the home is "."."""

    path: str
    mode: int
    owner: int
    size: int
    link_count: int
    """Number of hard links."""
    modified: float = 0.0
    """Modification time, in seconds."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def file_type(self) -> str:
        """Kind of special file; empty for a folder or a regular file."""
        return _FILE_TYPES.get(stat.S_IFMT(self.mode), "")

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


@frozen
class FolderScan:
    """All entries of a home."""

    entries: tuple[FileEntry, ...]
    unreadable: tuple[str, ...] = ()
    """Folders that could not be listed."""
    too_deep: tuple[str, ...] = ()
    """Folders whose paths exceed the system limit."""
    unwritable: tuple[str, ...] = ()
    """Folders and databases that this process cannot write."""

    @property
    def files(self) -> list[FileEntry]:
        return [entry for entry in self.entries if entry.is_file]

    @property
    def leftovers(self) -> list[FileEntry]:
        """Temporary files of writers that were killed or are still running."""
        return [entry for entry in self.files if is_leftover(entry.name)]

    @property
    def damaged_copies(self) -> list[str]:
        """Copies of damaged live files, kept next to the restored ones."""
        return [entry.path for entry in self.files if DAMAGED_SUFFIX in entry.name]

    def with_mode_bits(self, others: int) -> list[str]:
        """Paths with one of these mode bits; links are skipped, their mode means nothing."""
        return [entry.path for entry in self.entries if entry.mode & others and not entry.file_type]


@frozen(kw_only=True)
class DiskSpace:
    free: int
    """Bytes available to a normal user."""
    read_only: bool


def check_home(home: Path, hints: FixHints) -> DoctorFinding:
    """Check that the home exists and can be read."""
    try:
        status = home.stat()
    except FileNotFoundError:
        if home.is_symlink():
            return HOME.trouble(f"{home} is a dangling link", f"{hints.shell('rm', home)}, or create its target")
        message, fix = f"no home at {home}", f"create one: {hints.inmind('chat')}, or Memory.open() in Python"
        return HOME.warning(f"{message} yet", fix) if hints.is_default else HOME.trouble(message, fix)
    except OSError as error:
        return HOME.trouble(f"{home} cannot be read: {error.strerror}", "pass another home with --home or $INMIND_HOME")
    if not stat.S_ISDIR(status.st_mode):
        aside = hints.shell("mv", home, f"{home}.aside")
        return HOME.trouble(f"{home} is not a folder", f"{aside}, or pass another home with --home or $INMIND_HOME")
    if not is_readable(home):
        own = status.st_uid == (user := os.geteuid())
        fix = hints.shell("chmod", "u+rwx", home) if own else _ownership_fix(status.st_uid, user, hints)
        return HOME.trouble(f"{home}: permission denied", fix)
    if remains := find_remains(home / DATABASE):
        state = "empty" if (home / DATABASE).exists() else "missing"
        message = f"{home} has no journal: {DATABASE} is {state}, but {remains} belongs to an earlier memory"
        aside = hints.shell("mv", home, f"{home}.aside")
        return HOME.trouble(message, f"restore {DATABASE} from a backup; to start with an empty memory, {aside}")
    return HOME.ok(str(home))


def is_readable(home: Path) -> bool:
    """True if the folder can be listed. Tries it: mode bits and actual rights can differ."""
    try:
        os.scandir(home).close()
        os.stat(home / ".")
    except OSError:
        return False
    return True


def scan_folder(home: Path) -> FolderScan:
    """Scan a home; entries that disappear during the scan are skipped."""
    entries = [_make_entry(".", home.stat())]
    unreadable: list[str] = []
    too_deep: list[str] = []
    folders = [""]
    while folders:  # a loop, not recursion: folders may be nested thousands deep
        folder = folders.pop()
        try:
            children = [entry for path in _list_folder(home, folder) if (entry := _stat_entry(home, path))]
        except FileNotFoundError:
            continue
        except OSError as error:
            (too_deep if error.errno == errno.ENAMETOOLONG else unreadable).append(folder)
            continue
        entries += children
        folders += [entry.path for entry in reversed(children) if stat.S_ISDIR(entry.mode)]
    unwritable = [entry.path for entry in entries if _needs_write(entry) and not _may_write(home / entry.path)]
    return FolderScan(tuple(entries), tuple(unreadable), tuple(too_deep), tuple(unwritable))


def unchanged_entries(entries: Sequence[FileEntry], home: Path) -> list[FileEntry]:
    """Entries that still exist and have not changed since the scan."""
    return [entry for entry in entries if _stat_entry(home, entry.path) == entry]


def check_permissions(scan: FolderScan, home: Path, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Check that the home belongs to this user and only to this user."""
    findings = list(_permission_findings(scan, home, hints, user))
    yield from findings or [ACCESS.ok("only accessible to its owner")]


def _permission_findings(scan: FolderScan, home: Path, hints: FixHints, user: int) -> Iterator[DoctorFinding]:
    foreign = {entry.owner: entry.path for entry in reversed(scan.entries) if entry.owner != user}
    for owner, path in foreign.items():
        is_all = all(entry.owner == owner for entry in scan.entries)
        fix = _ownership_fix(owner, user, hints) if is_all else hints.take_ownership(user)
        yield ACCESS.trouble(f"{_first_and_count([path])} belongs to user {owner}, but you are user {user}", fix)
    restrict = hints.shell("chmod", "-R", "go-rwx", home)
    if writable := scan.with_mode_bits(_OTHERS_WRITE):
        yield ACCESS.trouble(f"other users can write {_first_and_count(writable)}", restrict)
    elif readable := scan.with_mode_bits(_OTHERS_ANY):
        yield ACCESS.warning(f"other users can read {_first_and_count(readable)}", restrict)
    owners = {entry.path: entry.owner for entry in scan.entries}
    for path in scan.unreadable:
        own = owners.get(path) == user
        fix = hints.shell("chmod", "-R", "u+rwX", home / path) if own else hints.take_ownership(user)
        yield ACCESS.trouble(f"{path}: permission denied", fix)


def check_writable(scan: FolderScan, home: Path, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Check that memory can write its folders and databases.

    Foreign owners are reported by `check_permissions`.
    """
    own = {entry.path: entry.mode for entry in scan.entries if entry.owner == user}
    read_only = [path for path in scan.unwritable if not own.get(path, stat.S_IWUSR) & stat.S_IWUSR]
    blocked = [path for path in scan.unwritable if path in own and path not in read_only]
    if read_only:
        yield WRITING.trouble(
            f"{_first_and_count(read_only)} cannot be written", hints.shell("chmod", "-R", "u+rwX", home)
        )
    if blocked:
        lsattr = hints.shell("lsattr", "-d", home / blocked[0])
        yield WRITING.trouble(
            f"{_first_and_count(blocked)} cannot be written despite its mode",
            f"{lsattr} shows file attributes that prevent it",
        )
    if not scan.unwritable:
        yield WRITING.ok("all folders and databases can be written")


def check_file_types(scan: FolderScan, home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Find special files, hard-linked databases and folders nested too deep.

    See `store.atomic_files`.
    """
    odd = [entry for entry in scan.entries if entry.file_type]
    for entry in odd:
        message = f"{entry.path} is {entry.file_type}; it is ignored"
        yield FILE_TYPES.warning(message, f"if it is not needed: {hints.shell('rm', home / entry.path)}")
    hard_linked = [entry for entry in scan.files if entry.path == DATABASE and entry.link_count > 1]
    for entry in hard_linked:
        message = f"{entry.path} has a hard link; opening it by the other name would damage it"
        yield FILE_TYPES.trouble(message, f"while it is not in use, {hints.break_hard_link(home / entry.path)}")
    for path in scan.too_deep:
        top = "/".join(path.split("/")[:_MAX_DEPTH])
        message = f"folders below {top} are nested deeper than the path length limit"
        yield FILE_TYPES.warning(message, f"if they are not needed: {hints.shell('rm', '-r', home / top)}")
    if not odd and not hard_linked and not scan.too_deep:
        yield FILE_TYPES.ok("only folders and regular files")


def check_disk(mount: Mount, space: DiskSpace, home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Check that the file system is local, writable and has free space."""
    filesystem = f"{mount.kind or 'the file system'} at {mount.point}"
    if mount.is_shared:
        message = f"{filesystem}: file locks are unreliable there, and two writers can corrupt the journal"
        yield DISK.trouble(message, hints.move_to_local_disk)
    if mount.read_only or space.read_only:
        writable = hints.shell("sudo", "mount", "-o", "remount,rw", mount.point)
        yield DISK.trouble(
            f"{filesystem} is read-only, but opening a home writes", f"{writable}, or {hints.move_to_local_disk}"
        )
    if not (mount.is_shared or mount.read_only or space.read_only):
        yield DISK.ok(mount.kind or "unknown")
    free = f"{format_bytes(space.free)} free"
    make_room = f"free space on {mount.point}; {hints.shell('du', '-sh', home)} shows the size of the home"
    if space.free < MIN_SPACE_BYTES:
        yield SPACE.trouble(f"{free}: writes will fail soon; nothing gets lost", make_room)
    elif space.free < LOW_SPACE_BYTES:
        yield SPACE.warning(free, make_room)
    else:
        yield SPACE.ok(free)


def check_size(scan: FolderScan, hints: FixHints) -> DoctorFinding:
    files = scan.files
    log = sum(entry.size for entry in files if entry.path == f"{DATABASE}-wal")
    total = f"{format_bytes(sum(entry.size for entry in files))} in {count_noun(len(files), 'file')}"
    if log <= MAX_WAL_BYTES:
        return SIZE.ok(f"{total}, including {format_bytes(log)} of write-ahead log")
    users = hints.shell("fuser", hints.home / DATABASE)
    message = f"{format_bytes(log)} of write-ahead log, of {total}: a process holds an old snapshot"
    return SIZE.warning(message, f"end the process that has it open ({users} shows it), then {hints.open_home}")


def format_bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < 1_000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1_000
    raise AssertionError("the last unit takes everything")


def disk_space(home: Path) -> DiskSpace:
    status = os.statvfs(home)
    return DiskSpace(free=status.f_bavail * status.f_frsize, read_only=bool(status.f_flag & os.ST_RDONLY))


def _list_folder(home: Path, folder: str) -> list[str]:
    with os.scandir(home / folder) as entries:
        return sorted(f"{folder}/{entry.name}" if folder else entry.name for entry in entries)


def _stat_entry(home: Path, path: str) -> FileEntry | None:
    try:
        return _make_entry(path, os.lstat(home / path))
    except FileNotFoundError:
        return None


def _needs_write(entry: FileEntry) -> bool:
    """True for folders and databases.

    Live files are replaced by rename, which only needs a writable folder.
    """
    return stat.S_ISDIR(entry.mode) or (entry.is_file and entry.path in (DATABASE, INDEX))


def _may_write(path: Path) -> bool:
    """Ask the system: root can write anything, and ACLs can allow more or less than the mode."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _make_entry(path: str, status: os.stat_result) -> FileEntry:
    return FileEntry(path, status.st_mode, status.st_uid, status.st_size, status.st_nlink, status.st_mtime)


def _ownership_fix(owner: int, user: int, hints: FixHints) -> str:
    return f"run inmind as user {owner}, or {hints.take_ownership(user)}"


def _first_and_count(paths: Sequence[str]) -> str:
    first = "the home itself" if paths[0] == "." else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
