"""Retained items are in every prompt as soon as no message has them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import Home, assistant, user

from inmind import Memory, Prompt, Session
from inmind.core.events.session import Retained
from inmind.errors import InvalidInput, NotFound
from inmind.session.host_input import MAX_RETAINED_CHARACTERS

Message = dict[str, Any]

GOAL = "Move the shop to the new warehouse."
RULE = "Never delete an order without asking me."


def talk(turns: int, *, words: int = 40) -> list[Message]:
    messages = [user(GOAL), assistant("ok"), user(RULE), assistant("ok")]
    for turn in range(turns):
        messages += [user(f"Step {turn}."), assistant("done " * words)]
    return [*messages, user("And now?")]


def block(prompt: Prompt) -> str:
    """The block of retained items; empty if there is none."""
    text = json.dumps(prompt.request, ensure_ascii=False)
    return text.partition('<memory layer=\\"retained\\">')[2].partition("</memory>")[0]


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("s", resource="ada")


@pytest.mark.spec("E8")
def test_a_retained_text_is_in_prompts_until_it_is_released(session: Session) -> None:
    session.prepare(talk(1))
    session.retain("The password is answered by Ada alone.")
    assert "by Ada alone" in json.dumps(session.prepare().request)
    session.release("The password is answered by Ada alone.")
    session.compact("conversation", keep_recent=0)
    assert "by Ada alone" not in json.dumps(session.prepare().request)


@pytest.mark.spec("E8")
def test_an_item_still_in_the_messages_is_not_repeated(session: Session) -> None:
    assert block(session.prepare(talk(8))) == ""
    session.compact("conversation", keep_recent=2)
    text = block(session.prepare())
    assert (GOAL in text, RULE in text) == (True, True)


@pytest.mark.spec("E8")
def test_a_rule_of_a_user_can_be_released(session: Session) -> None:
    session.prepare(talk(8))
    session.compact("conversation", keep_recent=2)
    session.release(RULE)
    session.compact("conversation", keep_recent=1)
    assert RULE not in block(session.prepare())
    with pytest.raises(NotFound):
        session.release("This is not an item.")


@pytest.mark.spec("E8", "A4")
def test_a_branch_has_no_rules_of_the_old_branch(session: Session) -> None:
    before = talk(2)
    session.prepare([*before, assistant("ok"), user("Never ship to France."), *talk(8)[4:]])
    session.compact("conversation", keep_recent=1)
    assert "Never ship to France." in block(session.prepare())
    prompt = session.prepare([*before[:-1], user("Ship to France first.")])
    assert "Never ship to France." not in json.dumps(prompt.request)
    assert [message["content"] for message in prompt.messages[:5]] == [m["content"] for m in before[:5]]


@pytest.mark.spec("E8", "D3")
def test_retained_items_have_priority_in_a_small_window(memory: Memory) -> None:
    session = memory.session("s", window=3_500, reserve=300, memory_tools=False)
    session.write("overview.md", "\n".join(f"- fact {n} is known" for n in range(300)))
    messages: list[Message] = []
    for message in talk(60):
        messages.append(message)
        if message["role"] == "user":
            text = json.dumps(session.prepare(messages).request, ensure_ascii=False)
            assert GOAL in text
            assert len(messages) < 3 or RULE in text


@pytest.mark.spec("E8")
def test_rules_without_room_are_counted_and_come_back(memory: Memory) -> None:
    rules = [f"Never touch the {'very ' * 12}old record number {n}." for n in range(120)]
    history = [message for rule in rules for message in (user(rule), assistant("ok"))]
    session = memory.session("s")
    session.add([user(GOAL), assistant("ok"), *history, user("And now?")])
    session.compact("conversation", keep_recent=0)
    prompt = session.prepare()
    visible = [rule for rule in rules if rule in block(prompt)]
    assert 0 < len(visible) < len(rules)
    assert rules[-1] in visible
    assert f"({len(rules) - len(visible)} older ones only in archive/)" in block(prompt)
    assert any(one.startswith("retained: ") for one in prompt.report.cut)
    for rule in rules[60:]:
        session.release(rule)
    session.compact("conversation", keep_recent=0)
    assert all(rule in block(session.prepare()) for rule in rules[:40])


@pytest.mark.spec("E8", "J3")
def test_retained_texts_have_a_total_limit(session: Session) -> None:
    for number in range(4):
        session.retain(f"{number} " + "x" * 900)
    with pytest.raises(InvalidInput) as error:
        session.retain("y" * 900)
    assert str(MAX_RETAINED_CHARACTERS) in str(error.value)


@pytest.mark.spec("E8", "C8")
def test_a_child_keeps_its_own_retained_items(memory: Memory, home: Home) -> None:  # noqa: ARG001
    child = memory.session("s").spawn("worker")
    child.add(talk(8))
    child.compact("conversation", keep_recent=1)
    assert RULE in block(child.prepare())


@pytest.mark.spec("E8", "C8")
@pytest.mark.parametrize("policy", ["fork", {"retained": "fork"}])
def test_a_fork_inherits_all_retained_items(memory: Memory, policy: str | dict[str, str]) -> None:
    parent = memory.session("s")
    parent.add(talk(8))
    parent.compact("conversation", keep_recent=1)
    parent.retain("Use EUR.")
    parent.add([assistant("ok"), user("Always answer in Danish.")])
    child = parent.spawn(policy=policy)
    content = block(child.prepare([user("Count the boxes.")]))
    assert all(text in content for text in (GOAL, RULE, "Use EUR.", "Always answer in Danish."))
    assert child.retained[0].text == "Count the boxes."
    inherited = [event for event in child.events() if isinstance(event.payload, Retained)]
    assert all(source.startswith("session/s#") for event in inherited for source in event.sources)
    child.add([message for step in range(9) for message in (assistant("done " * 60), user(f"Step {step}."))])
    child.compact("conversation", keep_recent=0)
    content = block(child.prepare())
    assert [content.count(text) for text in (GOAL, RULE, "Use EUR.", "Count the boxes.")] == [1, 1, 1, 1]
    child.release(RULE)
    assert [RULE in [item.text for item in one.retained] for one in (child, parent)] == [False, True]


@pytest.mark.spec("E8", "C8")
def test_a_single_inherited_layer_brings_no_other(memory: Memory) -> None:
    parent = memory.session("s")
    parent.write("detail/plan.md", "# Plan\n")
    parent.retain("Use EUR.")
    assert list(parent.spawn(policy={"retained": "fork"}).documents()) == ["overview.md"]
    assert parent.spawn(policy={"overview": "fork"}).retained == ()


@pytest.mark.spec("E8", "C8")
def test_a_view_of_retained_items_does_not_hide_the_childs_own(memory: Memory) -> None:
    parent = memory.session("s")
    parent.retain("Use EUR.")
    child = parent.spawn(policy="view")
    child.retain("Lisbon closes at six.")
    child.add(talk(8))
    child.compact("conversation", keep_recent=1)
    grandchild = child.spawn(policy="view")
    for session in (child, grandchild, child.spawn(policy="fork")):
        session.add([assistant("ok"), user("Go on.")])
        content = block(session.prepare())
        assert [content.count(text) for text in ("Use EUR.", "Lisbon closes at six.", RULE)] == [1, 1, 1]
    (part,) = (part for part in grandchild.explain().parts if part.name == "memory:retained")
    assert {source.partition("#")[0] for source in part.sources} == {f"session/{child.id}"}
    parent.release("Use EUR.")
    assert "Use EUR." not in block(child.spawn(policy="view").prepare([user("Go.")]))


@pytest.mark.spec("E8", "C8")
def test_inherited_items_do_not_count_against_the_childs_limit(memory: Memory) -> None:
    parent = memory.session("s")
    for number in range(4):
        parent.retain(f"{number} " + "x" * 990)
    child = parent.spawn(policy="fork")
    child.retain("Lisbon closes at six.")
    parent.merge_back(child)
    assert "Lisbon" not in block(parent.prepare([user("Go.")]))


@pytest.mark.spec("E8")
def test_retained_items_are_listed_before_any_compaction(session: Session) -> None:
    session.prepare(talk(2))
    assert [(item.kind, item.text) for item in session.retained] == [("goal", GOAL), ("rule", RULE)]
    session.retain("Use EUR.")
    before = session.retained
    session.release(RULE)
    assert [item.text for item in session.retained] == [GOAL, "Use EUR."]
    session.add([message for step in range(9) for message in (assistant("done " * 60), user(f"Step {step}."))])
    session.compact("conversation", keep_recent=0)
    assert [item for item in before if item.text != RULE] == list(session.retained)


@pytest.mark.spec("E8")
def test_after_releasing_the_goal_no_later_message_becomes_the_goal(session: Session) -> None:
    session.add(talk(8))
    session.compact("conversation", keep_recent=2)
    session.release(GOAL)
    session.compact("conversation", keep_recent=0)
    session.add([assistant("done " * 60), user("Now the shelves.")])
    assert [item.text for item in session.retained] == [RULE]


@pytest.mark.spec("E8")
def test_the_limit_counts_characters_of_pinned_texts(session: Session) -> None:
    session.add(talk(8))
    session.retain("Use EUR.")
    session.retain("Ask Ada.")
    assert "1 goal, 2 pinned items, 1 rule" in str(session.compact("conversation", keep_recent=0))
