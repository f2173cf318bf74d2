"""Rules derive overview events from tool results, and ignore similar ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.documents import OverviewEvent
from inmind.core.events.session import ToolObserved
from inmind.core.tool_outcome import ToolOutcome, read_outcome
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.tool_rules import MAX_FAILURES_PER_TOOL, overview_events

pytestmark = pytest.mark.spec("F5")


def events_from(*outcomes: ToolOutcome, language: str = "en") -> list[tuple[str, str]]:
    events = overview_events(outcomes, OverviewLog(), has_worked=lambda tool: tool == "old", language=language)
    return [(event.event_type, event.text) for event in events]


def open_problems(*outcomes: ToolOutcome) -> list[str]:
    """The problems that are open after these outcomes, newest first."""
    log = OverviewLog()
    for event in overview_events(outcomes, log, has_worked=lambda _: True, language="en"):
        log = log.with_event(event, trust=Trust.DATA)
    return [note.text for note in log.lines]


def success(tool: str, arguments: Any = None, result: Any = "ok") -> ToolOutcome:
    return read_outcome(ToolObserved(tool=tool, arguments=arguments, result=result))


def failure(tool: str, arguments: Any = None, result: Any = "Error: disk full\nmore") -> ToolOutcome:
    return read_outcome(ToolObserved(tool=tool, arguments=arguments, result=result, error=True))


# -- failures


def test_a_failed_call_of_a_tool_that_has_worked_is_a_problem() -> None:
    assert events_from(success("deploy"), failure("deploy")) == [("bug_found", "deploy failed: disk full")]
    assert events_from(success("deploy"), failure("deploy"), language="zh") == [("bug_found", "deploy 失败：disk full")]


def test_a_failure_of_a_tool_that_never_worked_is_not_reported() -> None:
    assert events_from(failure("deploy"), failure("deploy"), success("other"), failure("deploy")) == []


def test_a_problem_is_closed_when_the_same_call_succeeds() -> None:
    one, two = {"id": 1}, {"id": 2}
    assert events_from(success("update_order", one), failure("update_order", one), success("update_order", two)) == [
        ("bug_found", "update_order failed: disk full")
    ]
    assert events_from(success("update_order", one), failure("update_order", one), success("update_order", one))[
        1:
    ] == [("bug_closed", "update_order failed: disk full")]


def test_any_success_of_a_reading_tool_closes_its_problems() -> None:
    assert events_from(success("get_user", "a"), failure("get_user", "b"), success("get_user", "c"))[1:] == [
        ("bug_closed", "get_user failed: disk full")
    ]


def test_a_tool_that_worked_in_an_earlier_turn_can_have_a_problem() -> None:
    assert events_from(failure("old")) == [("bug_found", "old failed: disk full")]


def test_a_call_that_fails_for_another_reason_has_only_the_latest_problem() -> None:
    assert open_problems(failure("deploy"), failure("deploy", result="no route")) == ["deploy failed: no route"]


def test_a_problem_of_two_calls_is_closed_when_both_succeed() -> None:
    one, two = {"id": 1}, {"id": 2}
    both = (failure("buy", one), failure("buy", two), success("buy", one))
    assert open_problems(*both) == ["buy failed: disk full"]
    assert open_problems(*both, success("buy", two)) == []


def test_the_number_of_problems_per_tool_is_limited() -> None:
    many = [failure("buy", {"id": number}, f"no {number}") for number in range(9)]
    assert open_problems(*many) == [f"buy failed: no {number}" for number in (8, 7, 6)]
    assert MAX_FAILURES_PER_TOOL == 3


def test_another_success_closes_all_but_the_newest_problem_of_the_tool() -> None:
    many = [failure("buy", {"id": number}, f"no {number}") for number in range(3)]
    assert open_problems(*many, success("buy", {"id": 9})) == ["buy failed: no 2"]
    assert open_problems(*many, success("sell", {"id": 9})) == [f"buy failed: no {number}" for number in (2, 1, 0)]


@pytest.mark.parametrize("arguments", [{"command": "make"}, {"cmd": ["bash", "-lc", "make"]}, {"code": "make()"}])
def test_any_success_of_a_shell_tool_closes_its_problems(arguments: Any) -> None:
    assert open_problems(failure("bash", arguments)) == ["bash failed: disk full"]
    assert open_problems(failure("bash", arguments), success("bash", {"command": "ls"})) == []


@each_row(
    ("tool", "arguments", "result"),
    [
        ("bash", {"command": "grep foo src"}, "Exit code 1: no match"),
        ("bash", {"command": "cd src && git grep foo"}, "Exit code 1"),
        ("bash", {"command": ["bash", "-lc", "rg foo"]}, {"output": "", "exit_code": 1}),
        ("shell", {"cmd": "cat a | grep foo"}, "Command exited with code 1"),
        ("Grep", {"pattern": "foo"}, "No matches found"),
        ("search_files", {"query": "foo"}, "Error: no results"),
    ],
)
def test_a_search_that_finds_nothing_has_not_failed(tool: str, arguments: Any, result: Any) -> None:
    assert open_problems(failure(tool, arguments, result)) == []


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        ("bash", {"command": "grep foo src"}, "Exit code 2\ngrep: src: No such file"),
        ("bash", {"command": "grep foo src"}, "Exit code 127"),
        ("bash", {"command": "make test"}, "Exit code 1"),
        ("search_files", {"query": "foo"}, "Error: the index is gone"),
    ],
)
def test_a_search_that_could_not_run_has_failed(tool: str, arguments: Any, result: Any) -> None:
    assert len(open_problems(failure(tool, arguments, result))) == 1


@each_row(
    ("result", "reason"),
    [
        ("\n\nError: disk full\n  at x", ": disk full"),
        ("Traceback (most recent call last):\n  File x\nValueError: bad id", ": ValueError: bad id"),
        ({"error": {"message": "quota"}}, ": quota"),
        ('{"error": "quota"}', ": quota"),
        ([{"type": "text", "text": "Failed: no"}], ": no"),
        ({"isError": True, "content": [{"type": "text", "text": '{"error": "quota"}'}]}, ": quota"),
        ("Exit code 1\nFAILED tests/x.py", ": FAILED tests/x.py"),
        ("<tool_use_error>File is too large</tool_use_error>", ": File is too large"),
        ({"exit_code": 2, "stdout": "collected 1", "stderr": "no such suite"}, ": no such suite"),
        ({"output": "context not found", "metadata": {"exit_code": 1}}, ": context not found"),
        ({"code": 5}, ""),
        (None, ""),
    ],
)
def test_the_reason_is_extracted_from_the_result(result: Any, reason: str) -> None:
    assert events_from(success("deploy"), failure("deploy", result=result)) == [("bug_found", f"deploy failed{reason}")]


# -- files


@each_row(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "src/x.py", "content": "…"}),
        ("Write", {"file_path": "src/x.py"}),
        ("MultiEdit", {"file_path": "src/x.py"}),
        ("fs.writeFile", {"filePath": "src/x.py"}),
        ("mcp__files__write-file", {"path": "src/x.py"}),
        ("create", {"filename": "src/x.py"}),
        ("save_file", {"file_name": "src/x.py"}),
        ("edit_notebook", {"notebook_path": "src/x.py"}),
        ("str_replace_editor", {"command": "create", "path": "src/x.py"}),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "src/x.py"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/x.py\n@@\n-a\n+b\n*** End Patch"}),
        ("apply_patch", "--- a/src/x.py\n+++ b/src/x.py\n@@ -1 +1 @@\n-a\n+b\n"),
    ],
)
def test_a_written_file_is_an_action(tool: str, arguments: Any) -> None:
    assert events_from(success(tool, arguments)) == [("action_taken", "wrote src/x.py")]


def test_a_patch_of_many_files_is_one_line() -> None:
    patch = "".join(f"*** Add File: f{number}.py\n+x\n" for number in range(5))
    assert events_from(success("apply_patch", {"patch": patch})) == [("action_taken", "wrote f0.py, f1.py, f2.py +2")]


@each_row(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "src/x.py"}),
        ("open", {"path": "src/x.py"}),
        ("str_replace_editor", {"command": "view", "path": "src/x.py"}),
        ("create_page", {"path": "/about.html"}),
        ("update_order", {"file": "a.txt"}),
        ("write_email", {"path": "a.txt"}),
        ("bash", {"command": "echo > src/x.py"}),
        ("delete_file", {"path": "src/x.py"}),
        ("write_file", {"content": "…"}),
        ("write_file", {"path": "not a path"}),
        ("write_file", {"path": "a\nb.py"}),
        ("write_file", None),
        ("write_file", {"path": "/home/ada/working-memory/overview.md"}),
        ("memory_write", {"path": "detail/x.md"}),
    ],
)
def test_a_call_that_writes_no_host_file_is_not_an_action(tool: str, arguments: Any) -> None:
    assert events_from(success(tool, arguments)) == []


def test_a_failed_write_is_not_an_action() -> None:
    assert events_from(failure("write_file", {"path": "src/x.py"})) == []


# -- tasks


@each_row(
    ("tool", "arguments", "result"),
    [
        (
            "TodoWrite",
            {"todos": [{"content": "fix", "status": "completed"}, {"content": "b", "status": "pending"}]},
            "ok",
        ),
        ("todo_write", {"todos": '[{"content": "fix", "status": "completed"}]'}, "ok"),
        ("update_plan", {"plan": [{"step": "fix", "status": "completed"}]}, "ok"),
        ("update_task", {"id": 7, "title": "fix", "status": "Done"}, "ok"),
        ("update_task", {"id": 7, "status": "done"}, {"id": 7, "title": "fix"}),
        ("tasks.update", {"id": 7, "completed": True}, '{"task": {"id": 7, "title": "fix"}}'),
        ("complete_task", {"task": "fix"}, "ok"),
        ("mark_todo_done", {"id": "7"}, {"title": "fix"}),
    ],
)
def test_a_task_marked_as_done_is_completed(tool: str, arguments: Any, result: Any) -> None:
    assert events_from(success(tool, arguments, result)) == [("task_completed", "fix")]


def test_a_repeated_task_list_reports_only_new_completions() -> None:
    first = {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}
    later = {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "completed"}]}
    assert events_from(success("todo_write", first), success("todo_write", later)) == [
        ("task_completed", "a"),
        ("task_completed", "b"),
    ]


@each_row(
    ("tool", "arguments", "result"),
    [
        ("list_tasks", {"status": "completed"}, [{"title": "a", "status": "completed"}]),
        ("get_completed_tasks", {"title": "a"}, "ok"),
        ("update_order", {"title": "a", "status": "completed"}, "ok"),
        ("update_task", {"title": "a", "status": "in_progress"}, {"title": "a", "status": "done"}),
        ("update_task", {"id": 7, "status": "done"}, "Task 7 was updated."),
        ("create_task", {"title": "a"}, {"title": "a", "status": "completed"}),
        ("complete_task", {"id": 7}, None),
        ("complete_task", ["a"], None),
        ("complete_booking", {"title": "a"}, None),
        ("memory_write", {"task": "a", "status": "done"}, None),
    ],
)
def test_a_call_that_only_mentions_tasks_completes_none(tool: str, arguments: Any, result: Any) -> None:
    assert events_from(success(tool, arguments, result)) == []


# -- any outcome

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["path", "status", "todos", "title", "error", "command", "input"]), inner)
    ),
    max_leaves=8,
)
TOOLS = st.sampled_from(
    ["write_file", "todo_write", "complete_task", "apply_patch", "get_user", "", "str_replace_editor"]
)
OUTCOMES = st.builds(ToolOutcome, tool=TOOLS, arguments=JSON, result=JSON, failed=st.booleans())


@pytest.mark.spec("A2")
@given(outcomes=st.lists(OUTCOMES, max_size=8), cut=st.integers(0, 8))
def test_events_depend_only_on_the_log_and_on_tools_that_worked(outcomes: list[ToolOutcome], cut: int) -> None:
    first = _events_after(outcomes[:cut], OverviewLog(), set())
    log = OverviewLog()
    for event in first:
        log = log.with_event(event, trust=Trust.DATA)
    worked = {outcome.tool for outcome in outcomes[:cut] if not outcome.failed}
    assert [*first, *_events_after(outcomes[cut:], log, worked)] == _events_after(outcomes, OverviewLog(), set())


def _events_after(outcomes: list[ToolOutcome], log: OverviewLog, worked: set[str]) -> list[OverviewEvent]:
    return overview_events(outcomes, log, has_worked=worked.__contains__, language="en")
