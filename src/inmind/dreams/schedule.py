"""When a dream comes by itself: every two hours if there is something to dream of, and early when something was felt.

It is decided from what the journal has, so any number of processes come to the same answer, and one that is started
again and again dreams no oftener. Time is taken as it is told: a clock that jumps ahead brings one dream, and one that
is set back brings one as well and none after it, since what counts is the last dream in order, not the latest date.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from inmind.core.frozen import frozen
from inmind.dreams.state import DreamingState

FAILURES_BEFORE_BACKOFF = 3
"""Failures in a row from which on each doubles the wait: of dreams, and of a model that is asked for them."""

MAX_WAIT = timedelta(days=1)
"""That a wait may double to."""


@frozen(kw_only=True)
class DreamSchedule:
    interval: timedelta
    first_delay: timedelta
    spike_interval: timedelta
    min_crystals: int
    """New crystals."""


def due_trigger(
    dreaming: DreamingState,
    schedule: DreamSchedule,
    *,
    now: datetime,
    uptime: timedelta,
    strong_affect: bool,
    count_new: Callable[[int], int],
) -> str:
    """Why a dream is due now: `schedule` or `spike`; empty where none is. One that was left in the middle is due for
    the reason for which it began, unless whoever goes on with it dies time and again.

    `fresh`: how many new crystals there are, of at most so many. `awake`: for how long whoever asks has been at it.
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
    wait = _backoff(dreaming.failures)
    if strong_affect and elapsed >= max(schedule.spike_interval, wait(schedule.spike_interval)) and count_new(1):
        return "spike"
    if elapsed < wait(schedule.interval) or uptime < schedule.first_delay:
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
    """When a dream will be due if nothing happens until then; None where none will be.

    It is asked behind `trigger`: what that has said no to by now may be due by the clock alone.
    """
    running = dreaming.running
    if running is not None and running.is_held(now):
        return running.lease_until
    if running is not None and running.is_resumable(now) and dreaming.failures < FAILURES_BEFORE_BACKOFF:
        return now
    elapsed, wait = _elapsed(dreaming.last_started_at, now), _backoff(dreaming.failures)
    if strong_affect and count_new(1):
        delay = max(schedule.spike_interval, wait(schedule.spike_interval))
    elif count_new(schedule.min_crystals) >= schedule.min_crystals:
        delay = wait(schedule.interval)
    else:
        return None
    return now if elapsed >= delay else now + delay - elapsed


def may_ask_model(dreaming: DreamingState, schedule: DreamSchedule, now: datetime) -> bool:
    """Shall a model be asked? One that has failed time and again is left alone for a while, and rules go on."""
    if dreaming.model_failures < FAILURES_BEFORE_BACKOFF:
        return True
    return _elapsed(dreaming.model_asked_at, now) >= _backoff(dreaming.model_failures)(schedule.interval)


def _elapsed(started: datetime | None, now: datetime) -> timedelta:
    return now - started if started is not None and started <= now else timedelta.max


def _backoff(failures: int) -> Callable[[timedelta], timedelta]:
    factor = 2 ** min(max(0, failures - FAILURES_BEFORE_BACKOFF + 1), 10)
    return lambda usual: max(usual, min(MAX_WAIT, usual * factor))
