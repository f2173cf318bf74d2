"""Checks of everything around the journal: folder, settings, model, embedder, software.

The folder is scanned once, without following links or opening files; its checks use only that scan. Dreams fall back
to rules and search to keywords, so a problem with the model or the embedder is only a warning.

A network file system is trouble. SQLite uses locks of the operating system, and its write-ahead log uses shared
memory. Both work only within one machine: on a network file system, or one shared with the host of a virtual machine,
two writers could write at once.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path, PurePath

import apsw

from inmind.apps.doctor import DoctorFinding, FixHints, ok, trouble, warning
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG, DATABASE, INDEX
from inmind.core.settings import ModelSettings, Settings, load_settings
from inmind.core.text import count_noun
from inmind.dreams.models import Question, model_from_settings
from inmind.errors import OMITTED, InmindError, InvalidInput
from inmind.search.embedders import create_embedder
from inmind.search.embedders.base import Embedder
from inmind.store.sqlite.connection import find_remains, journal_mode

_SHARED_KINDS = frozenset(
    "nfs nfs4 cifs smb2 smb3 smbfs afs ceph glusterfs lustre gfs2 ocfs2 beegfs gpfs ncpfs coda davfs "
    "9p virtiofs vboxsf vmhgfs prl_fs drvfs fakeowner".split()
)
"""File systems of other machines, and of the hosts of virtual machines."""

_LOCAL_FUSE_KINDS = frozenset({"fuse.ntfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.ext2", "fuse.ext4", "fuseblk"})


@frozen(kw_only=True)
class Mount:
    """A mounted file system."""

    kind: str
    """The system's name for it, such as ext4; empty if unknown."""
    point: str = "/"

    @property
    def is_shared(self) -> bool:
        """True if another machine may write there.

        A FUSE file system of unknown kind counts as shared.
        """
        is_fuse = self.kind.partition(".")[0] == "fuse"
        return self.kind in _SHARED_KINDS or (is_fuse and self.kind not in _LOCAL_FUSE_KINDS)


def mount_of(path: Path) -> Mount:
    """Return the mount of a path. Only Linux provides it; elsewhere its kind is empty."""
    try:
        table = Path("/proc/self/mountinfo").read_text("utf-8", errors="surrogateescape")
    except OSError:
        return Mount(kind="")
    return find_mount(table, path.resolve())


def find_mount(table: str, path: PurePath) -> Mount:
    """Find the mount of a path in the mount table: the nearest above it, the last of several.

    A line has six fields, a variable number of optional ones, a dash, and then the kind, the source and the kind's
    options.
    """
    nearest = Mount(kind="")
    for line in table.splitlines():
        place, _, kind = line.partition(" - ")
        fields, kinds = place.split(" "), kind.split(" ")
        point = re.sub(r"\\([0-7]{3})", lambda escaped: chr(int(escaped[1], 8)), fields[4]) if len(fields) > 5 else ""
        if point and kinds[0] and path.is_relative_to(point) and (not nearest.kind or len(point) >= len(nearest.point)):
            nearest = Mount(kind=kinds[0], point=point)
    return nearest


LOW_SPACE_BYTES, MIN_SPACE_BYTES = 200 * 2**20, 20 * 2**20
"""Free bytes for a warning and for trouble. A dream, a migration and a checkpoint each write the data once more."""

MAX_WAL_BYTES = 64 * 2**20
"""A longer write-ahead log means that a reader holds an old snapshot; normally the log shrinks to 1 MB."""

_OTHER_HOME = "pass another home with --home or $INMIND_HOME"

MODEL_TIMEOUT_SECONDS = 5.0
"""Timeout of the test call."""

_MAX_DEPTH = 8
"""Folder levels; inmind creates fewer."""

_SPECIAL_FILES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@frozen
class FolderScan:
    """All entries of a home."""

    entries: Mapping[str, os.stat_result]
    """The status of each path, without following links; the home is "."."""
    unreadable: tuple[str, ...] = ()
    """Folders that could not be listed."""
    too_deep: tuple[str, ...] = ()
    """Folders whose paths exceed the system limit."""
    unwritable: tuple[str, ...] = ()
    """Folders and databases that this process cannot write."""

    @property
    def files(self) -> dict[str, os.stat_result]:
        return {path: status for path, status in self.entries.items() if stat.S_ISREG(status.st_mode)}

    def with_mode_bits(self, others: int) -> list[str]:
        """Paths with one of these mode bits; links are skipped, their mode means nothing."""
        modes = {path: status.st_mode for path, status in self.entries.items()}
        return [path for path, mode in modes.items() if mode & others and stat.S_IFMT(mode) not in _SPECIAL_FILES]


def check_home(home: Path, hints: FixHints) -> DoctorFinding:
    """Check that the home exists and can be read."""
    try:
        status = home.stat()
    except FileNotFoundError:
        if home.is_symlink():
            fix = f"{hints.shell('rm', home)}, or create its target"
            return trouble("home", f"{home} is a dangling link", fix)
        message, fix = f"no home at {home}", f"create one: {hints.inmind('chat')}, or Memory.open() in Python"
        return warning("home", f"{message} yet", fix) if hints.is_default else trouble("home", message, fix)
    except OSError as error:
        return trouble("home", f"{home} cannot be read: {error.strerror}", _OTHER_HOME)
    aside = hints.shell("mv", home, f"{home}.aside")
    if not stat.S_ISDIR(status.st_mode):
        return trouble("home", f"{home} is not a folder", f"{aside}, or {_OTHER_HOME}")
    if not is_readable(home):
        is_own = status.st_uid == (user := os.geteuid())
        fix = hints.shell("chmod", "u+rwx", home) if is_own else hints.run_as_owner(status.st_uid, user)
        return trouble("home", f"{home}: permission denied", fix)
    if remains := find_remains(home / DATABASE):
        state = "empty" if (home / DATABASE).exists() else "missing"
        message = f"{home} has no journal: {DATABASE} is {state}, but {remains} belongs to an earlier memory"
        return trouble("home", message, f"restore {DATABASE} from a backup; to start with an empty memory, {aside}")
    return ok("home", str(home))


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
    entries, unreadable, too_deep = {".": home.stat()}, list[str](), list[str]()
    folders = [""]
    while folders:  # a loop, not recursion: folders may be nested thousands deep
        folder = folders.pop()
        try:
            for name in os.listdir(home / folder):
                with suppress(FileNotFoundError):
                    path = f"{folder}/{name}" if folder else name
                    entries[path] = os.lstat(home / path)
                    folders += [path] if stat.S_ISDIR(entries[path].st_mode) else []
        except FileNotFoundError:
            continue
        except OSError as error:
            (too_deep if error.errno == errno.ENAMETOOLONG else unreadable).append(folder)
    # Live files are replaced by rename, which only needs a writable folder. The system is asked: root can write
    # anything, and ACLs can allow more or less than the mode.
    entries = dict(sorted(entries.items()))
    unwritable = [
        path
        for path, status in entries.items()
        if stat.S_ISDIR(status.st_mode) or (path in (DATABASE, INDEX) and stat.S_ISREG(status.st_mode))
        if not os.access(home / path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
    ]
    return FolderScan(entries, tuple(unreadable), tuple(too_deep), tuple(unwritable))


def check_folder(home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Check the folder, its files and its file system."""
    scan, user = scan_folder(home), os.geteuid()
    mount, space = mount_of(home), os.statvfs(home)
    read_only = bool(space.f_flag & os.ST_RDONLY)
    access = list(check_permissions(scan, hints, user=user))
    yield from access or [ok("permissions", "only accessible to its owner")]
    if not read_only:  # on a read-only file system nothing is writable
        yield from check_writable(scan, hints, user=user)
    types = list(check_file_types(scan, hints))
    yield from types or [ok("files", "only folders and regular files")]
    yield from check_disk(mount, free=space.f_bavail * space.f_frsize, read_only=read_only, hints=hints)
    yield check_size(scan, hints)


def check_permissions(scan: FolderScan, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Check that the home belongs to this user and only to this user."""
    foreign = {status.st_uid: path for path, status in reversed([*scan.entries.items()]) if status.st_uid != user}
    for owner, path in foreign.items():
        is_all = all(status.st_uid == owner for status in scan.entries.values())
        fix = hints.run_as_owner(owner, user) if is_all else hints.take_ownership(user)
        yield trouble("permissions", f"{_first_of([path])} belongs to user {owner}, but you are user {user}", fix)
    restrict = hints.shell("chmod", "-R", "go-rwx", hints.home)
    if writable := scan.with_mode_bits(0o022):
        yield trouble("permissions", f"other users can write {_first_of(writable)}", restrict)
    elif readable := scan.with_mode_bits(0o077):
        yield warning("permissions", f"other users can read {_first_of(readable)}", restrict)
    for path in scan.unreadable:
        is_own = scan.entries[path or "."].st_uid == user
        fix = hints.shell("chmod", "-R", "u+rwX", hints.home / path) if is_own else hints.take_ownership(user)
        yield trouble("permissions", f"{path}: permission denied", fix)


def check_writable(scan: FolderScan, hints: FixHints, *, user: int) -> Iterator[DoctorFinding]:
    """Check that memory can write the folders and databases that this user owns."""
    if own := [path for path in scan.unwritable if scan.entries[path].st_uid == user]:
        message, fix = f"{_first_of(own)} cannot be written", hints.shell("chmod", "-R", "u+rwX", hints.home)
        if scan.entries[own[0]].st_mode & stat.S_IWUSR:
            fix = f"{hints.shell('lsattr', '-d', hints.home / own[0])} shows file attributes that prevent it"
        yield trouble("writing", message, fix)
    elif not scan.unwritable:
        yield ok("writing", "all folders and databases can be written")


def check_file_types(scan: FolderScan, hints: FixHints) -> Iterator[DoctorFinding]:
    """Find special files, hard-linked databases and folders nested too deep."""
    for path, status in scan.entries.items():
        if kind := _SPECIAL_FILES.get(stat.S_IFMT(status.st_mode)):
            yield warning("files", f"{path} is {kind}; it is ignored", hints.remove_if_unused(hints.home / path))
    if DATABASE in scan.files and scan.files[DATABASE].st_nlink > 1:
        message = f"{DATABASE} has a hard link; opening it by the other name would damage it"
        yield trouble("files", message, f"while it is not in use, {hints.break_hard_link(hints.home / DATABASE)}")
    for path in scan.too_deep:
        top = "/".join(path.split("/")[:_MAX_DEPTH])
        message = f"folders below {top} are nested deeper than the path length limit"
        yield warning("files", message, hints.remove_if_unused(hints.home / top))


def check_disk(mount: Mount, *, free: int, read_only: bool, hints: FixHints) -> Iterator[DoctorFinding]:
    """Check that the file system is local, writable and has free space."""
    filesystem = f"{mount.kind or 'the file system'} at {mount.point}"
    copy = f"while it is not in use, {hints.shell('cp', '-a', hints.home, '/on/a/local/disk')}, then use that home"
    if mount.is_shared:
        message = f"{filesystem}: file locks are unreliable there, and two writers can corrupt the journal"
        yield trouble("file system", message, copy)
    if read_only:
        remount = hints.shell("sudo", "mount", "-o", "remount,rw", mount.point)
        yield trouble("file system", f"{filesystem} is read-only, but opening a home writes", f"{remount}, or {copy}")
    if not mount.is_shared and not read_only:
        yield ok("file system", mount.kind or "unknown")
    space = f"{format_bytes(free)} free"
    fix = f"free space on {mount.point}; {hints.shell('du', '-sh', hints.home)} shows the size of the home"
    if free < MIN_SPACE_BYTES:
        yield trouble("free space", f"{space}: writes will fail soon; nothing gets lost", fix)
    elif free < LOW_SPACE_BYTES:
        yield warning("free space", space, fix)
    else:
        yield ok("free space", space)


def check_size(scan: FolderScan, hints: FixHints) -> DoctorFinding:
    sizes = {path: status.st_size for path, status in scan.files.items()}
    log = sizes.get(f"{DATABASE}-wal", 0)
    total = f"{format_bytes(sum(sizes.values()))} in {count_noun(len(sizes), 'file')}"
    if log <= MAX_WAL_BYTES:
        return ok("size", f"{total}, including {format_bytes(log)} of write-ahead log")
    message = f"{format_bytes(log)} of write-ahead log, of {total}: a process holds an old snapshot"
    users = hints.shell("fuser", hints.home / DATABASE)
    return warning("size", message, f"end the process that has it open ({users} shows it), then {hints.open_home}")


def format_bytes(number: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if number < 1_000:
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1_000
    return f"{number:,.1f} GB"


def _first_of(paths: Sequence[str]) -> str:
    first = "the home itself" if paths[0] == "." else paths[0]
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1:,} more"


def check_settings(home: Path, hints: FixHints) -> tuple[Settings | None, DoctorFinding]:
    """Parse config.toml. An unknown setting is trouble: opening the home refuses it."""
    path = home / CONFIG
    if path.exists() and not path.is_file():  # opening a pipe would block
        return None, trouble(CONFIG, f"{path} is not a regular file", hints.shell("mv", path, f"{path}.aside"))
    try:
        parsed = load_settings(home)
    except InvalidInput as error:
        fix = f"correct it in {path}, or move the file away to use the defaults"
        return None, trouble(CONFIG, describe_setting_error(error), fix)
    return parsed, ok(CONFIG, "all settings are valid" if path.exists() else "none: using the defaults")


def describe_setting_error(error: InvalidInput) -> str:
    """The invalid setting and its expected value."""
    name = error.field.removeprefix("settings.")
    setting = error.value if name == CONFIG else name if error.value is OMITTED else f"{name} = {error.value!r}"
    return f"{setting}: expected {error.expected}"


def check_model(settings: ModelSettings, *, online: bool) -> DoctorFinding:
    try:
        model = model_from_settings(settings)
    except InvalidInput as error:
        return warning("endpoint", f"{error.field}: expected {error.expected}", f"set that under [model] in {CONFIG}")
    if model is None:
        return ok("endpoint", "none: dreams use rules")
    if settings.key_env and not os.environ.get(settings.key_env):
        message = f"{model.name}: its key is looked for in ${settings.key_env}, which is not set"
        return warning("endpoint", message, f"`export {settings.key_env}=…`")
    if not online:
        return ok("endpoint", f"{model.name} at {settings.url or 'its provider'}, not called")
    question = Question(system="Answer with one word.", prompt="Say: ready", max_tokens=1)
    try:
        model.ask(question, seconds=MODEL_TIMEOUT_SECONDS)
    except InmindError as error:
        fix = f"start it, or correct url, name and key_env under [model] in {CONFIG}; dreams use rules until then"
        return warning("endpoint", f"{model.name}: {getattr(error, 'reason', error)}", fix)
    return ok("endpoint", f"{model.name} answers")


def check_embedder(choice: str | Embedder | None, *, online: bool) -> tuple[Embedder | None, DoctorFinding]:
    """Find the embedder and check that it works."""
    fix = "fix it, or choose another embedder"
    try:
        embedder = create_embedder(choice)
        if embedder is None:
            hint = ' (`pip install "inmind[vectors]"` installs one)' if choice == "auto" else ""
            return None, ok("embedder", f"none: keyword search only{hint}")
        if not online and choice != "auto":  # the automatic one is local; any other may be remote
            return embedder, ok("embedder", f"{embedder.name}, not called")
        embedder.embed(["test"])
    except InvalidInput as error:
        return None, warning("embedder", f"{choice} cannot be used: expected {error.expected}", fix)
    except InmindError as error:
        return None, warning("embedder", f"{error}; keyword search only until then", fix)
    return embedder, ok("embedder", f"{embedder.name} answers")


def check_software() -> Iterator[DoctorFinding]:
    """Versions, and the extras of the package that are installed and missing."""
    yield ok("versions", f"inmind {_version('inmind')}, Python {platform.python_version()}, {platform.system()}")
    try:
        missing = missing_packages(metadata.requires("inmind") or ())
    except metadata.PackageNotFoundError:
        yield ok("extras", "unknown: inmind is not installed as a package")
        return
    installed = ", ".join(extra for extra, packages in missing.items() if not packages) or "none"
    rest = ",".join(extra for extra, packages in missing.items() if packages)
    yield ok("extras", f'{installed}; `pip install "inmind[{rest}]"` installs the rest' if rest else installed)


_EXTRA_REQUIREMENT = re.compile(r"""([\w.-]+)[^;]*;.*\bextra\s*==\s*['"]([\w-]+)['"]""")


def missing_packages(requirements: Iterable[str]) -> dict[str, list[str]]:
    """For each user-facing extra, its packages that are not installed."""
    missing: dict[str, list[str]] = {}
    for match in filter(None, map(_EXTRA_REQUIREMENT.match, requirements)):
        package, extra = match.groups()
        if extra not in ("all", "bench", "dev", "docs"):
            missing.setdefault(extra, []).extend([] if _version(package) else [package])
    return missing


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def check_sqlite() -> DoctorFinding:
    version = apsw.sqlite_lib_version()
    if journal_mode(version) == "wal":
        return ok("SQLite", f"{version}, of apsw {apsw.apsw_version()}")
    message = f"{version} can corrupt a shared write-ahead log; using the slower rollback journal instead"
    return warning("SQLite", message, '`pip install --upgrade "apsw>=3.51.3"`')
