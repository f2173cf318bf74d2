"""New messages in a host's list, for any kind of edit."""

from __future__ import annotations

from typing import Any

from builders import a_conversation, append_messages, assistant, splice_messages, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.history.sync import find_appended, match_messages

KNOWN = [user("a"), assistant("b"), user("c"), assistant("d")]


def test_messages_after_the_known_ones_are_new() -> None:
    sync = match_messages(a_conversation(KNOWN), [*KNOWN, user("e")])
    assert (sync.has_edit, list(sync.appended)) == (False, [user("e")])


def test_an_unchanged_list_adds_nothing() -> None:
    sync = match_messages(a_conversation(KNOWN), KNOWN)
    assert (sync.has_edit, list(sync.appended)) == (False, [])


def test_a_regenerated_answer_is_a_branch() -> None:
    sync = match_messages(a_conversation(KNOWN), [*KNOWN[:3], assistant("D")])
    assert (sync.start, sync.stop, list(sync.inserted), list(sync.appended)) == (3, 4, [assistant("D")], [])


def test_a_shortened_list_is_a_branch_with_nothing_new() -> None:
    sync = match_messages(a_conversation(KNOWN), KNOWN[:2])
    assert (sync.start, sync.stop, list(sync.inserted)) == (2, 4, [])


def test_a_trimmed_beginning_keeps_the_other_known_messages() -> None:
    sync = match_messages(a_conversation(KNOWN), [*KNOWN[2:], user("e")])
    assert (sync.start, sync.stop, list(sync.inserted), list(sync.appended)) == (0, 2, [], [user("e")])


def test_a_summary_in_front_replaces_the_removed_messages() -> None:
    sync = match_messages(a_conversation(KNOWN), [user("summary"), *KNOWN[2:], user("e")])
    assert (sync.start, sync.stop, list(sync.inserted), list(sync.appended)) == (0, 2, [user("summary")], [user("e")])


def test_an_edit_in_the_middle_replaces_only_that_message() -> None:
    sync = match_messages(a_conversation(KNOWN), [KNOWN[0], assistant("B"), *KNOWN[2:]])
    assert (sync.start, sync.stop, list(sync.inserted), list(sync.appended)) == (1, 2, [assistant("B")], [])


def test_the_order_of_keys_is_not_an_edit() -> None:
    sync = match_messages(a_conversation(KNOWN), [{"content": "a", "role": "user"}, *KNOWN[1:]])
    assert not sync.has_edit


MESSAGES = st.lists(st.sampled_from("abcd").map(user), max_size=9)


@given(known=MESSAGES, host=MESSAGES)
def test_the_conversation_becomes_any_list_of_the_host(known: list[dict[str, Any]], host: list[dict[str, Any]]) -> None:
    line = a_conversation(known)
    sync = match_messages(line, host)
    assert (find_appended(line, host) is None) == sync.has_edit
    line = append_messages(line, list(sync.inserted), seq=100)
    line = splice_messages(line, sync.start, sync.stop, len(sync.inserted), seq=200)
    line = append_messages(line, list(sync.appended), seq=300)
    assert line.wires == host
