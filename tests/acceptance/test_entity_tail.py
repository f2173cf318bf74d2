"""What the end of a prompt says of entities: never less than the model needs, never more than the block may hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Prompt, Session

ORDER = {"order_id": "#W6390527", "items": [{"item_id": "8384507844", "name": "Desk Lamp"}]}
TALK = [message for n in range(40) for message in (user(f"{n}: " + "so it goes " * 20), assistant("I see. " * 30))]
LOOKED_UP = [user("Where is it?"), a_call("c1", "get_order"), a_result("c1", json.dumps(ORDER))]
"""Somebody asks for an order, and the agent finds it."""


def sent(session: Session, *messages: dict[str, Any]) -> str:
    return json.dumps(session.prepare([*TALK, *messages]).messages, ensure_ascii=False)


@pytest.mark.spec("B10", "D4")
def test_what_the_conversation_shows_is_not_said_again_at_its_end(session: Session) -> None:
    sent(session)
    assert session.prepare([*TALK, *LOOKED_UP]).report.tokens["changes"] == 0
    assert session.entities[0].id == "#W6390527"


@pytest.mark.spec("B10", "D4")
def test_what_a_host_drops_from_the_conversation_is_in_the_very_next_prompt(session: Session) -> None:
    sent(session)
    talk = [*TALK, *LOOKED_UP, user("Thanks.")]
    session.prepare(talk)
    for left in (talk[-1:], [*TALK[:8], talk[-1]]):
        prompt = json.dumps(session.prepare(left).messages)
        assert "#W6390527" in prompt
        assert "8384507844" in prompt


@pytest.mark.spec("B10")
def test_the_parts_of_what_was_only_observed_are_in_every_prompt_also_when_a_person_names_it(session: Session) -> None:
    sent(session)
    session.observe("get_order", {"order_id": "#W6390527"}, ORDER)
    assert "8384507844" in sent(session)
    assert "8384507844" in sent(session, user("Please cancel order #W6390527."))


@pytest.mark.spec("B4", "B10")
def test_the_death_of_a_part_is_said(session: Session) -> None:
    session.observe("get_order", {"order_id": "#W6390527"}, {**ORDER, "note_id": "n-7777"})
    sent(session)
    session.observe("delete_item", {"item_id": "8384507844"}, {"success": True})
    tail = sent(session).split("<memory_changes>")[-1]
    assert "#W6390527" in tail
    assert "n-7777" in tail
    assert "8384507844" not in tail


@pytest.mark.spec("B2")
def test_the_tail_keeps_to_the_budget_of_the_block(session: Session) -> None:
    sent(session)
    for n in range(10):
        items = [{"item_id": f"{n}{i:09}"} for i in range(60)]
        session.observe("get_order", {}, {"order_id": f"#W100000{n}", "items": items})
    report = session.prepare(TALK).report
    assert 0 < report.tokens["changes"] + report.tokens["memory:entities"] < 2 * 450


@pytest.mark.spec("A4", "B10")
def test_prompts_of_the_past_are_rebuilt_with_their_entities(memory: Memory) -> None:
    session = memory.session("rebuilt")
    prompts: list[Prompt] = []
    for n in range(12):
        session.observe("get_order", {}, {"order_id": f"#W100000{n}", "items": [{"item_id": f"{n}384507844"}]})
        prompts.append(session.prepare(TALK[n % 5 : 20 + n]))
    for prompt in prompts:
        assert session.prompt(prompt.call).request == prompt.request
