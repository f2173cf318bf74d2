"""Size limits of overview.md, which costs tokens in every request.

The warning contains only the goal: a text with the current size would change with every line of the page. Generated
lines take at most half of the goal, so the warning never asks the model to shorten those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

SIZE_GOAL_BYTES = 5 * 1024
MAX_EVENT_BYTES = 1_536
"""Part of the goal for the event log."""
MAX_INDEX_BYTES = 1_024
"""Part of the goal for the index of pages."""

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
    """Return the warning for a page over the goal; empty below it."""
    return "" if len(text.encode()) < SIZE_GOAL_BYTES else _WARNINGS[language].format(goal=SIZE_GOAL_BYTES // 1024)


def fit_round_robin(lists: Sequence[Sequence[T]], render: Callable[[T], str], *, max_bytes: int) -> list[T]:
    """Take items from the lists in turn while their lines fit `max_bytes`.

    A list ends at its first item that does not fit, so that an older item never stays in place of a newer one.
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
