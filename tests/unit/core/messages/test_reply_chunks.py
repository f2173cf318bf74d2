"""Single chunks: as servers send them, mixed with events of clients, and in broken streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tables import each_row

from inmind.core.messages import FORMATS, read_partial_reply, read_reply
from inmind.core.messages.model import Reply, ReplyUsage, Wire
from inmind.errors import InvalidInput

Json = dict[str, Any]


def refusal(chunks: Iterable[object], format: str | None = None) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        read_reply(chunks, format=format)
    return refused.value


# -- chat streams of other servers -------------------------------------------------------------------------


def a_chunk(delta: Json | None = None, finish_reason: str | None = None, **fields: Any) -> Json:
    choice = {"index": 0, "finish_reason": finish_reason} | ({} if delta is None else {"delta": delta})
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **fields}


def a_call(id: str | None, arguments: str, name: str | None = "get_page", **fields: Any) -> Json:
    return {"tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}, **fields}]}


def calls(*ids_and_arguments: tuple[str, str]) -> Json:
    wires = [
        {"id": id, "function": {"name": "get_page", "arguments": arguments}} for id, arguments in ids_and_arguments
    ]
    return {"role": "assistant", "content": None, "tool_calls": wires}


THOUGHT = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
STREAMED: dict[str, tuple[list[Json], Json]] = {
    "the role in every chunk": (
        [{"role": "assistant", "content": "Hel"}, {"role": "assistant", "content": "lo"}],
        {"role": "assistant", "content": "Hello"},
    ),
    "no role": ([{"content": "Hello"}], {"role": "assistant", "content": "Hello"}),
    "no delta": ([], {"role": "assistant", "content": None}),
    "id and name of a call in every chunk": (
        [a_call("a", '{"id"', index=0), a_call("a", ": 1}", index=0)],
        calls(("a", '{"id": 1}')),
    ),
    "id and name of a call empty after the first": (
        [a_call("a", '{"id"', index=0), a_call("", ": 1}", "", index=0), a_call(None, "", None, index=0)],
        calls(("a", '{"id": 1}')),
    ),
    "whole calls that all have index 0": (
        [a_call("a", "{}", index=0), a_call("b", "{}", index=0)],
        calls(("a", "{}"), ("b", "{}")),
    ),
    "calls in pieces without an index": (
        [a_call("a", '{"id"'), a_call(None, ": 1}", None), a_call("b", "{"), a_call("b", "}", None)],
        calls(("a", '{"id": 1}'), ("b", "{}")),
    ),
    "whole calls without an index": ([a_call("a", "{}"), a_call("b", "{}")], calls(("a", "{}"), ("b", "{}"))),
    "the name of a call in pieces": (
        [a_call("a", "", "get_", index=0), a_call(None, "", "page", index=0), a_call(None, "{}", None, index=0)],
        calls(("a", "{}")),
    ),
    "the name of a call in pieces that are alike": (
        [a_call("a", "", piece, index=0) for piece in ("get", "get", "_page")],
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "getget_page", "arguments": ""}}],
        },
    ),
    "calls in turns": (
        [a_call("a", "1", index=0), a_call("b", "2", index=1), a_call(None, "3", None, index=0)],
        calls(("a", "13"), ("b", "2")),
    ),
    "two pieces of a call in one chunk": (
        [{"tool_calls": [a_call("a", "1", index=0)["tool_calls"][0], {"index": 0, "function": {"arguments": "2"}}]}],
        calls(("a", "12")),
    ),
    "reasoning in signed details": (
        [
            {"reasoning_details": [{**THOUGHT, "text": "Hm"}]},
            {"reasoning_details": [{**THOUGHT, "text": "."}]},
            {"reasoning_details": [{**THOUGHT, "signature": "Eqo="}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": "gAAA"}]},
        ],
        {
            "role": "assistant",
            "content": None,
            "reasoning_details": [
                {**THOUGHT, "text": "Hm.", "signature": "Eqo="},
                {"type": "reasoning.encrypted", "index": 0, "data": "gAAA"},
            ],
        },
    ),
    "audio": (
        [
            {"audio": {"id": "audio_1", "transcript": "Hel"}},
            {"audio": {"transcript": "lo", "data": "UklG"}},
            {"audio": {"data": "Rg=="}},
            {"audio": {"expires_at": 1}},
        ],
        {
            "role": "assistant",
            "content": None,
            "audio": {"id": "audio_1", "transcript": "Hello", "data": "UklGRg==", "expires_at": 1},
        },
    ),
}


@each_row(("deltas", "message"), STREAMED.values(), ids=STREAMED)
def test_variants_of_chat_streams_of_other_servers_are_accepted(deltas: list[Json], message: Json) -> None:
    chunks = [a_chunk(delta, finish_reason="") for delta in deltas]
    assert read_reply([*chunks, a_chunk({}, "stop")]).wires == (message,)


def test_chunks_without_a_choice_or_a_delta_are_skipped() -> None:
    filtered: list[Json] = [{"choices": [], "prompt_filter_results": []}, a_chunk(None, content_filter_results={})]
    chunks: list[Json] = [
        *filtered,
        a_chunk({"content": "Hello"}),
        a_chunk(None, "stop"),
        {"choices": None},
        {"id": "late"},
    ]
    assert read_reply(chunks) == Reply(
        format="openai", wires=({"role": "assistant", "content": "Hello"},), id="chatcmpl-1"
    )


def test_repeated_usage_is_the_last_one() -> None:
    usages = [{"prompt_tokens": 9, "completion_tokens": count} for count in (1, 2, 3)]
    chunks = [a_chunk({"content": "Hm"}, "stop" if usage is usages[-1] else None, usage=usage) for usage in usages]
    assert read_reply([*chunks, a_chunk(None, usage=None)]).usage == ReplyUsage(
        prompt_tokens=9, cached_tokens=0, completion_tokens=3
    )


# -- anthropic, special cases ------------------------------------------------------------------------------


def a_block(beginning: Json, *deltas: Json) -> list[Json]:
    start = {"type": "content_block_start", "index": 0, "content_block": beginning}
    return [start, *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas)]


def block_of(chunks: list[Json]) -> Json:
    (wire,) = read_reply([{"type": "ping"}, *chunks, {"type": "message_stop"}]).wires
    (block,) = wire["content"]
    return block


def test_a_tool_input_that_is_not_an_object_stays_text() -> None:
    use: Json = {"type": "tool_use", "id": "toolu_1", "name": "get_page", "input": {}}
    for text, parsed_input in {
        '{"id": 1}': {"id": 1},
        '{"id": ': {"_raw": '{"id": '},
        "[1]": {"_raw": "[1]"},
        '{"n": NaN}': {"_raw": '{"n": NaN}'},
        "": {},
    }.items():
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", text[:3], text[3:])]
        assert block_of(a_block(use, *pieces)) == {**use, "input": parsed_input}
    assert block_of(a_block(use)) == use


def test_deltas_of_unknown_types_are_appended_to_their_block() -> None:
    summary = {"type": "compaction_delta", "content": "So far", "encrypted_content": "gAAA"}
    assert block_of(a_block({"type": "compaction", "content": None}, summary)) == {
        "type": "compaction",
        "content": "So far",
        "encrypted_content": "gAAA",
    }
    thought = {"type": "thinking_delta", "thinking": "Hm.", "estimated_tokens": 50}
    assert block_of(a_block({"type": "thinking", "thinking": "", "signature": ""}, thought)) == {
        "type": "thinking",
        "thinking": "Hm.",
        "signature": "",
    }


def test_usage_is_cumulative_and_keeps_numbers_that_are_not_repeated() -> None:
    first = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    message: Json = {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": first}}
    later: Json = {"input_tokens": None, "cache_read_input_tokens": 6, "output_tokens": 7}
    delta: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": later}
    assert read_reply([message, delta, {"type": "message_stop"}]).usage == ReplyUsage(
        prompt_tokens=16, cached_tokens=6, completion_tokens=7
    )


# -- events added by clients -------------------------------------------------------------------------------


class Extra:
    """An event of a client with all content so far: converting each would take quadratic time."""

    def __init__(self, type: str) -> None:
        self.type = type

    def model_dump(self, **_: Any) -> Json:
        raise AssertionError("must not be converted")


HELLO: dict[str, list[Json]] = {
    "openai": [a_chunk({"role": "assistant", "content": "Hello"}), a_chunk({}, "stop")],
    "responses": [
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"role": "assistant", "content": "Hello"},
        },
        {"type": "response.completed", "response": {"id": "resp_1"}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}},
        *a_block({"type": "text", "text": ""}, {"type": "text_delta", "text": "Hello"}),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ],
}
EXTRAS = {
    "openai": ["content.delta", "content.done", "tool_calls.function.arguments.delta", "logprobs.content.done"],
    "responses": ["response.output_text.delta", "response.function_call_arguments.delta", "response.new_thing"],
    "anthropic": ["text", "input_json", "thinking", "signature", "citation", "content_block_stop", "new_thing"],
}


@each_row("name", FORMATS)
def test_events_inserted_by_a_client_are_not_converted(name: str) -> None:
    first, *rest = HELLO[name]
    extras = [Extra(kind) for kind in EXTRAS[name]]
    assert read_reply([first, *extras, *rest]) == read_reply(HELLO[name])


@each_row("name", FORMATS)
def test_a_stream_is_any_iterable(name: str) -> None:
    reply = read_reply(HELLO[name])
    assert reply.format == name
    assert read_reply(tuple(HELLO[name])) == reply
    assert read_reply(iter(HELLO[name]), hint="openai") == reply
    assert read_reply((chunk for chunk in HELLO[name]), format=name) == reply


@pytest.mark.spec("J3")
@each_row("name", FORMATS)
def test_an_incomplete_reply_from_a_host_is_refused(name: str) -> None:
    chunks = HELLO[name]
    for length in range(len(chunks) - (name == "anthropic")):  # its second to last chunk has the stop reason
        refused = refusal(iter(chunks[:length]), name)
        assert (refused.field, refused.expected) == ("reply", "a complete reply")


# -- streams that stopped before their end -----------------------------------------------------------------


def partial_reply(chunks: list[Json], format: str) -> tuple[Wire, ...]:
    """The partial reply of a stream that stopped after these chunks."""
    reply = read_partial_reply(chunks, format=format)
    assert reply is not None
    assert not reply.is_complete
    return reply.wires


@each_row("name", FORMATS)
def test_a_complete_stream_gives_the_same_reply_with_both_readers(name: str) -> None:
    assert read_partial_reply(HELLO[name], format=name) == read_reply(HELLO[name])


@each_row("name", FORMATS)
def test_a_stream_that_stopped_before_any_content_gives_nothing(name: str) -> None:
    begun: dict[str, list[Json]] = {
        "openai": [a_chunk({"role": "assistant", "content": ""}), a_chunk(a_call("a", "", None, index=0))],
        "responses": [{"type": "response.created", "response": {"id": "resp_1"}}],
        "anthropic": [HELLO["anthropic"][0], *a_block({"type": "thinking", "thinking": "", "signature": ""})],
    }
    for length in range(len(begun[name]) + 1):
        assert read_partial_reply(begun[name][:length], format=name) is None


def test_a_stopped_chat_stream_keeps_text_and_named_calls() -> None:
    named, nameless = a_call("a", '{"id"', index=0), a_call("b", "", None, index=1)
    text_delta = {"role": "assistant", "content": "Hel"}
    assert partial_reply([a_chunk(text_delta), a_chunk(named), a_chunk(nameless)], "openai") == (
        {**calls(("a", '{"id"')), **text_delta},
    )


def test_a_stopped_anthropic_stream_keeps_blocks_that_can_be_sent_back() -> None:
    thinking = a_block({"type": "thinking", "thinking": "", "signature": ""}, {"thinking": "Hm"})
    closed = [*thinking, {"type": "content_block_delta", "index": 0, "delta": {"signature": "Eqo="}}]
    use: Json = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    later: list[Json] = [
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hel"}},
        {"type": "content_block_start", "index": 2, "content_block": use},
        {"type": "content_block_delta", "index": 2, "delta": {"partial_json": '{"id"'}},
    ]
    kept: list[Json] = [{"type": "text", "text": "Hel"}, {**use, "input": {"_raw": '{"id"'}}]
    assert partial_reply([*thinking, *later], "anthropic") == ({"role": "assistant", "content": kept},)
    signed = {"type": "thinking", "thinking": "Hm", "signature": "Eqo="}
    stopped = {"type": "content_block_stop", "index": 0}
    assert partial_reply([*closed, stopped, *later], "anthropic") == (
        {"role": "assistant", "content": [signed, *kept]},
    )


def test_a_stopped_response_keeps_complete_items() -> None:
    assert partial_reply(HELLO["responses"][:1], "responses") == ({"role": "assistant", "content": "Hello"},)


def test_a_stopped_response_keeps_items_that_need_no_id() -> None:
    done: list[Json] = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
    ]
    chunks: list[Json] = [
        *({"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(done)),
        {"type": "response.output_text.delta", "output_index": 2, "item_id": "msg_1", "delta": "Hel"},
        {"type": "response.output_text.delta", "output_index": 2, "item_id": "msg_1", "delta": "lo"},
    ]
    assert partial_reply(chunks, "responses") == (
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
    )


# -- streams that break ------------------------------------------------------------------------------------


BROKEN: list[tuple[str, Json, object]] = [
    ("openai", {"error": {"message": "overloaded"}}, {"message": "overloaded"}),
    ("responses", {"type": "error", "message": "no"}, {"type": "error", "message": "no"}),
    ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, {"type": "overloaded_error"}),
]


@pytest.mark.spec("J3")
@pytest.mark.parametrize(("name", "error", "value"), BROKEN)
def test_an_error_in_a_stream_is_reported_with_its_index(name: str, error: Json, value: object) -> None:
    for index in (0, 1):
        chunks = [*HELLO[name][:index], error]
        for stream in (chunks, iter(chunks)):
            refused = refusal(stream)
            assert (refused.field, refused.value, refused.expected) == (f"reply[{index}]", value, "a complete reply")


def test_a_failed_provider_tool_is_not_an_error_of_the_reply() -> None:
    failed = {"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "error": {"code": 404}}
    assert read_reply([failed]).wires == read_reply(failed).wires == (failed,)


@pytest.mark.spec("J3")
def test_a_failed_response_is_refused() -> None:
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error"}}}
    assert refusal([failed]).expected == "a complete reply"
    assert refusal([{"type": "response.failed", "response": {}}]).value == "failed"


MALFORMED: list[tuple[str, list[Any], str]] = [
    ("openai", [5], "reply[0]"),
    ("openai", [{"choices": [5]}], "reply[0].choices[0]"),
    ("openai", [{"choices": [{"delta": 5}]}], "reply[0].choices[0].delta"),
    ("openai", [a_chunk({"content": "Hi"}), {"choices": [{"index": 1, "delta": {}}]}], "reply[1].choices[0].index"),
    ("openai", [a_chunk({"content": "Hi"}), a_chunk({"content": []}, "stop")], "reply.choices[0].message.content"),
    ("openai", [a_chunk({"role": "tool"}, "stop")], "reply.choices[0].message.role"),
    ("openai", [a_chunk(a_call(None, "{}"), "stop")], "reply.choices[0].message.tool_calls[0].id"),
    ("responses", [{}], "reply[0].type"),
    ("responses", [{"type": "response.output_item.done", "output_index": "0"}], "reply[0].output_index"),
    ("responses", [{"type": "response.completed"}], "reply[0].response"),
    ("responses", [{"type": "response.completed", "response": {"output": [5]}}], "reply.output[0]"),
    ("anthropic", [{}], "reply[0].type"),
    ("anthropic", [{"type": "message_start"}], "reply[0].message"),
    ("anthropic", [{"type": "content_block_start", "index": 0}], "reply[0].content_block"),
    ("anthropic", [{"type": "content_block_start", "index": None}], "reply[0].index"),
    ("anthropic", [{"type": "content_block_delta", "index": 0, "delta": {}}], "reply[0].index"),
    (
        "anthropic",
        [*a_block({"type": "text", "text": 5}, {"text": "Hi"}), {"type": "message_stop"}],
        "reply.content[0].text",
    ),
    (
        "anthropic",
        [*a_block({"type": "text", "text": "", "citations": 5}, {"citation": {}}), {"type": "message_stop"}],
        "reply.content[0].citations",
    ),
]


@pytest.mark.spec("J3")
@each_row(("name", "chunks", "field"), MALFORMED)
def test_an_invalid_chunk_is_refused_with_its_field(name: str, chunks: list[Any], field: str) -> None:
    assert refusal(iter(chunks), name).field == field
