"""Copies of replies in a host's list are recognized, and other messages are not."""

from __future__ import annotations

from typing import Any

import pytest
from builders import assistant, user

from inmind import Session

Json = dict[str, Any]


def reply(number: int, **more: Any) -> Json:
    """A reply with the same text as the others."""
    content: list[Json] = [{"type": "output_text", "text": "Done.", "annotations": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content, **more}


@pytest.fixture
def recorded(session: Session) -> list[Json]:
    """Two questions and their replies, as the session has them."""
    messages: list[Json] = []
    for number in (1, 2):
        messages.append(user(f"question {number}"))
        session.prepare(messages, format="responses")
        session.record([reply(number)], format="responses")
        messages.append(reply(number))
    return messages


def sent_ids(session: Session, messages: list[Json]) -> list[str]:
    """The ids of the items sent, or their roles if they have no id."""
    items = session.prepare(messages, format="responses").messages
    return [item.get("id") or item["role"] for item in items]


SUMMARY = [user("in short"), assistant("I see.")]


@pytest.mark.spec("D4", "D7")
@pytest.mark.parametrize("nulls", [{}, {"phase": None}], ids=["", "with nulls"])
def test_a_reply_is_not_mistaken_for_an_equal_one_at_its_place(
    session: Session, recorded: list[Json], nulls: Json
) -> None:
    kept = [{**wire, **nulls} if "id" in wire else wire for wire in recorded]
    assert sent_ids(session, [*SUMMARY, *kept, user("and now")]) == [
        "user",
        "assistant",
        "user",
        "msg_1",
        "user",
        "msg_2",
        "user",
    ]


@pytest.mark.spec("D7")
def test_bare_text_gets_a_reply_id_only_after_the_same_message(session: Session, recorded: list[Json]) -> None:
    bare = [assistant("Done.") if "id" in wire else wire for wire in recorded]
    assert sent_ids(session, [*bare, user("and now")]) == ["user", "msg_1", "user", "msg_2", "user"]
    assert sent_ids(session, [*SUMMARY, *bare, user("and now")]) == ["user", "assistant"] * 3 + ["user"]


@pytest.mark.spec("D4")
def test_after_an_edit_a_reply_is_still_recognized_by_its_id(session: Session, recorded: list[Json]) -> None:
    edited = [user("another question"), {**recorded[1], "phase": None}, *recorded[2:]]
    session.prepare([*edited, user("and now")], format="responses")
    assert [entry.wire for entry in session.state.conversation][1] == recorded[1]
