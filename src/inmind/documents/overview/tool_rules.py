"""Rules that derive overview events from tool results, without a model.

Three outcomes get a line for any host: a call that fails although its tool has worked before, a file that was
written, a task that was marked done. Tools are recognized by the words of their names in any naming convention, and
by arguments; read-only tools are ignored. A rule that fires too often fills the page with noise, so an uncertain
result is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.events.base import Trust
from inmind.core.events.documents import OverviewEvent
from inmind.core.json import is_list, is_object
from inmind.core.language.languages import result_words
from inmind.core.language.spans import split_identifier
from inmind.core.text import shorten
from inmind.core.tool_outcome import ToolOutcome
from inmind.documents.overview.event_log import OverviewLine, OverviewLog
from inmind.documents.overview.page import OverviewSection

MAX_FAILURES_PER_TOOL = 3
"""Open failures listed for one tool; more add no information."""

_MAX_PATH_CHARACTERS = 200
_MAX_FILES = 3
_MAX_SCANNED_CHARACTERS = 100_000


def overview_events(
    outcomes: Iterable[ToolOutcome], log: OverviewLog, *, has_worked: Callable[[str], bool], language: str
) -> list[OverviewEvent]:
    """Return the events for these outcomes, in order, without those in the log already.

    `has_worked`: True if a tool had succeeded before.
    """
    events: list[OverviewEvent] = []
    worked_since: set[str] = set()
    for outcome in outcomes:
        if outcome.failed:
            worked = outcome.tool in worked_since or has_worked(outcome.tool)
            fresh = (
                list(_failure_events(outcome, log, language)) if worked else []
            )  # a tool that never worked may always answer like this
        else:
            worked_since.add(outcome.tool)
            fresh = [*_closed_failures(outcome, log), *_completed_work(outcome, log, language)]
        for one in fresh:
            log = log.with_event(one, trust=Trust.DATA)
        events += fresh
    return events


def _failure_events(outcome: ToolOutcome, log: OverviewLog, language: str) -> Iterator[OverviewEvent]:
    if _is_empty_search(outcome):
        return
    subject, reason = _failure_topic(outcome), _failure_reason(outcome.result)
    text = (
        _FAILED[language].format(outcome.tool, reason)
        if reason
        else _FAILED_WITHOUT_REASON[language].format(outcome.tool)
    )
    others = [note for note in _open_failures(outcome.tool, log) if note.topic != subject]
    yield from map(_close_failure, others[MAX_FAILURES_PER_TOOL - 1 :])
    yield OverviewEvent("bug_found", text, subject=subject)


def _closed_failures(outcome: ToolOutcome, log: OverviewLog) -> Iterator[OverviewEvent]:
    """Close the failures of a successful call.

    A success with other arguments closes all failures of the tool except its newest: a failed call is not retried
    forever.
    """
    failing = _open_failures(outcome.tool, log)
    subject = _failure_topic(outcome)
    yield from (_close_failure(note) for note in failing if note.topic == subject)
    yield from map(_close_failure, [note for note in failing if note.topic != subject][1:])


def _completed_work(outcome: ToolOutcome, log: OverviewLog, language: str) -> Iterator[OverviewEvent]:
    if files := _written_files(outcome):
        yield OverviewEvent("action_taken", _WROTE[language].format(files))
    for title in dict.fromkeys(_finished_titles(outcome)):
        done = OverviewEvent("task_completed", title)
        if log.with_event(done, trust=Trust.DATA).finished_titles[-1] not in log.finished_titles:
            yield done


def _open_failures(tool: str, log: OverviewLog) -> list[OverviewLine]:
    """Open failure lines of a tool, newest first."""
    return [note for note in log.lines_in(OverviewSection.PROBLEMS) if note.topic.partition(" ")[0] == tool]


def _close_failure(note: OverviewLine) -> OverviewEvent:
    return OverviewEvent("bug_closed", note.text)


_WROTE = {"en": "wrote {}", "zh": "写入 {}"}
_FAILED = {"en": "{} failed: {}", "zh": "{} 失败：{}"}
_FAILED_WITHOUT_REASON = {"en": "{} failed", "zh": "{} 失败"}

# -- names -------------------------------------------------------------------------------------------------

_READ_VERBS = frozenset(
    "count describe download fetch find get grep list load open peek query read search show view".split()
)
_WRITE_VERBS = frozenset("append apply create edit insert modify overwrite patch replace save update write".split())
_FILE_NOUNS = frozenset("file files notebook patch editor".split())
# Words that the name of an editor may contain in addition to the verb.
_FILLERS = (
    _WRITE_VERBS | _FILE_NOUNS | frozenset("a based content contents diff fs multi str string text to tool".split())
)
_COMPLETE_VERBS = frozenset("complete completed done finish finished".split())
_MARK_VERBS = frozenset("check edit mark modify set tick toggle update write".split()) | _COMPLETE_VERBS
_TASK_NOUNS = frozenset("checklist plan step steps subtask subtasks task tasks todo todos".split())


def _name_words(tool: str) -> list[str]:
    """Words of a tool name, without the server.

    write_file, fs.writeFile and mcp__files__write-file have the same words.
    """
    name = tool.rsplit("__", 1)[-1] if tool.startswith("mcp__") else tool
    return split_identifier(name)


def _failure_topic(outcome: ToolOutcome) -> str:
    """Topic of a failure, which a success with the same topic closes.

    Tools that read or run commands have one topic; other tools have one for each path or set of arguments.
    """
    any_success = not _READ_VERBS.isdisjoint(_name_words(outcome.tool)) or _command(outcome)
    about = "" if any_success else _file_path(outcome.arguments) or digest_of(outcome.arguments)
    return f"{outcome.tool} {about}"


def _command(outcome: ToolOutcome) -> str:
    """Return the command that a shell tool runs.

    Empty for editors, which have commands and a file.
    """
    given: dict[str, Any] = outcome.arguments if is_object(outcome.arguments) else {}
    if _file_path(given) or not _FILE_NOUNS.isdisjoint(_name_words(outcome.tool)):
        return ""
    command = next((given[key] for key in _COMMAND_KEYS if given.get(key)), "")
    return " ".join(map(str, command)) if is_list(command) else command if isinstance(command, str) else ""


_COMMAND_KEYS = ("command", "cmd", "script", "code")

# -- failures ----------------------------------------------------------------------------------------------

_SEARCH_VERBS = frozenset("find glob grep lookup query rg search".split())
_SEARCH_COMMAND = re.compile(r"(?:\A|[|;&]|-l?c)\s*(?:git )?(?:[efpz]?grep|rg|ag|ack|find|fd|diff|cmp|which|test)\b")


def _is_empty_search(outcome: ToolOutcome) -> bool:
    """True for a search without matches: it exits with 1 but has not failed."""
    command = _command(outcome)
    if not (_SEARCH_COMMAND.search(command) if command else not _SEARCH_VERBS.isdisjoint(_name_words(outcome.tool))):
        return False
    texts = (_first_text(outcome.result), _failure_reason(outcome.result))
    no_matches = re.compile(rf"\W*{result_words('no_matches')}", re.IGNORECASE)
    return outcome.exit_code == 1 or any(map(no_matches.match, texts))


_ERROR = re.compile(r"<\w*error>|(?:error|failed|failure)\s*[:：]\s*", re.IGNORECASE)
_ERROR_END_TAG = re.compile(r"</\w*error>\Z", re.IGNORECASE)
_EXIT_STATUS = re.compile(r"[\w ]{0,30}\b(?:code|status)\W{1,3}\d+\W*", re.IGNORECASE)


def _failure_reason(result: object) -> str:
    """Return the line with the reason.

    It is the last line of a traceback; an exit code only if there is no other line.
    """
    lines = [line.strip() for line in _first_text(result)[:_MAX_SCANNED_CHARACTERS].splitlines() if line.strip()]
    if len(lines) > 1 and _EXIT_STATUS.fullmatch(lines[0]):
        del lines[0]
    line = next(iter(lines[-1:] if lines and lines[0].startswith("Traceback") else lines), "")
    return _ERROR_END_TAG.sub("", line[prefix.end() :] if (prefix := _ERROR.match(line)) else line)


def _first_text(value: object) -> str:
    if is_object(value):
        return next((text for key in _REASON_KEYS if (text := _first_text(value.get(key)))), "")
    if is_list(value):
        return next((text for item in value if (text := _first_text(item))), "")
    return value if isinstance(value, str) else ""


_REASON_KEYS = (
    *("error", "message", "detail", "reason", "error_description", "text", "content"),
    *("stderr", "output", "stdout"),
)


# -- files -------------------------------------------------------------------------------------------------

_PATH_KEYS = (
    *("path", "file_path", "filepath", "filePath", "file", "filename", "file_name", "fileName"),
    *("target_file", "notebook_path", "relative_path", "relative_workspace_path", "absolute_path"),
)
_PATH = re.compile(r"[^\s<>|*?\"]+(?: [^\s<>|*?\"]+)*")
_PATCHED_FILE = re.compile(
    r"^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?(?!/dev/null))(\S.*?)(?:\t.*)?$", re.MULTILINE
)
_EDITOR_WRITES = frozenset("create str_replace insert write append replace edit".split())


def _written_files(outcome: ToolOutcome) -> str:
    """Return the files that a call wrote, if its tool writes files."""
    words = set(_name_words(outcome.tool))
    verbs = words & _WRITE_VERBS
    if not words or not _READ_VERBS.isdisjoint(words) or not (verbs or "editor" in words):
        return ""
    if _FILE_NOUNS.isdisjoint(words) and not words <= _FILLERS:
        return ""
    arguments: dict[str, Any] = outcome.arguments if is_object(outcome.arguments) else {}
    command = arguments.get("command")
    if isinstance(command, str) and "patch" not in words and command not in _EDITOR_WRITES:
        return ""
    path = _file_path(arguments)
    files = [path] if path else _patched_files(outcome.arguments) if "patch" in words else []
    # Writes to pages of memory itself are visible without a line.
    files = [file for file in dict.fromkeys(files) if "working-memory/" not in file.replace("\\", "/")]
    more = len(files) - _MAX_FILES
    return ", ".join(files[:_MAX_FILES]) + (f" +{more}" if more > 0 else "")


def _file_path(arguments: object) -> str:
    if not is_object(arguments):
        return ""
    given = (arguments.get(key) for key in _PATH_KEYS)
    path = next((value for value in given if isinstance(value, str) and value), "")
    is_path = (
        len(path) <= _MAX_PATH_CHARACTERS and _PATH.fullmatch(path) and ("/" in path or "." in path or "\\" in path)
    )
    return path if is_path else ""


def _patched_files(arguments: object) -> list[str]:
    texts = arguments.values() if is_object(arguments) else [arguments]
    files = [
        file
        for text in texts
        if isinstance(text, str)
        for file in _PATCHED_FILE.findall(text[:_MAX_SCANNED_CHARACTERS])
    ]
    return [file for file in files if len(file) <= _MAX_PATH_CHARACTERS]


# -- tasks -------------------------------------------------------------------------------------------------

_TITLE_KEYS = ("title", "content", "step", "task", "name", "subject", "text", "summary", "description", "todo")
_STATUS_KEYS = ("status", "state", "new_status", "newStatus")
_DONE_KEYS = ("done", "completed", "complete", "finished", "is_done", "is_completed", "isCompleted")
_DONE_VALUES = frozenset(["done", "completed", "complete", "finished", "完成", "已完成"])


def _finished_titles(outcome: ToolOutcome) -> Iterator[str]:
    """Yield titles of tasks that a call marked as done."""
    words = set(_name_words(outcome.tool))
    if words.isdisjoint(_TASK_NOUNS) or words.isdisjoint(_MARK_VERBS) or not words.isdisjoint(_READ_VERBS):
        return
    arguments, result = outcome.arguments, outcome.result
    yield from _done_titles(arguments)
    if is_object(arguments) and (_is_done(arguments) or not words.isdisjoint(_COMPLETE_VERBS)):
        inside = result.get("task", result) if is_object(result) else None
        title = _task_title(arguments) or (_task_title(inside) if is_object(inside) else "")
        if title:
            yield title


def _done_titles(arguments: object) -> Iterator[str]:
    """Yield titles of done tasks in a list of tasks with status."""
    values = [*arguments.values(), arguments] if is_object(arguments) else [arguments]
    for value in values:
        for item in value if is_list(value) else ():
            if is_object(item) and _is_done(item) and (title := _task_title(item)):
                yield title


def _is_done(task: Mapping[str, Any]) -> bool:
    status = next((task[key] for key in _STATUS_KEYS if isinstance(task.get(key), str)), "")
    return status.strip().lower() in _DONE_VALUES or any(task.get(key) is True for key in _DONE_KEYS)


def _task_title(task: Mapping[str, Any]) -> str:
    return next((shorten(task[key], 200) for key in _TITLE_KEYS if _is_title(task.get(key))), "")


def _is_title(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip("· \n\t")) and not value.isdigit()
