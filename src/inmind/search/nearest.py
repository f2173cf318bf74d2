"""In-memory nearest-neighbour search in milliseconds.

Up to MAX_EXACT vectors are kept in full, and results are exact. Beyond that memory is the limit, so a vector is
stored as two things. The signs of its numbers, one bit each, select a few thousand candidates: the smaller the
angle between two vectors, the more signs they share. The numbers rounded to 8 bits measure the candidates. That is
300 bytes for 256 dimensions instead of 1,032. There is nothing to build: added vectors are found by the next query.

numpy comes with an extra, so this module is imported lazily. Nothing here locks: the caller must not add while
another thread queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_EXACT: Final = 100_000
"""Number of vectors kept in full: 100 MB for 256 dimensions."""

MIN_RERANKED: Final = 4_000
"""Minimum number of candidates that are measured: fewer lose neighbours, more cost time."""

RERANKED_PER_HIT: Final = 40
"""Candidates measured per requested result: further down the list the signs are less exact."""

_PIECE_SIZE: Final = 16_384
"""Rows processed at once, which bounds temporary memory."""

_MIN_CAPACITY: Final = 1_024

_BLOCK_SIZE: Final = 64

VectorArray = NDArray[np.float32]
Column = NDArray[Any]


class NearestVectors:
    """Vectors by key, of unit length or zero for an empty text. The caller checks this."""

    def __init__(self, dimensions: int, *, max_exact: int = MAX_EXACT) -> None:
        self.dimensions = dimensions
        self._max_exact = max_exact
        self._format: _FullVectors | _RoundedVectors = _FullVectors()
        self._table = _Table(self._format, dimensions)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def is_exact(self) -> bool:
        """True while all vectors are in full.

        Once rounded they stay rounded; only a new instance is exact again.
        """
        return isinstance(self._format, _FullVectors)

    def add(self, keys: Sequence[int] | NDArray[np.int64], vectors: ArrayLike) -> None:
        """Add vectors. An existing key is replaced; of a key given twice the last one counts."""
        rows = np.asarray(vectors, np.float32).reshape(len(keys), self.dimensions)
        # np.unique returns the first index of a value, so the keys are reversed.
        new_keys, last_rows = np.unique(np.asarray(keys, np.int64)[::-1], return_index=True)
        self._table.keep(~np.isin(self._table.keys, new_keys))
        if self.is_exact and len(self) + len(new_keys) > self._max_exact:
            self._round()
        for piece in _pieces(len(new_keys)):
            self._table.append(new_keys[piece], self._format.columns(rows[::-1][last_rows[piece]]))

    def nearest(self, query: ArrayLike, limit: int) -> list[tuple[int, float]]:
        """Return the nearest keys with their cosines, nearest first, ties by key."""
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


# np.vecdot is used because it sums each row separately. A matrix product may sum in another order from row to row, so
# that equal vectors are not equally near; it is not faster and uses several cores.


class _FullVectors:
    """Full vectors, measured in double precision; candidates are selected in single precision."""

    def columns(self, vectors: VectorArray) -> Sequence[Column]:
        return (vectors,)

    def min_candidates(self, limit: int) -> int:
        """Up to this number all vectors are measured."""
        return limit

    def candidates(self, columns: Sequence[Column], query: VectorArray, *, limit: int) -> NDArray[np.intp]:
        """Return the rows that contain the nearest vectors."""
        cosines = np.vecdot(columns[0], query)
        floor = _score_floor(cosines, limit)
        # A sum of n products in single precision has an error of at most n / 2**24, and two sums are compared.
        return np.flatnonzero(cosines >= floor - len(query) / 2**23)

    def cosines(self, columns: Sequence[Column], query: VectorArray, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        return np.vecdot(columns[0][rows].astype(np.float64), query.astype(np.float64))


class _RoundedVectors:
    """Numbers in 8 bits, scaled by each vector's largest number, and signs in columns of 64.

    Signs are in columns because numpy counts bits of few long columns much faster than of many short rows.
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
    """Return a lower bound for the worst of the nearest: the `limit`-th best block maximum."""
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
    """Keys and columns of a format, in order of addition. Capacity is doubled when full."""

    def __init__(self, format: _FullVectors | _RoundedVectors, dimensions: int) -> None:
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

    def keep(self, rows: NDArray[np.bool_]) -> None:
        if not rows.all():
            self._columns = [column[: self._count][rows] for column in self._columns]
            self._count = len(self._columns[0])

    def _resize(self, capacity: int) -> None:
        for number, column in enumerate(self._columns):
            self._columns[number] = np.empty((capacity, *column.shape[1:]), column.dtype)
            self._columns[number][: self._count] = column[: self._count]


def _pieces(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _PIECE_SIZE) for begin in range(0, count, _PIECE_SIZE))
