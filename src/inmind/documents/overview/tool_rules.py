"""What the outcomes of tools say that belongs on overview.md, by rules and without a model.

Three things are worth a line whoever the host is: a call that fails though its tool has worked, a file that was
written, a task that was marked done. Tools are told by the words of their names in any convention, and by what they
were handed; what only reads says nothing, however much it shows of tasks and files. A rule that fires too often fills
the page with noise, so where a name or an argument leaves doubt nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.events.base import Trust
from inmind.core.events.documents import OverviewEvent
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.text import shortened
from inmind.documents.overview.event_log import Note, Noted
from inmind.documents.overview.template import Section

MOST_FAILING = 3
"""Problems of one tool that are noted at once. More of them say no more than that it does not work."""

_LONGEST_PATH = 200
_MOST_FILES = 3
_MOST_READ = 100_000


@frozen(kw_only=True)
class Outcome:
    """What a tool of the host's did."""

    tool: str
    arguments: Any = None
    """As values, like the result."""
    result: Any = None
    failed: bool = False
    exit_code: int = 0


def occurrences(
    outcomes: Iterable[Outcome], noted: Noted, *, worked: Callable[[str], bool], language: str
) -> list[OverviewEvent]:
    """What these outcomes are worth saying, in their order, beside what is noted already.

    `worked`: whether a tool had worked before them.
    """
    said: list[OverviewEvent] = []
    since: set[str] = set()
    for outcome in outcomes:
        if outcome.failed:
            known = outcome.tool in since or worked(outcome.tool)
            fresh = list(_problems(outcome, noted, language)) if known else []  # else it may be how it always answers
        else:
            since.add(outcome.tool)
            fresh = [*_closed(outcome, noted), *_done(outcome, noted, language)]
        for one in fresh:
            noted = noted.after(one, trust=Trust.DATA)
        said += fresh
    return said


def _problems(outcome: Outcome, noted: Noted, language: str) -> Iterator[OverviewEvent]:
    if _found_nothing(outcome):
        return
    subject, reason = _subject(outcome), _reason(outcome.result)
    said = _FAILED[language].format(outcome.tool, reason) if reason else _FAILED_SOMEHOW[language].format(outcome.tool)
    others = [note for note in _failing(outcome.tool, noted) if note.about != subject]
    yield from map(_over, others[MOST_FAILING - 1 :])
    yield OverviewEvent("bug_found", said, subject=subject)


def _closed(outcome: Outcome, noted: Noted) -> Iterator[OverviewEvent]:
    """A call that works again is no problem any more. What its tool does otherwise says so only of older ones: nobody
    tries for ever what has failed once."""
    failing = _failing(outcome.tool, noted)
    subject = _subject(outcome)
    yield from (_over(note) for note in failing if note.about == subject)
    yield from map(_over, [note for note in failing if note.about != subject][1:])


def _done(outcome: Outcome, noted: Noted, language: str) -> Iterator[OverviewEvent]:
    if files := _files(outcome):
        yield OverviewEvent("action_taken", _WROTE[language].format(files))
    for title in dict.fromkeys(_finished(outcome)):
        done = OverviewEvent("task_completed", title)
        if noted.after(done, trust=Trust.DATA).finished[-1] not in noted.finished:
            yield done


def _failing(tool: str, noted: Noted) -> list[Note]:
    """What rules have noted of a tool, the newest first."""
    return [note for note in noted.under(Section.PROBLEMS) if note.about.partition(" ")[0] == tool]


def _over(note: Note) -> OverviewEvent:
    return OverviewEvent("bug_closed", note.text)


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
    """What has to work again before a failure is over: a tool that reads, or runs whatever it is handed, at all; any
    other with the same arguments."""
    at_all = not _READS.isdisjoint(_words(outcome.tool)) or _command(outcome)
    about = "" if at_all else _path(outcome.arguments) or digest_of(outcome.arguments)
    return f"{outcome.tool} {about}"


def _command(outcome: Outcome) -> str:
    """What a tool was handed to run, if that is what it does: an editor has commands too, and a file beside them."""
    given: dict[str, Any] = outcome.arguments if is_object(outcome.arguments) else {}
    if _path(given) or not _FILES.isdisjoint(_words(outcome.tool)):
        return ""
    command = next((given[key] for key in _COMMANDS if given.get(key)), "")
    return " ".join(map(str, command)) if is_list(command) else command if isinstance(command, str) else ""


_COMMANDS = ("command", "cmd", "script", "code")

# -- failures ----------------------------------------------------------------------------------------------

_SEARCHES = frozenset("find glob grep lookup query rg search".split())
_SEARCHING = re.compile(r"(?:\A|[|;&]|-l?c)\s*(?:git )?(?:[efpz]?grep|rg|ag|ack|find|fd|diff|cmp|which|test)\b")
_NOTHING = re.compile(
    r"\W*(?:(?:process |command )?(?:exit(?:ed)?|return(?:ed)?|status)(?: with)?(?: code| status)?\W*1\b(?!\W*\d)"
    r"|no (?:\w+ )?(?:match|matches|results|files)\b|nothing (?:was )?found|未找到|没有找到)",
    re.IGNORECASE,
)


def _found_nothing(outcome: Outcome) -> bool:
    """A search that finds nothing answers with an exit code of 1, and has done what it was asked."""
    command = _command(outcome)
    if not (_SEARCHING.search(command) if command else not _SEARCHES.isdisjoint(_words(outcome.tool))):
        return False
    said = (_told(outcome.result), _reason(outcome.result))
    return outcome.exit_code == 1 or any(map(_NOTHING.match, said))


_ERROR = re.compile(r"<\w*error>|(?:error|failed|failure)\s*[:：]\s*", re.IGNORECASE)
_CLOSED = re.compile(r"</\w*error>\Z", re.IGNORECASE)
_ENDED = re.compile(r"[\w ]{0,30}\b(?:code|status)\W{1,3}\d+\W*", re.IGNORECASE)


def _reason(result: object) -> str:
    """The line of an answer that says why; of a traceback, the last. A bare exit code says so only if nothing else."""
    lines = [line.strip() for line in _told(result)[:_MOST_READ].splitlines() if line.strip()]
    if len(lines) > 1 and _ENDED.fullmatch(lines[0]):
        del lines[0]
    line = next(iter(lines[-1:] if lines and lines[0].startswith("Traceback") else lines), "")
    return _CLOSED.sub("", line[begun.end() :] if (begun := _ERROR.match(line)) else line)


def _told(value: object) -> str:
    if is_object(value):
        return next((said for key in _REASONS if (said := _told(value.get(key)))), "")
    if is_list(value):
        return next((said for item in value if (said := _told(item))), "")
    return value if isinstance(value, str) else ""


_REASONS = (
    *("error", "message", "detail", "reason", "error_description", "text", "content"),
    *("stderr", "output", "stdout"),
)


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
    arguments, result = outcome.arguments, outcome.result
    yield from _marked(arguments)
    if is_object(arguments) and (_is_done(arguments) or not words.isdisjoint(_COMPLETES)):
        inside = result.get("task", result) if is_object(result) else None
        title = _title(arguments) or (_title(inside) if is_object(inside) else "")
        if title:
            yield title


def _marked(arguments: object) -> Iterator[str]:
    """The titles in a list of tasks, each with its status."""
    values = [*arguments.values(), arguments] if is_object(arguments) else [arguments]
    for value in values:
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
