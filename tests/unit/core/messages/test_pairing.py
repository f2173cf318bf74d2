from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from provider_rules import faults
from tables import each_row

from inmind.core.messages import FORMATS
from inmind.core.messages.model import ParsedMessage, Wire
from inmind.core.messages.pairing import ProviderList, to_provider_list

pytestmark = pytest.mark.spec("D7")

Json = dict[str, Any]


def provider_list(name: str, *wires: Json, source: str | None = None) -> ProviderList:
    read = FORMATS[source or name].read
    return to_provider_list([ParsedMessage(source or name, wire, read(wire)) for wire in wires], FORMATS[name])


def same_objects(sent: Sequence[Wire], *given: Json) -> bool:
    return [id(wire) for wire in sent] == [id(wire) for wire in given]


def call_message(*ids: str) -> Json:
    function = {"name": "get_page", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": function} for id in ids],
    }


def answer(id: str, text: str = "ok") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


def user(text: str = "hello") -> Json:
    return {"role": "user", "content": text}


def tool_use(*ids: str) -> Json:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": "get_page", "input": {}} for id in ids],
    }


def tool_result(*ids: str, text: str = "") -> Json:
    blocks: list[Json] = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in ids]
    return {"role": "user", "content": [*blocks, *([{"type": "text", "text": text}] if text else [])]}


def function_call(id: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "get_page", "arguments": "{}"}


def reasoning(id: str = "rs_1") -> Json:
    return {"type": "reasoning", "id": id, "summary": []}


def computer_call(id: str = "x") -> Json:
    return {"type": "computer_call", "id": "cu_1", "call_id": id, "action": {"type": "screenshot"}}


def computer_output(id: str = "x") -> Json:
    return {"type": "computer_call_output", "call_id": id, "output": {"type": "computer_screenshot"}}


def function_output(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "ok"}


def test_a_call_without_a_result_gets_a_placeholder() -> None:
    call, next_message = call_message("a", "b"), user()
    arrangement = provider_list("openai", call, answer("b"), next_message)
    assert arrangement.wires == [
        call,
        answer("b"),
        answer("a", "Error: (no result: the call was not answered)"),
        next_message,
    ]
    assert arrangement.wires[0] is call
    assert arrangement.wires[-1] is next_message
    [repair] = arrangement.repairs
    assert "'a' to get_page has no result" in repair


def test_a_late_result_is_moved_to_its_call() -> None:
    given = [user(), call_message("a"), user("are you there?"), answer("a", "late")]
    arrangement = provider_list("openai", *given)
    assert arrangement.wires == [given[0], given[1], given[3], given[2]]
    assert arrangement.left_out == ()
    assert "late result" in arrangement.repairs[0]


def test_a_result_without_a_call_is_left_out_and_reported() -> None:
    arrangement = provider_list("openai", user(), answer("lost"), call_message("a"), answer("a"), answer("a", "again"))
    assert arrangement.wires == [user(), call_message("a"), answer("a")]
    assert [(item.what, item.reason, item.index) for item in arrangement.left_out] == [
        ("the result of call 'lost'", "no earlier call has this id", 1),
        ("the result of call 'a'", "its call already has a result", 4),
    ]


def test_call_ids_repeated_in_every_turn_are_matched_by_turn() -> None:
    given = [call_message("0"), answer("0", "first"), call_message("0"), answer("0", "second")]
    assert same_objects(provider_list("openai", *given).wires, *given)
    converted = provider_list("anthropic", user(), *given, source="openai")
    assert faults("anthropic", converted.wires) == []
    assert [block["id"] for wire in converted.wires[1::2] for block in wire["content"]] == ["0", "0_2"]


def test_older_function_calls_become_tool_calls_only_if_unanswered() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "lookup", "arguments": "{}"}}
    given = [call, {"role": "function", "name": "lookup", "content": "ok"}]
    assert same_objects(provider_list("openai", *given).wires, *given)
    modern, placeholder = provider_list("openai", call).wires
    assert modern["tool_calls"][0]["id"] == "lookup"
    assert placeholder["tool_call_id"] == "lookup"


def test_images_of_results_follow_after_all_results() -> None:
    picture = {"type": "input_image", "image_url": "https://example.com/a.png"}
    given: list[Json] = [
        function_call("a"),
        function_call("b"),
        {"type": "function_call_output", "call_id": "a", "output": [picture]},
        function_output("b"),
    ]
    call, first, second, pictures = provider_list("openai", *given, source="responses").wires
    assert [call_wire["id"] for call_wire in call["tool_calls"]] == ["a", "b"]
    assert (first, second) == (answer("a", ""), answer("b"))
    assert pictures["content"] == [
        {"type": "text", "text": "Images in the result of a:"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]


def test_images_come_last_even_if_other_results_stay_unchanged() -> None:
    picture = {"type": "input_image", "image_url": "https://example.com/a.png"}
    output = {"type": "function_call_output", "call_id": "a", "output": [picture]}
    chat, responses = FORMATS["openai"], FORMATS["responses"]
    entries = [
        ParsedMessage("openai", call_message("a", "b"), chat.read(call_message("a", "b"))),
        ParsedMessage("responses", output, responses.read(output)),
        ParsedMessage("openai", answer("b"), chat.read(answer("b"))),
    ]
    assert faults("openai", to_provider_list(entries, chat).wires) == []


def test_anthropic_gets_all_results_of_a_turn_in_one_message() -> None:
    given = [user(), tool_use("a", "b"), tool_result("a"), tool_result("b", text="and now?")]
    arrangement = provider_list("anthropic", *given)
    assert arrangement.wires == [given[0], given[1], tool_result("a", "b", text="and now?")]
    assert arrangement.repairs == ("the results for message 1 were joined into one message",)


def test_an_interruption_leaves_the_users_message_unchanged() -> None:
    given = [user(), tool_use("a"), user("never mind")]
    first, call, placeholder, message = provider_list("anthropic", *given).wires
    assert same_objects([first, call, message], *given)
    [block] = placeholder["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("a", True)


def test_anthropic_gets_results_before_text() -> None:
    backwards = {"role": "user", "content": [{"type": "text", "text": "see:"}, *tool_result("a")["content"]]}
    arrangement = provider_list("anthropic", user(), tool_use("a"), backwards)
    assert arrangement.wires[-1] == tool_result("a", text="see:")
    assert "message 2 was rewritten" in arrangement.repairs[0]


@pytest.mark.parametrize("content", ["", [], [{"type": "text", "text": " "}]])
def test_an_empty_answer_of_anthropic_is_not_sent_back_empty(content: str | list[Json]) -> None:
    arrangement = provider_list("anthropic", user(), {"role": "assistant", "content": content}, user())
    assert arrangement.wires[1] == {"role": "assistant", "content": "(empty)"}


def test_a_user_message_is_inserted_first_for_anthropic_even_without_other_repairs() -> None:
    greeting = {"role": "assistant", "content": "Welcome back."}
    opening, same = provider_list("anthropic", greeting).wires
    assert opening == user("(The conversation begins with the assistant.)")
    assert same is greeting


def test_a_converted_assistant_message_in_the_middle_gets_no_opening() -> None:
    first, reply = user(), {"role": "assistant", "content": "Hello."}
    entries = [ParsedMessage("anthropic", first, FORMATS["anthropic"].read(first))]
    entries.append(ParsedMessage("openai", reply, FORMATS["openai"].read(reply)))
    assert to_provider_list(entries, FORMATS["anthropic"]).wires == [first, reply]


def test_outputs_of_responses_may_be_anywhere_after_their_call() -> None:
    given = [function_call("a"), user("wait"), function_call("b"), function_output("b"), function_output("a")]
    assert same_objects(provider_list("responses", *given).wires, *given)


def test_a_placeholder_follows_the_last_item_of_the_assistant() -> None:
    given = [function_call("a"), function_call("b"), function_output("b")]
    arrangement = provider_list("responses", *given)
    assert [(wire["type"], wire["call_id"]) for wire in arrangement.wires] == [
        ("function_call", "a"),
        ("function_call", "b"),
        ("function_call_output", "a"),
        ("function_call_output", "b"),
    ]


def test_a_provider_tool_call_is_sent_only_with_its_output() -> None:
    call, output = computer_call(), computer_output()
    assert same_objects(provider_list("responses", call, output).wires, call, output)
    assert [item.what for item in provider_list("responses", user(), call).left_out] == ["responses computer_call"]
    assert [item.what for item in provider_list("responses", output).left_out] == ["responses computer_call_output"]


def test_a_request_to_the_host_is_sent_only_with_its_answer() -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "x", "name": "drop", "arguments": "{}"}
    consent = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert same_objects(provider_list("responses", request, consent).wires, request, consent)
    assert provider_list("responses", user(), request, user()).wires == [user(), user()]
    assert provider_list("responses", consent, request).wires == []


def test_reasoning_is_dropped_with_the_call_after_it() -> None:
    given = [user(), reasoning("rs_1"), reasoning("rs_2"), computer_call(), function_call("a"), function_output("a")]
    arrangement = provider_list("responses", *given)
    assert same_objects(arrangement.wires, given[0], *given[4:])
    assert [(item.what, item.reason, item.index) for item in arrangement.left_out] == [
        ("responses reasoning", "the item after it is missing", 1),
        ("responses reasoning", "the item after it is missing", 2),
        ("responses computer_call", "its request or answer is missing", 3),
    ]


def test_reasoning_before_a_dropped_output_is_dropped() -> None:
    answered = [reasoning("rs_2"), function_call("a"), function_output("a")]
    arrangement = provider_list("responses", reasoning("rs_1"), computer_output(), *answered)
    assert same_objects(arrangement.wires, *answered)
    assert [item.what for item in arrangement.left_out] == ["responses reasoning", "responses computer_call_output"]


def test_reasoning_stays_if_an_assistant_item_follows() -> None:
    reply = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    given = [reasoning("rs_1"), computer_call(), computer_output(), reasoning("rs_2"), reasoning("rs_3"), reply]
    assert same_objects(provider_list("responses", *given).wires, *given)


@pytest.mark.parametrize(
    ("wire", "sent"),
    [
        (
            {"role": "assistant", "content": "Hello", "tool_calls": []},
            {"role": "assistant", "content": "Hello"},
        ),
        (
            {"role": "assistant", "content": None, "tool_calls": [], "refusal": "No."},
            {"role": "assistant", "content": None, "refusal": "No."},
        ),
        (
            {"role": "assistant", "content": None, "reasoning_content": "Hm."},
            {"role": "assistant", "content": "", "reasoning_content": "Hm."},
        ),
    ],
)
def test_chat_messages_that_openai_would_refuse_are_rewritten(wire: Json, sent: Json) -> None:
    assert faults("openai", [wire]) != []
    arrangement = provider_list("openai", user(), wire)
    assert arrangement.wires == [user(), sent]
    assert arrangement.repairs == ("message 1 was rewritten: openai would refuse it",)


@each_row(
    "empty_fields", [{}, {"content": None}, {"content": []}, {"content": "", "tool_calls": []}, {"refusal": None}]
)
def test_an_empty_chat_answer_that_openai_would_refuse_is_left_out(empty_fields: Json) -> None:
    given = [user(), {"role": "assistant", **empty_fields}, user("are you there?")]
    assert faults("openai", given) != []
    arrangement = provider_list("openai", *given)
    assert same_objects(arrangement.wires, given[0], given[2])
    assert [(item.what, item.index) for item in arrangement.left_out] == [("an empty message", 1)]


def test_an_empty_chat_answer_that_openai_accepts_is_unchanged() -> None:
    given = [user(), {"role": "assistant", "content": ""}, user()]
    assert same_objects(provider_list("openai", *given).wires, *given)


def test_a_custom_call_gets_a_custom_result() -> None:
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}],
    }
    arrangement = provider_list("responses", call, answer("c", "1"), source="openai")
    assert arrangement.wires == [
        {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ]


def test_content_of_another_provider_is_left_out_and_reported() -> None:
    reply = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "Eqo="},
            {"type": "text", "text": "Done."},
        ],
    }
    arrangement = provider_list("openai", reply, source="anthropic")
    assert arrangement.wires == [{"role": "assistant", "content": "Done."}]
    [left_out] = arrangement.left_out
    assert (left_out.what, left_out.reason) == ("anthropic thinking", "only anthropic understands it")


REFUSED: list[tuple[str, list[Json]]] = [
    ("openai", [call_message("a")]),
    ("openai", [call_message("a"), user(), answer("a")]),
    ("openai", [answer("a")]),
    ("openai", [call_message("a"), answer("a"), answer("a")]),
    ("openai", [call_message("a", "a"), answer("a"), answer("a")]),
    ("openai", [{"role": "function", "name": "lookup", "content": "ok"}]),
    ("openai", [{"role": "assistant", "content": None}]),
    ("openai", [user(), {"role": "assistant", "content": "hello", "tool_calls": []}]),
    ("responses", [function_call("a")]),
    ("responses", [function_output("a"), function_call("a")]),
    ("responses", [function_call("a"), {**function_output("a"), "type": "custom_tool_call_output"}]),
    ("responses", [function_call("a"), function_call("a"), function_output("a"), function_output("a")]),
    ("responses", [reasoning()]),
    ("responses", [reasoning(), user()]),
    ("responses", [reasoning(), reasoning(), function_output("a")]),
    ("responses", [user(), reasoning(), computer_call()]),
    ("anthropic", [{"role": "assistant", "content": "hello"}]),
    ("anthropic", [user(""), user()]),
    ("anthropic", [user(), {"role": "assistant", "content": []}]),
    ("anthropic", [user(), tool_use("a")]),
    ("anthropic", [user(), tool_use("a"), user(), tool_result("a")]),
    ("anthropic", [user(), tool_use("a", "b"), tool_result("a"), tool_result("b")]),
    ("anthropic", [user(), tool_use("a"), tool_result("a"), tool_use("a"), tool_result("a")]),
    ("anthropic", [user(), tool_use("a.b"), tool_result("a.b")]),
    ("anthropic", [tool_result("a")]),
]


@each_row(("name", "wires"), REFUSED)
def test_an_invalid_list_is_detected_and_repaired(name: str, wires: list[Json]) -> None:
    assert faults(name, wires) != []
    assert faults(name, provider_list(name, *wires).wires) == []
