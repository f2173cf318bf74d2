"""Operations on a folder follow no link out of it and lose no replaced file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inmind.errors import UnsafeStorage
from inmind.store.atomic_files import Folder
from inmind.store.file_operations import FileState

MAX_BYTES = 10
BEGINNING = b"x" * (MAX_BYTES + 1)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "pages" / "detail").mkdir(parents=True)
    return Folder(tmp_path / "pages")


def save_file(folder: Folder, name: str, data: bytes) -> FileState:
    """Save a file as an editor does and return its state."""
    temporary = folder.path / "temporary"
    temporary.write_bytes(data)
    os.replace(temporary, folder.path / name)
    return folder.read(name, max_bytes=MAX_BYTES)


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr("inmind.store.atomic_files.os.link", link)


@pytest.fixture(params=["links", "copies"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with hard links, and one without."""
    if request.param == "copies":
        without_links(monkeypatch)


@pytest.mark.spec("A5")
@pytest.mark.usefixtures("file_system")
def test_different_files_saved_aside_under_one_name_are_all_kept(folder: Folder) -> None:
    """Names are derived from the start of a file, which two files may share."""
    saved: list[str] = []
    for end in (b"one", b"two", b"another", b"two"):
        save_file(folder, "detail/a.md", BEGINNING + end)
        saved.append(folder.save_aside("detail/a.md", new_name="detail/a.md.damaged-1"))
    assert saved == ["detail/a.md.damaged-1", "detail/a.md.damaged-1-2", "detail/a.md.damaged-1-3", saved[1]]
    ends = [(folder.path / name).read_bytes().removeprefix(BEGINNING) for name in saved]
    assert ends == [b"one", b"two", b"another", b"two"]


@pytest.mark.usefixtures("file_system")
def test_a_copy_of_a_large_file_has_all_bytes(folder: Folder) -> None:
    save_file(folder, "a.md", b"y" * 3_000_000)
    saved = folder.save_aside("a.md", new_name="a.md.damaged-1")
    assert (folder.path / saved).stat().st_size == 3_000_000


@pytest.mark.spec("A5")
def test_a_large_file_with_only_the_same_start_is_not_replaced(folder: Folder) -> None:
    state = save_file(folder, "a.md", BEGINNING + b"seen")
    save_file(folder, "a.md", BEGINNING + b"saved since")
    assert not folder.exchange("a.md", b"ours", expected=state)
    assert (folder.path / "a.md").read_bytes() == BEGINNING + b"saved since"
    assert sorted(path.name for path in folder.path.iterdir()) == ["a.md", "detail"]


def test_an_unchanged_large_file_is_replaced(folder: Folder) -> None:
    assert folder.exchange("a.md", b"ours", expected=save_file(folder, "a.md", BEGINNING + b"seen"))
    assert (folder.path / "a.md").read_bytes() == b"ours"


@pytest.mark.spec("F54")
def test_a_folder_that_is_a_link_is_not_listed(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("not yours to read")
    (folder.path / "archive").symlink_to(outside)
    save_file(folder, "detail/a.md", b"a")
    assert (folder.list_files("detail"), folder.list_files("archive"), folder.list_files("nowhere")) == (
        {"a.md": ""},
        None,
        None,
    )
    assert folder.first_non_folder("archive/secret.md") == "archive"
    assert (
        folder.first_non_folder("detail/a.md"),
        folder.first_non_folder("nowhere/a.md"),
        folder.first_non_folder("a.md"),
    ) == ("", "", "")


@pytest.mark.spec("F54")
@pytest.mark.parametrize("linked", ["sessions", "sessions/s"])
def test_no_link_below_the_home_is_followed(tmp_path: Path, linked: str) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    (outside / "s").mkdir(parents=True)
    (outside / "a.md").write_text("not yours to read")
    (outside / "s" / "a.md").write_text("not yours to read")
    (home / linked).parent.mkdir(parents=True)
    (home / linked).symlink_to(outside)
    folder = Folder(home / "sessions" / "s", home=home)
    before = sorted(outside.rglob("*"))
    operations: list[Callable[[], object]] = [
        lambda: folder.replace("a.md", b"ours"),
        lambda: folder.exchange("a.md", b"ours", expected=FileState()),
        lambda: folder.remove("a.md", expected=FileState(data=b"not yours to read", max_bytes=MAX_BYTES)),
        lambda: folder.save_aside("a.md", new_name="b.md"),
        lambda: folder.make_subfolder("detail"),
        lambda: folder.clean_up(),
        lambda: folder.lock().__enter__(),
        lambda: folder.open_append("a.md").__enter__(),
    ]
    for operation in operations:
        with pytest.raises(UnsafeStorage, match="links are not followed"):
            operation()
    assert "links are not followed" in folder.read("a.md", max_bytes=MAX_BYTES).read_error
    assert (folder.list_files("s"), folder.first_non_folder("a.md"), sorted(outside.rglob("*"))) == (
        None,
        linked,
        before,
    )


def test_a_listing_names_the_type_of_special_files(folder: Folder) -> None:
    save_file(folder, "detail/b.md", b"b")
    (folder.path / "detail" / "sub").mkdir()
    (folder.path / "detail" / "a.md").symlink_to("b.md")
    os.mkfifo(folder.path / "detail" / "pipe")
    for hidden in (".git", "a.md~", "#a.md#"):
        (folder.path / "detail" / hidden).write_text("x")
    assert folder.list_files("detail") == {"a.md": "a link", "b.md": "", "pipe": "no plain file", "sub": "a folder"}


@pytest.mark.spec("F54")
def test_appended_bytes_do_not_appear_under_other_links(folder: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"theirs\n")
    os.link(outside, folder.path / "log")
    with folder.open_append("log") as file:
        file.append(b"ours\n")
    assert ((folder.path / "log").read_bytes(), outside.read_bytes()) == (b"ours\n", b"theirs\n")
    with folder.open_append("log") as file:
        file.append(b"more\n")
    assert (folder.path / "log").read_bytes() == b"ours\nmore\n"


@pytest.mark.spec("F54")
def test_a_file_state_reports_other_links(folder: Folder, tmp_path: Path) -> None:
    assert not save_file(folder, "a.md", b"a").has_other_links
    os.link(folder.path / "a.md", tmp_path / "another")
    assert folder.read("a.md", max_bytes=MAX_BYTES).has_other_links
