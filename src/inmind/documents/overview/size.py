"""How large an overview should get: it is paid for in every request.

What is told names no size but the goal: words that changed with every line of the page would be told again with each.
Nobody is told to shorten what memory has entered by itself: that takes half of the goal at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

GOAL = 5 * 1024
"""Bytes."""
MOST_NOTED = 1_536
"""Of them, for what has happened."""
MOST_INDEXED = 1_024
"""And for the index of pages."""

_TOLD = {
    "en": (
        "overview.md is over the goal of {goal} KB: move what is not needed in every request to detail/, "
        "what is finished to archive/, and keep one line of each."
    ),
    "zh": (
        "overview.md 已超过 {goal} KB 的目标：请把不必每次都看的内容移到 detail/，"
        "把已完成的内容移到 archive/，每项只留一行。"
    ),
}


def size_warning(text: str, language: str) -> str:
    """What a model is told about a page that has grown too large; empty below the goal."""
    return "" if len(text.encode()) < GOAL else _TOLD[language].format(goal=GOAL // 1024)


def fitting(lists: Sequence[Sequence[T]], line: Callable[[T], str], *, most: int) -> list[T]:
    """The first of each list, then the second of each and so on, as long as their lines have room in `most` bytes.

    A list ends with the first that has none: what is older does not stay in the place of what is newer.
    """
    kept: list[T] = []
    going = [iter(one) for one in lists]
    while going:
        for one in tuple(going):
            item = next(one, None)
            if item is None or (size := len(line(item).encode()) + 1) > most:
                going.remove(one)
            else:
                kept.append(item)
                most -= size
    return kept
