"""Decide when a dream is due: every two hours, and earlier after strong affect.

A dream requires new material. The decision depends on the journal only, so all processes decide the same, and frequent
restarts do not cause more dreams. Clock changes are tolerated: a jump ahead causes one dream; setting the clock back
causes one dream and no more, because the last dream in order counts, not the latest date.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from inmind.core.frozen import frozen
from inmind.dreams.state import DreamingState

FAILURES_BEFORE_BACKOFF = 3
"""Consecutive failures, of dreams or of the model, from which each further one doubles the wait."""

MAX_WAIT = timedelta(days=1)
"""Upper bound of a doubled wait."""


@frozen(kw_only=True)
class DreamSchedule:
    """Intervals between dreams, from the settings."""

    interval: timedelta
    first_delay: timedelta
    spike_interval: timedelta
    min_crystals: int
    """New crystals that a scheduled dream requires."""


def due_trigger(
    dreaming: DreamingState,
    schedule: DreamSchedule,
    *,
    now: datetime,
    uptime: timedelta,
    strong_affect: bool,
    count_new: Callable[[int], int],
) -> str:
    """The trigger of a dream that is due now, `schedule` or `spike`; empty if none is.

    An unfinished dream is due with its original trigger, unless it has failed repeatedly. `count_new(limit)`: number of
    new crystals, counted up to `limit`. `uptime`: how long the calling process has been running.
    """
    running = dreaming.running
    if running is not None and running.is_held(now):
        return ""
    if (
        running is not None
        and running.is_resumable(now)
        and dreaming.failures < FAILURES_BEFORE_BACKOFF
        and uptime >= schedule.first_delay
    ):
        return running.trigger
    elapsed = _elapsed(dreaming.last_started_at, now)
    backoff = _backoff(dreaming.failures)
    if strong_affect and elapsed >= max(schedule.spike_interval, backoff(schedule.spike_interval)) and count_new(1):
        return "spike"
    if elapsed < backoff(schedule.interval) or uptime < schedule.first_delay:
        return ""
    return "schedule" if count_new(schedule.min_crystals) >= schedule.min_crystals else ""


def next_due_at(
    dreaming: DreamingState,
    schedule: DreamSchedule,
    *,
    now: datetime,
    strong_affect: bool,
    count_new: Callable[[int], int],
) -> datetime | None:
    """When a dream will be due without further events; None if none will be.

    It is called after `due_trigger` returned nothing; since then a dream may have become due by time.
    """
    running = dreaming.running
    if running is not None and running.is_held(now):
        return running.lease_until
    if running is not None and running.is_resumable(now) and dreaming.failures < FAILURES_BEFORE_BACKOFF:
        return now
    elapsed, backoff = _elapsed(dreaming.last_started_at, now), _backoff(dreaming.failures)
    if strong_affect and count_new(1):
        delay = max(schedule.spike_interval, backoff(schedule.spike_interval))
    elif count_new(schedule.min_crystals) >= schedule.min_crystals:
        delay = backoff(schedule.interval)
    else:
        return None
    return now if elapsed >= delay else now + delay - elapsed


def may_ask_model(dreaming: DreamingState, schedule: DreamSchedule, now: datetime) -> bool:
    """False while a model that failed repeatedly is not asked again. Rules propose meanwhile."""
    if dreaming.model_failures < FAILURES_BEFORE_BACKOFF:
        return True
    return _elapsed(dreaming.model_asked_at, now) >= _backoff(dreaming.model_failures)(schedule.interval)


def _elapsed(started_at: datetime | None, now: datetime) -> timedelta:
    return now - started_at if started_at is not None and started_at <= now else timedelta.max


def _backoff(failures: int) -> Callable[[timedelta], timedelta]:
    factor = 2 ** min(max(0, failures - FAILURES_BEFORE_BACKOFF + 1), 10)
    return lambda usual: max(usual, min(MAX_WAIT, usual * factor))
