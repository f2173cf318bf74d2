"""A request of ours that the host passes to `prepare` again: recognised in every format, memory stays once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders import assistant, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import well_formed

from inmind import Memory, Prompt, Session
from inmind.testing import ManualClock

FORMATS = ("openai", "anthropic", "responses")
HOST_TOOLS: dict[str, list[Any]] = {
    "openai": [{"type": "function", "function": {"name": "get_page", "parameters": {"type": "object"}}}],
    "anthropic": [{"name": "get_page", "input_schema": {"type": "object"}}],
    "responses": [{"type": "function", "name": "get_page", "parameters": {"type": "object"}}],
}
TEXT_BLOCK = {"type": "text", "text": "You edit."}
SYSTEMS: dict[str, list[Any]] = {
    "openai": [None, "You edit.", [{"role": "developer", "content": "You edit."}]],
    "anthropic": [None, "You edit.", [TEXT_BLOCK, {"type": "text", "text": "Be brief."}]],
    "responses": [None, "You edit.", [{"role": "developer", "content": "You edit."}]],
}


def prepare(session: Session, messages: list[Any], system: Any, tools: Any, format: str) -> Prompt:
    return session.prepare(messages, system=system, tools=tools, format=format)


def hand_back(session: Session, prompt: Prompt, more: list[Any], *, with_tools: bool = True) -> Prompt:
    """Pass a whole request to `prepare`, as a host does that keeps the last request and appends to it."""
    tools = prompt.tools if with_tools else None
    return prepare(session, [*prompt.messages, *more], prompt.system, tools, prompt.format)


def memory_blocks(request: dict[str, Any]) -> tuple[int, int, int]:
    text = json.dumps(request)
    return text.count("<memory_guide>"), text.count('<memory layer=\\"overview\\">'), text.count("<context_meta>")


@pytest.mark.spec("H6", "D9")
@pytest.mark.parametrize("format", FORMATS)
def test_a_request_handed_back_has_memory_once_and_the_hosts_messages_only(session: Session, format: str) -> None:
    messages = [user("one")]
    session.write("overview.md", "- a fact\n")
    prompt = prepare(session, messages, "You edit.", HOST_TOOLS[format], format)
    for number in range(4):
        session.write("overview.md", f"- fact {number}\n")
        more = [assistant(f"answer {number}"), user(f"question {number}")]
        messages = [*messages, *more]
        prompt = hand_back(session, prompt, more)
        assert memory_blocks(prompt.request) == (1, 1, 1)
        assert session.messages == messages
        assert session.state.prompt.tools == HOST_TOOLS[format]
    assert [event.kind for event in session.events()].count("system") == 1


@pytest.mark.spec("H6")
def test_our_block_among_the_hosts_system_blocks_is_left_out(session: Session) -> None:
    session.write("overview.md", "- a fact\n")
    first = session.prepare([user("one")], system=[TEXT_BLOCK], format="anthropic")
    system = [
        first.system[1],
        {**TEXT_BLOCK, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be brief."},
    ]
    second = session.prepare([*first.messages, assistant("ok"), user("two")], system=system, format="anthropic")
    assert second.system[:2] == system[1:]
    assert memory_blocks(second.request) == (1, 1, 1)


@pytest.mark.spec("H6")
def test_our_message_with_a_part_of_the_host_keeps_that_part(session: Session) -> None:
    session.write("overview.md", "- a fact\n")
    memory = session.prepare([user("one")]).messages[0]["content"]
    parts = [{"type": "text", "text": "You edit."}, {"type": "text", "text": memory}]
    prompt = session.prepare([{"role": "system", "content": parts}, user("one")])
    assert prompt.messages[0]["content"] == parts[:1]
    assert memory_blocks(prompt.request) == (1, 1, 1)


@pytest.mark.spec("H6")
@pytest.mark.parametrize("format", FORMATS)
def test_a_preview_or_a_request_of_another_session_brings_no_memory_with_it(memory: Memory, format: str) -> None:
    one, other = memory.session("one"), memory.session("other")
    for session in (one, other):
        session.write("overview.md", f"- a fact of {session.id}\n")
    prompt = prepare(one, [user("hello")], "You edit.", None, format)
    prompt = hand_back(other, prompt, [assistant("hi"), user("go on")], with_tools=False)
    assert memory_blocks(prompt.request) == (1, 1, 1)
    assert "a fact of one" not in json.dumps(prompt.request)
    assert other.messages == [user("hello"), assistant("hi"), user("go on")]


@pytest.mark.spec("H6")
@pytest.mark.parametrize("format", FORMATS)
def test_a_user_who_quotes_our_text_keeps_the_words(memory: Memory, format: str) -> None:
    written = memory.session("first")
    written.write("overview.md", "- a fact\n")
    first = prepare(written, [user("one")], None, None, format)
    assert first.memory
    tail = first.messages[-1]["content"][-1]["text"]
    kind = first.messages[-1]["content"][-1]["type"]
    quotes = [
        user(f"What does this mean? {first.memory}"),
        user(first.memory),
        {"role": "user", "content": [{"type": kind, "text": first.memory}]},
        user(tail),
        {"role": "user", "content": [{"type": kind, "text": tail}]},
        {"role": "user", "content": [{"type": kind, "text": f"Why? {tail}"}]},
    ]
    for number, quote in enumerate(quotes):
        session, messages = memory.session(f"{number}"), [user("one"), assistant("ok"), quote]
        prepare(session, messages[:1], None, None, format)
        prompt = prepare(session, messages, None, None, format)
        assert session.messages == messages
        hand_back(session, prompt, [assistant("I see.")])
        assert session.messages == [*messages, assistant("I see.")]


@pytest.mark.spec("H6")
def test_the_tail_in_an_empty_tool_result_is_taken_out_again(session: Session) -> None:
    call = {"name": "run", "arguments": "{}"}
    older: list[Any] = [
        user("go"),
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "run", "content": "done"},
    ]
    newer: list[Any] = [
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ]
    items: list[Any] = [
        user("go"),
        {"type": "function_call", "call_id": "c", "name": "run", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": ""},
    ]
    for format, messages in (("openai", older), ("openai", newer), ("responses", items)):
        prompt = prepare(session, messages, None, None, format)
        assert memory_blocks({"last": prompt.messages[-1]})[2] == 1
        hand_back(session, prompt, [])
        assert session.messages == messages


@pytest.mark.spec("H6", "D4", "D9")
@given(data=st.data(), format=st.sampled_from(FORMATS), through_json=st.booleans(), with_tools=st.booleans())
def test_handing_back_a_request_is_the_same_as_passing_the_list(
    data: st.DataObject, format: str, through_json: bool, with_tools: bool
) -> None:
    """Two sessions, one with the host's own list and one with the last request, get the same requests."""
    system, tools = data.draw(st.sampled_from(SYSTEMS[format])), data.draw(st.sampled_from([None, HOST_TOOLS[format]]))
    messages = data.draw(well_formed(format))
    with TemporaryDirectory() as folder, Memory.open(Path(folder), clock=ManualClock()) as memory:
        plain, handed = memory.session("plain"), memory.session("handed")
        expected = prepare(plain, messages, system, tools, format)
        prompt = prepare(handed, messages, system, tools, format)
        for number in range(data.draw(st.integers(1, 4))):
            for page in data.draw(st.sampled_from([[], ["- one fact\n"], ["- a fact\n" * 30]])):
                plain.write("overview.md", page)
                handed.write("overview.md", page)
            more = data.draw(st.sampled_from([[], [assistant("ok"), user(f"turn {number}")]]))
            messages = [*messages, *more]
            expected = prepare(plain, messages, system, tools, format)
            if through_json:
                prompt = replace(prompt, request=json.loads(json.dumps(prompt.request)))
            given_tools = prompt.tools if with_tools else tools
            prompt = prepare(handed, [*prompt.messages, *more], prompt.system, given_tools, format)
            assert handed.messages == messages
            assert prompt.request == expected.request
