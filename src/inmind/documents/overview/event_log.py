"""What happens, noted on overview.md in the section where it is looked for.

An overview that is only as current as its model is diligent goes stale in the middle of a task, when it matters. So
hosts say what happened, and rules read it off the outcomes of tools. The journal has all of it; the lines on the page
are a fold over that, the newest first, each said once and only so many, since the page is paid for in every request.

The page itself is everybody's. Somebody who writes it whole may not have seen the newest of our lines yet, and must not
lose them to us; and somebody who takes a line off must have their way. Which of the two it was the text tells: whoever
kept a line of ours had seen those that were entered before it in that section, so what is missing of these was taken
off, and stays off. What is newer than all that they kept comes back, once: who then takes it off has seen it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

from inmind.core.events.base import Event, Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import CompactionUndone
from inmind.core.frozen import frozen
from inmind.core.text import shortened
from inmind.documents.document import OVERVIEW_PATH, validate_text
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.generated_lines import (
    MARK,
    MAX_LINE_CHARACTERS,
    comparison_key,
    generated_line,
    insert_generated,
    split_generated,
)
from inmind.documents.overview.sections import edit_section_lines, text_lines
from inmind.documents.overview.size import MAX_EVENT_BYTES, fit_round_robin
from inmind.documents.overview.template import LANGUAGES, OverviewSection
from inmind.errors import InvalidInput

HOST_EVENT_KINDS = (
    "task_started",
    "task_completed",
    "decision_made",
    "bug_found",
    "context_changed",
    "compression_completed",
)
"""What a host may say. Rules also say `action_taken`, and `bug_closed` of a problem that they noted themselves."""

MAX_SECTION_LINES = 12
MAX_ACTION_LINES = 10
MAX_STORED_LINES = 24
"""Lines of a section that are remembered, for when those before them leave; and as many about compactions."""
MAX_REMOVED_LINES = 60
"""Lines of ours that are remembered when they have left: a page that was decided before that may still have them."""
MAX_FINISHED_TITLES = 100
"""Titles of finished tasks that are remembered, since lists of them are sent again whole."""

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
"""What lines about compactions are about: of those in force the last is enough."""


def overview_event(kind: str, text: str) -> OverviewEvent:
    """What a host says, checked."""
    if kind not in HOST_EVENT_KINDS:
        raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(HOST_EVENT_KINDS)}")
    if not validate_text(text).replace(MARK, "").strip():
        raise InvalidInput(field="text", value=text, expected="what happened, in words")
    return OverviewEvent(kind, text)


class OverviewLine(NamedTuple):
    """A line of ours. A tuple, since JSON knows tuples."""

    section: OverviewSection
    text: str
    entered_seq: int
    """Number of the event since which it stands on the page; that it was said again since does not count."""
    trust: Trust
    prefix: str = ""
    """What stands in front: `done` or `set_aside`."""
    topic: str = ""
    re_entered: bool = False
    """It was missing from what somebody wrote, and was entered again."""
    recurring: bool = False
    """What it says stood on the page before, in whichever section: a page that has it may be from then."""

    def prefixed_text(self, language: str) -> str:
        return _PREFIXES[self.prefix][language].format(self.text)

    def render(self, language: str) -> str:
        return generated_line(self.prefixed_text(language))

    def longest_rendering(self) -> str:
        return max(map(self.render, LANGUAGES), key=lambda line: len(line.encode()))

    @property
    def keys(self) -> frozenset[str]:
        """What its line says, in any language: the page may have changed its own."""
        return _line_keys(self.prefix, self.text)

    @property
    def bare_key(self) -> str:
        """The same without the word in front."""
        (said,) = _line_keys("", self.text)
        return said

    @property
    def is_compaction(self) -> bool:
        return self.topic == _COMPACTION_TOPIC

    def replaces(self, earlier: OverviewLine) -> bool:
        """Does it say the same, or something newer about the same? Compactions are built on each other: what one has
        done is told again when the next is taken back."""
        return not self.is_compaction and (
            self.keys == earlier.keys or bool(self.topic and self.topic == earlier.topic)
        )


@frozen
class OverviewLog:
    """The lines that memory keeps on the page: a fold over what occurred, and over what others made of the page."""

    lines: tuple[OverviewLine, ...] = ()
    """The newest first."""
    removed: tuple[tuple[OverviewSection, str], ...] = ()
    """What lines of ours said that are none any more, the last that went first."""
    finished_titles: tuple[str, ...] = ()

    def apply(self, event: Event) -> OverviewLog:
        match event.payload:
            case OverviewEvent() as what:
                return self.with_event(what, seq=event.seq, trust=event.trust)
            case DocumentWritten(path=path, text=text, upkeep=False) if path == OVERVIEW_PATH:
                return self._after_edit(text)
            case CompactionUndone(compaction_seq=of):
                return self.without_compaction(of)
            case _:
                return self

    def with_event(self, what: OverviewEvent, *, trust: Trust, seq: int = 0) -> OverviewLog:
        """With one more thing that occurred."""
        about = _COMPACTION_TOPIC if what.event_type == "compression_completed" else what.subject
        note = OverviewLine(
            _SECTIONS[what.event_type], shortened(what.text, MAX_LINE_CHARACTERS), seq, trust, topic=about
        )
        match what.event_type:
            case "task_started":
                return self._with_task(note)
            case "task_completed":
                return self._with_task_done(note._replace(prefix="done"))
            case "bug_closed":
                return self._remove([one for one in self.lines_in(note.section) if one.bare_key == note.bare_key])
            case _:
                return self._add(note)

    def without_compaction(self, compaction_seq: int) -> OverviewLog:
        """When the compaction of event `of` was taken back, right behind which its line was entered."""
        return self._remove(
            [note for note in self.lines if note.is_compaction and note.entered_seq == compaction_seq + 1]
        )

    def without_compactions(self) -> OverviewLog:
        """Without a word about compactions, for whoever has none."""
        return self._remove([note for note in self.lines if note.is_compaction])

    @property
    def visible_lines(self) -> list[OverviewLine]:
        """Those that stand on the page, section by section: the newest, as many as there is room for.

        One that is not shown may be again, when others leave. The current task is in nobody's way.
        """
        last = next((note for note in self.lines if note.is_compaction), None)
        told = [note for note in self.lines if note is last or not note.is_compaction]
        sections = sorted(
            {note.section: None for note in told}, key=lambda section: section is not OverviewSection.TASK
        )
        lists = [[note for note in told if note.section is section][: _max_lines(section)] for section in sections]
        room = fit_round_robin(lists, OverviewLine.longest_rendering, max_bytes=MAX_EVENT_BYTES)
        return [note for note in told if note in room]

    def lines_in(self, section: OverviewSection) -> list[OverviewLine]:
        return [note for note in self.lines if note.section is section]

    def known_keys(self, section: OverviewSection) -> frozenset[str]:
        """What lines of ours say there, or have said."""
        said = (words for note in self.lines_in(section) for words in note.keys)
        return frozenset((*said, *(words for place, words in self.removed if place is section)))

    def with_all_removed(self) -> OverviewLog:
        """With everything gone."""
        return OverviewLog(removed=(*_keys_of(self.lines), *self.removed))

    def freeze(self) -> list[Any]:
        return [self.lines, self.removed, self.finished_titles]

    @classmethod
    def thaw(cls, frozen: Sequence[Any]) -> OverviewLog:
        notes, gone, finished = frozen
        return cls(
            tuple(
                OverviewLine(OverviewSection(place), text, entered, Trust(trust), *rest)
                for place, text, entered, trust, *rest in notes
            ),
            tuple((OverviewSection(place), words) for place, words in gone),
            tuple(finished),
        )

    def _with_task(self, note: OverviewLine) -> OverviewLog:
        """There is one current task. The one before it was not finished, or somebody would have said so."""
        former = [one for one in self.lines_in(OverviewSection.TASK) if one.bare_key != note.bare_key]
        noted = self._remove([*former, *self._set_aside_lines(note)])
        for one in reversed(former):
            noted = noted._add(
                one._replace(section=OverviewSection.ACTIONS, prefix="set_aside", entered_seq=note.entered_seq)
            )
        finished = tuple(title for title in self.finished_titles if title != note.bare_key)
        return replace(noted._add(note), finished_titles=finished)

    def _with_task_done(self, note: OverviewLine) -> OverviewLog:
        """A host that says so in other words means the task that there is; what a tool lists may be any step of it."""
        tasks = self.lines_in(OverviewSection.TASK)
        named = [one for one in tasks if one.bare_key == note.bare_key]
        ended = named or (tasks if len(tasks) == 1 and note.trust > Trust.DATA else [])
        noted = self._remove([*ended, *self._set_aside_lines(note)])
        return replace(noted._add(note), finished_titles=(*self.finished_titles, note.bare_key)[-MAX_FINISHED_TITLES:])

    def _set_aside_lines(self, task: OverviewLine) -> list[OverviewLine]:
        return [note for note in self.lines if note.prefix == "set_aside" and note.bare_key == task.bare_key]

    def _add(self, note: OverviewLine) -> OverviewLog:
        """On top of its section, in the place of what said the same or was about the same."""
        before = self.lines_in(note.section)
        replaced = [one for one in before if note.replaces(one)]
        again = next((one for one in replaced if one.keys == note.keys), None)
        if again is not None:
            note = note._replace(entered_seq=again.entered_seq, recurring=again.recurring)
        elif any(words in note.keys for _, words in (*_keys_of(self.lines), *self.removed)):
            note = note._replace(recurring=True)
        kept = [one for one in before if one not in replaced and one.is_compaction == note.is_compaction]
        noted = self._remove([*replaced, *kept[MAX_STORED_LINES - 1 :]])
        gone = tuple(pair for pair in noted.removed if pair[0] is not note.section or pair[1] not in note.keys)
        return replace(noted, lines=(note, *noted.lines), removed=gone)

    def _remove(self, notes: Collection[OverviewLine]) -> OverviewLog:
        if not notes:
            return self
        gone = dict.fromkeys((*_keys_of(notes), *self.removed))
        left = tuple(note for note in self.lines if note not in notes)
        return replace(self, lines=left, removed=tuple(gone)[:MAX_REMOVED_LINES])

    def _after_edit(self, text: str) -> OverviewLog:
        """What is left of them on a page that somebody wrote."""
        shown = self.visible_lines
        if not shown:
            return self
        said = _page_keys(text)
        missing = [note for note in shown if note.keys.isdisjoint(said)]
        if not missing:
            return self
        seen = (note for note in sorted(shown, key=_entered_seq) if note not in missing and not note.recurring)
        last = {note.section: note.entered_seq for note in seen}
        off = [note for note in missing if note.re_entered or note.entered_seq < last.get(note.section, 0)]
        # Nobody takes a line off to see an older one in its place.
        hidden = [note for note in self.lines if note not in shown] if off else []
        noted = self._remove([*off, *hidden])
        notes = (note._replace(re_entered=True) if note in missing else note for note in noted.lines)
        return replace(noted, lines=tuple(notes))


def with_log_lines(text: str, log: OverviewLog, language: str) -> str:
    """The page with these lines of ours, and no others. What somebody else says already is theirs to say."""
    for section in OverviewSection:
        text = edit_section_lines(text, section.headings(language), partial(_without_known, log.known_keys(section)))
    said = _page_keys(text)
    notes = [note for note in log.visible_lines if note.keys.isdisjoint(said)]
    for section in OverviewSection:
        own = [note.render(language) for note in notes if note.section is section]
        text = edit_section_lines(text, section.headings(language), partial(insert_generated, generated=own))
    return text


def _without_known(ours: Collection[str], lines: Sequence[str]) -> list[str]:
    return split_generated(lines, lambda line: comparison_key(line) in ours)[1]


def _page_keys(text: str) -> set[str]:
    """What the lines of a page say."""
    return {comparison_key(line) for _, line in text_lines(split_front_matter(text)[1].split("\n"))}


def _keys_of(notes: Collection[OverviewLine]) -> list[tuple[OverviewSection, str]]:
    return [(note.section, words) for note in notes for words in sorted(note.keys)]


def _max_lines(section: OverviewSection) -> int:
    return MAX_ACTION_LINES if section is OverviewSection.ACTIONS else MAX_SECTION_LINES


def _entered_seq(note: OverviewLine) -> int:
    return note.entered_seq


@lru_cache(maxsize=1_024)
def _line_keys(word: str, text: str) -> frozenset[str]:
    return frozenset(comparison_key(generated_line(_PREFIXES[word][language].format(text))) for language in LANGUAGES)
