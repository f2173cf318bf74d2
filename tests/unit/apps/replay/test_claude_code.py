"""Recordings of Claude Code sessions: the messages that the model saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_transcripts import a_file, a_line, a_use, an_answer, lines

from inmind.apps.replay import Recording, read_recordings
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("I8")


def read_session(folder: Path, *records: dict[str, Any]) -> Recording:
    (recording,) = read_recordings(a_file(folder, lines(records), name="session.jsonl"))
    return recording


def roles_and_contents(recording: Recording) -> list[tuple[str, Any]]:
    return [(wire["role"], wire["content"]) for wire in recording.messages]


def test_an_answer_streamed_into_several_lines_is_one_message(tmp_path: Path) -> None:
    recording = read_session(
        tmp_path,
        {"type": "summary", "summary": "A title", "leafUuid": "elsewhere"},
        a_line("user", "1", None, "Read both."),
        a_line("assistant", "2", "1", [{"type": "text", "text": "I will."}], message_id="m1"),
        a_line("assistant", "3", "2", [a_use("t1", path="a.py")], message_id="m1"),
        a_line("user", "4", "3", [an_answer("t1")]),
        a_line("assistant", "5", "4", "Done.", message_id="m2"),
    )
    assert roles_and_contents(recording) == [
        ("user", "Read both."),
        ("assistant", [{"type": "text", "text": "I will."}, a_use("t1", path="a.py")]),
        ("user", [an_answer("t1")]),
        ("assistant", "Done."),
    ]
    assert recording.left_out == {"lines that are no messages": 1}


def test_results_between_the_lines_of_one_answer_follow_it(tmp_path: Path) -> None:
    """Each result has its call as parent, so only one is on the path from last to first line."""
    recording = read_session(
        tmp_path,
        a_line("user", "1", None, "Read both."),
        a_line("assistant", "2", "1", [a_use("t1")], message_id="m1"),
        a_line("user", "3", "2", [an_answer("t1", "one")]),
        a_line("assistant", "4", "2", [a_use("t2")], message_id="m1"),
        a_line("user", "5", "4", [an_answer("t2", "two")]),
        a_line("assistant", "6", "5", "Done.", message_id="m2"),
    )
    assert roles_and_contents(recording)[1:] == [
        ("assistant", [a_use("t1"), a_use("t2")]),
        ("user", [an_answer("t1", "one"), an_answer("t2", "two")]),
        ("assistant", "Done."),
    ]
    assert recording.left_out == {}


def test_only_the_branch_with_the_last_line_is_read(tmp_path: Path) -> None:
    recording = read_session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Hello", message_id="m1"),
        a_line("user", "3", "2", "A first try"),
        a_line("assistant", "4", "3", [a_use("t1")], message_id="m2"),
        a_line("user", "5", "4", [an_answer("t1")]),
        a_line("user", "6", "2", "A second try"),
        a_line("assistant", "7", "6", "Yes", message_id="m3"),
    )
    assert [content for _, content in roles_and_contents(recording)] == ["Hi", "Hello", "A second try", "Yes"]
    assert recording.left_out == {"lines of branches that were given up": 3}


def test_a_compaction_does_not_end_the_conversation_and_its_summary_is_left_out(tmp_path: Path) -> None:
    recording = read_session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Hello", message_id="m1"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
        a_line("user", "4", "3", "This session is continued…", isCompactSummary=True),
        a_line("user", "5", "4", "Go on"),
        a_line("assistant", "6", "5", "I do", message_id="m2"),
    )
    assert [content for _, content in roles_and_contents(recording)] == ["Hi", "Hello", "Go on", "I do"]
    assert recording.left_out["summaries of compactions"] == 1


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ({"isSidechain": True}, "lines of sub-agents"),
        ({"isMeta": True}, "meta lines"),
        ({"isVisibleInTranscriptOnly": True}, "meta lines"),
        ({"isApiErrorMessage": True}, "errors of the provider"),
    ],
)
def test_lines_that_the_model_did_not_see_are_left_out_and_counted(tmp_path: Path, mark: Any, reason: str) -> None:
    recording = read_session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Not this", **mark),
        a_line("assistant", "3", "2", "Hello", message_id="m1"),
    )
    assert roles_and_contents(recording) == [("user", "Hi"), ("assistant", "Hello")]
    assert recording.left_out == {reason: 1}


def test_a_duplicate_line_counts_once_and_a_line_with_an_unknown_parent_is_kept(tmp_path: Path) -> None:
    first = a_line("user", "1", "in another file", "Hi")
    recording = read_session(
        tmp_path, first, first, a_line("assistant", "2", "also elsewhere", "Hello", message_id="m1")
    )
    assert roles_and_contents(recording) == [("user", "Hi"), ("assistant", "Hello")]


def test_reading_ends_if_parent_links_form_a_cycle(tmp_path: Path) -> None:
    recording = read_session(tmp_path, a_line("user", "1", "2", "Hi"), a_line("assistant", "2", "1", "Hello"))
    assert len(recording.messages) == 2


def test_a_file_with_only_a_title_is_an_empty_conversation(tmp_path: Path) -> None:
    assert read_session(tmp_path, {"type": "summary", "summary": "A title", "leafUuid": "x"}).messages == []


def test_a_session_in_progress_is_read_up_to_its_last_complete_line(tmp_path: Path) -> None:
    content = lines(
        [a_line("user", "1", None, "Hi"), a_line("assistant", "2", "1", "Hello"), a_line("user", "3", "2", "?")]
    )
    (recording,) = read_recordings(a_file(tmp_path, content[:-20], name="session.jsonl"))
    assert roles_and_contents(recording) == [("user", "Hi"), ("assistant", "Hello")]
    assert recording.left_out == {"torn last lines": 1}


def test_a_malformed_message_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_session(tmp_path, a_line("user", "1", None, "Hi"), a_line("assistant", "2", "1", {"not": "blocks"}))
    assert caught.value.field.endswith("session.jsonl:2: message.content")
