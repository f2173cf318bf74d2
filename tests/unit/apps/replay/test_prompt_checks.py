"""A prompt, read back from the request: what is in it, and what would be wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from provider_rules import faults
from recorded_transcripts import a_use, an_answer
from tables import each_row

from inmind.apps.replay import Recording
from inmind.apps.replay.prompt_checks import SentPrompt, count_unpaired
from inmind.apps.replay.truncating_host import TokenSizes
from inmind.core.messages import FORMATS
from inmind.prompt.report import Prompt, Report

pytestmark = pytest.mark.spec("I8")


def sent(*messages: dict[str, Any], format: str = "openai", **beside: Any) -> SentPrompt:
    report = Report(
        call=1,
        tokens={},
        tokens_used=0,
        tokens_max=0,
        band="",
        cached_prefix_tokens=0,
        cold=False,
        anchor_moved="",
    )
    prompt = Prompt(call=1, format=format, request={"messages": list(messages), **beside}, report=report)
    return SentPrompt.of(prompt, TokenSizes(Recording(name="r", format=format, messages=[])))


def test_everything_in_the_request_is_in_its_text() -> None:
    asked = {"role": "assistant", "content": [a_use("t", path="a.py")]}
    answered = {"role": "user", "content": [an_answer("t", "all of it"), {"type": "text", "text": "the meter"}]}
    text = sent(user("Go"), asked, answered, format="anthropic", system="Be kind.", tools=[{"name": "Read"}]).text
    for said in ("Go", "a.py", "all of it", "the meter", "Be kind.", "Read"):
        assert said in text


def test_tokens_are_counted_from_the_request_and_not_taken_from_its_report() -> None:
    short = sent(user("word " * 100))
    assert short.tokens > 100
    assert sent(user("word " * 100), assistant("word " * 100)).tokens == 2 * short.tokens
    assert sent(user("word " * 100), tools=[{"name": "word " * 50}]).tokens > short.tokens + 50


CHATS = {
    "paired": [user("Go"), a_call("a"), a_result("a"), assistant("Done.")],
    "not answered": [user("Go"), a_call("a"), user("And?")],
    "open at the end": [user("Go"), a_call("a")],
    "answered too late": [user("Go"), a_call("a"), user("And?"), a_result("a")],
    "answer to nothing": [user("Go"), a_result("a"), assistant("Done.")],
}


@each_row("said", CHATS.values(), ids=CHATS)
def test_a_chat_has_calls_without_results_where_the_provider_would_refuse_it(said: list[Any]) -> None:
    assert bool(sent(*said).unpaired) is bool(faults("openai", said))


def blocks(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


CALLS = [user("Go"), blocks("assistant", a_use("a"), a_use("b"))]
TALKS = {
    "paired": [*CALLS, blocks("user", an_answer("a"), an_answer("b"))],
    "one missing": [*CALLS, blocks("user", an_answer("a"))],
    "not together": [*CALLS, blocks("user", an_answer("a")), blocks("user", an_answer("b"))],
    "answer to nothing": [user("Go"), blocks("user", an_answer("a"))],
}


@each_row("said", TALKS.values(), ids=TALKS)
def test_results_for_anthropic_stand_together_right_behind_their_calls(said: list[Any]) -> None:
    assert bool(sent(*said, format="anthropic").unpaired) is bool(faults("anthropic", said))


def test_each_call_that_has_lost_its_result_counts() -> None:
    chat = FORMATS["openai"]
    said = [chat.read(wire) for wire in (a_call("a"), user("And?"), a_call("b"), a_result("c"), a_call("d"))]
    assert count_unpaired(said, together=False) == 4
