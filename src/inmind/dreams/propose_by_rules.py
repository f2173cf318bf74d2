"""Propose edits of MEMORY.md by rules, without a model.

Notes, user facts and insights each get a line. An existing line that says the same, or is outdated, is rewritten. Lines
derived from counts (gaps, skills, earnings) are refreshed. Nothing is rephrased: a line has the words of its source, so
it claims nothing else. The size of the page is not considered here: the rewrite evicts the lines with the least worth,
and these remain searchable.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from inmind.core.events.base import Origin, Trust
from inmind.core.fair_turns import giving_way
from inmind.core.language.spans import first_sentences
from inmind.dreams import economics, skills
from inmind.dreams.affect import level_in_note
from inmind.dreams.line_index import LineIndex
from inmind.dreams.material import DreamMaterial, LineSource
from inmind.dreams.open_loops import loop_text
from inmind.dreams.page.edits import (
    MIN_SHARED_WORDS,
    Add,
    Edit,
    Proposal,
    Retire,
    Rewrite,
    lost_facts,
    shared_word_ratio,
)
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, is_derived
from inmind.dreams.page.page import Section, parse_page, section_weights
from inmind.dreams.page.pointers import candidate_pointers
from inmind.dreams.statements import classify_section, find_user_facts
from inmind.search.crystal import HIDDEN_LIFECYCLES, Crystal

MAX_LINE_CHARACTERS: Final = 240
"""Characters of a line. Longer text is cut after a sentence; its source has the rest."""

MAX_ADOPTED_PER_DREAM: Final = 5
"""Adopted entries that one dream moves into their sections."""

MIN_VALENCE: Final = 0.3
"""Absolute valence from which a line is marked as a win or as something to avoid."""

WIN_PREFIX, AVOID_PREFIX = "Worked: ", "Avoid: "

MAX_SKILL_LINES: Final = 10

_GAP_IMPORTANCE, _SKILL_IMPORTANCE = 0.4, 0.5
_MIN_IMPORTANCE = 0.5
"""Importance from which a crystal that is not a note gets a line."""


def propose_by_rules(material: DreamMaterial, *, settled: Sequence[Edit] = ()) -> Proposal:
    """Edits that bring the page up to date. Without new material there are none.

    `settled`: edits that are decided already. Their statements are not repeated, and the lines that they name are not
    touched.
    """
    closed = [
        edit
        for edit in _retire_closed_loops(material)
        if not any(edit.line in edited_lines(other) for other in settled)
    ]
    settled_lines = {line for edit in (*settled, *closed) for line in edited_lines(edit)}
    index = _build_index(material, settled, settled_lines)
    adds = [add for add in giving_way(_new_lines(material)) if not _is_covered(add, settled)]
    for add in giving_way(sorted(adds, key=lambda add: (add.at, add.sources, add.text))):
        index.merge_in(add)
    weights = section_weights(material.levels)
    edits = sorted(
        index.edits(), key=lambda edit: (-edit.importance * weights[Section(edit.section)], edit.at, edit.text)
    )
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
    """True if settled edits with the same sources keep the facts and the topic of this line.

    A settled edit may name a source without stating its facts.
    """
    sources = {*add.sources}
    settled_edits = (edit for edit in settled if not isinstance(edit, Retire) and not sources.isdisjoint(edit.sources))
    text = " ".join(edit.text for edit in settled_edits)
    return bool(text) and not lost_facts(add.text, text) and shared_word_ratio(add.text, text) >= MIN_SHARED_WORDS


def _build_index(material: DreamMaterial, settled: Sequence[Edit], settled_lines: Collection[str]) -> LineIndex:
    """Index the statements of the page.

    Derived lines and pointers are left out: nothing can replace them.
    """
    index = LineIndex()
    for section, text in material.page.all_entries():
        line = material.dream_lines.get(text)
        if text in settled_lines or section is Section.POINTERS:
            continue
        if line is None:
            index.add_fixed(Add(section or Section.ACTIVE, text, trust=Trust.PERSON))
        elif not is_derived(line):
            index.add_line(line)
    for edit in settled:
        if not isinstance(edit, Retire):
            index.add_fixed(edit)
    return index


# -- new lines ---------------------------------------------------------------------------------------------


def _new_lines(material: DreamMaterial) -> Iterator[Add]:
    """Lines for notes, facts, crystals and insights.

    An automatic note about the user's mood stays searchable and gets no line on the page.
    """
    for source in (
        *(note for note in material.notes if not (level_in_note(note.text) and "): the user " in note.text)),
        *find_user_facts(material.crystals),
        *(LineSource.of(crystal) for crystal in material.other_crystals() if _deserves_line(crystal)),
        *material.insights,
    ):
        section, text = _place(source)
        yield Add(section, text, source.ids, source.importance, source.kind, source.at, source.trust)


def _deserves_line(crystal: Crystal) -> bool:
    """True for written crystals that are not notes. Talk, pages and entities get no line."""
    is_written = crystal.kind != "episode" and not crystal.path and crystal.source == "memory"
    is_own = crystal.origin in (Origin.DREAM, Origin.FILE)  # it is on the page already
    is_current = not crystal.superseded_by and not crystal.merged_into and crystal.lifecycle not in HIDDEN_LIFECYCLES
    return is_written and not is_own and is_current and crystal.importance >= _MIN_IMPORTANCE


def _place(source: LineSource) -> tuple[Section, str]:
    """The section of a text and its line there."""
    text, trust = source.text, source.trust
    if level := level_in_note(text):
        prefix = {"dopamine": WIN_PREFIX, "cortisol": AVOID_PREFIX}.get(level, "")
        section = Section.ACTIVE if prefix or trust is Trust.DATA else Section.BOND
        cause = text.partition("): ")[2]
        return section, prefix + to_line(cause, MAX_LINE_CHARACTERS - len(prefix)) if cause else to_line(text)
    if trust is Trust.DATA:
        return Section.ACTIVE, quote_tool_text(text)
    section = classify_section(text, kind=source.kind, trust=trust)
    prefix = (
        (WIN_PREFIX if source.valence > 0 else AVOID_PREFIX)
        if abs(source.valence) >= MIN_VALENCE and section is Section.ACTIVE
        else ""
    )
    return section, prefix + to_line(text, MAX_LINE_CHARACTERS - len(prefix))


def quote_tool_text(text: str) -> str:
    """The line for text from a tool, marked and quoted as data."""
    line = to_line(text.replace('"', "'"), MAX_LINE_CHARACTERS - 20)
    return f'(from a tool) "{line}"'


def to_line(text: str, max_characters: int = MAX_LINE_CHARACTERS) -> str:
    """The text on one line, up to a maximum length."""
    return first_sentences(" ".join(text.split()), max_characters)


# -- derived lines -----------------------------------------------------------------------------------------


def _refresh_derived_lines(material: DreamMaterial) -> Iterator[Add | Retire]:
    """Retire outdated derived lines and add the current ones."""
    derived = {edit.text: edit for edit in _derived_lines(material)}
    on_page = {text for _, text in material.page.all_entries()}
    for text, line in material.dream_lines.items():
        if text in on_page and text not in derived and is_derived(line):
            yield Retire(line=text)
    yield from (edit for text, edit in derived.items() if text not in on_page)


def _derived_lines(material: DreamMaterial) -> Iterator[Add]:
    """Lines of gaps, skills and figures."""

    def known(sources: Iterable[str]) -> tuple[str, ...]:
        """Sources that are crystals. Counts also have tool calls as sources, which are not."""
        return tuple(source for source in sources if material.get_crystal(source))

    for gap in material.gaps:
        reason = _GAP_REASONS.get(gap.reason, "mentioned once")
        text = f"{to_line(gap.topic, MAX_LINE_CHARACTERS - 40)} ({reason})"
        yield Add(Section.GAPS, text, known(gap.sources), _GAP_IMPORTANCE, "gap", gap.last_seen)
    for skill in skills.emerging_skills(material.skills)[:MAX_SKILL_LINES]:
        text = skills.skill_line(skill)
        yield Add(Section.SKILLS, text, known(skill.sources), _SKILL_IMPORTANCE, "skill", skill.last_used)
    for text in (line for totals in material.economics for line in economics.economics_lines(totals)):
        yield Add(Section.NICHE, text, kind="economics", at=material.now.isoformat())


def _retire_closed_loops(material: DreamMaterial) -> Iterator[Retire]:
    """Replace lines of closed loops with pointers that find the original request."""
    on_page = {text for _, text in material.page.all_entries()}
    for text in material.closed_loops:
        line = material.dream_lines.get(text)
        if line is None or text not in on_page:
            continue
        for pointer in candidate_pointers(loop_text(text)):
            if material.search(pointer.keywords).issuperset(line.sources):
                yield Retire(line=text, topic=pointer.topic, keywords=pointer.keywords)
                break


_GAP_REASONS = {
    "unanswered": "asked, not answered",
    "not_found": "searched, not found",
}


# -- entries from before the first dream -------------------------------------------------------------------


def _place_adopted(material: DreamMaterial, settled_lines: Collection[str]) -> list[Rewrite]:
    """Move a few adopted entries verbatim into their sections, with high importance.

    Entries that do not fit on one line stay, because a part of them could change the meaning. So do entries under a
    heading of the user, which gives them context.
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
    """The lines that an edit changes."""
    match edit:
        case Rewrite(lines=lines):
            return lines
        case Retire(line=line):
            return (line,)
        case Add():
            return ()
