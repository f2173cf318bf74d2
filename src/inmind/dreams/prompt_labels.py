"""The material of a dream as the model reads it, with labels.

L1 is a line of the page, N1 a note. The model can refer to lines and sources only by these labels, so an invented one
is detected by lookup. The size is bounded, each text is on one line, and lines that the model must not change are
marked as locked. Rules handle the material that does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.text import escape_markup
from inmind.core.tokens import estimator
from inmind.dreams.material import DreamMaterial
from inmind.dreams.page.eviction import is_derived
from inmind.dreams.page.sections import Section
from inmind.dreams.propose_by_rules import to_line
from inmind.search.crystal import Crystal

MAX_TEXT_CHARACTERS: Final = 300
"""Characters of one text."""

MAX_PART_TOKENS: Final = {"page": 3_000, "notes": 4_500, "crystals": 2_500, "insights": 700}
"""Parts of the prompt, each with its token limit."""


class LabelledSource(NamedTuple):
    """A possible source of a line."""

    ids: tuple[str, ...]
    text: str
    importance: float
    kind: str
    at: str
    trust: Trust


@frozen(kw_only=True)
class Labels:
    """Labels with what they refer to."""

    lines: Mapping[str, PageLine]
    """Lines that may be rewritten or retired."""
    locked: Mapping[str, str]
    """Lines that must not change, each with the reason."""
    sources: Mapping[str, LabelledSource]
    parts: Mapping[str, str]
    """The text of each part."""


def label_material(material: DreamMaterial) -> Labels:
    page_lines = {f"L{number}": entry for number, entry in enumerate(material.page.all_entries(), 1)}
    reasons = {
        label: _lock_reason(section, material.dream_lines.get(text)) for label, (section, text) in page_lines.items()
    }
    sources = {
        "notes": _number("N", _note_sources(material)),
        "crystals": _number("C", _crystal_sources(material)),
        "insights": _number("I", _insight_sources(material)),
    }
    texts_by_part = {"page": {label: _format_line(*page_lines[label], reason) for label, reason in reasons.items()}}
    texts_by_part |= {
        part: {label: _format_source(source) for label, source in labelled.items()}
        for part, labelled in sources.items()
    }
    fitted = {part: _fit(texts, MAX_PART_TOKENS[part]) for part, texts in texts_by_part.items()}
    return Labels(
        lines={label: material.dream_lines[page_lines[label][1]] for label in fitted["page"] if not reasons[label]},
        locked={label: reason for label, reason in reasons.items() if reason},
        sources={
            label: source
            for part, labelled in sources.items()
            for label, source in labelled.items()
            if label in fitted[part]
        },
        parts={part: "\n".join(f"{label} {text}" for label, text in texts.items()) for part, texts in fitted.items()},
    )


def _lock_reason(section: Section | None, line: PageLine | None) -> str:
    """Why the model must not change a line; empty if it may."""
    if line is None:
        return "written by a person"
    return "generated" if section is Section.POINTERS or is_derived(line) else ""


def _number(letter: str, sources: Iterator[LabelledSource]) -> dict[str, LabelledSource]:
    return {f"{letter}{number}": source for number, source in enumerate(sources, 1)}


def _note_sources(material: DreamMaterial) -> Iterator[LabelledSource]:
    """Notes, the most important first: the last ones may not fit."""
    notes = [note for note in material.notes if not note.superseded]
    for note in sorted(notes, key=lambda note: (-note.importance, note.at, note.id)):
        yield LabelledSource((note.id,), note.text, note.importance, note.kind, note.at, note.trust)


def _crystal_sources(material: DreamMaterial) -> Iterator[LabelledSource]:
    """Crystals of people and the agent, newest first.

    Tool results are long and say nothing about people.
    """
    note_ids = {note.id for note in material.notes}
    crystals = [
        crystal for crystal in material.crystals if crystal.id not in note_ids and crystal.trust is not Trust.DATA
    ]
    for crystal in sorted(crystals, key=_newest_first):
        yield LabelledSource(
            (crystal.id,), crystal.text, crystal.importance, crystal.kind, crystal.at.isoformat(), crystal.trust
        )


def _newest_first(crystal: Crystal) -> tuple[int, float, str]:
    return -crystal.trust, -crystal.at.timestamp(), crystal.id


def _insight_sources(material: DreamMaterial) -> Iterator[LabelledSource]:
    for insight in material.insights:
        yield LabelledSource(
            insight.sources, insight.text, insight.importance, "insight", material.now.isoformat(), insight.trust
        )


def _format_line(section: Section | None, text: str, locked: str) -> str:
    return f"[{section or 'no section'}{f'; locked: {locked}' if locked else ''}] {_one_line(text)}"


def _format_source(source: LabelledSource) -> str:
    suffix = {Trust.DATA: ", from a tool", Trust.PERSON: ", by a person"}.get(source.trust, "")
    return f"({source.kind}, {source.importance:g}, {source.at[:10]}{suffix}) {_one_line(source.text)}"


def _one_line(text: str) -> str:
    """The text on one line, so that it cannot imitate a label."""
    return escape_markup(to_line(text, MAX_TEXT_CHARACTERS))


def _fit(texts: Mapping[str, str], budget: int) -> dict[str, str]:
    """The first texts that fit the budget."""
    count = estimator()
    fitting: dict[str, str] = {}
    for label, text in texts.items():
        budget -= count(f"{label} {text}\n")
        if budget < 0:
            break
        fitting[label] = text
    return fitting
