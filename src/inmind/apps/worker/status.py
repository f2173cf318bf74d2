"""Status of background work: running, waiting and failed. Read-only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.state import FAILURES_BEFORE_BACKOFF, ActiveDream
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
    dreams: Mapping[str, ActiveDream]
    """Unfinished dreams by resource."""
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
        stalled = sum(not dream.is_held(upkeep.clock()) for dream in dreams.values())
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


def describe_remaining_work(upkeep: UpkeepScheduler, jobs: Jobs | None) -> list[str]:
    """Sentences about the due work that remains after everything possible is done."""
    limits = [
        f"{use.name} reached until {format_timestamp(use.resets_at)}"
        for use in upkeep.rate_limits.usage()
        if use.name in (MODEL_CALLS, DREAMS) and use.used >= use.limit
    ]
    if jobs is not None:
        retries = jobs.queue_status(dead_after=upkeep.settings.worker.stalled_seconds).later
        dreams = jobs.count_waiting_dreams(MAX_COUNT + 1)
    else:
        owners = filter(is_maintained, upkeep.store.owners()) if limits else ()
        retries, dreams = 0, sum(map(upkeep.is_dream_due, owners))
    if not dreams and not retries:
        return ["All due work is done."]
    waiting = f"Waiting: {bounded_count(dreams, 'dream')}, {' and '.join(limits) or 'runs on request'}."
    retried = f"To be retried: {count_noun(retries, 'failed job')}."
    return ["All other due work is done.", *([waiting] if dreams else []), *([retried] if retries else [])]


def bounded_count(count: int, noun: str) -> str:
    """A count with its noun; above MAX_COUNT as "more than MAX_COUNT"."""
    return f"more than {MAX_COUNT} {noun}s" if count > MAX_COUNT else count_noun(count, noun)


def _running_dreams(upkeep: UpkeepScheduler, resources: Iterable[str]) -> Mapping[str, ActiveDream]:
    now = upkeep.clock()
    running = {resource: upkeep.dreaming_state(resource).running for resource in resources}
    return {resource: dream for resource, dream in running.items() if dream and dream.is_resumable(now)}
