"""What a model is shown of a dream's material, and by which names: L1 for a line of the page, N1 for a note, and so on.

A model names what it means by these and by nothing else, so whatever it makes up is found out by looking. What it is
shown is bounded, each text is one line, and a line that it may not touch says so; what there was no room for, rules
take care of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.text import inert
from inmind.core.tokens import estimator
from inmind.dreams.material import DreamMaterial
from inmind.dreams.page.eviction import is_told_anew
from inmind.dreams.page.sections import Section
from inmind.dreams.propose_by_rules import line_of
from inmind.search.crystal import Crystal

MOST_SHOWN: Final = 300
"""Characters of one text."""

PARTS: Final = {"page": 3_000, "notes": 4_500, "crystals": 2_500, "insights": 700}
"""Of what is shown, each with the tokens that it may take."""


class Source(NamedTuple):
    """Something that a line can be made of."""

    ids: tuple[str, ...]
    text: str
    importance: float
    kind: str
    at: str
    trust: Trust


@frozen(kw_only=True)
class Labels:
    lines: Mapping[str, PageLine]
    """Lines that may be said anew or retired."""
    locked: Mapping[str, str]
    """Those that may not, each with the reason."""
    sources: Mapping[str, Source]
    parts: Mapping[str, str]
    """All of it as text, part by part."""


def labelled(material: DreamMaterial) -> Labels:
    page = {f"L{number}": entry for number, entry in enumerate(material.page.everything(), 1)}
    reasons = {label: _locked(section, material.dream_lines.get(text)) for label, (section, text) in page.items()}
    sources = {
        "notes": _named("N", _notes(material)),
        "crystals": _named("C", _crystals(material)),
        "insights": _named("I", _insights(material)),
    }
    told = {"page": {label: _entry(*page[label], reason) for label, reason in reasons.items()}}
    told |= {part: {label: _told(one) for label, one in named.items()} for part, named in sources.items()}
    shown = {part: _fitting(texts, PARTS[part]) for part, texts in told.items()}
    return Labels(
        lines={label: material.dream_lines[page[label][1]] for label in shown["page"] if not reasons[label]},
        locked={label: reason for label, reason in reasons.items() if reason},
        sources={label: one for part, named in sources.items() for label, one in named.items() if label in shown[part]},
        parts={part: "\n".join(f"{label} {text}" for label, text in texts.items()) for part, texts in shown.items()},
    )


def _locked(section: Section | None, line: PageLine | None) -> str:
    """Why a line is not the model's to touch; empty where it is."""
    if line is None:
        return "a person wrote it"
    return "it is told by itself" if section is Section.POINTERS or is_told_anew(line) else ""


def _named(letter: str, sources: Iterator[Source]) -> dict[str, Source]:
    return {f"{letter}{number}": source for number, source in enumerate(sources, 1)}


def _notes(material: DreamMaterial) -> Iterator[Source]:
    """The most important first: the last may have no room."""
    waiting = [note for note in material.notes if not note.superseded]
    for note in sorted(waiting, key=lambda note: (-note.importance, note.at, note.id)):
        yield Source((note.id,), note.text, note.importance, note.kind, note.at, note.trust)


def _crystals(material: DreamMaterial) -> Iterator[Source]:
    """What people said and wrote, the newest first. What tools have answered is long, and says nothing of anybody."""
    noted = {note.id for note in material.notes}
    told = [one for one in material.crystals if one.id not in noted and one.trust is not Trust.DATA]
    for one in sorted(told, key=_newest):
        yield Source((one.id,), one.text, one.importance, one.kind, one.at.isoformat(), one.trust)


def _newest(crystal: Crystal) -> tuple[int, float, str]:
    return -crystal.trust, -crystal.at.timestamp(), crystal.id


def _insights(material: DreamMaterial) -> Iterator[Source]:
    for one in material.insights:
        yield Source(one.sources, one.text, one.importance, "insight", material.now.isoformat(), one.trust)


def _entry(section: Section | None, text: str, locked: str) -> str:
    return f"[{section or 'no section'}{f'; locked: {locked}' if locked else ''}] {_shown(text)}"


def _told(source: Source) -> str:
    whose = {Trust.DATA: ", from a tool", Trust.PERSON: ", by a person"}.get(source.trust, "")
    return f"({source.kind}, {source.importance:g}, {source.at[:10]}{whose}) {_shown(source.text)}"


def _shown(text: str) -> str:
    """On one line, so that no text can look like another one's label."""
    return inert(line_of(text, MOST_SHOWN))


def _fitting(texts: Mapping[str, str], room: int) -> dict[str, str]:
    """The first of them, as many as there is room for."""
    count = estimator()
    fitting: dict[str, str] = {}
    for label, text in texts.items():
        room -= count(f"{label} {text}\n")
        if room < 0:
            break
        fitting[label] = text
    return fitting
