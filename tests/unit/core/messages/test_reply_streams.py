"""A streamed reply equals the reply that the provider would have sent at once.

The chunkers below split a reply like its provider, at random places. The clients are the real ones, on a connection
that never leaves the process, so raw chunks, helper events and their accumulated results are all the clients'.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import OpenAI, pydantic_function_tool
from profiles import examples
from pydantic import BaseModel
from strategies import json_values, wire

from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS, read_reply
from inmind.core.messages.model import Reply
from inmind.errors import InvalidInput

Json = dict[str, Any]
Draw = st.DrawFn

# -- providers with prepared replies ------------------------------------------------------------------------


class Provider:
    """The server side of the clients' connection."""

    def __init__(self) -> None:
        self._response = httpx2.Response(500)
        transport = httpx2.MockTransport(lambda _: self._response)
        self._http = httpx2.Client(transport=transport)
        self.openai: Any = OpenAI(api_key="none", base_url="http://provider.test", http_client=self._http)
        self.anthropic: Any = Anthropic(api_key="none", base_url="http://provider.test", http_client=self._http)

    def reply_with(self, whole: Json) -> Provider:
        self._response = httpx2.Response(200, json=whole)
        return self

    def stream_chunks(self, chunks: Sequence[Json]) -> Provider:
        events = [f"event: {chunk['type']}\n" if "type" in chunk else "" for chunk in chunks]
        lines = [f"{event}data: {json.dumps(chunk)}\n\n" for event, chunk in zip(events, chunks, strict=True)]
        body = "".join([*lines, "data: [DONE]\n\n"])
        self._response = httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)
        return self


PROVIDER = Provider()
CHAT_REQUEST: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ANTHROPIC_REQUEST: Any = {**CHAT_REQUEST, "max_tokens": 100}
RESPONSES_REQUEST: Any = {"model": "m", "input": "Hi"}


# -- replies and how providers split them -------------------------------------------------------------------

TEXTS = st.text(max_size=20)
NAMES = st.sampled_from(["get_page", "run_sql"])
COUNTS = st.integers(0, 10_000)


def maybe(draw: Draw, **fields: st.SearchStrategy[Any]) -> Json:
    """A subset of the fields."""
    return {key: draw(values) for key, values in fields.items() if draw(st.booleans())}


def cut(draw: Draw, text: str) -> list[str]:
    """The text in pieces, some of them empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:stop] for start, stop in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def completions(draw: Draw) -> Json:
    function = wire(type="function", function=wire(name=NAMES, arguments=TEXTS))
    custom = wire(type="custom", custom=wire(name=NAMES, input=TEXTS))
    citation = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
    message: Json = {"role": "assistant", "content": draw(st.none() | TEXTS), "refusal": None} | maybe(
        draw,
        refusal=TEXTS,
        reasoning_content=TEXTS,
        annotations=st.just([citation, citation]),
        function_call=wire(name=NAMES, arguments=TEXTS),
        tool_calls=st.lists(function | custom, min_size=1, max_size=3),
    )
    for number, call in enumerate(message.get("tool_calls", [])):
        call["id"] = f"call_{number}"
    reason = draw(st.sampled_from(["stop", "length", "tool_calls"]))
    details = {"cached_tokens": draw(COUNTS)}
    prompt, completion = draw(COUNTS), draw(COUNTS)
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {
        **{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"},
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage | {"prompt_tokens_details": details},
    }


@st.composite
def chat_chunks(draw: Draw, whole: Json) -> list[Json]:
    choice = whole["choices"][0]
    message = choice["message"]
    deltas: list[Json] = [{"role": "assistant", "content": "" if message["content"] is not None else None}]
    for key in ("reasoning_content", "content", "refusal"):
        deltas += [{key: piece} for piece in cut(draw, message[key])] if message.get(key) is not None else []
    if "annotations" in message:
        deltas += [{"annotations": message["annotations"]}]
    for call in [message["function_call"]] if "function_call" in message else []:
        deltas += [{"function_call": {**call, "arguments": ""}}]
        deltas += [{"function_call": {"arguments": piece}} for piece in cut(draw, call["arguments"])]
    for index, call in enumerate(message.get("tool_calls", [])):
        kind, key = call["type"], "arguments" if call["type"] == "function" else "input"
        deltas += [{"tool_calls": [{"index": index, **call, kind: {**call[kind], key: ""}}]}]
        deltas += [{"tool_calls": [{"index": index, kind: {key: piece}}]} for piece in cut(draw, call[kind][key])]
    choices: list[list[Json]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices += [[{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}], []]
    chunk: Json = {"id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": None}
    return [{**chunk, "choices": one, "usage": None if one else whole["usage"]} for one in choices]


@st.composite
def messages(draw: Draw) -> Json:
    citation = wire(
        type="char_location",
        cited_text=TEXTS,
        document_index=0,
        document_title=None,
        start_char_index=0,
        end_char_index=1,
    )
    objects = st.dictionaries(TEXTS, json_values(), max_size=3)
    block = st.one_of(
        wire(type="text", text=TEXTS),
        wire(type="text", text=TEXTS, citations=st.lists(citation, min_size=1, max_size=2)),
        wire(type="thinking", thinking=TEXTS, signature=TEXTS),
        wire(type="redacted_thinking", data=TEXTS),
        wire(type="tool_use", id="toolu_1", name=NAMES, input=objects),
        wire(type="server_tool_use", id="srvtoolu_1", name="web_search", input=objects),
        wire(type="web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
    )
    usage = {"input_tokens": draw(COUNTS), "output_tokens": draw(COUNTS)}
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None},
        "content": draw(st.lists(block, max_size=4)),
        "stop_reason": draw(st.sampled_from(["end_turn", "max_tokens", "tool_use"])),
        "usage": usage | maybe(draw, cache_read_input_tokens=COUNTS, cache_creation_input_tokens=st.none() | COUNTS),
    }


@st.composite
def anthropic_chunks(draw: Draw, whole: Json) -> list[Json]:
    usage = whole["usage"]
    begun: Json = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    chunks: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        beginning, deltas = anthropic_deltas(draw, block)
        chunks += [{"type": "content_block_start", "index": index, "content_block": beginning}]
        chunks += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        chunks += [{"type": "content_block_stop", "index": index}]
    counted = usage if draw(st.booleans()) else {"output_tokens": usage["output_tokens"]}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [*chunks, {"type": "message_delta", "delta": delta, "usage": counted}, {"type": "message_stop"}]


def anthropic_deltas(draw: Draw, block: Json) -> tuple[Json, list[Json]]:
    """The start of a block and its deltas."""
    if block["type"] == "text":
        deltas = [{"type": "text_delta", "text": piece} for piece in cut(draw, block["text"])]
        deltas += [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", [])]
        return {"type": "text", "text": ""} | maybe(draw, citations=st.sampled_from([None, []])), deltas
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut(draw, block["thinking"])]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}]
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if "input" in block:
        pieces = cut(draw, json.dumps(block["input"]) if block["input"] else "")
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return block, []


@st.composite
def responses(draw: Draw) -> Json:
    part = wire(type="output_text", text=TEXTS, annotations=[]) | wire(type="refusal", refusal=TEXTS)
    item = st.one_of(
        wire(type="message", role="assistant", status="completed", content=st.lists(part, max_size=2)),
        wire(type="reasoning", summary=[], encrypted_content=TEXTS),
        wire(type="function_call", name=NAMES, arguments=TEXTS, status="completed"),
        wire(type="custom_tool_call", name=NAMES, input=TEXTS),
        wire(type="web_search_call", status="completed", action={"type": "search", "query": "q"}),
    )
    items = draw(st.lists(item, max_size=4))
    numbered = [
        {**one, "id": f"{one['type']}_{number}", **({"call_id": f"call_{number}"} if "name" in one else {})}
        for number, one in enumerate(items)
    ]
    status = draw(st.sampled_from(["completed", "incomplete"]))
    usage = {
        **{"input_tokens": draw(COUNTS), "output_tokens": draw(COUNTS), "total_tokens": 0},
        "input_tokens_details": {"cached_tokens": draw(COUNTS), "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        **{"id": "resp_1", "object": "response", "created_at": 1.0, "model": "m", "error": None},
        **{"parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
        **{"status": status, "output": numbered, "usage": usage},
    }


@st.composite
def responses_chunks(draw: Draw, whole: Json) -> list[Json]:
    begun: Json = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(whole["output"]):
        events += [{"output_index": place, "item_id": item["id"], **event} for event in item_events(draw, item)]
    last = {key: value for key, value in whole.items() if key != "output" or draw(st.booleans())}
    events += [{"type": f"response.{whole['status']}", "response": last}]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def item_events(draw: Draw, item: Json) -> Iterator[Json]:
    yield {"type": "response.output_item.added", "item": {**item, "content": []} if "content" in item else item}
    for place, part in enumerate(item.get("content", [])):
        kind, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
        yield {"type": "response.content_part.added", "content_index": place, "part": {**part, key: ""}}
        for piece in cut(draw, part[key]):
            yield {"type": f"response.{kind}.delta", "content_index": place, "delta": piece, "logprobs": []}
        yield {"type": f"response.{kind}.done", "content_index": place, key: part[key], "logprobs": []}
        yield {"type": "response.content_part.done", "content_index": place, "part": part}
    yield {"type": "response.output_item.done", "item": item}


# -- streams equal complete replies ------------------------------------------------------------------------

REDUCED = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.spec("D9")
@REDUCED
@given(data=st.data(), whole=completions())
def test_a_chat_stream_is_the_completion(data: st.DataObject, whole: Json) -> None:
    chunks = data.draw(chat_chunks(whole))
    before, reply = copy.deepcopy((whole, chunks)), read_reply(whole)
    chat = PROVIDER.openai.chat.completions
    assert read_reply(chunks) == reply
    assert (whole, chunks) == before
    PROVIDER.reply_with(whole)
    assert read_reply(chat.create(**CHAT_REQUEST), hint="anthropic") == reply
    PROVIDER.stream_chunks(chunks)
    assert read_reply(chat.create(**CHAT_REQUEST, stream=True), hint="anthropic") == reply
    with chat.stream(**CHAT_REQUEST) as stream:
        events = list(stream)
        assert read_reply(events, hint="anthropic") == reply
        assert read_reply(stream.current_completion_snapshot, hint="anthropic") == reply


@pytest.mark.spec("D9")
@REDUCED
@given(data=st.data(), whole=messages())
def test_an_anthropic_stream_is_the_message(data: st.DataObject, whole: Json) -> None:
    chunks = data.draw(anthropic_chunks(whole))
    before, reply = copy.deepcopy((whole, chunks)), read_reply(whole)
    claude = PROVIDER.anthropic.messages
    assert read_reply(chunks) == reply
    assert (whole, chunks) == before
    PROVIDER.reply_with(whole)
    assert read_reply(claude.create(**ANTHROPIC_REQUEST)) == reply
    PROVIDER.stream_chunks(chunks)
    assert read_reply(claude.create(**ANTHROPIC_REQUEST, stream=True)) == reply
    with claude.stream(**ANTHROPIC_REQUEST) as stream:
        events = list(stream)
        assert read_reply(events) == reply
        assert read_reply(stream.get_final_message()) == reply


@pytest.mark.spec("D9")
@REDUCED
@given(data=st.data(), whole=responses())
def test_a_responses_stream_is_the_response(data: st.DataObject, whole: Json) -> None:
    chunks = data.draw(responses_chunks(whole))
    before, reply = copy.deepcopy((whole, chunks)), read_reply(whole)
    client = PROVIDER.openai.responses
    assert read_reply(chunks) == reply
    assert (whole, chunks) == before
    PROVIDER.reply_with(whole)
    assert read_reply(client.create(**RESPONSES_REQUEST)) == reply
    PROVIDER.stream_chunks(chunks)
    assert read_reply(client.create(**RESPONSES_REQUEST, stream=True)) == reply
    with client.stream(**RESPONSES_REQUEST) as stream:
        events = list(stream)
        assert read_reply(events) == reply
        if whole["status"] == "completed":
            assert read_reply(stream.get_final_response()) == reply


class Greeting(BaseModel):
    words: str


GREETING = '{"words": "Hello"}'


@pytest.mark.spec("D7")
def test_values_parsed_by_a_client_are_not_in_the_message() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "Greeting", "arguments": GREETING}}
    message = {"role": "assistant", "content": GREETING, "tool_calls": [call]}
    completion = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    parsed = PROVIDER.reply_with({**completion, "choices": choices}).openai.chat.completions.parse(
        **CHAT_REQUEST, response_format=Greeting, tools=[pydantic_function_tool(Greeting)]
    )
    assert parsed.choices[0].message.parsed == Greeting(words="Hello")
    assert parsed.choices[0].message.tool_calls[0].function.parsed_arguments == Greeting(words="Hello")
    assert read_reply(parsed).wires == read_reply(parsed.choices[0].message).wires == (message,)

    part: Json = {"type": "output_text", "text": GREETING, "annotations": []}
    item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    called = {"type": "function_call", "call_id": "call_1", "name": "Greeting", "arguments": GREETING}
    request_fields: Json = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
    whole: Json = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "m",
        "output": [item, called],
        **request_fields,
    }
    answer = PROVIDER.reply_with(whole).openai.responses.parse(
        **RESPONSES_REQUEST, text_format=Greeting, tools=[pydantic_function_tool(Greeting)]
    )
    assert answer.output_parsed == answer.output[1].parsed_arguments == Greeting(words="Hello")
    assert read_reply(answer).wires == read_reply(answer.output).wires == (item, called)

    block = {"type": "text", "text": GREETING}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block]}
    ending = {"stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}
    claude = PROVIDER.reply_with({**reply, **ending}).anthropic.messages.parse(
        **ANTHROPIC_REQUEST, output_format=Greeting
    )
    assert claude.parsed_output == Greeting(words="Hello")
    assert read_reply(claude).wires == ({"role": "assistant", "content": [block]},)


# -- invalid replies ---------------------------------------------------------------------------------------

Chunker = Callable[[Json], st.SearchStrategy[list[Json]]]
CHUNKERS: dict[str, tuple[st.SearchStrategy[Json], Chunker]] = {
    "openai": (completions(), chat_chunks),
    "responses": (responses(), responses_chunks),
    "anthropic": (messages(), anthropic_chunks),
}


@st.composite
def nearly_replies(draw: Draw) -> Any:
    """A reply of some provider, complete or in chunks, with one wrong value."""
    replies, chunker = CHUNKERS[draw(st.sampled_from(list(FORMATS)))]
    whole = draw(replies)
    reply = draw(chunker(whole)) if draw(st.booleans()) else whole
    holder, key = draw(st.sampled_from(list(places_in(reply))))
    holder[key] = draw(json_values())
    return reply


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every location in a JSON value, as container and key."""
    inner: Any = value.items() if is_object(value) else enumerate(value) if is_list(value) else ()
    for key, held in list(inner):
        yield value, key
        yield from places_in(held)


def outcome(reply: Any, format: str | None) -> Reply | InvalidInput:
    try:
        return read_reply(reply, format=format)
    except InvalidInput as refused:
        return refused


@pytest.mark.spec("J3")
@given(reply=json_values() | nearly_replies(), format=st.sampled_from([None, *FORMATS]))
def test_any_json_is_read_as_messages_of_a_format_or_refused(reply: Any, format: str | None) -> None:
    before = copy.deepcopy(reply)
    result = outcome(reply, format)
    if isinstance(result, InvalidInput):
        assert result.field.startswith("reply")
    else:
        for message in result.wires:
            FORMATS[result.format].check(message, field="messages[0]")
    assert reply == before


@pytest.mark.spec("D9")
@pytest.mark.parametrize(("pieces", "text"), [(["a \ud83d", "\ude00 b"], "a 😀 b"), (["a \ud83d", " b"], "a \ufffd b")])
def test_a_character_split_between_chunks_is_joined(pieces: list[str], text: str) -> None:
    choices = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    ended: list[Json] = [*choices, {"index": 0, "delta": {}, "finish_reason": "stop"}]
    chunks = [{"id": "c", "object": "chat.completion.chunk", "choices": [choice]} for choice in ended]
    assert read_reply(chunks).wires[0]["content"] == text
    blocks: list[Json] = [
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    assert read_reply(blocks).wires[0]["content"] == [{"type": "text", "text": text}]
    client = Provider().stream_chunks(chunks).openai
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    assert read_reply(list(stream)).wires[0]["content"] == text
