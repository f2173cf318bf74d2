"""Tools for the files of a folder, and the paths that they refuse."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from inmind.apps.chat.file_tools import (
    MAX_FILE_BYTES,
    MAX_LISTED,
    MAX_MATCHES,
    MAX_RESULT_CHARS,
    TOOLS,
    FileChange,
    FileTools,
    ToolOutput,
)
from inmind.session.recorded import HostCall

pytestmark = pytest.mark.spec("I2", "J3")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "inmind.db").write_text("the journal")
    (tmp_path / "secret.txt").write_text("beyond")
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "notes.md").write_text("first\nSecond line\nthird\n")
    (work / "src" / "app.py").write_text("print('second')\n")
    (work / ".env").write_text("KEY=second")
    return work


@pytest.fixture
def tools(work: Path) -> FileTools:
    return FileTools(work, home=work.parent / "home")


def call(tools: FileTools, name: str, arguments: Any = None, **more: Any) -> ToolOutput:
    chosen = more if arguments is None else arguments
    return tools.execute(HostCall(id="call-1", name=name, arguments=chosen, text=""))


def test_a_listing_counts_hidden_names(tools: FileTools) -> None:
    assert call(tools, "list_files").text == "notes.md (24 bytes)\nsrc/\n(1 hidden name left out)"
    assert call(tools, "list_files", path="src").text == "app.py (16 bytes)"


@pytest.mark.spec("J4")
def test_a_name_that_is_not_utf8_is_escaped_and_cannot_be_opened(tools: FileTools, work: Path) -> None:
    odd = work / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "menu.txt").write_text("espresso")
    assert "caf\\xe9/" in call(tools, "list_files").text.splitlines()
    assert call(tools, "search_files", text="espresso").text == "caf\\xe9/menu.txt:1: espresso"
    assert call(tools, "read_file", path="caf\\xe9/menu.txt").error


def test_files_removed_during_a_listing_are_skipped(
    tools: FileTools, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite removes its journals, and editors their swap files, at any moment."""
    vanishing = {"home": work.parent / "home" / "inmind.db-journal", "work": work / "going.txt"}
    real, removed = os.scandir, list[Path]()

    class RemovingScandir:
        def __init__(self, folder: Any) -> None:
            self._entries = real(folder)

        def __enter__(self) -> list[os.DirEntry[str]]:
            entries = list(self._entries)
            for file in [file for file in vanishing.values() if file.name in {entry.name for entry in entries}]:
                file.unlink()
                removed.append(file)
            return entries

        def __exit__(self, *_: object) -> None:
            self._entries.close()

    for file in vanishing.values():
        file.write_text("not for long")
    monkeypatch.setattr(os, "scandir", RemovingScandir)
    outcome = call(tools, "list_files")
    assert sorted(removed) == sorted(vanishing.values())
    assert (outcome.text, outcome.error) == ("notes.md (24 bytes)\nsrc/\n(1 hidden name left out)", False)


def test_without_a_home_folder_every_call_is_refused(work: Path) -> None:
    outcome = call(FileTools(work, home=work.parent / "gone"), "read_file", path="notes.md")
    assert outcome.error


def test_a_long_listing_is_cut_with_a_count(tools: FileTools, work: Path) -> None:
    for number in range(MAX_LISTED):
        (work / "src" / f"{number:04}.txt").touch()
    listed = call(tools, "list_files", path="src").text.splitlines()
    assert len(listed) == MAX_LISTED + 1
    assert listed[-1] == "(1 more)"


def test_a_file_is_read_from_any_line_and_in_parts_if_it_is_long(tools: FileTools, work: Path) -> None:
    assert call(tools, "read_file", path="./notes.md").text == "first\nSecond line\nthird\n"
    assert call(tools, "read_file", path="notes.md", line=3).text == "third\n"
    assert call(tools, "read_file", path="notes.md", line=4).error
    long = "".join(f"{number:09}\n" for number in range(MAX_RESULT_CHARS // 10 + 5))
    (work / "long.txt").write_text(long)
    first, _, hint = call(tools, "read_file", path="long.txt").text.rpartition("\n(")
    assert long.startswith(first)
    assert hint == f"5 more lines: read on with line={MAX_RESULT_CHARS // 10 + 1})"
    rest = call(tools, "read_file", path="long.txt", line=MAX_RESULT_CHARS // 10 + 1).text
    assert first + rest == long


def test_lines_are_counted_as_editors_count_them(tools: FileTools, work: Path) -> None:
    (work / "odd.txt").write_text("one\x0c\u2028still one\ntwo\n")
    assert call(tools, "read_file", path="odd.txt", line=2).text == "two\n"
    assert call(tools, "search_files", text="two").text == "odd.txt:2: two"


def test_a_line_longer_than_a_result_is_cut(tools: FileTools, work: Path) -> None:
    (work / "one.txt").write_text("x" * (2 * MAX_RESULT_CHARS))
    assert call(tools, "read_file", path="one.txt").text == "x" * MAX_RESULT_CHARS + "… (line is cut)"


def test_a_search_covers_every_file_except_hidden_ones(tools: FileTools) -> None:
    assert call(tools, "search_files", text="SECOND").text.splitlines() == [
        "notes.md:2: Second line",
        "src/app.py:1: print('second')",
    ]
    assert call(tools, "search_files", text="second", path="src").text == "src/app.py:1: print('second')"
    assert call(tools, "search_files", text="second", path="notes.md").text == "notes.md:2: Second line"
    assert call(tools, "search_files", text="fourth").text == "No matches."


def test_a_search_with_many_matches_is_cut_with_a_count(tools: FileTools, work: Path) -> None:
    (work / "much.txt").write_text("needle\n" * (MAX_MATCHES + 7))
    lines = call(tools, "search_files", text="needle").text.splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert lines[-1] == "(7 or more further matches)"


def test_writing_a_file_creates_its_folders_and_keeps_its_permissions(tools: FileTools, work: Path) -> None:
    assert (
        call(tools, "write_file", path="docs/new/page.md", text="hello\n").text == "Created docs/new/page.md: 1 line."
    )
    assert (work / "docs" / "new" / "page.md").read_text() == "hello\n"
    (work / "src" / "app.py").chmod(0o754)
    assert call(tools, "write_file", path="src/app.py", text="pass\n").text == "Wrote src/app.py: 1 line."
    assert (work / "src" / "app.py").stat().st_mode & 0o777 == 0o754
    assert sorted(os.listdir(work / "src")) == ["app.py"]


def test_a_refused_change_is_not_written_and_the_result_has_the_reason(work: Path) -> None:
    changes: list[FileChange] = []

    def refuse(change: FileChange) -> str:
        changes.append(change)
        return "it is Sunday"

    tools = FileTools(work, home=work.parent / "home", refuse_write=refuse)
    outcome = call(tools, "write_file", path="notes.md", text="gone")
    assert (outcome.text, outcome.error) == ("Not written: it is Sunday.", True)
    assert changes == [FileChange("notes.md", "first\nSecond line\nthird\n", "gone")]
    assert (work / "notes.md").read_text().startswith("first")
    assert call(tools, "write_file", path="notes.md", text=changes[0].before).text == "notes.md already has this text."
    assert len(changes) == 1


def test_a_file_saved_during_the_question_is_not_overwritten(work: Path) -> None:
    def save_meanwhile(change: FileChange) -> str:
        (work / change.path).write_text("my own words")
        return ""

    tools = FileTools(work, home=work.parent / "home", refuse_write=save_meanwhile)
    assert call(tools, "write_file", path="notes.md", text="gone").error
    assert call(tools, "write_file", path="new.md", text="gone").error
    assert (work / "notes.md").read_text() == (work / "new.md").read_text() == "my own words"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "src/../../secret.txt",
        "/etc/passwd",
        "~/secret.txt",
        "..",
        "out/secret.txt",
        "outfile",
        "src/\x00",
        "new.md? [y/N] y\nChange other.md",
        "gpj\u202emd.new",
        "..\\secret.txt",
        ".env",
        "src/.git/config",
        "",
        ".",
        "src",
        "nothing.txt",
        "fifo",
        "notes.md/inside",
        "x" * 300,
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "write_file"])
@pytest.mark.spec("J4")
def test_no_path_leaves_the_folder_and_only_regular_files_are_opened(
    tools: FileTools, work: Path, tool: str, path: str
) -> None:
    (work / "out").symlink_to(work.parent)
    (work / "outfile").symlink_to(work.parent / "secret.txt")
    os.mkfifo(work / "fifo")
    text = {"text": "mine"} if tool == "write_file" else {}
    outcome = call(tools, tool, path=path, **text)
    created = tool == "write_file" and path == "nothing.txt"
    assert outcome.error != created
    assert "beyond" not in outcome.text
    assert (work.parent / "secret.txt").read_text() == "beyond"
    assert (work / ".env").read_text() == "KEY=second"


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.sampled_from(["..", ".", "", "src", "out", "outfile", "home", "~", "secret.txt", "inmind.db"]))
)
@pytest.mark.spec("J4")
def test_no_combination_of_path_steps_leaves_the_folder(tools: FileTools, work: Path, steps: list[str]) -> None:
    if not (work / "out").exists():
        (work / "out").symlink_to(work.parent)
    path = "/".join(steps)
    outcomes = [call(tools, "read_file", path=path), call(tools, "list_files", path=path)]
    outcomes.append(call(tools, "search_files", text="e", path=path))
    assert not any(secret in outcome.text for outcome in outcomes for secret in ("beyond", "the journal", "KEY="))


def test_links_are_neither_searched_nor_listed_as_files(tools: FileTools, work: Path) -> None:
    (work / "out").symlink_to(work.parent)
    assert "out (a link)" in call(tools, "list_files").text
    assert call(tools, "search_files", text="beyond").text == "No matches."
    (work / "outfile").symlink_to(work.parent / "secret.txt")
    assert call(tools, "read_file", path="outfile").text == "outfile is a link; links are not followed."


@pytest.mark.spec("J1")
def test_files_of_the_memory_home_are_refused(tmp_path: Path) -> None:
    home = tmp_path / "work" / "memory"
    home.mkdir(parents=True)
    (home / "inmind.db").write_text("the journal")
    os.link(home / "inmind.db", tmp_path / "work" / "copy.db")
    tools = FileTools(tmp_path / "work", home=home)
    for path in ("memory/inmind.db", "copy.db"):
        assert call(tools, "read_file", path=path).error
        assert call(tools, "write_file", path=path, text="").error
    assert call(tools, "list_files", path="memory").error
    assert call(tools, "search_files", text="journal").text == "No matches."
    inside = FileTools(home, home=home)
    assert call(inside, "read_file", path="inmind.db").error
    assert (home / "inmind.db").read_text() == "the journal"


def test_files_that_are_binary_or_too_large_are_neither_read_nor_overwritten(tools: FileTools, work: Path) -> None:
    (work / "image.png").write_bytes(b"\x89PNG\xff")
    (work / "nul.txt").write_bytes(b"a\x00b")
    (work / "huge.txt").write_text("x" * (MAX_FILE_BYTES + 1))
    for name in ("image.png", "nul.txt", "huge.txt"):
        before = (work / name).read_bytes()
        assert call(tools, "read_file", path=name).error
        assert call(tools, "write_file", path=name, text="mine").error
        assert (work / name).read_bytes() == before
    assert call(tools, "write_file", path="new.txt", text="x" * (MAX_FILE_BYTES + 1)).error


INVALID_ARGUMENTS: list[Any] = [
    None,
    [],
    "notes.md",
    {},
    {"path": 7},
    {"path": "\ud800"},
    {"\ud800": 1},
    {"path": "notes.md", "line": "1"},
    {"path": "notes.md", "line": True},
    {"path": "notes.md", "line": 0},
    {"path": "notes.md", "lines": 1},
]


@pytest.mark.parametrize("arguments", INVALID_ARGUMENTS)
def test_invalid_arguments_are_an_error_that_can_be_encoded(tools: FileTools, arguments: Any) -> None:
    outcome = tools.execute(HostCall(id="call-1", name="read_file", arguments=arguments, text=""))
    assert outcome.error
    assert outcome.text.encode()


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
    name=st.text(string.ascii_letters, min_size=1, max_size=8),
)
def test_a_written_text_is_read_back_unchanged(tools: FileTools, text: str, name: str) -> None:
    call(tools, "write_file", path=f"made/{name}.txt", text=text)
    read = call(tools, "read_file", path=f"made/{name}.txt").text
    assert read == (text or "(the file is empty)")


def test_every_tool_declares_its_arguments() -> None:
    for tool in TOOLS.values():
        assert set(tool.required) <= set(tool.properties)
        assert tool.parameters["additionalProperties"] is False
