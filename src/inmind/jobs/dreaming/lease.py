"""The dream lease: the exclusive right to dream for a resource.

The holder renews it in the journal every 20 s; it expires after 60 s. After that another process takes the dream over
under the same number and resumes at the last recorded stage. The former holder may continue at any time, so every
write of a dream is decided on the newest state and first checks number and holder.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from secrets import token_hex
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.dreams import (
    DreamAnswered,
    DreamChecked,
    DreamFailed,
    DreamGathered,
    DreamProgressed,
    DreamProposed,
    DreamResumed,
    DreamStarted,
    GuardVerdict,
)
from inmind.core.frozen import frozen
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.model import ModelReply
from inmind.dreams.page.edits import Proposal, edit_from_row, edit_to_row
from inmind.dreams.state import LEASE_DURATION, ActiveDream
from inmind.errors import Closed, DreamOvertaken, DreamRunning, InmindError, StoreError
from inmind.session.state import ResourceState
from inmind.store.protocol import Key, Store
from inmind.store.stream import Decision, Stream

log = logging.getLogger("inmind")

CHECK_SECONDS = 1.0
"""Seconds between two checks whether another process has cancelled the dream or taken it over."""

ProgressCallback = Callable[[str, str], None]
"""Called with the phase of a dream and a short description."""


class LeaseReleased(Exception):
    """Raised by the `cancelled` callback to stop here and let another process resume."""


@frozen
class ResumePoint:
    """The saved results of a dream that this process takes over."""

    gathered: DreamGathered
    answers: tuple[DreamAnswered, ...]
    """Answers of the model to the gathered input."""
    proposal: Proposal | None
    """The saved proposal, if the dream reached that stage."""


class DreamLease:
    """A running dream: renews its lease, records its stages, and reports its outcome."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        store: Store,
        on_progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.dream, self.proposer = 0, ""
        self.tokens: tuple[int, int] = (0, 0)
        self.price = 0.0
        """Tokens and price of the dream so far, in all processes."""
        self.paid_tokens: tuple[int, int] = (0, 0)
        self.paid_price = 0.0
        """Tokens and price paid by this process."""
        self.verdicts: tuple[GuardVerdict, ...] = ()
        self.refused: tuple[str, ...] = ()
        self._resumed: ActiveDream | None = None
        """The dream as it was when this process took it over."""
        self._resource, self._stream, self._store = resource, stream, store
        self._on_progress, self._cancelled = on_progress, cancelled
        self._holder = token_hex(8)
        self._started_at = self._renewed_at = self._checked_at = time.monotonic()
        self._phase = "begun"

    @property
    def seconds(self) -> float:
        """Seconds since this process acquired the lease."""
        return round(time.monotonic() - self._started_at, 3)

    # -- acquire -------------------------------------------------------------------------------------------

    def acquire(self, trigger: str, proposer: str, key: Key | None) -> bool:
        """Start a dream or resume an unfinished one.

        False if the dream of this key has already ended.

        Raises DreamRunning while another process holds the lease. A dream started with this key is resumed at any
        age. Without a key, a dream that is too old to resume is abandoned and a new one is started.
        """
        self._stream.refresh()
        dream = self._dream_for_key(key)
        if dream is None:

            def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, ActiveDream | None]:
                running = state.dreams.running
                if running is not None and (running.is_held(now) or running.is_resumable(now)):
                    return self._take_over(running, proposer, now)
                if running is not None:
                    log.warning(
                        "dream %d of %s is unfinished and too old to resume: abandoned", running.dream, self._resource
                    )
                started = DreamStarted(
                    trigger=trigger, lease_until=_lease_end(now), proposer=proposer, holder=self._holder
                )
                return Decision([Draft(payload=started, origin=Origin.DREAM)], None)

            result = self._stream.commit(decide, key=key)
            if not result.appended.repeated:
                self._set_held(result.result.dream if result.result else result.appended.first, proposer, result.result)
                return True
            dream = self._dream_for_key(key) or result.appended.first
        return self._reacquire(dream, proposer)

    def _reacquire(self, dream: int, proposer: str) -> bool:
        """Take over the dream that a key has started. False if it has ended."""

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, ActiveDream | None]:
            running = state.dreams.running
            if running is None or running.dream != dream:
                return Decision([], None)
            return self._take_over(running, proposer, now)

        self._stream.refresh()
        resumed = self._stream.commit(decide).result
        self._set_held(dream, proposer, resumed)
        return resumed is not None

    def _take_over(
        self, running: ActiveDream, proposer: str, now: datetime
    ) -> Decision[ResourceState, ActiveDream | None]:
        if running.is_held(now):
            raise DreamRunning(
                resource=self._resource, dream=running.dream, until=format_timestamp(running.lease_until)
            )
        log.warning("resuming dream %d of %s at stage %s", running.dream, self._resource, running.stage)
        taken_over = DreamResumed(
            dream=running.dream,
            lease_until=_lease_end(now),
            holder=self._holder,
            proposer=running.proposer if running.has_paid_work else proposer,
        )
        return Decision([Draft(payload=taken_over, origin=Origin.DREAM)], running)

    def _dream_for_key(self, key: Key | None) -> int | None:
        """Number of the dream that an earlier call with this key started or resumed."""
        receipt = self._store.receipt(self._stream.name, key) if key is not None else None
        if receipt is None:
            return None
        (event,) = self._store.read(self._stream.name, after=receipt.first - 1, until=receipt.first)
        return event.payload.dream if isinstance(event.payload, DreamResumed) else event.seq

    def _set_held(self, dream: int, proposer: str, resumed: ActiveDream | None) -> None:
        self.dream, self.proposer, self._resumed = dream, proposer, resumed
        if resumed is not None:
            self.tokens, self.price = resumed.tokens, resumed.price

    def resume_point(self, now: datetime) -> ResumePoint | None:
        """Saved results to resume from; None if there are none or they are too old."""
        resumed = self._resumed
        if resumed is None or not resumed.has_paid_work or not resumed.is_resumable(now):
            return None
        gathered, proposed = self._read_payload(resumed.gathered), self._read_payload(resumed.proposed)
        if not isinstance(gathered, DreamGathered):
            return None
        self.proposer = resumed.proposer
        if not isinstance(proposed, DreamProposed):
            answers = map(self._read_payload, resumed.answers)
            return ResumePoint(gathered, tuple(answer for answer in answers if isinstance(answer, DreamAnswered)), None)
        proposal = Proposal(
            edits=tuple(map(edit_from_row, proposed.edits)),
            by=proposed.proposer,
            fell_back=proposed.fallback_reason,
            refused=proposed.refused,
            tokens=proposed.tokens,
            price=proposed.price,
        )
        self.proposer = proposal.by
        return ResumePoint(gathered, (), proposal)

    def _read_payload(self, seq: int) -> object:
        return next((event.payload for event in self._store.read(self._stream.name, after=seq - 1, until=seq)), None)

    # -- run -----------------------------------------------------------------------------------------------

    def enter_phase(self, phase: str, detail: str = "") -> None:
        self.report_phase(phase, detail)
        self.heartbeat()

    def report_phase(self, phase: str, detail: str = "") -> None:
        self._phase = phase
        if self._on_progress is not None:
            self._on_progress(phase, detail)

    def heartbeat(self) -> None:
        """Check for cancellation and loss of the lease, and renew it after a third of its duration."""
        if self._cancelled is not None and self._cancelled():
            raise DreamOvertaken(dream=self.dream, reason="was cancelled")
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self._checked_at = time.monotonic()
            self.assert_held(self._stream.refresh())
        if time.monotonic() - self._renewed_at >= LEASE_DURATION.total_seconds() / 3:
            self._renew(DreamProgressed(dream=self.dream, phase=self._phase, lease_until=""))

    def record_gathered(self, *, last_seq: int, journal_position: int, now: datetime, typed_digest: str) -> None:
        """Record that the input was gathered, and up to where it was read."""
        self._renew(
            DreamGathered(
                dream=self.dream,
                lease_until="",
                last_seq=last_seq,
                journal_position=journal_position,
                as_of=now.isoformat(),
                user_notes_digest=typed_digest,
            )
        )

    def record_answer(self, reply: ModelReply, *, proposer: str, price: float) -> None:
        """Record an answer of the model and its cost."""
        self._add_cost(reply.tokens, price)
        self._renew(
            DreamAnswered(
                dream=self.dream,
                lease_until="",
                text=reply.text,
                proposer=proposer,
                truncated=reply.truncated,
                tokens=reply.tokens,
                price=price,
            )
        )

    def record_proposal(self, proposal: Proposal) -> None:
        """Record the proposal and its cost."""
        self.proposer = proposal.by
        self._add_cost(proposal.tokens, proposal.price)
        self._renew(
            DreamProposed(
                dream=self.dream,
                lease_until="",
                edits=tuple(map(edit_to_row, proposal.edits)),
                proposer=proposal.by,
                fallback_reason=proposal.fell_back,
                refused=proposal.refused,
                tokens=proposal.tokens,
                price=proposal.price,
            )
        )

    def _add_cost(self, tokens: tuple[int, int], price: float) -> None:
        self.tokens = (self.tokens[0] + tokens[0], self.tokens[1] + tokens[1])
        self.paid_tokens = (self.paid_tokens[0] + tokens[0], self.paid_tokens[1] + tokens[1])
        self.price, self.paid_price = self.price + price, self.paid_price + price

    def record_checked(self) -> None:
        """Record that all guards passed."""
        self._renew(DreamChecked(dream=self.dream, lease_until="", verdicts=self.verdicts))

    def assert_held(self, state: ResourceState) -> None:
        """Raise DreamOvertaken unless this process holds the lease."""
        if self._is_holder(state):
            return
        running = state.dreams.running
        if running is None:
            reason = "was ended by another process"
        elif running.dream == self.dream:
            reason = "was taken over by another process"
        else:
            reason = f"was superseded by dream {running.dream}"
        raise DreamOvertaken(dream=self.dream, reason=reason)

    def fail(self, error: BaseException) -> None:
        """Record why the dream changed nothing, unless it has ended or another process holds it."""
        if isinstance(error, LeaseReleased):
            return self._release()

        def decide(state: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            if not self._is_holder(state):
                return Decision([], None)
            failed = DreamFailed(
                dream=self.dream,
                phase=self._phase,
                code=error_code(error),
                reason=str(error) or type(error).__name__,
                proposer=self.proposer,
                verdicts=self.verdicts,
                refused=self.refused,
                tokens=self.tokens,
                price=self.price,
                seconds=self.seconds,
            )
            return Decision([Draft(payload=failed, origin=Origin.DREAM)], None)

        with suppress(StoreError, Closed):  # the lease expires and the next process takes the dream over
            self._stream.commit(decide)
        return None

    def _release(self) -> None:
        """End the lease now so that another process can resume from the recorded stages."""

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            released = DreamProgressed(dream=self.dream, phase=self._phase, lease_until=now.isoformat(), released=True)
            return Decision([Draft(payload=released, origin=Origin.DREAM)] if self._is_holder(state) else [], None)

        with suppress(StoreError, Closed):
            self._stream.commit(decide)

    def _is_holder(self, state: ResourceState) -> bool:
        running = state.dreams.running
        return running is not None and (running.dream, running.holder) == (self.dream, self._holder)

    def _renew(self, payload: DreamProgressed | DreamGathered | DreamAnswered | DreamProposed | DreamChecked) -> None:
        """Append a progress event, which also extends the lease."""

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, Any]:
            self.assert_held(state)
            return Decision([Draft(payload=replace(payload, lease_until=_lease_end(now)), origin=Origin.DREAM)], None)

        self._stream.commit(decide)
        self._renewed_at = time.monotonic()


def error_code(error: BaseException) -> str:
    """The stable code of an inmind error, or the class name of another one."""
    return error.code if isinstance(error, InmindError) else type(error).__name__


def _lease_end(now: datetime) -> str:
    return (now + LEASE_DURATION).isoformat()
