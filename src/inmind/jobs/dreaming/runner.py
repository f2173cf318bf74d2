"""Run one dream: gather, propose, check, commit.

A dream takes no lock. The event that starts it keeps other processes from dreaming for the same resource; writers of
notes never wait for it. It proposes a list of edits. They are applied to the page as it is at commit time, including
everything that users and other processes wrote since. The pages, the notes that were taken in and the new crystals are
one commit. Each stage before that is an event too, so another process can resume a dream whose process died.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from inmind.core import metrics
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamAnswered, PageAdopted
from inmind.core.text import count_noun
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.dreams.material import DreamMaterial
from inmind.dreams.page.adopt_existing import split_chunks
from inmind.dreams.page.edits import Proposal
from inmind.dreams.page.eviction import USER_LINE_IMPORTANCE
from inmind.dreams.propose_by_rules import propose_by_rules
from inmind.dreams.state import RULES
from inmind.errors import DreamOvertaken, DreamRejected, ModelFailed, StoreError
from inmind.jobs.dreaming.commit import DreamCommitter, failed_guards
from inmind.jobs.dreaming.gather import GatheredInput, Gatherer
from inmind.jobs.dreaming.lease import DreamLease, LeaseReleased, ProgressCallback, ResumePoint, error_code
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
        self._committer = DreamCommitter(stream, store)
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

        The outcome is in the journal, even if the dream failed.

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
        self._committer.check(lease, gathered, proposal)
        lease.enter_phase("commit")
        self._committer.commit(lease, gathered, proposal)

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

        If this fails, the commit stays and the next reader catches up.
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
            result = self._committer.rewrite(self._stream.state, proposal.edits, material)
            return [] if result.passed else failed_guards(result)

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
