"""Wrapped clients: real client libraries against a provider that checks requests."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletion
from provider import Provider, ReceivedRequest, ScriptedFailure, ScriptedReply, a_tool_call, reply_with
from pydantic import BaseModel

from inmind import Memory, Session, default_layers
from inmind.core.events.session import UsageReported
from inmind.core.json import is_list
from inmind.core.messages import FORMATS, read_partial_reply, read_reply
from inmind.core.messages.model import Call, Message, Reply, ReplyUsage, Result, Text
from inmind.errors import InvalidInput
from inmind.integrations.wrap import wrap
from inmind.integrations.wrap.call_loop import MAX_ROUNDS
from inmind.layers import TextLayer

Json = dict[str, Any]

CHAT, RESPONSES, ANTHROPIC = "openai", "responses", "anthropic"
WAYS = ("create", "stream", "helper", "async create", "async stream", "async helper")

formats = pytest.mark.parametrize("format", [CHAT, RESPONSES, ANTHROPIC])
every_way = pytest.mark.parametrize("way", WAYS)
"""In `make test` one test of each format uses every way to call; the others use one streaming and one not."""
ways = pytest.mark.parametrize(
    "way", ["create", "stream", *(pytest.param(way, marks=pytest.mark.exhaustive) for way in WAYS[2:])]
)
some_ways = pytest.mark.parametrize(
    "way", ["create", *(pytest.param(way, marks=pytest.mark.exhaustive) for way in ("helper", "async stream"))]
)

NOTE = a_tool_call("working_memory_update", {"text": "Ada wants the page About Us."})
PAGE = a_tool_call("get_page", {"id": "page-1"})

SCHEMA: Json = {"type": "object", "properties": {"id": {"type": "string"}}}
TOOLS: dict[str, list[Json]] = {
    CHAT: [{"type": "function", "function": {"name": "get_page", "parameters": SCHEMA}}],
    RESPONSES: [{"type": "function", "name": "get_page", "parameters": SCHEMA, "strict": False}],
    ANTHROPIC: [{"name": "get_page", "input_schema": SCHEMA}],
}


def person(text: str) -> Any:
    """A message that every client accepts, of no client's type."""
    return {"role": "user", "content": text}


@pytest.fixture
def session(session: Session) -> Session:
    """Has something in memory, so every request has a memory message."""
    session.write("overview.md", "- Ada edits a website.\n")
    return session


@pytest.fixture
def provider() -> Generator[Provider]:
    with Provider() as provider:
        yield provider
        assert provider.failures == []


@contextmanager
def an_openai(provider: Provider) -> Generator[openai.OpenAI]:
    with openai.OpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client:
        yield client


@contextmanager
def an_anthropic(provider: Provider) -> Generator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=provider.anthropic, api_key="none", max_retries=0) as client:
        yield client


@dataclass(frozen=True, slots=True)
class ReceivedReply:
    """A reply as the host got it."""

    text: str
    calls: list[Call]
    kept: list[Any]
    """Messages for the host's own list, in the form of the reply."""
    parts: list[str]
    """Types of its items or blocks, in the provider's names."""
    usage: ReplyUsage | None
    whole: bool

    @classmethod
    def of(cls, reply: Any, format: str, kept: Sequence[Any] | None = None) -> ReceivedReply:
        """The reply so far, also of a stream that stopped."""
        parsed = read_partial_reply(reply, format=format) if is_list(reply) else read_reply(reply, format=format)
        read = parsed or Reply(format=format, wires=(), is_complete=False)
        messages = [FORMATS[format].read(wire) for wire in read.wires]
        return cls(
            text="".join(message.text for message in messages),
            calls=[call for message in messages for call in message.calls],
            kept=list(read.wires if kept is None else kept),
            parts=[
                block["type"] for wire in read.wires for block in (wire["content"] if format == ANTHROPIC else [wire])
            ]
            if format != CHAT
            else [],
            usage=read.usage,
            whole=read.is_complete,
        )


class Host:
    """A program with its own list of messages that calls its client in one of the ways."""

    def __init__(self, provider: Provider, session: Session, format: str, way: str = "create", **options: Any) -> None:
        self.list: list[Any] = []
        self.options: Json = {"tools": TOOLS[format], "model": "model-1", **options}
        if format == ANTHROPIC:
            self.options["max_tokens"] = 100
        self._provider, self._session, self._format, self._way = provider, session, format, way

    def says(self, text: str) -> ReceivedReply:
        self.list.append(person(text))
        return self.asks()

    def answers(self, text: str) -> ReceivedReply:
        """Give this result to each call."""
        result = Message("tool", tuple(Result(call.id, (Text(text),)) for call in self._reply.calls))
        self.list += FORMATS[self._format].write([result])
        return self.asks()

    def asks(self) -> ReceivedReply:
        self._reply = asyncio.run(self._call_async()) if self._way.startswith("async") else self._call()
        self.list += self._reply.kept
        return self._reply

    def _call(self) -> ReceivedReply:
        kind = anthropic.Anthropic if self._format == ANTHROPIC else openai.OpenAI
        with kind(base_url=self._url, api_key="none", max_retries=0) as client:
            endpoint = self._resource(wrap(client, self._session))
            if self._way == "create":
                return self._whole(endpoint.create(**self._arguments))
            if self._way == "stream":
                with endpoint.create(**self._arguments, stream=True) as stream:
                    return ReceivedReply.of(list(stream), self._format)
            with endpoint.stream(**self._arguments) as stream:
                return self._whole(self._final(stream)())

    async def _call_async(self) -> ReceivedReply:
        kind = anthropic.AsyncAnthropic if self._format == ANTHROPIC else openai.AsyncOpenAI
        async with kind(base_url=self._url, api_key="none", max_retries=0) as client:
            endpoint = self._resource(wrap(client, self._session))
            if self._way == "async create":
                return self._whole(await endpoint.create(**self._arguments))
            if self._way == "async stream":
                async with await endpoint.create(**self._arguments, stream=True) as stream:
                    return ReceivedReply.of([chunk async for chunk in stream], self._format)
            async with endpoint.stream(**self._arguments) as stream:
                return self._whole(await self._final(stream)())

    @property
    def _url(self) -> str:
        return self._provider.anthropic if self._format == ANTHROPIC else self._provider.openai

    @property
    def _arguments(self) -> Json:
        return {**self.options, "input" if self._format == RESPONSES else "messages": self.list}

    def _resource(self, client: Any) -> Any:
        if self._format == CHAT:
            return client.chat.completions
        return client.responses if self._format == RESPONSES else client.messages

    def _final(self, stream: Any) -> Any:
        names = {CHAT: "get_final_completion", RESPONSES: "get_final_response", ANTHROPIC: "get_final_message"}
        return getattr(stream, names[self._format])

    def _whole(self, reply: Any) -> ReceivedReply:
        kept = {
            CHAT: lambda: [reply.choices[0].message],
            RESPONSES: lambda: reply.output,
            ANTHROPIC: lambda: [{"role": "assistant", "content": reply.content}],
        }[self._format]()
        return ReceivedReply.of(reply, self._format, kept)


def grows(requests: Iterable[ReceivedRequest]) -> bool:
    """True if each request starts with the one before, except for its last message."""
    return all(
        after.body.get("system") == before.body.get("system")
        and after.body.get("tools") == before.body.get("tools")
        and after.messages[: len(before.messages) - 1] == before.messages[:-1]
        for before, after in pairwise(_without_marks(one) for one in requests)
    )


def _without_marks(request: ReceivedRequest) -> ReceivedRequest:
    """The request without cache marks, which move with the conversation."""

    def unmarked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}  # pyright: ignore[reportUnknownVariableType]
        return [unmarked(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]

    return ReceivedRequest(request.path, unmarked(request.body), request.headers)


def bare(text: str) -> str:
    """Texts without the separators of rounds, which depend on the format."""
    return "".join(text.split())


def body_text(request: ReceivedRequest) -> str:
    return json.dumps(request.body)


# -- a conversation ----------------------------------------------------------------------------------------


@pytest.mark.spec("C5", "D4", "D7", "D9", "I1")
@formats
@every_way
def test_memory_is_added_and_the_host_sees_only_its_own_calls(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(
        reply_with("", NOTE, thinking="Worth keeping."),
        reply_with("I will look at the page.", a_tool_call("memory_list"), PAGE, thinking="And the page."),
        reply_with("It is called About Us."),
        reply_with("", a_tool_call("memory_read", {"path": "scratchpad"})),
        reply_with("You wanted the page About Us."),
    )
    reply = host.says("Note that I want the page About Us, and look at it.")
    assert reply.text == "I will look at the page."
    assert [(call.name, call.arguments) for call in reply.calls] == [("get_page", '{"id": "page-1"}')]
    assert session.scratchpad.snapshot == "Ada wants the page About Us."
    assert host.answers('{"page": {"id": "page-1", "title": "About Us"}}').text == "It is called About Us."
    assert host.says("What did I want?").text == "You wanted the page About Us."
    assert provider.unused == 0
    assert grows(provider.requests)
    assert "working_memory" in provider.requests[0].tools
    assert "Ada wants the page About Us." in body_text(provider.requests[-1])
    if format != CHAT or "create" in way:  # its streams report usage if the host requests it
        assert session.usage.reported_calls == 5


@pytest.mark.spec("D9")
@formats
@ways
def test_the_reply_has_the_text_and_usage_of_all_rounds(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    counted: Json = {"stream_options": {"include_usage": True}} if format == CHAT and "create" not in way else {}
    host = Host(provider, session, format, way, **counted)
    provider.will(
        reply_with("The answer is 42.", NOTE),
        reply_with("", a_tool_call("memory_list")),
        reply_with("I have noted it."),
    )
    reply = host.says("What is the answer?")
    assert bare(reply.text) == bare("The answer is 42. I have noted it.")
    assert reply.usage == ReplyUsage(prompt_tokens=300, cached_tokens=240, completion_tokens=30)
    provider.will(reply_with("You are welcome."))
    host.says("Thanks.")
    assert grows(provider.requests)


@pytest.mark.spec("D9")
@pytest.mark.parametrize("way", ["create", "stream", "helper"])
def test_results_of_provider_tools_of_all_rounds_are_visible(provider: Provider, session: Session, way: str) -> None:
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "AA=="}
    provider.will(reply_with("", NOTE, also=(image,), thinking="A picture."), reply_with("Here it is."))
    image_reply = Host(provider, session, RESPONSES, way).says("Draw it.")
    assert image_reply.parts == ["reasoning", "image_generation_call", "message"]
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    result: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    provider.will(reply_with("", NOTE, also=(searched, result), thinking="Look it up."), reply_with("Here it is."))
    search_reply = Host(provider, session, ANTHROPIC, way).says("Look it up.")
    assert search_reply.parts == ["thinking", "server_tool_use", "web_search_tool_result", "text"]


@pytest.mark.spec("D5", "D7")
def test_only_results_are_sent_while_a_provider_tool_waits(provider: Provider, session: Session) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    result: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    provider.will(
        reply_with("I search.", NOTE, also=(search,)), reply_with("Found.", also=(result,)), reply_with("Gladly.")
    )
    host = Host(provider, session, ANTHROPIC)
    host.says("Look it up, and note it.")
    host.says("Thanks.")
    assert [["context_meta" in str(wire) for wire in request.messages] for request in provider.requests] == [
        [True],
        [True, False, False],
        [False, False, False, False, True],
    ]
    assert "Ada wants the page" in str(provider.requests[1].messages[0])
    systems = [_without_marks(request).body["system"] for request in provider.requests]
    assert systems == [systems[0]] * 3


@pytest.mark.spec("D4")
@formats
@some_ways
def test_a_host_that_keeps_only_texts_sends_the_same_requests(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    for turn in range(3):
        provider.will(reply_with(f"Noting {turn}.", NOTE, thinking="Worth keeping."), reply_with(f"Noted {turn}."))
        reply = host.says(f"Note this: {turn}.")
        host.list[-len(reply.kept) :] = [{"role": "assistant", "content": reply.text}]
    assert [wire["role"] for wire in host.list] == ["user", "assistant"] * 3
    assert grows(provider.requests)
    assert body_text(provider.requests[-1]).count("Noting") == 3


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize("prefix", [[], [person("In short."), {"role": "assistant", "content": "I see."}]])
def test_equal_replies_are_not_confused_in_a_trimmed_list(
    provider: Provider, session: Session, prefix: list[Any]
) -> None:
    host = Host(provider, session, RESPONSES)
    for turn in range(3):
        provider.will(reply_with("Done.", thinking=f"Step {turn}."))
        host.says(f"Do {turn}.")
    host.list = [*prefix, *host.list[3:]]
    provider.will(reply_with("Done."))
    host.says("All done?")
    sent = [item["id"] for item in provider.requests[-1].messages if "id" in item]
    assert sent == ["rs_2", "msg_2", "rs_3", "msg_3"]


@pytest.mark.spec("D4")
@formats
def test_dropping_the_oldest_messages_keeps_the_rounds_of_the_others(
    provider: Provider, session: Session, format: str
) -> None:
    host = Host(provider, session, format)
    for turn in range(4):
        provider.will(reply_with("", a_tool_call("memory_list", id=f"call_{turn}")), reply_with(f"Answer {turn}."))
        host.says(f"Question {turn}.")
        host.list = host.list[-4:]
    provider.will(reply_with("Done."))
    host.says("Done?")
    sent = body_text(provider.requests[-1])
    assert [f"call_{turn}" in sent for turn in range(4)] == [False, False, True, True]


def summarize(messages: list[Any]) -> list[Any]:
    return [person("In short: four questions."), {"role": "assistant", "content": "I see."}, *messages[-2:]]


def slide(messages: list[Any]) -> list[Any]:
    return [*messages[:2], *messages[-4:]] if len(messages) > 6 else messages


@pytest.mark.spec("D4")
@formats
@pytest.mark.parametrize(
    ("trim", "expected"),
    [(summarize, [False, False, False, True]), (slide, [True, False, True, True])],
    ids=["a summary in front", "the first and the last"],
)
def test_a_trimmed_list_has_the_rounds_of_its_messages(
    provider: Provider, session: Session, format: str, trim: Any, expected: list[bool]
) -> None:
    host = Host(provider, session, format)
    for turn in range(4):
        provider.will(reply_with("", a_tool_call("memory_list", id=f"call_{turn}")), reply_with(f"Answer {turn}."))
        host.says(f"Question {turn}.")
        host.list = slide(host.list) if trim is slide else host.list
    host.list = trim(host.list)
    provider.will(reply_with("Done."))
    host.says("Done?")
    sent = body_text(provider.requests[-1])
    assert [f"call_{turn}" in sent for turn in range(4)] == expected


@pytest.mark.spec("D9")
@pytest.mark.parametrize(
    ("before", "after"), [(CHAT, ANTHROPIC), (CHAT, RESPONSES), (ANTHROPIC, CHAT), (RESPONSES, ANTHROPIC)]
)
def test_a_conversation_continues_with_another_provider_and_loses_no_round(
    provider: Provider, session: Session, before: str, after: str
) -> None:
    provider.will(reply_with("", a_tool_call("memory_list", id="call_before")), reply_with("Noted."))
    Host(provider, session, before).says("Note this.")
    host = Host(provider, session, after)
    host.list = [person("Note this."), {"role": "assistant", "content": "Noted."}]
    for turn in range(3):
        provider.will(reply_with("", a_tool_call("memory_list", id=f"call_{turn}")), reply_with(f"Answer {turn}."))
        host.says(f"Question {turn}.")
    assert grows(provider.requests[2:])
    assert all(f"call_{turn}" in body_text(provider.requests[-1]) for turn in ("before", 0, 1, 2))
    assert not any(event.kind == "splice" for event in session.events())


@pytest.mark.spec("D9")
def test_another_provider_continues_after_a_failure(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), ScriptedFailure(529))
    with pytest.raises(FAILURES):
        Host(provider, session, CHAT).says("Note this.")
    provider.will(reply_with("Noted."))
    assert Host(provider, session, ANTHROPIC).says("Note this.").text == "Noted."
    assert "call_1_0" in body_text(provider.requests[-1])


@pytest.mark.spec("J3")
@formats
def test_cleared_content_is_not_sent_after_the_tools_change(provider: Provider, session: Session, format: str) -> None:
    host = Host(provider, session, format)
    provider.will(reply_with("", PAGE), reply_with("It is long."), reply_with("It was."))
    host.says("Look at the page.")
    host.answers("a page of words")
    cleared = Message("tool", (Result(FORMATS[format].read(host.list[2]).results[0].id, (Text("(cleared)"),)),))
    host.list[2:3] = FORMATS[format].write([cleared])
    host.options["tools"] = [json.loads(json.dumps(tool).replace("get_page", "deploy")) for tool in TOOLS[format]]
    host.says("Was it?")
    sent = json.dumps(provider.requests[-1].messages)
    assert ("(cleared)" in sent, "a page of words" in sent) == (True, False)


def test_one_client_continues_a_conversation_over_many_calls(provider: Provider, session: Session) -> None:
    messages: list[Any] = []
    with an_openai(provider) as client:
        wrapped = wrap(client, session)
        for turn in range(6):
            messages.append(person(f"Question {turn}."))
            provider.will(reply_with("One moment.", a_tool_call("memory_list", id=f"call_{turn}")))
            if turn % 2:
                provider.will(ScriptedFailure(500))
                with pytest.raises(openai.InternalServerError):
                    wrapped.chat.completions.create(model="m", messages=messages)
            provider.will(reply_with(f"Answer {turn}."))
            messages.append(wrapped.chat.completions.create(model="m", messages=messages).choices[0].message)
    assert grows(provider.requests)
    assert [f"call_{turn}" in body_text(provider.requests[-1]) for turn in range(6)] == [True] * 6
    assert provider.unused == 0


def test_calls_of_provider_tools_end_the_round(provider: Provider, session: Session) -> None:
    click: Json = {
        "id": "cu_1",
        "type": "computer_call",
        "call_id": "click",
        "status": "completed",
        "pending_safety_checks": [],
    }
    output = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}
    screenshot = {"type": "computer_call_output", "call_id": "click", "output": output}
    provider.will(reply_with("", NOTE, also=({**click, "action": {"type": "wait"}},)), reply_with("Clicked."))
    host = Host(provider, session, RESPONSES)
    host.says("Click, and note it.")
    assert [item.type for item in host.list[1:]] == ["computer_call"]
    host.list.append(screenshot)
    assert host.asks().text == "Clicked."
    kinds = [item.get("type", item.get("role")) for item in provider.requests[-1].messages]
    assert kinds == [
        "developer",
        "user",
        "computer_call",
        "function_call",
        "function_call_output",
        "computer_call_output",
    ]


@pytest.mark.parametrize(
    ("item", "continues"),
    [
        ({"type": "mcp_approval_request", "server_label": "x", "name": "drop", "arguments": "{}"}, False),
        ({"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"type": "exec"}}, False),
        ({"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {}}, False),
        ({"type": "tool_search_call", "call_id": "c", "execution": "server", "arguments": {}}, True),
        ({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}, True),
    ],
    ids=["an approval", "a local shell", "a search by the host", "a search by the provider", "a search in the web"],
)
@pytest.mark.parametrize("way", ["create", "stream"])
def test_requests_for_the_host_reach_it_before_another_round(
    provider: Provider, session: Session, way: str, item: Json, continues: bool
) -> None:
    provider.will(reply_with("", NOTE, also=({"id": "item_1", **item},)), reply_with("Went on."))
    reply = Host(provider, session, RESPONSES, way).says("Do it, and note it.")
    assert reply.parts == [item["type"], *(["message"] if continues else [])]
    assert len(provider.requests) == 1 + continues


@pytest.mark.spec("E12")
@pytest.mark.parametrize("format", [RESPONSES, ANTHROPIC])
@pytest.mark.parametrize("keeps_all", [True, False], ids=["the host keeps all", "the host drops what is before"])
@pytest.mark.parametrize("way", ["create", "stream"])
def test_the_providers_own_compaction_passes_through(
    provider: Provider, session: Session, format: str, way: str, keeps_all: bool
) -> None:
    edits: Any = {"edits": [{"type": "compact_20260112"}, {"type": "clear_tool_uses_20250919"}]}
    option = edits if format == ANTHROPIC else [{"type": "compaction", "compact_threshold": 9_000}]
    content = {"encrypted_content": "gAAA"} | ({"content": "So far."} if format == ANTHROPIC else {"id": "cmp_1"})
    item: Json = {"type": "compaction", **content}
    host = Host(provider, session, format, way, extra_body={"context_management": option})
    provider.will(reply_with("Hello."), reply_with("", NOTE, also=(item,)), reply_with("Went on."), reply_with("Yes."))
    host.says("Never deploy on a Friday.")
    assert host.says("Go on, and note it.").parts[0] == "compaction"
    if not keeps_all:
        host.list = host.list[3:]
    host.says("Done?")
    assert [request.body["context_management"] for request in provider.requests] == [option] * 4
    sent = provider.requests[-1]
    assert (sent.messages[0] if format == RESPONSES else sent.messages[0]["content"][0]) == item
    assert "Hello." not in json.dumps(sent.messages)
    assert "Never deploy on a Friday." in json.dumps(sent.body)
    assert "Never deploy on a Friday." in json.dumps(session.messages)


def test_an_approval_is_sent_after_its_request(provider: Provider, session: Session) -> None:
    approval = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "x", "name": "drop", "arguments": "{}"}
    host = Host(provider, session, RESPONSES)
    provider.will(reply_with("", NOTE, also=(approval,)), reply_with("Dropped."))
    host.says("Drop it.")
    host.list.append({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True})
    assert host.asks().text == "Dropped."
    kinds = [item.get("type") for item in provider.requests[-1].messages[2:]]
    assert kinds == ["mcp_approval_request", "function_call", "function_call_output", "mcp_approval_response"]


@pytest.mark.spec("C6", "C8")
def test_a_structured_scratchpad_and_a_child_merge_work_through_a_client(provider: Provider, memory: Memory) -> None:
    from inmind import default_layers
    from inmind.layers import ScratchpadLayer

    class Task(BaseModel):
        currentGoal: str  # noqa: N815 -- as the source design spells it
        completedSteps: list[str]  # noqa: N815
        blockers: list[str]

    session = memory.session("deploy", layers=default_layers(ScratchpadLayer(schema=Task)))
    host = Host(provider, session, CHAT)
    provider.will(
        reply_with(
            "", a_tool_call("working_memory_update", {"currentGoal": "Deploy v2", "completedSteps": ["write tests"]})
        ),
        reply_with("", a_tool_call("working_memory_update", {"completedSteps": "all of them"})),
        reply_with("", a_tool_call("working_memory_update", {"blockers": ["no key"]})),
        reply_with("There is a blocker."),
    )
    assert host.says("How far are we?").text == "There is a blocker."
    state = {"currentGoal": "Deploy v2", "completedSteps": ["write tests"], "blockers": ["no key"]}
    assert session.scratchpad.snapshot == state
    error_text = body_text(provider.requests[2])
    assert "completedSteps" in error_text
    assert "Nothing was changed." in error_text

    child = session.spawn("deploy-key", policy="fork")
    provider.will(
        reply_with("", a_tool_call("working_memory_update", {"completedSteps": ["write tests", "get a key"]})),
        reply_with("Got it."),
    )
    assert Host(provider, child, CHAT).says("Get a key.").text == "Got it."
    assert session.scratchpad.snapshot == state
    report = session.merge_back(child)
    assert report.conflicts == ()
    assert session.scratchpad.snapshot == {**state, "completedSteps": ["write tests", "get a key"]}


# -- mistakes of the model ---------------------------------------------------------------------------------


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("format", "way"),
    [(CHAT, "create"), (CHAT, "stream"), (RESPONSES, "create"), (RESPONSES, "helper"), (ANTHROPIC, "stream")],
)
def test_invalid_arguments_of_a_memory_call_are_reported_to_the_model_only(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    provider.will(
        reply_with("", a_tool_call("working_memory_update", '{"text": "half')),
        reply_with("", NOTE),
        reply_with("Noted."),
    )
    reply = Host(provider, session, format, way).says("Note this.")
    assert (reply.text, reply.calls) == ("Noted.", [])
    assert "Nothing was changed" in body_text(provider.requests[1])
    assert session.scratchpad.snapshot == "Ada wants the page About Us."


@formats
@some_ways
def test_an_unknown_tool_is_answered_without_the_host(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    provider.will(reply_with("", a_tool_call("get_pages")), reply_with("", PAGE))
    reply = Host(provider, session, format, way).says("Look at the page.")
    assert [call.name for call in reply.calls] == ["get_page"]
    assert "There is no tool named get_pages" in body_text(provider.requests[1])


class OfferingLayer(TextLayer):
    """A custom layer that offers a host tool."""

    def tools(self, format: str) -> list[Json]:
        return [with_name(tool, "look_up") for tool in TOOLS[format]]


def with_name(tool: Json, name: str) -> Json:
    return {**tool, "name": name} if "name" in tool else {**tool, "function": {**tool["function"], "name": name}}


@formats
@some_ways
@pytest.mark.spec("D1")
def test_a_tool_offered_by_a_host_layer_is_run_by_the_host(
    provider: Provider, memory: Memory, format: str, way: str
) -> None:
    session = memory.session("one", layers=default_layers(OfferingLayer("rules", "Look things up.")))
    provider.will(reply_with("", a_tool_call("look_up")))
    reply = Host(provider, session, format, way).says("Look at the page.")
    assert [call.name for call in reply.calls] == ["look_up"]


@pytest.mark.parametrize("tools", [openai.omit, [*TOOLS[RESPONSES], {"type": "web_search"}]], ids=["none", "not all"])
@pytest.mark.parametrize("way", ["create", "stream"])
def test_an_unknown_call_goes_to_a_host_without_a_complete_tool_list(
    provider: Provider, session: Session, way: str, tools: Any
) -> None:
    provider.will(reply_with("", a_tool_call("get_pages")))
    reply = Host(provider, session, RESPONSES, way, tools=tools).says("Look at the pages.")
    assert [call.name for call in reply.calls] == ["get_pages"]


@pytest.mark.parametrize("way", ["create", "stream"])
def test_tools_in_a_namespace_or_added_by_a_message_belong_to_the_host(
    provider: Provider, session: Session, way: str
) -> None:
    inside = {"type": "namespace", "name": "cms", "description": "Pages.", "tools": TOOLS[RESPONSES]}
    provider.will(reply_with("", PAGE))
    reply = Host(provider, session, RESPONSES, way, tools=[inside]).says("Look at the page.")
    assert [call.name for call in reply.calls] == ["get_page"]
    host = Host(provider, session, RESPONSES, way)
    more = {"type": "function", "name": "get_pages", "parameters": SCHEMA}
    host.list = [person("Look at the pages."), {"type": "additional_tools", "role": "developer", "tools": [more]}]
    provider.will(reply_with("", a_tool_call("get_pages")))
    assert [call.name for call in host.asks().calls] == ["get_pages"]


@formats
@pytest.mark.parametrize("way", ["create", "async stream"])
def test_a_model_that_only_calls_memory_is_stopped_with_a_warning(
    provider: Provider, session: Session, caplog: pytest.LogCaptureFixture, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(*(reply_with("Reading.", a_tool_call("memory_list")) for _ in range(MAX_ROUNDS)), reply_with("Yes."))
    reply = host.says("Are you done?")
    assert reply.calls == []
    assert (len(provider.requests), provider.unused) == (MAX_ROUNDS, 1)
    assert "stopped after 16 rounds" in caplog.text
    assert host.says("And now?").text == "Yes."
    assert grows(provider.requests)


def choice_of(format: str, name: str) -> Json:
    """A tool choice for one tool."""
    chat = {"type": "function", "function": {"name": name}}
    return {CHAT: chat, RESPONSES: {"type": "function", "name": name}, ANTHROPIC: {"type": "tool", "name": name}}[
        format
    ]


@formats
@pytest.mark.parametrize("way", ["create", "stream"])
def test_a_forced_memory_tool_is_called_once(provider: Provider, session: Session, format: str, way: str) -> None:
    choice = choice_of(format, "working_memory")
    provider.will(reply_with("", NOTE), reply_with("Noted."), reply_with("", NOTE), reply_with("Noted."))
    host = Host(provider, session, format, way, tool_choice=choice)
    assert host.says("Note this.").text == "Noted."
    host.says("And this.")
    free: Any = {"type": "auto"} if format == ANTHROPIC else "auto"
    assert [request.body["tool_choice"] for request in provider.requests] == [choice, free, choice, free]


ANY: dict[str, Any] = {CHAT: "required", RESPONSES: "required", ANTHROPIC: {"type": "any"}}


@formats
def test_a_tool_choice_that_host_tools_can_satisfy_stays(provider: Provider, session: Session, format: str) -> None:
    provider.will(reply_with("", NOTE), reply_with("", PAGE))
    reply = Host(provider, session, format, tool_choice=ANY[format]).says("Look, and note it.")
    assert [call.name for call in reply.calls] == ["get_page"]
    assert [request.body["tool_choice"] for request in provider.requests] == [ANY[format]] * 2


@formats
def test_without_host_tools_a_forced_choice_is_a_memory_tool(provider: Provider, session: Session, format: str) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    host = Host(provider, session, format, tool_choice=ANY[format])
    del host.options["tools"]
    assert host.says("Note this.").text == "Noted."
    assert provider.requests[1].body["tool_choice"] == ({"type": "auto"} if format == ANTHROPIC else "auto")


@pytest.mark.parametrize("mode", ["required", "auto"])
def test_allowed_tools_stay_restricted_in_later_rounds(provider: Provider, session: Session, mode: str) -> None:
    allowed: Json = {"mode": mode, "tools": [{"type": "function", "name": "working_memory"}]}
    chat: Json = {**allowed, "tools": [choice_of(CHAT, "working_memory")]}
    provider.will(*[reply_with("", NOTE), reply_with("Noted.")] * 2)
    Host(provider, session, RESPONSES, tool_choice={"type": "allowed_tools", **allowed}).says("Note this.")
    Host(provider, session, CHAT, tool_choice={"type": "allowed_tools", "allowed_tools": chat}).says("Note this.")
    free = {"mode": "auto"}
    assert provider.requests[1].body["tool_choice"] == {"type": "allowed_tools", **allowed, **free}
    assert provider.requests[3].body["tool_choice"] == {"type": "allowed_tools", "allowed_tools": {**chat, **free}}


@formats
@pytest.mark.parametrize("way", ["create", "stream"])
def test_dropping_half_a_call_keeps_the_rounds_before_it(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    cut = {CHAT: "length", RESPONSES: "incomplete", ANTHROPIC: "max_tokens"}[format]
    host = Host(provider, session, format, way)
    provider.will(reply_with("", NOTE), reply_with("I look.", PAGE, reason=cut), reply_with("Sorry."))
    reply = host.says("Note this, and look.")
    host.list[-len(reply.kept) :] = [{"role": "assistant", "content": reply.text}]
    host.says("Go on.")
    assert "Ada wants the page" in str(provider.requests[-1].messages[-4:-2])
    assert (
        "get_page" in str(provider.requests[-1].messages),
        str(provider.requests[-1].messages).count("I look."),
    ) == (
        False,
        1,
    )


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("format", "reason"),
    [
        (CHAT, "length"),
        (CHAT, "content_filter"),
        (ANTHROPIC, "max_tokens"),
        (ANTHROPIC, "refusal"),
        (RESPONSES, "incomplete"),
    ],
)
@pytest.mark.parametrize("way", ["create", "stream"])
def test_a_cut_off_reply_is_shown_and_none_of_its_tools_run(
    provider: Provider, session: Session, format: str, reason: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(
        reply_with("First.", a_tool_call("memory_list")),
        reply_with("Half a sent", NOTE, reason=reason),
        reply_with("Sorry."),
    )
    reply = host.says("Note this.")
    assert (bare(reply.text), reply.calls, reply.whole) == (bare("First. Half a sent"), [], False)
    assert (session.scratchpad.snapshot, len(provider.requests)) == ("", 2)
    assert host.says("Go on.").text == "Sorry."
    assert grows(provider.requests)


# -- failed calls ------------------------------------------------------------------------------------------

FAILURES = (openai.APIError, anthropic.APIError, anthropic.APIConnectionError)


def conversation_wires(session: Session) -> list[Any]:
    return [entry.wire for entry in session.state.conversation]


@pytest.mark.spec("J3")
@formats
@some_ways
def test_a_failed_call_changes_nothing_and_can_be_retried(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(ScriptedFailure(500), reply_with("Hello."))
    with pytest.raises(FAILURES, match="The server had an error"):
        host.says("Hi.")
    assert conversation_wires(session) == [person("Hi.")]
    assert host.asks().text == "Hello."
    assert grows(provider.requests)


@pytest.mark.spec("A6")
@formats
@some_ways
def test_a_call_that_fails_in_a_later_round_continues_from_there(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(reply_with("", NOTE), ScriptedFailure(529), reply_with("Noted."))
    with pytest.raises(FAILURES):
        host.says("Note this.")
    assert host.asks().text == "Noted."
    assert host.list[0] == person("Note this.")
    assert grows(provider.requests)
    assert body_text(provider.requests[-1]).count("Ada wants the page About Us.") == body_text(
        provider.requests[1]
    ).count("Ada wants the page About Us.")


@pytest.mark.spec("J3")
@formats
@some_ways
def test_a_broken_connection_raises_and_nothing_is_recorded(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    host = Host(provider, session, format, way)
    provider.will(reply_with("A long reply. " * 20, NOTE, torn=True), reply_with("Hello."))
    with pytest.raises(Exception, match=r"Connection error|peer closed|incomplete|RemoteProtocol"):
        host.says("Hi.")
    assert conversation_wires(session) == [person("Hi.")]
    assert session.scratchpad.snapshot == ""
    assert host.asks().text == "Hello."


@pytest.mark.spec("J3", "C5")
@formats
@pytest.mark.parametrize("way", ["stream", "async stream"])
def test_a_stream_without_an_end_is_recorded_as_cut_off(
    provider: Provider, session: Session, format: str, way: str
) -> None:
    provider.will(reply_with("A reply.", NOTE, short=True), reply_with("Hello."))
    host = Host(provider, session, format, way)
    assert host.says("Hi.").text == "A reply."
    assert session.scratchpad.snapshot == ""
    reply = Message(
        "assistant", tuple(part for wire in conversation_wires(session) for part in FORMATS[format].read(wire).parts)
    )
    assert (reply.text, [call.name for call in reply.calls]) == ("Hi.\nA reply.", ["working_memory_update"])
    assert "cut off" in str(reply.results[0])
    assert host.says("Go on.").text == "Hello."
    assert grows(provider.requests)


@formats
def test_an_empty_stream_is_not_a_reply(provider: Provider, session: Session, format: str) -> None:
    provider.will(reply_with(short=True))
    assert Host(provider, session, format, "stream").says("Hi.").text == ""
    assert conversation_wires(session) == [person("Hi.")]


def test_a_stream_closed_early_is_not_recorded(provider: Provider, session: Session) -> None:
    provider.will(reply_with("One two three four five six seven."), reply_with("Eight."))
    with an_openai(provider) as client:
        wrapped = wrap(client, session)
        seen = ""
        with wrapped.chat.completions.create(model="m", messages=[person("Count.")], stream=True) as stream:
            for chunk in stream:
                seen += chunk.choices[0].delta.content or ""
                if "two" in seen:
                    break
        assert conversation_wires(session) == [person("Count.")]
        half: Any = {"role": "assistant", "content": seen}
        wrapped.chat.completions.create(model="m", messages=[person("Count."), half, person("Go on.")])
    assert conversation_wires(session)[:3] == [person("Count."), half, person("Go on.")]


def test_streams_closed_early_leave_no_open_connection(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), reply_with("One two three four five."), reply_with("Hello."))

    async def count() -> str:
        async with openai.AsyncOpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client:
            wrapped = wrap(client, session)
            stream = await wrapped.chat.completions.create(model="m", messages=[person("Count.")], stream=True)
            async for chunk in stream:
                if chunk.choices[0].delta.content:
                    break
            async with aclosing(stream):
                pass
            assert stream.response.is_closed
            reply = await wrapped.chat.completions.create(model="m", messages=[person("Count.")])
            return reply.choices[0].message.content or ""

    assert asyncio.run(count()) == "Hello."


@formats
def test_a_stream_closed_in_a_later_round_continues_from_the_hosts_list(
    provider: Provider, session: Session, format: str
) -> None:
    provider.will(reply_with("Noting.", NOTE), reply_with("One two three four five."), reply_with("Six."))
    seen = ""
    for text in _texts(provider, session, format):
        seen += text
        if "two" in seen:
            break
    host = Host(provider, session, format)
    host.options.pop("tools")
    host.list = [person("Note this."), {"role": "assistant", "content": seen}]
    assert host.says("Go on.").text == "Six."
    assert grows(provider.requests)
    assert "working_memory_update" in json.dumps(provider.requests[-1].messages)
    assert body_text(provider.requests[-1]).count("One two") == 1


def test_a_stream_that_is_dropped_is_closed(provider: Provider, session: Session) -> None:
    provider.will(*[reply_with("One two three four five. " * 50)] * 2)
    gc.disable()
    try:
        with an_openai(provider) as client, an_anthropic(provider) as other:
            stream: Any = wrap(client, session).chat.completions.create(
                model="m", messages=[person("Count.")], stream=True
            )
            next(stream)
            response = stream.response
            del stream
            assert response.is_closed
            talk: Any = {"model": "m", "max_tokens": 9, "messages": [person("Count.")]}
            stream = wrap(other, session).messages.create(**talk, stream=True)
            next(stream)
            response = stream.response
            del stream
            assert response.is_closed
    finally:
        gc.enable()


def test_a_failed_response_is_returned_unchanged(provider: Provider, session: Session) -> None:
    provider.will(reply_with(reason="failed"), reply_with(reason="failed"))
    with an_openai(provider) as client:
        wrapped = wrap(client, session)
        reply = wrapped.responses.create(model="m", input="Hi.")
        assert (reply.status, reply.error and reply.error.code) == ("failed", "server_error")
        *_, last = wrapped.responses.create(model="m", input="Hi.", stream=True)
        assert last.type == "response.failed"
    assert conversation_wires(session) == [person("Hi.")]


# -- streams -----------------------------------------------------------------------------------------------


@formats
def test_text_is_streamed_while_the_model_writes(provider: Provider, session: Session, format: str) -> None:
    gate = threading.Event()
    provider.will(reply_with("I will note that.", NOTE, gate=gate), reply_with("Noted."))
    seen = ""
    for text in _texts(provider, session, format):
        seen += text
        if seen == "I will note that.":
            gate.set()
    assert bare(seen) == bare("I will note that. Noted.")


def _texts(provider: Provider, session: Session, format: str) -> Iterator[str]:
    if format == ANTHROPIC:
        with an_anthropic(provider) as client:
            talk: Any = {"model": "m", "max_tokens": 9, "messages": [person("Note this.")]}
            with wrap(client, session).messages.stream(**talk) as stream:
                yield from stream.text_stream
        return
    with an_openai(provider) as client:
        wrapped = wrap(client, session)
        if format == CHAT:
            for chunk in wrapped.chat.completions.create(model="m", messages=[person("Note this.")], stream=True):
                yield chunk.choices[0].delta.content or ""
        else:
            for event in wrapped.responses.create(model="m", input="Note this.", stream=True):
                yield event.delta if event.type == "response.output_text.delta" else ""


@pytest.mark.parametrize("tools", [openai.omit, [{"type": "web_search"}]], ids=["no tools", "not all named"])
def test_formatted_output_is_streamed_if_no_round_can_follow(provider: Provider, memory: Memory, tools: Any) -> None:
    session = memory.session("plain", resource="ada", memory_tools=False)
    gate = threading.Event()
    provider.will(reply_with('{"id": "page-1"}', gate=gate))
    seen = ""
    with an_openai(provider) as client:
        form: Any = {"format": {"type": "json_object"}}
        for event in wrap(client, session).responses.create(
            model="m", input="Which?", text=form, tools=tools, stream=True
        ):
            seen += event.delta if event.type == "response.output_text.delta" else ""
            if seen == '{"id": "page-1"}':
                gate.set()
    assert gate.is_set()


def test_a_reply_is_recorded_before_the_stream_ends(provider: Provider, session: Session) -> None:
    provider.will(reply_with("Hello."))
    with an_openai(provider) as client:
        stream = wrap(client, session).chat.completions.create(model="m", messages=[person("Hi.")], stream=True)
        for chunk in stream:
            if chunk.choices[0].finish_reason:
                break
        assert conversation_wires(session)[-1] == {"role": "assistant", "content": "Hello."}
        stream.close()


def test_usage_of_a_streamed_chat_is_recorded_if_the_host_requests_it(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    reply = Host(provider, session, CHAT, "stream", stream_options={"include_usage": True}).says("Note this.")
    assert reply.text == "Noted."
    assert session.usage.reported_prompt == 200


def test_a_stream_has_the_attributes_of_the_clients_stream(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    with an_openai(provider) as client:
        stream = wrap(client, session).chat.completions.create(model="m", messages=[person("Note this.")], stream=True)
        first = stream.response
        assert (first.status_code, next(stream).choices[0].delta.role) == (200, "assistant")
        rest = list(stream)
        assert rest[-1].choices[0].finish_reason == "stop"
        assert stream.response is not first
        stream.close()
        assert stream.response.is_closed
        assert stream._options is not None  # pyright: ignore[reportPrivateUsage] -- other libraries look at it


# -- unchanged parts of a client ---------------------------------------------------------------------------


def test_the_client_keeps_its_class_and_other_methods(provider: Provider, session: Session) -> None:
    with an_openai(provider) as client, an_anthropic(provider) as other:
        wrapped, another = wrap(client, session), wrap(other, session)
        assert isinstance(wrapped, openai.OpenAI)
        assert [model.id for model in wrapped.models.list()] == ["model-1"]
        assert wrapped.embeddings.create(model="m", input="a", encoding_format="float").data == []
        assert another.messages.count_tokens(model="m", messages=[{"role": "user", "content": "a"}]).input_tokens == 1
        assert provider.requests == []
        assert session.state.prompt.calls == 0


def test_the_given_client_is_unchanged(provider: Provider, session: Session) -> None:
    provider.will(reply_with("Hello."))
    with an_openai(provider) as client:
        wrap(client, session)
        client.chat.completions.create(model="m", messages=[person("Hi.")])
    assert provider.requests[0].body == {"model": "m", "messages": [person("Hi.")]}


def test_an_async_client_keeps_its_other_methods(provider: Provider, session: Session) -> None:
    async def embed() -> int:
        async with openai.AsyncOpenAI(base_url=provider.openai, api_key="none", max_retries=0) as client:
            result = await wrap(client, session).embeddings.create(model="m", input="a", encoding_format="float")
            return len(result.data)

    assert asyncio.run(embed()) == 0
    assert session.state.prompt.calls == 0


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("AnthropicVertex", {"region": "r", "project_id": "p", "access_token": "t"}),
        ("AnthropicBedrock", {"aws_region": "r", "api_key": "k"}),
        ("AnthropicBedrockMantle", {"aws_region": "r", "api_key": "k"}),
        ("AnthropicFoundry", {"api_key": "k"}),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_clients_for_cloud_providers_can_be_wrapped(
    provider: Provider, session: Session, kind: str, options: Json
) -> None:
    provider.will(*[reply_with("", NOTE), reply_with("Noted.")] * 2)
    talk: Json = {"model": "m", "max_tokens": 9, "messages": [person("Note this.")]}
    with getattr(anthropic, kind)(base_url=provider.anthropic, **options) as client:
        wrapped = wrap(client, session)
        assert isinstance(wrapped, type(client))
        assert wrapped.messages.create(**talk).content[0].text == "Noted."
        assert wrapped.with_options(max_retries=0).beta.messages.create(**talk).content[0].text == "Noted."
    assert [request.tools[0] for request in provider.requests] == ["working_memory"] * 4
    assert session.scratchpad.snapshot == "Ada wants the page About Us."


def test_an_endpoint_is_recognized_on_any_base_path(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    with openai.OpenAI(base_url=provider.anthropic, api_key="none", max_retries=0) as client:
        body = {"model": "m", "messages": [person("Note this.")]}
        reply = wrap(client, session).post("/v1/chat/completions", body=body, cast_to=ChatCompletion)
        assert reply.choices[0].message.content == "Noted."
        message = {"role": "user", "content": "Hi."}
        wrap(client, session).post("/threads/thread_1/messages", body=message, cast_to=object)
    assert len(provider.requests) == 2


@pytest.mark.parametrize("copy", ["copy", "with_options"])
def test_a_client_with_other_options_has_the_same_memory(provider: Provider, session: Session, copy: str) -> None:
    provider.will(reply_with("Hello."), reply_with("Again."))
    with an_openai(provider) as client:
        other = getattr(wrap(client, session), copy)(default_headers={"X-Mine": "1"})
        other.chat.completions.create(model="m", messages=[person("Hi.")])
        other.with_options(timeout=5).chat.completions.create(model="m", messages=[person("Hi.")])
    assert [request.headers["x-mine"] for request in provider.requests] == ["1", "1"]
    assert session.state.prompt.calls == 2


@formats
def test_the_hosts_system_prompt_comes_first_and_options_are_passed(
    provider: Provider, session: Session, format: str
) -> None:
    key = {RESPONSES: "instructions", ANTHROPIC: "system"}.get(format)
    host = Host(provider, session, format, service_tier="auto", **({key: "Be brief."} if key else {}))
    if key is None:
        host.list.append({"role": "system", "content": "Be brief."})
    provider.will(reply_with("", NOTE), reply_with("Noted."), reply_with("Hello."))
    host.says("Note this.")
    host.says("Hi.")
    for request in provider.requests:
        assert request.body["service_tier"] == "auto"
        first: Any = request.messages[0]["content"] if key is None else request.body[key]
        assert (first[0]["text"] if format == ANTHROPIC else first) == "Be brief."
    assert grows(provider.requests)


def test_omitted_arguments_are_ignored(provider: Provider, session: Session) -> None:
    provider.will(reply_with("Hello."), reply_with("Hello."))
    absent: Any = openai.NOT_GIVEN
    with an_openai(provider) as client, an_anthropic(provider) as other:
        wrap(client, session).chat.completions.create(model="m", messages=[person("Hi.")], tools=absent)
        talk: Any = {"model": "m", "max_tokens": 9, "messages": [person("Hi.")], "system": anthropic.NOT_GIVEN}
        wrap(other, session).messages.create(**talk, tools=anthropic.omit)
    assert [request.tools[0] for request in provider.requests] == ["working_memory"] * 2


@pytest.mark.spec("D7")
@pytest.mark.parametrize("way", ["create", "stream"])
@pytest.mark.parametrize("include", [[], ["reasoning.encrypted_content"]], ids=["bare", "encrypted"])
def test_with_store_false_items_are_sent_in_full(
    provider: Provider, session: Session, way: str, include: list[str]
) -> None:
    host = Host(provider, session, RESPONSES, way, store=False, include=include)
    provider.will(
        reply_with("", NOTE, thinking="Worth keeping."), reply_with("Noted.", thinking="Done."), reply_with("Welcome.")
    )
    assert host.says("Note this.").text == "Noted."
    assert host.says("Thanks.").text == "Welcome."
    sent = [(item.get("type"), item.get("id")) for item in provider.requests[-1].messages[2:]]
    thought = [("reasoning", "rs_1")], [("reasoning", "rs_2")]
    first, second = thought if include else ([], [])
    expected = [*first, ("function_call", None), ("function_call_output", None), *second, ("message", None)]
    assert sent == [*expected, (None, None)]
    assert grows(provider.requests)


def test_audio_is_sent_back_by_its_id(provider: Provider, session: Session) -> None:
    audio = {"id": "aud_1", "data": "c291bmQ=", "expires_at": 1, "transcript": "Hello."}
    session.prepare([person("Say hello.")])
    session.record({"role": "assistant", "content": None, "audio": audio})
    provider.will(reply_with("Bye."))
    audio_message: Any = {"role": "assistant", "audio": {"id": "aud_1"}}
    with an_openai(provider) as client:
        messages = [person("Say hello."), audio_message, person("Say bye.")]
        wrap(client, session).chat.completions.create(model="m", messages=messages)
    assert provider.requests[0].messages[2] == {**audio_message, "content": None}
    assert conversation_wires(session)[1]["audio"] == audio
    assert "splice" not in [event.kind for event in session.events()]


def test_with_functions_memory_is_sent_without_its_tools(provider: Provider, session: Session) -> None:
    provider.will(reply_with("Hello."), reply_with("Hello."))
    functions: Any = [{"name": "get_page", "parameters": SCHEMA}]
    session.scratchpad.update("Ada is on the phone.")
    with an_openai(provider) as client:
        completions = wrap(client, session).chat.completions
        completions.create(model="m", messages=[person("Hi.")], functions=functions, function_call="auto")
        assert "Ada is on the phone." in body_text(provider.requests[0])
        both: Any = {"functions": functions, "tools": TOOLS[CHAT]}
        with pytest.raises(openai.BadRequestError, match="do not go together"):
            completions.create(model="m", messages=[person("Hi.")], **both)
    assert provider.requests[0].body["functions"] == functions


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize("last", [False, True], ids=["", "and the last message"])
@pytest.mark.parametrize("marked", range(4))
def test_a_top_level_cache_mark_replaces_one_of_ours_if_needed(
    provider: Provider, session: Session, marked: int, last: bool
) -> None:
    mark: Json = {"cache_control": {"type": "ephemeral"}}
    texts = [
        {"type": "text", "text": f"Part {place}.", **(mark if place < marked - last else {})} for place in range(3)
    ]
    messages: list[Any] = [
        {"role": "user", "content": texts},
        {"role": "assistant", "content": "Well."},
        {"role": "user", "content": [{"type": "text", "text": "And now?", **(mark if last and marked else {})}]},
    ]
    provider.will(reply_with("Hello."))
    with an_anthropic(provider) as client:
        wrap(client, session).messages.create(model="m", max_tokens=9, messages=messages, **mark)
    body = provider.requests[0].body
    assert body["cache_control"] == mark["cache_control"]
    blocks: list[Json] = [
        block for message in body["messages"] if message["role"] == "user" for block in message["content"]
    ]
    marked_blocks = [
        block for block in blocks if "cache_control" in block and block["text"].startswith(("Part", "And now"))
    ]
    assert len(marked_blocks) >= marked


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize("marked", range(4))
def test_our_marks_get_the_lifetime_of_the_top_level_mark(provider: Provider, session: Session, marked: int) -> None:
    hour: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    texts = [{"type": "text", "text": f"Part {place}.", **(hour if place < marked else {})} for place in range(3)]
    messages: list[Any] = [{"role": "user", "content": texts}]
    provider.will(reply_with("Hello."))
    with an_anthropic(provider) as client:
        wrap(client, session).messages.create(model="m", max_tokens=9, messages=messages, **hour)
    assert (
        body_text(provider.requests[0]).count('"cache_control"') == body_text(provider.requests[0]).count('"1h"') >= 3
    )


def test_extra_body_is_handled_like_arguments(provider: Provider, session: Session) -> None:
    provider.will(reply_with("Hello."))
    extra: Json = {"messages": [person("Hi.")], "top_k": 3}
    with an_openai(provider) as client:
        wrap(client, session).chat.completions.create(model="m", messages=[person("Ho.")], extra_body=extra)
    assert conversation_wires(session)[0] == person("Hi.")
    assert provider.requests[0].body["top_k"] == 3


def test_text_input_is_one_message_and_no_input_continues_from_the_journal(
    provider: Provider, session: Session
) -> None:
    provider.will(reply_with("Hello."), reply_with("Still here."))
    with an_openai(provider) as client:
        wrapped = wrap(client, session)
        assert wrapped.responses.create(model="m", input="Hi.").output_text == "Hello."
        session.add([person("Are you there?")], format="responses")
        assert wrapped.responses.create(model="m").output_text == "Still here."
    assert [wire["role"] for wire in conversation_wires(session)] == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("way", ["create", "stream"])
def test_with_stored_tools_an_unknown_tool_is_answered_without_the_host(
    provider: Provider, session: Session, way: str
) -> None:
    provider.will(reply_with("Hello."), reply_with("", a_tool_call("deploy")), reply_with("There is no such tool."))
    host = Host(provider, session, RESPONSES, way)
    host.says("Hi.")
    session.add([person("Deploy it.")], format="responses")
    with an_openai(provider) as client:
        create: Any = wrap(client, session).responses.create
        reply = list(create(model="m", stream=True)) if way == "stream" else create(model="m")
        received = ReceivedReply.of(reply, RESPONSES)
    assert provider.requests[1].tools[0] == "get_page"
    assert (received.calls, received.text) == ([], "There is no such tool.")


class Page(BaseModel):
    id: str


def test_replies_are_parsed_by_the_client(provider: Provider, session: Session) -> None:
    provider.will(*[reply_with("", NOTE), reply_with('{"id": "page-1"}')] * 3)
    with an_openai(provider) as client, an_anthropic(provider) as other:
        wrapped = wrap(client, session)
        chat = wrapped.chat.completions.parse(model="m", messages=[person("Which?")], response_format=Page)
        assert chat.choices[0].message.parsed == Page(id="page-1")
        assert wrapped.responses.parse(model="m", input="Which?", text_format=Page).output_parsed == Page(id="page-1")
        talk: Any = {"model": "m", "max_tokens": 9, "messages": [person("Which?")], "output_format": Page}
        assert wrap(other, session).messages.parse(**talk).parsed_output == Page(id="page-1")
    assert conversation_wires(session)[-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": '{"id": "page-1"}'}],
    }


@pytest.mark.parametrize("first", ['{"id": "page-0"}', "Let me note that."], ids=["in form", "out of form"])
def test_of_formatted_output_only_the_last_round_is_shown(provider: Provider, session: Session, first: str) -> None:
    provider.will(*[reply_with(first, NOTE), reply_with('{"id": "page-1"}')] * 7)
    page, messages = Page(id="page-1"), [person("Which?")]
    talk: Any = {"model": "m", "max_tokens": 9, "messages": messages, "output_format": Page}
    with an_openai(provider) as client, an_anthropic(provider) as other:
        wrapped = wrap(client, session)
        chat, responses, claude = wrapped.chat.completions, wrapped.responses, wrap(other, session).messages
        parsed = chat.parse(model="m", messages=messages, response_format=Page)
        assert (parsed.choices[0].message.parsed, getattr(parsed, "_request_id", "")) == (page, "req_2")
        assert parsed.usage is not None
        assert parsed.usage.prompt_tokens == 200
        with chat.stream(model="m", messages=messages, response_format=Page) as streamed_chat:
            assert streamed_chat.get_final_completion().choices[0].message.parsed == page
        whole = chat.create(model="m", messages=messages, response_format={"type": "json_object"})
        assert whole.choices[0].message.content == '{"id": "page-1"}'
        answered = responses.parse(model="m", input="Which?", text_format=Page)
        assert (answered.output_parsed, answered.output_text) == (page, '{"id": "page-1"}')
        with responses.stream(model="m", input="Which?", text_format=Page) as streamed:
            final = streamed.get_final_response()
            assert (final.output_parsed, final.output_text) == (page, '{"id": "page-1"}')
            assert final.usage is not None
            assert final.usage.input_tokens == 200
        reply = claude.parse(**talk)
        assert (reply.parsed_output, getattr(reply, "_request_id", "")) == (page, "req_12")
        with claude.stream(**talk) as streamed_claude:
            message = streamed_claude.get_final_message()
            assert (message.parsed_output, message.usage.input_tokens) == (page, 40)
    assert provider.unused == 0


def test_beta_methods_have_memory_too(provider: Provider, session: Session) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    with an_openai(provider) as client:
        answered = wrap(client, session).beta.responses.create(model="m", input="Note this.")
        assert ReceivedReply.of(answered, RESPONSES).text == "Noted."
    provider.will(reply_with("", NOTE), reply_with("Noted."), reply_with("", NOTE), reply_with("Noted again."))
    talk: Any = {"model": "m", "max_tokens": 9, "messages": [person("Note this.")]}
    with an_anthropic(provider) as client:
        wrapped = wrap(client, session)
        reply = wrapped.beta.messages.create(**talk)  # pyright: ignore[reportUnknownVariableType] -- its tools are generic
        assert ReceivedReply.of(reply, ANTHROPIC).text == "Noted."
        with wrapped.beta.messages.stream(**talk) as stream:
            assert stream.get_final_text() == "Noted again."
    assert len(provider.requests) == 6


# -- unsupported calls -------------------------------------------------------------------------------------


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("resource", "argument"),
    [
        ("chat.completions", {"n": 2}),
        ("responses", {"background": True}),
        ("responses", {"extra_body": {"background": True}}),
        ("beta.messages", {"thread": {"previous_message_id": "msg_1"}}),
    ],
)
def test_unsupported_arguments_are_rejected_by_name(
    provider: Provider, session: Session, resource: str, argument: Json
) -> None:
    [(name, value)] = argument.get("extra_body", argument).items()
    with an_openai(provider) as client, an_anthropic(provider) as other:
        endpoint: Any = wrap(other if "beta" in resource else client, session)
        for part in resource.split("."):
            endpoint = getattr(endpoint, part)
        content: Json = {"input": "Hi."} if resource == "responses" else {"messages": [person("Hi.")]}
        with pytest.raises(InvalidInput) as error:
            endpoint.create(model="m", **content, **argument, **({"max_tokens": 9} if "beta" in resource else {}))
    assert (error.value.field, error.value.value) == (name, value)
    assert provider.requests == []


def test_the_error_names_the_argument_to_pass(provider: Provider, session: Session) -> None:
    with an_anthropic(provider) as client:
        runner: Any = wrap(client, session).beta.messages.tool_runner
        running = runner(model="m", max_tokens=9, messages=[person("Hi.")], tools=[])
        with pytest.raises(InvalidInput, match="pass thread=False"):
            next(running)
    assert provider.requests == []


@pytest.mark.parametrize("raw", ["with_raw_response", "with_streaming_response"])
def test_raw_responses_are_rejected(provider: Provider, session: Session, raw: str) -> None:
    with an_openai(provider) as client, an_anthropic(provider) as other:
        chat = getattr(wrap(client, session).chat.completions, raw)
        messages = getattr(wrap(other, session).messages, raw)
        with pytest.raises(InvalidInput, match="memory has to parse the reply"):
            _enter(chat.create(model="m", messages=[person("Hi.")]))
        with pytest.raises(InvalidInput, match="memory has to parse the reply"):
            _enter(messages.create(model="m", max_tokens=9, messages=[person("Hi.")]))
    assert provider.requests == []


def _enter(reply: Any) -> None:
    """The streaming form sends the request when its context is entered."""
    with reply:
        pass


class Postman:
    """Has the methods of a client but no conversations."""

    def post(self) -> None: ...
    def copy(self) -> Postman:
        return self


@pytest.mark.parametrize("client", [None, object(), openai, {"chat": 1}, Postman()], ids=lambda it: type(it).__name__)
def test_an_object_that_is_not_a_client_is_rejected(session: Session, client: object) -> None:
    with pytest.raises(InvalidInput) as error:
        wrap(client, session)
    assert error.value.field == "client"


def test_a_client_is_wrapped_once_and_with_a_session(provider: Provider, session: Session) -> None:
    with an_openai(provider) as client:
        with pytest.raises(InvalidInput, match="not wrapped yet"):
            wrap(wrap(client, session), session)
        with pytest.raises(InvalidInput, match="session"):
            wrap(client, "support-42")  # pyright: ignore[reportArgumentType] -- a wrong type


@pytest.mark.spec("J3")
def test_an_invalid_message_is_rejected_and_nothing_is_sent(provider: Provider, session: Session) -> None:
    with an_openai(provider) as client:
        bad: Any = [person("Hi."), {"role": "assistant", "content": 7}]
        with pytest.raises(InvalidInput, match=r"messages\[1\]\.content"):
            wrap(client, session).chat.completions.create(model="m", messages=bad)
    assert provider.requests == []


# -- concurrency -------------------------------------------------------------------------------------------


@pytest.mark.spec("J2")
def test_threads_that_share_a_client_each_get_their_own_reply(provider: Provider, session: Session) -> None:
    def answer(body: Json) -> ScriptedReply:
        """Add a note first, then answer the question."""
        first, *later = [m for m in body["messages"] if m["role"] != "system"]
        text = first["content"] if isinstance(first["content"], str) else first["content"][0]["text"]
        return (
            reply_with(f"You said {text}")
            if later
            else reply_with("", a_tool_call("working_memory_update", {"text": text}))
        )

    provider.will(*[answer] * 24)
    with an_openai(provider) as client:
        wrapped = wrap(client, session)

        def ask(number: int) -> str | None:
            reply = wrapped.chat.completions.create(model="m", messages=[person(f"number {number}")])
            return reply.choices[0].message.content

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(ask, range(12))) == [f"You said number {number}" for number in range(12)]
    assert session.state.prompt.calls == 24


@pytest.mark.spec("J2")
def test_a_reply_belongs_to_its_call_if_others_run_meanwhile(provider: Provider, session: Session) -> None:
    gate = threading.Event()
    provider.will(reply_with("Looking.", PAGE, gate=gate), reply_with("Hello."), reply_with("There is no such tool."))
    other = json.loads(json.dumps(TOOLS[ANTHROPIC]).replace("get_page", "deploy"))
    with an_anthropic(provider) as client:
        create: Any = partial(wrap(client, session).messages.create, model="m", max_tokens=9)
        stream = create(messages=[person("Look.")], tools=TOOLS[ANTHROPIC], stream=True)
        first_event = next(stream)
        create(messages=[person("Hi.")], tools=other)
        gate.set()
        reply = ReceivedReply.of([first_event, *stream], ANTHROPIC)
    assert [call.name for call in reply.calls] == ["get_page"]
    assert provider.unused == 1
    usages = [event.payload for event in session.events() if isinstance(event.payload, UsageReported)]
    assert [usage.call for usage in usages] == [2, 1]


@pytest.mark.parametrize("way", ["async create", "async stream"])
def test_an_async_client_does_not_block_the_event_loop(provider: Provider, session: Session, way: str) -> None:
    provider.will(reply_with("", NOTE), reply_with("Noted."))
    threads: set[int] = set()
    prepare, record = session.prepare, session.record

    def watch(work: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            threads.add(threading.get_ident())
            return work(*args, **kwargs)

        return run

    session.prepare, session.record = watch(prepare), watch(record)
    assert Host(provider, session, CHAT, way).says("Note this.").text == "Noted."
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.spec("D4")
def test_moving_cache_marks_is_not_an_edit(provider: Provider, session: Session) -> None:
    mark: Json = {"cache_control": {"type": "ephemeral"}}
    history: list[Any] = []
    with an_anthropic(provider) as client:
        for turn in range(5):
            provider.will(reply_with("", a_tool_call("memory_list")), reply_with(f"Answer {turn}."))
            question: Json = {"type": "text", "text": f"Question {turn}."}
            newest: Any = {"role": "user", "content": [question | mark]}
            reply = wrap(client, session).messages.create(model="m", max_tokens=9, messages=[*history, newest])
            history += [{"role": "user", "content": [question]}, {"role": "assistant", "content": reply.content}]
            for sent in provider.requests[-2:]:
                blocks = [block for message in sent.messages[:-1] for block in message["content"]]
                assert [block for block in blocks if "cache_control" in block] in ([], [question | mark])
                assert str(sent.messages).count(str(question | mark)) == 1
    assert "splice" not in [event.kind for event in session.events()]
    assert grows(provider.requests)
