"""For the tests of a host: a store in memory, and a clock that the test moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from inmind.store.in_memory import InMemoryStore

__all__ = ["InMemoryStore", "ManualClock"]


@dataclass
class ManualClock:
    """A clock that stands still until it is moved."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, *, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
