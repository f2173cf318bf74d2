"""Tenants as homes in a folder: which folders are tenants, and how a home is erased."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from bundle_builders import fill_home_with_all_kinds
from tenant_builders import create_tenant, fill_tenant

from inmind import Memory
from inmind.apps.tenants.folders import TenantHomes
from inmind.core.paths import DATABASE
from inmind.errors import InvalidInput, NotFound, StoreBusy, StoreError, UnsafeStorage

pytestmark = pytest.mark.spec("J8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "homes"


@pytest.fixture
def homes(folder: Path) -> TenantHomes:
    return TenantHomes(folder)


def test_homes_are_private_to_their_owner(homes: TenantHomes, folder: Path) -> None:
    home = Path(create_tenant(homes, "ada"))
    assert [path.stat().st_mode & 0o777 for path in (folder, home)] == [0o700, 0o700]
    assert os.listdir(folder) == ["ada"]


def test_a_home_cannot_contain_tenants(homes: TenantHomes, folder: Path) -> None:
    """A tenant in another's home would be erased with it, and could be read there."""
    create_tenant(homes, "ada")
    with pytest.raises(InvalidInput, match="not a home"):
        TenantHomes(folder / "ada")


def test_folders_that_are_not_tenants_are_neither_listed_nor_erased(
    homes: TenantHomes, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    fill_tenant(outside)
    create_tenant(homes, "ada")
    (folder / "link").symlink_to(outside)
    (folder / "file").write_text("other data")
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("other data")
    (folder / "linked").mkdir()
    (folder / "linked" / DATABASE).symlink_to(outside / DATABASE)
    (folder / "a%41").mkdir()
    (folder / "a%41" / DATABASE).touch()
    assert [one.name for one in homes.list_all()] == ["ada"]
    for name in ("link", "file", "full", "linked", "aA"):
        with pytest.raises(NotFound):
            homes.erase(name)
    for name in ("link", "file", "full", "linked"):
        with pytest.raises(InvalidInput, match="does not exist yet"):
            create_tenant(homes, name)
    fill_tenant(outside, session="later")


def test_an_empty_folder_is_the_leftover_of_a_killed_process(homes: TenantHomes, folder: Path) -> None:
    for name in ("ada", "bob"):
        (folder / name).mkdir(parents=True)
    fill_tenant(create_tenant(homes, "ada"))
    with pytest.raises(NotFound):
        homes.erase("bob")
    assert os.listdir(folder) == ["ada"]


def test_a_database_of_another_program_is_not_erased(homes: TenantHomes, folder: Path) -> None:
    (folder / "shop").mkdir(parents=True)
    connection: Any = apsw.Connection(str(folder / "shop" / DATABASE))
    connection.execute("CREATE TABLE orders (id)")
    connection.close()
    with pytest.raises(UnsafeStorage, match="another application"):
        homes.erase("shop")
    assert (folder / "shop" / DATABASE).stat().st_size > 0


def test_links_in_a_home_are_removed_and_not_followed(homes: TenantHomes, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "deed").write_text("of the house")
    home = Path(create_tenant(homes, "ada"))
    fill_tenant(home)
    (home / "sessions" / "away").symlink_to(precious)
    (home / "deed").symlink_to(precious / "deed")
    homes.erase("ada")
    assert not home.exists()
    assert (precious / "deed").read_text() == "of the house"


def test_erasing_a_home_removes_all_its_files(homes: TenantHomes, folder: Path) -> None:
    home = Path(create_tenant(homes, "ada"))
    fill_home_with_all_kinds(home)
    assert homes.erase("ada").events > 50
    assert os.listdir(folder) == []


@pytest.mark.parametrize("finish", ["erase", "inventory"])
def test_a_kill_before_the_files_are_gone_leaves_an_empty_home(
    homes: TenantHomes, folder: Path, monkeypatch: pytest.MonkeyPatch, finish: str
) -> None:
    """The home is still listed, and the next call removes its remaining files."""
    home = Path(create_tenant(homes, "ada"))
    fill_tenant(home)
    with monkeypatch.context() as patched:
        patched.setattr("inmind.apps.tenants.folders._remove", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            homes.erase("ada")
    for files in ([*home.rglob("*.md")], [home / "index.db"], []):
        assert [one.name for one in homes.list_all()] == ["ada"]
        with pytest.raises(UnsafeStorage):
            Memory.open(home, embedder=None)
        for file in files:
            file.unlink(missing_ok=True)
    if finish == "erase":
        assert homes.erase("ada").events == 0
    else:
        with pytest.raises(NotFound):
            homes.inventory("ada")
    assert os.listdir(folder) == []


def _interrupt(_: Path) -> None:
    raise KeyboardInterrupt


def test_another_process_cannot_write_to_an_erased_home(homes: TenantHomes) -> None:
    """Its write fails with an error, and no file of the home remains."""
    home = Path(create_tenant(homes, "ada"))
    fill_tenant(home)
    code = (
        "import sys; from inmind import Memory; from inmind.errors import StoreError\n"
        "with Memory.open(sys.argv[1], embedder=None) as memory:\n"
        "    session = memory.session('shop')\n"
        "    print('open', flush=True); sys.stdin.readline()\n"
        "    try: session.note('lost?')\n"
        "    except StoreError as error: print(type(error).__name__, flush=True)\n"
        "    else: print('stored', flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(home)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "open\n"
        homes.erase("ada")
        output, _ = other.communicate("\n", timeout=60)
    assert output.strip() in ("NotDurable", "Damaged", "StoreError")
    assert [one.name for one in homes.list_all()] == []


def test_erasing_a_busy_home_times_out_and_changes_nothing(folder: Path) -> None:
    homes = TenantHomes(folder, busy_seconds=0.05)
    home = Path(create_tenant(homes, "ada"))
    fill_tenant(home)
    before = homes.inventory("ada")
    connection: Any = apsw.Connection(str(home / DATABASE))
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy):
        homes.erase("ada")
    connection.close()
    assert homes.inventory("ada") == before


def test_a_damaged_journal_raises_and_nothing_is_removed(homes: TenantHomes) -> None:
    home = Path(create_tenant(homes, "ada"))
    fill_tenant(home)
    (home / DATABASE).write_bytes(b"no database" * 1_000)
    for file in home.glob(f"{DATABASE}-*"):
        file.unlink()
    with pytest.raises(StoreError):
        homes.erase("ada")
    assert (home / DATABASE).exists()
