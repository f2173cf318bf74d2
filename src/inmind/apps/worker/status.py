"""Status of background work: running, waiting and failed. Read-only."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from inmind.core.frozen import frozen
from inmind.dreams.state import FAILURES_BEFORE_BACKOFF
from inmind.jobs.rate_limits import DREAMS, MODEL_CALLS, LimitUsage
from inmind.jobs.upkeep import UpkeepScheduler, is_maintained
from inmind.store.protocol import QueueStatus

if TYPE_CHECKING:
    from inmind.store.postgres.jobs import Jobs

MAX_COUNT = 1_000
"""Upper limit of counts; MAX_COUNT + 1 means more."""

MAX_RECENT_OWNERS = 100
"""Owners that are searched for running dreams in a database: those of running jobs, and those with the latest events. A
running dream writes an event three times a minute."""


@frozen(kw_only=True)
class DreamStatus:
    """An unfinished dream."""

    resource: str
    dream: int
    stage: str
    by: str
    trigger: str
    holder: str
    began: datetime
    until: datetime
    holds: bool
    """False if its lease has expired; another process will resume it."""


@frozen(kw_only=True)
class SuspendedResource:
    """A resource whose upkeep is suspended after repeated failures."""

    resource: str
    reason: str
    until: datetime | None = None


@frozen(kw_only=True)
class WorkerStatus:
    queue: QueueStatus
    due: int
    """Resources with due work."""
    due_since: datetime | None
    """Due time of the oldest one."""
    behind: int
    """Resources with events that are not indexed yet."""
    without_vectors: int
    """Resources with crystals that have no embedding yet."""
    dreams: tuple[DreamStatus, ...]
    limits: tuple[LimitUsage, ...]
    given_up: tuple[SuspendedResource, ...]


def get_status(upkeep: UpkeepScheduler, jobs: Jobs | None) -> WorkerStatus:
    """Status of a memory. `jobs` is None for a home, whose status comes from the journal alone."""
    search = upkeep.search.engine
    behind = len(search.stale_resources(limit=MAX_COUNT + 1))  # before anything else brings the index up to date
    without_vectors = search.count_without_vectors(MAX_COUNT + 1)
    if jobs is None:
        owners = [owner for owner in upkeep.store.owners() if is_maintained(owner)]
        dreams = _running_dreams(upkeep, owners)
        due = sum(upkeep.is_dream_due(resource) for resource in owners)
        failures = {resource: upkeep.dreaming_state(resource).failures for resource in owners}
        given_up = tuple(
            SuspendedResource(resource=resource, reason=f"{count} dreams in a row failed")
            for resource, count in failures.items()
            if count >= FAILURES_BEFORE_BACKOFF
        )
        stalled = sum(not dream.holds for dream in dreams)
        queue = QueueStatus(waiting=due, running=len(dreams), stalled=stalled, failed=len(given_up))
        due_since = None
    elif not jobs.tables_exist:
        owners = list(filter(is_maintained, jobs.sample_owners(MAX_COUNT + 1)))
        queue, due, due_since, given_up = QueueStatus(workers=0), len(owners), None, ()
        dreams = _running_dreams(upkeep, owners[:MAX_RECENT_OWNERS])
    else:
        queue = jobs.queue_status(dead_after=upkeep.settings.worker.stalled_seconds)
        due, due_since = jobs.count_due(upkeep.clock(), MAX_COUNT + 1)
        given_up = tuple(
            SuspendedResource(resource=suspended, reason=reason, until=until)
            for suspended, reason, until in jobs.failing_owners(MAX_RECENT_OWNERS)
        )
        dreams = _running_dreams(upkeep, jobs.active_owners(MAX_RECENT_OWNERS))
    return WorkerStatus(
        queue=queue,
        due=due,
        due_since=due_since,
        behind=behind,
        without_vectors=without_vectors,
        dreams=dreams,
        limits=tuple(upkeep.rate_limits.usage()),
        given_up=given_up,
    )


@frozen(kw_only=True)
class RemainingWork:
    """Due work that could not be done yet."""

    dreams: int
    """Dreams that wait for a rate limit."""
    limits: tuple[LimitUsage, ...]
    """Rate limits that are used up."""
    jobs: int = 0
    """Failed jobs that will be retried."""


def remaining_work(upkeep: UpkeepScheduler, jobs: Jobs | None) -> RemainingWork:
    """Work that remains after everything possible is done."""
    full = tuple(
        use for use in upkeep.rate_limits.usage() if use.name in (MODEL_CALLS, DREAMS) and use.used >= use.limit
    )
    if jobs is not None:
        later = jobs.queue_status(dead_after=upkeep.settings.worker.stalled_seconds).later
        return RemainingWork(dreams=jobs.count_waiting_dreams(MAX_COUNT + 1), limits=full, jobs=later)
    return RemainingWork(
        dreams=sum(map(upkeep.is_dream_due, filter(is_maintained, upkeep.store.owners()))) if full else 0, limits=full
    )


def _running_dreams(upkeep: UpkeepScheduler, resources: Iterable[str]) -> tuple[DreamStatus, ...]:
    now = upkeep.clock()
    states = {resource: upkeep.dreaming_state(resource).running for resource in resources}
    return tuple(
        DreamStatus(
            resource=resource,
            dream=running.dream,
            stage=running.phase,
            by=running.proposer,
            trigger=running.trigger,
            holder=running.holder,
            began=running.started_at,
            until=running.lease_until,
            holds=running.is_held(now),
        )
        for resource, running in states.items()
        if running is not None and running.is_resumable(now)
    )
