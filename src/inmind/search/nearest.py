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

EXACT: Final = 100_000
"""So many are kept whole: 100 MB of 256 dimensions."""

RERANKED: Final = 4_000
"""At least so many, those that share the most signs, are measured: fewer lose neighbours, more cost time."""

FOR_EACH: Final = 40
"""And so many for each answer that is wanted: the farther down the list, the less the signs tell."""

_AT_A_TIME: Final = 16_384
"""How many are worked on together, which bounds what adding and asking need for the moment."""

_LEAST_ROOM: Final = 1_024

_BLOCK: Final = 64

Vectors = NDArray[np.float32]
Column = NDArray[Any]


class Nearest:
    """Vectors by their keys. They are of unit length, or zero where a text says nothing: whoever makes them checks."""

    def __init__(self, dimensions: int, *, exact: int = EXACT) -> None:
        self.dimensions = dimensions
        self._most_exact = exact
        self._form: _Form = _Whole()
        self._table = _Table(self._form, dimensions)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def exact(self) -> bool:
        """Whether all are whole. Once rounded they stay so, however many leave: only a new Nearest is exact again."""
        return isinstance(self._form, _Whole)

    def add(self, keys: Sequence[int] | NDArray[np.int64], vectors: ArrayLike) -> None:
        """A key that is there already gets the new vector; of a key given twice the last one counts."""
        given = np.asarray(vectors, np.float32).reshape(len(keys), self.dimensions)
        # np.unique tells where a value comes first, so it is shown the keys backwards.
        fresh, latest = np.unique(np.asarray(keys, np.int64)[::-1], return_index=True)
        self.remove(fresh)
        if self.exact and len(self) + len(fresh) > self._most_exact:
            self._round()
        for piece in _pieces(len(fresh)):
            self._table.append(fresh[piece], self._form.columns(given[::-1][latest[piece]]))

    def remove(self, keys: Sequence[int] | NDArray[np.int64]) -> None:
        """Keys that are not there are none of its business."""
        self._table.drop(np.flatnonzero(np.isin(self._table.keys, np.asarray(keys, np.int64))))

    def nearest(self, query: ArrayLike, most: int) -> list[tuple[int, float]]:
        """The keys nearest to the query with their cosines, the nearest first, equally near ones by key."""
        asked = np.asarray(query, np.float32).reshape(self.dimensions)
        keys, columns = self._table.keys, self._table.columns
        if not len(keys):
            return []
        choose = len(keys) > self._form.enough(most)
        rows = self._form.likely(columns, asked, most=most) if choose else np.arange(len(keys))
        cosines = np.concatenate([self._form.cosines(columns, asked, rows[piece]) for piece in _pieces(len(rows))])
        best = np.lexsort((keys[rows], -cosines))[:most]
        return list(zip(keys[rows[best]].tolist(), cosines[best].tolist(), strict=True))

    def _round(self) -> None:
        whole, self._form = self._table, _Rounded()
        self._table = _Table(self._form, self.dimensions)
        for piece in _pieces(len(whole)):
            self._table.append(whole.keys[piece], self._form.columns(whole.columns[0][piece]))


class _Form(Protocol):
    """How vectors are kept: in which columns, and how those of them are found that are worth measuring.

    Here np.vecdot is the product, which adds up each row by itself. A product of matrices may add in another order from
    one row to the next, and then two equal vectors are not equally near; nor is it faster, or content with one core.
    """

    def columns(self, vectors: Vectors) -> Sequence[Column]: ...

    def enough(self, most: int) -> int:
        """So few are measured without a choice."""
        ...

    def likely(self, columns: Sequence[Column], asked: Vectors, *, most: int) -> NDArray[np.intp]:
        """The rows that the nearest are found in, out of more than enough."""
        ...

    def cosines(self, columns: Sequence[Column], asked: Vectors, rows: NDArray[np.intp]) -> NDArray[np.floating]: ...


class _Whole:
    """As they came, and measured in double precision; single precision tells who may be among the nearest."""

    def columns(self, vectors: Vectors) -> Sequence[Column]:
        return (vectors,)

    def enough(self, most: int) -> int:
        return most

    def likely(self, columns: Sequence[Column], asked: Vectors, *, most: int) -> NDArray[np.intp]:
        cosines = np.vecdot(columns[0], asked)
        least = _at_most(cosines, most)
        # A sum of n products in single precision is off by n / 2**24 at most, and two sums are compared.
        return np.flatnonzero(cosines >= least - len(asked) / 2**23)

    def cosines(self, columns: Sequence[Column], asked: Vectors, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        return np.vecdot(columns[0][rows].astype(np.float64), asked.astype(np.float64))


class _Rounded:
    """To 8 bits, in steps that fit each vector's largest number; and beside that the signs, 64 in each column.

    Signs stand in columns because numpy counts the bits of few long columns far faster than those of many short rows.
    """

    def columns(self, vectors: Vectors) -> Sequence[Column]:
        steps = np.maximum(np.abs(vectors).max(axis=1) / 127, np.finfo(np.float32).tiny)
        return (np.rint(vectors / steps[:, None]).astype(np.int8), steps, *_signs(vectors))

    def enough(self, most: int) -> int:
        return max(RERANKED, FOR_EACH * most)

    def likely(self, columns: Sequence[Column], asked: Vectors, *, most: int) -> NDArray[np.intp]:
        _, _, *signs = columns
        apart = np.zeros(len(signs[0]), np.uint16)
        for column, sign in zip(signs, _signs(asked[None]), strict=True):
            apart += np.bitwise_count(column ^ sign)
        within = np.searchsorted(np.cumsum(np.bincount(apart)), self.enough(most))
        return np.flatnonzero(apart <= within)

    def cosines(self, columns: Sequence[Column], asked: Vectors, rows: NDArray[np.intp]) -> NDArray[np.floating]:
        numbers, steps, *_ = columns
        return np.vecdot(numbers[rows].astype(np.float32), asked) * steps[rows]


def _at_most(cosines: Vectors, most: int) -> np.float32:
    """No more than what the last of the nearest has: so many of the best, one from each block, all have that."""
    blocks = len(cosines) // _BLOCK
    few = cosines if blocks < max(most, 1) else cosines[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    return np.partition(few, -most)[-most]


def _signs(vectors: Vectors) -> Sequence[NDArray[np.uint64]]:
    packed = np.packbits(vectors > 0, axis=1)
    words = np.zeros((len(vectors), -(-packed.shape[1] // 8) * 8), np.uint8)
    words[:, : packed.shape[1]] = packed
    return list(words.view(np.uint64).T)


class _Table:
    """Keys, and the columns of a form beside them, in no order.

    A gap is filled from the end, so nothing dead is ever looked at. Room is doubled when it runs out, and given back
    when three quarters of it stand empty.
    """

    def __init__(self, form: _Form, dimensions: int) -> None:
        self._all: list[Column] = [np.empty(0, np.int64), *form.columns(np.empty((0, dimensions), np.float32))]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> NDArray[np.int64]:
        return self._all[0][: self._count]

    @property
    def columns(self) -> Sequence[Column]:
        return [column[: self._count] for column in self._all[1:]]

    def append(self, keys: NDArray[np.int64], columns: Sequence[Column]) -> None:
        count = self._count + len(keys)
        room = len(self._all[0])
        if count > room:
            self._move(max(_LEAST_ROOM, 2 * room, count))
        for column, more in zip(self._all, (keys, *columns), strict=True):
            column[self._count : count] = more
        self._count = count

    def drop(self, rows: NDArray[np.intp]) -> None:
        count = self._count - len(rows)
        gaps = rows[rows < count]
        staying = np.setdiff1d(np.arange(count, self._count), rows, assume_unique=True)
        for column in self._all:
            column[gaps] = column[staying]
        self._count = count
        if max(_LEAST_ROOM, 4 * count) < len(self._all[0]):
            self._move(max(_LEAST_ROOM, 2 * count))

    def _move(self, room: int) -> None:
        for number, column in enumerate(self._all):
            self._all[number] = np.empty((room, *column.shape[1:]), column.dtype)
            self._all[number][: self._count] = column[: self._count]


def _pieces(count: int) -> Iterator[slice]:
    return (slice(begin, begin + _AT_A_TIME) for begin in range(0, count, _AT_A_TIME))
