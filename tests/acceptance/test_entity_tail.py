"""Entities in the tail of a prompt: all that the model needs, within the block's budget."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Prompt, Session

ORDER = {"order_id": "#W6390527", "items": [{"item_id": "8384507844", "name": "Desk Lamp"}]}
TALK = [message for n in range(40) for message in (user(f"{n}: " + "so it goes " * 20), assistant("I see. " * 30))]
LOOKUP = [user("Where is it?"), a_call("c1", "get_order"), a_result("c1", json.dumps(ORDER))]
"""A user asks for an order, and the agent finds it."""


def tail_of(session: Session, *messages: dict[str, Any]) -> str:
    return json.dumps(session.prepare([*TALK, *messages]).messages, ensure_ascii=False)


@pytest.mark.spec("B10", "D4")
def test_entities_shown_in_the_conversation_are_not_repeated_in_the_tail(session: Session) -> None:
    session.observe("get_order", {}, {"order_id": "#W1000001"})
    tail_of(session)
    assert session.prepare([*TALK, *LOOKUP]).report.tokens["changes"] == 0
    assert session.entities[0].id == "#W6390527"


@pytest.mark.spec("B10", "D4")
def test_entities_of_dropped_messages_are_in_the_next_prompt(session: Session) -> None:
    tail_of(session)
    talk = [*TALK, *LOOKUP, user("Thanks.")]
    session.prepare(talk)
    for history in (talk[-1:], [*TALK[:8], talk[-1]]):
        prompt = json.dumps(session.prepare(history).messages)
        assert "#W6390527" in prompt
        assert "8384507844" in prompt


@pytest.mark.spec("B10")
def test_parts_of_observed_entities_stay_in_every_prompt(session: Session) -> None:
    tail_of(session)
    session.observe("get_order", {"order_id": "#W6390527"}, ORDER)
    assert "8384507844" in tail_of(session)
    assert "8384507844" in tail_of(session, user("Please cancel order #W6390527."))


@pytest.mark.spec("B4", "B10")
def test_the_deletion_of_a_part_is_shown(session: Session) -> None:
    session.observe("get_order", {"order_id": "#W6390527"}, {**ORDER, "note_id": "n-7777"})
    tail_of(session)
    session.observe("delete_item", {"item_id": "8384507844"}, {"success": True})
    tail = tail_of(session).split("<memory_changes>")[-1]
    assert "#W6390527" in tail
    assert "n-7777" in tail
    assert "8384507844" not in tail


@pytest.mark.spec("B2")
def test_the_tail_fits_the_budget_of_the_block(session: Session) -> None:
    tail_of(session)
    for n in range(10):
        items = [{"item_id": f"{n}{i:09}"} for i in range(60)]
        session.observe("get_order", {}, {"order_id": f"#W100000{n}", "items": items})
    report = session.prepare(TALK).report
    assert 0 < report.tokens["changes"] < 450
    assert "memory:entities" not in report.tokens


@pytest.mark.spec("A4", "B10")
def test_past_prompts_are_rebuilt_with_their_entities(memory: Memory) -> None:
    session = memory.session("rebuilt")
    prompts: list[Prompt] = []
    for n in range(12):
        session.observe("get_order", {}, {"order_id": f"#W100000{n}", "items": [{"item_id": f"{n}384507844"}]})
        prompts.append(session.prepare(TALK[n % 5 : 20 + n]))
    for prompt in prompts:
        assert session.prompt(prompt.call).request == prompt.request
