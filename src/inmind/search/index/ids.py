"""The numbers of crystals and passages, which carry what ranking needs most.

They are a resource's own. A crystal's number is its series and its place there, so its neighbours are the numbers
beside it; a passage's number is its crystal's, its place there and how long it is. So a word is looked up by reading
one list of numbers, and nothing is joined. Series of conversations are odd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from struct import pack, unpack

_PLACES, _PASSAGES, _LENGTHS = 20, 12, 4
_WITHIN, _GRADE = _PASSAGES + _LENGTHS, (1 << _LENGTHS) - 1

MOST_PASSAGES = 1 << _PASSAGES
"""Of one crystal."""


def crystal_at(series: int, place: int) -> int:
    """The number of what stands at a place of a series."""
    return (series << _PLACES) | place


def next_series(count: int, *, talk: bool) -> int:
    """The number of a resource's series, which is its so manyth. Those of conversations are odd."""
    return 2 * count + talk


def is_full(length: int) -> bool:
    """Has a series of so many no place left?"""
    return length >> _PLACES > 0


def all_of(series: int) -> tuple[int, int]:
    """The first and the last number of a series."""
    return crystal_at(series, 0), crystal_at(series, (1 << _PLACES) - 1)


def passage_at(crystal: int, place: int, *, words: int) -> int:
    """The number of a passage of so many words, by its place in a crystal."""
    grade = min(_GRADE, round(2 * log2(max(words, 1))))
    return (((crystal << _PASSAGES) | place) << _LENGTHS) | grade


def crystal_of(passage: int) -> int:
    """The number of the crystal that a passage belongs to."""
    return passage >> _WITHIN


def series_of(passage: int) -> int:
    """What stands in order with the crystal of a passage."""
    return passage >> (_WITHIN + _PLACES)


def place_of(passage: int) -> int:
    """Which passage of its crystal it is."""
    return (passage >> _LENGTHS) & (MOST_PASSAGES - 1)


def best_passages(worth: Mapping[int, float], by_length: Callable[[float], float]) -> dict[int, tuple[float, int]]:
    """Of each crystal what its best passage is worth, and which that is. `by_length`: what its words make of that."""
    grades = [by_length(2 ** (grade / 2)) for grade in range(1 << _LENGTHS)]
    best: dict[int, tuple[float, int]] = {}
    for passage, gain in worth.items():
        one = (gain * grades[passage & _GRADE], passage)
        crystal = passage >> _WITHIN
        if crystal not in best or one > best[crystal]:
            best[crystal] = one
    return best


def conversation_of(crystal: int) -> int | None:
    """Which conversation a crystal stands in, if it does."""
    series = crystal >> _PLACES
    return series if series & 1 else None


def packed(vector: Sequence[float]) -> bytes:
    """The numbers of a vector, in two bytes each, which is as exact as an index keeps them."""
    return pack(f"<{len(vector)}e", *vector)


def half(vector: Sequence[float]) -> Sequence[float]:
    """As exact as that."""
    return unpack(f"<{len(vector)}e", packed(vector))
