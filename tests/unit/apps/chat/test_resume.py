"""Where a conversation stands is said in few lines, each of the width that there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.resume import told, where_it_was
from inmind.apps.chat.turn import Exchange, Meanwhile

pytestmark = pytest.mark.spec("I2")

LONG = "word " * 100


def an_exchange(said: str, answer: str, *, answered: bool = True) -> Exchange:
    return Exchange(said=said, answer=answer, messages=2, here=False, answered=answered)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (an_exchange("Where is it?", "Late."), "Last: Where is it? → Late."),
        (an_exchange("Where is it?", "Let me", answered=False), "Last: Where is it? → not answered yet: /retry"),
    ],
)
def test_whoever_comes_back_is_told_what_it_is_about_and_how_it_ended(last: Exchange, said: str) -> None:
    assert list(where_it_was("Orders", last, width=80)) == ["About: Orders", said]
    assert list(where_it_was("", None, width=80)) == []


@given(st.text(), st.text(), st.booleans(), st.integers(30, 80))
def test_whatever_was_said_last_is_one_line_of_the_width_there_is(
    said: str, answer: str, answered: bool, width: int
) -> None:
    for line in where_it_was(LONG, an_exchange(said, answer, answered=answered), width=width):
        assert len(line) <= width
        assert "\n" not in line


def test_a_short_question_leaves_its_room_to_the_answer() -> None:
    _, line = where_it_was("Orders", an_exchange("Where?", LONG), width=80)
    assert line.startswith("Last: Where? → word word")
    assert len(line) > 70


def test_what_others_did_is_told_by_the_last_of_it() -> None:
    assert list(told(Meanwhile(), width=80)) == []
    [gone, said] = told(Meanwhile(said=("One.", "Two.", LONG), gone=2), width=80)
    assert gone == "Meanwhile elsewhere: 2 messages taken back in this session."
    assert said.startswith("Meanwhile elsewhere in this session and 2 more: word word")
    assert len(said) <= 80
