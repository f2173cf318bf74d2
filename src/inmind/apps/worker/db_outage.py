"""A database that is away, read-only or full: it is waited for.

Whoever reads the log is told when it goes, when it is back, and seldom in between; whichever thread meets it first.
"""

from __future__ import annotations

import logging
import threading
import time

from inmind.errors import OutcomeUnknown, ReadOnly, StoreBusy, StoreUnavailable

log = logging.getLogger("inmind")

AWAY = (StoreUnavailable, StoreBusy, ReadOnly, OutcomeUnknown)
"""What passes, and can be tried again: all that a round does may be done twice."""

SELDOM = 600.0
"""Seconds after which it is told again that a database is still away."""


class Outage:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: float | None = None
        self._told = 0.0

    @property
    def goes_on(self) -> bool:
        return self._since is not None

    def met(self, error: BaseException) -> None:
        now = time.monotonic()
        with self._lock:
            if self._since is not None and now - self._told < SELDOM:
                return
            self._since = now if self._since is None else self._since
            self._told = now
        log.warning("waiting for the database: %s", _in_words(error))

    def over(self) -> None:
        with self._lock:
            since, self._since = self._since, None
        if since is not None:
            log.warning("the database is back, after %.0f s", time.monotonic() - since)


def _in_words(error: BaseException) -> str:
    """What it comes from: others wrap it into words that say nothing of it."""
    while error.__cause__ is not None and not isinstance(error, AWAY):
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
