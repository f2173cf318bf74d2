"""Providers' own compaction and clearing: passed through, journaled, and followed by what must survive."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders import assistant, home_of, user
from hypothesis import given
from hypothesis import strategies as st
from provider_rules import faults

from inmind import Memory, Prompt, Session
from inmind.core.events.session import Compacted
from inmind.errors import NotFound
from inmind.session.state import SessionFold
from inmind.testing import ManualClock

Json = dict[str, Any]

pytestmark = pytest.mark.spec("E12")
formats = pytest.mark.parametrize("format", ["anthropic", "responses"])

GOAL = "Migrate the billing service to the new gateway. Never touch the table ledger_v1."
SUMMARY: Json = {
    "type": "compaction",
    "content": "They migrate billing.",
    "encrypted_content": "gAAA",
    "signature": "Eq==",
}
ITEM: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAB"}


def talk(turns: int, size: int = 1) -> list[Json]:
    messages = [user(GOAL)]
    for turn in range(turns):
        messages += [assistant(f"Step {turn} is done. " * size), user(f"Go on with step {turn + 1}.")]
    return messages


def reply_with_item(format: str, text: str = "I went on.", number: int = 1) -> Json:
    """A reply in which the provider has compacted the conversation before it."""
    if format == "anthropic":
        blocks = [SUMMARY | {"content": f"Summary {number}."}, {"type": "text", "text": text}]
        return {"id": f"msg_{number:020}", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    output = [ITEM | {"id": f"cmp_{number}"}, message | {"status": "completed", "id": f"m{number}"}]
    return {"id": f"resp_{number:020}", "status": "completed", "output": output}


def item_of(reply: Json) -> Json:
    """The message of a reply that holds the item."""
    return reply["output"][0] if "output" in reply else {"role": "assistant", "content": reply["content"]}


def messages_of(reply: Json) -> list[Json]:
    return reply["output"] if "output" in reply else [item_of(reply)]


def conversation_of(prompt: Prompt) -> list[Json]:
    """What the request sends of the conversation, without memory and tail."""
    wires = [wire for wire in prompt.messages if "<memory_guide>" not in json.dumps(wire)]
    return json.loads(json.dumps(wires[:-1])) if wires else []


def retained_block(prompt: Prompt) -> str:
    return prompt.memory.partition('<memory layer="retained">')[2].partition("</memory>")[0]


def compactions(session: Session) -> list[Compacted]:
    return [event.payload for event in session.events() if isinstance(event.payload, Compacted)]


def compact(session: Session, format: str, messages: list[Json] | None = None) -> Json:
    """A conversation whose last reply has the provider's item."""
    session.prepare(messages or talk(3), format=format)
    reply = reply_with_item(format)
    session.record(reply)
    return reply


@pytest.mark.spec("E8", "D7")
@formats
def test_the_item_is_sent_unchanged_and_what_must_survive_is_in_memory(session: Session, format: str) -> None:
    reply = compact(session, format)
    session.add([user("And now?")], format=format)
    prompt = session.prepare(format=format)
    assert conversation_of(prompt) == messages_of(reply)
    assert "Never touch the table ledger_v1." in retained_block(prompt)
    assert (prompt.report.compacted, prompt.report.compactions[0].messages) == ("by the provider", 7)
    assert "All of it is in the journal." in str(prompt.report.compactions[0])
    (event,) = compactions(session)
    assert (event.reason, event.strategy, event.messages) == ("by the provider", "compaction", 7)
    assert event.tokens > 0
    assert faults(format, prompt.messages) == []


@pytest.mark.spec("E2")
@formats
def test_the_journal_keeps_every_message_readable(memory: Memory, format: str) -> None:
    session = memory.session("s", resource="ada")
    reply = compact(session, format)
    session.add([user("And now?")], format=format)
    session.prepare(format=format)
    assert session.messages == [*talk(3), *messages_of(reply), user("And now?")]
    assert any("ledger_v1" in hit.text for hit in session.search("ledger_v1"))
    if memory.home:
        (file,) = home_of(memory).rglob("messages.jsonl")
        assert "ledger_v1" in file.read_text()


@formats
def test_the_whole_list_and_the_list_from_the_item_on_are_the_same(memory: Memory, format: str) -> None:
    requests: list[Json] = []
    for name in ("whole", "rest", "not recorded", "handed back"):
        session = memory.session(name)
        prompt, reply = session.prepare(talk(3), format=format), reply_with_item(format)
        if name != "not recorded":
            session.record(reply)
        before = talk(3) if name == "whole" else []
        messages = [*before, *messages_of(reply), user("And now?")]
        for _ in range(2):
            prompt = session.prepare(messages, format=format)
            messages = prompt.messages if name == "handed back" else messages
        assert session.messages == [*talk(3), *messages_of(reply), user("And now?")]
        assert len(compactions(session)) == 1
        assert json.dumps(prompt.request).count("<memory_guide>") == 1
        requests.append(prompt.request)
    assert requests == requests[:1] * 4


@pytest.mark.spec("D9")
@formats
def test_another_provider_gets_the_messages_instead_of_the_item(session: Session, format: str) -> None:
    compact(session, format)
    session.add([user("And now?")], format=format)
    short = session.prepare(format=format)
    for other in ("openai", "anthropic" if format == "responses" else "responses"):
        prompt = session.prepare(format=other)
        assert GOAL in json.dumps(prompt.messages)
        assert "gAAA" not in json.dumps(prompt.request)
        assert any("compaction" in left_out for left_out in prompt.report.left_out)
    assert conversation_of(session.prepare(format=format)) == conversation_of(short)
    assert GOAL.split(". ")[0] in retained_block(session.prepare(format=format))


@pytest.mark.spec("A5", "D8")
@formats
def test_prompts_around_a_compaction_are_rebuilt_and_an_undo_restores_the_messages(memory: Memory, format: str) -> None:
    session = memory.session("s")
    prompts = [session.prepare(talk(3), format=format)]
    session.record(reply_with_item(format))
    session.add([user("And now?")], format=format)
    prompts += [session.prepare(format=format), session.prepare(format="openai"), session.prepare(format=format)]
    for prompt in prompts:
        assert session.prompt(prompt.call).request == prompt.request
    fold = SessionFold("session/s")
    assert fold.freeze(memory.session("s").state) == fold.freeze(session.state)
    session.remove_last_messages(len(messages_of(reply_with_item(format))) + 1)
    assert GOAL in json.dumps(session.prepare(format=format).messages)


@formats
def test_a_compaction_of_ours_never_changes_the_item(memory: Memory, format: str) -> None:
    session = memory.session("s", window=6_000, reserve=500, memory_tools=False)
    reply = compact(session, format)
    for number in range(30):
        session.add([user(f"Go on with part {number}."), assistant("It is done, all of it. " * 40)], format=format)
    session.add([user("And now?")], format=format)
    prompt = session.prepare(format=format)
    assert prompt.report.compacted == "the window was full"
    assert item_of(reply) in prompt.messages
    assert session.compact("all", keep_recent=0)
    assert item_of(reply) in session.prepare(format=format).messages
    assert not any("Summary 1." in page.text for page in session.state.documents.by_path.values())
    session.undo_compaction()
    session.undo_compaction()
    with pytest.raises(NotFound):
        session.undo_compaction()
    assert GOAL not in json.dumps(conversation_of(session.prepare(session.messages, format=format)))


@formats
def test_a_newer_item_replaces_the_older_one(session: Session, format: str) -> None:
    compact(session, format)
    session.add([user("Use port 8443 from now on.")], format=format)
    session.prepare(format=format)
    newer = reply_with_item(format, "Further.", 2)
    session.record(newer)
    session.add([user("And now?")], format=format)
    prompt = session.prepare(format=format)
    assert conversation_of(prompt) == messages_of(newer)
    assert "ledger_v1" in retained_block(prompt)
    assert "8443" in retained_block(prompt)


@pytest.mark.spec("E8")
def test_the_request_of_a_turn_in_work_is_retained_until_the_next(session: Session) -> None:
    session.prepare([*talk(1), user("Now rename the column price to amount.")], format="anthropic")
    call: Json = {"type": "tool_use", "id": "c1", "name": "run_sql", "input": {}}
    message: Json = {"role": "assistant", "content": [SUMMARY, call]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}
    session.add([message, result], format="anthropic")
    prompt = session.prepare(format="anthropic")
    assert "Last request, verbatim:\n- Now rename the column price to amount." in retained_block(prompt)
    assert prompt.messages[0] == message
    session.add([assistant("It is renamed."), user("Thanks. What is left?")], format="anthropic")
    prompt = session.prepare(format="anthropic")
    changes = prompt.messages[-1]["content"][-2]["text"]
    assert "- Last request, verbatim:\n- - Now rename the column price to amount." in changes
    assert "request" not in [item.kind for item in session.retained]


@pytest.mark.spec("E8")
def test_a_request_that_was_cut_is_the_one_retained_after_the_providers_compaction(memory: Memory) -> None:
    session = memory.session("s", window=6_000, reserve=200)
    long = f"Now rename the column price to amount. {'word ' * 7_000}"
    call: Json = {"type": "tool_use", "id": "c1", "name": "run_sql", "input": {}}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}
    session.prepare([*talk(1), user("List the tables."), assistant("Two."), user(long)], format="anthropic")
    session.add([{"role": "assistant", "content": [SUMMARY, call]}, result], format="anthropic")
    block = retained_block(session.prepare(format="anthropic"))
    assert "Last request, verbatim:\n- Now rename the column price to amount." in block
    assert "List the tables." not in block
    (item,) = (one for one in compactions(session)[-1].items if one.kind == "request")
    assert item.text.startswith("Now rename")


@pytest.mark.spec("E8")
def test_a_request_is_retained_while_commands_give_output(session: Session) -> None:
    command = "I look.\n```bash\nls\n```"
    session.prepare([*talk(1), user("Now rename the column price to amount.")], format="anthropic")
    session.add([{"role": "assistant", "content": [SUMMARY, {"type": "text", "text": command}]}], format="anthropic")
    for _ in range(3):
        session.add([user("prices.sql\nbash-$")], format="anthropic")
        prompt = session.prepare(format="anthropic")
        assert "Last request, verbatim:\n- Now rename the column price to amount." in retained_block(prompt)
        session.add([assistant(command)], format="anthropic")


@pytest.mark.spec("E8")
def test_a_request_is_retained_after_an_edit_of_a_message_before_it(session: Session) -> None:
    request = user("Now rename the column price to amount.")
    session.prepare([*talk(1), user("List the tables."), assistant("Two."), request], format="anthropic")
    session.prepare([*talk(1), user("List the views."), assistant("Two."), request], format="anthropic")
    call: Json = {"type": "tool_use", "id": "c1", "name": "run_sql", "input": {}}
    session.add([{"role": "assistant", "content": [SUMMARY, call]}], format="anthropic")
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "done"}
    session.add([{"role": "user", "content": [result]}], format="anthropic")
    prompt = session.prepare(format="anthropic")
    assert "Last request, verbatim:\n- Now rename the column price to amount." in retained_block(prompt)


def test_a_call_before_the_item_stays_with_its_result(session: Session) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "run_sql", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "done"}
    reasoning: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    session.add([*talk(2), reasoning, call, ITEM, result, user("And now?")], format="responses")
    prompt = session.prepare(format="responses")
    assert conversation_of(prompt) == [reasoning, call, ITEM, result]
    assert prompt.report.left_out == ()


def test_a_call_that_was_never_answered_keeps_nothing_in_the_prompt(session: Session) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "run_sql", "arguments": "{}"}
    session.add(
        [*talk(1), call, user("Leave it."), assistant("I left it."), ITEM, user("And now?")], format="responses"
    )
    assert conversation_of(session.prepare(format="responses")) == [ITEM]


def test_memory_comes_after_the_item_of_responses(session: Session) -> None:
    compact(session, "responses")
    session.add([user("And now?")], format="responses")
    first, second, *_ = session.prepare(system="You help.", format="responses").request["input"]
    assert first["type"] == "compaction"
    assert second["role"] == "developer"


def test_a_window_compacted_by_openais_endpoint_is_sent_as_it_is(session: Session) -> None:
    session.prepare(talk(2), format="responses")
    users = [message for message in talk(2) if message["role"] == "user"]
    compacted = {"id": "resp_c", "object": "response.compaction", "output": [*users, ITEM], "usage": None}
    session.record(compacted)
    assert session.messages == [*talk(2), ITEM]
    prompt = session.prepare([*users, ITEM, user("And now?")], format="responses")
    assert conversation_of(prompt) == [*users, ITEM]
    assert "ledger_v1" in retained_block(prompt)


def test_a_one_shot_compaction_of_anthropic_is_first_in_the_list(session: Session) -> None:
    session.prepare(talk(2), format="anthropic")
    reply = {"id": "msg_1", "role": "assistant", "content": [SUMMARY], "stop_reason": "compaction"}
    assert session.record(reply).complete
    session.add([user("And now?")])
    messages = session.prepare(format="anthropic").messages
    assert messages[0] == {"role": "assistant", "content": [SUMMARY]}
    assert [message["role"] for message in messages] == ["assistant", "user"]


def test_a_compaction_that_failed_replaces_nothing(session: Session) -> None:
    failed = {"role": "assistant", "content": [SUMMARY | {"content": None}, {"type": "text", "text": "I went on."}]}
    session.add([*talk(2), failed, user("And now?")], format="anthropic")
    prompt = session.prepare(format="anthropic")
    assert conversation_of(prompt) == [*talk(2), failed]
    assert compactions(session) == []


@formats
def test_a_list_without_the_item_sends_the_messages_again(session: Session, format: str) -> None:
    compact(session, format)
    session.prepare(format=format)
    prompt = session.prepare([*talk(3), assistant("Another answer."), user("And now?")], format=format)
    assert conversation_of(prompt) == [*talk(3), assistant("Another answer.")]


@pytest.mark.spec("D6")
@pytest.mark.parametrize("streamed", [False, True])
def test_cleared_tool_results_are_journaled_and_do_not_calibrate_the_counter(session: Session, streamed: bool) -> None:
    session.prepare(talk(40), format="anthropic")
    counted = session.state.prompt.last_prompt.counted_tokens
    edits = [
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000},
        {"type": "clear_thinking_20251015", "cleared_thinking_turns": 3, "cleared_input_tokens": 700},
        {"type": 7},
    ]
    usage = {"input_tokens": counted // 2, "output_tokens": 4}
    text = {"type": "text", "text": "Done."}
    reply: Any = {"id": "msg_1", "role": "assistant", "content": [text], "stop_reason": "end_turn", "usage": usage}
    reply["context_management"] = {"applied_edits": edits}
    if streamed:
        delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
        reply = [
            {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": text},
            {"type": "content_block_stop", "index": 0},
            {**delta, "context_management": {"applied_edits": edits}},
            {"type": "message_stop"},
        ]
    session.record(reply)
    cleared = [(one.target, one.strategy, one.messages, one.tokens) for one in compactions(session)]
    assert cleared == [
        ("tools", "clear_tool_uses_20250919", 8, 50_000),
        ("thinking", "clear_thinking_20251015", 3, 700),
    ]
    assert session.state.prompt.calibration.samples == 0
    assert (
        conversation_of(session.prepare([*session.messages, user("And now?")], format="anthropic"))
        == session.messages[:-1]
    )


@pytest.mark.spec("D7", "E8")
@given(data=st.data(), format=st.sampled_from(["anthropic", "responses"]), window=st.sampled_from([2_500, 60_000]))
def test_whatever_is_compacted_when_the_item_and_the_retained_items_are_sent(
    data: st.DataObject, format: str, window: int
) -> None:
    """Items of the provider and compactions of ours, in any order, with lists of the host or of the journal."""
    with TemporaryDirectory() as folder, Memory.open(Path(folder), clock=ManualClock()) as memory:
        session = memory.session("s", window=window, reserve=300, memory_tools=False)
        messages, last = [user(GOAL)], None
        for number in range(data.draw(st.integers(1, 8))):
            with_item = data.draw(st.booleans())
            size = data.draw(st.sampled_from([1, 60]))
            reply = reply_with_item(format, "word " * size, number) if with_item else None
            session.prepare(messages, format=format)
            messages += messages_of(reply) if reply else [assistant("word " * size)]
            last = item_of(reply) if reply else last
            if reply and data.draw(st.booleans()):
                session.record(reply)
            messages.append(user(f"Go on {number}."))
        prompt = session.prepare(messages, format=format)
        assert session.messages == messages
        assert faults(format, prompt.messages) == []
        text = json.dumps(prompt.request)
        assert text.count("<memory_guide>") == (prompt.memory != "")
        assert "Never touch the table ledger_v1." in text
        if last is not None:
            assert last in prompt.messages
            assert (prompt.messages.index(last) == 0) or format == "responses"
        assert session.prompt(prompt.call).request == prompt.request
        session.prepare(prompt.messages, format=format)
        assert session.messages == messages
