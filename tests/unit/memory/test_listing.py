"""The name nearest to a mistyped one is found among few candidates of many names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import SessionOpened
from inmind.memory.listing import MAX_NAME_CANDIDATES, nearest_resource, nearest_session
from inmind.store.protocol import Batch
from inmind.testing import InMemoryStore

MANY = 3 * MAX_NAME_CANDIDATES


class Counting(InMemoryStore):
    max_count = 0

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        return self._count(super().owners(after=after, limit=limit))

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        return self._count(super().stream_names(prefix, owner=owner, limit=limit))

    def _count(self, names: Sequence[str]) -> Sequence[str]:
        self.max_count = max(self.max_count, len(names))
        return names


@pytest.fixture(scope="module")
def store() -> Counting:
    store_with_names = Counting()
    for number in range(MANY):
        opened = SessionOpened(resource=f"user-{number:04}" if number % 2 else "default", cwd="/w")
        draft = Draft(payload=opened, origin=Origin.USER)
        store_with_names.append(Batch(f"session/talk-{number:04}", [draft], 0), at=datetime(2026, 1, 1, tzinfo=UTC))
    return store_with_names


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("user-2701x", "user-2701"), ("user-27011", "user-2701"), ("User-0001", "user-0001"), ("uzer-0001", "user-0001")],
)
def test_a_mistyped_resource_is_found_by_its_prefix(store: Counting, typed: str, expected: str) -> None:
    assert nearest_resource(store, typed) == expected
    assert store.max_count <= MAX_NAME_CANDIDATES


@pytest.mark.parametrize(
    ("typed", "expected"), [("talk-29000", "talk-2900"), ("Talk-0002", "talk-0002"), ("tlak-0002", "talk-0002")]
)
def test_a_mistyped_session_is_found_by_its_prefix(store: Counting, typed: str, expected: str) -> None:
    assert nearest_session(store, typed) == expected
    assert store.max_count <= MAX_NAME_CANDIDATES


@pytest.mark.parametrize("typed", ["", "\0", "\ud800", "nothing of the kind"])
def test_nothing_is_suggested_if_nothing_is_similar(store: Counting, typed: str) -> None:
    assert (nearest_resource(store, typed), nearest_session(store, typed)) == ("", "")
