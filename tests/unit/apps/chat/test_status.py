"""The state of a conversation in a few lines that fit the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.status import describe_last_exchange, describe_other_changes
from inmind.apps.chat.turn import ChatExchange, OtherChanges

pytestmark = pytest.mark.spec("I2")

LONG = "word " * 100


def an_exchange(question: str, answer: str, *, answered: bool = True) -> ChatExchange:
    return ChatExchange(question=question, answer=answer, messages=2, is_from_this_chat=False, is_answered=answered)


@pytest.mark.parametrize(
    ("last", "line"),
    [
        (an_exchange("Where is it?", "Late."), "Last: Where is it? → Late."),
        (an_exchange("Where is it?", "Let me", answered=False), "Last: Where is it? → no answer yet: /retry"),
    ],
)
def test_a_resumed_chat_shows_its_topic_and_last_exchange(last: ChatExchange, line: str) -> None:
    assert list(describe_last_exchange("Orders", last, width=80)) == ["About: Orders", line]
    assert list(describe_last_exchange("", None, width=80)) == []


@given(st.text(), st.text(), st.booleans(), st.integers(30, 80))
def test_the_last_exchange_is_one_line_within_the_width(question: str, answer: str, answered: bool, width: int) -> None:
    for line in describe_last_exchange(LONG, an_exchange(question, answer, answered=answered), width=width):
        assert len(line) <= width
        assert "\n" not in line


def test_a_short_question_leaves_more_space_for_the_answer() -> None:
    _, line = describe_last_exchange("Orders", an_exchange("Where?", LONG), width=80)
    assert line.startswith("Last: Where? → word word")
    assert len(line) > 70


def test_changes_of_another_process_show_the_last_message() -> None:
    assert list(describe_other_changes(OtherChanges(), width=80)) == []
    [removal, added] = describe_other_changes(OtherChanges(messages=("One.", "Two.", LONG), removed=2), width=80)
    assert removal == "Another process removed 2 messages of this session."
    assert added.startswith("New from another process and 2 more: word word")
    assert len(added) <= 80
