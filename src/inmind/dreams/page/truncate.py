"""What of MEMORY.md stands in a prompt that has no room for all of it."""

from __future__ import annotations

from bisect import bisect_right

from inmind.core.text import Cut, cut
from inmind.core.tokens import Counter
from inmind.dreams.page.page import blocks_of


def beginning(text: str, *, budget: int, count: Counter, pointer: str) -> Cut:
    """Its first entries, as many as fit above the pointer: half an entry can lose its "not", and a heading with nothing
    under it says nothing. Where not even one fits, it is cut like any text."""
    if count(text) <= budget:
        return Cut(text, 0)
    lines = text.split("\n")
    ends = [block.end for block in blocks_of(lines) if block.what == "entry"]

    def shown(end: int) -> str:
        return "\n".join([*lines[:end], pointer])

    kept = bisect_right(ends, budget, key=lambda end: count(shown(end)))
    if not kept:
        return cut(text, budget=budget, count=count, pointer=pointer)
    return Cut(shown(ends[kept - 1]), len(lines) - ends[kept - 1])
