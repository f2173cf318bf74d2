"""Guarantees of every format, tested with recorded messages of the providers."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from provider_replies import ANTHROPIC_REPLIES, CHAT_PARALLEL_CALLS, CHAT_REPLIES, REPLIES, RESPONSES_OUTPUT
from tables import each_row

from inmind.core.messages import FORMATS, get_format
from inmind.core.messages.format import Format
from inmind.core.messages.model import Call, Image, Message, Opaque, ParsedMessage, PromptHead, Result, Text
from inmind.core.messages.pairing import to_provider_list
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("D9")

Json = dict[str, Any]

RECORDED = [(name, wire) for name, wires in REPLIES.items() for wire in wires]

CONVERSATION = [
    Message(
        "user", (Text("What does page-1 say?"), Image("iVBORw0=", "image/png"), Image("https://example.com/a.png"))
    ),
    Message(
        "assistant", (Text("Let me see."), Call("call_1", "get_page", '{"id": "page-1"}'), Call("call_2", "now", "{}"))
    ),
    Message("tool", (Result("call_1", (Text("About Us"),)), Result("call_2", (Text("noon"), Text("sharp"))))),
    Message("assistant", (Text("It says About Us."),)),
    Message("user", (Text("Thanks"),)),
]


@pytest.fixture(params=list(FORMATS))
def format(request: pytest.FixtureRequest) -> Format:
    return FORMATS[request.param]


@each_row("reply", CHAT_REPLIES)
def test_the_recorded_chat_replies_are_real(reply: Json) -> None:
    chat = pytest.importorskip("openai.types.chat")
    parsed = chat.ChatCompletionMessage.model_validate(reply, strict=True)
    assert parsed.model_dump(exclude_unset=True) == reply


def test_the_recorded_responses_are_real() -> None:
    responses = pytest.importorskip("openai.types.responses")
    pydantic = pytest.importorskip("pydantic")
    parsed = pydantic.TypeAdapter(list[responses.ResponseOutputItem]).validate_python(RESPONSES_OUTPUT)
    assert [type(item).__name__ for item in parsed] == [
        "ResponseReasoningItem",
        "ResponseOutputMessage",
        "ResponseFunctionToolCall",
        "ResponseFunctionToolCall",
    ]
    assert [item.model_dump(exclude_unset=True) for item in parsed] == RESPONSES_OUTPUT


@each_row("reply", ANTHROPIC_REPLIES)
def test_the_recorded_anthropic_replies_are_real(reply: Json) -> None:
    types = pytest.importorskip("anthropic.types")
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole = {
        "id": "msg_1",
        "type": "message",
        "model": "any",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    parsed = types.Message.model_validate({**whole, **reply})
    assert [block.model_dump(exclude_unset=True) for block in parsed.content] == reply["content"]
    assert all(type(block).__name__.lower().startswith(block.type.replace("_", "")) for block in parsed.content)


@each_row(("name", "wire"), RECORDED)
def test_a_recorded_reply_is_accepted_unchanged(name: str, wire: Json) -> None:
    before = copy.deepcopy(wire)
    FORMATS[name].check(wire, field="messages[0]")
    message = FORMATS[name].read(wire)
    FORMATS[name].write([message])
    assert wire == before
    assert message.role == "assistant"


@pytest.mark.spec("D7")
@each_row(("name", "wire"), RECORDED)
def test_opaque_content_is_sent_back_byte_for_byte(name: str, wire: Json) -> None:
    message = FORMATS[name].read(wire)
    sent = json.dumps(FORMATS[name].write([message]))
    opaque = [part for part in message.parts if isinstance(part, Opaque)]
    for part in opaque:
        assert json.dumps(part.body)[1:-1] in sent


@each_row(("name", "wire"), RECORDED)
def test_a_recorded_reply_reads_the_same_after_writing(name: str, wire: Json) -> None:
    format = FORMATS[name]
    message = format.read(wire)
    *_, again = format.write([Message("user", (Text("hello"),)), message])
    assert format.read(again) == message


def test_a_conversation_is_the_same_after_writing_and_reading(format: Format) -> None:
    messages = [format.read(wire) for wire in format.write(CONVERSATION)]
    assert [part for message in messages for part in message.parts] == [
        part for message in CONVERSATION for part in message.parts
    ]


@pytest.mark.parametrize("source", list(FORMATS))
def test_every_format_can_be_converted_to_every_other(source: str, format: Format) -> None:
    wires = FORMATS[source].write(CONVERSATION)
    arrangement = to_provider_list([ParsedMessage(source, wire, FORMATS[source].read(wire)) for wire in wires], format)
    assert (arrangement.left_out, arrangement.repairs) == ((), ())
    assert arrangement.wires == format.write(CONVERSATION)


def test_parallel_calls_stay_parallel_when_items_become_one_message() -> None:
    responses, chat = FORMATS["responses"], FORMATS["openai"]
    outputs = [
        {"type": "function_call_output", "call_id": "call_Ab1", "output": "About Us"},
        {"type": "function_call_output", "call_id": "call_Cd2", "output": "Team"},
    ]
    entries = [ParsedMessage("responses", wire, responses.read(wire)) for wire in [*RESPONSES_OUTPUT, *outputs]]
    arrangement = to_provider_list(entries, chat)
    assert [wire["role"] for wire in arrangement.wires] == ["assistant", "tool", "tool"]
    assert arrangement.wires[0]["tool_calls"] == CHAT_PARALLEL_CALLS["tool_calls"]
    assert [one.what for one in arrangement.left_out] == ["responses reasoning"]


def test_the_tail_goes_on_the_last_message_of_the_user_or_a_tool(format: Format) -> None:
    for length in range(1, len(CONVERSATION) + 1):
        wires = format.write(CONVERSATION[:length])
        before = copy.deepcopy(wires)
        with_tail = format.add_tail(wires, "THE TAIL")
        assert with_tail is not None
        assert wires == before
        changed = [new for new, old in zip(with_tail, wires, strict=True) if new is not old]
        assert len(changed) == 1
        assert format.tail_index(wires) == with_tail.index(changed[0])
        assert "THE TAIL" in json.dumps(changed)
        format.check(changed[0], field="messages[0]")
        assert without_tail(format.read(changed[0])) == format.read(wires[with_tail.index(changed[0])])


def test_without_a_message_there_is_no_tail(format: Format) -> None:
    assert format.add_tail([], "THE TAIL") is None
    assert format.add_tail([{"role": "assistant", "content": "hello"}], "THE TAIL") is None
    assert format.tail_index([]) is None
    assert format.tail_index([{"role": "assistant", "content": "hello"}]) is None


def test_a_request_without_tools_has_no_tools_field(format: Format) -> None:
    head = PromptHead(system=None, memory="")
    assert "tools" not in format.request(head, [], None)
    assert "tools" not in format.request(head, [], [])
    assert format.request(head, [], [{"name": "get_page"}])["tools"] == [{"name": "get_page"}]


@pytest.mark.spec("D2")
def test_the_hosts_system_prompt_comes_first_and_memory_after_it(format: Format) -> None:
    request = json.dumps(
        format.request(PromptHead(system="BE KIND", memory="MEMORY"), format.write(CONVERSATION), None)
    )
    assert request.index("BE KIND") < request.index("MEMORY")


NO_SYSTEM: list[tuple[object, str]] = [
    ([{}], "[0]"),
    ([5], "[0]"),
    (["Be kind."], "[0]"),
    ([{"role": "user", "content": "Be kind."}], "[0]"),
    ([{"type": "image"}], "[0]"),
    (5, ""),
    ({}, ""),
    ({"role": "system", "content": "Be kind."}, ""),
    ("half \ud800", ""),
    (b"bytes", ""),
]


@pytest.mark.spec("J3")
@pytest.mark.parametrize(("system", "place"), NO_SYSTEM)
def test_an_invalid_system_prompt_is_refused_with_its_place(system: object, place: str, format: Format) -> None:
    with pytest.raises(InvalidInput) as refused:
        format.check_system(system, field="system")
    assert refused.value.field.startswith(f"system{place}")


@pytest.mark.parametrize("system", [None, "", "Be kind.", [], ()])
def test_plain_text_is_a_system_prompt_in_every_format(system: Any, format: Format) -> None:
    format.check_system(system, field="system")
    assert format.system_text(system) == (system or "")


def test_a_format_is_found_by_its_name(format: Format) -> None:
    assert get_format(format.name) is format


def test_an_unknown_format_is_refused_with_the_known_names() -> None:
    with pytest.raises(InvalidInput, match="provider: expected one of responses, anthropic, openai, got 'gemini'"):
        get_format("gemini", field="provider")


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("wire", "place"),
    [
        (None, ""),
        ([], ""),
        ("hello", ""),
        ({"role": "robot", "content": "hello"}, ".role"),
        ({"role": ["user"], "content": "hello"}, ".role"),
        ({"role": "user"}, ".content"),
        ({"role": "user", "content": 5}, ".content"),
        ({"role": "user", "content": ["hello"]}, ".content[0]"),
        ({"role": "user", "content": [{"text": "hello"}]}, ".content[0].type"),
        ({"role": "user", "content": "half \ud800"}, ".content"),
        ({"role": "user", "content": "hello", "extra": b"bytes"}, ".extra"),
        ({"role": "user", "content": "hello", "extra": [{"deep": {1, 2}}]}, ".extra[0].deep"),
        ({"role": "user", "content": "hello", "extra": float("nan")}, ".extra"),
        ({"role": "user", "content": "hello", "extra": float("-inf")}, ".extra"),
        ({"role": "user", "content": "hello", "extra": 10**5_000}, ".extra"),
        ({"role": "user", "content": "hello", 5: "five"}, " (a key)"),
    ],
)
def test_an_invalid_message_is_refused_with_the_field_name(wire: object, place: str, format: Format) -> None:
    with pytest.raises(InvalidInput) as refused:
        format.check(wire, field="messages[3]")
    assert refused.value.field == f"messages[3]{place}"


@pytest.mark.spec("J3")
def test_a_message_without_a_role_is_refused(format: Format) -> None:
    with pytest.raises(InvalidInput, match=r"messages\[3\]\.(role|type): expected"):
        format.check({}, field="messages[3]")


@pytest.mark.spec("J3")
def test_cyclic_and_very_deep_values_are_refused_without_exhausting_the_stack(format: Format) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = {"inner": deep}
    for value in (endless, deep):
        with pytest.raises(InvalidInput, match="200 levels"):
            format.check({"role": "user", "content": "hello", "extra": value}, field="messages[0]")


@pytest.mark.spec("D7")
def test_unknown_fields_and_parts_are_accepted(format: Format) -> None:
    part: Json = {"type": "hologram", "data": {"big": 2**70}}
    wire: Json = {"role": "user", "content": [part], "x_vendor": [1, None, True, 0.5]}
    format.check(wire, field="messages[0]")
    [read] = format.read(wire).parts
    assert isinstance(read, Opaque)
    assert read.body == part
    [written] = format.write([format.read(wire)])
    assert written["content"] == [part]


def without_tail(message: Message) -> Message:
    parts: list[Any] = list(message.parts)
    if isinstance(parts[-1], Text):
        parts.pop()
    else:
        parts[-1] = Result(parts[-1].id, parts[-1].parts[:-1])
    only_results = all(isinstance(part, Result) for part in parts)
    return Message("tool" if only_results else message.role, tuple(parts))
