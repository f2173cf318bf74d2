"""The nearest name to a mistyped one is found among few candidates, however many names there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import SessionOpened
from inmind.memory.listing import MAX_NAME_CANDIDATES, nearest_resource, nearest_session
from inmind.store.in_memory import InMemoryStore

MANY = 3 * MAX_NAME_CANDIDATES


class Counting(InMemoryStore):
    most = 0

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        return self._counted(super().owners(after=after, limit=limit))

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        return self._counted(super().stream_names(prefix, owner=owner, limit=limit))

    def _counted(self, found: Sequence[str]) -> Sequence[str]:
        self.most = max(self.most, len(found))
        return found


@pytest.fixture(scope="module")
def store() -> Counting:
    made = Counting()
    for number in range(MANY):
        opened = SessionOpened(resource=f"user-{number:04}" if number % 2 else "default", cwd="/w")
        draft = Draft(payload=opened, origin=Origin.USER)
        made.append(f"session/talk-{number:04}", [draft], expected=0, at=datetime(2026, 1, 1, tzinfo=UTC))
    return made


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("user-2701x", "user-2701"), ("user-27011", "user-2701"), ("User-0001", "user-0001"), ("uzer-0001", "user-0001")],
)
def test_a_mistyped_resource_is_found_by_its_prefix(store: Counting, typed: str, meant: str) -> None:
    assert nearest_resource(store, typed) == meant
    assert store.most <= MAX_NAME_CANDIDATES


@pytest.mark.parametrize(
    ("typed", "meant"), [("talk-29000", "talk-2900"), ("Talk-0002", "talk-0002"), ("tlak-0002", "talk-0002")]
)
def test_a_mistyped_session_is_found_by_its_prefix(store: Counting, typed: str, meant: str) -> None:
    assert nearest_session(store, typed) == meant
    assert store.most <= MAX_NAME_CANDIDATES


@pytest.mark.parametrize("typed", ["", "\0", "\ud800", "nothing of the kind"])
def test_nothing_is_suggested_if_nothing_is_similar(store: Counting, typed: str) -> None:
    assert (nearest_resource(store, typed), nearest_session(store, typed)) == ("", "")
