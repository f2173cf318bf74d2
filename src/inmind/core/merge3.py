"""Three-way merge of texts, line by line.

Unchanged lines are found as a longest common subsequence. Its cost grows with the pairs of equal lines, and a page may
have a million blank lines, while its stream waits. So with too many pairs only lines that occur once in each text are
paired, and other lines only if they adjoin an unchanged run; with too many lines none are paired. Lines that are not
recognised as unchanged count as rewritten: at worst that causes a conflict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

MAX_LINES = 30_000
"""Lines that are compared, from the first to the last difference."""

MAX_PAIRS = 100_000
"""Pairs of equal lines that are examined, such as those of a page with three hundred blank lines."""


def merge_lines(base: str, ours: str, theirs: str) -> str | None:
    """The text with both changes applied; None if both changed the same line differently.

    Lines that both inserted at the same place are all kept, ours first.
    """
    lines = _lines(base)
    our_edits, their_edits = (list(_diff(lines, _lines(text))) for text in (ours, theirs))
    wholes, parts = _SortedEdits(our_edits), _SortedEdits(_split_by_line(our_edits))
    both = {(edit.begin, edit.end): edit.inserted for edit in parts.edits}
    for edit in _split_by_line(their_edits):
        if any(one.includes(edit) for one in wholes.near(edit)):
            continue
        if any(one.begin < edit.end and edit.begin < one.end for one in parts.near(edit)):
            return None
        place = edit.begin, edit.end
        both[place] = _join_insertions(both[place], edit.inserted) if place in both else edit.inserted
    result: list[str] = []
    done = 0
    for (begin, end), inserted in sorted(both.items()):
        result += lines[done:begin]
        result += inserted
        done = end
    return "\n".join([*result, *lines[done:]])


class _Edit:
    """Lines of the base text that were removed, and the lines inserted in their place.

    Edits of one text are in order and never overlap.
    """

    def __init__(self, begin: int, removed: list[str], inserted: list[str]) -> None:
        self.begin, self.end = begin, begin + len(removed)
        self.removed, self.inserted = removed, inserted
        self._searched = 0

    def includes(self, other: _Edit) -> bool:
        """True if this edit already has the effect of the other one."""
        if not self.begin <= other.begin <= other.end <= self.end:
            return False
        new = _without_final_newline(other.inserted)
        if not any(new):  # inserting a blank line adds a gap; replacing a line by a blank one removes it
            return not other.removed or other.inserted == self.inserted
        if not self._inserted_lines.isdisjoint(
            {*other.removed} - {*other.inserted, ""}
        ) or not self._inserted_lines.issuperset(new):
            return False
        lines = _with_newlines_around(new)
        at = self._text.find(lines, self._searched)
        if at >= 0:  # edits come in order, so nothing is searched twice
            self._searched = at + len(lines) - 1  # a newline ends one line and starts the next
        return at >= 0

    @cached_property
    def _text(self) -> str:
        return _with_newlines_around(self.inserted)

    @cached_property
    def _inserted_lines(self) -> frozenset[str]:
        return frozenset(self.inserted)


class _SortedEdits:
    """Edits of one text, looked up by position."""

    def __init__(self, edits: Iterable[_Edit]) -> None:
        self.edits = list(edits)
        self._begins = [edit.begin for edit in self.edits]
        self._ends = [edit.end for edit in self.edits]

    def near(self, other: _Edit) -> list[_Edit]:
        """The edits that overlap with or touch another one."""
        return self.edits[bisect_left(self._ends, other.begin) : bisect_right(self._begins, other.end)]


def _split_by_line(edits: Iterable[_Edit]) -> Iterator[_Edit]:
    """Split edits that replace lines one by one into single-line edits."""
    for edit in edits:
        if 1 < len(edit.removed) == len(edit.inserted) <= MAX_LINES:
            pairs = enumerate(zip(edit.removed, edit.inserted, strict=True), edit.begin)
            yield from (_Edit(at, [old], [new]) for at, (old, new) in pairs if old != new)
        else:
            yield edit


def _diff(base: list[str], text: list[str]) -> Iterator[_Edit]:
    """The edits that turn the base into the text."""
    head, tail = _common_ends(base, text)
    old, new = base[head : len(base) - tail], text[head : len(text) - tail]
    begin = first = 0
    for end, last in [*_longest_common_lines(old, new), (len(old), len(new))]:
        if begin < end or first < last:
            removed, inserted = old[begin:end], new[first:last]
            common_head, common_tail = _common_ends(removed, inserted)
            if common_head + common_tail < max(len(removed), len(inserted)):
                yield _Edit(
                    head + begin + common_head,
                    removed[common_head : len(removed) - common_tail],
                    inserted[common_head : len(inserted) - common_tail],
                )
        begin, first = end + 1, last + 1


def _common_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """The number of equal lines at the start of both, and at the end of the rest."""
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next((at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head)
    return head, tail


def _longest_common_lines(base: list[str], text: list[str]) -> list[tuple[int, int]]:
    """Positions, in both texts, of a longest common subsequence of lines.

    Of all subsequences with the same length, the one that ends first is kept, so each line needs only the last one
    before it.
    """
    if max(len(base), len(text)) > MAX_LINES:
        return []
    places = _match_lines(base, text)
    lasts: list[int] = []
    rows: list[_Row] = []
    for at, line in enumerate(base):
        for text_index in places.get(line, ()):
            length = bisect_left(lasts, text_index)
            row = (at, text_index, rows[length - 1] if length else None)
            lasts[length : length + 1] = [text_index]
            rows[length : length + 1] = [row]
    return _to_list(rows[-1] if rows else None)


_Row = tuple[int, int, "_Row | None"]


def _to_list(row: _Row | None) -> list[tuple[int, int]]:
    positions: list[tuple[int, int]] = []
    while row is not None:
        at, text_index, row = row
        positions.append((at, text_index))
    return positions[::-1]


def _match_lines(base: list[str], text: list[str]) -> Mapping[str, list[int]]:
    """Positions in `text` of lines that are in both, last first.

    With too many pairs, only lines that occur once in each.
    """
    olds, news = Counter(base), Counter(text)
    pairs_all = sum(number * news[line] for line, number in olds.items() if line in news) <= MAX_PAIRS
    places: dict[str, list[int]] = {}
    for at in range(len(text) - 1, -1, -1):
        line = text[at]
        if line in olds and (pairs_all or olds[line] == news[line] == 1):
            places.setdefault(line, []).append(at)
    return places


def _join_insertions(ours: list[str], theirs: list[str]) -> list[str]:
    """Join the lines that both inserted at one place.

    A final empty line, which represents the newline at the end, stays last.
    """
    ended = [""] if "" in (ours[-1:] + theirs[-1:]) else []
    return [*_without_final_newline(ours), *_without_final_newline(theirs), *ended]


def _with_newlines_around(lines: list[str]) -> str:
    """The lines as text with a newline around each, so that a search matches only whole lines."""
    return "\n".join(["", *lines, ""])


def _without_final_newline(lines: list[str]) -> list[str]:
    return lines[:-1] if lines[-1:] == [""] else lines


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []
