"""Tools for a host's tests: a store in memory and a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from inmind.store.in_memory import InMemoryStore

__all__ = ["InMemoryStore", "ManualClock"]


@dataclass
class ManualClock:
    """A clock that only changes when the test advances it."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, *, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
