"""Formats and pairing, for generated conversations."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from provider_rules import faults
from strategies import WIRES, conversations, json_values, well_formed

from inmind.core.json import check_json
from inmind.core.messages import FORMATS
from inmind.core.messages.model import (
    OPENING_TEXT,
    Call,
    Image,
    Message,
    Opaque,
    ParsedMessage,
    PromptHead,
    Result,
    Text,
)
from inmind.core.messages.pairing import NO_RESULT_TEXT, ProviderList, to_provider_list

FORMAT_NAMES = st.sampled_from(list(FORMATS))


@pytest.mark.spec("D9")
@given(data=st.data(), name=FORMAT_NAMES)
def test_a_message_reads_the_same_after_writing(data: st.DataObject, name: str) -> None:
    format, wire = FORMATS[name], data.draw(WIRES[name])
    format.check(wire, field="messages[0]")
    message = format.read(wire)
    assume(format.is_sendable(wire, message))
    again = [format.read(written) for written in format.write([message])]
    assert [one for one in again if one.text != OPENING_TEXT] == [message]


@pytest.mark.spec("D7")
@given(messages=conversations(), name=FORMAT_NAMES)
def test_any_conversation_becomes_a_valid_provider_list(messages: list[ParsedMessage], name: str) -> None:
    arrangement = to_provider_list(messages, FORMATS[name])
    for place, wire in enumerate(arrangement.wires):
        FORMATS[name].check(wire, field=f"messages[{place}]")
    assert faults(name, arrangement.wires) == []


@pytest.mark.spec("D7")
@given(messages=conversations(), name=FORMAT_NAMES)
def test_a_valid_provider_list_is_not_changed_again(messages: list[ParsedMessage], name: str) -> None:
    format = FORMATS[name]
    once = to_provider_list(messages, format)
    twice = to_provider_list([ParsedMessage(name, wire, format.read(wire)) for wire in once.wires], format)
    assert [id(wire) for wire in twice.wires] == [id(wire) for wire in once.wires]
    assert (twice.left_out, twice.repairs) == ((), ())


@pytest.mark.spec("D7")
@given(data=st.data(), name=FORMAT_NAMES)
def test_a_valid_list_is_sent_as_the_same_objects(data: st.DataObject, name: str) -> None:
    format = FORMATS[name]
    messages = [ParsedMessage(name, wire, format.read(wire)) for wire in data.draw(well_formed(name))]
    assert faults(name, [parsed.wire for parsed in messages]) == []
    arrangement = to_provider_list(messages, format)
    assert [id(wire) for wire in arrangement.wires] == [id(parsed.wire) for parsed in messages]
    assert (arrangement.left_out, arrangement.repairs) == ((), ())


@pytest.mark.spec("D7")
@given(data=st.data(), name=FORMAT_NAMES)
def test_every_change_is_reported(data: st.DataObject, name: str) -> None:
    messages = data.draw(conversations(name))
    arrangement = to_provider_list(messages, FORMATS[name])
    if not (arrangement.left_out or arrangement.repairs):
        sent = [wire for wire in arrangement.wires if wire.get("content") != OPENING_TEXT]
        assert [id(wire) for wire in sent] == [id(parsed.wire) for parsed in messages]


@pytest.mark.spec("D7")
@given(data=st.data(), name=FORMAT_NAMES, cut=st.integers(0, 12))
def test_a_conversation_cut_anywhere_becomes_valid(data: st.DataObject, name: str, cut: int) -> None:
    format, wires = FORMATS[name], data.draw(well_formed(name))
    for part in (wires[:cut], wires[cut:]):
        arrangement = to_provider_list([ParsedMessage(name, wire, format.read(wire)) for wire in part], format)
        assert faults(name, arrangement.wires) == []


@pytest.mark.spec("D7")
@given(data=st.data(), name=FORMAT_NAMES, rest=conversations())
def test_messages_after_a_valid_prefix_can_be_arranged_separately(
    data: st.DataObject, name: str, rest: list[ParsedMessage]
) -> None:
    format = FORMATS[name]
    settled = [ParsedMessage(name, wire, format.read(wire)) for wire in data.draw(well_formed(name))]
    whole = to_provider_list([*settled, *rest], format)
    assert whole.wires == [parsed.wire for parsed in settled] + to_provider_list(rest, format, is_start=False).wires


@pytest.mark.spec("D9")
@given(data=st.data(), name=FORMAT_NAMES, other=FORMAT_NAMES)
def test_conversion_to_another_format_and_back_keeps_the_content(data: st.DataObject, name: str, other: str) -> None:
    target, source = FORMATS[other], FORMATS[name]
    messages = [ParsedMessage(name, wire, source.read(wire)) for wire in data.draw(well_formed(name))]
    converted = to_provider_list(messages, target)
    returned = to_provider_list([ParsedMessage(other, wire, target.read(wire)) for wire in converted.wires], source)
    assert converted.left_out == returned.left_out == ()
    assert converted.repairs == returned.repairs == ()
    assert parts_by_role(source.read(wire) for wire in returned.wires) == parts_by_role(
        parsed.message for parsed in messages
    )


@pytest.mark.spec("D9")
@given(messages=conversations(), name=FORMAT_NAMES)
def test_every_part_is_sent_or_reported(messages: list[ParsedMessage], name: str) -> None:
    before = copy.deepcopy(messages)
    arrangement = to_provider_list(messages, FORMATS[name])
    assert messages == before
    given_parts = [part for parsed in messages for part in parsed.message.parts]
    sent = [part for wire in arrangement.wires for part in FORMATS[name].read(wire).parts]
    assert calls_in(sent) == calls_in(given_parts)
    assert_results_accounted_for(given_parts, sent, arrangement)
    everything_sent = json.dumps(arrangement.wires, ensure_ascii=False)
    for part in given_parts:
        if isinstance(part, Text) and part.text.strip():
            assert json.dumps(part.text, ensure_ascii=False)[1:-1] in everything_sent
    if not any(isinstance(part, Result) for part in given_parts):
        special = [part for part in given_parts if isinstance(part, Image | Opaque)]
        assert len(special) == sum(isinstance(part, Image | Opaque) for part in sent) + len(arrangement.left_out)


@pytest.mark.spec("D4")
@given(
    marked=st.lists(st.integers(0, 5), unique=True, max_size=4).map(sorted), hours=st.integers(0, 4), tail=st.booleans()
)
def test_no_cache_mark_follows_one_with_a_shorter_lifetime(marked: list[int], hours: int, tail: bool) -> None:
    """Our marks keep an order that Anthropic accepts, for any valid marks of the host."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "x"} for _ in range(6)]
    for place in marked:
        ttl = "1h" if place in marked[:hours] else "5m"
        blocks[place] |= {"cache_control": {"type": "ephemeral", "ttl": ttl}}
    tool, system, *contents = blocks
    roles = ("user", "assistant", "user", "assistant")
    wires = [{"role": role, "content": [block]} for role, block in zip(roles, contents, strict=True)]
    anthropic = FORMATS["anthropic"]
    with_tail = anthropic.add_tail(wires, "tail") if tail else None
    request = anthropic.request(PromptHead(system=[system], memory="MEMORY"), with_tail or wires, [tool])
    messages = [block for wire in request["messages"] for block in wire["content"]]
    marks = [block.get("cache_control") for block in (*request["tools"], *request["system"], *messages)]
    ttls = [mark.get("ttl", "5m") for mark in marks if mark]
    assert ttls == sorted(ttls)
    assert len(ttls) <= 4


@given(value=json_values())
def test_every_json_value_is_accepted(value: Any) -> None:
    check_json(value, "messages[0]")
    assert json.loads(json.dumps(value)) == value


def parts_by_role(messages: Iterable[Message]) -> list[tuple[str, object]]:
    """Roles and parts of messages; formats differ in how they group parts."""
    return [
        ("result", part) if isinstance(part, Result) else (message.role, part)
        for message in messages
        for part in sorted(message.parts, key=lambda part: isinstance(part, Call))
    ]


def calls_in(parts: Iterable[Any]) -> Counter[str]:
    return Counter(f"{part.name} {as_json(part.arguments)}" for part in parts if isinstance(part, Call))


def as_json(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def assert_results_accounted_for(given_parts: Sequence[Any], sent: Sequence[Any], arrangement: ProviderList) -> None:
    results = [part for part in given_parts if isinstance(part, Result)]
    answers = [part for part in sent if isinstance(part, Result) and NO_RESULT_TEXT not in str(part.parts)]
    reported = [one for one in arrangement.left_out if one.what.startswith("the result of call")]
    assert len(results) == len(answers) + len(reported)
    everything_sent = str([part.parts for part in answers])
    refused = {one.what for one in reported}
    for result in results:
        if f"the result of call {result.id!r}" not in refused:
            for part in result.parts:
                if isinstance(part, Text) and part.text.strip():
                    assert repr(part.text)[1:-1] in everything_sent
