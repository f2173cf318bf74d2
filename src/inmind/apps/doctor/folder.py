"""The place: whether the home is there and its owner's alone, what it lies on, and what lies about in it.

The folder is walked once, without following a link and without opening anything; all else is told from what that saw.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from inmind.apps.doctor.fix_hints import Steps
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE, INDEX
from inmind.core.text import counted
from inmind.store.atomic_files import DAMAGED, is_leftover
from inmind.store.filesystem import Mount
from inmind.store.sqlite import left_of

HOME = Check(Subject.PLACE, "home")
ACCESS = Check(Subject.PLACE, "permissions")
RIGHTS = Check(Subject.PLACE, "writing")
SHAPES = Check(Subject.PLACE, "files")
DISK = Check(Subject.PLACE, "file system")
SPACE = Check(Subject.PLACE, "free space")
SIZE = Check(Subject.PLACE, "size")

LITTLE, HARDLY_ANY = 200 * 2**20, 20 * 2**20
"""Bytes that are free. A dream, a migration and a checkpoint each write what is there once more."""

LONG_LOG = 64 * 2**20
"""Bytes of a write-ahead log, which goes back to 1 MB by itself wherever nobody holds on to an old state of it."""

_ANYTHING, _WRITE = stat.S_IRWXG | stat.S_IRWXO, stat.S_IWGRP | stat.S_IWOTH
"""What others than the owner may do."""

_DEEP = 8
"""Steps into the home, which nothing of memory's takes."""

_SHAPES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@frozen
class Entry:
    """What stands at a path below the home; the home itself is at "."."""

    path: str
    mode: int
    owner: int
    size: int
    names: int
    """How many the file has."""
    modified: float = 0.0
    """When it was last written, in seconds."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def shape(self) -> str:
        """What it is, if it is neither a folder nor a plain file."""
        return _SHAPES.get(stat.S_IFMT(self.mode), "")

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


@frozen
class Survey:
    """What a walk through a home has seen."""

    entries: tuple[Entry, ...]
    closed: tuple[str, ...] = ()
    """Folders that could not be looked into."""
    too_deep: tuple[str, ...] = ()
    """Folders whose paths are longer than the system takes."""
    fixed: tuple[str, ...] = ()
    """Folders and databases that whoever walked may not write."""

    @property
    def files(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.is_file]

    @property
    def leftovers(self) -> list[Entry]:
        """Of writers that were killed, or have not come to an end yet."""
        return [entry for entry in self.files if is_leftover(entry.name)]

    @property
    def kept_aside(self) -> list[str]:
        """Damaged files that were kept beside what is shown in their place."""
        return [entry.path for entry in self.files if DAMAGED in entry.name]

    def open_to(self, others: int) -> list[str]:
        """What has some of these bits. A link has none of its own."""
        return [entry.path for entry in self.entries if entry.mode & others and not entry.shape]


@frozen(kw_only=True)
class Space:
    free: int
    """Bytes, for others than the administrator."""
    read_only: bool


def presence(home: Path, steps: Steps) -> Finding:
    """Whether there is a home to look into."""
    try:
        status = home.stat()
    except FileNotFoundError:
        if home.is_symlink():
            return HOME.trouble(
                f"{home} is a link to what is not there", f"{steps.shell('rm', home)}, or make its target"
            )
        seen, mend = f"there is none at {home}", f"begin one: {steps.inmind('chat')}, or Memory.open() in Python"
        return HOME.warning(f"{seen} yet", mend) if steps.is_usual else HOME.trouble(seen, mend)
    except OSError as error:
        return HOME.trouble(
            f"{home} cannot be looked at: {error.strerror}", "name another one: --home, or $INMIND_HOME"
        )
    if not stat.S_ISDIR(status.st_mode):
        aside = steps.shell("mv", home, f"{home}.aside")
        return HOME.trouble(f"{home} is no folder", f"{aside}, or name another one: --home, or $INMIND_HOME")
    if not may_be_walked(home):
        own = status.st_uid == (user := os.geteuid())
        mend = steps.shell("chmod", "u+rwx", home) if own else _not_yours(status.st_uid, user, steps)
        return HOME.trouble(f"{home} may not be looked into by you", mend)
    if left := left_of(home / DATABASE):
        lost = "empty" if (home / DATABASE).exists() else "missing"
        seen = f"{home} has no journal: {DATABASE} is {lost}, and {left} is of a memory that was here"
        aside = steps.shell("mv", home, f"{home}.aside")
        return HOME.trouble(seen, f"bring {DATABASE} back from a copy; to begin anew instead, {aside}")
    return HOME.ok(str(home))


def may_be_walked(home: Path) -> bool:
    """Asked by doing it: rights on paper and the rights of a process can differ."""
    try:
        os.scandir(home).close()
        os.stat(home / ".")
    except OSError:
        return False
    return True


def walked(home: Path) -> Survey:
    """Everything in a home; what goes away meanwhile was not there."""
    entries = [_entry(".", home.stat())]
    closed: list[str] = []
    too_deep: list[str] = []
    folders = [""]
    while folders:  # not by calling itself: anybody may have put a folder into a folder a thousand times
        folder = folders.pop()
        try:
            found = [entry for path in _listed(home, folder) if (entry := _looked_at(home, path))]
        except FileNotFoundError:
            continue
        except OSError as error:
            (too_deep if error.errno == errno.ENAMETOOLONG else closed).append(folder)
            continue
        entries += found
        folders += [entry.path for entry in reversed(found) if stat.S_ISDIR(entry.mode)]
    fixed = [entry.path for entry in entries if _is_written(entry) and not _may_write(home / entry.path)]
    return Survey(tuple(entries), tuple(closed), tuple(too_deep), tuple(fixed))


def unchanged(entries: Sequence[Entry], home: Path) -> list[Entry]:
    """Which of them are still there, and just as they were."""
    return [entry for entry in entries if _looked_at(home, entry.path) == entry]


def access(survey: Survey, home: Path, steps: Steps, *, user: int) -> Iterator[Finding]:
    """Whether the home is its owner's alone, and whether that is whoever asks."""
    found = list(_accessible(survey, home, steps, user))
    yield from found or [ACCESS.ok("its owner's alone")]


def _accessible(survey: Survey, home: Path, steps: Steps, user: int) -> Iterator[Finding]:
    theirs = {entry.owner: entry.path for entry in reversed(survey.entries) if entry.owner != user}
    for owner, path in theirs.items():
        whole = all(entry.owner == owner for entry in survey.entries)
        mend = _not_yours(owner, user, steps) if whole else steps.taken_over(user)
        yield ACCESS.trouble(f"{_some([path])} belongs to user {owner}, and you are {user}", mend)
    alone = steps.shell("chmod", "-R", "go-rwx", home)
    if writable := survey.open_to(_WRITE):
        yield ACCESS.trouble(f"others may write {_some(writable)}", alone)
    elif readable := survey.open_to(_ANYTHING):
        yield ACCESS.warning(f"others may read {_some(readable)}", alone)
    owners = {entry.path: entry.owner for entry in survey.entries}
    for path in survey.closed:
        own = owners.get(path) == user
        mend = steps.shell("chmod", "-R", "u+rwX", home / path) if own else steps.taken_over(user)
        yield ACCESS.trouble(f"{path} may not be looked into by you", mend)


def rights(survey: Survey, home: Path, steps: Steps, *, user: int) -> Iterator[Finding]:
    """Whether memory can write where it has to. Of what is somebody else's, `access` says whose it is."""
    own = {entry.path: entry.mode for entry in survey.entries if entry.owner == user}
    shut = [path for path in survey.fixed if not own.get(path, stat.S_IWUSR) & stat.S_IWUSR]
    barred = [path for path in survey.fixed if path in own and path not in shut]
    if shut:
        yield RIGHTS.trouble(f"{_some(shut)} may not be written", steps.shell("chmod", "-R", "u+rwX", home))
    if barred:
        tell = steps.shell("lsattr", "-d", home / barred[0])
        yield RIGHTS.trouble(
            f"{_some(barred)} may not be written, whatever its mode says", f"{tell} tells what bars it"
        )
    if not survey.fixed:
        yield RIGHTS.ok("every folder and database can be written")


def shapes(survey: Survey, home: Path, steps: Steps) -> Iterator[Finding]:
    """Whether there is anything that files are not read from and written to: see `stores.files`."""
    odd = [entry for entry in survey.entries if entry.shape]
    for entry in odd:
        seen = f"{entry.path} is {entry.shape}, which is neither read nor written nor followed"
        yield SHAPES.warning(seen, f"if nobody needs it: {steps.shell('rm', home / entry.path)}")
    twice = [entry for entry in survey.files if entry.path == DATABASE and entry.names > 1]
    for entry in twice:
        seen = f"{entry.path} has a second name (a hard link), and whoever opens it by that one damages it"
        yield SHAPES.trouble(seen, f"while nobody uses it, {steps.alone(home / entry.path)}")
    for path in survey.too_deep:
        top = "/".join(path.split("/")[:_DEEP])
        seen = f"below {top} lie more folders in each other than a path can name"
        yield SHAPES.warning(seen, f"if nobody needs them: {steps.shell('rm', '-r', home / top)}")
    if not odd and not twice and not survey.too_deep:
        yield SHAPES.ok("folders and plain files alone")


def disk(mount: Mount, space: Space, home: Path, steps: Steps) -> Iterator[Finding]:
    """Whether the file system can keep promises, and has room for them."""
    lies_on = f"{mount.kind or 'the file system'} at {mount.point}"
    if mount.is_shared:
        seen = f"{lies_on}: locks do not hold there, and two writers damage the journal"
        yield DISK.trouble(seen, steps.elsewhere)
    if mount.read_only or space.read_only:
        writable = steps.shell("sudo", "mount", "-o", "remount,rw", mount.point)
        yield DISK.trouble(f"{lies_on} is read-only, and opening takes writing", f"{writable}, or {steps.elsewhere}")
    if not (mount.is_shared or mount.read_only or space.read_only):
        yield DISK.ok(mount.kind or "not told by this system")
    free = f"{in_bytes(space.free)} free"
    make_room = f"free some on {mount.point}; {steps.shell('du', '-sh', home)} shows what memory takes"
    if space.free < HARDLY_ANY:
        yield SPACE.trouble(f"{free}: writing will stop, and nothing is lost by that", make_room)
    elif space.free < LITTLE:
        yield SPACE.warning(free, make_room)
    else:
        yield SPACE.ok(free)


def sizes(survey: Survey, steps: Steps) -> Finding:
    files = survey.files
    log = sum(entry.size for entry in files if entry.path == f"{DATABASE}-wal")
    whole = f"{in_bytes(sum(entry.size for entry in files))} in {counted(len(files), 'file')}"
    if log <= LONG_LOG:
        return SIZE.ok(f"{whole}, {in_bytes(log)} of that write-ahead log")
    users = steps.shell("fuser", steps.home / DATABASE)
    seen = f"{in_bytes(log)} of write-ahead log, of {whole}: somebody holds on to an old state"
    return SIZE.warning(seen, f"end what has it open ({users} tells), then {steps.any_opening}")


def in_bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if number < 1_000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1_000
    raise AssertionError("the last unit takes everything")


def space_at(home: Path) -> Space:
    found = os.statvfs(home)
    return Space(free=found.f_bavail * found.f_frsize, read_only=bool(found.f_flag & os.ST_RDONLY))


def _listed(home: Path, folder: str) -> list[str]:
    with os.scandir(home / folder) as found:
        return sorted(f"{folder}/{one.name}" if folder else one.name for one in found)


def _looked_at(home: Path, path: str) -> Entry | None:
    try:
        return _entry(path, os.lstat(home / path))
    except FileNotFoundError:
        return None


def _is_written(entry: Entry) -> bool:
    """In place. Pages are not: a new file takes the name of the old one, which only its folder has to allow."""
    return stat.S_ISDIR(entry.mode) or (entry.is_file and entry.path in (DATABASE, INDEX))


def _may_write(path: Path) -> bool:
    """Asked of the system: root may write anything, and somebody may have more rights than the mode says, or less."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _entry(path: str, status: os.stat_result) -> Entry:
    return Entry(path, status.st_mode, status.st_uid, status.st_size, status.st_nlink, status.st_mtime)


def _not_yours(owner: int, user: int, steps: Steps) -> str:
    return f"run inmind as user {owner}, or {steps.taken_over(user)}"


def _some(paths: Sequence[str]) -> str:
    first = "the home itself" if paths[0] == "." else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"
