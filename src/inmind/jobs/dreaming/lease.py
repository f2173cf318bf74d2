"""The right to dream for a resource: who has it says so in the journal, for a minute at a time, and finds out there
when it has become another's.

A dream whose holder has not been heard of for that long is taken over under its number, from the last stage that it
reached. Whoever held it may come back at any time: all that a dream writes is decided on the newest state, and there
its number and its holder are looked at first.
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
"""Seconds between two looks at whether another process has called the dream off, or has taken it over."""

ProgressCallback = Callable[[str, str], None]
"""Is told which phase a dream is in, and a few words of it."""


class LeaseReleased(Exception):
    """Whoever dreams has to go, and the dream is to go on without it: `cancelled` raises it instead of an answer."""


@frozen
class ResumePoint:
    """What whoever held a dream before has left of it."""

    gathered: DreamGathered
    answers: tuple[DreamAnswered, ...]
    """What a model has said to that."""
    proposal: Proposal | None
    """What came of it, if it came so far."""


class DreamLease:
    """A dream that is going on: it says so, as long as it may, and tells what became of it."""

    def __init__(
        self,
        *,
        resource: str,
        stream: Stream[ResourceState],
        store: Store,
        watch: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.dream, self.proposer = 0, ""
        self.tokens: tuple[int, int] = (0, 0)
        self.price = 0.0
        """All that was paid for it, by whomever."""
        self.paid_tokens: tuple[int, int] = (0, 0)
        self.paid_price = 0.0
        """What was paid for it here."""
        self.verdicts: tuple[GuardVerdict, ...] = ()
        self.refused: tuple[str, ...] = ()
        self._resumed: ActiveDream | None = None
        """The dream as it was when it was taken over."""
        self._resource, self._stream, self._store = resource, stream, store
        self._watch, self._cancelled = watch, cancelled
        self._holder = token_hex(8)
        self._started_at = self._renewed_at = self._checked_at = time.monotonic()
        self._phase = "begun"

    @property
    def seconds(self) -> float:
        """For which it has been this one's."""
        return round(time.monotonic() - self._started_at, 3)

    # -- getting it ----------------------------------------------------------------------------------------

    def acquire(self, trigger: str, proposer: str, key: Key | None) -> bool:
        """Begin a dream, or go on with one that was left in the middle; False where the key's dream is over already.

        DreamRunning while somebody else holds it. What a key has begun is gone on with however old it is; without one,
        what is too old to be worth it is given up for a new dream.
        """
        self._stream.refresh()
        dream = self._dream_for_key(key)
        if dream is None:

            def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, ActiveDream | None]:
                running = owned.dreams.running
                if running is not None and (running.is_held(now) or running.is_resumable(now)):
                    return self._take_over(running, proposer, now)
                if running is not None:
                    log.warning("dream %d of %s was left in the middle and is given up", running.dream, self._resource)
                begun = DreamStarted(
                    trigger=trigger, lease_until=_lease_end(now), proposer=proposer, holder=self._holder
                )
                return Decision([Draft(payload=begun, origin=Origin.DREAM)], None)

            done = self._stream.commit(decide, key=key)
            if not done.appended.repeated:
                self._set_held(done.result.dream if done.result else done.appended.first, proposer, done.result)
                return True
            dream = self._dream_for_key(key) or done.appended.first
        return self._reacquire(dream, proposer)

    def _reacquire(self, dream: int, by: str) -> bool:
        """The dream that a key has begun, unless it is over."""

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, ActiveDream | None]:
            running = owned.dreams.running
            if running is None or running.dream != dream:
                return Decision([], None)
            return self._take_over(running, by, now)

        self._stream.refresh()
        found = self._stream.commit(decide).result
        self._set_held(dream, by, found)
        return found is not None

    def _take_over(self, running: ActiveDream, by: str, now: datetime) -> Decision[ResourceState, ActiveDream | None]:
        if running.is_held(now):
            raise DreamRunning(
                resource=self._resource, dream=running.dream, until=format_timestamp(running.lease_until)
            )
        told = "dream %d of %s was left in the middle and is gone on with from there: it was %s"
        log.warning(told, running.dream, self._resource, running.stage)
        taken = DreamResumed(
            dream=running.dream,
            lease_until=_lease_end(now),
            holder=self._holder,
            proposer=running.proposer if running.has_paid_work else by,
        )
        return Decision([Draft(payload=taken, origin=Origin.DREAM)], running)

    def _dream_for_key(self, key: Key | None) -> int | None:
        """The dream that an earlier call with this key has begun, or gone on with."""
        receipt = self._store.receipt(self._stream.name, key) if key is not None else None
        if receipt is None:
            return None
        (event,) = self._store.read(self._stream.name, after=receipt.first - 1, until=receipt.first)
        return event.payload.dream if isinstance(event.payload, DreamResumed) else event.seq

    def _set_held(self, dream: int, by: str, found: ActiveDream | None) -> None:
        self.dream, self.proposer, self._resumed = dream, by, found
        if found is not None:
            self.tokens, self.price = found.tokens, found.price

    def resume_point(self, now: datetime) -> ResumePoint | None:
        """What there is to go on with: nothing, where nothing was answered or proposed, or too long ago."""
        found = self._resumed
        if found is None or not found.has_paid_work or not found.is_resumable(now):
            return None
        gathered, proposed = self._read_payload(found.gathered), self._read_payload(found.proposed)
        if not isinstance(gathered, DreamGathered):
            return None
        self.proposer = found.proposer
        if not isinstance(proposed, DreamProposed):
            answers = map(self._read_payload, found.answers)
            return ResumePoint(gathered, tuple(one for one in answers if isinstance(one, DreamAnswered)), None)
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

    # -- going on ------------------------------------------------------------------------------------------

    def enter_phase(self, phase: str, detail: str = "") -> None:
        self.report_phase(phase, detail)
        self.heartbeat()

    def report_phase(self, phase: str, detail: str = "") -> None:
        self._phase = phase
        if self._watch is not None:
            self._watch(phase, detail)

    def heartbeat(self) -> None:
        """Still wanted, and still the only one? It says so again well before the others would think that it is over."""
        if self._cancelled is not None and self._cancelled():
            raise DreamOvertaken(dream=self.dream, reason="was called off")
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self._checked_at = time.monotonic()
            self.assert_held(self._stream.refresh())
        if time.monotonic() - self._renewed_at >= LEASE_DURATION.total_seconds() / 3:
            self._renew(DreamProgressed(dream=self.dream, phase=self._phase, lease_until=""))

    def record_gathered(self, *, upto: int, position: int, now: datetime, typed: str) -> None:
        """What it is made of was looked at."""
        self._renew(
            DreamGathered(
                dream=self.dream,
                lease_until="",
                last_seq=upto,
                journal_position=position,
                as_of=now.isoformat(),
                user_notes_digest=typed,
            )
        )

    def record_answer(self, reply: ModelReply, *, by: str, price: float) -> None:
        """A model has said something, and it is paid for."""
        self._add_cost(reply.tokens, price)
        self._renew(
            DreamAnswered(
                dream=self.dream,
                lease_until="",
                text=reply.text,
                proposer=by,
                truncated=reply.truncated,
                tokens=reply.tokens,
                price=price,
            )
        )

    def record_proposal(self, proposal: Proposal) -> None:
        """What it will do is settled."""
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
        """The guards had nothing against it."""
        self._renew(DreamChecked(dream=self.dream, lease_until="", verdicts=self.verdicts))

    def assert_held(self, owned: ResourceState) -> None:
        if self._is_holder(owned):
            return
        running = owned.dreams.running
        if running is None:
            reason = "was ended by somebody else"
        elif running.dream == self.dream:
            reason = "was taken over by somebody else"
        else:
            reason = f"was overtaken by dream {running.dream}"
        raise DreamOvertaken(dream=self.dream, reason=reason)

    def fail(self, error: BaseException) -> None:
        """Say why it has changed nothing; one that is another's, or is over, has been spoken of already."""
        if isinstance(error, LeaseReleased):
            return self._release()

        def decide(owned: ResourceState, _: datetime) -> Decision[ResourceState, None]:
            if not self._is_holder(owned):
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

        with suppress(StoreError, Closed):  # then it is taken over by whoever comes next
            self._stream.commit(decide)
        return None

    def _release(self) -> None:
        """Let the next one go on at once: what has been gathered and proposed is there for it."""

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            went = DreamProgressed(dream=self.dream, phase=self._phase, lease_until=now.isoformat(), released=True)
            return Decision([Draft(payload=went, origin=Origin.DREAM)] if self._is_holder(owned) else [], None)

        with suppress(StoreError, Closed):
            self._stream.commit(decide)

    def _is_holder(self, owned: ResourceState) -> bool:
        running = owned.dreams.running
        return running is not None and (running.dream, running.holder) == (self.dream, self._holder)

    def _renew(self, what: DreamProgressed | DreamGathered | DreamAnswered | DreamProposed | DreamChecked) -> None:
        """Whatever it says, it holds for longer by that."""

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, Any]:
            self.assert_held(owned)
            return Decision([Draft(payload=replace(what, lease_until=_lease_end(now)), origin=Origin.DREAM)], None)

        self._stream.commit(decide)
        self._renewed_at = time.monotonic()


def error_code(error: BaseException) -> str:
    return error.code if isinstance(error, InmindError) else type(error).__name__


def _lease_end(now: datetime) -> str:
    return (now + LEASE_DURATION).isoformat()
