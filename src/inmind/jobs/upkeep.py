"""Upkeep of a memory: index, automatic notes, consolidation, dreams, embeddings.

A host calls it in idle time, a background thread runs it, or workers run it as jobs if the memory is in a database. It
is safe to run from several processes at once, because the journal decides what is due. Skipping it loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from inmind.core.fork import register_after_fork
from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS, PRIVATE
from inmind.core.settings import Settings
from inmind.core.text import count_noun
from inmind.dreams.affect import due_notes, is_strong_affect
from inmind.dreams.state import DreamingState, may_ask_model, next_dream
from inmind.errors import Closed, DreamRunning, InmindError, InvalidInput, StoreError
from inmind.jobs.consolidation import Consolidation, Consolidator
from inmind.jobs.dream_history import Dream
from inmind.jobs.dream_lease import LeaseReleased
from inmind.jobs.rate_limits import RateLimits
from inmind.session.search import MemorySearch
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Decision, Stream

log = logging.getLogger("inmind")

ROUND_SECONDS = 2.0
"""Time limit of one background round. Closing a memory waits a little longer than this at most."""

MAX_UNINDEXED = 1_000
"""Stale resources that a round visits if the index could not be brought up to date before. Each visit starts with that.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class Upkeep:
    """The result of one round."""

    dreams: tuple[Dream, ...] = ()
    """Dreams that were due, with any outcome."""
    consolidated: Mapping[str, Consolidation] = field(default_factory=dict[str, Consolidation])
    """By resource."""
    notes: int = 0
    """Number of automatic notes about levels that stay high."""
    finished: bool = True
    """True if everything that was due is done. False if time ran out; the next round continues."""

    def __str__(self) -> str:
        dreams, notes = count_noun(len(self.dreams), "dream"), count_noun(self.notes, "automatic note")
        text = f"upkeep: {dreams}, {count_noun(len(self.consolidated), 'resource')} consolidated, {notes}"
        return text if self.finished else f"{text} (unfinished)"

    def merged_with(self, other: Upkeep) -> Upkeep:
        return Upkeep(
            dreams=(*self.dreams, *other.dreams),
            consolidated={**self.consolidated, **other.consolidated},
            notes=self.notes + other.notes,
            finished=self.finished and other.finished,
        )


@frozen(kw_only=True)
class ResourceUpkeep:
    """The result for one resource."""

    done: Upkeep
    next_at: datetime | None
    """When something will be due even without new events; None if nothing will be."""
    waits_for_limit: bool = False
    """A dream is due and waits for a rate limit."""


class DreamStarter(Protocol):
    """Runs one dream for a resource, once per key, until `cancelled` returns True."""

    def __call__(
        self, resource: str, trigger: str, *, ask_model: bool, cancelled: Callable[[], bool], key: str | None
    ) -> Dream: ...


class UpkeepScheduler:
    """Upkeep of one home or one database."""

    def __init__(
        self,
        *,
        store: Store,
        search: MemorySearch,
        resource_stream: Callable[[str], Stream[ResourceState]],
        consolidator: Callable[[str], Consolidator],
        dream: DreamStarter,
        rate_limits: RateLimits,
        settings: Settings,
        read_settings: Callable[[], Settings],
        clock: Clock,
    ) -> None:
        self.store, self.search, self.resource_stream = store, search, resource_stream
        self.rate_limits, self.settings, self.clock = rate_limits, settings, clock
        self._consolidator, self._dream, self._read_settings = consolidator, dream, read_settings
        self._started = clock(), time.monotonic()
        self._consolidated_at: dict[str, datetime] = {}
        """When this process last finished a consolidation, by resource."""
        self._dreamt_at: dict[str, float] = {}
        """When this process last started a due dream, by resource, in monotonic time."""
        self._next = ""
        """The first resource of the next round: the last round had no time for it."""
        self._stop, self._released = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        register_after_fork(self)

    def after_fork(self) -> None:
        """Reset the thread state: the thread belongs to the parent process."""
        self._stop, self._released, self._thread = threading.Event(), threading.Event(), None

    def reload_settings(self) -> None:
        """Read the settings again. Invalid settings are logged and ignored."""
        try:
            settings = self._read_settings()
        except InvalidInput as error:
            log.warning("settings are invalid, keeping the previous ones: %s", error)
            return
        if settings != self.settings:
            self.settings = settings
            self.rate_limits = RateLimits(self.store, settings.limits, self.clock)

    def run(self, seconds: float, *, shared: bool = False) -> Upkeep:
        """Run one round for about `seconds`.

        It maintains all resources, from where the last round stopped, and then embeds.

        `shared`: other processes run upkeep too; see `maintain`.
        """
        deadline = time.monotonic() + seconds
        search = self.search.engine
        done = Upkeep(finished=search.catch_up(until=deadline))
        unindexed = () if done.finished else search.stale_resources(limit=MAX_UNINDEXED)
        resources = sorted(filter(is_maintained, {*search.resources(), *unindexed}))
        for index, resource in enumerate(resources[bisect_left(resources, self._next) :]):
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 and index:  # even the shortest round handles one resource
                self._next = resource
                return done.merged_with(Upkeep(finished=False))
            done = done.merged_with(self._maintain_safely(resource, max(0.0, seconds_left), shared=shared))
        self._next = ""
        return done.merged_with(Upkeep(finished=self.embed(max(0.0, deadline - time.monotonic()))))

    def maintain(
        self,
        resource: str,
        seconds: float,
        *,
        shared: bool = False,
        key: str | None = None,
        count_waiting: Callable[[int], int] | None = None,
        on_written: Callable[[], None] = lambda: None,
    ) -> ResourceUpkeep:
        """Run the upkeep that is due for one resource.

        This may be automatic notes with a consolidation for about `seconds`, and a dream.

        `shared`: other processes run upkeep too. One of them consolidates in each interval; a claim in the store
        decides which, because a pass without changes leaves no event. `key`: idempotency key of the dream, for a caller
        that repeats an interrupted call. `count_waiting(limit)`: how many dreams of other resources have waited longer
        for a rate limit, counted up to `limit`. `on_written` is called after everything is written and before `next_at`
        is computed.
        """
        done, claimed_until = self._consolidate_if_due(resource, seconds, shared=shared)
        dream, retry_at = self._dream_if_due(resource, shared=shared, key=key, count_waiting=count_waiting)
        if dream is not None:
            done = done.merged_with(Upkeep(dreams=(dream,)))
        on_written()
        next_due = self._next_dream(resource)
        times = claimed_until, retry_at or (next_due and next_due[0]), None if done.finished else self.clock()
        next_at = min(filter(None, times), default=None)
        return ResourceUpkeep(done=done, next_at=next_at, waits_for_limit=retry_at is not None)

    def embed(self, seconds: float) -> bool:
        """Embed missing crystals for about `seconds`, then delete unused vectors.

        Returns True if nothing remains to do.
        """
        deadline = time.monotonic() + seconds
        return self.search.engine.embed(seconds=seconds) and self.search.engine.delete_unused_vectors(
            seconds=deadline - time.monotonic()
        )

    def consolidate(self, resource: str, seconds: float | None) -> Consolidation:
        done = self._consolidator(resource).run(seconds=seconds)
        if done.finished:
            self._consolidated_at[resource] = self.clock()
        return done

    def dreaming_state(self, resource: str) -> DreamingState:
        """The folded state of dreaming of a resource."""
        return self.resource_stream(resource).state.dreams

    def is_dream_due(self, resource: str) -> bool:
        """True if a dream is due now."""
        next_due = self._next_dream(resource)
        return next_due is not None and next_due[0] <= self.clock()

    def start(self, interval_seconds: float) -> None:
        """Run a round every `interval_seconds` in a background thread, until `stop`."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run_rounds, args=(interval_seconds,), name="inmind-upkeep", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop the background thread and cancel its dream."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def release(self) -> None:
        """Release the lease of the current dream for another process; see LeaseReleased."""
        self._released.set()

    def _is_cancelled(self) -> bool:
        if self._released.is_set():
            raise LeaseReleased("the worker is stopping")
        return self._stop.is_set()

    def _run_rounds(self, interval_seconds: float) -> None:
        finished = True
        while not self._stop.wait(interval_seconds if finished else 0):
            finished = True
            try:
                finished = self.run(ROUND_SECONDS).finished
            except Closed:
                return
            except InmindError as error:
                log.warning("upkeep round failed, retrying in the next round: %s", error)
            except Exception:
                log.exception("upkeep round failed, retrying in the next round")

    def _maintain_safely(self, resource: str, seconds: float, *, shared: bool) -> Upkeep:
        """Maintain one resource. An error of one resource does not stop the others."""
        try:
            return self.maintain(resource, seconds, shared=shared).done
        except (Closed, StoreError):
            raise
        except InmindError as error:
            log.warning("upkeep of %s failed, retrying in the next round: %s", resource, error)
        except Exception:
            log.exception("upkeep of %s failed, retrying in the next round", resource)
        return Upkeep()

    def _consolidate_if_due(self, resource: str, seconds: float, *, shared: bool) -> tuple[Upkeep, datetime | None]:
        """Add automatic notes and consolidate, if it is due.

        Returns the result, and the end of another process's claim on this interval if there is one.
        """
        consolidator, finished_at = self._consolidator(resource), self._consolidated_at.get(resource)
        interval = timedelta(minutes=self.settings.consolidation.interval_minutes)
        if not consolidator.is_due(interval_seconds=interval.total_seconds(), finished_at=finished_at):
            return Upkeep(), None
        if shared and not consolidator.is_unfinished:
            claimed_until = self.rate_limits.claim(f"consolidation of {resource}", interval)
            if claimed_until is not None:
                return Upkeep(), claimed_until

        def add_notes(state: ResourceState, now: datetime) -> Decision[ResourceState, int]:
            notes = due_notes(state.affect, now)
            return Decision(notes, len(notes))

        added = self.resource_stream(resource).commit(add_notes).result if self.settings.affect.enabled else 0
        done = self.consolidate(resource, seconds)
        return Upkeep(consolidated={resource: done}, notes=added or 0, finished=done.finished), None

    def _dream_if_due(
        self, resource: str, *, shared: bool, key: str | None, count_waiting: Callable[[int], int] | None
    ) -> tuple[Dream | None, datetime | None]:
        """Run a dream if one is due.

        Returns the dream, or the time to retry if a rate limit is reached.
        """
        next_due, now = self._next_dream(resource), self.clock()
        if next_due is None or next_due[0] > now:
            return None, None
        state, settings, trigger = self.resource_stream(resource).state, self.settings.dream, next_due[1]
        if state.dreams.running is None:
            wait = 60 * (settings.spike_minutes if trigger == "spike" else settings.interval_minutes)
            started_at = None if shared else self._dreamt_at.get(resource)
            if started_at is not None and time.monotonic() - started_at < wait:
                return None, None
            if (retry_at := self.rate_limits.start_dream(count_waiting)) is not None:
                log.info("dream of %s waits until %s: rate limit reached", resource, retry_at)
                return None, retry_at
        if not shared:
            self._dreamt_at[resource] = time.monotonic()
        try:
            ask_model = may_ask_model(state.dreams, settings, now)
            return self._dream(resource, trigger, ask_model=ask_model, cancelled=self._is_cancelled, key=key), None
        except DreamRunning:
            log.info("a dream for %s is already running", resource)
            return None, None

    def _next_dream(self, resource: str) -> tuple[datetime, str] | None:
        """When a dream is due, and its trigger; None if none will be without further events."""
        if not self.settings.dream.enabled:
            return None
        state, now = self.resource_stream(resource).state, self.clock()
        last_done_at = state.dreams.last_done_at
        since = last_done_at if last_done_at is not None and last_done_at <= now else _EPOCH
        return next_dream(
            state.dreams,
            self.settings.dream,
            now=now,
            uptime=self._uptime(now),
            strong_affect=self.settings.affect.enabled and is_strong_affect(state.affect.levels.decayed_to(now)),
            count_new=lambda limit: self.search.engine.count_since(resource, since, limit),
        )

    def _uptime(self, now: datetime) -> timedelta:
        """Time since this object was created.

        This is the longer of wall-clock and monotonic time, because the wall clock may be set back.
        """
        started_at, started_tick = self._started
        return max(now - started_at, timedelta(seconds=time.monotonic() - started_tick))


def is_maintained(resource: str) -> bool:
    """True for named resources. Anonymous and private ones are only searched."""
    return bool(resource) and not resource.startswith(PRIVATE) and resource != ANONYMOUS
