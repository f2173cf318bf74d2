"""A stub says where the archived text is, and is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from builders import a_conversation, a_result, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import parsed_messages
from tables import each_row

from inmind.core.encoding import digest_of
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, ParsedMessage, Text
from inmind.core.tokens import estimator
from inmind.history.compaction.message_records import (
    BLOCK_END,
    BLOCK_START,
    block_text,
    block_wires,
    cut_message,
    prune_outputs,
    pruned_pointer,
)
from inmind.history.history import ConversationEntry

PLACE = "archive/001:5-9"
POINTER = pruned_pointer(PLACE)
count = estimator()


def nothing(_: str, room: int) -> str:  # noqa: ARG001 -- the signature of cut_message
    return ""


def an_entry(one: ParsedMessage) -> ConversationEntry:
    return ConversationEntry(1, "session/s#1", one.format, one.wire, digest_of(one.wire))


def text_of(wires: Sequence[Any], format: str = "openai") -> str:
    messages = [FORMATS[format].read(wire) for wire in wires]
    parts = [part for message in messages for one in (message, *message.results) for part in one.parts]
    return "\n".join(part.text for part in parts if isinstance(part, Text))


@pytest.mark.spec("E3", "E8", "E10")
def test_a_stub_describes_the_archived_messages_and_their_calls() -> None:
    text = block_text(
        description="3 messages, archived: archive/001:5-9.",
        summary="It went well.",
        records=["- get_order(order_id #W1): status pending"],
        ids="pages: page-1",
    )
    assert text == (
        "<compacted_history>\n"
        "3 messages, archived: archive/001:5-9.\n"
        "It went well.\n"
        "Calls:\n"
        "- get_order(order_id #W1): status pending\n"
        "Also mentioned: pages: page-1\n"
        "</compacted_history>"
    )


@pytest.mark.spec("E3")
def test_a_stub_has_no_heading_without_records() -> None:
    assert block_text(description="x") == "<compacted_history>\nx\n</compacted_history>"


@pytest.mark.spec("E7", "J4")
@given(st.sampled_from([BLOCK_END, BLOCK_START, "</memory>", "< / compacted_history >"]))
def test_quoted_text_cannot_close_or_open_a_stub(tag: str) -> None:
    text = block_text(description="x", summary=tag, ids=tag)
    inside = text.removeprefix(BLOCK_START).removesuffix(BLOCK_END)
    assert "<" not in inside


@pytest.mark.spec("E6", "E10")
def test_a_pruned_result_has_the_same_call_id() -> None:
    (entry,) = a_conversation([a_result("c1", "row\n" * 500)])
    (wire,) = prune_outputs(entry, POINTER, lambda text: f"{POINTER}\n{text[:3]}")
    assert wire == {"role": "tool", "tool_call_id": "c1", "content": f"[pruned: {PLACE}]\nrow"}


@pytest.mark.spec("E6", "E10")
def test_output_of_a_command_is_pruned_as_a_message_of_the_user() -> None:
    (entry,) = a_conversation([user("row\n" * 500)])
    assert prune_outputs(entry, POINTER, lambda _: "a row") == (user("a row"),)


@pytest.mark.spec("E5")
def test_a_cut_message_keeps_its_start_and_end_and_names_its_archive() -> None:
    (entry,) = a_conversation([{"role": "user", "content": "\n".join(f"line {number}" for number in range(1_000))}])

    def name_ids(rest: str, room: int) -> str:
        return "pages: page-7" if "line 500" in rest and room == 50 else ""

    (wire,) = cut_message(entry, PLACE, name_ids, tokens=400, id_tokens=50, count=count)
    assert wire["content"].startswith("line 0\nline 1\n")
    assert f"\n[cut: all of it is in {PLACE}]\nIn the rest: pages: page-7\nline " in wire["content"]
    assert wire["content"].endswith("\nline 998\nline 999")
    (wire,) = cut_message(entry, PLACE, nothing, tokens=60, id_tokens=50, count=count)
    assert wire["content"].endswith(f"[cut: all of it is in {PLACE}]")  # the start of a message has the request


@pytest.mark.spec("E5")
def test_a_cut_output_keeps_its_last_lines_at_any_size() -> None:
    (entry,) = a_conversation([a_result("c1", "PASSED\n" * 3_000 + "FAILED test_7")])
    (wire,) = cut_message(entry, PLACE, nothing, tokens=60, id_tokens=50, count=count)
    assert wire["content"].startswith("PASSED\n")
    assert wire["content"].endswith("\nFAILED test_7")
    assert count(wire["content"]) < 100


FLIGHTS = [{"flight_number": f"HAT{n}", "status": "available", "note": "A remark. " * 20} for n in range(100, 160)]


@pytest.mark.spec("B11", "E10")
@each_row("tokens", [60, 150])
def test_a_cut_result_with_fields_keeps_its_record(tokens: int) -> None:
    (entry,) = a_conversation([a_result("c1", json.dumps(FLIGHTS))])
    (wire,) = cut_message(entry, PLACE, nothing, tokens=tokens, id_tokens=0, count=count)
    pointer, record = wire["content"].split("\n")
    assert pointer == f"[cut: all of it is in {PLACE}]"
    assert record.startswith("[flight_number HAT100, HAT101, ")
    assert re.search(r" … \(\d+ more\)$", record)
    assert count(record) <= tokens


LONG_PLAN = "A long plan. " * 200
CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "#W1"}'}}
TOOL_USE = {"type": "tool_use", "id": "c1", "name": "get_order", "input": {"order_id": "#W1"}}
WITH_CALL: list[tuple[str, dict[str, Any]]] = [
    ("openai", {"role": "assistant", "content": LONG_PLAN, "tool_calls": [CALL]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": LONG_PLAN}, TOOL_USE]}),
]


@pytest.mark.spec("E5", "E6")
@each_row("format, written", WITH_CALL)
def test_the_text_of_a_message_with_calls_is_cut_and_the_call_stays(format: str, written: dict[str, Any]) -> None:
    entry = ConversationEntry(1, "session/s#1", format, written, digest_of(written))
    (wire,) = cut_message(entry, PLACE, nothing, tokens=60, id_tokens=0, count=count)
    message = FORMATS[format].read(wire)
    assert json.loads(message.calls[0].arguments) == {"order_id": "#W1"}
    assert f"[cut: all of it is in {PLACE}]" in message.text
    assert count(message.text) < 100


@pytest.mark.spec("E5")
def test_a_message_cut_to_zero_tokens_still_names_its_archive() -> None:
    (entry,) = a_conversation([{"role": "user", "content": "word " * 1_000}])
    (wire,) = cut_message(entry, PLACE, nothing, tokens=0, id_tokens=0, count=count)
    assert wire["content"].endswith(f"[cut: all of it is in {PLACE}]")
    assert count(wire["content"]) < 40


@pytest.mark.spec("E6", "D9")
@given(parsed_messages())
def test_a_pruned_message_has_the_same_calls_and_results(one: ParsedMessage) -> None:
    wires = prune_outputs(an_entry(one), POINTER, lambda _: f"{POINTER}\nrecord")
    messages = [FORMATS[one.format].read(wire) for wire in wires]
    assert [call for message in messages for call in message.calls] == list(one.message.calls)
    ids = [result.id for message in messages for result in message.results]
    assert ids == [result.id for result in one.message.results]
    assert all(POINTER in text_of([wire], one.format) for wire in wires if FORMATS[one.format].read(wire).results)


@pytest.mark.spec("E10", "D9")
@given(parsed_messages())
def test_a_result_whose_text_stays_names_its_place_if_it_had_more_than_text(one: ParsedMessage) -> None:
    wires = prune_outputs(an_entry(one), POINTER, lambda text: text)
    results = [result for wire in wires for result in FORMATS[one.format].read(wire).results]
    for before, after in zip(one.message.results, results, strict=True):
        has_more = any(not isinstance(part, Text) for part in before.parts)
        text = "\n".join(part.text for part in after.parts if isinstance(part, Text))
        assert text.startswith(POINTER) == has_more


@pytest.mark.spec("E5", "E6")
@given(parsed_messages(), st.integers(0, 40))
def test_a_cut_message_has_the_results_of_the_same_calls(one: ParsedMessage, tokens: int) -> None:
    if one.message.calls:  # their texts are cut, their calls stay
        return
    wires = cut_message(an_entry(one), PLACE, nothing, tokens=tokens, id_tokens=20, count=count)
    messages = [FORMATS[one.format].read(wire) for wire in wires]
    assert [result.id for message in messages for result in message.results] == [
        result.id for result in one.message.results
    ]
    assert not any(isinstance(part, Call) for message in messages for part in message.parts)


@pytest.mark.spec("D9", "E3")
@each_row("format", sorted(FORMATS))
def test_a_stub_is_a_users_message_in_every_format(format: str) -> None:
    (wire,) = block_wires("archived", format)
    message = FORMATS[format].read(wire)
    assert (message.role, message.text) == ("user", "archived")
