"""How long MEMORY.md may be: as dreams write it, and as it stands in a prompt.

What a dream writes is what a model with a large window reads, whole. A smaller window gets less of it, and the notes
that wait for a dream share the room: they are newer than anything on the page, so they come first, up to a quarter.
"""

from __future__ import annotations

from typing import Final

from inmind.core.frozen import frozen
from inmind.core.tokens import estimator

MOST_CHARACTERS: Final = 6_000
MOST_TOKENS: Final = 2_000

_BESIDE_PEOPLE: Final = 4
"""One of so many parts of the room is for dreams where people have filled it by themselves."""

_INJECTED: Final = ((200_000, 8_000), (128_000, 6_000), (64_000, 4_000))
"""Windows, and the characters that state and notes have in one of at least that size."""

_LEAST_INJECTED: Final = 3_200

_NOTES: Final = 4
"""One of so many parts is for notes, if they need it."""


@frozen
class Size:
    """What a text takes."""

    characters: int
    tokens: int

    def within(self, other: Size) -> bool:
        return self.characters <= other.characters and self.tokens <= other.tokens

    def __add__(self, other: Size) -> Size:
        return Size(self.characters + other.characters, self.tokens + other.tokens)

    def __sub__(self, other: Size) -> Size:
        return Size(self.characters - other.characters, self.tokens - other.tokens)


MOST: Final = Size(MOST_CHARACTERS, MOST_TOKENS)


def size(text: str) -> Size:
    return Size(len(text), _count(text))


def room_beside(people: str) -> Size:
    """What a page may take, given what of it people wrote. Nobody tells them to be brief."""
    theirs = size(people)
    part = Size(MOST_CHARACTERS // _BESIDE_PEOPLE, MOST_TOKENS // _BESIDE_PEOPLE)
    return MOST if theirs.within(MOST) else theirs + part


def injected(window: int) -> int:
    """Characters for state and notes together, by what the model's window takes."""
    return next((most for least, most in _INJECTED if window >= least), _LEAST_INJECTED)


def shares(window: int, state: str, notes: str) -> tuple[int, int]:
    """Characters for the state and for the notes: what one does not need is the other's."""
    room = injected(window)
    for_notes = min(len(notes), max(room // _NOTES, room - len(state)))
    return room - for_notes, for_notes


_count = estimator()
