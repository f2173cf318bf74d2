"""Threads that the provider holds: only new messages are sent, and the journal has all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider import Provider, ScriptedFailure, a_tool_call, reply_with

from inmind import Memory, Session, wrap
from inmind.core.events.session import Compacted
from inmind.errors import InvalidInput
from inmind.history.sync import last_reply_id
from inmind.session.state import SessionFold
from inmind.testing import ManualClock

Json = dict[str, Any]

pytestmark = pytest.mark.spec("E12")

GOAL = "Migrate the billing service to the new gateway. Never touch the table ledger_v1."
NOTE = a_tool_call("working_memory_update", {"text": "Ada wants the page About Us."})
PAGE = a_tool_call("get_page", {"id": "page-1"})
TOOLS: list[Any] = [{"type": "function", "name": "get_page", "parameters": {"type": "object"}, "strict": False}]
THREADS = ("previous_response_id", "conversation")
each_thread = pytest.mark.parametrize("kind", THREADS)


@pytest.fixture
def provider() -> Generator[Provider]:
    with Provider() as provider:
        provider.threads["conv_1"] = []
        yield provider
        assert provider.failures == []


class Host:
    """A program that keeps no messages: it names its last reply, or its conversation at the provider."""

    def __init__(self, provider: Provider, session: Session, kind: str, **options: Any) -> None:
        self.provider, self.session, self.options = provider, session, options
        self.kind, self.reference = kind, "conv_1" if kind == "conversation" else None

    def send(self, messages: Any, **options: Any) -> Any:
        options = {"model": "m", **self.options, **options}
        if self.reference is not None:
            options = {self.kind: self.reference, **options}
        with a_client(self.provider) as client:
            responses: Any = wrap(client, self.session).responses
            if options.get("stream"):
                with responses.create(input=messages, **options) as stream:
                    reply = list(stream)[-1].response
            else:
                reply = responses.create(input=messages, **options)
        self.reference = reply.id if self.kind == "previous_response_id" else self.reference
        return reply


@contextmanager
def a_client(provider: Provider) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client:
        yield client


def sent(provider: Provider) -> list[list[str]]:
    """The conversation in each request: the first text or the type of each item, without memory."""
    return [
        [text for item in request.messages if "<memory" not in (text := _text(item))] for request in provider.requests
    ]


def texts(session: Session) -> list[str]:
    return [_text(message) for message in session.messages]


def threads(session: Session) -> list[Compacted]:
    compacted = [event.payload for event in session.events() if isinstance(event.payload, Compacted)]
    return [payload for payload in compacted if payload.strategy == "thread"]


def _text(item: Any) -> str:
    content = item.get("content")
    return content if isinstance(content, str) else content[0]["text"] if content else str(item.get("type"))


@each_thread
def test_only_new_messages_are_sent_and_the_journal_has_all(provider: Provider, session: Session, kind: str) -> None:
    host = Host(provider, session, kind)
    provider.will(reply_with("I begin."), reply_with("Step one is done."), reply_with("All is done."))
    host.send(GOAL)
    host.send([{"role": "user", "content": "Go on."}])
    host.send("And then?")
    assert sent(provider) == [[GOAL], ["Go on."], ["And then?"]]
    assert texts(session) == [GOAL, "I begin.", "Go on.", "Step one is done.", "And then?", "All is done."]
    references = [request.body.get(kind) for request in provider.requests]
    assert references == (["conv_1"] * 3 if kind == "conversation" else [None, "resp_1", "resp_2"])
    assert any("ledger_v1" in hit.text for hit in session.search("ledger_v1"))
    assert provider.unused == 0


@pytest.mark.spec("E8")
@each_thread
def test_memory_is_in_each_request_and_is_not_kept_by_the_provider(
    provider: Provider, session: Session, kind: str
) -> None:
    session.write("overview.md", "- Ada edits a website.\n")
    host = Host(provider, session, kind, instructions="Be brief.")
    provider.will(reply_with("I begin."), reply_with("It is done."), reply_with("Yes."))
    host.send(GOAL)
    host.send("Go on.")
    host.send("Is it?")
    for request in provider.requests[1:]:
        assert request.body["instructions"].startswith("Be brief.\n\n<memory_guide>")
        assert "Ada edits a website." in request.body["instructions"]
        assert "Never touch the table ledger_v1." in request.body["instructions"]
        assert "<context_meta>" in json.dumps(request.messages[-1])
        assert "working_memory" in request.tools
    held = json.dumps(provider.threads[host.reference or ""])
    assert held.count("Ada edits a website.") == (0 if kind == "conversation" else 1)


@each_thread
def test_a_thread_is_journaled_as_a_compaction_by_the_provider(provider: Provider, session: Session, kind: str) -> None:
    host = Host(provider, session, kind)
    provider.will(reply_with("I begin."), reply_with("It is done."), reply_with("Yes."))
    host.send(GOAL)
    host.send("Go on.")
    host.send("Is it?")
    assert [(one.reason, one.messages) for one in threads(session)] == [("by the provider", 2), ("by the provider", 4)]
    assert len(session.state.history.compactions) == 1
    assert session.state.prompt.last_prompt.thread == ("conv_1" if kind == "conversation" else "resp_2")
    assert [(item.kind, item.text) for item in session.retained] == [("goal", GOAL)]


@each_thread
def test_a_request_without_the_reference_sends_all_messages(provider: Provider, session: Session, kind: str) -> None:
    host = Host(provider, session, kind)
    provider.will(reply_with("I begin."), reply_with("It is done."), reply_with("Yes."), reply_with("Really."))
    host.send(GOAL)
    host.send("Go on.")
    host.reference, host.kind = None, "previous_response_id"
    host.send([*session.messages, {"role": "user", "content": "Is it?"}])
    everything = [GOAL, "I begin.", "Go on.", "It is done.", "Is it?"]
    assert sent(provider)[-1] == everything
    assert session.state.history.compactions == ()
    host.send("Really?")
    assert (sent(provider)[-1], texts(session)) == (["Really?"], [*everything, "Yes.", "Really?", "Really."])


@pytest.mark.spec("D9")
def test_another_provider_gets_all_messages_of_a_thread(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "previous_response_id")
    provider.will(reply_with("I begin."), reply_with("It is done."))
    host.send(GOAL)
    host.send("Go on.")
    for format in ("openai", "anthropic"):
        prompt = session.prepare(format=format)
        assert all(text in json.dumps(prompt.messages) for text in (GOAL, "I begin.", "Go on.", "It is done."))


@each_thread
@pytest.mark.parametrize("stream", [False, True])
def test_memory_tools_continue_the_thread_from_the_reply_before(
    provider: Provider, session: Session, kind: str, stream: bool
) -> None:
    host = Host(provider, session, kind, stream=stream)
    provider.will(reply_with("I begin."), reply_with("", NOTE), reply_with("", NOTE), reply_with("Noted."))
    host.send(GOAL)
    reply = host.send("Note it.")
    assert reply.output_text == "Noted."
    result = "function_call_output"
    assert sent(provider) == [[GOAL], ["Note it."], [result], [result]]
    references = [request.body.get(kind) for request in provider.requests]
    assert references == (["conv_1"] * 4 if kind == "conversation" else [None, "resp_1", "resp_2", "resp_3"])
    provider.will(reply_with("Yes."))
    host.send("Is it?")
    assert provider.requests[-1].body[kind] == ("conv_1" if kind == "conversation" else "resp_4")
    assert sent(provider)[-1] == ["Is it?"]
    calls = ["function_call", result, "function_call", result]
    assert texts(session) == [GOAL, "I begin.", "Note it.", *calls, "Noted.", "Is it?", "Yes."]


def test_a_thread_may_begin_with_a_reply_of_several_rounds(provider: Provider, memory: Memory) -> None:
    host = Host(provider, memory.session("s"), "previous_response_id")
    provider.will(reply_with("", NOTE), reply_with("Noted."), reply_with("Yes."))
    assert host.send("Note it.").id == "resp_1"
    Host.send(host, "Is it?")
    assert (provider.requests[-1].body["previous_response_id"], sent(provider)[-1]) == ("resp_2", ["Is it?"])


@each_thread
def test_results_of_memory_and_of_the_host_answer_the_same_reply(
    provider: Provider, session: Session, kind: str
) -> None:
    host = Host(provider, session, kind, tools=TOOLS)
    provider.will(reply_with("I begin."), reply_with("", NOTE, PAGE), reply_with("It is About Us."))
    host.send(GOAL)
    (call,) = host.send("Which page?").output
    host.send([{"type": "function_call_output", "call_id": call.call_id, "output": "About Us"}])
    outputs = [item["call_id"] for item in provider.requests[-1].messages if item.get("type") == "function_call_output"]
    assert len(outputs) == len(set(outputs)) == 2
    assert len(provider.requests[-1].messages) == 2
    assert provider.unused == 0


@each_thread
def test_a_request_that_failed_is_sent_again_once(provider: Provider, session: Session, kind: str) -> None:
    host = Host(provider, session, kind)
    provider.will(reply_with("I begin."), ScriptedFailure(), reply_with("It is done."))
    host.send(GOAL)
    with pytest.raises(openai.InternalServerError):
        host.send("Go on.")
    host.send("Go on.")
    assert sent(provider)[1:] == [["Go on."]] * 2
    assert texts(session) == [GOAL, "I begin.", "Go on.", "It is done."]


@each_thread
def test_a_round_of_memory_that_failed_leaves_a_thread_that_continues(
    provider: Provider, session: Session, kind: str
) -> None:
    host = Host(provider, session, kind)
    provider.will(reply_with("I begin."), reply_with("", NOTE), ScriptedFailure(), reply_with("It is noted."))
    host.send(GOAL)
    with pytest.raises(openai.InternalServerError):
        host.send("Note it.")
    assert host.send("Note it.").output_text == "It is noted."
    assert provider.unused == 0


def test_a_thread_that_continues_from_an_earlier_reply_is_a_branch(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "previous_response_id")
    provider.will(
        reply_with("I begin."), reply_with("It is blue."), reply_with("It is done."), reply_with("It is red.")
    )
    first = host.send(GOAL).id
    host.send("Make it blue.")
    host.send("Go on.")
    host.reference = first
    host.send("Make it red.")
    assert sent(provider)[-1] == ["Make it red."]
    assert texts(session) == [GOAL, "I begin.", "Make it red.", "It is red."]


@each_thread
def test_a_thread_that_began_elsewhere_passes_through(provider: Provider, session: Session, kind: str) -> None:
    call: Json = {"type": "function_call", "call_id": "c1", "name": "get_page", "arguments": "{}", "id": "fc_1"}
    provider.threads["of_another_program"] = [{"role": "user", "content": "Which page?"}, call]
    host = Host(provider, session, kind, tools=TOOLS)
    host.reference = "of_another_program"
    provider.will(reply_with("It is About Us."), reply_with("Yes."))
    output: Json = {"type": "function_call_output", "call_id": "c1", "output": "About Us"}
    approval: Json = {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": True}
    host.send([output, approval])
    host.send("Is it?")
    assert provider.requests[0].body[kind] == "of_another_program"
    answers = ["function_call_output", "mcp_approval_response"]
    assert sent(provider) == [answers, ["Is it?"]]
    assert texts(session) == [*answers, "It is About Us.", "Is it?", "Yes."]


def test_a_conversation_may_be_passed_as_an_object(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "conversation", conversation={"id": "conv_1"})
    provider.will(reply_with("I begin."), reply_with("", NOTE), reply_with("Noted."))
    host.send(GOAL)
    host.send("Note it.")
    assert [request.body["conversation"] for request in provider.requests] == [{"id": "conv_1"}] * 3
    assert sent(provider) == [[GOAL], ["Note it."], ["function_call_output"]]


def test_an_async_client_continues_a_thread_too(provider: Provider, session: Session) -> None:
    provider.will(reply_with("I begin."), reply_with("", NOTE), reply_with("Noted."))

    async def talk() -> str:
        async with openai.AsyncOpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client:
            responses = wrap(client, session).responses
            first = await responses.create(model="m", input=GOAL)
            reply = await responses.create(model="m", input="Note it.", previous_response_id=first.id)
            assert (reply.id, reply.previous_response_id) == ("resp_2", "resp_1")
            return reply.output_text

    assert asyncio.run(talk()) == "Noted."
    assert sent(provider) == [[GOAL], ["Note it."], ["function_call_output"]]


@pytest.mark.spec("E5")
def test_a_message_that_is_too_long_is_cut_in_a_thread_too(provider: Provider, memory: Memory) -> None:
    session = memory.session("s", window=6_000, reserve=200)
    host = Host(provider, session, "previous_response_id")
    provider.will(*(reply_with("Yes.") for _ in range(3)))
    host.send(GOAL)
    host.send("word " * 9_000)
    host.send("Is it?")
    assert [len(items) for items in sent(provider)] == [1, 1, 1]
    assert len(sent(provider)[1][0]) < 30_000
    assert session.messages[2]["content"] == "word " * 9_000


@pytest.mark.spec("A5", "D8")
@each_thread
def test_prompts_of_a_thread_are_rebuilt_and_reopened(provider: Provider, memory: Memory, kind: str) -> None:
    session = memory.session("s")
    host = Host(provider, session, kind, tools=TOOLS)
    provider.will(reply_with("I begin."), reply_with("", NOTE, PAGE), reply_with("", NOTE), reply_with("It is done."))
    host.send(GOAL)
    (call,) = host.send("Which page?").output
    host.send([{"type": "function_call_output", "call_id": call.call_id, "output": "About Us"}])
    for number, request in enumerate(provider.requests, start=1):
        prompt = session.prompt(number).request
        assert (prompt["input"], prompt.get("instructions")) == (request.messages, request.body.get("instructions"))
    fold = SessionFold("session/s")
    assert fold.freeze(memory.session("s").state) == fold.freeze(session.state)
    provider.will(reply_with("Yes."))
    host.session = memory.session("s")
    host.send("Is it?")
    assert sent(provider)[-1] == ["Is it?"]


@pytest.mark.spec("D3")
@each_thread
def test_changes_of_memory_leave_the_cached_thread_as_it_is(provider: Provider, session: Session, kind: str) -> None:
    session.write("overview.md", "- Ada edits a website.\n")
    host = Host(provider, session, kind)
    provider.will(*(reply_with(f"Step {number}.") for number in range(5)))
    for number in range(5):
        host.send("Go on.")
        if number == 2:
            session.write("overview.md", "- Ada edits a website.\n- Its page About Us is done.\n")
    instructions = [request.body.get("instructions") for request in provider.requests]
    assert instructions[2] == instructions[3] == instructions[4]
    mentions = ["About Us" in json.dumps(request.messages) for request in provider.requests]
    assert mentions == [False, False, False, True, False]


@pytest.mark.spec("D3")
@each_thread
def test_memory_that_is_replaced_in_the_instructions_outdates_the_changes_in_the_thread(
    provider: Provider, session: Session, clock: ManualClock, kind: str
) -> None:
    """The provider keeps the changes in earlier messages, and the model takes changes for newer than the memory."""
    host = Host(provider, session, kind)
    provider.will(*(reply_with("Yes.") for _ in range(5)))
    for number, line in enumerate(["a website", "a shop", "a blog", "a page", "a page"]):
        session.write("overview.md", f"- Ada edits {line}.\n")
        clock.advance(seconds=86_400 if number == 2 else 1)  # the provider's cache is cold after it
        host.send("Go on.")
    requests = [json.dumps(request.messages) for request in provider.requests]
    assert "a blog" in provider.requests[2].body["instructions"]
    assert ["is out of date" in request for request in requests] == [False, False, True, False, False]
    assert ["a page" in request for request in requests] == [False, False, False, True, False]


@pytest.mark.spec("D10")
def test_the_usage_of_a_thread_does_not_correct_the_token_count(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "conversation")
    provider.will(reply_with("I begin."), reply_with("It is done."))
    host.send(GOAL)
    host.send("Go on.")
    assert session.state.prompt.calibration.samples == 0


@pytest.mark.spec("A4")
def test_an_undo_goes_back_by_messages_and_not_by_threads(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "previous_response_id")
    provider.will(reply_with("I begin."), reply_with("", NOTE), reply_with("Noted."))
    host.send(GOAL)
    host.send("Note it.")
    lengths: list[int] = []
    for _ in range(3):
        session.undo()
        lengths.append(len(session.messages))
    assert lengths == [5, 3, 2]


def test_a_developer_message_in_a_thread_is_sent_once(provider: Provider, session: Session) -> None:
    host = Host(provider, session, "previous_response_id")
    provider.will(reply_with("I begin."), reply_with("", NOTE), reply_with("Noted."), reply_with("Yes."))
    host.send(GOAL)
    host.send([{"role": "developer", "content": "Answer in Latin."}, {"role": "user", "content": "Note it."}])
    host.send("Is it?")
    assert sent(provider)[1:] == [["Answer in Latin.", "Note it."], ["function_call_output"], ["Is it?"]]


def test_prepare_takes_a_thread_and_the_messages_after_it(session: Session) -> None:
    session.prepare([{"role": "user", "content": GOAL}], format="responses")
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I begin."}]}]
    session.record({"id": "resp_1", "status": "completed", "output": output})
    new: Json = {"role": "user", "content": "Go on."}
    preview = session.preview([new], format="responses", thread="resp_1")
    prompt = session.prepare([new], format="responses", thread="resp_1")
    assert (len(prompt.messages), prompt.request) == (1, preview.request)
    assert session.prepare(format="responses", thread="resp_1").request == prompt.request
    for format, thread in (("openai", "resp_1"), ("anthropic", "msg_1"), ("responses", 7)):
        with pytest.raises(InvalidInput, match="thread"):
            session.prepare([new], format=format, thread=thread)  # pyright: ignore[reportArgumentType] -- a host's mistake


@pytest.mark.spec("H6")
def test_instructions_of_a_reply_that_the_host_sends_again_have_memory_once(
    provider: Provider, session: Session
) -> None:
    host = Host(provider, session, "previous_response_id", instructions="Be brief.")
    provider.will(*(reply_with("Yes.") for _ in range(3)))
    host.send(GOAL)
    host.send("Go on.")
    host.options = {"instructions": provider.requests[-1].body["instructions"]}
    host.send("Is it?")
    assert provider.requests[-1].body["instructions"].count("<memory_guide>") == 1
    assert session.state.prompt.system == "Be brief."


STEPS = ("says", "notes", "pages", "notes and pages", "fails", "fails in a round", "compacts", "goes back", "lists all")


@given(steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=9), kind=st.sampled_from(THREADS))
def test_the_provider_and_the_journal_hold_the_same_conversation(steps: list[str], kind: str) -> None:
    with (
        Provider() as provider,
        TemporaryDirectory() as folder,
        Memory.open(Path(folder), clock=ManualClock()) as memory,
    ):
        provider.threads["conv_1"] = []
        session = memory.session("s")
        host, replies = Host(provider, session, kind, tools=TOOLS), list[str]()
        for number, step in enumerate(["says", *steps, "says"]):
            rounds = {"notes": [[NOTE]], "pages": [[PAGE]], "notes and pages": [[NOTE], [NOTE, PAGE]]}.get(step, [])
            if step == "compacts":
                session.compact("all", keep_recent=0)
            if step == "goes back" and replies:
                host.reference = replies[number % len(replies)]
            messages: list[Any] = [{"role": "user", "content": f"Go on with {step}, step {number}."}]
            if step == "lists all" and kind == "previous_response_id":
                host.reference, messages = None, [*session.messages, *messages]
            if step.startswith("fails"):
                provider.will(*([reply_with("", NOTE)] if "round" in step else []), ScriptedFailure())
                with pytest.raises(openai.InternalServerError):
                    host.send(messages)
            provider.will(*(reply_with("", *calls) for calls in rounds))
            if not rounds or PAGE not in rounds[-1]:
                provider.will(reply_with(f"Step {number} is done."))
            reply = host.send(messages)
            if calls := [item for item in reply.output if item.type == "function_call"]:
                provider.will(reply_with(f"Step {number} is done."))
                host.send([{"type": "function_call_output", "call_id": one.call_id, "output": "!"} for one in calls])
            replies += [host.reference] if kind == "previous_response_id" else []
            assert provider.unused == 0
            held = provider.threads[last_reply_id(session.state.conversation, host.reference or "")]
            if "compacts" not in steps:  # a list that is sent after a compaction has its stubs
                assert [_text(item) for item in held if "<memory_guide>" not in _text(item)] == texts(session)
            assert session.prompt(session.state.prompt.calls).request["input"] == provider.requests[-1].messages


def test_a_request_without_a_thread_is_unchanged(provider: Provider, memory: Memory) -> None:
    """Its bytes are those of a prompt that has no thread, also in a session that has had one."""
    provider.will(*(reply_with("Yes.") for _ in range(3)))
    session, messages = memory.session("s"), [{"role": "user", "content": GOAL}]
    session.write("overview.md", "- Ada edits a website.\n")
    options: Json = {"instructions": "Be brief.", "temperature": 0.5}
    host = Host(provider, session, "previous_response_id", tools=TOOLS, **options)
    for call in (1, 3):
        host.reference = None
        host.send(messages)
        request = session.prompt(call).request
        expected: Json = {**options, "model": "m", **request}
        assert json.dumps(provider.requests[-1].body, sort_keys=True) == json.dumps(expected, sort_keys=True)
        memory_item, *conversation = request["input"]
        assert memory_item["role"] == "developer"
        assert memory_item["content"][0]["text"].startswith("<memory_guide>")
        assert (request["instructions"], len(conversation)) == ("Be brief.", len(messages))
        assert not {"previous_response_id", "conversation"} & set(provider.requests[-1].body)
        if call == 1:
            host.send("Go on.")
            messages = [*session.messages, {"role": "user", "content": "Is it?"}]
