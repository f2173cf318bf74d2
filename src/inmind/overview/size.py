"""How large an overview should get: it is paid for in every request.

What is told names no size but the goal: words that changed with every line of the page would be told again with each.
"""

from __future__ import annotations

GOAL = 5 * 1024
"""Bytes."""

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
