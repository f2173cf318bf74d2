"""What keeps a memory fit, when there is time: the index, automatic notes, consolidations, dreams, vectors.

Whoever has the time calls it: a host in its pauses, a thread in the background, or workers, which do it as jobs where
memory is in a database. All of them may at once, since what is due is decided from the journal; and none has to, since
nothing is lost when nobody does.
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
from inmind.core.settings import Settings
from inmind.core.streams import ANONYMOUS, PRIVATE
from inmind.dreams.affect.auto_notes import due_notes
from inmind.dreams.affect.state import is_strong_affect
from inmind.dreams.schedule import DreamSchedule, due_trigger, may_ask_model, next_due_at
from inmind.dreams.state import DreamingState
from inmind.errors import Closed, DreamRunning, InmindError, InvalidInput, StoreError
from inmind.jobs.consolidation import Consolidation, Consolidator
from inmind.jobs.dreaming.history import Dream
from inmind.jobs.dreaming.lease import LeaseReleased
from inmind.jobs.rate_limits import RateLimits
from inmind.search.engine import SearchEngine
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Decision, Stream

log = logging.getLogger("inmind")

ROUND_SECONDS = 2.0
"""Seconds of one round in the background: whoever closes a memory waits for little more."""

MAX_UNINDEXED = 1_000
"""Resources that a round goes to though there was no time to index them before: what is due for one begins so."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class Upkeep:
    """What a round has done."""

    dreams: tuple[Dream, ...] = ()
    """Those that came by themselves, whatever became of them."""
    consolidated: Mapping[str, Consolidation] = field(default_factory=dict[str, Consolidation])
    """By resource."""
    notes: int = 0
    """Taken by themselves, of levels that stay high."""
    finished: bool = True
    """All that was due is done. False where time ran out: the next round goes on there."""

    def merged_with(self, other: Upkeep) -> Upkeep:
        return Upkeep(
            dreams=(*self.dreams, *other.dreams),
            consolidated={**self.consolidated, **other.consolidated},
            notes=self.notes + other.notes,
            finished=self.finished and other.finished,
        )


@frozen(kw_only=True)
class ResourceUpkeep:
    """What was done for one resource."""

    done: Upkeep
    next_at: datetime | None
    """When there will be something to do whether or not anything happens until then; None where there will not."""
    waits_for_limit: bool = False
    """A dream is due, and waits until a limit has room for it."""


class DreamStarter(Protocol):
    """Whoever can dream for a resource: for a reason, by a model or not, once for each key, until it is called off."""

    def __call__(
        self, resource: str, trigger: str, *, ask_model: bool, cancelled: Callable[[], bool], key: str | None
    ) -> Dream: ...


class UpkeepScheduler:
    """Of one home, or of one database."""

    def __init__(
        self,
        *,
        store: Store,
        search: Callable[[], SearchEngine],
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
        """Resources that were consolidated here, and when that came to its end."""
        self._dreamt_at: dict[str, float] = {}
        """Resources for which a dream came by itself here, and when, by a clock that nobody sets."""
        self._next = ""
        """The resource that a round begins with: the last one had no time for it."""
        self._stop, self._released = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        register_after_fork(self)

    def after_fork(self) -> None:
        """The thread is the parent's."""
        self._stop, self._released, self._thread = threading.Event(), threading.Event(), None

    def reload_settings(self) -> None:
        """As they are by now, for whoever goes on for long. Those that cannot be read leave the others as they were."""
        try:
            settings = self._read_settings()
        except InvalidInput as error:
            log.warning("settings stay as they were: %s", error)
            return
        if settings != self.settings:
            self.settings = settings
            self.rate_limits = RateLimits(self.store, settings.limits, self.clock)

    def run(self, seconds: float, *, shared: bool = False) -> Upkeep:
        """One round, for about so long: all resources, from where the last one stopped, and then vectors. `shared`:
        others do this too, see `tend`."""
        deadline = time.monotonic() + seconds
        search = self.search()
        done = Upkeep(finished=search.catch_up(until=deadline))
        unindexed = () if done.finished else search.stale_resources(most=MAX_UNINDEXED)
        resources = sorted(filter(is_maintained, {*search.resources(), *unindexed}))
        for index, resource in enumerate(resources[bisect_left(resources, self._next) :]):
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 and index:  # however short a round is, it comes to something
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
        """What is due for one resource: its index, its moods, a consolidation for about so long, a dream.

        `shared`: of all who do this, one consolidates in a while; who else might have done so leaves no trace in the
        journal where there was nothing to do. `key`: of the dream, for whoever repeats this after it was cut off.
        `ahead`: how many dreams of others, of so many at most, have waited longer for room. `settled` is called when
        all is written, and before it is decided from all that there is when to look again.
        """
        interval = timedelta(minutes=self.settings.consolidation.interval_minutes)
        done, claimed_until = Upkeep(), None
        if self._is_consolidation_due(resource, interval):
            claimed_until = self._claim_consolidation(resource, interval) if shared else None
            if claimed_until is None:
                notes = self._add_auto_notes(resource) if self.settings.affect.enabled else 0
                consolidation = self.consolidate(resource, seconds)
                done = Upkeep(consolidated={resource: consolidation}, notes=notes, finished=consolidation.finished)
        if not self.settings.dream.enabled:
            on_written()
            return ResourceUpkeep(done=done, next_at=_earliest(claimed_until, None if done.finished else self.clock()))
        dream, retry_at = self._dream_if_due(resource, shared=shared, key=key, count_waiting=count_waiting)
        if dream is not None:
            done = done.merged_with(Upkeep(dreams=(dream,)))
        on_written()
        next_at = retry_at or self._next_dream_at(resource)
        next_at = _earliest(claimed_until, next_at, None if done.finished else self.clock())
        return ResourceUpkeep(done=done, next_at=next_at, waits_for_limit=retry_at is not None)

    def embed(self, seconds: float) -> bool:
        """Make vectors of what has none, for about so long. True when nothing is left to do."""
        deadline = time.monotonic() + seconds
        return self.search().embed(seconds=seconds) and self.search().delete_unused_vectors(
            seconds=deadline - time.monotonic()
        )

    def consolidate(self, resource: str, seconds: float | None) -> Consolidation:
        done = self._consolidator(resource).run(seconds=seconds)
        if done.finished:
            self._consolidated_at[resource] = self.clock()
        return done

    def dreaming_state(self, resource: str) -> DreamingState:
        """Where dreaming stands in a resource."""
        return self.resource_stream(resource).state.dreams

    def is_dream_due(self, resource: str) -> bool:
        """Would a dream come by itself now?"""
        return self.settings.dream.enabled and bool(self._due_trigger(resource, self.resource_stream(resource).state))

    def start(self, interval_seconds: float) -> None:
        """Go on with it in the background, a round every so many seconds, until `end`."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run_rounds, args=(interval_seconds,), name="inmind-upkeep", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Dreams that came by themselves are called off."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def release(self) -> None:
        """Dreams that came by themselves are left where they are, for whoever goes on with them: see LeftOff."""
        self._released.set()

    def _is_cancelled(self) -> bool:
        if self._released.is_set():
            raise LeaseReleased("a worker was told to leave")
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
                log.warning("left for the next round: %s", error)
            except Exception:
                log.exception("a round of upkeep failed; the next one tries again")

    def _maintain_safely(self, resource: str, seconds: float, *, shared: bool) -> Upkeep:
        """What is wrong with one resource is no reason to leave the others alone."""
        try:
            return self.maintain(resource, seconds, shared=shared).done
        except (Closed, StoreError):
            raise
        except InmindError as error:
            log.warning("upkeep of %s is left for the next round: %s", resource, error)
        except Exception:
            log.exception("upkeep of %s failed; the next round tries again", resource)
        return Upkeep()

    def _is_consolidation_due(self, resource: str, interval: timedelta) -> bool:
        finished = self._consolidated_at.get(resource)
        return self._consolidator(resource).is_due(interval_seconds=interval.total_seconds(), finished_at=finished)

    def _claim_consolidation(self, resource: str, interval: timedelta) -> datetime | None:
        """Until when somebody else sees to it; None where it is this one's."""
        if self._consolidator(resource).is_unfinished:
            return None
        return self.rate_limits.claim(f"consolidation of {resource}", interval)

    def _add_auto_notes(self, resource: str) -> int:
        def decide(state: ResourceState, now: datetime) -> Decision[ResourceState, int]:
            notes = due_notes(state.affect, now)
            return Decision(notes, len(notes))

        return self.resource_stream(resource).commit(decide).result or 0

    def _dream_if_due(
        self, resource: str, *, shared: bool, key: str | None, count_waiting: Callable[[int], int] | None
    ) -> tuple[Dream | None, datetime | None]:
        """The dream, if one was due; and when to ask again, where it was and must not begin now."""
        state, now, schedule = self.resource_stream(resource).state, self.clock(), self._schedule()
        trigger = self._due_trigger(resource, state)
        if not trigger:
            return None, None
        if state.dreams.running is None:
            if not shared and self._dreamt_recently(
                resource, schedule.spike_interval if trigger == "spike" else schedule.interval
            ):
                return None, None
            if (retry_at := self.rate_limits.start_dream(count_waiting)) is not None:
                log.info("a dream of %s waits until %s: there is no room for it before", resource, retry_at)
                return None, retry_at
        if not shared:
            self._dreamt_at[resource] = time.monotonic()
        try:
            ask_model = may_ask_model(state.dreams, schedule, now)
            return self._dream(resource, trigger, ask_model=ask_model, cancelled=self._is_cancelled, key=key), None
        except DreamRunning:
            log.info("somebody dreams for %s already", resource)
            return None, None

    def _due_trigger(self, resource: str, state: ResourceState) -> str:
        now = self.clock()
        return due_trigger(
            state.dreams,
            self._schedule(),
            now=now,
            uptime=self._uptime(now),
            strong_affect=self._is_strong_affect(state, now),
            count_new=self._count_new(resource, state, now),
        )

    def _next_dream_at(self, resource: str) -> datetime | None:
        state, now = self.resource_stream(resource).state, self.clock()
        count_new = self._count_new(resource, state, now)
        return next_due_at(
            state.dreams,
            self._schedule(),
            now=now,
            strong_affect=self._is_strong_affect(state, now),
            count_new=count_new,
        )

    def _is_strong_affect(self, state: ResourceState, now: datetime) -> bool:
        return self.settings.affect.enabled and is_strong_affect(state.affect.levels.decayed_to(now))

    def _count_new(self, resource: str, state: ResourceState, now: datetime) -> Callable[[int], int]:
        last_done_at = state.dreams.last_done_at
        since = last_done_at if last_done_at is not None and last_done_at <= now else _EPOCH
        return lambda limit: self.search().count_since(resource, since, limit)

    def _uptime(self, now: datetime) -> timedelta:
        """For how long this has been at it: by either clock, since one may be set back, and the other is nobody's."""
        started_at, started_tick = self._started
        return max(now - started_at, timedelta(seconds=time.monotonic() - started_tick))

    def _dreamt_recently(self, resource: str, wait: timedelta) -> bool:
        """However often the clock is set: no more than one here in so much time."""
        last = self._dreamt_at.get(resource)
        return last is not None and time.monotonic() - last < wait.total_seconds()

    def _schedule(self) -> DreamSchedule:
        dream = self.settings.dream
        return DreamSchedule(
            interval=timedelta(minutes=dream.interval_minutes),
            first_delay=timedelta(minutes=dream.first_minutes),
            spike_interval=timedelta(minutes=dream.spike_minutes),
            min_crystals=dream.min_crystals,
        )


def is_maintained(resource: str) -> bool:
    """Does anybody look after it? What belongs to nobody in particular is only searched."""
    return bool(resource) and not resource.startswith(PRIVATE) and resource != ANONYMOUS


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
