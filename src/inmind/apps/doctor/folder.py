"""The place: whether the home is there and its owner's alone, what it lies on, and what lies about in it.

The folder is walked once, without following a link and without opening anything; all else is told from what that saw.
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
from inmind.core.text import counted
from inmind.store.atomic_files import DAMAGED_SUFFIX, is_leftover
from inmind.store.filesystem import Mount
from inmind.store.sqlite import find_remains

HOME = Check(Subject.PLACE, "home")
ACCESS = Check(Subject.PLACE, "permissions")
WRITING = Check(Subject.PLACE, "writing")
FILE_TYPES = Check(Subject.PLACE, "files")
DISK = Check(Subject.PLACE, "file system")
SPACE = Check(Subject.PLACE, "free space")
SIZE = Check(Subject.PLACE, "size")

LOW_SPACE_BYTES, MIN_SPACE_BYTES = 200 * 2**20, 20 * 2**20
"""Bytes that are free. A dream, a migration and a checkpoint each write what is there once more."""

MAX_WAL_BYTES = 64 * 2**20
"""Bytes of a write-ahead log, which goes back to 1 MB by itself wherever nobody holds on to an old state of it."""

_OTHERS_ANY, _OTHERS_WRITE = stat.S_IRWXG | stat.S_IRWXO, stat.S_IWGRP | stat.S_IWOTH
"""What others than the owner may do."""

_MAX_DEPTH = 8
"""Steps into the home, which nothing of memory's takes."""

_FILE_TYPES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@frozen
class FileEntry:
    """What stands at a path below the home; the home itself is at "."."""

    path: str
    mode: int
    owner: int
    size: int
    link_count: int
    """How many the file has."""
    modified: float = 0.0
    """When it was last written, in seconds."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def file_type(self) -> str:
        """What it is, if it is neither a folder nor a plain file."""
        return _FILE_TYPES.get(stat.S_IFMT(self.mode), "")

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


@frozen
class FolderScan:
    """What a walk through a home has message."""

    entries: tuple[FileEntry, ...]
    unreadable: tuple[str, ...] = ()
    """Folders that could not be looked into."""
    too_deep: tuple[str, ...] = ()
    """Folders whose paths are longer than the system takes."""
    unwritable: tuple[str, ...] = ()
    """Folders and databases that whoever walked may not write."""

    @property
    def files(self) -> list[FileEntry]:
        return [entry for entry in self.entries if entry.is_file]

    @property
    def leftovers(self) -> list[FileEntry]:
        """Of writers that were killed, or have not come to an end yet."""
        return [entry for entry in self.files if is_leftover(entry.name)]

    @property
    def damaged_copies(self) -> list[str]:
        """Damaged files that were kept beside what is shown in their place."""
        return [entry.path for entry in self.files if DAMAGED_SUFFIX in entry.name]

    def with_mode_bits(self, others: int) -> list[str]:
        """What has some of these bits. A link has none of its own."""
        return [entry.path for entry in self.entries if entry.mode & others and not entry.file_type]


@frozen(kw_only=True)
class DiskSpace:
    free: int
    """Bytes, for others than the administrator."""
    read_only: bool


def check_home(home: Path, hints: FixHints) -> DoctorFinding:
    """Whether there is a home to look into."""
    try:
        status = home.stat()
    except FileNotFoundError:
        if home.is_symlink():
            return HOME.trouble(
                f"{home} is a link to what is not there", f"{hints.shell('rm', home)}, or make its target"
            )
        message, fix = f"there is none at {home}", f"begin one: {hints.inmind('chat')}, or Memory.open() in Python"
        return HOME.warning(f"{message} yet", fix) if hints.is_default else HOME.trouble(message, fix)
    except OSError as error:
        return HOME.trouble(
            f"{home} cannot be looked at: {error.strerror}", "name another one: --home, or $INMIND_HOME"
        )
    if not stat.S_ISDIR(status.st_mode):
        aside = hints.shell("mv", home, f"{home}.aside")
        return HOME.trouble(f"{home} is no folder", f"{aside}, or name another one: --home, or $INMIND_HOME")
    if not is_readable(home):
        own = status.st_uid == (user := os.geteuid())
        fix = hints.shell("chmod", "u+rwx", home) if own else _ownership_fix(status.st_uid, user, hints)
        return HOME.trouble(f"{home} may not be looked into by you", fix)
    if left := find_remains(home / DATABASE):
        lost = "empty" if (home / DATABASE).exists() else "missing"
        message = f"{home} has no journal: {DATABASE} is {lost}, and {left} is of a memory that was here"
        aside = hints.shell("mv", home, f"{home}.aside")
        return HOME.trouble(message, f"bring {DATABASE} back from a copy; to begin anew instead, {aside}")
    return HOME.ok(str(home))


def is_readable(home: Path) -> bool:
    """Asked by doing it: rights on paper and the rights of a process can differ."""
    try:
        os.scandir(home).close()
        os.stat(home / ".")
    except OSError:
        return False
    return True


def scan_folder(home: Path) -> FolderScan:
    """Everything in a home; what goes away meanwhile was not there."""
    entries = [_make_entry(".", home.stat())]
    unreadable: list[str] = []
    too_deep: list[str] = []
    folders = [""]
    while folders:  # not by calling itself: anybody may have put a folder into a folder a thousand times
        folder = folders.pop()
        try:
            found = [entry for path in _list_folder(home, folder) if (entry := _stat_entry(home, path))]
        except FileNotFoundError:
            continue
        except OSError as error:
            (too_deep if error.errno == errno.ENAMETOOLONG else unreadable).append(folder)
            continue
        entries += found
        folders += [entry.path for entry in reversed(found) if stat.S_ISDIR(entry.mode)]
    unwritable = [entry.path for entry in entries if _needs_write(entry) and not _may_write(home / entry.path)]
    return FolderScan(tuple(entries), tuple(unreadable), tuple(too_deep), tuple(unwritable))


def unchanged_entries(entries: Sequence[FileEntry], home: Path) -> list[FileEntry]:
    """Which of them are still there, and just as they were."""
    return [entry for entry in entries if _stat_entry(home, entry.path) == entry]


def check_permissions(scan: FolderScan, home: Path, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Whether the home is its owner's alone, and whether that is whoever asks."""
    found = list(_permission_findings(scan, home, hints, user))
    yield from found or [ACCESS.ok("its owner's alone")]


def _permission_findings(scan: FolderScan, home: Path, hints: FixHints, user: int) -> Iterator[DoctorFinding]:
    foreign = {entry.owner: entry.path for entry in reversed(scan.entries) if entry.owner != user}
    for owner, path in foreign.items():
        is_all = all(entry.owner == owner for entry in scan.entries)
        fix = _ownership_fix(owner, user, hints) if is_all else hints.take_ownership(user)
        yield ACCESS.trouble(f"{_first_and_count([path])} belongs to user {owner}, and you are {user}", fix)
    restrict = hints.shell("chmod", "-R", "go-rwx", home)
    if writable := scan.with_mode_bits(_OTHERS_WRITE):
        yield ACCESS.trouble(f"others may write {_first_and_count(writable)}", restrict)
    elif readable := scan.with_mode_bits(_OTHERS_ANY):
        yield ACCESS.warning(f"others may read {_first_and_count(readable)}", restrict)
    owners = {entry.path: entry.owner for entry in scan.entries}
    for path in scan.unreadable:
        own = owners.get(path) == user
        fix = hints.shell("chmod", "-R", "u+rwX", home / path) if own else hints.take_ownership(user)
        yield ACCESS.trouble(f"{path} may not be looked into by you", fix)


def check_writable(scan: FolderScan, home: Path, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Whether memory can write where it has to. Of what is somebody else's, `access` says whose it is."""
    own = {entry.path: entry.mode for entry in scan.entries if entry.owner == user}
    read_only = [path for path in scan.unwritable if not own.get(path, stat.S_IWUSR) & stat.S_IWUSR]
    blocked = [path for path in scan.unwritable if path in own and path not in read_only]
    if read_only:
        yield WRITING.trouble(
            f"{_first_and_count(read_only)} may not be written", hints.shell("chmod", "-R", "u+rwX", home)
        )
    if blocked:
        lsattr = hints.shell("lsattr", "-d", home / blocked[0])
        yield WRITING.trouble(
            f"{_first_and_count(blocked)} may not be written, whatever its mode says", f"{lsattr} tells what bars it"
        )
    if not scan.unwritable:
        yield WRITING.ok("every folder and database can be written")


def check_file_types(scan: FolderScan, home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Whether there is anything that files are not read from and written to: see `stores.files`."""
    odd = [entry for entry in scan.entries if entry.file_type]
    for entry in odd:
        message = f"{entry.path} is {entry.file_type}, which is neither read nor written nor followed"
        yield FILE_TYPES.warning(message, f"if nobody needs it: {hints.shell('rm', home / entry.path)}")
    hard_linked = [entry for entry in scan.files if entry.path == DATABASE and entry.link_count > 1]
    for entry in hard_linked:
        message = f"{entry.path} has a second name (a hard link), and whoever opens it by that one damages it"
        yield FILE_TYPES.trouble(message, f"while nobody uses it, {hints.break_hard_link(home / entry.path)}")
    for path in scan.too_deep:
        top = "/".join(path.split("/")[:_MAX_DEPTH])
        message = f"below {top} lie more folders in each other than a path can name"
        yield FILE_TYPES.warning(message, f"if nobody needs them: {hints.shell('rm', '-r', home / top)}")
    if not odd and not hard_linked and not scan.too_deep:
        yield FILE_TYPES.ok("folders and plain files alone")


def check_disk(mount: Mount, space: DiskSpace, home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Whether the file system can keep promises, and has room for them."""
    filesystem = f"{mount.kind or 'the file system'} at {mount.point}"
    if mount.is_shared:
        message = f"{filesystem}: locks do not hold there, and two writers damage the journal"
        yield DISK.trouble(message, hints.move_to_local_disk)
    if mount.read_only or space.read_only:
        writable = hints.shell("sudo", "mount", "-o", "remount,rw", mount.point)
        yield DISK.trouble(
            f"{filesystem} is read-only, and opening takes writing", f"{writable}, or {hints.move_to_local_disk}"
        )
    if not (mount.is_shared or mount.read_only or space.read_only):
        yield DISK.ok(mount.kind or "not told by this system")
    free = f"{format_bytes(space.free)} free"
    make_room = f"free some on {mount.point}; {hints.shell('du', '-sh', home)} shows what memory takes"
    if space.free < MIN_SPACE_BYTES:
        yield SPACE.trouble(f"{free}: writing will stop, and nothing is lost by that", make_room)
    elif space.free < LOW_SPACE_BYTES:
        yield SPACE.warning(free, make_room)
    else:
        yield SPACE.ok(free)


def check_size(scan: FolderScan, hints: FixHints) -> DoctorFinding:
    files = scan.files
    log = sum(entry.size for entry in files if entry.path == f"{DATABASE}-wal")
    total = f"{format_bytes(sum(entry.size for entry in files))} in {counted(len(files), 'file')}"
    if log <= MAX_WAL_BYTES:
        return SIZE.ok(f"{total}, {format_bytes(log)} of that write-ahead log")
    users = hints.shell("fuser", hints.home / DATABASE)
    message = f"{format_bytes(log)} of write-ahead log, of {total}: somebody holds on to an old state"
    return SIZE.warning(message, f"end what has it open ({users} tells), then {hints.open_home}")


def format_bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < 1_000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1_000
    raise AssertionError("the last unit takes everything")


def disk_space(home: Path) -> DiskSpace:
    found = os.statvfs(home)
    return DiskSpace(free=found.f_bavail * found.f_frsize, read_only=bool(found.f_flag & os.ST_RDONLY))


def _list_folder(home: Path, folder: str) -> list[str]:
    with os.scandir(home / folder) as found:
        return sorted(f"{folder}/{one.name}" if folder else one.name for one in found)


def _stat_entry(home: Path, path: str) -> FileEntry | None:
    try:
        return _make_entry(path, os.lstat(home / path))
    except FileNotFoundError:
        return None


def _needs_write(entry: FileEntry) -> bool:
    """In place. Pages are not: a new file takes the name of the old one, which only its folder has to allow."""
    return stat.S_ISDIR(entry.mode) or (entry.is_file and entry.path in (DATABASE, INDEX))


def _may_write(path: Path) -> bool:
    """Asked of the system: root may write anything, and somebody may have more rights than the mode says, or less."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _make_entry(path: str, status: os.stat_result) -> FileEntry:
    return FileEntry(path, status.st_mode, status.st_uid, status.st_size, status.st_nlink, status.st_mtime)


def _ownership_fix(owner: int, user: int, hints: FixHints) -> str:
    return f"run inmind as user {owner}, or {hints.take_ownership(user)}"


def _first_and_count(paths: Sequence[str]) -> str:
    first = "the home itself" if paths[0] == "." else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
