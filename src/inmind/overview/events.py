"""What happens, noted on overview.md in the section where it is looked for.

An overview that is only as current as its model is diligent goes stale in the middle of a task, when it matters. So
hosts say what happened, and rules read it off the outcomes of tools; each event is one line of ours, the newest first,
said once, and only so many: the journal has them all, and the page is paid for in every request.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from inmind.documents import checked_text
from inmind.errors import InvalidInput
from inmind.overview.own import MARK, own_line, parted_lines, says, with_own, words_of
from inmind.overview.sections import with_lines
from inmind.overview.template import LANGUAGES, Section

KINDS = (
    "task_started",
    "task_completed",
    "decision_made",
    "bug_found",
    "context_changed",
    "compression_completed",
)
"""What a host may say. Rules also say `action_taken`, and `bug_fixed` of a problem that they noted themselves."""

MOST_LINES = 12
MOST_ACTIONS = 10

_NOTED_IN = {
    "decision_made": Section.DECISIONS,
    "bug_found": Section.PROBLEMS,
    "context_changed": Section.FACTS,
    "compression_completed": Section.ACTIONS,
    "action_taken": Section.ACTIONS,
}
_DONE = {"en": "done: {}", "zh": "完成：{}"}
_SET_ASIDE = {"en": "set aside: {}", "zh": "搁置：{}"}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened, in a few words."""

    kind: str
    text: str
    seq: int = 0
    """The event that it was read from; 0 where a host says it."""

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "action_taken", "bug_fixed"):
            raise InvalidInput(field="kind", value=self.kind, expected=f"one of {', '.join(KINDS)}")
        if not checked_text(self.text).replace(MARK, "").strip():
            raise InvalidInput(field="text", value=self.text, expected="what happened, in words")


def with_event(text: str, event: Occurrence, language: str) -> str:
    """The page with an event noted. Only lines of ours are moved, replaced or let go."""
    line = own_line(event.text)
    match event.kind:
        case "task_started":
            return _with_task(text, line, language)
        case "task_completed":
            text = _without(text, Section.TASK, [line], language)
            text = _without(text, Section.ACTIONS, _worded(_SET_ASIDE, line), language)
            return _noted(text, Section.ACTIONS, own_line(_DONE[language].format(words_of(line))), language)
        case "bug_fixed":
            return _without(text, Section.PROBLEMS, [line], language)
        case kind:
            return _noted(text, _NOTED_IN[kind], line, language)


def _with_task(text: str, line: str, language: str) -> str:
    """There is one current task. The one before it was not finished, or somebody would have said so."""
    former: list[str] = []

    def change(lines: Sequence[str]) -> list[str]:
        own, theirs = parted_lines(lines)
        former.extend(each for each in own if says(each) != says(line))
        return with_own(lines, [] if says(line) in map(says, theirs) else [line])

    text = with_lines(text, Section.TASK.headings(language), change)
    text = _without(text, Section.ACTIONS, _worded(_SET_ASIDE, line), language)
    for each in reversed(former):
        text = _noted(text, Section.ACTIONS, own_line(_SET_ASIDE[language].format(words_of(each))), language)
    return text


def _noted(text: str, section: Section, line: str, language: str) -> str:
    most = MOST_ACTIONS if section is Section.ACTIONS else MOST_LINES
    return with_lines(text, section.headings(language), lambda lines: _newest_first(lines, line, most=most))


def _newest_first(lines: Sequence[str], line: str, *, most: int) -> list[str]:
    """What somebody else says already is theirs to say."""
    own, theirs = parted_lines(lines)
    newest = [] if says(line) in map(says, theirs) else [line]
    return with_own(lines, [*newest, *(each for each in own if says(each) != says(line))][:most])


def _without(text: str, section: Section, gone: Collection[str], language: str) -> str:
    said = {says(line) for line in gone}

    def change(lines: Sequence[str]) -> list[str]:
        own, _ = parted_lines(lines)
        return with_own(lines, [line for line in own if says(line) not in said])

    return with_lines(text, section.headings(language), change)


def _worded(words: dict[str, str], line: str) -> list[str]:
    """In every language, since the page may have changed its own."""
    return [own_line(words[language].format(words_of(line))) for language in LANGUAGES]
