"""A host that drops the oldest turns when its window is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.replay import Recording
from inmind.apps.replay.baseline import TokenSizes, TruncatingHost
from inmind.errors import ContextOverflow

pytestmark = pytest.mark.spec("I8")


def a_turn(number: int, words: int = 20) -> list[dict[str, Any]]:
    text = "word " * words
    return [user(f"do {number} {text}"), a_call(f"c{number}"), a_result(f"c{number}", text), assistant(f"done {text}")]


def a_recording(*turns: list[dict[str, Any]], format: str = "openai") -> Recording:
    return Recording(name="r", format=format, messages=[message for turn in turns for message in turn])


def a_window(sizes: TokenSizes, spendable: int, stop: int) -> Callable[[int], int]:
    """A call that returns its start index if the messages fit."""

    def send(start: int) -> int:
        needed = sizes.head + sizes.between(start, stop)
        if needed > spendable:
            raise ContextOverflow(needed=needed, spendable=spendable)
        return start

    return send


def test_turns_begin_at_user_messages_without_results() -> None:
    assert TokenSizes(a_recording([assistant("Hi!")], a_turn(1), a_turn(2))).turn_starts == [0, 1, 5]
    result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
    text = {"type": "text", "text": "and now"}
    messages = [user("Hi"), assistant("…"), {"role": "user", "content": [result, text]}, user("Next")]
    assert TokenSizes(a_recording(messages, format="anthropic")).turn_starts == [0, 3]


def test_a_conversation_that_fits_is_sent_whole() -> None:
    recording = a_recording(a_turn(1), a_turn(2))
    sizes = TokenSizes(recording)
    host = TruncatingHost(sizes)
    assert host.call(7, a_window(sizes, 10_000, 7)) == 0
    assert (host.cost.cut_messages, host.cost.cut_tokens, host.cost.did_not_fit) == (0, 0, 0)


def test_the_oldest_turns_are_dropped_until_half_of_the_window_is_free() -> None:
    recording = a_recording(*[a_turn(number) for number in range(4)])
    sizes = TokenSizes(recording)
    host = TruncatingHost(sizes)
    spendable = sizes.between(0, 15) - 1
    assert host.call(15, a_window(sizes, spendable, 15)) == 8
    assert (host.cost.cut_messages, host.cost.cut_tokens) == (8, sizes.between(0, 8))
    assert sizes.between(8, 15) <= spendable // 2 < sizes.between(4, 15)


def test_the_active_turn_is_kept_and_a_call_that_it_overflows_is_counted() -> None:
    recording = a_recording(a_turn(1), a_turn(2, words=900), a_turn(3))
    sizes = TokenSizes(recording)
    host = TruncatingHost(sizes)
    assert host.call(7, a_window(sizes, 500, 7)) is None
    assert (host.start, host.cost.did_not_fit) == (4, 1)
    assert host.call(11, a_window(sizes, 500, 11)) == 8


@given(words=st.lists(st.integers(0, 60), min_size=1, max_size=8), spendable=st.integers(50, 800))
def test_a_host_starts_at_a_turn_and_drops_only_from_the_front(words: list[int], spendable: int) -> None:
    recording = a_recording(*[a_turn(number, size) for number, size in enumerate(words)])
    sizes = TokenSizes(recording)
    host, before = TruncatingHost(sizes), 0
    for stop in range(1, len(recording.messages) + 1):
        sent = host.call(stop, a_window(sizes, spendable, stop))
        assert host.start in sizes.turn_starts
        assert before <= host.start < stop
        assert sent is not None or host.start == max(turn for turn in sizes.turn_starts if turn < stop)
        before = host.start
    assert (host.cost.cut_messages, host.cost.cut_tokens) == (host.start, sizes.between(0, host.start))
