"""Recordings in every supported file format, detected from the content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import a_call, assistant, user
from recorded_transcripts import AGENTDOJO, ANTHROPIC, CHAT, SWE_AGENT, SYSTEM, TAU, TAU2, a_file, lines

from inmind.apps.replay import Recording, read_recordings
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("I8")

TOOLS = [{"type": "function", "function": {"name": "create_page"}}]


def read_one(folder: Path, content: object) -> Recording:
    (recording,) = read_recordings(a_file(folder, content))
    return recording


@pytest.mark.parametrize(
    "content",
    [CHAT, {"messages": CHAT}, [{"messages": CHAT}], lines(CHAT), lines([{"messages": CHAT}]), [{"traj": CHAT}]],
)
def test_every_form_of_a_chat_is_read_as_the_same_recording(tmp_path: Path, content: object) -> None:
    recording = read_one(tmp_path, content)
    assert (recording.format, recording.system, recording.messages) == ("openai", [SYSTEM], CHAT[1:])


def test_the_tools_of_a_chat_are_kept_and_older_functions_are_tools(tmp_path: Path) -> None:
    assert read_one(tmp_path, {"messages": CHAT, "tools": TOOLS}).tools == TOOLS
    assert read_one(tmp_path, {"messages": CHAT, "functions": [{"name": "create_page"}]}).tools == TOOLS


def test_each_line_is_a_conversation_and_a_limit_keeps_the_first(tmp_path: Path) -> None:
    path = a_file(tmp_path, lines([{"messages": CHAT}, {"messages": CHAT[:2], "id": "b"}]), name="chats.jsonl")
    assert [recording.name for recording in read_recordings(path)] == ["chats #1", "chats #2 (b)"]
    assert len(read_recordings(path, limit=1)) == 1


@pytest.mark.parametrize("form", [list, lines], ids="list lines".split())
def test_each_list_of_messages_is_a_conversation(tmp_path: Path, form: Any) -> None:
    path = a_file(tmp_path, form([CHAT, [], CHAT[1:3]]), name="chats.json")
    first, empty, last = read_recordings(path)
    assert (first.name, first.system, first.messages) == ("chats #1", [SYSTEM], CHAT[1:])
    assert (empty.messages, last.messages) == ([], CHAT[1:3])
    assert len(read_recordings(path, limit=2)) == 2


def test_a_torn_last_line_is_counted_with_the_last_conversation(tmp_path: Path) -> None:
    path = a_file(tmp_path, lines([{"messages": CHAT}, TAU2["simulations"][0]]) + b'{"messages": [{"ro')
    assert [recording.left_out for recording in read_recordings(path)] == [
        {},
        {"calls and results of the user's own tools": 2, "torn last lines": 1},
    ]


def test_anthropic_messages_keep_blocks_system_and_tools_without_response_metadata(tmp_path: Path) -> None:
    recording = read_one(tmp_path, ANTHROPIC)
    assert (recording.format, recording.system, recording.tools) == (
        "anthropic",
        ANTHROPIC["system"],
        ANTHROPIC["tools"],
    )
    assert [set(wire) for wire in recording.messages] == [{"role", "content"}] * 4
    assert recording.messages[2] == ANTHROPIC["messages"][2]


@pytest.mark.parametrize(
    ("case", "format"),
    [
        ({"messages": [user("Hi"), assistant("Hello")]}, "openai"),
        ({"messages": [user("Hi"), assistant("Hello")], "system": "Be kind."}, "anthropic"),
        ({"messages": [user("Hi"), a_call("c")], "system": "Be kind."}, "openai"),
        ({"messages": [user("Hi")], "tools": [{"name": "t", "input_schema": {"type": "object"}}]}, "anthropic"),
        ({"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}]}]}, "anthropic"),
    ],
)
def test_the_provider_is_detected_from_fields_that_only_one_provider_has(
    tmp_path: Path, case: Any, format: str
) -> None:
    assert read_one(tmp_path, case).format == format


def test_a_separate_system_prompt_becomes_a_system_message(tmp_path: Path) -> None:
    recording = read_one(tmp_path, {"messages": [user("Hi"), a_call("c")], "system": "Be kind."})
    assert recording.system == [{"role": "system", "content": "Be kind."}]


def test_tau_bench_runs_lose_fields_that_are_null(tmp_path: Path) -> None:
    recording = read_one(tmp_path, TAU)
    assert recording.name.endswith("#1 (3)")
    assert recording.messages == [CHAT[1], assistant("Sure.")]


def test_tau2_bench_runs_have_the_policy_as_system_prompt_and_calls_in_chat_form(tmp_path: Path) -> None:
    recording = read_one(tmp_path, TAU2)
    assert recording.system == [{"role": "system", "content": "Be kind."}]
    assert recording.messages == [
        assistant("Hi!"),
        user("Where is order W77?"),
        a_call("x1", "get_order", '{"order_id": "W77"}'),
        {"role": "tool", "content": "shipped", "tool_call_id": "x1"},
        assistant("On its way."),
    ]


def test_the_users_own_tools_are_left_out_and_counted(tmp_path: Path) -> None:
    assert read_one(tmp_path, TAU2).left_out == {"calls and results of the user's own tools": 2}


def test_agentdojo_results_are_paired_with_calls_by_order_and_contain_errors(tmp_path: Path) -> None:
    recording = read_one(tmp_path, AGENTDOJO)
    calls, failed, succeeded = recording.messages[1:4]
    assert recording.system == [{"role": "system", "content": [{"type": "text", "text": "Be useful."}]}]
    assert [call["function"]["name"] for call in calls["tool_calls"]] == ["find_event", "get_event"]
    assert [call["id"] for call in calls["tool_calls"]] == [failed["tool_call_id"], succeeded["tool_call_id"]]
    assert failed["content"] == "Error: ValueError: no such event"
    assert succeeded["content"] == "id_: '13'"


def test_swe_agent_runs_are_read_from_their_history(tmp_path: Path) -> None:
    recording = read_one(tmp_path, SWE_AGENT)
    assert recording.messages[2] == {"role": "tool", "content": "a.py", "tool_call_id": "c1"}
    assert set(recording.messages[0]) == {"role", "content"}


def test_chats_in_batches_of_turns_are_one_conversation_each(tmp_path: Path) -> None:
    """The BEAM benchmark writes this form, with additional fields in each message."""
    hello = {**user("Hi"), "id": 0, "time_anchor": "March-15-2024", "question_type": "main_question"}
    turns = [[hello, {**assistant("Hello"), "id": 1}], [user("And now?"), assistant("Later.")]]
    batches = [{"batch_number": 1, "turns": turns}, {"batch_number": 2, "turns": [[user("Bye"), assistant("Bye.")]]}]
    first, second = read_recordings(
        a_file(tmp_path, [{"id": "100K/1", "chat": batches}, {"chat": batches[1:]}], name="beam.json")
    )
    assert first.name == "beam #1 (100K/1)"
    assert [wire["content"] for wire in first.messages] == ["Hi", "Hello", "And now?", "Later.", "Bye", "Bye."]
    assert (first.messages[0], second.messages) == (user("Hi"), [user("Bye"), assistant("Bye.")])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"role": "user", "content": None}, ""),
        ({"role": "user", "content": {"some": "object"}}, '{"some": "object"}'),
        ({"role": "user", "content": "Hi", "turn_idx": 4, "id": "m1"}, "Hi"),
    ],
)
def test_a_user_message_is_normalised_for_the_provider(tmp_path: Path, content: Any, expected: str) -> None:
    assert read_one(tmp_path, [content]).messages == [user(expected)]


@pytest.mark.parametrize(
    ("content", "location"),
    [
        ({"some": "object"}, ""),
        ([{"messages": CHAT}, {"qa": ["?"]}], "[1]"),
        ([user("Hi"), {"role": "robot", "content": "Hi"}], "[1].role"),
        ([{"messages": [user("Hi"), 7]}], "[0]: messages[1]"),
        ([{"chat": [{"turns": [[user("Hi"), 7]]}]}], "[0]: chat[0].turns[0][1]"),
        ([{"chat": [{"turns": [7]}]}], "[0]: chat[0].turns[0]"),
        ([{"chat": [{"turns": 7}]}], "[0]: chat[0].role"),
        ([[user("Hi")], [user("Hi"), 7]], "[1][1]"),
        ([[user("Hi")], "Hi"], "[1]"),
        ({"messages": [{"role": "tool", "content": "x"}]}, ": messages[0].tool_call_id"),
        ({"messages": [user("Hi")], "tools": [7]}, ": tools[0]"),
        ({"messages": [user("Hi")], "system": 7}, ": system"),
        (lines([user("Hi"), {"role": "robot", "content": "Hi"}]), ":2.role"),
        (lines([user("Hi"), {"no": "role"}]), ":2.role"),
        (b"7", ""),
    ],
)
def test_content_that_is_not_a_recording_is_refused_with_its_location(
    tmp_path: Path, content: object, location: str
) -> None:
    path = a_file(tmp_path, content)
    with pytest.raises(InvalidInput) as caught:
        read_recordings(path)
    assert caught.value.field == f"{path}{location}"
