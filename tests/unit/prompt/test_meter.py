"""context_meta and token counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_conversation, a_result, append_messages, assistant, turns, user
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.tokens import TOKENS_PER_IMAGE, TOKENS_PER_MESSAGE, Counter, estimator
from inmind.history.compaction.select import select_requested
from inmind.history.turns import TurnMessage, to_turn_message
from inmind.history.view import TokenMeter, ViewBuilder, band_for
from inmind.prompt.render import (
    MIN_NAMED_TOKENS,
    MeterReading,
    name_largest,
    render_context_meta,
    reserved_meta_tokens,
)
from inmind.prompt.templates import WORDING


@pytest.mark.spec("D5")
@each_row(
    ("percent", "name"),
    [
        (0, "normal"),
        (19.9, "normal"),
        (20, "light_compression"),
        (40, "medium_compression"),
        (60, "heavy_compression"),
        (75, "heavy_compression"),
        (75.1, "emergency_compression"),
        (300, "emergency_compression"),
    ],
)
def test_each_band_has_its_hint(percent: float, name: str) -> None:
    assert band_for(percent) == name


def reading(used: int = 45_000) -> MeterReading:
    return MeterReading(tokens_used=used, tokens_max=128_000, messages=42, memory_size=2_400)


@pytest.mark.spec("D11")
def test_context_meta_is_short_while_less_than_half_is_used() -> None:
    sizes = [estimator()(render_context_meta(reading(used), WORDING, [])) for used in (500, 20_000, 45_000, 63_999)]
    assert max(sizes[:2]) <= 61
    assert max(sizes) <= 72


@pytest.mark.spec("D5")
def test_context_meta_is_json_and_a_reminder() -> None:
    opening, numbers, reminder, closing = render_context_meta(reading(), WORDING, []).split("\n")
    assert (opening, closing) == ("<context_meta>", "</context_meta>")
    assert json.loads(numbers) == {
        "tokens_used": 45_000,
        "tokens_max": 128_000,
        "tokens_percent": 35,
        "messages_in_history": 42,
        "working_memory_size": 2_400,
        "action_hint": "light_compression",
    }
    assert reminder == f"{WORDING['light_compression']} {WORDING['reminder']}"


@pytest.mark.spec("D5")
def test_above_half_the_reminder_is_stronger_and_lists_the_largest_messages() -> None:
    text = render_context_meta(reading(70_000), WORDING, ["tool result 3 (900 tokens)"])
    assert WORDING["reminder_strong"] in text
    assert "tool result 3 (900 tokens)" in text


@pytest.mark.parametrize("count", [estimator(), len])
def test_reserved_tokens_cover_context_meta_for_any_counter(count: Counter) -> None:
    meter = TokenMeter(count)
    assert count(render_context_meta(reading(), WORDING, [])) <= reserved_meta_tokens(meter, reading(), WORDING)
    largest = ["tool result 234 (12345 tokens)"] * 3
    assert count(render_context_meta(reading(127_000), WORDING, largest)) <= reserved_meta_tokens(
        meter, reading(127_000), WORDING
    )


def sent(*wires: dict[str, Any]) -> list[TurnMessage]:
    meter, read = TokenMeter(estimator()), ViewBuilder().read_message
    return [to_turn_message(entry, read(entry), meter) for entry in a_conversation(list(wires))]


@pytest.mark.spec("D5")
def test_only_messages_that_compact_history_would_take_are_named() -> None:
    talk = [user("x " * 800), a_call("c1"), a_result("c1", "y " * 1_500), assistant("z " * 300), user("now " * 2_000)]
    assert [seq for seq, _ in name_largest(sent(*talk), room=8_000)] == [3, 1]
    unread = [user("look"), a_call("c1"), a_result("c1", "y " * 9_500)]
    assert name_largest(sent(*unread), room=20_000) == ()
    assert [seq for seq, _ in name_largest(sent(*unread, assistant("Done.")), room=20_000)] == [3]


@pytest.mark.spec("D5")
@given(st.lists(st.integers(1, 600), max_size=12), st.integers(1_000, 200_000))
def test_whatever_is_named_is_large_and_would_be_archived(sizes: list[int], room: int) -> None:
    talk = [wire for at, size in enumerate(sizes) for wire in (user("a"), assistant("word " * size), user(f"{at}"))]
    messages = sent(*talk)
    archived = {messages[place].seq for place in select_requested(messages, target="all", keep_recent=0).changed}
    for seq, tokens in name_largest(messages, room):
        assert seq in archived
        assert tokens >= max(MIN_NAMED_TOKENS, 0.05 * room - 1)


def test_a_message_sent_repeatedly_is_counted_once() -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return len(text)

    meter, line = TokenMeter(count), a_conversation(turns(3))
    first = meter.count_history(line)
    assert meter.count_history(line) == first
    assert len(texts) == len(line)
    meter.count_history(append_messages(line, [user("one more")], seq=50))
    assert len(texts) == len(line) + 1


def test_a_branched_conversation_is_counted_again() -> None:
    meter = TokenMeter(len)
    common = a_conversation([user("a")])
    assert meter.count_history(append_messages(common, [user("long " * 9)], seq=2)) > meter.count_history(
        append_messages(common, [user("b")], seq=2)
    )
    assert meter.count_history(append_messages(common, [user("b"), user("c")], seq=2)) == 3 * (1 + TOKENS_PER_MESSAGE)


def test_an_image_is_not_counted_by_its_bytes() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    line = a_conversation([{"role": "user", "content": [{"type": "text", "text": "see"}, picture]}])
    assert TokenMeter(len).count_history(line) == TOKENS_PER_MESSAGE + 3 + TOKENS_PER_IMAGE
