"""Which vectors are nearest to a query, held in memory and asked in milliseconds.

Up to EXACT of them are kept as they came, and the answer is exact. Beyond that memory is what runs out, so a vector
becomes two things. The signs of its numbers, a bit each, tell which few thousand may be near: the smaller the angle
between two vectors, the more signs they share. And its numbers, rounded to 8 bits, tell how near those are. That is 300
bytes for 256 dimensions, where a whole vector takes 1,032. There is nothing to build: what was added is found by the
next query, what was removed is gone.

numpy comes with an extra, so this module is imported late, by whoever has vectors. Nothing here locks: whoever shares a
Nearest between threads sees to it that nobody asks while somebody adds or removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_EXACT: Final = 100_000
"""So many are kept whole: 100 MB of 256 dimensions."""

MIN_RERANKED: Final = 4_000
"""At least so many, those that share the most signs, are measured: fewer lose neighbours, more cost time."""

RERANKED_PER_HIT: Final = 40
"""And so many for each answer that is wanted: the farther down the list, the less the signs tell."""

_PIECE_SIZE: Final = 16_384
"""How many are worked on together, which bounds what adding and asking need for the moment."""

_MIN_CAPACITY: Final = 1_024

_BLOCK_SIZE: Final = 64

VectorArray = NDArray[np.float32]
Column = NDArray[Any]


class NearestVectors:
    """Vectors by their keys. They are of unit length, or zero where a text says nothing: whoever makes them checks."""

    def __init__(self, dimensions: int, *, max_exact: int = MAX_EXACT) -> None:
        self.dimensions = dimensions
        self._max_exact = max_exact
        self._format: _VectorFormat = _FullVectors()
        self._table = _Table(self._format, dimensions)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def is_exact(self) -> bool:
        """Whether all are whole. Once rounded they stay so, however many leave: only a new Nearest is exact again."""
        return isinstance(self._format, _FullVectors)

    def add(self, keys: Sequence[int] | NDArray[np.int64], vectors: ArrayLike) -> None:
        """A key that is there already gets the new vector; of a key given twice the last one counts."""
        rows = np.asarray(vectors, np.float32).reshape(len(keys), self.dimensions)
        # np.unique tells where a value comes first, so it is shown the keys backwards.
        new_keys, last_rows = np.unique(np.asarray(keys, np.int64)[::-1], return_index=True)
        self.remove(new_keys)
        if self.is_exact and len(self) + len(new_keys) > self._max_exact:
            self._round()
        for piece in _pieces(len(new_keys)):
            self._table.append(new_keys[piece], self._format.columns(rows[::-1][last_rows[piece]]))

    def remove(self, keys: Sequence[int] | NDArray[np.int64]) -> None:
        """Keys that are not there are none of its business."""
        self._table.drop(np.flatnonzero(np.isin(self._table.keys, np.asarray(keys, np.int64))))

    def nearest(self, query: ArrayLike, limit: int) -> list[tuple[int, float]]:
        """The keys nearest to the query with their cosines, the nearest first, equally near ones by key."""
        query_vector = np.asarray(query, np.float32).reshape(self.dimensions)
        keys, columns = self._table.keys, self._table.columns
        if not len(keys):
            return []
        preselect = len(keys) > self._format.min_candidates(limit)
        rows = self._format.candidates(columns, query_vector, limit=limit) if preselect else np.arange(len(keys))
        cosines = np.concatenate(
            [self._format.cosines(columns, query_vector, rows[piece]) for piece in _pieces(len(rows))]
        )
        best = np.lexsort((keys[rows], -cosines))[:limit]
        return list(zip(keys[rows[best]].tolist(), cosines[best].tolist(), strict=True))

    def _round(self) -> None:
        full, self._format = self._table, _RoundedVectors()
        self._table = _Table(self._format, self.dimensions)
        for piece in _pieces(len(full)):
            self._table.append(full.keys[piece], self._format.columns(full.columns[0][piece]))


class _VectorFormat(Protocol):
    """How vectors are kept: in which columns, and how those of them are found that are worth measuring.

    Here np.vecdot is the product, which adds up each row by itself. A product of matrices may add in another order from
    one row to the next, and then two equal vectors are not equally near; nor is it faster, or content with one core.
    """

    def columns(self, vectors: VectorArray) -> Sequence[Column]: ...

    def min_candidates(self, limit: int) -> int:
        """So few are measured without a choice."""
        ...

    def candidates(self, columns: Sequence[Column], query: VectorArray, *, limit: int) -> NDArray[np.intp]:
        """The rows that the nearest are found in, out of more than enough."""
        ...

    def cosines(
        self, columns: Sequence[Column], query: VectorArray, rows: NDArray[np.intp]
    ) -> NDArray[np.floating]: ...


class _FullVectors:
    """As they came, and measured in double precision; single precision tells who may be among the nearest."""

    def columns(self, vectors: VectorArray) -> Sequence[Column]:
        return (vectors,)

    def min_candidates(self, limit: int) -> int:
        return limit

    def candidates(self, columns: Sequence[Column], query: VectorArray, *, limit: int) -> NDArray[np.intp]:
        cosines = np.vecdot(columns[0], query)
        floor = _score_floor(cosines, limit)
        # A sum of n products in single precision is off by n / 2**24 at most, and two sums are compared.
        return np.flatnonzero(cosines >= floor - len(query) / 2**23)

    def cosines(self, columns: Sequence[Column], query: VectorArray, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        return np.vecdot(columns[0][rows].astype(np.float64), query.astype(np.float64))


class _RoundedVectors:
    """To 8 bits, in steps that fit each vector's largest number; and beside that the signs, 64 in each column.

    Signs stand in columns because numpy counts the bits of few long columns far faster than those of many short rows.
    """

    def columns(self, vectors: VectorArray) -> Sequence[Column]:
        steps = np.maximum(np.abs(vectors).max(axis=1) / 127, np.finfo(np.float32).tiny)
        return (np.rint(vectors / steps[:, None]).astype(np.int8), steps, *_sign_bits(vectors))

    def min_candidates(self, limit: int) -> int:
        return max(MIN_RERANKED, RERANKED_PER_HIT * limit)

    def candidates(self, columns: Sequence[Column], query: VectorArray, *, limit: int) -> NDArray[np.intp]:
        _, _, *signs = columns
        distances = np.zeros(len(signs[0]), np.uint16)
        for column, sign in zip(signs, _sign_bits(query[None]), strict=True):
            distances += np.bitwise_count(column ^ sign)
        max_distance = np.searchsorted(np.cumsum(np.bincount(distances)), self.min_candidates(limit))
        return np.flatnonzero(distances <= max_distance)

    def cosines(self, columns: Sequence[Column], query: VectorArray, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        numbers, steps, *_ = columns
        return np.vecdot(numbers[rows].astype(np.float32), query) * steps[rows]


def _score_floor(cosines: VectorArray, limit: int) -> np.float32:
    """No more than what the last of the nearest has: so many of the best, one from each block, all have that."""
    blocks = len(cosines) // _BLOCK_SIZE
    sample = (
        cosines if blocks < max(limit, 1) else cosines[: blocks * _BLOCK_SIZE].reshape(blocks, _BLOCK_SIZE).max(axis=1)
    )
    return np.partition(sample, -limit)[-limit]


def _sign_bits(vectors: VectorArray) -> Sequence[NDArray[np.uint64]]:
    packed = np.packbits(vectors > 0, axis=1)
    words = np.zeros((len(vectors), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return list(words.view(np.uint64).T)


class _Table:
    """Keys, and the columns of a form beside them, in no order.

    A gap is filled from the end, so nothing dead is ever looked at. Room is doubled when it runs out, and given back
    when three quarters of it stand empty.
    """

    def __init__(self, format: _VectorFormat, dimensions: int) -> None:
        self._columns: list[Column] = [np.empty(0, np.int64), *format.columns(np.empty((0, dimensions), np.float32))]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> NDArray[np.int64]:
        return self._columns[0][: self._count]

    @property
    def columns(self) -> Sequence[Column]:
        return [column[: self._count] for column in self._columns[1:]]

    def append(self, keys: NDArray[np.int64], columns: Sequence[Column]) -> None:
        count = self._count + len(keys)
        capacity = len(self._columns[0])
        if count > capacity:
            self._resize(max(_MIN_CAPACITY, 2 * capacity, count))
        for column, new_rows in zip(self._columns, (keys, *columns), strict=True):
            column[self._count : count] = new_rows
        self._count = count

    def drop(self, rows: NDArray[np.intp]) -> None:
        count = self._count - len(rows)
        gaps = rows[rows < count]
        moved = np.setdiff1d(np.arange(count, self._count), rows, assume_unique=True)
        for column in self._columns:
            column[gaps] = column[moved]
        self._count = count
        if max(_MIN_CAPACITY, 4 * count) < len(self._columns[0]):
            self._resize(max(_MIN_CAPACITY, 2 * count))

    def _resize(self, capacity: int) -> None:
        for number, column in enumerate(self._columns):
            self._columns[number] = np.empty((capacity, *column.shape[1:]), column.dtype)
            self._columns[number][: self._count] = column[: self._count]


def _pieces(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _PIECE_SIZE) for begin in range(0, count, _PIECE_SIZE))
