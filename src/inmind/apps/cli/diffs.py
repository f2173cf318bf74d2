"""A unified diff in colour, down to the words: who changes one of them must not have to look for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest

from rich.text import Text

from inmind.core.text import printable

ALIKE = 0.5
"""Of two lines: from here on one is the other, changed, and the words are marked in which they differ."""

_COLOURS = {"-": "red", "+": "green", "@": "cyan"}
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


def coloured(diff: str) -> Iterator[Text]:
    """Line by line, as a terminal may show it."""
    lines = printable(diff).split("\n") if diff else []
    yield from (Text(line, style="bold") for line in lines[:2])
    runs = [(sign, list(run)) for sign, run in groupby(lines[2:], key=lambda line: line[:1])]
    for place, (sign, run) in enumerate(runs):
        other = runs[place + 1 : place + 2] if sign == "-" else runs[max(0, place - 1) : place]
        if other and {sign, other[0][0]} == {"-", "+"}:
            yield from _against(run, other[0][1])
        else:
            yield from (Text(line, style=_COLOURS.get(sign, "")) for line in run)


def _against(run: Sequence[str], other: Sequence[str]) -> Iterator[Text]:
    """Lines of one side, each with the words marked that the line in its place on the other side does not have."""
    for line, twin in zip_longest(run, other[: len(run)], fillvalue=""):
        text = Text(line, style=_COLOURS[line[0]])
        ours, theirs = _WORD.findall(line[1:]), _WORD.findall(twin[1:])
        matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
        if matcher.ratio() >= ALIKE:
            ends = [1]
            for word in ours:
                ends.append(ends[-1] + len(word))
            for what, start, end, _, _ in matcher.get_opcodes():
                if what != "equal":
                    text.stylize("reverse", ends[start], ends[end])
        yield text
