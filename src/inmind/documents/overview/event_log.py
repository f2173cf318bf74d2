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
from inmind.documents.document import OVERVIEW, checked_text
from inmind.documents.overview.front_matter import split_front_matter
from inmind.documents.overview.generated_lines import LONGEST, MARK, own_line, parted_lines, says, with_own
from inmind.documents.overview.sections import plain, with_lines
from inmind.documents.overview.size import MOST_NOTED, fitting
from inmind.documents.overview.template import LANGUAGES, Section
from inmind.errors import InvalidInput

KINDS = (
    "task_started",
    "task_completed",
    "decision_made",
    "bug_found",
    "context_changed",
    "compression_completed",
)
"""What a host may say. Rules also say `action_taken`, and `bug_closed` of a problem that they noted themselves."""

MOST_LINES = 12
MOST_ACTIONS = 10
MOST_KEPT = 24
"""Lines of a section that are remembered, for when those before them leave; and as many about compactions."""
MOST_GONE = 60
"""Lines of ours that are remembered when they have left: a page that was decided before that may still have them."""
MOST_FINISHED = 100
"""Titles of finished tasks that are remembered, since lists of them are sent again whole."""

_SECTIONS = {
    "task_started": Section.TASK,
    "decision_made": Section.DECISIONS,
    "bug_found": Section.PROBLEMS,
    "bug_closed": Section.PROBLEMS,
    "context_changed": Section.FACTS,
    "task_completed": Section.ACTIONS,
    "compression_completed": Section.ACTIONS,
    "action_taken": Section.ACTIONS,
}
_WORDS = {
    "": {"en": "{}", "zh": "{}"},
    "done": {"en": "done: {}", "zh": "完成：{}"},
    "set_aside": {"en": "set aside: {}", "zh": "搁置：{}"},
}
_COMPACTION = "compaction"
"""What lines about compactions are about: of those in force the last is enough."""


def occurrence(kind: str, text: str) -> OverviewEvent:
    """What a host says, checked."""
    if kind not in KINDS:
        raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(KINDS)}")
    if not checked_text(text).replace(MARK, "").strip():
        raise InvalidInput(field="text", value=text, expected="what happened, in words")
    return OverviewEvent(kind, text)


class Note(NamedTuple):
    """A line of ours. A tuple, since JSON knows tuples."""

    section: Section
    text: str
    entered: int
    """Number of the event since which it stands on the page; that it was said again since does not count."""
    trust: Trust
    word: str = ""
    """What stands in front: `done` or `set_aside`."""
    about: str = ""
    returned: bool = False
    """It was missing from what somebody wrote, and was entered again."""
    recurs: bool = False
    """What it says stood on the page before, in whichever section: a page that has it may be from then."""

    def worded(self, language: str) -> str:
        return _WORDS[self.word][language].format(self.text)

    def line(self, language: str) -> str:
        return own_line(self.worded(language))

    def longest_line(self) -> str:
        return max(map(self.line, LANGUAGES), key=lambda line: len(line.encode()))

    @property
    def said(self) -> frozenset[str]:
        """What its line says, in any language: the page may have changed its own."""
        return _said(self.word, self.text)

    @property
    def subject(self) -> str:
        """The same without the word in front."""
        (said,) = _said("", self.text)
        return said

    @property
    def compacts(self) -> bool:
        return self.about == _COMPACTION

    def replaces(self, other: Note) -> bool:
        """Does it say the same, or something newer about the same? Compactions are built on each other: what one has
        done is told again when the next is taken back."""
        return not self.compacts and (self.said == other.said or bool(self.about and self.about == other.about))


@frozen
class Noted:
    """The lines that memory keeps on the page: a fold over what occurred, and over what others made of the page."""

    notes: tuple[Note, ...] = ()
    """The newest first."""
    gone: tuple[tuple[Section, str], ...] = ()
    """What lines of ours said that are none any more, the last that went first."""
    finished: tuple[str, ...] = ()

    def apply(self, event: Event) -> Noted:
        match event.payload:
            case OverviewEvent() as what:
                return self.after(what, seq=event.seq, trust=event.trust)
            case DocumentWritten(path=path, text=text, upkeep=False) if path == OVERVIEW:
                return self._left_by(text)
            case CompactionUndone(compaction_seq=of):
                return self.without_compaction(of)
            case _:
                return self

    def after(self, what: OverviewEvent, *, trust: Trust, seq: int = 0) -> Noted:
        """With one more thing that occurred."""
        about = _COMPACTION if what.event_type == "compression_completed" else what.subject
        note = Note(_SECTIONS[what.event_type], shortened(what.text, LONGEST), seq, trust, about=about)
        match what.event_type:
            case "task_started":
                return self._with_task(note)
            case "task_completed":
                return self._with_task_done(note._replace(word="done"))
            case "bug_closed":
                return self._without([one for one in self.under(note.section) if one.subject == note.subject])
            case _:
                return self._with(note)

    def without_compaction(self, of: int) -> Noted:
        """When the compaction of event `of` was taken back, right behind which its line was entered."""
        return self._without([note for note in self.notes if note.compacts and note.entered == of + 1])

    def lifted(self) -> Noted:
        """Without a word about compactions, for whoever has none."""
        return self._without([note for note in self.notes if note.compacts])

    @property
    def shown(self) -> list[Note]:
        """Those that stand on the page, section by section: the newest, as many as there is room for.

        One that is not shown may be again, when others leave. The current task is in nobody's way.
        """
        last = next((note for note in self.notes if note.compacts), None)
        told = [note for note in self.notes if note is last or not note.compacts]
        sections = sorted({note.section: None for note in told}, key=lambda section: section is not Section.TASK)
        lists = [[note for note in told if note.section is section][: _most(section)] for section in sections]
        room = fitting(lists, Note.longest_line, most=MOST_NOTED)
        return [note for note in told if note in room]

    def under(self, section: Section) -> list[Note]:
        return [note for note in self.notes if note.section is section]

    def ours(self, section: Section) -> frozenset[str]:
        """What lines of ours say there, or have said."""
        said = (words for note in self.under(section) for words in note.said)
        return frozenset((*said, *(words for place, words in self.gone if place is section)))

    def emptied(self) -> Noted:
        """With everything gone."""
        return Noted(gone=(*_left(self.notes), *self.gone))

    def freeze(self) -> list[Any]:
        return [self.notes, self.gone, self.finished]

    @classmethod
    def thaw(cls, frozen: Sequence[Any]) -> Noted:
        notes, gone, finished = frozen
        return cls(
            tuple(
                Note(Section(place), text, entered, Trust(trust), *rest) for place, text, entered, trust, *rest in notes
            ),
            tuple((Section(place), words) for place, words in gone),
            tuple(finished),
        )

    def _with_task(self, note: Note) -> Noted:
        """There is one current task. The one before it was not finished, or somebody would have said so."""
        former = [one for one in self.under(Section.TASK) if one.subject != note.subject]
        noted = self._without([*former, *self._set_aside(note)])
        for one in reversed(former):
            noted = noted._with(one._replace(section=Section.ACTIONS, word="set_aside", entered=note.entered))
        finished = tuple(title for title in self.finished if title != note.subject)
        return replace(noted._with(note), finished=finished)

    def _with_task_done(self, note: Note) -> Noted:
        """A host that says so in other words means the task that there is; what a tool lists may be any step of it."""
        tasks = self.under(Section.TASK)
        named = [one for one in tasks if one.subject == note.subject]
        ended = named or (tasks if len(tasks) == 1 and note.trust > Trust.DATA else [])
        noted = self._without([*ended, *self._set_aside(note)])
        return replace(noted._with(note), finished=(*self.finished, note.subject)[-MOST_FINISHED:])

    def _set_aside(self, task: Note) -> list[Note]:
        return [note for note in self.notes if note.word == "set_aside" and note.subject == task.subject]

    def _with(self, note: Note) -> Noted:
        """On top of its section, in the place of what said the same or was about the same."""
        before = self.under(note.section)
        replaced = [one for one in before if note.replaces(one)]
        again = next((one for one in replaced if one.said == note.said), None)
        if again is not None:
            note = note._replace(entered=again.entered, recurs=again.recurs)
        elif any(words in note.said for _, words in (*_left(self.notes), *self.gone)):
            note = note._replace(recurs=True)
        kept = [one for one in before if one not in replaced and one.compacts == note.compacts]
        noted = self._without([*replaced, *kept[MOST_KEPT - 1 :]])
        gone = tuple(pair for pair in noted.gone if pair[0] is not note.section or pair[1] not in note.said)
        return replace(noted, notes=(note, *noted.notes), gone=gone)

    def _without(self, notes: Collection[Note]) -> Noted:
        if not notes:
            return self
        gone = dict.fromkeys((*_left(notes), *self.gone))
        left = tuple(note for note in self.notes if note not in notes)
        return replace(self, notes=left, gone=tuple(gone)[:MOST_GONE])

    def _left_by(self, text: str) -> Noted:
        """What is left of them on a page that somebody wrote."""
        shown = self.shown
        if not shown:
            return self
        said = _everything(text)
        missing = [note for note in shown if note.said.isdisjoint(said)]
        if not missing:
            return self
        seen = (note for note in sorted(shown, key=_entered) if note not in missing and not note.recurs)
        last = {note.section: note.entered for note in seen}
        off = [note for note in missing if note.returned or note.entered < last.get(note.section, 0)]
        # Nobody takes a line off to see an older one in its place.
        hidden = [note for note in self.notes if note not in shown] if off else []
        noted = self._without([*off, *hidden])
        notes = (note._replace(returned=True) if note in missing else note for note in noted.notes)
        return replace(noted, notes=tuple(notes))


def with_noted(text: str, noted: Noted, language: str) -> str:
    """The page with these lines of ours, and no others. What somebody else says already is theirs to say."""
    for section in Section:
        text = with_lines(text, section.headings(language), partial(_theirs, noted.ours(section)))
    said = _everything(text)
    notes = [note for note in noted.shown if note.said.isdisjoint(said)]
    for section in Section:
        own = [note.line(language) for note in notes if note.section is section]
        text = with_lines(text, section.headings(language), partial(with_own, own=own))
    return text


def _theirs(ours: Collection[str], lines: Sequence[str]) -> list[str]:
    return parted_lines(lines, lambda line: says(line) in ours)[1]


def _everything(text: str) -> set[str]:
    """What the lines of a page say."""
    return {says(line) for _, line in plain(split_front_matter(text)[1].split("\n"))}


def _left(notes: Collection[Note]) -> list[tuple[Section, str]]:
    return [(note.section, words) for note in notes for words in sorted(note.said)]


def _most(section: Section) -> int:
    return MOST_ACTIONS if section is Section.ACTIONS else MOST_LINES


def _entered(note: Note) -> int:
    return note.entered


@lru_cache(maxsize=1_024)
def _said(word: str, text: str) -> frozenset[str]:
    return frozenset(says(own_line(_WORDS[word][language].format(text))) for language in LANGUAGES)
