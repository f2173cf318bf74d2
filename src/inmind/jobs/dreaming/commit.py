"""Commit a dream: MEMORY.md, the consumed notes and the new crystals in one append.

The edits are applied to the page as it is at commit time and checked by the guards. Text without an event (typed notes,
lines of users, insights) becomes a crystal in the same append.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamCommitted, DreamUnderway, PageLine
from inmind.core.frozen import frozen
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import remove_pieces
from inmind.dreams.classify import classify_section
from inmind.dreams.material import DreamMaterial, PendingNote
from inmind.dreams.page.edits import Add, Edit, Proposal, Rewrite
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, USER_LINE_IMPORTANCE
from inmind.dreams.page.fact_checks import normalize_line
from inmind.dreams.page.limits import MAX_PAGE_CHARACTERS
from inmind.dreams.page.page import parse_page
from inmind.dreams.page.rewrite import RewriteContext, RewriteResult, rewrite_page
from inmind.dreams.page.sections import section_weights
from inmind.dreams.propose_by_rules import MAX_LINE_CHARACTERS
from inmind.errors import DreamRejected
from inmind.jobs.dreaming.gather import NEW_ID_PREFIX, GatheredInput
from inmind.jobs.dreaming.lease import DreamLease
from inmind.search.crystal import Crystal
from inmind.session.state import ResourceState
from inmind.store.protocol import Store
from inmind.store.stream import Decision, Stream


@frozen
class DreamResult:
    """The rewritten page and the events that the commit creates for text without an event."""

    page: RewriteResult
    typed_ids: tuple[str, ...]
    """Event ids of the typed notes."""
    user_line_seqs: dict[str, int]
    """Entries that users wrote on the page and that have no crystal yet, with the sequence numbers of their events."""


class DreamCommitter:
    """Checks the edits of a dream on the current page, and commits them."""

    def __init__(self, stream: Stream[ResourceState], store: Store) -> None:
        self._stream, self._store = stream, store

    def check(self, lease: DreamLease, gathered: GatheredInput, proposal: Proposal) -> None:
        """Run the guards on the page as it is now. The commit runs them again."""
        _apply_verdicts(lease, proposal, self.rewrite(self._stream.refresh(), proposal.edits, gathered.material))
        lease.record_checked()

    def commit(self, lease: DreamLease, gathered: GatheredInput, proposal: Proposal) -> None:
        """Commit the dream, its crystals and both pages as one batch, if the lease is still held."""

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            lease.assert_held(state)
            result = self._build_result(state, gathered, proposal)
            _apply_verdicts(lease, proposal, result.page)
            return Decision(self._build_events(state, gathered, proposal, result, lease), None)

        self._stream.commit(decide)

    def _build_result(self, state: ResourceState, gathered: GatheredInput, proposal: Proposal) -> DreamResult:
        """The rewritten page, with event ids of this commit instead of temporary ids."""
        first = self._stream.version + 2
        names = {
            f"{NEW_ID_PREFIX}{number}": f"{self._stream.name}#{first + number}"
            for number in range(len(gathered.typed_notes))
        }
        edits = tuple(_rename_sources(edit, names) for edit in proposal.edits)
        page = self.rewrite(state, edits, gathered.material, names=names)
        known = {*state.dreams.lines, *state.dreams.user_lines, *page.dream_lines}
        entries = [entry for _, entry in parse_page(page.text).all_entries() if entry not in known]
        seq = first + len(gathered.typed_notes)
        return DreamResult(
            page, tuple(names.values()), {entry: seq + offset for offset, entry in enumerate(dict.fromkeys(entries))}
        )

    def rewrite(
        self,
        state: ResourceState,
        edits: tuple[Edit, ...],
        material: DreamMaterial,
        names: Mapping[str, str] | None = None,
    ) -> RewriteResult:
        """Apply edits to the current page. `names`: event ids by temporary ids of typed notes."""
        known: dict[str, PendingNote | Crystal | None] = {crystal.id: crystal for crystal in material.crystals}
        known |= {(names or {}).get(note.id, note.id): note for note in material.notes}

        def source(id: str) -> PendingNote | Crystal | None:
            if id not in known:
                known[id] = material.get_crystal(id)
            return known[id]

        def source_text(id: str) -> str:
            origin = source(id)
            return origin.text if origin else ""

        def source_trust(id: str) -> Trust:
            origin = source(id)
            return origin.trust if origin else Trust.DATA

        context = RewriteContext(
            now=material.now,
            mood=material.mood,
            dream_lines=state.dreams.lines,
            user_lines=state.dreams.user_lines,
            adopted_entries=state.dreams.adopted_entries,
            weights=section_weights(material.levels),
            search=material.search,
            source_text=source_text,
            source_trust=source_trust,
            required_lines=tuple(_required_lines(material.notes, names or {})),
        )
        return rewrite_page(state.documents.text(MEMORY_PAGE_PATH), edits, context)

    def _build_events(
        self, state: ResourceState, gathered: GatheredInput, proposal: Proposal, result: DreamResult, lease: DreamLease
    ) -> list[Draft]:
        """Events of the commit: the dream, the crystals in the order of their ids, the pages."""
        material = gathered.material
        committed = DreamCommitted(
            dream=lease.dream,
            proposer=proposal.by,
            last_seq=gathered.last_seq,
            journal_position=gathered.journal_position,
            notes=(*gathered.note_ids, *result.typed_ids),
            lines=result.page.changed_lines,
            gaps=material.gaps,
            skills=material.skills,
            user_lines=tuple((entry, f"{self._stream.name}#{seq}") for entry, seq in result.user_line_seqs.items()),
            replayed=gathered.accessed_crystals,
            insights=tuple(insight.key for insight in material.insights),
            verdicts=lease.verdicts,
            refused=lease.refused,
            inputs={
                "crystals": gathered.crystal_counts,
                "levels": {name: round(level, 3) for name, level in material.levels.by_name.items()},
                "rebased": self._is_rebased(gathered),
            },
            mood=material.mood,
            fallback_reason=proposal.fell_back,
            tokens=lease.tokens,
            price=lease.price,
            seconds=lease.seconds,
        )
        crystals = (*_typed_note_events(gathered, state), *_user_line_events(result, state), *_insight_events(material))
        dream = Draft(payload=committed, origin=Origin.DREAM, sources=committed.notes)
        return [dream, *crystals, *self._page_events(state, gathered, result)]

    def _is_rebased(self, gathered: GatheredInput) -> bool:
        """True if anything but progress of this dream was written since the input was gathered."""
        since = self._store.read(self._stream.name, after=gathered.last_seq, until=self._stream.version)
        return not all(isinstance(event.payload, DreamUnderway) for event in since)

    def _page_events(self, state: ResourceState, gathered: GatheredInput, result: DreamResult) -> Iterator[Draft]:
        """MEMORY.md and the notes page without the notes taken in.

        MEMORY.md is left out if there is no page yet and it would be empty.
        """
        commit_id = f"{self._stream.name}#{self._stream.version + 1}"
        if MEMORY_PAGE_PATH in state.documents.by_path or any(parse_page(result.page.text).all_entries()):
            trust = min((Trust(line.trust) for line in result.page.dream_lines.values()), default=Trust.AGENT)
            page = DocumentWritten(path=MEMORY_PAGE_PATH, text=result.page.text)
            yield Draft(payload=page, origin=Origin.DREAM, sources=(commit_id,), trust=trust)
        notes = state.documents.by_path.get(NOTES_PAGE_PATH)
        remaining = remove_pieces(notes.text, gathered.page_notes, gathered.remarks) if notes else ""
        if notes is not None and remaining != notes.text:
            payload = DocumentWritten(path=NOTES_PAGE_PATH, text=remaining)
            yield Draft(payload=payload, origin=Origin.DREAM, sources=(commit_id,), trust=notes.trust)


def _typed_note_events(gathered: GatheredInput, state: ResourceState) -> Iterator[Draft]:
    """Crystals of notes that users typed into the notes page."""
    for note in gathered.typed_notes:
        payload = CrystalCreated(
            text=note.text, importance=note.importance, category=note.kind, valence=note.valence, consolidated=True
        )
        source = state.documents.by_path[NOTES_PAGE_PATH].source
        yield Draft(payload=payload, origin=Origin.FILE, sources=(source,), trust=note.trust)


def _user_line_events(result: DreamResult, state: ResourceState) -> Iterator[Draft]:
    """Crystals of lines that users wrote on MEMORY.md."""
    for entry in result.user_line_seqs:
        payload = CrystalCreated(text=entry, importance=USER_LINE_IMPORTANCE, consolidated=True)
        yield Draft(payload=payload, origin=Origin.FILE, sources=(state.documents.by_path[MEMORY_PAGE_PATH].source,))


def _insight_events(material: DreamMaterial) -> Iterator[Draft]:
    for insight in material.insights:
        payload = CrystalCreated(
            text=insight.text, importance=insight.importance, category="insight", consolidated=True
        )
        yield Draft(payload=payload, origin=Origin.DREAM, sources=insight.sources, trust=insight.trust)


def _required_lines(notes: Sequence[PendingNote], names: Mapping[str, str]) -> Iterator[PageLine]:
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


def _rename_sources(edit: Edit, names: Mapping[str, str]) -> Edit:
    if isinstance(edit, Add | Rewrite):
        return replace(edit, sources=tuple(names.get(source, source) for source in edit.sources))
    return edit


def _apply_verdicts(lease: DreamLease, proposal: Proposal, page: RewriteResult) -> None:
    lease.verdicts, lease.refused = page.verdicts, (*proposal.refused, *page.refused)
    if not page.passed:
        raise DreamRejected(reasons=failed_guards(page))


def failed_guards(result: RewriteResult) -> list[str]:
    return [f"{verdict.guard}: {verdict.detail}" for verdict in result.verdicts if not verdict.passed]
