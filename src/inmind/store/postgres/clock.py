"""The time as the server tells it, for all who work on one database.

Leases go by the time, and machines do not agree on it: one that is a minute ahead would take a dream for dead that is
going on. So whoever is far from the server's clock goes by that one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

log = logging.getLogger("inmind")

TOLERANCE = timedelta(seconds=5)
"""Within which clocks agree as well as anybody needs."""


def local_time() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """This machine's clock, put right by as much as it was found to be wrong."""

    def __init__(self, server_time: Callable[[], datetime], clock: Callable[[], datetime] = local_time) -> None:
        self._server_time, self._clock = server_time, clock
        self._offset = timedelta()

    def __call__(self) -> datetime:
        return self._clock() - self._offset

    def synchronize(self) -> None:
        """With the server's. How long its answer took is told by this clock, and tells how well it can be known."""
        before = self._clock()
        there = self._server_time()
        after = self._clock()
        wrong = before + (after - before) / 2 - there
        wrong = wrong if abs(wrong) > TOLERANCE + (after - before) / 2 else timedelta()
        if abs(wrong - self._offset) > TOLERANCE:
            told = "the clock of this machine is %g s off that of the database, which is gone by"
            log.warning(told, round(wrong.total_seconds(), 1))
        self._offset = wrong
