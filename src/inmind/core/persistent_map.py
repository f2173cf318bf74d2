"""A persistent map: an older version stays valid when a newer one is made.

The state of a session is copied with every event. All versions share one list of entries, and each reads only the
entries that existed when it was made, so adding an entry takes constant time. Adding to an older version reuses the
next entry if it is the same, and copies otherwise. A value of None marks a deleted key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class PersistentMap(Generic[K, V]):
    """A map whose `put` returns a new version."""

    __slots__ = ("_entries", "_places", "length")

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        self._entries: list[tuple[K, V]] = []
        self._places: dict[K, list[int]] = {}
        for key, value in entries:
            self._append(key, value)
        self.length = len(self._entries)

    def get(self, key: K) -> V | None:
        """The newest value of a key in this version, or None."""
        places = self._places.get(key, ())
        newest = bisect_left(places, self.length) - 1
        return self._entries[places[newest]][1] if newest >= 0 else None

    def put(self, key: K, value: V) -> PersistentMap[K, V]:
        if self.get(key) == value:
            return self
        if self.length == len(self._entries):
            self._append(key, value)
        elif self._entries[self.length] != (key, value):
            return PersistentMap([*self._entries[: self.length], (key, value)])
        grown: PersistentMap[K, V] = PersistentMap()
        grown._entries, grown._places = self._entries, self._places
        grown.length = self.length + 1
        return grown

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Every key that has a value, with its newest value, most recent first."""
        seen: set[K] = set()
        for place in range(self.length - 1, -1, -1):
            key, value = self._entries[place]
            if key not in seen:
                seen.add(key)
                if value is not None:
                    yield key, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PersistentMap) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType] -- any two can be compared

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- equal by content, and it holds lists

    def _append(self, key: K, value: V) -> None:
        self._places.setdefault(key, []).append(len(self._entries))
        self._entries.append((key, value))
