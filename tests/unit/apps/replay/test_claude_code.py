"""Sessions of Claude Code: what the model saw of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded_transcripts import a_file, a_line, a_use, an_answer, lines

from inmind.apps.replay import Recording, read_recordings
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("I8")


def session(folder: Path, *written: dict[str, Any]) -> Recording:
    (recording,) = read_recordings(a_file(folder, lines(written), name="session.jsonl"))
    return recording


def said(recording: Recording) -> list[tuple[str, Any]]:
    return [(wire["role"], wire["content"]) for wire in recording.messages]


def test_an_answer_that_was_streamed_into_several_lines_is_one_message(tmp_path: Path) -> None:
    recording = session(
        tmp_path,
        {"type": "summary", "summary": "A title", "leafUuid": "elsewhere"},
        a_line("user", "1", None, "Read both."),
        a_line("assistant", "2", "1", [{"type": "text", "text": "I will."}], message_id="m1"),
        a_line("assistant", "3", "2", [a_use("t1", path="a.py")], message_id="m1"),
        a_line("user", "4", "3", [an_answer("t1")]),
        a_line("assistant", "5", "4", "Done.", message_id="m2"),
    )
    assert said(recording) == [
        ("user", "Read both."),
        ("assistant", [{"type": "text", "text": "I will."}, a_use("t1", path="a.py")]),
        ("user", [an_answer("t1")]),
        ("assistant", "Done."),
    ]
    assert recording.left_out == {"lines that are no messages": 1}


def test_results_between_the_lines_of_one_answer_all_stand_behind_it(tmp_path: Path) -> None:
    """Each result hangs on its own call, so that only one of them is on the way from the last line to the first."""
    recording = session(
        tmp_path,
        a_line("user", "1", None, "Read both."),
        a_line("assistant", "2", "1", [a_use("t1")], message_id="m1"),
        a_line("user", "3", "2", [an_answer("t1", "one")]),
        a_line("assistant", "4", "2", [a_use("t2")], message_id="m1"),
        a_line("user", "5", "4", [an_answer("t2", "two")]),
        a_line("assistant", "6", "5", "Done.", message_id="m2"),
    )
    assert said(recording)[1:] == [
        ("assistant", [a_use("t1"), a_use("t2")]),
        ("user", [an_answer("t1", "one"), an_answer("t2", "two")]),
        ("assistant", "Done."),
    ]
    assert recording.left_out == {}


def test_of_branches_the_one_with_the_last_line_counts(tmp_path: Path) -> None:
    recording = session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Hello", message_id="m1"),
        a_line("user", "3", "2", "A first try"),
        a_line("assistant", "4", "3", [a_use("t1")], message_id="m2"),
        a_line("user", "5", "4", [an_answer("t1")]),
        a_line("user", "6", "2", "A second try"),
        a_line("assistant", "7", "6", "Yes", message_id="m3"),
    )
    assert [content for _, content in said(recording)] == ["Hi", "Hello", "A second try", "Yes"]
    assert recording.left_out == {"lines of branches that were given up": 3}


def test_a_compaction_does_not_end_the_conversation_and_its_summary_is_left_out(tmp_path: Path) -> None:
    recording = session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Hello", message_id="m1"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
        a_line("user", "4", "3", "This session is continued…", isCompactSummary=True),
        a_line("user", "5", "4", "Go on"),
        a_line("assistant", "6", "5", "I do", message_id="m2"),
    )
    assert [content for _, content in said(recording)] == ["Hi", "Hello", "Go on", "I do"]
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
def test_what_the_model_did_not_see_is_left_out_and_counted(tmp_path: Path, mark: Any, reason: str) -> None:
    recording = session(
        tmp_path,
        a_line("user", "1", None, "Hi"),
        a_line("assistant", "2", "1", "Not this", **mark),
        a_line("assistant", "3", "2", "Hello", message_id="m1"),
    )
    assert said(recording) == [("user", "Hi"), ("assistant", "Hello")]
    assert recording.left_out == {reason: 1}


def test_a_line_that_is_there_twice_counts_once_and_one_that_hangs_on_nothing_stays(tmp_path: Path) -> None:
    first = a_line("user", "1", "in another file", "Hi")
    recording = session(tmp_path, first, first, a_line("assistant", "2", "also elsewhere", "Hello", message_id="m1"))
    assert said(recording) == [("user", "Hi"), ("assistant", "Hello")]


def test_links_that_run_in_a_circle_end(tmp_path: Path) -> None:
    recording = session(tmp_path, a_line("user", "1", "2", "Hi"), a_line("assistant", "2", "1", "Hello"))
    assert len(recording.messages) == 2


def test_a_file_with_nothing_but_a_title_is_an_empty_conversation(tmp_path: Path) -> None:
    assert session(tmp_path, {"type": "summary", "summary": "A title", "leafUuid": "x"}).messages == []


def test_a_session_that_is_still_being_written_is_played_up_to_its_last_whole_line(tmp_path: Path) -> None:
    written = lines(
        [a_line("user", "1", None, "Hi"), a_line("assistant", "2", "1", "Hello"), a_line("user", "3", "2", "?")]
    )
    (recording,) = read_recordings(a_file(tmp_path, written[:-20], name="session.jsonl"))
    assert said(recording) == [("user", "Hi"), ("assistant", "Hello")]
    assert recording.left_out == {"torn last lines": 1}


def test_a_message_of_another_shape_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        session(tmp_path, a_line("user", "1", None, "Hi"), a_line("assistant", "2", "1", {"not": "blocks"}))
    assert caught.value.field.endswith("session.jsonl:2: message.content")
