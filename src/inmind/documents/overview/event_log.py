"""The event log on overview.md: lines about tasks, decisions, problems and actions.

A page that only the model updates becomes stale in the middle of a task. So hosts report events, and rules derive
events from tool results. The journal has all of them; the lines on the page are a fold over it, newest
first, without duplicates and limited, since the page costs tokens in every request.

People and models edit the page too. Another writer may replace the whole page before seeing our newest lines, which
must not be lost; and a line that a writer deletes must stay deleted. The text shows which of the two happened: a writer
that kept one of our lines had seen the lines entered before it in that section, so a missing earlier line was deleted
and stays deleted. A line newer than all kept ones is entered again, once; if it is removed after that, it was seen.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from inmind.core.events.base import Event, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import CompactionUndone
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.documents.document import OVERVIEW_PATH, validate_text
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.page import LANGUAGES, MAX_EVENT_BYTES, OverviewSection, fit_round_robin
from inmind.documents.overview.sections import (
    MARK,
    MAX_LINE_CHARACTERS,
    comparison_key,
    edit_section_lines,
    generated_line,
    insert_generated,
    split_generated,
    text_lines,
)
from inmind.errors import InvalidInput

HOST_EVENT_KINDS = (
    "task_started",
    "task_completed",
    "decision_made",
    "bug_found",
    "context_changed",
    "compression_completed",
)
"""Kinds that a host may report. Rules also use `action_taken`, and `bug_closed` for problems they reported."""

MAX_SUMMARY_LINE_CHARACTERS = 480
"""Longest line with the summary of a compaction."""
SUMMARY_SUBJECT = "summary"
"""Subject of an event of memory's own about a compaction; its line may be longer than others."""
MAX_SECTION_LINES = 12
MAX_ACTION_LINES = 10
MAX_STORED_LINES = 24
"""Lines kept for each section, so that older ones can reappear; separately for compactions."""
MAX_REMOVED_LINES = 60
"""Removed lines that are remembered: a page written before the removal may still have them."""
MAX_FINISHED_TITLES = 100
"""Titles of finished tasks that are remembered, since tools send complete task lists repeatedly."""

_SECTIONS = {
    "task_started": OverviewSection.TASK,
    "decision_made": OverviewSection.DECISIONS,
    "bug_found": OverviewSection.PROBLEMS,
    "bug_closed": OverviewSection.PROBLEMS,
    "context_changed": OverviewSection.FACTS,
    "task_completed": OverviewSection.ACTIONS,
    "compression_completed": OverviewSection.ACTIONS,
    "action_taken": OverviewSection.ACTIONS,
}
_PREFIXES = {
    "": {"en": "{}", "zh": "{}"},
    "done": {"en": "done: {}", "zh": "完成：{}"},
    "set_aside": {"en": "set aside: {}", "zh": "搁置：{}"},
}
_COMPACTION_TOPIC = "compaction"
"""Topic of lines about compactions: only the newest active one is shown."""


def overview_event(kind: str, text: str) -> OverviewEvent:
    """Return the event that a host reports, validated."""
    if kind not in HOST_EVENT_KINDS:
        raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(HOST_EVENT_KINDS)}")
    if not validate_text(text).replace(MARK, "").strip():
        raise InvalidInput(field="text", value=text, expected="a text that is not blank")
    return OverviewEvent(kind, text)


class OverviewLine(NamedTuple):
    """A generated line. A NamedTuple, because it is stored as a JSON list."""

    section: OverviewSection
    text: str
    entered_seq: int
    """Sequence number of the event that first entered the line; repeated reports do not change it."""
    trust: Trust
    prefix: str = ""
    """Key of the words before the text: `done` or `set_aside`."""
    topic: str = ""
    re_entered: bool = False
    """The line was missing from a page written by another writer and was entered again."""
    recurring: bool = False
    """The same text was on the page before, in any section: a page that has it may be older than this line."""

    def prefixed_text(self, language: str) -> str:
        return _PREFIXES[self.prefix][language].format(self.text)

    def render(self, language: str) -> str:
        return _generated_line(self.prefixed_text(language))

    def longest_rendering(self) -> str:
        return max(map(self.render, LANGUAGES), key=lambda line: len(line.encode()))

    @property
    def keys(self) -> frozenset[str]:
        """Comparison keys of the line in all languages: the page may have changed its language."""
        return _line_keys(self.prefix, self.text)

    @property
    def bare_key(self) -> str:
        """Comparison key without the prefix."""
        (key,) = _line_keys("", self.text)
        return key

    @property
    def is_compaction(self) -> bool:
        return self.topic == _COMPACTION_TOPIC

    def replaces(self, earlier: OverviewLine) -> bool:
        """True if it has the same text or topic as the earlier line.

        Compaction lines never replace each other: when the newest compaction is undone, the line before it is shown
        again.
        """
        return not self.is_compaction and (
            self.keys == earlier.keys or bool(self.topic and self.topic == earlier.topic)
        )


@frozen
class OverviewLog:
    """The generated lines of the page: a fold over overview events and edits of the page."""

    lines: tuple[OverviewLine, ...] = ()
    """Newest first."""
    removed: tuple[tuple[OverviewSection, str], ...] = ()
    """Section and key of removed lines, last removed first."""
    finished_titles: tuple[str, ...] = ()

    def apply(self, event: Event) -> OverviewLog:
        match event.payload:
            case OverviewEvent() as payload:
                return self.with_event(payload, seq=event.seq, trust=event.trust)
            case DocumentWritten(path=path, text=text, upkeep=False) if path == OVERVIEW_PATH:
                return self._after_edit(text)
            case CompactionUndone(compaction_seq=undone):
                return self.without_compaction(undone)
            case _:
                return self

    def with_event(self, event: OverviewEvent, *, trust: Trust, seq: int = 0) -> OverviewLog:
        """Return the log after one more event."""
        is_compaction = event.event_type == "compression_completed"
        has_summary = is_compaction and event.subject == SUMMARY_SUBJECT
        text = shorten(event.text, MAX_SUMMARY_LINE_CHARACTERS if has_summary else MAX_LINE_CHARACTERS)
        topic = _COMPACTION_TOPIC if is_compaction else event.subject
        line = OverviewLine(_SECTIONS[event.event_type], text, seq, trust, topic=topic)
        match event.event_type:
            case "task_started":
                return self._with_task(line)
            case "task_completed":
                return self._with_task_done(line._replace(prefix="done"))
            case "bug_closed":
                return self._remove([one for one in self.lines_in(line.section) if one.bare_key == line.bare_key])
            case _:
                return self._add(line)

    def without_compaction(self, compaction_seq: int) -> OverviewLog:
        """Remove the line of an undone compaction.

        It was entered by the event right after the compaction.
        """
        return self._remove(
            [line for line in self.lines if line.is_compaction and line.entered_seq == compaction_seq + 1]
        )

    def without_compactions(self) -> OverviewLog:
        """Remove all lines about compactions, for a session that has none."""
        return self._remove([line for line in self.lines if line.is_compaction])

    @property
    def visible_lines(self) -> list[OverviewLine]:
        """The lines on the page: the newest of each section that fit.

        A hidden line may appear again when others are removed. The current task is placed first, so it always fits.
        """
        last = next((line for line in self.lines if line.is_compaction), None)
        candidates = [line for line in self.lines if line is last or not line.is_compaction]
        sections = sorted(
            {line.section: None for line in candidates}, key=lambda section: section is not OverviewSection.TASK
        )
        most = {OverviewSection.ACTIONS: MAX_ACTION_LINES}
        lists = [
            [line for line in candidates if line.section is section][: most.get(section, MAX_SECTION_LINES)]
            for section in sections
        ]
        fitting = fit_round_robin(lists, OverviewLine.longest_rendering, max_bytes=MAX_EVENT_BYTES)
        return [line for line in candidates if line in fitting]

    def lines_in(self, section: OverviewSection) -> list[OverviewLine]:
        return [line for line in self.lines if line.section is section]

    def known_keys(self, section: OverviewSection) -> frozenset[str]:
        """Keys of current and removed generated lines of a section."""
        current = (words for line in self.lines_in(section) for words in line.keys)
        return frozenset((*current, *(words for place, words in self.removed if place is section)))

    def with_all_removed(self) -> OverviewLog:
        """Return the log with all lines removed."""
        return OverviewLog(removed=(*_keys_of(self.lines), *self.removed))

    def _with_task(self, line: OverviewLine) -> OverviewLog:
        """Set the current task.

        The previous task is listed as set aside, since it was not reported as done.
        """
        former = [one for one in self.lines_in(OverviewSection.TASK) if one.bare_key != line.bare_key]
        log = self._remove([*former, *self._set_aside_lines(line)])
        for one in reversed(former):
            log = log._add(
                one._replace(section=OverviewSection.ACTIONS, prefix="set_aside", entered_seq=line.entered_seq)
            )
        finished = tuple(title for title in self.finished_titles if title != line.bare_key)
        return replace(log._add(line), finished_titles=finished)

    def _with_task_done(self, line: OverviewLine) -> OverviewLog:
        """Close the task with this title.

        A host may use other words for the only task, a tool may list any step.
        """
        tasks = self.lines_in(OverviewSection.TASK)
        named = [one for one in tasks if one.bare_key == line.bare_key]
        ended = named or (tasks if len(tasks) == 1 and line.trust > Trust.DATA else [])
        log = self._remove([*ended, *self._set_aside_lines(line)])
        return replace(log._add(line), finished_titles=(*self.finished_titles, line.bare_key)[-MAX_FINISHED_TITLES:])

    def _set_aside_lines(self, task: OverviewLine) -> list[OverviewLine]:
        return [line for line in self.lines if line.prefix == "set_aside" and line.bare_key == task.bare_key]

    def _add(self, line: OverviewLine) -> OverviewLog:
        """Put a line on top of its section, replacing lines with the same text or topic."""
        before = self.lines_in(line.section)
        replaced = [one for one in before if line.replaces(one)]
        repeated = next((one for one in replaced if one.keys == line.keys), None)
        if repeated is not None:
            line = line._replace(entered_seq=repeated.entered_seq, recurring=repeated.recurring)
        elif any(words in line.keys for _, words in (*_keys_of(self.lines), *self.removed)):
            line = line._replace(recurring=True)
        kept = [one for one in before if one not in replaced and one.is_compaction == line.is_compaction]
        log = self._remove([*replaced, *kept[MAX_STORED_LINES - 1 :]])
        removed = tuple(pair for pair in log.removed if pair[0] is not line.section or pair[1] not in line.keys)
        return replace(log, lines=(line, *log.lines), removed=removed)

    def _remove(self, lines: Collection[OverviewLine]) -> OverviewLog:
        if not lines:
            return self
        removed = dict.fromkeys((*_keys_of(lines), *self.removed))
        remaining = tuple(line for line in self.lines if line not in lines)
        return replace(self, lines=remaining, removed=tuple(removed)[:MAX_REMOVED_LINES])

    def _after_edit(self, text: str) -> OverviewLog:
        """Return the log after another writer wrote the page.

        Removes the lines that the writer deleted.
        """
        visible = self.visible_lines
        if not visible:
            return self
        page_keys = _page_keys(text)
        missing = [line for line in visible if line.keys.isdisjoint(page_keys)]
        if not missing:
            return self
        seen = (
            line
            for line in sorted(visible, key=lambda line: line.entered_seq)
            if line not in missing and not line.recurring
        )
        last = {line.section: line.entered_seq for line in seen}
        deleted = [line for line in missing if line.re_entered or line.entered_seq < last.get(line.section, 0)]
        # A deleted line must not be replaced on the page by an older hidden one.
        hidden = [line for line in self.lines if line not in visible] if deleted else []
        log = self._remove([*deleted, *hidden])
        lines = (line._replace(re_entered=True) if line in missing else line for line in log.lines)
        return replace(log, lines=tuple(lines))


def with_log_lines(text: str, log: OverviewLog, language: str) -> str:
    """Return the page with exactly the visible lines of the log.

    A line that another writer has already written is not repeated.
    """
    for section in OverviewSection:
        ours = log.known_keys(section)

        def without_ours(lines: Sequence[str], ours: Collection[str] = ours) -> list[str]:
            return split_generated(lines, lambda line: comparison_key(line) in ours)[1]

        text = edit_section_lines(text, section.headings(language), without_ours)
    page_keys = _page_keys(text)
    lines = [line for line in log.visible_lines if line.keys.isdisjoint(page_keys)]
    for section in OverviewSection:
        own = [line.render(language) for line in lines if line.section is section]
        text = edit_section_lines(text, section.headings(language), partial(insert_generated, generated=own))
    return text


def _page_keys(text: str) -> set[str]:
    """Comparison keys of all lines of a page."""
    return {comparison_key(line) for _, line in text_lines(split_front_matter(text)[1].split("\n"))}


def _keys_of(lines: Collection[OverviewLine]) -> list[tuple[OverviewSection, str]]:
    return [(line.section, words) for line in lines for words in sorted(line.keys)]


def _generated_line(text: str) -> str:
    """Return a generated line; only the summary of a compaction may be long."""
    is_long = len(text) > MAX_LINE_CHARACTERS + _MAX_PREFIX_CHARACTERS
    return generated_line(text, max_characters=MAX_SUMMARY_LINE_CHARACTERS if is_long else MAX_LINE_CHARACTERS)


_MAX_PREFIX_CHARACTERS = max(len(form) for forms in _PREFIXES.values() for form in forms.values())


@lru_cache(maxsize=1_024)
def _line_keys(word: str, text: str) -> frozenset[str]:
    return frozenset(comparison_key(_generated_line(_PREFIXES[word][language].format(text))) for language in LANGUAGES)
