"""Tools for a host's tests: a store in memory and a clock that the test sets."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import apsw

from inmind.store.sqlite.connection import SqliteConnection, migrate
from inmind.store.sqlite.store import SqliteStore

__all__ = ["InMemoryStore", "ManualClock"]


class InMemoryStore(SqliteStore):
    """The SQLite store without a file. Its content ends with it."""

    def __init__(self) -> None:
        super().__init__(Path(":memory:"))

    def close(self) -> None:
        """Refuse calls from now on."""
        self._closed = True

    def before_fork(self) -> None:
        """Keep the connection, which is all there is; a child continues with a copy of it."""
        self._lock.acquire()

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def _connect(self) -> SqliteConnection:
        connection = cast(SqliteConnection, apsw.Connection(":memory:"))
        migrate(connection)
        return connection


@dataclass
class ManualClock:
    """A clock that only changes when the test advances it."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, *, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
