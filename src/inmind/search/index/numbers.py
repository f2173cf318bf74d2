"""The numbers of crystals and passages, which carry what ranking needs most.

They are a resource's own. A crystal's number is its series and its place there, so its neighbours are the numbers
beside it; a passage's number is its crystal's, its place there and how long it is. So a word is looked up by reading
one list of numbers, and nothing is joined. Series of conversations are odd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from struct import pack, unpack

_POSITION_BITS, _PASSAGE_BITS, _LENGTH_BITS = 20, 12, 4
_PASSAGE_SHIFT, _LENGTH_MASK = _PASSAGE_BITS + _LENGTH_BITS, (1 << _LENGTH_BITS) - 1

MAX_PASSAGES = 1 << _PASSAGE_BITS
"""Of one crystal."""


def crystal_number(series: int, position: int) -> int:
    """The number of what stands at a place of a series."""
    return (series << _POSITION_BITS) | position


def series_number(count: int, *, conversation: bool) -> int:
    """The number of a resource's series, which is its so manyth. Those of conversations are odd."""
    return 2 * count + conversation


def is_series_full(length: int) -> bool:
    """Has a series of so many no place left?"""
    return length >> _POSITION_BITS > 0


def series_bounds(series: int) -> tuple[int, int]:
    """The first and the last number of a series."""
    return crystal_number(series, 0), crystal_number(series, (1 << _POSITION_BITS) - 1)


def passage_number(crystal: int, position: int, *, words: int) -> int:
    """The number of a passage of so many words, by its place in a crystal."""
    grade = min(_LENGTH_MASK, round(2 * log2(max(words, 1))))
    return (((crystal << _PASSAGE_BITS) | position) << _LENGTH_BITS) | grade


def crystal_of(passage: int) -> int:
    """The number of the crystal that a passage belongs to."""
    return passage >> _PASSAGE_SHIFT


def series_of(passage: int) -> int:
    """What stands in order with the crystal of a passage."""
    return passage >> (_PASSAGE_SHIFT + _POSITION_BITS)


def passage_position(passage: int) -> int:
    """Which passage of its crystal it is."""
    return (passage >> _LENGTH_BITS) & (MAX_PASSAGES - 1)


def best_passages(scores: Mapping[int, float], length_factor: Callable[[float], float]) -> dict[int, tuple[float, int]]:
    """Of each crystal what its best passage is worth, and which that is. `by_length`: what its words make of that."""
    factors = [length_factor(2 ** (grade / 2)) for grade in range(1 << _LENGTH_BITS)]
    best: dict[int, tuple[float, int]] = {}
    for passage, score in scores.items():
        candidate = (score * factors[passage & _LENGTH_MASK], passage)
        crystal = passage >> _PASSAGE_SHIFT
        if crystal not in best or candidate > best[crystal]:
            best[crystal] = candidate
    return best


def conversation_of(crystal: int) -> int | None:
    """Which conversation a crystal stands in, if it does."""
    series = crystal >> _POSITION_BITS
    return series if series & 1 else None


def pack_vector(vector: Sequence[float]) -> bytes:
    """The numbers of a vector, in two bytes each, which is as exact as an index keeps them."""
    return pack(f"<{len(vector)}e", *vector)


def round_to_half(vector: Sequence[float]) -> Sequence[float]:
    """As exact as that."""
    return unpack(f"<{len(vector)}e", pack_vector(vector))
