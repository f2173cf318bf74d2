"""Turn messages of any provider: speaker, tool calls and results."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_conversation, a_result, assistant, user
from hypothesis import given
from strategies import parsed_messages

from inmind.core.encoding import digest_of
from inmind.core.messages import FORMATS
from inmind.core.messages.model import ParsedMessage
from inmind.core.tokens import estimator
from inmind.history.compaction.message_records import BLOCK_START
from inmind.history.history import ConversationEntry
from inmind.history.turns import TurnCall, TurnMessage, to_turn_message
from inmind.history.view import TokenMeter

METER = TokenMeter(estimator())


def read(wire: dict[str, Any], format: str = "openai", *, stub: bool = False, block: bool = False) -> TurnMessage:
    of = ((7, 7),) if stub or block else None
    entry = ConversationEntry(7, "session/s#7", format, wire, digest_of(wire), replaced_ranges=of, is_block=block)
    return to_turn_message(entry, FORMATS[format].read(wire), METER)


@pytest.mark.spec("E6")
def test_a_call_and_its_result_are_linked_by_id() -> None:
    call, result = (
        to_turn_message(entry, FORMATS["openai"].read(entry.wire), METER)
        for entry in a_conversation([a_call("c1"), a_result("c1", "ok")])
    )
    assert call.calls == (TurnCall("c1", "get_page", "{}"),)
    assert [(answer.id, answer.text) for answer in result.results] == [("c1", "ok")]
    assert (call.speaker, result.speaker) == ("assistant", "tool")


@pytest.mark.spec("E6")
def test_results_in_a_user_message_continue_the_turn() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    alone = read({"role": "user", "content": [result]}, "anthropic")
    with_words = read({"role": "user", "content": [result, {"type": "text", "text": "go on"}]}, "anthropic")
    assert (alone.starts_turn, with_words.starts_turn, with_words.text) == (False, False, "go on")


@pytest.mark.spec("E6")
def test_a_provider_specific_call_is_linked_to_its_result() -> None:
    call = read({"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {}}, "responses")
    answer = read({"type": "computer_call_output", "call_id": "c1", "output": {}}, "responses")
    assert [one.id for one in call.calls] == [one.id for one in answer.results]


@pytest.mark.spec("E3")
def test_a_block_starts_no_turn_and_a_cut_message_does() -> None:
    assert read(user(f"{BLOCK_START}\n…"), block=True).speaker == "operator"
    assert read(user(f"{BLOCK_START}\n…"), stub=True).starts_turn
    assert read(user("Move the shop\n[cut: …]"), stub=True).starts_turn
    assert read(user(f"{BLOCK_START}\nsays a user")).starts_turn


@pytest.mark.spec("E6")
@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_and_developer_messages_belong_to_the_operator(role: str) -> None:
    assert read({"role": role, "content": "Be brief."}).speaker == "operator"


@pytest.mark.spec("D6", "D9")
@given(parsed_messages())
def test_any_message_has_the_tokens_of_the_meter_and_its_text(one: ParsedMessage) -> None:
    entry = ConversationEntry(7, "session/s#7", one.format, one.wire, digest_of(one.wire))
    seen = to_turn_message(entry, one.message, METER)
    assert (seen.seq, seen.tokens, seen.text) == (7, METER.count_message(entry), one.message.text)
    assert {call.id for call in one.message.calls} <= {ask.id for ask in seen.calls}
    assert {result.id for result in one.message.results} <= {answer.id for answer in seen.results}
    assert sum(answer.tokens for answer in seen.results) <= seen.tokens


@pytest.mark.spec("E6")
def test_plain_text_belongs_to_the_user_or_the_assistant() -> None:
    assert [read(wire).speaker for wire in (user("hello"), assistant("hi"))] == ["user", "assistant"]
