"""A worker on a home folder: the same upkeep as in a database, round after round, in one process.

Any number of them may work on one home. What is due is decided from the journal, dreams are held by their lease, and of
a consolidation the store says whose it is; so they share the work, and nothing is done twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from inmind.errors import InmindError
from inmind.jobs.upkeep import Housekeeping, Upkeep

AT_A_TIME = 10.0
"""Seconds of a round. What is left goes on in the next one, at once."""


def round_after_round(house: Housekeeping, every: float, failed: Callable[[InmindError], object]) -> Iterator[Upkeep]:
    """Never ends by itself."""
    while True:
        finished = True
        try:
            house.read_settings()
            done = house.run(AT_A_TIME, shared=True)
            finished = done.finished
            yield done
        except InmindError as error:  # a full disk has room again some day: the next round tries it
            failed(error)
        if finished:
            time.sleep(every)


def until_all_is_done(house: Housekeeping) -> Iterator[Upkeep]:
    finished = False
    while not finished:
        done = house.run(AT_A_TIME, shared=True)
        finished = done.finished
        yield done
