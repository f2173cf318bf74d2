"""A message of any provider as compaction sees it: who speaks, what is asked of tools, and what they answered."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_line, a_result, assistant, user
from hypothesis import given
from strategies import said

from inmind.core.encoding import digest_of
from inmind.core.messages import FORMATS, Said
from inmind.core.tokens import estimator
from inmind.history import ConversationEntry
from inmind.history.compaction.stub_text import OPENS
from inmind.history.token_meter import Meter
from inmind.history.turn_messages import spoken
from inmind.history.turns import Asked, Spoken

METER = Meter(estimator())


def read(wire: dict[str, Any], format: str = "openai", *, stub: bool = False, block: bool = False) -> Spoken:
    of = ((7, 7),) if stub or block else None
    entry = ConversationEntry(7, "session/s#7", format, wire, digest_of(wire), of=of, block=block)
    return spoken(entry, FORMATS[format].read(wire), METER)


@pytest.mark.spec("E6")
def test_a_call_and_its_answer_are_known_by_their_id() -> None:
    asks, answers = (
        spoken(entry, FORMATS["openai"].read(entry.wire), METER)
        for entry in a_line([a_call("c1"), a_result("c1", "ok")])
    )
    assert asks.asks == (Asked("c1", "get_page", "{}"),)
    assert [(answer.id, answer.text) for answer in answers.answers] == [("c1", "ok")]
    assert (asks.by, answers.by) == ("assistant", "tool")


@pytest.mark.spec("E6")
def test_results_in_a_users_message_go_on_with_the_turn() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    alone = read({"role": "user", "content": [result]}, "anthropic")
    with_words = read({"role": "user", "content": [result, {"type": "text", "text": "go on"}]}, "anthropic")
    assert (alone.begins_turn, with_words.begins_turn, with_words.words) == (False, False, "go on")


@pytest.mark.spec("E6")
def test_a_call_that_only_its_provider_understands_ties_its_answer_too() -> None:
    call = read({"type": "computer_call", "id": "cu_1", "call_id": "c1", "action": {}}, "responses")
    answer = read({"type": "computer_call_output", "call_id": "c1", "output": {}}, "responses")
    assert [one.id for one in call.asks] == [one.id for one in answer.answers]


@pytest.mark.spec("E3")
def test_a_stub_for_messages_begins_no_turn_and_what_stays_of_a_message_does() -> None:
    assert read(user(f"{OPENS}\n…"), block=True).by == "operator"
    assert read(user(f"{OPENS}\n…"), stub=True).begins_turn
    assert read(user("Move the shop\n[cut: …]"), stub=True).begins_turn
    assert read(user(f"{OPENS}\nsays a user")).begins_turn


@pytest.mark.spec("E6")
@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_operators_words_are_the_operators(role: str) -> None:
    assert read({"role": role, "content": "Be brief."}).by == "operator"


@pytest.mark.spec("D6", "D9")
@given(said())
def test_any_message_counts_as_the_meter_counts_it_and_by_what_it_says(one: Said) -> None:
    entry = ConversationEntry(7, "session/s#7", one.format, one.wire, digest_of(one.wire))
    seen = spoken(entry, one.message, METER)
    assert (seen.seq, seen.tokens, seen.words) == (7, METER.message(entry), one.message.text)
    assert {call.id for call in one.message.calls} <= {ask.id for ask in seen.asks}
    assert {result.id for result in one.message.results} <= {answer.id for answer in seen.answers}
    assert sum(answer.tokens for answer in seen.answers) <= seen.tokens


@pytest.mark.spec("E6")
def test_words_alone_are_a_users_or_the_assistants() -> None:
    assert [read(wire).by for wire in (user("hello"), assistant("hi"))] == ["user", "assistant"]
