from __future__ import annotations

import copy
from typing import Any

import pytest
from provider_rules import faults
from tables import each_row

from inmind.core.messages import FORMATS
from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, PromptHead, Result, Text
from inmind.core.messages.openai import OpenAIChat
from inmind.core.messages.responses import OpenAIResponses
from inmind.errors import InvalidInput

Json = dict[str, Any]

CHAT, RESPONSES, ANTHROPIC = OpenAIChat(), OpenAIResponses(), AnthropicMessages()
NO_HEAD = PromptHead(system=None, memory="")
MARK = {"type": "ephemeral"}


def user(*parts: Part) -> Message:
    return Message("user", parts)


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def text(words: str, **extra: object) -> Json:
    return {"type": "text", "text": words, **extra}


def refused_field(name: str, wire: object) -> str:
    with pytest.raises(InvalidInput) as error:
        FORMATS[name].check(wire, field="messages[3]")
    return error.value.field.removeprefix("messages[3]")


INVALID_MESSAGES: list[tuple[str, Json, str]] = [
    ("openai", {"role": "tool", "content": "ok"}, ".tool_call_id"),
    ("openai", {"role": "tool", "tool_call_id": "a"}, ".content"),
    ("openai", {"role": "function", "content": "ok"}, ".name"),
    ("openai", {"role": "assistant", "tool_calls": {}}, ".tool_calls"),
    ("openai", {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}, ".tool_calls[0].id"),
    ("openai", {"role": "assistant", "tool_calls": [{"id": "a"}]}, ".tool_calls[0].function"),
    ("openai", {"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}, ".tool_calls[0].function.name"),
    ("openai", {"role": "assistant", "tool_calls": [{"id": "a", "type": "x"}]}, ".tool_calls[0].type"),
    ("openai", {"role": "assistant", "function_call": {"name": "f"}}, ".function_call.arguments"),
    ("openai", {"role": "user", "content": [{"type": "text"}]}, ".content[0].text"),
    ("openai", {"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, ".content[0].image_url.url"),
    ("responses", {"type": 5}, ".type"),
    ("responses", {"type": "function_call", "name": "f", "arguments": "{}"}, ".call_id"),
    ("responses", {"type": "function_call", "call_id": "a", "name": "f", "arguments": {}}, ".arguments"),
    ("responses", {"type": "function_call_output", "call_id": "a"}, ".output"),
    ("responses", {"type": "custom_tool_call", "call_id": "a", "name": "f"}, ".input"),
    ("responses", {"role": "user", "content": [{"type": "input_text"}]}, ".content[0].text"),
    ("anthropic", {"role": "user", "content": [{"type": "tool_result"}]}, ".content[0].tool_use_id"),
    ("anthropic", {"role": "user", "content": [{"type": "tool_use"}]}, ".content[0].type"),
    ("anthropic", {"role": "assistant", "content": [{"type": "tool_result"}]}, ".content[0].type"),
    (
        "anthropic",
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]},
        ".content[0].input",
    ),
    (
        "anthropic",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{}]}]},
        ".content[0].content[0].type",
    ),
    ("anthropic", {"role": "user", "content": [{"type": "image", "source": {}}]}, ".content[0].source.type"),
]


@pytest.mark.spec("J3")
@each_row(("name", "wire", "field"), INVALID_MESSAGES)
def test_an_invalid_message_is_refused_with_its_field(name: str, wire: Json, field: str) -> None:
    assert refused_field(name, wire) == field


INVALID_SYSTEMS: list[tuple[str, list[Any], str]] = [
    ("openai", [{}], "[0].role"),
    ("openai", [{"role": "system"}], "[0].content"),
    ("openai", [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}], "[1].role"),
    ("openai", [text("Be kind.")], "[0].role"),
    ("openai", [{"role": "developer", "content": [{"type": "text"}]}], "[0].content[0].text"),
    ("responses", [{}], "[0].role"),
    ("responses", [{"role": "developer", "content": 5}], "[0].content"),
    ("responses", [{"type": "reasoning", "role": "system"}], "[0].type"),
    ("responses", [{"type": ["message"], "role": "system", "content": ""}], "[0].type"),
    ("anthropic", [{}], "[0].type"),
    ("anthropic", [text("Be kind."), {"type": "text"}], "[1].text"),
    ("anthropic", [{"type": "image", "source": {}}], "[0].type"),
    ("anthropic", [{"role": "system", "content": "Be kind."}], "[0].type"),
    ("anthropic", [text("Be kind.", cache_control={"type": b""})], "[0].cache_control.type"),
]


@pytest.mark.spec("J3")
@each_row(("name", "system", "field"), INVALID_SYSTEMS)
def test_an_invalid_system_prompt_is_refused_with_its_field(name: str, system: list[Any], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        FORMATS[name].check_system(system, field="system")
    assert error.value.field == f"system{field}"


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("openai", [{"role": "system", "content": "Be kind."}, {"role": "developer", "content": [text("Be brief.")]}]),
        ("openai", ({"role": "system", "content": [text("Be kind."), text(" "), text("Be brief.")], "name": "style"},)),
        (
            "responses",
            [
                {"role": "developer", "content": "Be kind."},
                {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
            ],
        ),
        ("anthropic", [text("Be kind.", cache_control=MARK), text("Be brief.")]),
    ],
)
def test_a_system_prompt_is_checked_in_its_format_and_converted_to_text(name: str, system: list[Json]) -> None:
    FORMATS[name].check_system(system, field="system")
    assert FORMATS[name].system_text(system) == "Be kind.\n\nBe brief."


def test_leading_system_messages_of_anthropic_are_converted_to_text() -> None:
    system: list[Json] = [{"role": "system", "content": "Be kind."}, {"role": "system", "content": [text("Be brief.")]}]
    assert ANTHROPIC.system_text(system) == "Be kind.\n\nBe brief."


def test_every_form_of_a_chat_assistant_message_is_read() -> None:
    wire = {
        "role": "assistant",
        "content": [text("Hello"), {"type": "refusal", "refusal": "No."}],
        "reasoning_content": "Hm.",
        "audio": {"id": "audio_1"},
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"broken'}}],
        "function_call": {"name": "g", "arguments": "{}"},
    }
    assert CHAT.read(wire) == assistant(
        Opaque("openai", "reasoning_content", {"reasoning_content": "Hm."}),
        Opaque("openai", "audio", {"audio": {"id": "audio_1"}}),
        Text("Hello"),
        Opaque("openai", "refusal", {"type": "refusal", "refusal": "No."}),
        Call("a", "f", '{"broken'),
        Call("g", "g", "{}"),
    )


@pytest.mark.spec("D7")
def test_audio_is_sent_back_by_its_id() -> None:
    sound = {"id": "audio_1", "data": "UklGRg==", "expires_at": 1, "transcript": "Hello."}
    wire: Json = {"role": "assistant", "content": None, "audio": sound}
    sent: Json = {**wire, "audio": {"id": "audio_1"}}
    assert CHAT.strip_local_fields(wire) == sent
    assert CHAT.strip_local_fields(sent) is sent
    assert CHAT.write([CHAT.read(wire)]) == [sent]
    assert wire["audio"] is sound


def test_a_data_url_is_read_as_content_and_any_other_as_url() -> None:
    urls = ["data:image/png;base64,iVBORw0=", "https://example.com/a.png", "data:image/svg+xml,<svg/>"]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    assert CHAT.read({"role": "user", "content": parts}).parts == (
        Image("iVBORw0=", "image/png"),
        Image("https://example.com/a.png"),
        Image("data:image/svg+xml,<svg/>"),
    )


def test_adjacent_assistant_messages_become_one_in_chat() -> None:
    [wire] = CHAT.write([assistant(Text("Hello")), assistant(Call("a", "f", "{}")), assistant(Call("b", "f", "{}"))])
    assert (wire["content"], [call["id"] for call in wire["tool_calls"]]) == ("Hello", ["a", "b"])


@pytest.mark.parametrize("format", [CHAT, RESPONSES], ids=["openai", "responses"])
def test_a_failure_is_marked_in_the_text_if_there_is_no_field(format: OpenAIChat | OpenAIResponses) -> None:
    def write_error(*parts: Text) -> str:
        [wire] = format.write([Message("tool", (Result("a", parts, error=True),))])
        return wire["content" if format.name == "openai" else "output"]

    assert write_error(Text("no such page")) == "Error: no such page"
    assert write_error(Text("Error: no such page")) == "Error: no such page"
    assert write_error() == "Error: (the tool gave no text)"


def test_responses_keep_reasoning_and_messages_and_calls_in_their_order() -> None:
    reasoning: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    refusal = {"type": "refusal", "refusal": "No."}
    message = assistant(
        Opaque("responses", "reasoning", reasoning),
        Text("Hello"),
        Opaque("responses", "message.refusal", refusal),
        Call("a", "f", "{}"),
        Text("Bye"),
    )
    assert RESPONSES.write([message]) == [
        reasoning,
        {"role": "assistant", "content": [{"type": "output_text", "text": "Hello"}, refusal]},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Bye"}]},
    ]


@pytest.mark.parametrize("kind", ["web_search_call", "mcp_call", "compaction", "from_next_year"])
def test_an_item_that_only_openai_understands_is_opaque(kind: str) -> None:
    wire = {"type": kind, "id": "x_1"}
    RESPONSES.check(wire, field="messages[0]")
    assert RESPONSES.read(wire) == assistant(Opaque("responses", kind, wire, is_compaction=kind == "compaction"))
    output = {"type": f"{kind}_output", "call_id": "x"}
    assert RESPONSES.read(output).role == "tool"


@each_row(
    ("wire", "role"),
    [
        ({"type": "additional_tools", "role": "developer", "tools": []}, "developer"),
        ({"type": "compaction_trigger"}, "developer"),
        ({"type": "configuration_update", "reasoning": {"effort": "low"}}, "developer"),
        ({"type": "item_reference", "id": "msg_1"}, "user"),
        ({"id": "msg_1"}, "user"),
        ({"type": None, "role": None, "id": "msg_1"}, "user"),
        ({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}, "user"),
    ],
)
def test_an_item_of_the_host_has_the_role_of_the_host(wire: Json, role: str) -> None:
    RESPONSES.check(wire, field="messages[0]")
    message = RESPONSES.read(wire)
    assert (message.role, RESPONSES.write([message])) == (role, [wire])
    assert RESPONSES.tail_index([{"role": "user", "content": "hi"}, wire]) == 0


HOST_REQUESTS: list[tuple[Json, Json]] = [
    ({"type": f"{tool}_call", "id": "x_1", "call_id": "a"}, {"type": f"{tool}_call_output", "call_id": "a"})
    for tool in ("apply_patch", "computer", "local_shell", "shell")
] + [
    ({"type": "local_shell_call", "id": "x_1", "call_id": "a"}, {"type": "local_shell_call_output", "id": "a"}),
    (
        {"type": "tool_search_call", "call_id": "a", "execution": "client"},
        {"type": "tool_search_output", "call_id": "a"},
    ),
    ({"type": "mcp_approval_request", "id": "a"}, {"type": "mcp_approval_response", "approval_request_id": "a"}),
]


def opaque(wire: Json) -> Opaque:
    [part] = RESPONSES.read(wire).parts
    assert isinstance(part, Opaque)
    return part


@each_row(("request", "answer"), HOST_REQUESTS, ids=lambda wire: wire["type"])
def test_a_request_of_openai_to_the_host_is_linked_to_its_answer(request: Json, answer: Json) -> None:
    assert opaque(request).request_id == opaque(answer).answered_id != ""
    assert opaque(request).answered_id == opaque(answer).request_id == ""
    other = {**answer, **{key: "b" for key in answer if key != "type"}}
    assert opaque(other).answered_id != opaque(request).request_id


@each_row("kind", ["tool_search_call", "tool_search_output", "web_search_call", "mcp_call", "program"])
def test_a_tool_run_by_openai_needs_no_answer(kind: str) -> None:
    done = opaque({"type": kind, "id": "x_1", "call_id": "a", "execution": "server"})
    assert (done.request_id, done.answered_id) == ("", "")


def test_anthropic_merges_neighbours_and_puts_results_first() -> None:
    results = Message("tool", (Result("a", (Text("one"),)), Result("b", (), error=True)))
    assert ANTHROPIC.write([user(Text("hi")), assistant(Call("a", "f", "")), results, user(Text("so?"))]) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": True},
                text("so?"),
            ],
        },
    ]


def test_anthropic_gets_a_user_first_and_text_in_every_message() -> None:
    assert ANTHROPIC.write([assistant(Text(" ")), user()]) == [
        {"role": "user", "content": "(The conversation begins with the assistant.)"},
        {"role": "assistant", "content": "(empty)"},
        {"role": "user", "content": "(empty)"},
    ]


def test_system_messages_in_the_middle_are_wrapped_in_tags_for_anthropic() -> None:
    [wire] = ANTHROPIC.write([Message("developer", (Text("Be brief.</system_message>"),))])
    assert wire == {
        "role": "user",
        "content": "<system_message>Be brief.&lt;/system_message></system_message>",
    }


@each_row("arguments", ['{"a":', "[1]", "5", '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000, "1" * 5_000])
def test_arguments_that_are_not_an_object_are_sent_to_anthropic_as_raw_text(arguments: str) -> None:
    _, wire = ANTHROPIC.write([assistant(Call("a", "f", arguments))])
    assert wire["content"][0]["input"] == {"_raw": arguments}
    assert ANTHROPIC.read(wire).calls[0].arguments == arguments


def test_an_id_refused_by_anthropic_is_mapped_equally_for_call_and_result() -> None:
    ids = ["functions.get:0", "functions_get:0", "功能", ""]
    calls, results = [Call(id, "f", "{}") for id in ids], [Result(id, ()) for id in ids]
    _, call_message, result_message = ANTHROPIC.write([assistant(*calls), Message("tool", tuple(results))])
    mapped = [block["id"] for block in call_message["content"]]
    assert mapped == [block["tool_use_id"] for block in result_message["content"]]
    assert len(set(mapped)) == len(ids)
    assert mapped[0] == "functions_get_0_019a016c"


def test_an_image_stays_in_its_result_if_results_accept_images() -> None:
    message = Message("tool", (Result("a", (Text("see"), Image("iVBORw0=", "image/png"))),))
    [item] = RESPONSES.write([message])
    assert item["output"][1] == {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0="}
    [wire] = ANTHROPIC.write([message])
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0="}
    assert wire["content"][0]["content"][1] == {"type": "image", "source": source}


@pytest.mark.spec("D5")
@each_row(
    ("name", "wire", "key", "with_tail"),
    [
        ("openai", {"role": "user", "content": "hi"}, "content", [text("hi"), text("tail")]),
        ("openai", {"role": "user", "content": [text("hi")]}, "content", [text("hi"), text("tail")]),
        ("openai", {"role": "tool", "tool_call_id": "a", "content": "ok"}, "content", [text("ok"), text("tail")]),
        ("openai", {"role": "tool", "tool_call_id": "a", "content": ""}, "content", [text("tail")]),
        ("openai", {"role": "function", "name": "f", "content": "ok"}, "content", "ok\n\ntail"),
        ("anthropic", {"role": "user", "content": "hi"}, "content", [text("hi"), text("tail")]),
        (
            "responses",
            {"role": "user", "content": "hi"},
            "content",
            [{"type": "input_text", "text": "hi"}, {"type": "input_text", "text": "tail"}],
        ),
        (
            "responses",
            {"type": "function_call_output", "call_id": "a", "output": "ok"},
            "output",
            [{"type": "input_text", "text": "ok"}, {"type": "input_text", "text": "tail"}],
        ),
    ],
)
def test_the_tail_is_one_more_part_of_the_message(name: str, wire: Json, key: str, with_tail: object) -> None:
    before = copy.deepcopy(wire)
    prefill = {"role": "assistant", "content": "Sure,"}
    assert FORMATS[name].add_tail([wire, prefill], "tail") == [{**wire, key: with_tail}, prefill]
    assert wire == before


@pytest.mark.spec("D5")
def test_outputs_with_a_fixed_format_get_no_tail() -> None:
    question = {"role": "user", "content": "what is on the screen?"}
    output = {"type": "computer_call_output", "call_id": "x", "output": {"type": "computer_screenshot"}}
    carried = RESPONSES.add_tail([question, output], "tail")
    assert carried is not None
    assert RESPONSES.tail_index([question, output]) == 0
    assert carried[1] is output
    assert carried[0]["content"][-1] == {"type": "input_text", "text": "tail"}


SEARCH: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
SEARCH_RESULT: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CODE: Json = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}


def turn_messages(*blocks: Json, caller: Json | None = None, id: str = "a") -> list[Json]:
    """A question, the reply of the assistant, and the result of its call."""
    call: Json = {"type": "tool_use", "id": id, "name": "f", "input": {}, **({"caller": caller} if caller else {})}
    result = {"type": "tool_result", "tool_use_id": id, "content": "ok"}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [*blocks, call]},
        {"role": "user", "content": [result]},
    ]


@pytest.mark.spec("D5", "D7")
@each_row(
    ("wires", "carrier"),
    [
        (turn_messages(), 2),
        (turn_messages(SEARCH, SEARCH_RESULT), 2),
        (turn_messages(caller={"type": "direct"}), 2),
        (turn_messages(SEARCH), 0),
        (turn_messages(caller=CODE), 0),
        ([*turn_messages()[:1], {"role": "assistant", "content": [SEARCH]}, *turn_messages(SEARCH_RESULT)[1:]], 3),
        ([*turn_messages(caller=CODE), *turn_messages(caller=CODE, id="b")[1:]], 0),
        (
            [
                *turn_messages(SEARCH),
                {"role": "assistant", "content": [SEARCH_RESULT]},
                {"role": "user", "content": "so"},
            ],
            4,
        ),
        (turn_messages(SEARCH)[1:], None),
    ],
    ids=[
        "a call",
        "a finished search",
        "a direct call",
        "a pending search",
        "a call by code",
        "a search finished in a later message of the turn",
        "calls by code in a row",
        "a search finished after it",
        "no earlier message",
    ],
)
def test_the_tail_is_on_an_earlier_message_if_anthropic_accepts_only_results(
    wires: list[Json], carrier: int | None
) -> None:
    assert ANTHROPIC.tail_index(wires) == carrier
    carried = ANTHROPIC.add_tail(wires, "tail")
    assert [index for index, wire in enumerate(carried or wires) if "tail" in str(wire)] == (
        [] if carrier is None else [carrier]
    )
    assert faults("anthropic", carried or []) == []


@pytest.mark.spec("D7")
@pytest.mark.parametrize(
    "wires", [turn_messages(SEARCH), turn_messages(caller=CODE)], ids=["a pending search", "a call by code"]
)
def test_text_in_a_message_that_may_contain_only_results_is_detected_as_an_error(wires: list[Json]) -> None:
    assert faults("anthropic", wires) == []
    wires[-1]["content"].append(text("tail"))
    assert faults("anthropic", wires) != []


@pytest.mark.spec("D2")
@pytest.mark.parametrize("role", ["system", "developer"])
def test_memory_in_chat_has_the_role_of_the_hosts_last_system_message(role: str) -> None:
    system = [{"role": "system", "content": "Be kind."}, {"role": role, "content": "Be brief.", "name": "style"}]
    request = CHAT.request(PromptHead(system=system, memory="MEMORY"), [{"role": "user", "content": "hi"}], None)
    assert request == {"messages": [*system, {"role": role, "content": "MEMORY"}, {"role": "user", "content": "hi"}]}
    assert request["messages"][0] is system[0]


@pytest.mark.spec("D2")
def test_instructions_stay_and_memory_is_a_developer_message() -> None:
    memory = {"role": "developer", "content": [{"type": "input_text", "text": "MEMORY"}]}
    assert RESPONSES.request(PromptHead(system="Be kind.", memory="MEMORY"), [], None) == {
        "instructions": "Be kind.",
        "input": [memory],
    }
    leading = [{"role": "system", "content": "Be kind."}]
    assert RESPONSES.request(PromptHead(system=leading, memory="MEMORY"), [], None) == {"input": [*leading, memory]}


@pytest.mark.spec("D4")
def test_anthropic_gets_cache_marks_after_memory_and_before_the_tail() -> None:
    wires = [{"role": "user", "content": "hi"}]
    carried = ANTHROPIC.add_tail(wires, "tail")
    assert carried is not None
    request = ANTHROPIC.request(PromptHead(system="Be kind.", memory="MEMORY"), carried, None)
    assert request == {
        "system": [text("Be kind."), text("MEMORY", cache_control=MARK)],
        "messages": [{"role": "user", "content": [text("hi", cache_control=MARK), text("tail")]}],
    }
    assert carried[0]["content"] == [text("hi"), text("tail")]


@pytest.mark.spec("D4")
def test_without_a_tail_the_mark_is_on_the_last_unchanging_block() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "Eqo="}
    wires: list[Json] = [
        {"role": "user", "content": [text("hi"), text("  ")]},
        {"role": "assistant", "content": [thinking]},
    ]
    before = copy.deepcopy(wires)
    request = ANTHROPIC.request(NO_HEAD, wires, None)
    assert request["messages"] == [{"role": "user", "content": [text("hi", cache_control=MARK), text("  ")]}, wires[1]]
    assert wires == before


@pytest.mark.spec("D4")
def test_thinking_blocks_are_not_marked() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "Eqo="}
    wires: list[Json] = [{"role": "assistant", "content": [text("so"), thinking]}, {"role": "user", "content": " "}]
    marked = ANTHROPIC.request(NO_HEAD, wires, None)["messages"]
    assert marked[0]["content"] == [text("so", cache_control=MARK), thinking]


@pytest.mark.spec("D4")
@pytest.mark.parametrize(("own", "ours"), [(0, 2), (2, 2), (3, 1), (4, 0)])
def test_marks_of_the_host_count_towards_the_limit_of_four(own: int, ours: int) -> None:
    tools = [{"name": f"tool_{number}", "cache_control": MARK} for number in range(own)]
    request = ANTHROPIC.request(PromptHead(system=None, memory="MEMORY"), [{"role": "user", "content": "hi"}], tools)
    assert str(request).count("cache_control") == own + ours
    if ours == 1:
        assert "cache_control" in str(request["messages"])


@pytest.mark.spec("D4")
def test_a_mark_inside_a_result_counts_and_a_marked_block_is_not_marked_again() -> None:
    result = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [text("ok", cache_control=MARK)],
        "cache_control": MARK,
    }
    wires: list[Json] = [{"role": "user", "content": [result]}]
    request = ANTHROPIC.request(PromptHead(system=None, memory="MEMORY"), wires, None)
    assert request["messages"] == wires
    assert str(request).count("cache_control") == 3


HOUR = {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.spec("D4")
@pytest.mark.parametrize("nested", [False, True])
def test_the_mark_after_memory_lasts_as_long_as_a_later_one_of_the_host(nested: bool) -> None:
    block: Json = text("ok", cache_control=HOUR)
    if nested:
        block = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    wires: list[Json] = [{"role": "user", "content": [block]}, {"role": "user", "content": "hi"}]
    request = ANTHROPIC.request(PromptHead(system=None, memory="MEMORY"), wires, None)
    assert request["system"] == [text("MEMORY", cache_control=HOUR)]
    assert request["messages"][1]["content"] == [text("hi", cache_control=MARK)]


@pytest.mark.spec("D4")
def test_the_mark_before_the_tail_lasts_as_long_as_a_later_one_of_the_host() -> None:
    carried = ANTHROPIC.add_tail([{"role": "user", "content": "hi"}], "tail")
    assert carried is not None
    prefill: Json = {"role": "assistant", "content": [text("Sure,", cache_control=HOUR)]}
    request = ANTHROPIC.request(PromptHead(system=None, memory="MEMORY"), [*carried, prefill], None)
    assert request["messages"][0]["content"] == [text("hi", cache_control=HOUR), text("tail")]
    assert request["system"] == [text("MEMORY", cache_control=HOUR)]


def test_system_messages_in_a_list_become_anthropics_system_blocks() -> None:
    system: list[Json] = [{"role": "system", "content": "Be kind."}, {"role": "system", "content": [text("Be brief.")]}]
    assert all(ANTHROPIC.is_system(wire) for wire in system)
    assert ANTHROPIC.request(PromptHead(system=system, memory=""), [], None)["system"] == [
        text("Be kind."),
        text("Be brief."),
    ]


def test_only_leading_system_or_developer_messages_are_the_system_prompt() -> None:
    assert [CHAT.is_system({"role": role, "content": ""}) for role in ("system", "developer", "user")] == [
        True,
        True,
        False,
    ]
    assert RESPONSES.is_system({"type": "message", "role": "developer", "content": ""})
    assert not RESPONSES.is_system({"type": "reasoning", "id": "rs_1", "summary": []})
