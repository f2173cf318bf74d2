"""Messages read from lines, and the history file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.command import is_command
from inmind.apps.chat.terminal import HISTORY_FILE, line_editor, read_messages

pytestmark = pytest.mark.spec("I2")


def messages_from(*lines: str) -> list[str]:
    remaining: Iterator[str] = iter(lines)
    return list(read_messages(lambda _: next(remaining, None)))


def test_a_line_is_a_message_and_a_backslash_at_its_end_joins_it_with_the_next() -> None:
    assert messages_from("hello", "", "  ", "one \\", "two\\", "three", "four") == ["hello", "one \ntwo\nthree", "four"]


def test_a_message_cut_off_by_the_end_of_input_is_sent() -> None:
    assert messages_from("one\\") == ["one"]
    assert messages_from("one\\", "two\\") == ["one\ntwo"]


@given(st.lists(st.text(st.characters(exclude_characters="\\\n\r"))))
def test_without_a_backslash_every_line_that_is_not_blank_is_a_message(lines: list[str]) -> None:
    assert messages_from(*lines) == [line.strip() for line in lines if line.strip()]


def test_a_message_can_begin_with_a_slash_and_a_path_is_not_a_command() -> None:
    commands = ["/undo", "/show prompt", "/note see a/b", "/nope", "/"]
    assert [message for message in [*commands, "//undo", "/etc/hosts what is it", "a /b"] if is_command(message)] == (
        commands
    )


def test_only_the_owner_can_read_the_history_file(tmp_path: Path) -> None:
    with line_editor(tmp_path):
        assert (tmp_path / HISTORY_FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / HISTORY_FILE).chmod(0o644)
    with line_editor(tmp_path):
        pass
    assert (tmp_path / HISTORY_FILE).stat().st_mode & 0o777 == 0o600


def test_without_a_writable_history_file_the_chat_runs_without_history(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not mine")
    (tmp_path / HISTORY_FILE).symlink_to(tmp_path / "elsewhere")
    with line_editor(tmp_path):
        pass
    assert (tmp_path / "elsewhere").read_text() == "not mine"
    with line_editor(tmp_path / "missing"):
        pass
