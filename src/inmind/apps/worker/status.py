"""What is being done for a memory in the background, what waits, and what has failed. Looking changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from inmind.core.frozen import frozen
from inmind.dreams.schedule import FAILURES_BEFORE_BACKOFF
from inmind.dreams.state import ActiveDream
from inmind.jobs.rate_limits import CALLS, DREAMS, Use
from inmind.jobs.upkeep import Housekeeping, is_tended
from inmind.store.job_status import Queue

if TYPE_CHECKING:
    from inmind.store.postgres.jobs import Jobs

MOST = 1_000
"""That are counted of anything that may be very many, and one more where there are more."""

LATEST = 100
"""Owners in a database among whose dreams running ones are looked for: those of jobs that run, and those for whom
something has happened last, since a dream that runs tells of it three times a minute."""


@frozen(kw_only=True)
class ActiveDream:
    """A dream that has begun and not ended."""

    resource: str
    dream: int
    stage: str
    by: str
    trigger: str
    holder: str
    began: datetime
    until: datetime
    holds: bool
    """Not: whoever had it was not heard of, and the next one goes on with it."""


@frozen(kw_only=True)
class GivenUp:
    """A resource that nobody looks after for a while."""

    resource: str
    reason: str
    until: datetime | None = None


@frozen(kw_only=True)
class Status:
    queue: Queue
    due: int
    """Resources for which there is something to do."""
    due_since: datetime | None
    """When the first of them was to be looked at again."""
    behind: int
    """Resources of which something is not found yet."""
    without_vectors: int
    """Resources of which something is found by its words alone, and could be by its meaning."""
    dreams: tuple[ActiveDream, ...]
    limits: tuple[Use, ...]
    given_up: tuple[GivenUp, ...]


def status_of(house: Housekeeping, jobs: Jobs | None) -> Status:
    """`jobs`: of a database. Without them it is a home, of which everything is told by the journal."""
    behind, lagging = len(house.deep().with_news(most=MOST + 1)), house.deep().without_vectors(MOST + 1)
    if jobs is None:
        there = [owner for owner in house.store.owners() if is_tended(owner)]
        dreams = tuple(_running(house, there))
        due = sum(house.is_due(resource) for resource in there)
        given_up = tuple(_failing(house, there))
        stalled = sum(not dream.holds for dream in dreams)
        queue = Queue(waiting=due, running=len(dreams), stalled=stalled, failed=len(given_up))
        due_since = None
    elif not jobs.are_there:
        there = list(filter(is_tended, jobs.some_owners(MOST + 1)))
        queue, due, due_since, given_up = Queue(workers=0), len(there), None, ()
        dreams = tuple(_running(house, there[:LATEST]))
    else:
        queue = jobs.queue(unheard=house.settings.worker.stalled_seconds)
        due, due_since = jobs.due(house.clock(), MOST + 1)
        given_up = tuple(GivenUp(resource=one, reason=why, until=until) for one, why, until in jobs.failing(LATEST))
        dreams = tuple(_running(house, jobs.latest(LATEST)))
    return Status(
        queue=queue,
        due=due,
        due_since=due_since,
        behind=behind,
        without_vectors=lagging,
        dreams=dreams,
        limits=tuple(house.allowances.used()),
        given_up=given_up,
    )


@frozen(kw_only=True)
class Left:
    """What was due, and could not be done yet."""

    dreams: int
    """That wait for room."""
    limits: tuple[Use, ...]
    """Those that have none left."""
    jobs: int = 0
    """That have failed, and are tried again after a while."""


def left_of(house: Housekeeping, jobs: Jobs | None) -> Left:
    """Once all is done that can be."""
    full = tuple(use for use in house.allowances.used() if use.name in (CALLS, DREAMS) and use.used >= use.most)
    if jobs is not None:
        later = jobs.queue(unheard=house.settings.worker.stalled_seconds).later
        return Left(dreams=jobs.waiting(MOST + 1), limits=full, jobs=later)
    return Left(dreams=sum(map(house.is_due, filter(is_tended, house.store.owners()))) if full else 0, limits=full)


def _running(house: Housekeeping, resources: Iterable[str]) -> Iterable[ActiveDream]:
    now = house.clock()
    for resource in resources:
        if (running := house.dreaming(resource).running) is not None and running.is_resumable(now):
            yield _shown(resource, running, holds=running.is_held(now))


def _shown(resource: str, running: ActiveDream, *, holds: bool) -> ActiveDream:
    return ActiveDream(
        resource=resource,
        dream=running.dream,
        stage=running.stage,
        by=running.by,
        trigger=running.trigger,
        holder=running.holder,
        began=running.began,
        until=running.until,
        holds=holds,
    )


def _failing(house: Housekeeping, resources: Iterable[str]) -> Iterable[GivenUp]:
    for resource in resources:
        if (failures := house.dreaming(resource).failures) >= FAILURES_BEFORE_BACKOFF:
            yield GivenUp(resource=resource, reason=f"{failures} dreams in a row came to nothing")
