"""Run one dream: gather, propose, check, commit.

A dream takes no lock. The event that starts it keeps other processes from dreaming for the same resource; writers of
notes never wait for it. It proposes a list of edits. They are applied to the page as it is at commit time, including
everything that users and other processes wrote since. The pages, the notes that were taken in and the new crystals are
one commit. Each stage before that is an event too, so another process can resume a dream whose process died.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from inmind.core import metrics
from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamAnswered, DreamCommitted, DreamUnderway, PageAdopted
from inmind.core.text import count_noun
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.documents.notes_page import remove_pieces
from inmind.dreams.material import DreamMaterial, PendingNote
from inmind.dreams.page.adopt_existing import split_chunks
from inmind.dreams.page.edits import Edit, Proposal
from inmind.dreams.page.eviction import USER_LINE_IMPORTANCE
from inmind.dreams.page.page import parse_page
from inmind.dreams.page.rewrite import RewriteContext, RewriteResult, rewrite_page
from inmind.dreams.page.sections import section_weights
from inmind.dreams.propose_by_rules import propose_by_rules
from inmind.dreams.state import RULES
from inmind.errors import DreamOvertaken, DreamRejected, ModelFailed, StoreError
from inmind.jobs.dreaming.commit import (
    DreamResult,
    insight_events,
    rename_sources,
    required_lines,
    typed_note_events,
    user_line_events,
)
from inmind.jobs.dreaming.gather import NEW_ID_PREFIX, GatheredInput, Gatherer
from inmind.jobs.dreaming.lease import DreamLease, LeaseReleased, ProgressCallback, ResumePoint, error_code
from inmind.search.crystal import Crystal
from inmind.search.engine import SearchEngine
from inmind.session.backend import DocumentFiles
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Key, Store
from inmind.store.stream import Decision, Stream

if TYPE_CHECKING:
    from inmind.jobs.dreaming.model_call import ModelOptions

log = logging.getLogger("inmind")

PHASES = ("gather", "propose", "check", "commit", "index")
"""Phases in order, as reported to the progress callback."""


class Dreamer:
    """Runs dreams for one resource."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        files: DocumentFiles,
        save_backup: Callable[[str], str],
        store: Store,
        search: SearchEngine,
        clock: Clock,
        sources: tuple[str, ...] = (),
    ) -> None:
        """`save_backup`: stores a copy of a page that a user wrote and returns its location.

        `sources`: sources to which the searches of sessions are restricted; empty for all.
        """
        self._resource, self._stream, self._files, self._save_backup = resource, stream, files, save_backup
        self._store, self._search, self._clock = store, search, clock
        self._gatherer = Gatherer(
            resource=resource, stream=stream, store=store, search=search, clock=clock, sources=sources
        )

    def dream(
        self,
        trigger: str,
        model_options: ModelOptions | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
        key: Key | None = None,
    ) -> int:
        """Run one dream and return its number.

        The outcome is in the journal, also of a failed dream.

        An unfinished dream is resumed at its last recorded stage instead of starting a new one. The same holds for the
        dream that an earlier call with the same key started. Raises DreamRunning if another process dreams. A dream
        that the guards reject, or that lost its lease, raises nothing: it has changed nothing and the journal has the
        reason.
        """
        self._files.read_edits()
        self._adopt_page()
        lease = DreamLease(
            resource=self._resource,
            stream=self._stream,
            store=self._store,
            on_progress=on_progress,
            cancelled=cancelled,
        )
        if not lease.acquire(trigger, model_options.model.name if model_options else RULES, key):
            return lease.dream
        try:
            self._run_stages(lease, model_options)
        except BaseException as error:
            lease.fail(error)
            _record_metrics(lease, trigger, error)
            if not isinstance(error, DreamRejected | DreamOvertaken):
                raise
        else:
            _record_metrics(lease, trigger)
            self._publish(lease)
        return lease.dream

    def _run_stages(self, lease: DreamLease, model_options: ModelOptions | None) -> None:
        gathered, resumed = self._gather(lease)
        proposal = (resumed and resumed.proposal) or self._propose(
            lease, gathered, model_options, resumed.answers if resumed else ()
        )
        lease.enter_phase("check", f"{count_noun(len(proposal.edits), 'edit')} by {proposal.by}")
        self._files.read_edits()
        gathered = _with_cached_search(gathered)
        self._check(lease, gathered, proposal)
        lease.enter_phase("commit")
        self._commit_dream(lease, gathered, proposal)

    def _gather(self, lease: DreamLease) -> tuple[GatheredInput, ResumePoint | None]:
        """Gather the input.

        A resumed dream gathers its earlier input again, if the typed notes are unchanged.
        """
        resumed = lease.resume_point(self._clock())
        if resumed is not None:
            lease.enter_phase("gather", "repeated for a resumed dream")
            gathered = self._gatherer.gather_again(resumed.gathered)
            if gathered.typed_digest == resumed.gathered.user_notes_digest:
                return gathered, resumed
            log.warning(
                "dream %d of %s: saved proposal no longer matches its inputs, starting over",
                lease.dream,
                self._resource,
            )
        lease.enter_phase("gather")
        gathered = self._gatherer.gather()
        lease.record_gathered(
            last_seq=gathered.last_seq,
            journal_position=gathered.journal_position,
            now=gathered.material.now,
            typed_digest=gathered.typed_digest,
        )
        return gathered, None

    def _propose(
        self,
        lease: DreamLease,
        gathered: GatheredInput,
        model_options: ModelOptions | None,
        answers: Sequence[DreamAnswered],
    ) -> Proposal:
        notes, crystals = len(gathered.material.notes), sum(gathered.crystal_counts.values())
        lease.enter_phase("propose", f"{count_noun(notes, 'note')}, {count_noun(crystals, 'new crystal')}")
        proposal = self._make_proposal(lease, gathered.material, model_options, answers)
        lease.record_proposal(proposal)
        return proposal

    def _publish(self, lease: DreamLease) -> None:
        """Write the live files and update the index.

        If this fails, the commit stands and the next reader catches up.
        """
        try:
            lease.report_phase("index")
        finally:
            self._files.publish()
            try:
                self._search.catch_up([self._resource])
            except StoreError as error:
                log.warning("dream %d of %s is not in the index yet: %s", lease.dream, self._resource, error)

    # -- adopt a page that a user wrote before the first dream ---------------------------------------------

    def _adopt_page(self) -> None:
        """Back up an existing MEMORY.md and store it as crystals, once.

        The flag is part of the same commit.
        """

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            page = state.documents.by_path.get(MEMORY_PAGE_PATH)
            adopted = state.dreams.page_adopted or state.dreams.last_done_at is not None
            if page is None or adopted or not page.text.strip():
                return Decision([], None)
            chunks = split_chunks(page.text)
            backup = self._save_backup(page.text)
            payloads: list[EventPayload] = [PageAdopted(text=page.text, backup=backup, chunks=len(chunks))]
            payloads += (
                CrystalCreated(text=chunk, importance=USER_LINE_IMPORTANCE, consolidated=True) for chunk in chunks
            )
            drafts = [
                Draft(payload=payload, origin=Origin.FILE, sources=(page.source,), trust=page.trust)
                for payload in payloads
            ]
            return Decision(drafts, None)

        self._stream.refresh()
        self._stream.commit(decide)

    # -- propose -------------------------------------------------------------------------------------------

    def _make_proposal(
        self,
        lease: DreamLease,
        material: DreamMaterial,
        model_options: ModelOptions | None,
        answers: Sequence[DreamAnswered],
    ) -> Proposal:
        """Propose with the model or its saved answers, else by rules."""
        if model_options is None and not answers:
            return propose_by_rules(material)
        from inmind.dreams.propose_by_model import propose_by_model
        from inmind.jobs.dreaming.model_call import DreamModel

        def check(proposal: Proposal) -> list[str]:
            result = self._rewrite_page(self._stream.state, proposal.edits, material)
            return [] if result.passed else _failed_guards(result)

        seconds = model_options.timeout_seconds if model_options else 0.0
        try:
            return propose_by_model(
                material, DreamModel(lease, model_options, answers, self._clock), seconds=seconds, check=check
            )
        except ModelFailed as error:
            log.warning(
                "dream %d of %s: the model failed, proposing by rules: %s", lease.dream, self._resource, error.reason
            )
            price = model_options.price(error.tokens) if model_options else 0.0
            return replace(propose_by_rules(material), fell_back=error.reason, tokens=error.tokens, price=price)

    # -- check and commit ----------------------------------------------------------------------------------

    def _check(self, lease: DreamLease, gathered: GatheredInput, proposal: Proposal) -> None:
        """Run the guards on the page as it is now. The commit runs them again."""
        self._apply_verdicts(
            lease, proposal, self._rewrite_page(self._stream.refresh(), proposal.edits, gathered.material)
        )
        lease.record_checked()

    def _commit_dream(self, lease: DreamLease, gathered: GatheredInput, proposal: Proposal) -> None:
        """Commit the dream, its crystals and both pages as one batch, if the lease is still held."""

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            lease.assert_held(state)
            result = self._build_result(state, gathered, proposal)
            self._apply_verdicts(lease, proposal, result.page)
            return Decision(self._build_events(state, gathered, proposal, result, lease), None)

        self._stream.commit(decide)

    def _apply_verdicts(self, lease: DreamLease, proposal: Proposal, page: RewriteResult) -> None:
        lease.verdicts, lease.refused = page.verdicts, (*proposal.refused, *page.refused)
        if not page.passed:
            raise DreamRejected(reasons=_failed_guards(page))

    def _build_result(self, state: ResourceState, gathered: GatheredInput, proposal: Proposal) -> DreamResult:
        """The rewritten page, with event ids of this commit instead of temporary ids."""
        first = self._stream.version + 2
        names = {
            f"{NEW_ID_PREFIX}{number}": f"{self._stream.name}#{first + number}"
            for number in range(len(gathered.typed_notes))
        }
        edits = tuple(rename_sources(edit, names) for edit in proposal.edits)
        page = self._rewrite_page(state, edits, gathered.material, names=names)
        known = {*state.dreams.lines, *state.dreams.user_lines, *page.dream_lines}
        entries = [entry for _, entry in parse_page(page.text).all_entries() if entry not in known]
        seq = first + len(gathered.typed_notes)
        return DreamResult(
            page, tuple(names.values()), {entry: seq + offset for offset, entry in enumerate(dict.fromkeys(entries))}
        )

    def _rewrite_page(
        self,
        state: ResourceState,
        edits: tuple[Edit, ...],
        material: DreamMaterial,
        names: Mapping[str, str] | None = None,
    ) -> RewriteResult:
        known: dict[str, PendingNote | Crystal | None] = {crystal.id: crystal for crystal in material.crystals}
        known |= {(names or {}).get(note.id, note.id): note for note in material.notes}

        def source(id: str) -> PendingNote | Crystal | None:
            if id not in known:
                known[id] = material.get_crystal(id)
            return known[id]

        def source_text(id: str) -> str:
            found = source(id)
            return found.text if found else ""

        def source_trust(id: str) -> Trust:
            found = source(id)
            return found.trust if found else Trust.DATA

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
            required_lines=tuple(required_lines(material.notes, names or {})),
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
        crystals = (*typed_note_events(gathered, state), *user_line_events(result, state), *insight_events(material))
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


def _record_metrics(lease: DreamLease, trigger: str, error: BaseException | None = None) -> None:
    outcome = "done"
    if error is not None:
        outcome = "LEFT" if isinstance(error, LeaseReleased) else error_code(error)
    metrics.count_dream(
        outcome=outcome,
        by=lease.proposer,
        trigger=trigger,
        seconds=lease.seconds,
        tokens=lease.paid_tokens,
        price=lease.paid_price,
    )


def _with_cached_search(gathered: GatheredInput) -> GatheredInput:
    """Cache searches: they are slow, and the commit repeats those of the check."""
    return replace(gathered, material=replace(gathered.material, search=cache(gathered.material.search)))


def _failed_guards(result: RewriteResult) -> list[str]:
    return [f"{verdict.guard}: {verdict.detail}" for verdict in result.verdicts if not verdict.passed]
