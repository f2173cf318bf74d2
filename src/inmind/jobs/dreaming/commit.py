"""The parts of a dream's commit: crystals of new text, and lines that must be on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.dreams.classify import classify_section
from inmind.dreams.material import DreamMaterial, PendingNote
from inmind.dreams.page.edits import Add, Edit, Rewrite
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, USER_LINE_IMPORTANCE
from inmind.dreams.page.fact_checks import normalize_line
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS
from inmind.dreams.page.rewrite import RewriteResult
from inmind.dreams.propose_by_rules import MAX_LINE_CHARACTERS
from inmind.jobs.dreaming.gather import GatheredInput
from inmind.session.state import ResourceState


@frozen
class DreamResult:
    """The rewritten page and the events that the commit creates for text without an event."""

    page: RewriteResult
    typed_ids: tuple[str, ...]
    """Event ids of the typed notes."""
    user_line_seqs: dict[str, int]
    """Entries that users wrote on the page and that have no crystal yet, with the sequence numbers of their events."""


def typed_note_events(gathered: GatheredInput, state: ResourceState) -> Iterator[Draft]:
    """Crystals of notes that users typed into the notes page."""
    for note in gathered.typed_notes:
        payload = CrystalCreated(
            text=note.text, importance=note.importance, category=note.kind, valence=note.valence, consolidated=True
        )
        source = state.documents.by_path[NOTES_PAGE_PATH].source
        yield Draft(payload=payload, origin=Origin.FILE, sources=(source,), trust=note.trust)


def user_line_events(result: DreamResult, state: ResourceState) -> Iterator[Draft]:
    """Crystals of lines that users wrote on MEMORY.md."""
    for entry in result.user_line_seqs:
        payload = CrystalCreated(text=entry, importance=USER_LINE_IMPORTANCE, consolidated=True)
        yield Draft(payload=payload, origin=Origin.FILE, sources=(state.documents.by_path[MEMORY_PAGE_PATH].source,))


def insight_events(material: DreamMaterial) -> Iterator[Draft]:
    for insight in material.insights:
        payload = CrystalCreated(
            text=insight.text, importance=insight.importance, category="insight", consolidated=True
        )
        yield Draft(payload=payload, origin=Origin.DREAM, sources=insight.sources, trust=insight.trust)


def required_lines(notes: Sequence[PendingNote], names: Mapping[str, str]) -> Iterator[PageLine]:
    """Lines for notes of the highest importance: verbatim, newest first, a quarter of the page."""
    characters_left = MAX_PAGE_CHARACTERS // 4
    for note in sorted(notes, key=lambda note: note.at, reverse=True):
        is_plain = normalize_line(note.text) == note.text and note.valence >= 0 and note.trust > Trust.DATA
        if (
            note.importance >= MIN_PROTECTED_IMPORTANCE
            and is_plain
            and not note.superseded
            and len(note.text) <= min(characters_left, MAX_LINE_CHARACTERS)
        ):
            characters_left -= len(note.text)
            yield PageLine(
                section=classify_section(note.text, kind=note.kind, trust=note.trust),
                text=note.text,
                sources=(names.get(note.id, note.id),),
                importance=note.importance,
                kind=note.kind,
                at=note.at,
                trust=note.trust,
            )


def rename_sources(edit: Edit, names: Mapping[str, str]) -> Edit:
    if isinstance(edit, Add | Rewrite):
        return replace(edit, sources=tuple(names.get(source, source) for source in edit.sources))
    return edit
