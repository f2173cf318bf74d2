"""Bit-packed numbers of crystals and passages.

They are unique per resource. A crystal's number is its series and its position there, so its neighbours have
adjacent numbers; a passage's number is its crystal's number, its position there and its length. So looking up a
word reads one list of numbers and needs no join. Series of conversations are odd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from struct import pack, unpack

_POSITION_BITS, _PASSAGE_BITS, _LENGTH_BITS = 20, 12, 4
_PASSAGE_SHIFT, _LENGTH_MASK = _PASSAGE_BITS + _LENGTH_BITS, (1 << _LENGTH_BITS) - 1

MAX_PASSAGES = 1 << _PASSAGE_BITS
"""Maximum passages per crystal."""


def crystal_number(series: int, position: int) -> int:
    """Return the number of the crystal at a position of a series."""
    return (series << _POSITION_BITS) | position


def series_number(count: int, *, conversation: bool) -> int:
    """Return the number of a resource's n-th series. Those of conversations are odd."""
    return 2 * count + conversation


def is_series_full(length: int) -> bool:
    """Return True if a series of this length has no position left."""
    return length >> _POSITION_BITS > 0


def series_bounds(series: int) -> tuple[int, int]:
    """Return the first and last crystal number of a series."""
    return crystal_number(series, 0), crystal_number(series, (1 << _POSITION_BITS) - 1)


def passage_number(crystal: int, position: int, *, words: int) -> int:
    """Return the number of a passage by its position in the crystal and its length in words."""
    grade = min(_LENGTH_MASK, round(2 * log2(max(words, 1))))
    return (((crystal << _PASSAGE_BITS) | position) << _LENGTH_BITS) | grade


def crystal_of(passage: int) -> int:
    """Return the crystal number of a passage."""
    return passage >> _PASSAGE_SHIFT


def series_of(passage: int) -> int:
    """Return the series number of a passage."""
    return passage >> (_PASSAGE_SHIFT + _POSITION_BITS)


def passage_position(passage: int) -> int:
    """Return the position of a passage in its crystal."""
    return (passage >> _LENGTH_BITS) & (MAX_PASSAGES - 1)


def best_passages(scores: Mapping[int, float], length_factor: Callable[[float], float]) -> dict[int, tuple[float, int]]:
    """Return the best passage of each crystal with its score.

    `length_factor` weights a score by the length in words.
    """
    factors = [length_factor(2 ** (grade / 2)) for grade in range(1 << _LENGTH_BITS)]
    best: dict[int, tuple[float, int]] = {}
    for passage, score in scores.items():
        candidate = (score * factors[passage & _LENGTH_MASK], passage)
        crystal = passage >> _PASSAGE_SHIFT
        if crystal not in best or candidate > best[crystal]:
            best[crystal] = candidate
    return best


def conversation_of(crystal: int) -> int | None:
    """Return the conversation of a crystal, or None."""
    series = crystal >> _POSITION_BITS
    return series if series & 1 else None


def pack_vector(vector: Sequence[float]) -> bytes:
    """Pack a vector as half floats, the precision of an index."""
    return pack(f"<{len(vector)}e", *vector)


def round_to_half(vector: Sequence[float]) -> Sequence[float]:
    """Round a vector to half-float precision."""
    return unpack(f"<{len(vector)}e", pack_vector(vector))
