"""The sent messages follow from the conversation and the active compactions."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from builders import an_event, assistant, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.encoding import to_json
from inmind.core.events.base import Event, EventPayload
from inmind.core.events.session import (
    Compacted,
    CompactionUndone,
    HistorySpliced,
    MessageAdded,
    Retained,
    RetainedItem,
    Stub,
)
from inmind.history.history import History


def a_stub(*of: tuple[int, int], text: str = "archived") -> Stub:
    return Stub(message_ranges=of, messages=(user(text),), format="openai")


def compacted(*stubs: Stub, items: Sequence[RetainedItem] = ()) -> Compacted:
    return Compacted(target="all", reason="asked", stubs=stubs, items=tuple(items))


def apply_events(events: Sequence[EventPayload], history: History | None = None, *, seq: int = 1) -> History:
    """Apply events in order, numbered from `seq`."""
    state = history or History()
    for number, payload in enumerate(events, start=seq):
        state = state.apply(an_event(payload, number))
    return state


def messages(number: int) -> list[EventPayload]:
    return [MessageAdded(wire=(user if n % 2 else assistant)(f"message {n}")) for n in range(1, number + 1)]


def texts(history: History) -> list[str]:
    return [wire["content"].removeprefix("message ") for wire in history.sent.wires]


def thawed_history(history: History, events: Sequence[EventPayload]) -> History:
    """The same history, restored from a snapshot."""
    messages: list[Event] = [
        an_event(payload, seq) for seq, payload in enumerate(events, start=1) if isinstance(payload, MessageAdded)
    ]
    return History.thaw(json.loads(to_json(history.freeze())), messages)


@pytest.mark.spec("E3")
def test_a_stub_has_the_place_of_its_first_message() -> None:
    history = apply_events([*messages(6), compacted(a_stub((2, 3), (5, 5)))])
    assert texts(history) == ["1", "archived", "4", "6"]
    assert [(entry.seq, entry.is_stub) for entry in history.sent] == [(1, False), (2, True), (4, False), (6, False)]


@pytest.mark.spec("E9")
def test_a_compaction_never_changes_the_messages() -> None:
    history = apply_events([*messages(4), compacted(a_stub((1, 4)))])
    assert [entry.seq for entry in history.messages] == [1, 2, 3, 4]


@pytest.mark.spec("E9")
def test_without_compactions_the_messages_are_sent_unchanged() -> None:
    history = apply_events(messages(4))
    assert history.sent is history.messages


@pytest.mark.spec("E3")
def test_later_messages_are_sent_after_the_stub() -> None:
    history = apply_events([*messages(3), compacted(a_stub((1, 3))), MessageAdded(wire=user("later"))])
    assert texts(history) == ["archived", "later"]


@pytest.mark.spec("E3")
def test_a_later_compaction_includes_the_stub_of_an_earlier_one() -> None:
    history = apply_events(
        [*messages(4), compacted(a_stub((1, 2), text="first")), compacted(a_stub((1, 3), text="second"))]
    )
    assert texts(history) == ["second", "4"]


@pytest.mark.spec("E9")
def test_undoing_the_last_compaction_restores_the_one_before() -> None:
    history = apply_events(
        [
            *messages(4),
            compacted(a_stub((1, 2), text="first")),
            compacted(a_stub((1, 3), text="second")),
            MessageAdded(wire=user("later")),
            CompactionUndone(compaction_seq=6),
        ]
    )
    assert texts(history) == ["first", "3", "4", "later"]
    assert texts(apply_events([CompactionUndone(compaction_seq=5)], history, seq=9)) == ["1", "2", "3", "4", "later"]


@pytest.mark.spec("E9")
def test_a_message_replaced_by_the_host_is_sent_in_its_new_form() -> None:
    edited = MessageAdded(wire=user("edited"))
    history = apply_events(
        [*messages(4), compacted(a_stub((1, 3))), edited, HistorySpliced(start=1, stop=2, inserted=1)]
    )
    assert [entry.seq for entry in history.messages] == [1, 6, 3, 4]
    assert texts(history) == ["archived", "edited", "4"]


@pytest.mark.spec("E9")
def test_a_stub_is_removed_with_all_its_messages() -> None:
    history = apply_events([*messages(4), compacted(a_stub((1, 2))), HistorySpliced(start=0, stop=2, inserted=0)])
    assert texts(history) == ["3", "4"]


@pytest.mark.spec("E8")
def test_items_are_those_of_the_last_compaction_and_pinned_ones() -> None:
    rule, pin = RetainedItem("rule", "Never on Fridays.", 1), RetainedItem("pinned", "The launch is on Tuesday.")
    history = apply_events([*messages(2), Retained(pin), compacted(a_stub((1, 1)), items=[rule, pin])])
    assert history.items == (pin, rule)
    assert apply_events([Retained(pin, retain=False)], history, seq=5).items == (rule,)


@pytest.mark.spec("E8")
def test_the_same_text_is_pinned_once() -> None:
    pin = RetainedItem("pinned", "The launch is on Tuesday.")
    assert apply_events([Retained(pin), Retained(pin)]).items == (pin,)


@st.composite
def event_lists(draw: st.DrawFn) -> list[EventPayload]:
    """Messages, compactions of any of them, reversals and edits."""
    events: list[EventPayload] = messages(draw(st.integers(1, 6)))
    history = apply_events(events)
    for _ in range(draw(st.integers(0, 6))):
        seq, length = len(events) + 1, len(history.messages)
        kind = draw(st.sampled_from(["added", "compacted", "undone", "spliced"]))
        more: list[EventPayload] = []
        if kind == "added":
            more = [MessageAdded(wire=user(f"message {seq}"))]
        elif kind == "compacted" and length:
            seqs = sorted(entry.seq for entry in history.messages)
            first, last = sorted(draw(st.tuples(st.sampled_from(seqs), st.sampled_from(seqs))))
            more = [compacted(a_stub((first, last), text=f"stub {seq}"))]
        elif kind == "undone" and history.compactions:
            more = [CompactionUndone(compaction_seq=history.compactions[-1].seq)]
        elif kind == "spliced" and length:
            start = draw(st.integers(0, length - 1))
            stop = draw(st.integers(start, length))
            more = [MessageAdded(wire=user(f"message {seq}")), HistorySpliced(start=start, stop=stop, inserted=1)]
        history = apply_events(more, history, seq=seq)
        events += more
    return events


@pytest.mark.spec("A2", "E9")
@given(event_lists())
def test_a_snapshot_sends_what_the_fold_sends(events: list[EventPayload]) -> None:
    history = apply_events(events)
    thawed = thawed_history(history, events)
    assert list(thawed.sent) == list(history.sent)
    assert (thawed.compactions, thawed.items) == (history.compactions, history.items)


@pytest.mark.spec("E3", "E9")
@given(event_lists())
def test_every_message_is_sent_or_archived_exactly_once(events: list[EventPayload]) -> None:
    history = apply_events(events)
    sent = [entry.seq for entry in history.sent if not entry.is_stub]
    ranges = [run for one in history.compactions for stub in one.payload.stubs for run in stub.message_ranges]
    assert len(set(sent)) == len(sent)
    assert all(
        entry.seq in sent or any(first <= entry.seq <= last for first, last in ranges) for entry in history.messages
    )


@pytest.mark.spec("E9")
@given(event_lists())
def test_undoing_all_compactions_sends_the_messages(events: list[EventPayload]) -> None:
    history = apply_events(events)
    undone = [CompactionUndone(compaction_seq=one.seq) for one in reversed(history.compactions)]
    assert list(apply_events(undone, history, seq=1_000).sent) == list(history.messages)
