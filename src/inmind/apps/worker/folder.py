"""Upkeep of a home in a loop, in one process. Several workers can share a home."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from inmind.errors import InmindError
from inmind.jobs.upkeep import Upkeep, UpkeepScheduler

ROUND_SECONDS = 10.0
"""Time of one round on a home; the rest continues in the next round without a pause."""


def run_rounds(upkeep: UpkeepScheduler, every: float, on_error: Callable[[InmindError], object]) -> Iterator[Upkeep]:
    """Run upkeep on a home forever.

    Several workers can share a home: leases and the store prevent double work.
    """
    while True:
        finished = True
        try:
            upkeep.reload_settings()
            done = upkeep.run(ROUND_SECONDS, shared=True)
            finished = done.finished
            yield done
        except InmindError as error:  # for example a full disk: the next round tries again
            on_error(error)
        if finished:
            time.sleep(every)


def run_until_done(upkeep: UpkeepScheduler) -> Iterator[Upkeep]:
    finished = False
    while not finished:
        done = upkeep.run(ROUND_SECONDS, shared=True)
        finished = done.finished
        yield done
