"""A complete reply of any form is parsed, or refused with the exact field."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from anthropic.types import Message
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response, ResponseFunctionToolCall
from tables import each_row

from inmind.core.messages import FORMATS, read_reply, text_and_calls
from inmind.core.messages.model import Call, Reply, ReplyUsage, Text
from inmind.errors import InvalidInput

Json = dict[str, Any]

HELLO: Json = {"role": "assistant", "content": "Hello"}
CALL: Json = {"id": "call_1", "type": "function", "function": {"name": "get_page", "arguments": '{"id": '}}
TEXT: Json = {"type": "text", "text": "Hello"}
TOOL_USE: Json = {"type": "tool_use", "id": "toolu_1", "name": "get_page", "input": {"id": 1}}
THINKING: Json = {"type": "thinking", "thinking": "Hm.", "signature": "Eqo="}
OUTPUT_TEXT: Json = {"type": "output_text", "text": "Hello", "annotations": []}
ITEM: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [OUTPUT_TEXT]}
REASONING: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
FUNCTION_CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "get_page",
    "arguments": "{}",
}


def a_completion(message: Json | None = None, finish_reason: str | None = "stop", **fields: Any) -> Json:
    choice = {"index": 0, "message": message or HELLO, "finish_reason": finish_reason, "logprobs": None}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return {**whole, **fields}


def a_message(*blocks: Json, stop_reason: str | None = "end_turn", **fields: Any) -> Json:
    usage = {"input_tokens": 20, "output_tokens": 5}
    whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks or [TEXT])}
    return {**whole, "stop_reason": stop_reason, "stop_sequence": None, "usage": usage, **fields}


def a_response(*output: Json, status: str | None = "completed", **fields: Any) -> Json:
    request_fields: Json = {
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "model": "m",
        "error": None,
    }
    request_fields["reasoning"] = {"effort": "low", "summary": None}
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "output": list(output or [ITEM]),
        **request_fields,
    }
    return {**whole, "status": status, **fields}


def wire_of(reply: object, **options: Any) -> Json:
    (wire,) = read_reply(reply, **options).wires
    return dict(wire)


def refusal(reply: object, **options: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as refused:
        read_reply(reply, **options)
    return refused.value


COMPLETE_REPLIES: list[tuple[str, Json, Any, Reply]] = [
    (
        "openai",
        a_completion({**HELLO, "tool_calls": [CALL]}, "tool_calls"),
        ChatCompletion,
        Reply(format="openai", wires=({**HELLO, "tool_calls": [CALL]},), id="chatcmpl-1", model="m"),
    ),
    (
        "responses",
        a_response(REASONING, ITEM, FUNCTION_CALL),
        Response,
        Reply(format="responses", wires=(REASONING, ITEM, FUNCTION_CALL), id="resp_1", model="m"),
    ),
    (
        "anthropic",
        a_message(THINKING, TEXT, TOOL_USE, stop_reason="tool_use"),
        Message,
        Reply(
            format="anthropic",
            wires=({"role": "assistant", "content": [THINKING, TEXT, TOOL_USE]},),
            id="msg_1",
            model="m",
            usage=ReplyUsage(prompt_tokens=20, cached_tokens=0, completion_tokens=5),
        ),
    ),
]


@pytest.mark.spec("D9")
@pytest.mark.parametrize(("format", "whole", "kind", "reply"), COMPLETE_REPLIES)
def test_a_complete_reply_is_detected_as_dict_and_as_client_object(
    format: str, whole: Json, kind: Any, reply: Reply
) -> None:
    before = copy.deepcopy(whole)
    others = [name for name in FORMATS if name != format]
    assert [read_reply(whole, hint=other) for other in others] == [reply, reply]
    assert read_reply(kind.model_validate(whole), hint=others[0]) == reply
    assert read_reply(whole, format=format) == reply
    assert whole == before


DISTINCTIVE: list[tuple[object, str]] = [
    ({**HELLO, "refusal": None}, "openai"),
    ({"tool_calls": [CALL]}, "openai"),
    ({"content": None, "function_call": {"name": "old_lookup", "arguments": "{}"}}, "openai"),
    ({**HELLO, "reasoning_content": "Hm."}, "openai"),
    (ChatCompletionMessage.model_validate({**HELLO, "refusal": None}), "openai"),
    ({"role": "assistant", "content": [THINKING, TEXT]}, "anthropic"),
    ({"content": [TOOL_USE]}, "anthropic"),
    ({"role": "assistant", "content": "Hello", "stop_reason": "end_turn"}, "anthropic"),
    ({"type": "message", "role": "assistant", "content": [TEXT]}, "anthropic"),
    ({"role": "assistant", "content": [OUTPUT_TEXT]}, "responses"),
    ([REASONING, ITEM], "responses"),
    ([REASONING], "responses"),
    ({**ITEM, "content": [{"type": "refusal", "refusal": "No."}]}, "responses"),
    ({"type": "mcp_call", "id": "mcp_1", "name": "f", "arguments": "{}", "output": "ok"}, "responses"),
    ((ITEM,), "responses"),
    ([{"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}, FUNCTION_CALL], "responses"),
    ([ResponseFunctionToolCall.model_validate(FUNCTION_CALL)], "responses"),
    ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, "responses"),
]


@each_row(("reply", "format"), DISTINCTIVE)
@each_row("hint", FORMATS)
def test_a_bare_message_with_distinctive_fields_is_detected(reply: object, format: str, hint: str) -> None:
    parsed = read_reply(reply, hint=hint)
    assert (parsed.format, parsed.id, parsed.usage) == (format, "", None)


@each_row("name", FORMATS)
def test_an_ambiguous_bare_message_uses_format_or_hint(name: str) -> None:
    assert read_reply(HELLO, hint=name) == Reply(format=name, wires=(HELLO,))
    assert read_reply(HELLO, format=name, hint="openai") == Reply(format=name, wires=(HELLO,))


def test_a_message_without_a_role_is_from_the_assistant() -> None:
    assert wire_of({"content": "Hello"}) == HELLO
    assert wire_of({"content": "Hello"}, format="anthropic") == HELLO


@pytest.mark.spec("D7")
def test_empty_chat_fields_outside_the_content_are_left_out() -> None:
    nothing: Json = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": []}
    assert wire_of(a_completion({**HELLO, **nothing})) == HELLO
    assert wire_of(a_completion({"role": "assistant", "tool_calls": [CALL]})) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [CALL],
    }


@pytest.mark.spec("D7")
@each_row(
    "message",
    [
        {**HELLO, "reasoning_content": "", "x_vendor": {"deep": [None]}},
        {**HELLO, "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": None, "index": 0}]},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1", "data": "UklGRg==", "transcript": "Hi"}},
        {"role": "assistant", "content": None, "tool_calls": [{**CALL, "extra_content": {"signature": "Eqo="}}]},
    ],
)
def test_other_chat_fields_stay_as_the_server_sent_them(message: Json) -> None:
    assert wire_of(a_completion(message)) == message


@pytest.mark.spec("D7")
def test_nulls_are_removed_from_items_and_blocks_only_if_not_needed() -> None:
    sparse: Json = {**REASONING, "status": None, "content": None}
    interpreter = {"type": "code_interpreter_call", "id": "ci_1", "code": None, "outputs": None}
    message: Json = {**ITEM, "phase": None, "content": [{**OUTPUT_TEXT, "logprobs": None}]}
    assert read_reply(a_response(sparse, interpreter, message)).wires == (REASONING, interpreter, ITEM)
    compaction = {"type": "compaction", "content": None}
    blocks: list[Json] = [
        {**TEXT, "citations": None},
        {**TEXT, "citations": []},
        {**TOOL_USE, "caller": None},
        compaction,
    ]
    assert wire_of(a_message(*blocks))["content"] == [TEXT, TEXT, TOOL_USE, compaction]


def test_a_field_has_the_providers_name_even_if_it_is_a_python_keyword() -> None:
    item = {**FUNCTION_CALL, "async": True}
    assert wire_of(Response.model_validate(a_response(item))) == item


def test_fields_of_an_anthropic_reply_are_not_in_the_message() -> None:
    assert wire_of(a_message(TEXT, container={"id": "c", "expires_at": "2026"})) == {
        "role": "assistant",
        "content": [TEXT],
    }


TRUNCATED: list[object] = [
    a_completion(finish_reason="length"),
    a_completion(finish_reason="content_filter"),
    a_response({**ITEM, "status": "incomplete"}, status="incomplete"),
    [{**ITEM, "status": "incomplete"}],
    a_message(stop_reason="max_tokens"),
    a_message(stop_reason="model_context_window_exceeded"),
    a_message(stop_reason="refusal"),
]


@each_row("reply", TRUNCATED)
def test_a_truncated_reply_is_marked_incomplete(reply: object) -> None:
    assert not read_reply(reply).is_complete


COMPLETE: list[object] = [
    a_completion(finish_reason="tool_calls"),
    {"choices": [{"message": HELLO}]},
    a_response(),
    a_response(status=None),
    a_message(stop_reason="pause_turn"),
    HELLO,
]


@each_row("reply", COMPLETE)
def test_any_other_reply_is_complete(reply: object) -> None:
    assert read_reply(reply).is_complete


USAGES: list[tuple[Json, ReplyUsage | None]] = [
    (
        a_completion(
            usage={
                "prompt_tokens": 90,
                "completion_tokens": 7,
                "total_tokens": 97,
                "prompt_tokens_details": {"cached_tokens": 64},
            }
        ),
        ReplyUsage(prompt_tokens=90, cached_tokens=64, completion_tokens=7),
    ),
    (
        a_completion(usage={"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": None}),
        ReplyUsage(prompt_tokens=90, cached_tokens=0, completion_tokens=7),
    ),
    (
        a_completion(
            usage={"prompt_tokens": 9, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
        ),
        ReplyUsage(prompt_tokens=9, cached_tokens=9, completion_tokens=7),
    ),
    (
        a_response(usage={"input_tokens": 90, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 64}}),
        ReplyUsage(prompt_tokens=90, cached_tokens=64, completion_tokens=7),
    ),
    (
        a_message(
            usage={
                "input_tokens": 10,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 64,
                "output_tokens": 7,
            }
        ),
        ReplyUsage(prompt_tokens=94, cached_tokens=64, completion_tokens=7),
    ),
    (
        a_message(usage={"input_tokens": 10, "cache_creation_input_tokens": None, "output_tokens": 7}),
        ReplyUsage(prompt_tokens=10, cached_tokens=0, completion_tokens=7),
    ),
    (a_completion(), None),
    (a_completion(usage="much"), None),
    (a_completion(usage={"prompt_tokens": 90}), None),
    (a_completion(usage={"prompt_tokens": True, "completion_tokens": 7}), None),
    (a_completion(usage={"prompt_tokens": -1, "completion_tokens": 7}), None),
    (a_completion(usage={"prompt_tokens": 9.5, "completion_tokens": 7}), None),
    (a_completion(usage={"prompt_tokens": 10**5_000, "completion_tokens": 7}), None),
    (
        a_completion(
            usage={"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": "64"}}
        ),
        None,
    ),
    (a_response(usage={"input_tokens": "90", "output_tokens": 7}), None),
    (a_message(usage={"input_tokens": 10, "cache_read_input_tokens": [1], "output_tokens": 7}), None),
    (a_message(usage=None), None),
]


@pytest.mark.spec("D6")
@each_row(("reply", "usage"), USAGES)
def test_usage_is_the_providers_count_or_none(reply: Json, usage: ReplyUsage | None) -> None:
    assert read_reply(reply).usage == usage


UNFINISHED: list[tuple[object, str, object]] = [
    ({"error": {"message": "overloaded"}}, "reply", {"message": "overloaded"}),
    ({"type": "error", "error": {"type": "overloaded_error"}}, "reply", {"type": "overloaded_error"}),
    (a_response(status="failed", error={"code": "server_error"}), "reply", {"code": "server_error"}),
    (a_response(status="in_progress"), "reply.status", "in_progress"),
    (a_response(status="cancelled"), "reply.status", "cancelled"),
    (a_completion(finish_reason=None), "reply.choices[0].finish_reason", None),
    (a_completion(finish_reason="error"), "reply.choices[0].finish_reason", "error"),
    (a_message(stop_reason=None), "reply.stop_reason", None),
]


@pytest.mark.spec("J3")
@each_row(("reply", "field", "value"), UNFINISHED)
def test_an_unfinished_reply_is_refused_with_the_providers_reason(reply: object, field: str, value: object) -> None:
    refused = refusal(reply)
    assert (refused.field, refused.value, refused.expected) == (field, value, "a complete reply")


def test_several_choices_are_refused() -> None:
    completion = a_completion()
    completion["choices"] *= 2
    refused = refusal(completion)
    assert (refused.field, refused.value) == ("reply.choices", "2 choices")
    assert "pass the message that was chosen" in refused.expected


class Undumpable:
    def model_dump(self, **_: Any) -> Json:
        raise RuntimeError("no")


UNREADABLE: list[tuple[object, str | None, str]] = [
    (None, None, "reply"),
    ("Hello", None, "reply"),
    (b"Hello", None, "reply"),
    (5, None, "reply"),
    ({}, None, "reply"),
    ({}, "anthropic", "reply"),
    ({}, "responses", "reply.role"),
    ([], None, "reply"),
    ([], "responses", "reply"),
    ([HELLO], "openai", "reply"),
    (object(), None, "reply"),
    (Undumpable(), None, "reply"),
    (iter([5]), None, "reply[0]"),
    ([{"error": {"code": 500}}], "openai", "reply[0]"),
    (iter("ab"), None, "reply[0]"),
    ({"choices": {}}, None, "reply.choices"),
    ({"choices": []}, None, "reply.choices"),
    ({"choices": [5]}, None, "reply.choices[0]"),
    ({"choices": [{}]}, None, "reply.choices[0].message"),
    (a_completion({"role": "user", "content": "Hi"}), None, "reply.choices[0].message.role"),
    (a_completion({"role": "assistant", "content": 5}), None, "reply.choices[0].message.content"),
    (
        a_completion({"content": None, "tool_calls": [{"id": "a"}]}),
        None,
        "reply.choices[0].message.tool_calls[0].function",
    ),
    (a_completion({"content": None, "tool_calls": [5]}), None, "reply.choices[0].message.tool_calls[0]"),
    ({"role": "user", "content": "Hi"}, None, "reply.role"),
    ({"role": "user", "content": "Hi"}, "anthropic", "reply.role"),
    ({"role": "user", "content": "Hi"}, "responses", "reply.role"),
    ({"role": "assistant", "content": "half \ud800"}, None, "reply.content"),
    ({"output": None}, None, "reply.output"),
    ({"output": [5]}, None, "reply.output[0]"),
    (a_response(ITEM, {"type": "function_call", "call_id": "a"}), None, "reply.output[1].name"),
    ([ITEM, {"type": 5}], None, "reply[1].type"),
    (a_message({"type": "tool_use", "id": "a", "name": "f", "input": []}), None, "reply.content[0].input"),
    (a_message(TEXT, {"type": "text"}), None, "reply.content[1].text"),
]


@pytest.mark.spec("J3")
@each_row(("reply", "format", "field"), UNREADABLE)
def test_an_invalid_reply_is_refused_with_the_exact_field(reply: object, format: str | None, field: str) -> None:
    assert refusal(reply, format=format).field == field


@pytest.mark.spec("J3")
def test_an_unknown_format_is_refused_with_its_field() -> None:
    assert refusal(HELLO, format="gemini").field == "format"
    assert refusal(HELLO, hint="gemini").field == "hint"


@pytest.mark.spec("J3")
def test_a_very_deep_or_cyclic_reply_is_refused() -> None:
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = {"inner": deep}
    endless: list[Any] = []
    endless.append(endless)
    for value in (deep, endless):
        assert "200 levels" in refusal({**HELLO, "extra": value}).expected


COPIES: list[tuple[str, Json, list[Json]]] = [
    (
        "openai",
        a_completion({**HELLO, "refusal": None, "annotations": [], "reasoning_content": "Hm."}),
        [
            HELLO,
            {**HELLO, "reasoning_content": "Hm."},
            {**HELLO, "refusal": None, "annotations": [], "tool_calls": None, "parsed": {"greeting": "Hello"}},
            {"role": "assistant", "content": [TEXT]},
        ],
    ),
    (
        "openai",
        a_completion({"role": "assistant", "content": None, "tool_calls": [CALL]}),
        [{"role": "assistant", "content": "", "tool_calls": [{**CALL, "index": 0}]}],
    ),
    (
        "anthropic",
        a_message(THINKING, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo", "citations": [{}]}),
        [HELLO, {"role": "assistant", "content": [TEXT]}],
    ),
    (
        "anthropic",
        a_message(THINKING, {"type": "text", "text": ""}, TOOL_USE),
        [{"role": "assistant", "content": [TOOL_USE]}],
    ),
]


@pytest.mark.parametrize(("format", "reply", "copies"), COPIES)
def test_a_hosts_copy_of_a_reply_compares_equal(format: str, reply: Json, copies: list[Json]) -> None:
    ours = text_and_calls(read_reply(reply).wires, format)
    assert ours
    assert [text_and_calls([copied], format) for copied in copies] == [ours] * len(copies)


def test_the_items_of_a_response_compare_equal_to_one_message() -> None:
    ours = text_and_calls(read_reply(a_response(REASONING, ITEM, FUNCTION_CALL)).wires, "responses")
    assert ours == (Text("Hello"), Call("call_1", "get_page", "{}"))
    assert ours == text_and_calls([HELLO, FUNCTION_CALL], "responses")


def test_different_text_or_calls_do_not_compare_equal() -> None:
    ours = text_and_calls([{**HELLO, "tool_calls": [CALL]}], "openai")
    other = {**CALL, "id": "call_2"}
    assert ours != text_and_calls([HELLO], "openai")
    assert ours != text_and_calls([{**HELLO, "tool_calls": [other]}], "openai")
    assert ours != text_and_calls([{"role": "assistant", "content": "hello", "tool_calls": [CALL]}], "openai")
