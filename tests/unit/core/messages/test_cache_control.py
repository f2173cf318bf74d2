"""A host moves its cache marks from call to call, and the conversation stays the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from builders import assistant, user
from hypothesis import given
from hypothesis import strategies as st

from inmind import Memory, Session
from inmind.core.events.session import MessageAdded
from inmind.core.messages.cache_control import apply_marks, find_marks, without_marks
from inmind.errors import InvalidInput

Json = dict[str, Any]
MARK: Json = {"type": "ephemeral"}
HOUR: Json = {"type": "ephemeral", "ttl": "1h"}


def blocks(message: Json, mark: Json | None = None) -> Json:
    """The message with its text as a block, marked or not."""
    block = {"type": "text", "text": message["content"]}
    return {**message, "content": [block | ({"cache_control": mark} if mark else {})]}


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events()]


def host_marks(messages: list[Json]) -> list[tuple[str, Json]]:
    """The marked texts with their marks."""
    return [
        (block["text"], block["cache_control"])
        for message in messages
        for block in message["content"]
        if isinstance(block, dict) and "cache_control" in block
    ]


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize("convert", [blocks, dict], ids=["blocks", "plain text"])
def test_moving_a_mark_to_the_newest_message_is_not_an_edit(session: Session, convert: Callable[[Json], Json]) -> None:
    history: list[Json] = []
    for turn in range(6):
        question = user(f"question {turn}")
        prompt = session.prepare([*map(convert, history), blocks(question, MARK)], format="anthropic")
        assert host_marks(prompt.messages) == [(f"question {turn}", MARK)]
        answer = {**assistant(f"answer {turn}"), "stop_reason": "end_turn"}
        answer["content"] = [{"type": "text", "text": answer["content"]}]
        session.record(answer)
        history += [question, assistant(f"answer {turn}")]
    assert "splice" not in kinds(session)
    assert kinds(session).count("message") == len(history)


def text_block(mark: Json | None, kind: str = "text") -> list[Json]:
    return [{"type": kind, "text": "hi"} | ({"cache_control": mark} if mark else {})]


def plain_text(kind: str = "text") -> str:  # noqa: ARG001 -- called like `text_block`
    return "hi"


ContentBuilder = Callable[..., Any]


def a_named_message(content: ContentBuilder) -> Json:
    return {"role": "user", "name": "ada", "content": content()}


def a_tool_message(content: ContentBuilder) -> Json:
    return {"role": "tool", "tool_call_id": "c", "content": content()}


def an_output(content: ContentBuilder) -> Json:
    return {"type": "function_call_output", "call_id": "c", "output": content("input_text")}


def a_document(content: ContentBuilder) -> Json:
    source = {"type": "content", "content": content()}
    return {"role": "user", "content": [{"type": "document", "source": source}]}


def a_result_block(content: ContentBuilder) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content()}]}


CHAT_CALL: Json = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ITEM_CALL: Json = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
BLOCK_CALL: Json = {"type": "tool_use", "id": "c", "name": "look", "input": {}}


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize(
    ("format", "before", "message"),
    [
        ("openai", list[Json](), a_named_message),
        (
            "openai",
            [user("go"), {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}],
            a_tool_message,
        ),
        ("responses", [user("go"), ITEM_CALL], an_output),
        ("anthropic", list[Json](), a_document),
        ("anthropic", [user("go"), {"role": "assistant", "content": [BLOCK_CALL]}], a_result_block),
    ],
    ids=["a name", "a result in chat", "an output", "inside a document", "inside a result"],
)
@pytest.mark.parametrize("is_plain", [False, True], ids=["a part", "plain text"])
def test_adding_or_removing_a_mark_on_any_text_is_not_an_edit(
    session: Session, format: str, before: list[Json], message: Callable[[ContentBuilder], Json], is_plain: bool
) -> None:
    marked, unmarked = (
        message(partial(text_block, HOUR)),
        message(plain_text if is_plain else partial(text_block, None)),
    )
    for first, second in ((marked, unmarked), (unmarked, marked)):
        for newest in (first, second):
            conversation = [*before, newest, assistant("ok"), user("so")]
            sent = session.prepare(conversation, format=format).messages
            assert str(sent).count(str(HOUR)) == (newest is marked)
    assert "splice" not in kinds(session)


@pytest.mark.spec("D4")
@pytest.mark.parametrize("stored", [False, True], ids=["as it is", "as JSON"])
def test_our_marks_are_recognised_in_a_list_built_from_our_prompts(session: Session, stored: bool) -> None:
    session.write("overview.md", "# Working memory\n\n## Known facts\n\n- The shop is closed on Monday.\n")
    conversation = [blocks(user("question 0"), HOUR)]
    for turn in range(6):
        prompt = session.prepare(conversation, format="anthropic")
        marks = host_marks(prompt.messages)
        assert marks == ([("question 0", HOUR)] if turn == 0 else [("question 0", HOUR), (f"question {turn}", MARK)])
        assert "cache_control" in str(prompt.system)
        kept = json.loads(json.dumps(prompt.messages)) if stored else prompt.messages
        conversation = [*kept, blocks(assistant(f"answer {turn}")), user(f"question {turn + 1}")]
    assert "splice" not in kinds(session)


@pytest.mark.spec("D4", "D7")
def test_the_marks_of_the_newest_list_are_sent(session: Session) -> None:
    conversation = [user("a long page"), assistant("read"), user("and?"), assistant("so"), user("then?")]
    session.prepare(
        [blocks(conversation[0], HOUR), *conversation[1:2], blocks(conversation[2], MARK)], format="anthropic"
    )
    prompt = session.prepare(
        [conversation[0], blocks(conversation[1], HOUR), *conversation[2:4], blocks(conversation[4], MARK)],
        format="anthropic",
    )
    assert host_marks(prompt.messages) == [("read", HOUR), ("then?", MARK)]
    assert "splice" not in kinds(session)


@pytest.mark.spec("D4")
def test_a_moved_mark_does_not_change_the_prefix(session: Session) -> None:
    conversation = [user("one " * 300), assistant("two " * 300), user("three " * 300)]
    first = session.prepare([*conversation[:2], blocks(conversation[2], MARK)], format="anthropic")
    more = [*map(blocks, conversation), assistant("four"), blocks(user("five"), MARK)]
    second = session.prepare(more, format="anthropic")
    assert second.report.cached_prefix_tokens > 0.9 * first.report.tokens_used


@pytest.mark.spec("A4")
def test_an_earlier_prompt_is_rebuilt_with_its_marks(memory: Memory, session: Session) -> None:
    first = session.prepare([blocks(user("one"), HOUR)], format="anthropic")
    second = session.prepare([blocks(user("one")), assistant("two"), blocks(user("three"), MARK)], format="anthropic")
    again = memory.session("support-42", resource="ada", cwd="/website")
    assert [again.prompt(1).request, again.prompt(2).request] == [first.request, second.request]


@pytest.mark.spec("D7")
def test_a_mark_stays_on_its_message_if_the_list_is_repaired(session: Session) -> None:
    call: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]}
    sent = session.prepare(
        [user("go"), call, blocks(user("and?"), HOUR), assistant("ok"), user("so")], format="anthropic"
    )
    assert ("and?", HOUR) in host_marks(sent.messages)


@pytest.mark.spec("D4")
def test_among_equal_messages_the_marked_one_keeps_its_mark(session: Session) -> None:
    call: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]}
    ok = blocks(user("ok"))
    conversation = [user("go"), call, ok, assistant("one"), ok, assistant("two"), user("so")]
    for index in (2, 4):
        newest = [*conversation[:index], blocks(user("ok"), HOUR), *conversation[index + 1 :]]
        sent = session.prepare(newest, format="anthropic").messages
        next_index = (
            next(position for position, wire in enumerate(sent) if HOUR in [mark for _, mark in host_marks([wire])]) + 1
        )
        assert sent[next_index]["content"] == conversation[index + 1]["content"]


@pytest.mark.spec("D4")
def test_a_mark_stays_on_a_result_joined_with_others(session: Session) -> None:
    calls: list[Json] = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ("a", "b")]
    a, b = ({"type": "tool_result", "tool_use_id": id, "content": f"page {id}"} for id in ("a", "b"))
    for results in ([a | {"cache_control": HOUR}, b], [a, b | {"cache_control": HOUR}]):
        separate: list[Json] = [{"role": "user", "content": [result]} for result in results]
        conversation: list[Json] = [
            user("go"),
            {"role": "assistant", "content": calls},
            *separate,
            assistant("ok"),
            user("so"),
        ]
        sent = session.prepare(conversation, format="anthropic").messages
        assert sent[2] == {"role": "user", "content": results}


def test_a_mark_on_a_part_that_exists_only_in_the_copy_of_the_host_is_left_out(session: Session) -> None:
    session.prepare([user("one")], format="anthropic")
    session.record({"role": "assistant", "content": "two, three"}, format="anthropic")
    copy: Json = {"role": "assistant", "content": [{"type": "text", "text": text} for text in ("two,", " three")]}
    copy["content"][1]["cache_control"] = HOUR
    sent = session.prepare([user("one"), copy, user("four")], format="anthropic")
    assert HOUR not in [mark for _, mark in host_marks(sent.messages)]
    assert "splice" not in kinds(session)


@pytest.mark.spec("J3")
def test_a_mark_that_is_not_json_is_refused_with_its_location(session: Session) -> None:
    session.prepare([user("one")], format="anthropic")
    with pytest.raises(InvalidInput) as refused:
        session.prepare([blocks(user("one"), {"type": b""}), user("two")], format="anthropic")
    assert refused.value.field.startswith("messages[0].")


def test_stored_messages_have_no_marks(session: Session) -> None:
    session.prepare([blocks(user("one"), MARK)], format="anthropic")
    (kept,) = [event.payload for event in session.events() if isinstance(event.payload, MessageAdded)]
    assert kept.wire == blocks(user("one"))


parts = st.fixed_dictionaries(
    {"type": st.just("text"), "text": st.text()},
    optional={"cache_control": st.sampled_from([MARK, HOUR]), "prompt_cache_breakpoint": st.just({"mode": "explicit"})},
)
results = st.fixed_dictionaries(
    {"type": st.just("tool_result"), "tool_use_id": st.just("c"), "content": st.lists(parts, max_size=2)},
    optional={"cache_control": st.sampled_from([MARK, HOUR])},
)
messages = st.fixed_dictionaries(
    {"role": st.just("user"), "content": st.lists(parts | results, max_size=3) | st.text()}
)


@given(wires=st.lists(messages, max_size=4))
def test_removed_marks_can_be_applied_again(wires: list[Json]) -> None:
    bare = [without_marks(wire) for wire in wires]
    assert find_marks(bare) == ()
    assert apply_marks(bare, find_marks(wires), text_type="text") == wires
    assert [without_marks(wire) for wire in bare] == bare
