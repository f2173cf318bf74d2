"""How large an overview should get: it is paid for in every request.

What is told names no size but the goal: words that changed with every line of the page would be told again with each.
Nobody is told to shorten what memory has entered by itself: that takes half of the goal at most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

SIZE_GOAL_BYTES = 5 * 1024
"""Bytes."""
MAX_EVENT_BYTES = 1_536
"""Of them, for what has happened."""
MAX_INDEX_BYTES = 1_024
"""And for the index of pages."""

_WARNINGS = {
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
    return "" if len(text.encode()) < SIZE_GOAL_BYTES else _WARNINGS[language].format(goal=SIZE_GOAL_BYTES // 1024)


def fit_round_robin(lists: Sequence[Sequence[T]], render: Callable[[T], str], *, max_bytes: int) -> list[T]:
    """The first of each list, then the second of each and so on, as long as their lines have room in `most` bytes.

    A list ends with the first that has none: what is older does not stay in the place of what is newer.
    """
    kept: list[T] = []
    iterators = [iter(one) for one in lists]
    while iterators:
        for one in tuple(iterators):
            item = next(one, None)
            if item is None or (size := len(render(item).encode()) + 1) > max_bytes:
                iterators.remove(one)
            else:
                kept.append(item)
                max_bytes -= size
    return kept
