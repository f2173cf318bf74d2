"""The commit of a dream: MEMORY.md, the consumed notes and the new crystals in one append.

The edits are applied to the page as it is at commit time and checked by the guards. Text without an event (typed notes,
lines of users, insights) becomes a crystal in the same append.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamCommitted, PageLine
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, Documents
from inmind.documents.notes_page import remove_pieces
from inmind.dreams.material import NEW_ID_PREFIX, DreamMaterial, LineSource
from inmind.dreams.page.draft import RewriteContext
from inmind.dreams.page.edits import Edit, Proposal, normalize_line
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, USER_LINE_IMPORTANCE
from inmind.dreams.page.page import MAX_PAGE_CHARACTERS, parse_page, section_weights
from inmind.dreams.page.rewrite import RewriteResult, rewrite_page
from inmind.dreams.propose_by_rules import MAX_LINE_CHARACTERS
from inmind.dreams.state import DreamingState
from inmind.dreams.statements import classify_section
from inmind.search.crystal import Crystal


def rewrite(page: str, edits: tuple[Edit, ...], dreaming: DreamingState, material: DreamMaterial) -> RewriteResult:
    """Apply edits to the current page. Typed notes have temporary ids in it."""
    known: dict[str, LineSource | Crystal] = {crystal.id: crystal for crystal in material.crystals}
    known |= {id: note for note in material.notes for id in note.ids}

    @cache
    def source(id: str) -> LineSource | Crystal | None:
        return known.get(id) or material.get_crystal(id)

    context = RewriteContext(
        now=material.now,
        mood=material.mood,
        dream_lines=dreaming.lines,
        user_lines=dreaming.user_lines,
        adopted_entries=dreaming.adopted_entries,
        weights=section_weights(material.levels),
        search=material.search,
        source_text=lambda id: one.text if (one := source(id)) else "",
        source_trust=lambda id: one.trust if (one := source(id)) else Trust.DATA,
        required_lines=tuple(_required_lines(material.notes)),
    )
    return rewrite_page(page, edits, context)


def build_commit(
    stream: str,
    version: int,
    documents: Documents,
    dreaming: DreamingState,
    material: DreamMaterial,
    proposal: Proposal,
    page: RewriteResult,
    *,
    rebased: bool,
    outcome: Mapping[str, Any],
) -> list[Draft]:
    """Events of the commit: the dream, the crystals in the order of their ids, the pages.

    `version`: the version of the stream to which they are appended. `rebased`: the stream has changed during the dream.
    `outcome`: what the dream records like one that failed: its number, verdicts and cost.
    """
    first_typed = version + 2
    typed_ids = {
        f"{NEW_ID_PREFIX}{number}": f"{stream}#{first_typed + number}" for number in range(len(material.typed_notes))
    }
    known = {*dreaming.lines, *dreaming.user_lines, *page.dream_lines}
    entries = dict.fromkeys(entry for _, entry in parse_page(page.text).all_entries() if entry not in known)
    first_entry = first_typed + len(typed_ids)
    committed = DreamCommitted(
        proposer=proposal.by,
        last_seq=material.last_seq,
        journal_position=material.journal_position,
        notes=(*material.note_ids, *typed_ids.values()),
        lines=tuple(
            line._replace(sources=tuple(typed_ids.get(source, source) for source in line.sources))
            for line in page.changed_lines
        ),
        gaps=material.gaps,
        skills=material.skills,
        user_lines=tuple((entry, f"{stream}#{first_entry + number}") for number, entry in enumerate(entries)),
        replayed=material.accessed_crystals,
        insights=tuple(insight.key for insight in material.insights),
        inputs={
            "crystals": material.crystal_counts,
            "levels": {name: round(level, 3) for name, level in material.levels.by_name.items()},
            "rebased": rebased,
        },
        mood=material.mood,
        fallback_reason=proposal.fell_back,
        **outcome,
    )
    return [
        Draft(payload=committed, origin=Origin.DREAM, sources=committed.notes),
        *_crystals(material, entries, documents),
        *_pages(f"{stream}#{version + 1}", documents, material, page),
    ]


def _crystals(material: DreamMaterial, entries: Mapping[str, None], documents: Documents) -> Iterator[Draft]:
    """Crystals of typed notes, of lines that users wrote on MEMORY.md, and of insights."""
    for note in material.typed_notes:
        payload = CrystalCreated(
            text=note.text, importance=note.importance, category=note.kind, valence=note.valence, consolidated=True
        )
        source = documents.by_path[NOTES_PAGE_PATH].source
        yield Draft(payload=payload, origin=Origin.FILE, sources=(source,), trust=note.trust)
    for entry in entries:
        payload = CrystalCreated(text=entry, importance=USER_LINE_IMPORTANCE, consolidated=True)
        yield Draft(payload=payload, origin=Origin.FILE, sources=(documents.by_path[MEMORY_PAGE_PATH].source,))
    for insight in material.insights:
        payload = CrystalCreated(
            text=insight.text, importance=insight.importance, category="insight", consolidated=True
        )
        yield Draft(payload=payload, origin=Origin.DREAM, sources=insight.ids, trust=insight.trust)


def _pages(commit_id: str, documents: Documents, material: DreamMaterial, page: RewriteResult) -> Iterator[Draft]:
    """MEMORY.md and the notes page without the notes taken in.

    MEMORY.md is left out if there is no page yet and it would be empty.
    """
    if MEMORY_PAGE_PATH in documents.by_path or any(parse_page(page.text).all_entries()):
        trust = min((Trust(line.trust) for line in page.dream_lines.values()), default=Trust.AGENT)
        payload = DocumentWritten(path=MEMORY_PAGE_PATH, text=page.text)
        yield Draft(payload=payload, origin=Origin.DREAM, sources=(commit_id,), trust=trust)
    notes = documents.by_path.get(NOTES_PAGE_PATH)
    remaining = remove_pieces(notes.text, material.page_notes, material.remarks) if notes else ""
    if notes is not None and remaining != notes.text:
        payload = DocumentWritten(path=NOTES_PAGE_PATH, text=remaining)
        yield Draft(payload=payload, origin=Origin.DREAM, sources=(commit_id,), trust=notes.trust)


def _required_lines(notes: Sequence[LineSource]) -> Iterator[PageLine]:
    """Lines for notes of the highest importance: verbatim, newest first, a quarter of the page."""
    characters_left = MAX_PAGE_CHARACTERS // 4
    for note in sorted(notes, key=lambda note: note.at, reverse=True):
        is_plain = normalize_line(note.text) == note.text and note.valence >= 0 and note.trust > Trust.DATA
        if (
            note.importance >= MIN_PROTECTED_IMPORTANCE
            and is_plain
            and len(note.text) <= min(characters_left, MAX_LINE_CHARACTERS)
        ):
            characters_left -= len(note.text)
            yield PageLine(
                section=classify_section(note.text, kind=note.kind, trust=note.trust),
                text=note.text,
                sources=note.ids,
                importance=note.importance,
                kind=note.kind,
                at=note.at,
                trust=note.trust,
            )
