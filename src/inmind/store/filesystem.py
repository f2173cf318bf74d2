"""The file system of a folder, and whether SQLite is safe on it.

SQLite uses locks of the operating system, and its write-ahead log uses shared memory. Both work only within one
machine: on a network file system, or one shared with the host of a virtual machine, two writers could write at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath

from inmind.core.frozen import frozen

_MOUNT_TABLE = Path("/proc/self/mountinfo")

_SHARED_KINDS = frozenset(
    "nfs nfs4 cifs smb2 smb3 smbfs afs ceph glusterfs lustre gfs2 ocfs2 beegfs gpfs ncpfs coda davfs "
    "9p virtiofs vboxsf vmhgfs prl_fs drvfs fakeowner".split()
)
"""File systems of other machines, and of the hosts of virtual machines."""

_FUSE = "fuse"
_LOCAL_FUSE_KINDS = frozenset({"fuse.ntfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.ext2", "fuse.ext4", "fuseblk"})

_ESCAPED = re.compile(r"\\([0-7]{3})")


@frozen(kw_only=True)
class Mount:
    """A mounted file system."""

    kind: str
    """The system's name for it, such as ext4; empty if unknown."""
    point: str = "/"
    read_only: bool = False

    @property
    def is_shared(self) -> bool:
        """True if another machine may write there.

        A FUSE file system of unknown kind counts as shared.
        """
        is_unknown_fuse = self.kind.partition(".")[0] == _FUSE and self.kind not in _LOCAL_FUSE_KINDS
        return self.kind in _SHARED_KINDS or is_unknown_fuse


def mount_of(path: Path) -> Mount:
    """Return the mount of a path. Only Linux provides it; elsewhere its kind is empty."""
    try:
        table = _MOUNT_TABLE.read_text("utf-8", errors="surrogateescape")
    except OSError:
        return Mount(kind="")
    return find_mount(table, path.resolve())


def find_mount(table: str, path: PurePath) -> Mount:
    """Find the mount of a path in the mount table: the nearest above it, the last of several.

    A line has six fields, a variable number of optional ones, a dash, and then the kind, the source and the kind's
    options.
    """
    nearest = Mount(kind="")
    for mount in _mounts(table.splitlines()):
        if path.is_relative_to(mount.point) and (not nearest.kind or len(mount.point) >= len(nearest.point)):
            nearest = mount
    return nearest


def _mounts(lines: Iterable[str]) -> Iterable[Mount]:
    for line in lines:
        place, _, kind = line.partition(" - ")
        fields, kinds = place.split(" "), kind.split(" ")
        if len(fields) >= 6 and len(kinds) >= 3:
            options = {*fields[5].split(","), *kinds[2].split(",")}
            yield Mount(kind=kinds[0], point=_ESCAPED.sub(_character, fields[4]), read_only="ro" in options)


def _character(escaped: re.Match[str]) -> str:
    return chr(int(escaped[1], 8))
