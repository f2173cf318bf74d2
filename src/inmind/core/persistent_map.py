"""A map that only ever grows, as a value: what was known at some moment stays what it was.

A session goes on meeting ids for as long as it lives, and its state is copied with every event. So all states of
one line share the storage, each looking only at the entries that were there when it was made, and adding one
costs the same however many there are. A state that is not the newest goes the way that a later one went before it,
or copies if it goes its own. A value of None says that there is none any more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Known(Generic[K, V]):
    __slots__ = ("_entries", "_places", "length")

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        self._entries: list[tuple[K, V]] = []
        self._places: dict[K, list[int]] = {}
        for key, value in entries:
            self._keep(key, value)
        self.length = len(self._entries)

    def get(self, key: K) -> V | None:
        """What was last said of it."""
        places = self._places.get(key, ())
        newest = bisect_left(places, self.length) - 1
        return self._entries[places[newest]][1] if newest >= 0 else None

    def put(self, key: K, value: V) -> Known[K, V]:
        if self.get(key) == value:
            return self
        if self.length == len(self._entries):
            self._keep(key, value)
        elif self._entries[self.length] != (key, value):
            return Known([*self._entries[: self.length], (key, value)])
        grown: Known[K, V] = Known()
        grown._entries, grown._places = self._entries, self._places
        grown.length = self.length + 1
        return grown

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Each key that has a value once, with the newest, the most recently said first."""
        met: set[K] = set()
        for place in range(self.length - 1, -1, -1):
            key, value = self._entries[place]
            if key not in met:
                met.add(key)
                if value is not None:
                    yield key, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType] -- any two can be compared

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- equal by content, and it holds lists

    def _keep(self, key: K, value: V) -> None:
        self._places.setdefault(key, []).append(len(self._entries))
        self._entries.append((key, value))
