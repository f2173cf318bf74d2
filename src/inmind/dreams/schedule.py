"""When a dream comes by itself: every two hours if there is something to dream of, and early when something was felt.

It is decided from what the journal has, so any number of processes come to the same answer, and one that is started
again and again dreams no oftener. Time is taken as it is told: a clock that jumps ahead brings one dream, and one that
is set back brings one as well and none after it, since what counts is the last dream in order, not the latest date.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from inmind.core.frozen import frozen
from inmind.dreams.state import Dreaming

PATIENCE = 3
"""Failures in a row from which on each doubles the wait: of dreams, and of a model that is asked for them."""

LONGEST = timedelta(days=1)
"""That a wait may double to."""


@frozen(kw_only=True)
class Rhythm:
    every: timedelta
    first: timedelta
    early: timedelta
    least: int
    """New crystals."""


def trigger(
    dreaming: Dreaming,
    rhythm: Rhythm,
    *,
    now: datetime,
    awake: timedelta,
    strong: bool,
    fresh: Callable[[int], int],
) -> str:
    """Why a dream is due now: `schedule` or `spike`; empty where none is. One that was left in the middle is due for
    the reason for which it began, unless whoever goes on with it dies time and again.

    `fresh`: how many new crystals there are, of at most so many. `awake`: for how long whoever asks has been at it.
    """
    running = dreaming.running
    if running is not None and running.holds(now):
        return ""
    if running is not None and running.keeps(now) and dreaming.failures < PATIENCE and awake >= rhythm.first:
        return running.trigger
    since = _since(dreaming.begun, now)
    wait = _waited(dreaming.failures)
    if strong and since >= max(rhythm.early, wait(rhythm.early)) and fresh(1):
        return "spike"
    if since < wait(rhythm.every) or awake < rhythm.first:
        return ""
    return "schedule" if fresh(rhythm.least) >= rhythm.least else ""


def next_due(
    dreaming: Dreaming, rhythm: Rhythm, *, now: datetime, strong: bool, fresh: Callable[[int], int]
) -> datetime | None:
    """When a dream will be due if nothing happens until then; None where none will be.

    It is asked behind `trigger`: what that has said no to by now may be due by the clock alone.
    """
    running = dreaming.running
    if running is not None and running.holds(now):
        return running.until
    if running is not None and running.keeps(now) and dreaming.failures < PATIENCE:
        return now
    since, wait = _since(dreaming.begun, now), _waited(dreaming.failures)
    if strong and fresh(1):
        usual = max(rhythm.early, wait(rhythm.early))
    elif fresh(rhythm.least) >= rhythm.least:
        usual = wait(rhythm.every)
    else:
        return None
    return now if since >= usual else now + usual - since


def asks_model(dreaming: Dreaming, rhythm: Rhythm, now: datetime) -> bool:
    """Shall a model be asked? One that has failed time and again is left alone for a while, and rules go on."""
    if dreaming.model_failures < PATIENCE:
        return True
    return _since(dreaming.asked, now) >= _waited(dreaming.model_failures)(rhythm.every)


def _since(begun: datetime | None, now: datetime) -> timedelta:
    return now - begun if begun is not None and begun <= now else timedelta.max


def _waited(failures: int) -> Callable[[timedelta], timedelta]:
    doubled = 2 ** min(max(0, failures - PATIENCE + 1), 10)
    return lambda usual: max(usual, min(LONGEST, usual * doubled))
