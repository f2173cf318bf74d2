"""The levels in a few words, as they stand on MEMORY.md and in front of people."""

from __future__ import annotations

from typing import Final

from inmind.dreams.affect.levels import Levels

CALM: Final = "calm"

_WORDS: Final = {
    "dopamine": ((0.7, "elated"), (0.4, "motivated")),
    "cortisol": ((0.7, "under strain"), (0.3, "tense")),
    "oxytocin": ((0.7, "warmly attached"), (0.45, "socially engaged")),
}
"""Of each level the words for being above so much, the strongest first."""

_LISTLESS: Final = 0.08
"""Below this little dopamine is left: search after search has found nothing."""


def mood(levels: Levels) -> str:
    """One word for each level that stands out; calm, where none does."""
    words = [
        next((word for least, word in _WORDS[level] if value > least), "") for level, value in levels.named.items()
    ]
    if levels.dopamine < _LISTLESS:
        words[0] = "listless"
    return ", ".join(filter(None, words)) or CALM
