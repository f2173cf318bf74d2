"""Ids that would stand nowhere once their messages have left.

A summary forgets ids, and a model that needs one invents it. The block of things carries the most recent; of the
others, those that were in what leaves are named in its stub, the most recent first and as many as it has room for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inmind.core.tokens import Counter

MOST_KNOWN = 1_000
"""Ids that are looked for, of those that a session knows."""

_BETWEEN = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))
_BEHIND = (".", "!", "?")


class Naming:
    """`known`: ids, those first that are to be named first. `stays`: all that is still sent."""

    def __init__(self, known: Sequence[str], stays: Iterable[str]) -> None:
        self._known = {id: rank for rank, id in enumerate(dict.fromkeys(known[:MOST_KNOWN]))}
        for word in words_in("\n".join(stays)) & self._known.keys():
            del self._known[word]

    def among(self, texts: Iterable[str], *, room: int, count: Counter) -> list[str]:
        """Those that stand in these texts, in so many tokens. Each is named once."""
        there = words_in("\n".join(texts)) if self._known else set[str]()
        named: list[str] = []
        for id in sorted(there & self._known.keys(), key=self._known.__getitem__):
            room -= count(id) + 1
            if room < 0:
                break
            named.append(id)
            del self._known[id]
        return named


def words_in(text: str) -> set[str]:
    """Whatever could be an id in a text."""
    words = set(text.translate(_BETWEEN).split())
    return words | {word.rstrip("".join(_BEHIND)) for word in words if word.endswith(_BEHIND)}
