"""The current task, accepted decisions, open decisions and the summary survive any number of compactions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.errors import NotFound

Message = dict[str, Any]

GOAL = "Build the importer for the shop."
NEW_TASK = "New task: now write the changelog instead."
OPEN = "We still have to decide between Kafka and RabbitMQ."
PEOPLE = (("Mei Kovacs", "mug"), ("Ada Rossi", "lamp"), ("Yusuf Khan", "T-Shirt"), ("Olivia Silva", "bottle"))
WORK = "Working on it, line by line. " * 30


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("s", resource="ada", window=32_000)


def go_on(session: Session, *words: str) -> None:
    for word in words:
        session.add([assistant(WORK), user(word)])


def block(session: Session) -> str:
    """The block of retained items in the next prompt."""
    text = json.dumps(session.prepare().request, ensure_ascii=False)
    return text.partition('<memory layer=\\"retained\\">')[2].partition("</memory>")[0]


def summary_lines(session: Session) -> list[str]:
    return [line for line in session.read("overview.md").split("\n") if line.startswith("- archived ")]


def kinds(session: Session) -> dict[str, str]:
    return {item.kind: item.text for item in session.retained}


@pytest.mark.spec("E6", "E8")
def test_a_new_task_is_the_goal_through_fillers_and_compactions(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, "ok go on 1", "ok go on 2", NEW_TASK)
    for _ in range(3):
        go_on(session, *["continue"] * 8)
        report = session.compact("conversation", keep_recent=2)
        assert [item.text for item in report.items if item.kind == "goal"] == [NEW_TASK]
        assert [(item.text, item.location) for item in report.items if item.kind == "earlier_goal"] == [
            (GOAL, "memory")
        ]
        assert f"Goal, verbatim:\\n- {NEW_TASK}\\nEarlier goal:\\n- {GOAL}" in block(session)
    assert kinds(session)["goal"] == NEW_TASK


@pytest.mark.spec("E6", "E8")
def test_the_task_before_is_kept_when_it_leaves_after_a_newer_one_began(session: Session) -> None:
    """Whether a greeting begins a task depends on the one before, which is no longer retained then."""
    tasks = [f"Hi, I am {name}. I want the {thing} in another option." for name, thing in PEOPLE]
    for number, task in enumerate(tasks):
        session.add([user(task)])
        go_on(session, *["Yes, do it."] * 7)
        if number == 1:
            session.compact("conversation", keep_recent=7)
    for keep in (15, 3):
        session.compact("conversation", keep_recent=keep)
    assert kinds(session)["earlier_goal"] == tasks[2]
    assert f"Earlier goal:\\n- {tasks[2]}" in block(session)


@pytest.mark.spec("E6", "E8")
@pytest.mark.parametrize(
    "task", ["Now write the changelog.", "Another thing: please book a hotel in Rome.", "现在请写更新日志。"]
)
def test_a_task_that_needs_no_announcement_is_the_goal(session: Session, task: str) -> None:
    session.add([user(GOAL)])
    go_on(session, "now add a test for it", "now run it again", task)
    for _ in range(2):
        go_on(session, "ok go on", "now change its title to X", "continue", "next", "yes", "and another thing about it")
        session.compact("conversation", keep_recent=1)
        assert (kinds(session)["goal"], kinds(session)["earlier_goal"]) == (task, GOAL)
        assert f"Goal, verbatim:\\n- {task}\\nEarlier goal:\\n- {GOAL}" in block(session)
        assert not any(word in line for line in summary_lines(session) for word in ("go on", "continue", "yes"))


@pytest.mark.spec("E6")
def test_a_goal_in_a_message_that_stays_demotes_the_one_before_it(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, *["Next file."] * 6, NEW_TASK, "continue")
    report = session.compact("conversation", keep_recent=2)
    assert [(item.kind, item.text) for item in report.items] == [("earlier_goal", GOAL), ("request", NEW_TASK)]
    assert "Goal, verbatim" not in block(session)
    session.remove_last_messages(4)
    assert kinds(session)["goal"] == GOAL


@pytest.mark.spec("E6", "E8")
def test_the_last_request_before_many_fillers_survives(session: Session) -> None:
    session.add([user(GOAL)])
    question = "Which of the files has the tax rates?"
    go_on(session, "Look at the tests.", question)
    for _ in range(2):
        go_on(session, *["continue", "ok go on 3", "yes", "thanks"] * 2)
        report = session.compact("conversation", keep_recent=1)
        assert [(item.text, item.location) for item in report.items if item.kind == "request"] == [(question, "memory")]
        assert f"Last request, verbatim:\\n- {question}" in block(session)
    go_on(session, "Now look at the docs.", "continue")
    session.compact("conversation", keep_recent=2)
    assert question not in block(session)


@pytest.mark.spec("E8")
def test_an_archived_request_stays_in_memory_until_the_next_one(session: Session) -> None:
    request = "Which of the files has the tax rates?"
    session.add([user(GOAL), assistant(WORK), user(request)])
    go_on(session, *["continue"] * 4)
    session.compact("conversation", keep_recent=0)
    for word in ("continue", "thanks"):
        assert f"Last request, verbatim:\\n- {request}" in block(session)
        go_on(session, word)
    go_on(session, "Now look at the docs.")
    assert f"retained, now in full:\\nGoal, verbatim:\\n- {GOAL}\\n</memory_changes>" in json.dumps(
        session.prepare().request
    )


@pytest.mark.spec("E6", "E8")
def test_steps_that_look_like_tasks_do_not_displace_the_task_that_was_stated(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, "Now write the error handling.", *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    go_on(session, "Now fix all lint warnings.", *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    assert (kinds(session)["goal"], kinds(session)["earlier_goal"]) == ("Now fix all lint warnings.", GOAL)


@pytest.mark.spec("E6", "E8")
def test_accepted_and_open_decisions_survive_and_are_reported(session: Session) -> None:
    session.add([user(GOAL), assistant("I compared both. Let's use Postgres for storage."), user("ok")])
    go_on(session, OPEN)
    for _ in range(3):
        go_on(session, *["Next file."] * 4)
        report = session.compact("conversation", keep_recent=1)
        kept = {item.kind: (item.text, item.location) for item in report.items}
        assert kept["decision"] == ("Let's use Postgres for storage.", "memory")
        assert kept["open_decision"] == (OPEN, "memory")
        assert "1 decision, 1 open decision" in str(report)
        assert f"Open decisions:\\n- {OPEN}" in block(session)
    session.add([assistant("Let's use Kafka."), user("Yes, do that.")])
    go_on(session, *["Next file."] * 4)
    report = session.compact("conversation", keep_recent=1)
    assert [item.text for item in report.items if item.kind == "open_decision"] == []
    assert [item.text for item in report.items if item.kind == "decision"] == [
        "Let's use Postgres for storage.",
        "Let's use Kafka.",
    ]


@pytest.mark.spec("E6", "E8")
@pytest.mark.parametrize("choice", ["Kafka it is.", "Kafka, please.", "就用Kafka吧"])
def test_a_short_choice_closes_an_archived_open_decision(session: Session, choice: str) -> None:
    session.add([user(GOAL)])
    go_on(session, OPEN, *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    go_on(session, choice, *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    assert kinds(session)["decision"] == choice
    assert "open_decision" not in kinds(session)
    assert f"Decisions:\\n- {choice}" in block(session)


@pytest.mark.spec("E6", "E8")
def test_a_choice_that_stays_closes_an_open_decision_that_leaves(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, OPEN, *["Next file."] * 3, "Kafka it is.")
    report = session.compact("conversation", keep_recent=1)
    assert [item.text for item in report.items if item.kind == "open_decision"] == []
    assert "Open decisions" not in block(session)
    go_on(session, *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    assert kinds(session)["decision"] == "Kafka it is.", "it is known as a decision after the question is gone"


@pytest.mark.spec("E8")
def test_an_open_decision_can_be_released(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, OPEN, *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    session.release(OPEN)
    go_on(session, *["Next file."] * 4)
    session.compact("conversation", keep_recent=1)
    assert OPEN not in block(session)
    with pytest.raises(NotFound):
        session.release(OPEN)


@pytest.mark.spec("E3")
def test_the_overview_has_one_summary_which_undo_takes_back(session: Session) -> None:
    session.write(
        "overview.md", session.read("overview.md").replace("## Open problems\n", "## Open problems\n- mine\n")
    )
    session.add([user(GOAL), a_call("c1", "create_table", '{"name": "rates"}'), a_result("c1")])
    go_on(session, *["Next file."] * 5)
    session.compact("conversation", keep_recent=1)
    (first,) = summary_lines(session)
    assert "asked: Build the importer for the shop" in first
    assert "done: create_table(name rates)" in first
    go_on(session, "Check the tax rates.", *["continue"] * 5)
    session.compact("conversation", keep_recent=1)
    (second,) = summary_lines(session)
    assert "asked: Build the importer for the shop; Next file; Check the tax rates" in second
    session.undo_compaction()
    assert summary_lines(session) == [first]
    session.undo_compaction()
    assert summary_lines(session) == []
    assert "## Open problems\n- mine\n" in session.read("overview.md")


@pytest.mark.spec("E3", "E7")
def test_the_overview_has_the_models_own_summary(session: Session) -> None:
    session.add([user(GOAL)])
    go_on(session, *["Next file."] * 5)
    words = "Five of nine files were imported. The tax rates are missing."
    session.compact("conversation", strategy="summarize", keep_recent=1, model=lambda _: words)
    assert summary_lines(session) == [f"- archived 8 messages: {words} ·"]
    go_on(session, "Do the next one.", *["continue"] * 5)
    session.compact("conversation", strategy="summarize", keep_recent=1)
    stub = json.dumps(session.prepare().messages[1], ensure_ascii=False)
    assert f"Before: {words}" in stub
    assert "- Do the next one." in stub


@pytest.mark.spec("E3", "D3")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_summary_on_the_overview_is_short_in_a_small_window(memory: Memory, language: str) -> None:
    session = memory.session("small", resource="ada", window=4_000, language=language)
    session.add([user(GOAL)])
    for number in range(8):
        go_on(session, f"Now do the file number {number} of the importer, with all of its columns and rows.")
    session.compact("conversation", keep_recent=1)
    before = session.read("overview.md")
    lines = [line for line in before.split("\n") if line.endswith(" ·") and "archive/" not in line]
    assert len(lines) == 1
    assert 40 < len(lines[0]) < 220


@pytest.mark.spec("E3")
def test_a_compaction_that_would_make_the_prompt_longer_is_done_only_for_the_host(session: Session) -> None:
    session.add([user(GOAL)])
    for number in range(6):
        session.add([assistant("I looked at it and it is fine."), user(f"And is file {number} of it fine as well?")])
    session.prepare()
    call = a_call("m1", "compact_history", '{"target": "conversation", "keep_recent": 0}')
    recorded = session.record({"role": "assistant", **call})
    assert "no message is old or large enough to archive" in json.dumps(recorded.results)
    report = session.compact("conversation", keep_recent=0)
    assert report
    assert report.tokens < 0
    assert f"{-report.tokens} tokens more to send" in str(report)


@pytest.mark.spec("E7", "E10")
def test_a_call_whose_result_was_pruned_has_a_result_in_the_summary(session: Session) -> None:
    session.add([user(GOAL), a_call("c1", "run_tests"), a_result("c1", "a line of the log\n" * 200)])
    go_on(session, "and now?")
    session.compact("tools", keep_recent=0)
    session.compact("conversation", keep_recent=0)
    (line,) = summary_lines(session)
    assert "done: run_tests" in line
    assert "no result" not in line
