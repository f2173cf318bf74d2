"""Messages out of lines, and the file that remembers them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.input import HISTORY_FILE, line_editor, read_messages, remove_from_history, terminal_reader
from inmind.apps.chat.slash_commands import is_command, unescape
from inmind.apps.signals import InterruptHandler

pytestmark = pytest.mark.spec("I2")


def said(*lines: str) -> list[str]:
    left: Iterator[str] = iter(lines)
    return list(read_messages(lambda _: next(left, None)))


def test_a_line_is_a_message_and_a_backslash_at_its_end_joins_it_with_the_next() -> None:
    assert said("hello", "", "  ", "one \\", "two\\", "three", "four") == ["hello", "one \ntwo\nthree", "four"]


def test_a_message_that_ends_in_the_middle_is_said_as_far_as_it_came() -> None:
    assert said("one\\") == ["one"]
    assert said("one\\", "two\\") == ["one\ntwo"]


@given(st.lists(st.text(st.characters(exclude_characters="\\\n\r"))))
def test_without_a_backslash_every_line_that_says_something_is_a_message(lines: list[str]) -> None:
    assert said(*lines) == [line.strip() for line in lines if line.strip()]


def test_a_message_may_begin_with_a_slash_and_a_path_is_none_of_the_commands() -> None:
    commands = ["/undo", "/show prompt", "/note see a/b", "/nope", "/"]
    assert [message for message in [*commands, "//undo", "/etc/hosts what is it", "a /b"] if is_command(message)] == (
        commands
    )
    assert [unescape(message) for message in ("//etc/hosts?", "/etc/hosts?", "a // b")] == [
        "/etc/hosts?",
        "/etc/hosts?",
        "a // b",
    ]


def test_what_was_typed_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    with line_editor(tmp_path):
        assert (tmp_path / HISTORY_FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / HISTORY_FILE).chmod(0o644)
    with line_editor(tmp_path):
        pass
    assert (tmp_path / HISTORY_FILE).stat().st_mode & 0o777 == 0o600


def test_what_begins_with_a_space_or_was_taken_back_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["one", " a secret\\", "and more of it", "two\\", "three", "four", "four"])

    def types(_: str) -> str:
        return next(lines)

    monkeypatch.setattr("builtins.input", types)
    with line_editor(tmp_path):
        read = read_messages(terminal_reader(InterruptHandler()))
        assert [next(read) for _ in range(5)] == ["one", "a secret\nand more of it", "two\nthree", "four", "four"]
        remove_from_history("two\nthree")
        remove_from_history("never said")
    kept = (tmp_path / HISTORY_FILE).read_text().splitlines()
    assert [line for line in kept if not line.startswith("_HiStOrY")] == ["one", "four"]


def test_where_nothing_can_be_kept_there_is_only_no_history(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not mine")
    (tmp_path / HISTORY_FILE).symlink_to(tmp_path / "elsewhere")
    with line_editor(tmp_path):
        pass
    assert (tmp_path / "elsewhere").read_text() == "not mine"
    with line_editor(tmp_path / "missing"):
        pass
