"""Live events, by example and against a model that replays everything from the start."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from builders import an_event, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events.base import Event, EventPayload
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.dreams import DreamUndone
from inmind.core.events.session import EntitiesEvicted, HistorySpliced, MessageAdded, Reverted
from inmind.search.crystal import live_sequence_numbers

pytestmark = pytest.mark.spec("H3", "A4")


def message(text: str = "hello") -> MessageAdded:
    return MessageAdded(wire=user(text))


def stream(*payloads: EventPayload) -> list[Event]:
    return [an_event(payload, seq) for seq, payload in enumerate(payloads, 1)]


def test_messages_are_live() -> None:
    assert live_sequence_numbers(stream(message(), message(), EntitiesEvicted(()))) == {1, 2, 3}


def test_an_undo_retracts_later_events_and_is_not_live_itself() -> None:
    assert live_sequence_numbers(stream(message(), message(), EntitiesEvicted(()), Reverted(1))) == {1}


def test_an_undo_of_an_undo_restores_everything() -> None:
    assert live_sequence_numbers(stream(message(), message(), Reverted(1), Reverted(2))) == {1, 2}


def test_undoing_an_undo_retracts_the_messages_after_it() -> None:
    assert live_sequence_numbers(stream(message(), message(), Reverted(1), message(), Reverted(2))) == {1, 2}


def test_an_undo_to_an_earlier_undo_restores_its_state() -> None:
    assert live_sequence_numbers(stream(message(), message(), Reverted(1), message(), message(), Reverted(3))) == {1}


def test_everything_can_be_retracted() -> None:
    assert live_sequence_numbers(stream(message(), message(), Reverted(0))) == set()


@pytest.mark.spec("G13")
def test_undoing_a_dream_retracts_only_its_crystals() -> None:
    crystal, note = CrystalCreated("Ada likes tea"), NoteAdded("Ada likes coffee")
    undone = DreamUndone(
        dream=1,
        previous_dream=0,
        last_seq=0,
        journal_position=0,
        crystals=("session/s#1", "session/s#2", "session/other#3"),
    )
    assert live_sequence_numbers(stream(crystal, crystal, note, undone)) == {3}


@pytest.mark.spec("G13")
def test_the_undo_of_a_dream_can_be_undone() -> None:
    undone = DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=("session/s#1",))
    assert live_sequence_numbers(stream(CrystalCreated("Ada likes tea"), undone, Reverted(1))) == {1}


def test_a_regenerated_answer_replaces_the_first_one() -> None:
    question, answer, another = message(), message(), message()
    assert live_sequence_numbers(stream(question, answer, another, HistorySpliced(1, 2, 1))) == {1, 3}


def test_a_removed_last_answer_is_retracted() -> None:
    question, answer, another = message(), message(), message()
    assert live_sequence_numbers(stream(question, answer, HistorySpliced(1, 2, 0), another)) == {1, 4}


def test_messages_dropped_from_the_front_stay_live() -> None:
    assert live_sequence_numbers(stream(message(), message(), message(), HistorySpliced(0, 2, 0))) == {1, 2, 3}


def test_messages_replaced_by_a_summary_stay_live() -> None:
    summary = message()
    assert live_sequence_numbers(stream(message(), message(), message(), summary, HistorySpliced(0, 2, 1))) == {
        1,
        2,
        3,
        4,
    }


def test_messages_dropped_from_the_middle_stay_live() -> None:
    assert live_sequence_numbers(stream(message(), message(), message(), message(), HistorySpliced(1, 3, 0))) == {
        1,
        2,
        3,
        4,
    }


def test_an_undo_of_an_edit_restores_the_original() -> None:
    assert live_sequence_numbers(stream(message(), message(), message(), HistorySpliced(1, 2, 1), Reverted(2))) == {
        1,
        2,
    }


def test_splice_positions_refer_to_the_conversation_at_that_time() -> None:
    dropped = stream(message(), message(), message(), HistorySpliced(0, 2, 0), message(), HistorySpliced(1, 2, 0))
    assert live_sequence_numbers(dropped) == {1, 2, 3}


def test_only_some_kinds_of_a_stream_are_needed() -> None:
    events = stream(message(), EntitiesEvicted(()), message(), EntitiesEvicted(()), message(), Reverted(4), message())
    messages = [event for event in events if not isinstance(event.payload, EntitiesEvicted)]
    assert live_sequence_numbers(messages) == live_sequence_numbers(events) - {2, 4}


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    payloads: list[EventPayload] = []
    for seq in range(1, draw(st.integers(1, 25)) + 1):
        match draw(st.sampled_from(["message", "message", "message", "eviction", "splice", "undo"])):
            case "message":
                payloads.append(message())
            case "eviction":
                payloads.append(EntitiesEvicted(()))
            case "undo":
                payloads.append(Reverted(draw(st.integers(0, seq - 1))))
            case _:
                line, _ = replay(stream(*payloads))
                inserted = draw(st.integers(0, min(2, len(line))))
                start = draw(st.integers(0, len(line) - inserted))
                payloads.append(HistorySpliced(start, draw(st.integers(start, len(line) - inserted)), inserted))
    return stream(*payloads)


def replay(events: Sequence[Event]) -> tuple[list[int], set[int]]:
    """The conversation and the retracted events, computed again for every undo."""
    line: list[int] = []
    retracted: set[int] = set()
    for event in events:
        match event.payload:
            case Reverted(to=to):
                line, retracted_before = replay(events[:to])
                retracted = retracted_before | set(range(to + 1, event.seq))
            case MessageAdded():
                line = [*line, event.seq]
            case HistorySpliced(start=start, stop=stop, inserted=inserted):
                end = len(line) - inserted
                if stop == end and start > 0:
                    retracted = retracted | set(line[start:end])
                line = line[:start] + line[end:] + line[stop:end]
            case _:
                pass
    return line, retracted


@given(events=histories())
def test_live_events_equal_those_of_a_full_replay(events: list[Event]) -> None:
    _, retracted = replay(events)
    indexed = {event.seq for event in events if not isinstance(event.payload, Reverted | HistorySpliced)}
    assert live_sequence_numbers(events) == indexed - retracted
