"""Checks of a prompt that is read back from its request."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from provider_rules import faults
from recorded_transcripts import a_use, an_answer
from tables import each_row

from inmind.apps.replay import Recording
from inmind.apps.replay.baseline import TokenSizes
from inmind.apps.replay.player import SentPrompt, count_unpaired
from inmind.core.messages import FORMATS
from inmind.prompt.report import Prompt, Report

pytestmark = pytest.mark.spec("I8")


def sent_prompt(*messages: dict[str, Any], format: str = "openai", **fields: Any) -> SentPrompt:
    report = Report(
        call=1,
        tokens={},
        tokens_used=0,
        tokens_max=0,
        room_used=0,
        room=0,
        band="",
        cached_prefix_tokens=0,
        cold=False,
        anchor_moved="",
    )
    prompt = Prompt(call=1, format=format, request={"messages": list(messages), **fields}, report=report)
    return SentPrompt.of(prompt, TokenSizes(Recording(name="r", format=format, messages=[])))


def test_the_text_of_a_prompt_contains_every_part_of_the_request() -> None:
    call = {"role": "assistant", "content": [a_use("t", path="a.py")]}
    result = {"role": "user", "content": [an_answer("t", "all of it"), {"type": "text", "text": "the meter"}]}
    text = sent_prompt(user("Go"), call, result, format="anthropic", system="Be kind.", tools=[{"name": "Read"}]).text
    for part in ("Go", "a.py", "all of it", "the meter", "Be kind.", "Read"):
        assert part in text


def test_tokens_are_counted_from_the_request_and_not_taken_from_its_report() -> None:
    short = sent_prompt(user("word " * 100))
    assert short.tokens > 100
    assert sent_prompt(user("word " * 100), assistant("word " * 100)).tokens == 2 * short.tokens
    assert sent_prompt(user("word " * 100), tools=[{"name": "word " * 50}]).tokens > short.tokens + 50


CHATS = {
    "paired": [user("Go"), a_call("a"), a_result("a"), assistant("Done.")],
    "not answered": [user("Go"), a_call("a"), user("And?")],
    "open at the end": [user("Go"), a_call("a")],
    "answered too late": [user("Go"), a_call("a"), user("And?"), a_result("a")],
    "answer to nothing": [user("Go"), a_result("a"), assistant("Done.")],
}


@each_row("messages", CHATS.values(), ids=CHATS)
def test_unpaired_calls_are_reported_for_chats_that_the_provider_refuses(messages: list[Any]) -> None:
    assert bool(sent_prompt(*messages).unpaired) is bool(faults("openai", messages))


def blocks(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


CALLS = [user("Go"), blocks("assistant", a_use("a"), a_use("b"))]
TALKS = {
    "paired": [*CALLS, blocks("user", an_answer("a"), an_answer("b"))],
    "one missing": [*CALLS, blocks("user", an_answer("a"))],
    "not together": [*CALLS, blocks("user", an_answer("a")), blocks("user", an_answer("b"))],
    "answer to nothing": [user("Go"), blocks("user", an_answer("a"))],
}


@each_row("messages", TALKS.values(), ids=TALKS)
def test_anthropic_results_must_directly_follow_their_calls_in_one_message(messages: list[Any]) -> None:
    assert bool(sent_prompt(*messages, format="anthropic").unpaired) is bool(faults("anthropic", messages))


def test_each_call_without_its_result_counts() -> None:
    chat = FORMATS["openai"]
    messages = [chat.read(wire) for wire in (a_call("a"), user("And?"), a_call("b"), a_result("c"), a_call("d"))]
    assert count_unpaired(messages, together=False) == 4
