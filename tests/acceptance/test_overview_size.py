"""A too large overview is reported to the model once, until it is small again."""

from __future__ import annotations

import pytest
from builders import turns, user

from inmind import Prompt, Session
from inmind.documents.overview.page import SIZE_GOAL_BYTES

pytestmark = pytest.mark.spec("F1", "D4")

WARNING = "over the goal of 5 KB"
LINE = "- a fact that is known\n"
MAX_LINES = SIZE_GOAL_BYTES // len(LINE)
HISTORY = turns(60)
"""Enough messages that the prefix stays and changes go into the tail."""


def a_page(lines: int) -> str:
    return "# Facts\n" + LINE * lines


def parts(prompt: Prompt) -> tuple[str, str]:
    """The texts before the conversation, and after it."""
    return str(prompt.messages[0]), str(prompt.messages[-1])


def write_and_prepare(session: Session, page: str) -> tuple[str, str]:
    session.write("overview.md", page)
    return parts(session.prepare([*HISTORY, user("go on")]))


def test_a_too_large_overview_is_reported_in_the_next_prompt(session: Session) -> None:
    prefix, tail = write_and_prepare(session, a_page(MAX_LINES - 1))
    assert WARNING not in prefix + tail
    new_prefix, tail = write_and_prepare(session, a_page(MAX_LINES + 1))
    assert new_prefix == prefix
    assert tail.count(WARNING) == 1


def test_a_cut_overview_is_reported_although_its_visible_part_is_the_same(session: Session) -> None:
    wide = "- " + "很" * 1_000 + "\n"
    write_and_prepare(session, "# Facts\n" + wide)
    _, tail = write_and_prepare(session, "# Facts\n" + wide * 2)
    assert WARNING in tail


def test_a_growing_overview_is_reported_once(session: Session) -> None:
    prefix, _ = write_and_prepare(session, a_page(MAX_LINES + 1))
    assert prefix.count(WARNING) == 1
    for more in range(2, 6):
        prefix, tail = write_and_prepare(session, a_page(MAX_LINES + more))
        assert (prefix.count(WARNING), tail.count(WARNING)) == (1, 0)


def test_the_report_disappears_when_the_page_is_small_again(session: Session) -> None:
    prefix, _ = write_and_prepare(session, a_page(MAX_LINES + 1))
    assert WARNING in prefix
    _, tail = write_and_prepare(session, a_page(MAX_LINES - 20))
    assert f"- overview.md is {WARNING}" in tail


@pytest.mark.spec("F1", "F3", "F5")
def test_memorys_own_lines_never_make_the_overview_too_large(session: Session) -> None:
    for number in range(20):
        for kind in ("task_started", "decision_made", "bug_found", "context_changed", "task_completed"):
            session.event(kind, f"{kind} {number}: " + "words that say what it is about " * 6)
        session.write(f"detail/{number}.md", f"# A page with a title of its own, {number}\n\n" + "and a line " * 20)
    prompt = session.prepare([user("go on")])
    assert len(session.overview.encode()) < SIZE_GOAL_BYTES * 3 // 4
    assert (WARNING in str(prompt.messages), prompt.report.cut) == (False, ())
    assert "- and 15 more" in session.overview
    assert "task_completed 19" in session.overview
