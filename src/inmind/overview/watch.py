"""What the outcomes of tools say that belongs on overview.md, by rules and without a model.

Three things are worth a line whoever the host is: a call that fails though its tool has worked, a file that was
written, a task that was marked done. Tools are told by the words of their names in any convention, and by what they
were handed; what only reads says nothing, however much it shows of tasks and files. A rule that fires too often fills
the page with noise, so where a name or an argument leaves doubt nothing is said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.journal import digest_of
from inmind.overview.events import MOST_LINES, Occurrence
from inmind.overview.values import is_list, is_object
from inmind.text import shortened

MOST_FINISHED = 100
"""Titles of finished tasks that are remembered, since lists of them are sent again whole."""

_LONGEST_PATH = 200
_MOST_FILES = 3
_MOST_READ = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool of the host's did."""

    tool: str
    arguments: Any = None
    """As values; None where they could not be read."""
    result: Any = None
    failed: bool = False
    seq: int = 0
    """The event that tells of it."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What has to be known of earlier outcomes to judge the next: a fold over them."""

    worked: frozenset[str] = frozenset()
    failing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Calls that failed and have not worked since, the oldest first, with what was said of each."""
    finished: tuple[str, ...] = ()

    def apply(self, outcome: Outcome, *, language: str) -> tuple[Watch, list[Occurrence]]:
        """The watch after an outcome, and what it is worth saying of that."""
        if outcome.failed:
            return self._failed(outcome, language)
        fixed = self.failing.get(_subject(outcome))
        still = {call: said for call, said in self.failing.items() if call != _subject(outcome)}
        titles = [title for title in dict.fromkeys(_finished(outcome)) if title not in self.finished]
        said = [
            *([("bug_fixed", fixed)] if fixed and fixed not in still.values() else []),
            *([("action_taken", _WROTE[language].format(files))] if (files := _files(outcome)) else []),
            *(("task_completed", title) for title in titles),
        ]
        return (
            Watch(self.worked | {outcome.tool}, still, (*self.finished, *titles)[-MOST_FINISHED:]),
            [Occurrence(kind, text, outcome.seq) for kind, text in said],
        )

    def _failed(self, outcome: Outcome, language: str) -> tuple[Watch, list[Occurrence]]:
        if outcome.tool not in self.worked:
            return self, []  # that may be how it always answers
        reason = _reason(outcome.result)
        said = (
            _FAILED[language].format(outcome.tool, reason) if reason else _FAILED_SOMEHOW[language].format(outcome.tool)
        )
        before = self.failing.get(_subject(outcome))
        others = {call: text for call, text in self.failing.items() if call != _subject(outcome)}
        failing = dict([*others.items(), (_subject(outcome), said)][-MOST_LINES:])
        gone = [Occurrence("bug_fixed", before, outcome.seq)] if before and before not in failing.values() else []
        return replace(self, failing=failing), [*gone, Occurrence("bug_found", said, outcome.seq)]


def occurrences(
    outcomes: Iterable[Outcome], watch: Watch, *, own: Callable[[str], bool], language: str
) -> tuple[Watch, list[Occurrence]]:
    """What these outcomes are worth saying, in their order. `own`: names of memory's own tools, which say nothing."""
    said: list[Occurrence] = []
    for outcome in outcomes:
        if not own(outcome.tool):
            watch, more = watch.apply(outcome, language=language)
            said += more
    return watch, said


_WROTE = {"en": "wrote {}", "zh": "写入 {}"}
_FAILED = {"en": "{} failed: {}", "zh": "{} 失败：{}"}
_FAILED_SOMEHOW = {"en": "{} failed", "zh": "{} 失败"}

# -- names -------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_READS = frozenset(
    "count describe download fetch find get grep list load open peek query read search show view".split()
)
_WRITES = frozenset("append apply create edit insert modify overwrite patch replace save update write".split())
_FILES = frozenset("file files notebook patch editor".split())
# What an editor's name has beside the verb.
_FILLERS = _WRITES | _FILES | frozenset("a based content contents diff fs multi str string text to tool".split())
_COMPLETES = frozenset("complete completed done finish finished".split())
_MARKS = frozenset("check edit mark modify set tick toggle update write".split()) | _COMPLETES
_TASKS = frozenset("checklist plan step steps subtask subtasks task tasks todo todos".split())


def _words(tool: str) -> list[str]:
    """write_file, fs.writeFile, mcp__files__write-file: the same words, without the server's."""
    name = tool.rsplit("__", 1)[-1] if tool.startswith("mcp__") else tool
    return [word.lower() for word in _WORD.findall(name)]


def _subject(outcome: Outcome) -> str:
    """What has to work again before a failure is over: a reading tool at all, any other with the same arguments."""
    words = _words(outcome.tool)
    about = "" if not _READS.isdisjoint(words) else _path(outcome.arguments) or digest_of(outcome.arguments)
    return f"{outcome.tool} {about}"


# -- failures ----------------------------------------------------------------------------------------------

_ERROR = re.compile(r"(?:error|failed|failure)\s*[:：]\s*", re.IGNORECASE)


def _reason(result: object) -> str:
    """The line of an answer that says why; of a traceback, the last."""
    lines = [line for line in _told(result)[:_MOST_READ].splitlines() if line.strip()]
    line = next(iter(lines[-1:] if lines and lines[0].lstrip().startswith("Traceback") else lines), "")
    return _ERROR.sub("", line.strip(), count=1) if _ERROR.match(line.strip()) else line.strip()


def _told(result: object) -> str:
    value = _value(result)
    if is_object(value):
        return next((said for key in _REASONS if (said := _told(value.get(key)))), "")
    if is_list(value):
        return next((said for item in value if (said := _told(item))), "")
    return value if isinstance(value, str) else ""


_REASONS = ("error", "message", "detail", "reason", "error_description", "text", "content", "stderr")


# -- files -------------------------------------------------------------------------------------------------

_PATHS = (
    *("path", "file_path", "filepath", "filePath", "file", "filename", "file_name", "fileName"),
    *("target_file", "notebook_path", "relative_path", "relative_workspace_path", "absolute_path"),
)
_PATH = re.compile(r"[^\s<>|*?\"]+(?: [^\s<>|*?\"]+)*")
_PATCHED = re.compile(r"^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?(?!/dev/null))(\S.*?)(?:\t.*)?$", re.MULTILINE)
_EDITOR_WRITES = frozenset("create str_replace insert write append replace edit".split())


def _files(outcome: Outcome) -> str:
    """What a call has written, if its tool writes files."""
    words = set(_words(outcome.tool))
    verbs = words & _WRITES
    if not words or not _READS.isdisjoint(words) or not (verbs or "editor" in words):
        return ""
    if _FILES.isdisjoint(words) and not words <= _FILLERS:
        return ""
    arguments: dict[str, Any] = outcome.arguments if is_object(outcome.arguments) else {}
    command = arguments.get("command")
    if isinstance(command, str) and "patch" not in words and command not in _EDITOR_WRITES:
        return ""
    path = _path(arguments)
    files = [path] if path else _patched(outcome.arguments) if "patch" in words else []
    files = [file for file in dict.fromkeys(files) if not _is_memory(file)]
    more = len(files) - _MOST_FILES
    return ", ".join(files[:_MOST_FILES]) + (f" +{more}" if more > 0 else "")


def _path(arguments: object) -> str:
    if not is_object(arguments):
        return ""
    given = (arguments.get(key) for key in _PATHS)
    path = next((value for value in given if isinstance(value, str) and value), "")
    is_path = len(path) <= _LONGEST_PATH and _PATH.fullmatch(path) and ("/" in path or "." in path or "\\" in path)
    return path if is_path else ""


def _patched(arguments: object) -> list[str]:
    texts = arguments.values() if is_object(arguments) else [arguments]
    found = [file for text in texts if isinstance(text, str) for file in _PATCHED.findall(text[:_MOST_READ])]
    return [file for file in found if len(file) <= _LONGEST_PATH]


def _is_memory(path: str) -> bool:
    """A page of memory itself: that it was written shows where it stands."""
    return "working-memory/" in path.replace("\\", "/")


# -- tasks -------------------------------------------------------------------------------------------------

_TITLES = ("title", "content", "step", "task", "name", "subject", "text", "summary", "description", "todo")
_STATES = ("status", "state", "new_status", "newStatus")
_FLAGS = ("done", "completed", "complete", "finished", "is_done", "is_completed", "isCompleted")
_DONE = frozenset(["done", "completed", "complete", "finished", "完成", "已完成"])


def _finished(outcome: Outcome) -> Iterator[str]:
    """The titles of tasks that a call has marked done."""
    words = set(_words(outcome.tool))
    if words.isdisjoint(_TASKS) or words.isdisjoint(_MARKS) or not words.isdisjoint(_READS):
        return
    arguments, result = outcome.arguments, _value(outcome.result)
    yield from _marked(arguments)
    if is_object(arguments) and (_is_done(arguments) or not words.isdisjoint(_COMPLETES)):
        inside = result.get("task", result) if is_object(result) else None
        title = _title(arguments) or (_title(inside) if is_object(inside) else "")
        if title:
            yield title


def _marked(arguments: object) -> Iterator[str]:
    """The titles in a list of tasks, each with its status."""
    values = [*arguments.values(), arguments] if is_object(arguments) else [arguments]
    for value in map(_value, values):
        for item in value if is_list(value) else ():
            if is_object(item) and _is_done(item) and (title := _title(item)):
                yield title


def _is_done(task: Mapping[str, Any]) -> bool:
    status = next((task[key] for key in _STATES if isinstance(task.get(key), str)), "")
    return status.strip().lower() in _DONE or any(task.get(key) is True for key in _FLAGS)


def _title(task: Mapping[str, Any]) -> str:
    return next((shortened(task[key], 200) for key in _TITLES if _is_words(task.get(key))), "")


def _is_words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip("· \n\t")) and not value.isdigit()


def _value(value: object) -> Any:
    """What a text holds, if that is JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and len(value) <= _MOST_READ:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
