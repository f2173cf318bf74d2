"""A conversation appends in constant time and is a value."""

from __future__ import annotations

from typing import Any

from builders import a_conversation, append_messages, splice_messages, turns, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.history.history import Conversation


def texts(line: Conversation) -> list[str]:
    return [entry.wire["content"] for entry in line]


def test_an_older_conversation_does_not_see_later_messages() -> None:
    older = a_conversation([user("a"), user("b")])
    newer = append_messages(older, [user("c")], seq=3)
    assert (texts(older), texts(newer)) == (["a", "b"], ["a", "b", "c"])


def test_two_conversations_can_branch_from_one() -> None:
    common = a_conversation([user("a")])
    one, other = append_messages(common, [user("l")], seq=2), append_messages(common, [user("r")], seq=2)
    assert (texts(one), texts(other)) == (["a", "l"], ["a", "r"])
    assert one.prefix_digest() != other.prefix_digest()


def test_a_splice_replaces_messages_by_the_last_ones() -> None:
    line = append_messages(a_conversation([user(x) for x in "abcde"]), [user("X"), user("Y")], seq=6)
    assert texts(splice_messages(line, 1, 4, 2)) == ["a", "X", "Y", "e"]


def test_indexing_stays_inside_the_conversation() -> None:
    older = a_conversation([user("a"), user("b")])
    append_messages(older, [user("c")], seq=3)
    assert [entry.wire["content"] for entry in older[1:10]] == ["b"]
    assert older[-1].wire == user("b")


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.lists(st.text(max_size=2), max_size=3)), max_size=12)
)
def test_appends_and_splices_equal_the_same_on_a_list(steps: list[tuple[int, int, list[str]]]) -> None:
    line, model, seq = Conversation(), list[dict[str, Any]](), 1
    for a, b, words in steps:
        new = [user(word) for word in words]
        before = len(model)
        start, stop = sorted((min(a, before), min(b, before)))
        line = splice_messages(append_messages(line, new, seq=seq), start, stop, len(new), seq=seq + len(new))
        model = [*model[:start], *new, *model[stop:]]
        seq += len(new) + 1
        assert line.wires == model
        assert line.prefix_digest() == a_conversation(model).prefix_digest()


@given(st.integers(0, 12))
def test_a_frozen_conversation_thaws_from_the_journal(cut_at: int) -> None:
    from builders import an_event

    from inmind.core.events.session import MessageAdded

    wires = turns(8)
    events = [an_event(MessageAdded(wire=wire), seq) for seq, wire in enumerate(wires, start=1)]
    line = splice_messages(a_conversation(wires), min(cut_at, 10), 12, 0)
    thawed = Conversation.of_ranges(line.ranges(), events)
    assert (thawed.wires, thawed.prefix_digest()) == (line.wires, line.prefix_digest())
