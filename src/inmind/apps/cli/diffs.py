"""A unified diff in colour, with changed words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest

from rich.text import Text

from inmind.core.text import printable

MIN_SIMILARITY = 0.5
"""Ratio from which two lines count as one changed line, whose changed words are marked."""

_COLOURS = {"-": "red", "+": "green", "@": "cyan"}
_WORD = re.compile(r"\s+|\w+|[^\w\s]")


def color_diff(diff: str) -> Iterator[Text]:
    """The lines of a unified diff, styled."""
    lines = printable(diff).split("\n") if diff else []
    yield from (Text(line, style="bold") for line in lines[:2])
    runs = [(sign, list(run)) for sign, run in groupby(lines[2:], key=lambda line: line[:1])]
    for place, (sign, run) in enumerate(runs):
        other = runs[place + 1 : place + 2] if sign == "-" else runs[max(0, place - 1) : place]
        if other and {sign, other[0][0]} == {"-", "+"}:
            yield from _mark_changed_words(run, other[0][1])
        else:
            yield from (Text(line, style=_COLOURS.get(sign, "")) for line in run)


def _mark_changed_words(lines: Sequence[str], other_lines: Sequence[str]) -> Iterator[Text]:
    """Lines of one side; words that the matching line of the other side lacks are highlighted."""
    for line, other_line in zip_longest(lines, other_lines[: len(lines)], fillvalue=""):
        text = Text(line, style=_COLOURS[line[0]])
        ours, theirs = _WORD.findall(line[1:]), _WORD.findall(other_line[1:])
        matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
        if matcher.ratio() >= MIN_SIMILARITY:
            ends = [1]
            for word in ours:
                ends.append(ends[-1] + len(word))
            for what, start, end, _, _ in matcher.get_opcodes():
                if what != "equal":
                    text.stylize("reverse", ends[start], ends[end])
        yield text
