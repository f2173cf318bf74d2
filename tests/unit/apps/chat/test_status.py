"""The state of a conversation in a few lines that fit the terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.apps.chat.terminal import describe_exchange
from inmind.core.messages.model import Message, Text

pytestmark = pytest.mark.spec("I2")

LONG = "word " * 100


def an_exchange(question: str, *answers: str) -> list[Message]:
    return [Message("user", (Text(question),)), *(Message("assistant", (Text(answer),)) for answer in answers)]


def test_a_resumed_chat_shows_its_topic_and_last_exchange() -> None:
    answered = describe_exchange("Orders", an_exchange("Where is it?", "Late."), width=80)
    assert list(answered) == ["About: Orders", "Last: Where is it? → Late."]
    assert list(describe_exchange("", an_exchange("Where?"), width=80)) == ["Last: Where? → no answer yet: /retry"]
    assert list(describe_exchange("", [], width=80)) == []


@given(st.text(), st.text(), st.integers(60, 80))
def test_the_last_exchange_is_one_line_within_the_width(question: str, answer: str, width: int) -> None:
    for line in describe_exchange(LONG, an_exchange(question, answer), width=width):
        assert len(line) <= width
        assert "\n" not in line
