"""Run one dream: gather, propose, commit.

A dream takes no lock. The event that starts it keeps other processes from dreaming for the same resource; writers of
notes never wait for it. It proposes a list of edits. They are applied to the page as it is at commit time, including
everything that users and other processes wrote since. The pages, the notes that were taken in and the new crystals are
one commit. Before that only the model's answers are stored: they are paid for, and a process that resumes the dream
uses them. Everything else is derived again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from inmind.core import metrics
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamAnswered, DreamFailed, DreamUnderway, GuardVerdict, PageAdopted
from inmind.core.fair_turns import short_switch_interval
from inmind.core.text import count_noun
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.dreams.commit import build_commit, rewrite
from inmind.dreams.material import DreamMaterial
from inmind.dreams.models import ModelCost
from inmind.dreams.page.draft import split_chunks
from inmind.dreams.page.edits import Edit, Proposal
from inmind.dreams.page.eviction import USER_LINE_IMPORTANCE
from inmind.dreams.page.rewrite import RewriteResult
from inmind.dreams.propose_by_rules import propose_by_rules
from inmind.dreams.state import RULES, ActiveDream
from inmind.errors import DreamOvertaken, DreamRejected, InmindError, ModelFailed, StoreError
from inmind.jobs.dream_input import Gatherer
from inmind.jobs.dream_lease import DreamLease, LeaseReleased
from inmind.jobs.rate_limits import DreamModel, ModelOptions
from inmind.search.engine import SearchEngine
from inmind.session.context import DocumentFiles
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Key, Store
from inmind.store.stream import Decision, Stream

log = logging.getLogger("inmind")

PHASES = ("gather", "propose", "check", "commit", "index")
"""Phases in order, as reported to the progress callback."""

ProgressCallback = Callable[[str, str], None]
"""Called with the phase of a dream and a short description."""


class Dreamer:
    """Runs one dream of a resource."""

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
        model_options: ModelOptions | None = None,
        on_progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        """`save_backup`: stores a copy of a page that a user wrote and returns its location.

        `sources`: sources to which the searches of sessions are restricted; empty for all.
        """
        self._resource, self._stream, self._files, self._save_backup = resource, stream, files, save_backup
        self._store, self._search, self._clock = store, search, clock
        self._model_options, self._on_progress = model_options, on_progress
        self._gatherer = Gatherer(resource, store, search, sources=sources)
        self._lease = DreamLease(resource, stream, store, cancelled)
        self._started_at = time.monotonic()
        self._phase = PHASES[0]
        self._proposer = model_options.model.name if model_options else RULES
        self._model: DreamModel | None = None
        self._verdicts: tuple[GuardVerdict, ...] = ()
        self._refused: tuple[str, ...] = ()
        self._rewritten: tuple[object, RewriteResult] | None = None
        """The last rewrite of the page and what it depends on."""

    @short_switch_interval()
    def dream(self, trigger: str, *, key: Key | None = None) -> int:
        """Run one dream and return its number.

        The outcome is in the journal, even if the dream failed.

        An unfinished dream is resumed instead of starting a new one. The same holds for the dream that an earlier call
        with the same key started. Raises DreamRunning if another process dreams. A dream that the guards reject, or
        that lost its lease, raises nothing: it has changed nothing and the journal has the reason.
        """
        self._files.read_edits()
        self._adopt_page()
        acquired = self._lease.acquire(trigger, self._proposer, key)
        if acquired is None:
            return self._lease.dream
        running, state = acquired
        try:
            self._enter_phase("gather", "repeated for a resumed dream" if running.answers else "")
            gathered = self._gatherer.gather(
                state, last_seq=running.gathered, now=running.gathered_at, again=bool(running.answers)
            )
            proposal = self._propose(running, gathered)
            self._commit(gathered, proposal)
        except BaseException as error:
            self._end(error)
            self._count(trigger, "LEFT" if isinstance(error, LeaseReleased) else _error_code(error))
            if not isinstance(error, DreamRejected | DreamOvertaken):
                raise
        else:
            self._count(trigger, "done")
            self._publish()
        return self._lease.dream

    def _propose(self, running: ActiveDream, gathered: DreamMaterial) -> Proposal:
        """Propose with the model or its saved answers, else by rules."""
        notes, crystals = len(gathered.note_ids) + len(gathered.typed_notes), sum(gathered.crystal_counts.values())
        self._enter_phase("propose", f"{count_noun(notes, 'note')}, {count_noun(crystals, 'new crystal')}")
        if running.answers:
            self._proposer = running.proposer
        if self._model_options is None and not running.answers:
            return propose_by_rules(gathered)
        from inmind.dreams.propose_by_model import propose_by_model

        def check(proposal: Proposal) -> list[str]:
            return _failed_guards(self._rewrite(self._stream.state, proposal.edits, gathered))

        options = self._model_options
        events = self._store.read(self._stream.name, after=running.gathered, kind=DreamAnswered.kind)
        saved = [event.payload for event in events if isinstance(event.payload, DreamAnswered)]
        model = self._model = DreamModel(
            options, saved, name=self._proposer, record=self._record_answer, wait=self._wait, clock=self._clock
        )
        seconds = options.timeout_seconds if options else 0.0
        try:
            proposal = propose_by_model(gathered, model, seconds=seconds, check=check)
        except ModelFailed as error:
            message = "dream %d of %s: the model failed, proposing by rules: %s"
            log.warning(message, self._lease.dream, self._resource, error.reason)
            proposal = replace(propose_by_rules(gathered), fell_back=error.reason)
        self._proposer = proposal.by
        return proposal

    def _record_answer(self, answer: DreamAnswered) -> None:
        """Store an answer before it is used. It renews the lease."""
        self._lease.renew(lambda until: replace(answer, dream=self._lease.dream, lease_until=until))

    def _wait(self, detail: str) -> None:
        """Report why the dream waits for its model, and keep the lease."""
        if detail:
            self._report("propose", detail)
        self._lease.heartbeat("propose")

    def _commit(self, gathered: DreamMaterial, proposal: Proposal) -> None:
        """Commit the dream, its crystals and both pages as one batch, if the lease is still held.

        The page is rewritten before, outside of the commit, and again only if it has changed since.
        """

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            self._lease.assert_held(state)
            page = self._checked_rewrite(state, gathered, proposal)
            since = self._store.read(self._stream.name, after=gathered.last_seq, until=self._stream.version)
            drafts = build_commit(
                self._stream.name,
                self._stream.version,
                state.documents,
                state.dreams,
                gathered,
                proposal,
                page,
                rebased=not all(isinstance(event.payload, DreamUnderway) for event in since),
                outcome=self._outcome(state),
            )
            return Decision(drafts, None)

        self._enter_phase("check", f"{count_noun(len(proposal.edits), 'edit')} by {proposal.by}")
        self._files.read_edits()
        self._checked_rewrite(self._stream.refresh(), gathered, proposal)
        self._enter_phase("commit")
        self._stream.commit(decide)

    def _checked_rewrite(self, state: ResourceState, gathered: DreamMaterial, proposal: Proposal) -> RewriteResult:
        """The rewritten page. Raises DreamRejected if a guard refuses it."""
        page = self._rewrite(state, proposal.edits, gathered)
        self._verdicts, self._refused = page.verdicts, (*proposal.refused, *page.refused)
        if not page.passed:
            raise DreamRejected(reasons=_failed_guards(page))
        return page

    def _rewrite(self, state: ResourceState, edits: tuple[Edit, ...], gathered: DreamMaterial) -> RewriteResult:
        """The page with these edits.

        The last result is used again as long as page, lines and edits are the same.
        """
        dreams, text = state.dreams, state.documents.text(MEMORY_PAGE_PATH)
        inputs = text, dreams.lines, dreams.user_lines, dreams.adopted_entries, edits
        if self._rewritten is None or self._rewritten[0] != inputs:
            self._rewritten = inputs, rewrite(text, edits, dreams, gathered)
        return self._rewritten[1]

    def _end(self, error: BaseException) -> None:
        """Record why the dream changed nothing, or release it for another process."""
        if isinstance(error, LeaseReleased):
            self._lease.release(self._phase)
            return

        def failed(state: ResourceState, _: datetime) -> EventPayload:
            code, reason = _error_code(error), str(error) or type(error).__name__
            outcome = self._outcome(state)
            return DreamFailed(phase=self._phase, code=code, reason=reason, proposer=self._proposer, **outcome)

        self._lease.end(failed)

    def _outcome(self, state: ResourceState) -> dict[str, Any]:
        """The fields that both ends of a dream record. The cost is that of all processes."""
        running, cost = state.dreams.running, self._model.failed if self._model else ModelCost()
        if running is not None:
            cost = ModelCost(running.tokens, running.price) + cost
        return {
            "dream": self._lease.dream,
            "verdicts": self._verdicts,
            "refused": self._refused,
            "tokens": cost.tokens,
            "price": cost.price,
            "seconds": self._seconds,
        }

    def _publish(self) -> None:
        """Write the live files and update the index.

        If this fails, the commit stays and the next reader catches up.
        """
        try:
            self._report("index")
        finally:
            self._files.publish()
            try:
                self._search.catch_up([self._resource])
            except StoreError as error:
                log.warning("dream %d of %s is not in the index yet: %s", self._lease.dream, self._resource, error)

    def _adopt_page(self) -> None:
        """Back up a MEMORY.md from before the first dream and store it as crystals, once.

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

    def _enter_phase(self, phase: str, detail: str = "") -> None:
        self._report(phase, detail)
        self._lease.heartbeat(phase)

    def _report(self, phase: str, detail: str = "") -> None:
        self._phase = phase
        if self._on_progress is not None:
            self._on_progress(phase, detail)

    @property
    def _seconds(self) -> float:
        return round(time.monotonic() - self._started_at, 3)

    def _count(self, trigger: str, outcome: str) -> None:
        paid = self._model.paid if self._model else ModelCost()
        metrics.count_dream(
            outcome=outcome,
            by=self._proposer,
            trigger=trigger,
            seconds=self._seconds,
            tokens=paid.tokens,
            price=paid.price,
        )


def _failed_guards(result: RewriteResult) -> list[str]:
    return [f"{verdict.guard}: {verdict.detail}" for verdict in result.verdicts if not verdict.passed]


def _error_code(error: BaseException) -> str:
    """The stable code of an inmind error, or the class name of another one."""
    return error.code if isinstance(error, InmindError) else type(error).__name__
