"""A text that two have changed: what both did to it, line by line, and no line of either lost.

What stayed is the longest row of lines that stand in both texts in the same order. Looking for it takes time by the
pairs of equal lines, and a page may have a million blank ones, while its stream waits. So where there are too many
pairs, only those lines are paired that stand once in each text, and others only where they follow or precede what
stayed; and where there are too many lines, none are. What is not found to have stayed counts as rewritten: at worst
that is a conflict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

MOST_LINES = 30_000
"""Lines that are compared, from the first to the last that differs: all of the largest page, unless they are short."""

MOST_PAIRS = 100_000
"""Pairs of equal lines that are all looked at: those of a page with three hundred blank lines."""


def of_both(base: str, ours: str, theirs: str) -> str | None:
    """The text with what both have done to it; None where they have done different things to the same line.

    Lines that both have put in at the same place all stay, ours first.
    """
    lines = _lines(base)
    mine, others = (list(_edits(lines, _lines(text))) for text in (ours, theirs))
    wholes, parts = _InOrder(mine), _InOrder(_by_line(mine))
    both = {(edit.begin, edit.end): edit.put for edit in parts.edits}
    for edit in _by_line(others):
        if any(one.has(edit) for one in wholes.near(edit)):
            continue
        if any(one.begin < edit.end and edit.begin < one.end for one in parts.near(edit)):
            return None
        place = edit.begin, edit.end
        both[place] = _joined(both[place], edit.put) if place in both else edit.put
    made: list[str] = []
    done = 0
    for (begin, end), put in sorted(both.items()):
        made += lines[done:begin]
        made += put
        done = end
    return "\n".join([*made, *lines[done:]])


class _Edit:
    """Lines of the text that both began with, none of them where something was only put in, and what stands there now.

    Edits of one text are in order, and never overlap.
    """

    def __init__(self, begin: int, gone: list[str], put: list[str]) -> None:
        self.begin, self.end = begin, begin + len(gone)
        self.gone, self.put = gone, put
        self._searched = 0

    def has(self, other: _Edit) -> bool:
        """Is the other done with this one? Then what it took out is gone, and what it put in stands in its place."""
        if not self.begin <= other.begin <= other.end <= self.end:
            return False
        new = _without_end(other.put)
        if not any(new):  # whoever puts in a blank line wants a gap, but whoever blanks a line wants it gone
            return not other.gone or other.put == self.put
        if not self._there.isdisjoint({*other.gone} - {*other.put, ""}) or not self._there.issuperset(new):
            return False
        lines = _framed(new)
        at = self._text.find(lines, self._searched)
        if at >= 0:  # others come in order, so nothing has to be searched twice
            self._searched = at + len(lines) - 1  # the end of one line is the beginning of the next
        return at >= 0

    @cached_property
    def _text(self) -> str:
        return _framed(self.put)

    @cached_property
    def _there(self) -> frozenset[str]:
        return frozenset(self.put)


class _InOrder:
    """Edits of one text, found by where they are."""

    def __init__(self, edits: Iterable[_Edit]) -> None:
        self.edits = list(edits)
        self._begins = [edit.begin for edit in self.edits]
        self._ends = [edit.end for edit in self.edits]

    def near(self, other: _Edit) -> list[_Edit]:
        """Those that overlap with it, or touch it."""
        return self.edits[bisect_left(self._ends, other.begin) : bisect_right(self._begins, other.end)]


def _by_line(edits: Iterable[_Edit]) -> Iterator[_Edit]:
    """Each line by itself where there are as many as before."""
    for edit in edits:
        if 1 < len(edit.gone) == len(edit.put) <= MOST_LINES:
            pairs = enumerate(zip(edit.gone, edit.put, strict=True), edit.begin)
            yield from (_Edit(at, [old], [new]) for at, (old, new) in pairs if old != new)
        else:
            yield edit


def _edits(base: list[str], text: list[str]) -> Iterator[_Edit]:
    """Which lines were replaced by which."""
    head, tail = _ends(base, text)
    old, new = base[head : len(base) - tail], text[head : len(text) - tail]
    begin = first = 0
    for end, last in [*_stayed(old, new), (len(old), len(new))]:
        if begin < end or first < last:
            gone, put = old[begin:end], new[first:last]
            same, alike = _ends(gone, put)
            if same + alike < max(len(gone), len(put)):
                yield _Edit(head + begin + same, gone[same : len(gone) - alike], put[same : len(put) - alike])
        begin, first = end + 1, last + 1


def _ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning of both, and how many of the others at the end."""
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next((at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head)
    return head, tail


def _stayed(base: list[str], text: list[str]) -> list[tuple[int, int]]:
    """Where a line stands that is in both texts, in each: the longest row of them in which neither goes back.

    Of all rows with as many lines, what is kept is the one that ends first: so each line needs to know only the last
    before it.
    """
    if max(len(base), len(text)) > MOST_LINES:
        return []
    places = _paired(base, text)
    lasts: list[int] = []
    rows: list[_Row] = []
    for at, line in enumerate(base):
        for there in places.get(line, ()):
            length = bisect_left(lasts, there)
            row = (at, there, rows[length - 1] if length else None)
            lasts[length : length + 1] = [there]
            rows[length : length + 1] = [row]
    return _unrolled(rows[-1] if rows else None)


_Row = tuple[int, int, "_Row | None"]


def _unrolled(row: _Row | None) -> list[tuple[int, int]]:
    stayed: list[tuple[int, int]] = []
    while row is not None:
        at, there, row = row
        stayed.append((at, there))
    return stayed[::-1]


def _paired(base: list[str], text: list[str]) -> Mapping[str, list[int]]:
    """Where lines of both stand in the second, from the end: all of them, or those that are the only ones."""
    olds, news = Counter(base), Counter(text)
    few = sum(number * news[line] for line, number in olds.items() if line in news) <= MOST_PAIRS
    places: dict[str, list[int]] = {}
    for at in range(len(text) - 1, -1, -1):
        line = text[at]
        if line in olds and (few or olds[line] == news[line] == 1):
            places.setdefault(line, []).append(at)
    return places


def _joined(ours: list[str], theirs: list[str]) -> list[str]:
    """What both have put in at one place. At a text's end there may be an empty line, which is the end of the last one:
    it stays the end."""
    ended = [""] if "" in (ours[-1:] + theirs[-1:]) else []
    return [*_without_end(ours), *_without_end(theirs), *ended]


def _framed(lines: list[str]) -> str:
    """As text, in which lines are found only whole."""
    return "\n".join(["", *lines, ""])


def _without_end(lines: list[str]) -> list[str]:
    return lines[:-1] if lines[-1:] == [""] else lines


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []
