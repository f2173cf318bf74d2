from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.apps.doctor.home import Mount, find_mount, mount_of

TABLE = """\
22 27 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
27 0 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
30 27 0:40 / /home rw,relatime shared:2 - nfs4 server:/export/home rw,vers=4.2,addr=192.0.2.7
31 30 8:3 / /home/ada/My\\040Disk ro,relatime - ext4 /dev/sdb1 rw
32 27 0:41 / /mnt/c rw,noatime - 9p C:\\134 rw,dirsync
33 27 0:42 / /twice rw - ext4 /dev/sdc1 rw
34 33 0:43 / /twice rw - tmpfs tmpfs rw
a line that is no mount
"""


@pytest.mark.spec("M42")
@each_row(
    ("path", "mount"),
    [
        ("/var/lib/memory", Mount(kind="ext4", point="/")),
        ("/home/ada/.inmind", Mount(kind="nfs4", point="/home")),
        ("/homely", Mount(kind="ext4", point="/")),
        ("/home/ada/My Disk/memory", Mount(kind="ext4", point="/home/ada/My Disk")),
        ("/mnt/c/Users", Mount(kind="9p", point="/mnt/c")),
        ("/twice/over", Mount(kind="tmpfs", point="/twice")),
    ],
)
def test_the_mount_of_a_path_is_the_nearest_above_it_and_the_last_of_several(path: str, mount: Mount) -> None:
    assert find_mount(TABLE, PurePosixPath(path)) == mount


@pytest.mark.spec("M42")
@each_row(
    ("kind", "shared"),
    [
        *((kind, True) for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse.sshfs", "fuse")),
        *((kind, False) for kind in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuseblk", "")),
    ],
)
def test_shared_file_systems_are_distinguished_from_local_ones(kind: str, shared: bool) -> None:
    assert Mount(kind=kind).is_shared is shared


@given(st.text())
def test_any_mount_table_can_be_parsed(table: str) -> None:
    assert isinstance(find_mount(table, PurePosixPath("/home/ada")), Mount)


def test_the_mount_of_the_temporary_folder_is_known(tmp_path: Path) -> None:
    if not Path("/proc/self/mountinfo").exists():
        pytest.skip("only Linux has /proc/self/mountinfo")
    assert mount_of(tmp_path).kind
