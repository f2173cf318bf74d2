"""Where a conversation stands is said in few lines, each of the width that there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.status import describe_last_exchange, describe_other_changes
from inmind.apps.chat.turn import ChatExchange, OtherChanges

pytestmark = pytest.mark.spec("I2")

LONG = "word " * 100


def an_exchange(said: str, answer: str, *, answered: bool = True) -> ChatExchange:
    return ChatExchange(question=said, answer=answer, messages=2, is_from_this_chat=False, is_answered=answered)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (an_exchange("Where is it?", "Late."), "Last: Where is it? → Late."),
        (an_exchange("Where is it?", "Let me", answered=False), "Last: Where is it? → no answer yet: /retry"),
    ],
)
def test_a_resumed_chat_says_what_it_was_about_and_how_it_ended(last: ChatExchange, said: str) -> None:
    assert list(describe_last_exchange("Orders", last, width=80)) == ["About: Orders", said]
    assert list(describe_last_exchange("", None, width=80)) == []


@given(st.text(), st.text(), st.booleans(), st.integers(30, 80))
def test_whatever_was_said_last_is_one_line_of_the_width_there_is(
    said: str, answer: str, answered: bool, width: int
) -> None:
    for line in describe_last_exchange(LONG, an_exchange(said, answer, answered=answered), width=width):
        assert len(line) <= width
        assert "\n" not in line


def test_a_short_question_leaves_its_room_to_the_answer() -> None:
    _, line = describe_last_exchange("Orders", an_exchange("Where?", LONG), width=80)
    assert line.startswith("Last: Where? → word word")
    assert len(line) > 70


def test_what_others_did_is_told_by_the_last_of_it() -> None:
    assert list(describe_other_changes(OtherChanges(), width=80)) == []
    [gone, said] = describe_other_changes(OtherChanges(messages=("One.", "Two.", LONG), removed=2), width=80)
    assert gone == "Another process removed 2 messages of this session."
    assert said.startswith("New from another process and 2 more: word word")
    assert len(said) <= 80
