"""The dream lease: the exclusive right to dream for a resource.

The holder renews it in the journal every 20 s; it expires after 60 s. After that another process takes the dream over
under the same number. The former holder may continue at any time, so every write of a dream is decided on the newest
state and first checks number and holder.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from secrets import token_hex
from typing import cast

from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.dreams import DreamProgressed, DreamResumed, DreamStarted
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.state import LEASE_DURATION, ActiveDream
from inmind.errors import Closed, DreamOvertaken, DreamRunning, StoreError
from inmind.session.state import ResourceState
from inmind.store.protocol import Key, Store
from inmind.store.stream import Decision, Stream

log = logging.getLogger("inmind")

CHECK_SECONDS = 1.0
"""Seconds between two checks whether another process has cancelled the dream or taken it over."""


class LeaseReleased(Exception):
    """Raised by the `cancelled` callback to stop here and let another process resume."""


class DreamLease:
    """The lease of one dream in one process."""

    def __init__(
        self,
        resource: str,
        stream: Stream[ResourceState],
        store: Store,
        cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self.dream = 0
        """The number of the dream."""
        self._resource, self._stream, self._store, self._cancelled = resource, stream, store, cancelled
        self._holder = token_hex(8)
        self._renewed_at = self._checked_at = time.monotonic()

    def acquire(self, trigger: str, proposer: str, key: Key | None) -> tuple[ActiveDream, ResourceState] | None:
        """Start a dream or resume an unfinished one: the dream, and the state that is its input.

        None if the dream of this key has already ended. Raises DreamRunning while another process holds the lease. A
        dream started with this key is resumed at any age. Without a key, a dream that is too old to resume is abandoned
        and a new one is started.
        """

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, ResourceState | None]:
            running = state.dreams.running
            if wanted:
                if running is None or running.dream != wanted:
                    return Decision([], None)
            elif running is None or not (running.is_held(now) or running.is_resumable(now)):
                if running is not None:
                    log.warning(
                        "dream %d of %s is unfinished and too old to resume: abandoned", running.dream, self._resource
                    )
                started = DreamStarted(trigger, _lease_end(now), proposer, self._holder)
                return Decision([Draft(payload=started, origin=Origin.DREAM)], state)
            if running.is_held(now):
                raise DreamRunning(
                    resource=self._resource, dream=running.dream, until=format_timestamp(running.lease_until)
                )
            log.warning("resuming dream %d of %s in phase %s", running.dream, self._resource, running.phase)
            by = running.proposer if running.has_usable_answers(now) else proposer
            resumed = DreamResumed(running.dream, _lease_end(now), self._holder, by)
            return Decision([Draft(payload=resumed, origin=Origin.DREAM)], state)

        self._stream.refresh()
        wanted = self._dream_of(key)
        result = self._stream.commit(decide, key=None if wanted else key)
        if result.appended.repeated:  # another process has just used the key
            wanted = self._dream_of(key)
            self._stream.refresh()
            result = self._stream.commit(decide)
        if result.result is None:
            self.dream = wanted
            return None
        running = cast(ActiveDream, result.result.dreams.apply(result.events[0]).running)
        self.dream = running.dream
        is_new_input = running.gathered == result.events[0].seq
        return running, result.result if is_new_input else self._stream.state_at(running.gathered)

    def _dream_of(self, key: Key | None) -> int:
        """Number of the dream that a call with this key started or resumed; 0 if there was none."""
        receipt = self._store.receipt(self._stream.name, key) if key is not None else None
        if receipt is None:
            return 0
        (event,) = self._store.read(self._stream.name, after=receipt.first - 1, until=receipt.first)
        return event.payload.dream if isinstance(event.payload, DreamResumed) else event.seq

    def heartbeat(self, phase: str) -> None:
        """Check for cancellation and loss of the lease, and renew it after a third of its duration."""
        if self._cancelled is not None and self._cancelled():
            raise DreamOvertaken(dream=self.dream, reason="was cancelled")
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self._checked_at = time.monotonic()
            self.assert_held(self._stream.refresh())
        if time.monotonic() - self._renewed_at >= LEASE_DURATION.total_seconds() / 3:
            self.renew(lambda until: DreamProgressed(self.dream, phase, until))

    def renew(self, progress: Callable[[str], EventPayload]) -> None:
        """Append a progress event, given the new end of the lease, if the lease is still held."""

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            self.assert_held(state)
            return Decision([Draft(payload=progress(_lease_end(now)), origin=Origin.DREAM)], None)

        self._stream.commit(decide)
        self._renewed_at = time.monotonic()

    def assert_held(self, state: ResourceState) -> None:
        """Raise DreamOvertaken unless this process holds the lease."""
        if self.is_held(state):
            return
        running = state.dreams.running
        if running is None:
            reason = "was ended by another process"
        elif running.dream == self.dream:
            reason = "was taken over by another process"
        else:
            reason = f"was superseded by dream {running.dream}"
        raise DreamOvertaken(dream=self.dream, reason=reason)

    def is_held(self, state: ResourceState) -> bool:
        """True if this process holds the lease, even if it has expired."""
        running = state.dreams.running
        return running is not None and (running.dream, running.holder) == (self.dream, self._holder)

    def end(self, build: Callable[[ResourceState, datetime], EventPayload]) -> None:
        """Append the event that ends the dream or the lease, if this process still holds it.

        If that fails, the lease expires and the next process takes the dream over.
        """

        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            drafts = [Draft(payload=build(state, now), origin=Origin.DREAM)] if self.is_held(state) else []
            return Decision(drafts, None)

        with suppress(StoreError, Closed):
            self._stream.commit(decide)

    def release(self, phase: str) -> None:
        """End the lease now so that another process can resume at once."""
        self.end(lambda _, now: DreamProgressed(self.dream, phase, now.isoformat(), released=True))


def _lease_end(now: datetime) -> str:
    return (now + LEASE_DURATION).isoformat()
