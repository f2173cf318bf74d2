"""What shall become of MEMORY.md, by rules alone: no model is needed for a page that is right.

Notes, what users have said and what was noticed each want a line. Where the page has one that says the same, or
something that holds no longer, that line is said anew; what is worked out from counts (gaps, skills, earnings) is told
as it is now. Nothing is phrased here: a line has the words of its source, so it says nothing that nobody said. Whether
all of it has room is not asked either: whoever carries this out lets the least worth go, and what has no line is found
all the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from inmind.core.events.base import Origin, Trust
from inmind.core.language.prose import first_sentences
from inmind.dreams import economics, skills
from inmind.dreams.affect.state import level_in_note
from inmind.dreams.classify import classify_section
from inmind.dreams.line_index import LineIndex
from inmind.dreams.material import DreamMaterial, Insight, PendingNote
from inmind.dreams.open_loops import loop_text
from inmind.dreams.page.edits import Add, Edit, Proposal, Retire, Rewrite
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, is_derived
from inmind.dreams.page.fact_checks import MIN_SHARED_WORDS, lost_facts, shared_word_ratio
from inmind.dreams.page.page import parse_page
from inmind.dreams.page.pointers import candidate_pointers
from inmind.dreams.page.sections import Section, section_weights
from inmind.dreams.user_facts import UserFact, find_user_facts
from inmind.search.crystal import HIDDEN_LIFECYCLES, Crystal

MAX_LINE_CHARACTERS: Final = 240
"""Characters of a line. What is longer is cut behind a sentence: its source has the rest."""

MAX_ADOPTED_PER_DREAM: Final = 5
"""Entries from before the first dream that one dream puts into their sections."""

MIN_VALENCE: Final = 0.3
"""How much something has to have been felt to be told as a friction or a win."""

WIN_PREFIX, AVOID_PREFIX = "Worked: ", "Avoid: "

MAX_SKILL_LINES: Final = 10

_ECONOMICS_KIND: Final = "economics"
_GAP_IMPORTANCE, _SKILL_IMPORTANCE = 0.4, 0.5
_MIN_IMPORTANCE = 0.5
"""Importance from which on a crystal that nobody took as a note gets a line."""


def propose_by_rules(material: DreamMaterial, *, settled: Sequence[Edit] = ()) -> Proposal:
    """Edits that bring the page up to what is known. With nothing new there are none.

    `besides`: edits that are settled already. What they say is said, and the lines that they name are left to them.
    """
    closed = [
        edit
        for edit in _retire_closed_loops(material)
        if not any(edit.line in edited_lines(other) for other in settled)
    ]
    settled_lines = {line for edit in (*settled, *closed) for line in edited_lines(edit)}
    index = _build_index(material, settled, settled_lines)
    adds = [add for add in _new_lines(material) if not _is_covered(add, settled)]
    for add in sorted(adds, key=lambda add: (add.at, add.sources, add.text)):
        index.merge_in(add)
    weights = section_weights(material.levels)
    edits = sorted(index.edits(), key=lambda edit: (-edit.importance * weights[edit.section], edit.at, edit.text))
    has_news = material.notes or material.crystals or material.insights
    return Proposal(
        edits=(
            *_refresh_derived_lines(material),
            *closed,
            *edits,
            *(_place_adopted(material, settled_lines) if has_news else ()),
        )
    )


def _is_covered(add: Add, settled: Sequence[Edit]) -> bool:
    """Do those that name what it is made of keep its numbers, its names and what it is about?

    To be named is not to be
    said."""
    sources = {*add.sources}
    settled_edits = (edit for edit in settled if not isinstance(edit, Retire) and not sources.isdisjoint(edit.sources))
    text = " ".join(edit.text for edit in settled_edits)
    return bool(text) and not lost_facts(add.text, text) and shared_word_ratio(add.text, text) >= MIN_SHARED_WORDS


def _build_index(material: DreamMaterial, settled: Sequence[Edit], settled_lines: Collection[str]) -> LineIndex:
    """What the page says.

    Lines that are told from counts, and pointers, say nothing that another could say anew.
    """
    index = LineIndex()
    for section, text in material.page.all_entries():
        line = material.dream_lines.get(text)
        if text in settled_lines or section is Section.POINTERS:
            continue
        if line is None:
            index.add_fixed(Add(section=section or Section.ACTIVE, text=text, sources=(), trust=Trust.PERSON))
        elif not is_derived(line):
            index.add_line(line)
    for edit in settled:
        if not isinstance(edit, Retire):
            index.add_fixed(edit)
    return index


# -- what wants a line -------------------------------------------------------------------------------------


def _new_lines(material: DreamMaterial) -> Iterator[Add]:
    note_ids = {note.id for note in material.notes}
    yield from (_add_from_note(note) for note in material.notes if not note.superseded and not _is_mood_note(note.text))
    yield from (_add_from_fact(one) for one in find_user_facts(material.crystals))
    yield from (_add_from_crystal(one) for one in material.crystals if one.id not in note_ids and _deserves_line(one))
    yield from (_add_from_insight(one, material) for one in material.insights)


def _is_mood_note(note: str) -> bool:
    """That somebody was pleased, or cross, is felt and found again.

    On the page nobody could make anything of it.
    """
    return bool(level_in_note(note)) and "): the user " in note


def _add_from_note(note: PendingNote) -> Add:
    section, text = _place(note.text, kind=note.kind, trust=note.trust, valence=note.valence)
    return Add(
        section=section,
        text=text,
        sources=(note.id,),
        importance=note.importance,
        kind=note.kind,
        at=note.at,
        trust=note.trust,
    )


def _add_from_fact(fact: UserFact) -> Add:
    return Add(
        section=classify_section(fact.text, kind=fact.kind, trust=Trust.PERSON),
        text=to_line(fact.text),
        sources=(fact.source,),
        importance=fact.importance,
        kind=fact.kind,
        at=fact.at,
        trust=Trust.PERSON,
    )


def _add_from_crystal(one: Crystal) -> Add:
    section, text = _place(one.text, kind=one.kind, trust=one.trust, valence=one.valence)
    return Add(
        section=section,
        text=text,
        sources=(one.id,),
        importance=one.importance,
        kind=one.kind,
        at=one.at.isoformat(),
        trust=one.trust,
    )


def _add_from_insight(one: Insight, material: DreamMaterial) -> Add:
    section, text = _place(one.text, kind="insight", trust=one.trust)
    return Add(
        section=section,
        text=text,
        sources=one.sources,
        importance=one.importance,
        kind="insight",
        at=material.now.isoformat(),
        trust=one.trust,
    )


def _deserves_line(crystal: Crystal) -> bool:
    """What somebody has put into memory beside notes.

    Talk is learned from, pages and things are looked up.
    """
    is_written = crystal.kind != "episode" and not crystal.path and crystal.source == "memory"
    is_own = crystal.origin in (Origin.DREAM, Origin.FILE)  # it stands on the page already, in its own words
    is_current = not crystal.superseded_by and not crystal.merged_into and crystal.lifecycle not in HIDDEN_LIFECYCLES
    return is_written and not is_own and is_current and crystal.importance >= _MIN_IMPORTANCE


def _place(text: str, *, kind: str, trust: Trust, valence: float = 0.0) -> tuple[Section, str]:
    """The section that a text belongs to, and the line that it is there."""
    if level := level_in_note(text):
        prefix = {"dopamine": WIN_PREFIX, "cortisol": AVOID_PREFIX}.get(level, "")
        section = Section.ACTIVE if prefix or trust is Trust.DATA else Section.BOND
        cause = text.partition("): ")[2]
        return section, prefix + to_line(cause, MAX_LINE_CHARACTERS - len(prefix)) if cause else to_line(text)
    if trust is Trust.DATA:
        return Section.ACTIVE, quote_tool_text(text)
    section = classify_section(text, kind=kind, trust=trust)
    prefix = (
        (WIN_PREFIX if valence > 0 else AVOID_PREFIX)
        if abs(valence) >= MIN_VALENCE and section is Section.ACTIVE
        else ""
    )
    return section, prefix + to_line(text, MAX_LINE_CHARACTERS - len(prefix))


def quote_tool_text(text: str) -> str:
    """The line of what a tool delivered: data, and quoted as that."""
    line = to_line(text.replace('"', "'"), MAX_LINE_CHARACTERS - 20)
    return f'(from a tool) "{line}"'


def to_line(text: str, max_characters: int = MAX_LINE_CHARACTERS) -> str:
    """A text on one line, as much of it as a line holds."""
    return first_sentences(" ".join(text.split()), max_characters)


# -- what is told anew -------------------------------------------------------------------------------------


def _refresh_derived_lines(material: DreamMaterial) -> Iterator[Add | Retire]:
    """What is no longer so goes, what is so now comes, what stands there as it is stays."""
    derived = {edit.text: edit for edit in (*_gap_lines(material), *_skill_lines(material), *_economics_adds(material))}
    on_page = {text for _, text in material.page.all_entries()}
    for text, line in material.dream_lines.items():
        if text in on_page and text not in derived and is_derived(line):
            yield Retire(line=text)
    yield from (edit for text, edit in derived.items() if text not in on_page)


def _retire_closed_loops(material: DreamMaterial) -> Iterator[Retire]:
    """A loop that is done is past: its line leaves for a pointer that finds what was asked for."""
    on_page = {text for _, text in material.page.all_entries()}
    for text in material.closed_loops:
        line = material.dream_lines.get(text)
        if line is None or text not in on_page:
            continue
        for pointer in candidate_pointers(loop_text(text)):
            if material.search(pointer.keywords).issuperset(line.sources):
                yield Retire(line=text, topic=pointer.topic, keywords=pointer.keywords)
                break


def _gap_lines(material: DreamMaterial) -> Iterator[Add]:
    for gap in material.gaps:
        text = f"{to_line(gap.topic, MAX_LINE_CHARACTERS - 40)} ({_GAP_REASONS.get(gap.reason, gap.reason)})"
        sources = _known_sources(gap.sources, material)
        yield Add(
            section=Section.GAPS, text=text, sources=sources, importance=_GAP_IMPORTANCE, kind="gap", at=gap.last_seen
        )


def _skill_lines(material: DreamMaterial) -> Iterator[Add]:
    for skill in skills.emerging_skills(material.skills)[:MAX_SKILL_LINES]:
        yield Add(
            section=Section.SKILLS,
            text=skills.skill_line(skill),
            sources=_known_sources(skill.sources, material),
            importance=_SKILL_IMPORTANCE,
            kind="skill",
            at=skill.last_used,
        )


def _economics_adds(material: DreamMaterial) -> Iterator[Add]:
    for text in (line for totals in material.economics for line in economics.economics_lines(totals)):
        yield Add(section=Section.NICHE, text=text, sources=(), kind=_ECONOMICS_KIND, at=material.now.isoformat())


def _known_sources(sources: Iterable[str], material: DreamMaterial) -> tuple[str, ...]:
    """Those that can be found. Counts are made of calls, too, which are no crystals."""
    return tuple(source for source in sources if material.get_crystal(source))


_GAP_REASONS = {
    "unanswered": "asked, not answered",
    "not_found": "searched, not found",
    "mentioned_once": "mentioned once",
}


# -- what people wrote before the first dream --------------------------------------------------------------


def _place_adopted(material: DreamMaterial, settled_lines: Collection[str]) -> list[Rewrite]:
    """A few of their entries, into their sections, word for word, as the last to leave these.

    Those that no line holds whole stay where they are: half of what a person wrote is not what they wrote. So do those
    under a heading of theirs, which says what they are about.
    """
    if not material.page.header:
        return []
    adopted = (
        text
        for _, text in parse_page(_SUBHEADING.split(material.page.preamble)[0]).all_entries()
        if text in material.adopted
    )
    one_line_texts = (
        text
        for text in adopted
        if len(text) <= MAX_LINE_CHARACTERS and not _NOT_ONE_LINE.search(text) and text not in settled_lines
    )
    return [
        Rewrite(
            lines=(text,),
            section=classify_section(text, trust=Trust.PERSON),
            text=to_line(text),
            importance=MIN_PROTECTED_IMPORTANCE,
        )
        for text in islice(one_line_texts, MAX_ADOPTED_PER_DREAM)
    ]


_SUBHEADING = re.compile(r"^##", re.MULTILINE)


_NOT_ONE_LINE = re.compile(r"\n|^(?:```|~~~|\||<|#)")


def edited_lines(edit: Edit) -> tuple[str, ...]:
    """The lines that an edit speaks of."""
    match edit:
        case Rewrite(lines=lines):
            return lines
        case Retire(line=line):
            return (line,)
        case Add():
            return ()
