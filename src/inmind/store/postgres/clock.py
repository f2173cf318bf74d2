"""The database server's time, for all processes that share a database.

Leases depend on the time, and clocks of machines differ: a process whose clock is a minute ahead would
treat a running dream as dead. If the local clock is off, the process uses the server's time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

log = logging.getLogger("inmind")

TOLERANCE = timedelta(seconds=5)
"""Clock differences up to this are ignored."""


def local_time() -> datetime:
    return datetime.now(UTC)


class ServerClock:
    """This machine's clock, corrected by its offset from the server's."""

    def __init__(self, server_time: Callable[[], datetime], clock: Callable[[], datetime] = local_time) -> None:
        self._server_time, self._clock = server_time, clock
        self._offset = timedelta()

    def __call__(self) -> datetime:
        return self._clock() - self._offset

    def synchronize(self) -> None:
        """Measure the offset. The round-trip time, by the local clock, limits its precision."""
        before = self._clock()
        server_time = self._server_time()
        after = self._clock()
        offset = before + (after - before) / 2 - server_time
        offset = offset if abs(offset) > TOLERANCE + (after - before) / 2 else timedelta()
        if abs(offset - self._offset) > TOLERANCE:
            message = "the clock of this machine differs from the database's by %g s; using the database's time"
            log.warning(message, round(offset.total_seconds(), 1))
        self._offset = offset
