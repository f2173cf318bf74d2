"""What must survive, in every prompt from the moment on that nothing else says it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, user

from inmind import Memory, Prompt, Session
from inmind.errors import InvalidInput, NotFound
from inmind.session import MOST_RETAINED

Message = dict[str, Any]

GOAL = "Move the shop to the new warehouse."
RULE = "Never delete an order without asking me."


def talk(turns: int, *, words: int = 40) -> list[Message]:
    said = [user(GOAL), assistant("ok"), user(RULE), assistant("ok")]
    for turn in range(turns):
        said += [user(f"Step {turn}."), assistant("done " * words)]
    return [*said, user("And now?")]


def block(prompt: Prompt) -> str:
    """The block of what must survive; empty where there is none."""
    text = json.dumps(prompt.request, ensure_ascii=False)
    return text.partition('<memory layer=\\"retained\\">')[2].partition("</memory>")[0]


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("s", resource="ada")


@pytest.mark.spec("E8")
def test_what_a_host_declares_is_in_the_next_prompt_and_gone_after_it_was_released(session: Session) -> None:
    session.prepare(talk(1))
    session.retain("The password is answered by Ada alone.")
    assert "by Ada alone" in json.dumps(session.prepare().request)
    session.release("The password is answered by Ada alone.")
    session.compact("conversation", keep_recent=0)
    assert "by Ada alone" not in json.dumps(session.prepare().request)


@pytest.mark.spec("E8")
def test_what_is_still_sent_as_it_was_said_is_not_said_again(session: Session) -> None:
    assert block(session.prepare(talk(8))) == ""
    session.compact("conversation", keep_recent=2)
    said = block(session.prepare())
    assert (GOAL in said, RULE in said) == (True, True)


@pytest.mark.spec("E8")
def test_a_rule_may_be_released_though_a_person_gave_it(session: Session) -> None:
    session.prepare(talk(8))
    session.compact("conversation", keep_recent=2)
    session.release(RULE)
    session.compact("conversation", keep_recent=1)
    assert RULE not in block(session.prepare())
    with pytest.raises(NotFound):
        session.release("Nobody said this.")


@pytest.mark.spec("E8", "A4")
def test_a_branch_has_no_rules_of_the_one_that_was_left(session: Session) -> None:
    before = talk(2)
    session.prepare([*before, assistant("ok"), user("Never ship to France."), *talk(8)[4:]])
    session.compact("conversation", keep_recent=1)
    assert "Never ship to France." in block(session.prepare())
    prompt = session.prepare([*before[:-1], user("Ship to France first.")])
    assert "Never ship to France." not in json.dumps(prompt.request)
    assert [message["content"] for message in prompt.messages[1:6]] == [m["content"] for m in before[:5]]


@pytest.mark.spec("E8", "D3")
def test_in_a_small_window_it_comes_before_all_other_memory(memory: Memory) -> None:
    session = memory.session("s", window=3_500, reserve=300, memory_tools=False)
    session.write("overview.md", "\n".join(f"- fact {n} is known" for n in range(300)))
    messages: list[Message] = []
    for message in talk(60):
        messages.append(message)
        if message["role"] == "user":
            said = json.dumps(session.prepare(messages).request, ensure_ascii=False)
            assert GOAL in said
            assert len(messages) < 3 or RULE in said


@pytest.mark.spec("E8")
def test_rules_for_which_there_is_no_room_are_counted_and_come_back_when_there_is(memory: Memory) -> None:
    rules = [f"Never touch the {'very ' * 12}old record number {n}." for n in range(120)]
    said = [message for rule in rules for message in (user(rule), assistant("ok"))]
    session = memory.session("s")
    session.add([user(GOAL), assistant("ok"), *said, user("And now?")])
    session.compact("conversation", keep_recent=0)
    prompt = session.prepare()
    shown = [rule for rule in rules if rule in block(prompt)]
    assert 0 < len(shown) < len(rules)
    assert rules[-1] in shown
    assert f"({len(rules) - len(shown)} older ones in archive/ alone)" in block(prompt)
    assert any(one.startswith("retained: ") for one in prompt.report.cut)
    for rule in rules[60:]:
        session.release(rule)
    session.compact("conversation", keep_recent=0)
    assert all(rule in block(session.prepare()) for rule in rules[:40])


@pytest.mark.spec("E8", "J3")
def test_a_host_may_declare_only_so_much(session: Session) -> None:
    for number in range(4):
        session.retain(f"{number} " + "x" * 900)
    with pytest.raises(InvalidInput) as refused:
        session.retain("y" * 900)
    assert str(MOST_RETAINED) in str(refused.value)


@pytest.mark.spec("E8", "C8")
def test_a_child_keeps_what_must_survive_of_its_own_conversation(memory: Memory, home: Path) -> None:  # noqa: ARG001
    child = memory.session("s").spawn("worker")
    child.add(talk(8))
    child.compact("conversation", keep_recent=1)
    assert RULE in block(child.prepare())
