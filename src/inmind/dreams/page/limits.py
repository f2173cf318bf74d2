"""How long MEMORY.md may be: as dreams write it, and as it stands in a prompt.

What a dream writes is what a model with a large window reads, whole. A smaller window gets less of it, and the notes
that wait for a dream share the room: they are newer than anything on the page, so they come first, up to a quarter.
"""

from __future__ import annotations

from typing import Final

from inmind.core.frozen import frozen
from inmind.core.tokens import estimator

MAX_PAGE_CHARACTERS: Final = 6_000
MAX_PAGE_TOKENS: Final = 2_000

_DREAM_FRACTION: Final = 4
"""One of so many parts of the room is for dreams where people have filled it by themselves."""

_PROMPT_CHARACTERS_BY_WINDOW: Final = ((200_000, 8_000), (128_000, 6_000), (64_000, 4_000))
"""Windows, and the characters that state and notes have in one of at least that size."""

_MIN_PROMPT_CHARACTERS: Final = 3_200

_NOTES_FRACTION: Final = 4
"""One of so many parts is for notes, if they need it."""


@frozen
class TextSize:
    """What a text takes."""

    characters: int
    tokens: int

    def fits_in(self, other: TextSize) -> bool:
        return self.characters <= other.characters and self.tokens <= other.tokens

    def __add__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters + other.characters, self.tokens + other.tokens)

    def __sub__(self, other: TextSize) -> TextSize:
        return TextSize(self.characters - other.characters, self.tokens - other.tokens)


MAX_PAGE_SIZE: Final = TextSize(MAX_PAGE_CHARACTERS, MAX_PAGE_TOKENS)


def measure(text: str) -> TextSize:
    return TextSize(len(text), _count_tokens(text))


def page_limit(user_text: str) -> TextSize:
    """What a page may take, given what of it people wrote. Nobody tells them to be brief."""
    user_size = measure(user_text)
    dream_part = TextSize(MAX_PAGE_CHARACTERS // _DREAM_FRACTION, MAX_PAGE_TOKENS // _DREAM_FRACTION)
    return MAX_PAGE_SIZE if user_size.fits_in(MAX_PAGE_SIZE) else user_size + dream_part


def prompt_characters(window: int) -> int:
    """Characters for state and notes together, by what the model's window takes."""
    return next(
        (characters for min_window, characters in _PROMPT_CHARACTERS_BY_WINDOW if window >= min_window),
        _MIN_PROMPT_CHARACTERS,
    )


def split_prompt_characters(window: int, state: str, notes: str) -> tuple[int, int]:
    """Characters for the state and for the notes: what one does not need is the other's."""
    total = prompt_characters(window)
    notes_characters = min(len(notes), max(total // _NOTES_FRACTION, total - len(state)))
    return total - notes_characters, notes_characters


_count_tokens = estimator()
