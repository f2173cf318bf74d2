"""How large an overview should get: it is paid for in every request."""

from __future__ import annotations

GOAL = 5 * 1024
"""Bytes."""

_TOLD = {
    "en": (
        "overview.md has {now} KB, the goal is below {goal}: move what is not needed in every request to detail/, "
        "what is finished to archive/, and keep one line of each."
    ),
    "zh": (
        "overview.md 已有 {now} KB，目标是低于 {goal} KB：请把不必每次都看的内容移到 detail/，"
        "把已完成的内容移到 archive/，每项只留一行。"
    ),
}


def size_warning(text: str, language: str) -> str:
    """What a model is told about a page that has grown too large; empty below the goal."""
    size = len(text.encode())
    return "" if size < GOAL else _TOLD[language].format(now=f"{size / 1024:.1f}", goal=GOAL // 1024)
