"""A change of memory is sent once, after the last message, and stays there."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders import a_block, a_call, a_result, an_event, assistant, through_json, turns, user
from hypothesis import given, settings
from hypothesis import strategies as st

from inmind import Memory, Prompt, Session
from inmind.core.events.session import TailChanged
from inmind.memory.backends import FolderBackend
from inmind.prompt.plan import count_in_room
from inmind.prompt.state import PromptState
from inmind.testing import InMemoryStore, ManualClock

pytestmark = pytest.mark.spec("D4")

FACTS = "## Facts\n" + "\n".join(f"- fact {number}, which stays as it is" for number in range(60))
FORMATS = ["openai", "responses", "anthropic"]


def prepare(session: Session, talk: list[dict[str, Any]], page: str = "", format: str = "openai") -> Prompt:
    if page:
        session.write("overview.md", f"{FACTS}\n{page}")
    return session.prepare(talk, format=format)


def text(prompt: Prompt) -> str:
    return json.dumps(prompt.messages)


def without_meter(prompt: Prompt) -> list[str]:
    """Every text of the messages in order, except context_meta."""
    texts = list[str]()
    for message in prompt.messages:
        parts = message.get("content", message.get("output"))
        texts += [parts] if isinstance(parts, str) else [part.get("text", json.dumps(part)) for part in parts or ()]
    return [one for one in texts if not one.startswith("<context_meta>")]


@pytest.mark.parametrize("format", FORMATS)
def test_a_change_is_sent_once_and_later_prompts_repeat_it_in_place(session: Session, format: str) -> None:
    talk = turns(2)
    prepare(session, talk, "- start", format)
    second = prepare(session, talk, "- start\n- the hero is sec-2", format)
    talk += [assistant("ok"), user("go on")]
    third = prepare(session, talk, format=format)
    assert without_meter(third)[: len(without_meter(second))] == without_meter(second)
    assert text(third).count("+ - the hero is sec-2") == 1
    used, meta = second.report.tokens_used, second.report.tokens["context_meta"]
    assert third.report.cached_prefix_tokens == used - meta
    assert third.report.tokens["changes"] == second.report.tokens["changes"] > 0
    talk += [assistant("ok"), user("more")]
    fourth = prepare(session, talk, "- start\n- the hero is sec-2\n- and sec-3", format)
    assert [text(fourth).count(f"+ - {line}") for line in ("the hero is sec-2", "and sec-3")] == [1, 1]
    assert [session.prompt(call + 1).request for call in range(4)][1:] == [
        prompt.request for prompt in (second, third, fourth)
    ]
    assert session.explain(4).tokens == sum(fourth.report.tokens.values())
    assert not any(prompt.report.anchor_moved for prompt in (second, third, fourth))


def test_a_change_is_sent_again_if_the_message_that_carried_it_is_edited(session: Session) -> None:
    talk = turns(40)
    prepare(session, talk, "- start")
    prepare(session, [*talk, assistant("one"), user("now")], "- start\n- the hero is sec-2")
    edited = prepare(session, [*talk, assistant("one"), user("no, wait")])
    assert text(edited).count("+ - the hero is sec-2") == 1
    assert edited.report.anchor_moved == ""
    back = prepare(session, [*talk, assistant("one"), user("no"), assistant("two"), user("go")], "- start")
    assert "sec-2" not in text(back)
    assert back.report.anchor_moved == ""
    assert session.prompt(4).request == back.request


def test_a_change_that_is_taken_back_is_reported_as_removed(session: Session) -> None:
    talk = turns(40)
    prepare(session, talk, "- start")
    prepare(session, [*talk, assistant("one"), user("now")], "- start\n- the hero is sec-2")
    longer = [*talk, assistant("one"), user("now"), assistant("two"), user("go")]
    assert "- - the hero is sec-2" in text(prepare(session, longer, "- start"))


def test_the_anchor_moves_if_several_messages_with_changes_are_gone(session: Session) -> None:
    talk = turns(40)
    prepare(session, talk, "- start")
    longer = list(talk)
    for number in range(3):
        longer += [assistant("ok"), user(f"step {number}")]
        prepare(session, longer, f"- start\n- step {number}")
    branched = prepare(session, [*talk, assistant("no"), user("again")])
    assert branched.report.anchor_moved == "the history was rewritten"
    assert "memory_changes>" not in json.dumps(branched.messages[1:])


@pytest.mark.spec("D9")
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_list_made_from_a_prompt_with_changes_is_recognised(session: Session, format: str) -> None:
    talk = turns(2)
    prepare(session, talk, "- start", format)
    talk += [assistant("ok"), user("go on")]
    prompt = prepare(session, talk, "- start\n- the hero is sec-2", format)
    ours = [message for message in prompt.messages if message["role"] != "system"]
    again = session.prepare([*ours, assistant("done"), user("next")], format=format)
    assert session.state.conversation.wires == [*talk, assistant("done"), user("next")]
    assert text(again).count("+ - the hero is sec-2") == 1


def test_changes_that_an_older_version_sent_at_the_end_are_replaced_by_changes_in_place() -> None:
    old = PromptState().apply(an_event(TailChanged("overview:\n+ - sec-2", (a_block("b", "notes"),))), message_count=1)
    assert (old.tail, old.new_blocks, old.changes) == ("overview:\n+ - sec-2", (a_block("b", "notes"),), ())
    new = old.apply(an_event(TailChanged("overview:\n+ - sec-2", place=3, view_digest="d")), message_count=1)
    assert (new.tail, new.new_blocks, [one.place for one in new.changes]) == ("", (), [3])
    stored = through_json(new)
    assert (stored.changes, stored.known_blocks) == (new.changes, new.known_blocks)


def test_a_tool_result_carries_changes_and_they_count_as_memory(session: Session) -> None:
    talk = [user("look"), a_call("c1"), a_result("c1", "row " * 700)]
    prepare(session, talk[:1], "- start")
    prompt = prepare(session, talk, "- start\n- the hero is sec-2")
    assert [part["type"] for part in prompt.messages[-1]["content"]] == ["text", "text", "text"]
    assert prompt.report.room_used == count_in_room(prompt.report.tokens)


steps = st.lists(st.sampled_from(["say", "change", "both", "edit", "undo"]), min_size=1, max_size=12)


@given(steps, st.sampled_from(FORMATS))
@settings(max_examples=60, deadline=None)
def test_the_model_always_knows_the_current_page_and_the_prefix_stays(moves: list[str], format: str) -> None:
    with (
        TemporaryDirectory() as home,
        Memory(FolderBackend(Path(home), InMemoryStore()), clock=ManualClock()) as memory,
    ):
        session = memory.session("s", cwd="/w")
        talk, page = turns(12), ["- start"]
        before = prepare(session, list(talk), "- start", format)
        for number, move in enumerate(moves):
            if move in ("change", "both"):
                page.append(f"- news {number}")
            if move == "undo" and len(page) > 1:
                page.pop()
            if move == "edit":
                talk[-1] = user(f"instead {number}")
            if move in ("say", "both", "undo"):
                talk += [assistant(f"ok {number}"), user(f"go on {number}")]
            prompt = prepare(session, list(talk), "\n".join(page), format)
            known = {block.layer: block.text for block in session.state.prompt.known_blocks}
            assert known["overview"].rstrip().endswith("\n".join(["stays as it is", *page]))
            if move != "edit" and not prompt.report.anchor_moved:
                assert without_meter(prompt)[: len(without_meter(before))] == without_meter(before)
            assert session.prompt(prompt.call).request == prompt.request
            assert session.prompt(prompt.call).report.tokens == prompt.report.tokens
            before = prompt
