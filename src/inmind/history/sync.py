"""What is new in a host's list of messages.

Most hosts keep the conversation themselves and hand in all of it on each call, without ids. So the list is
matched against the line: what agrees from the start is known, what agrees up to the end of the line is known
too, and what stands between is an edit. A regenerated answer, a corrected question, a trimmed beginning and
a summary in front are all that one shape, and none of them is an error.

Messages that compare equal are the same message: key order and `1` against `1.0` do not make an edit, and
what goes out is then the form that came in first, which is also the one the provider has in its cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inmind.history.line import Line
from inmind.journal import digest_of


@dataclass(frozen=True, slots=True)
class Sync:
    """The host's list is the line with `[start, stop)` replaced by `new`, and `added` at the end."""

    start: int
    stop: int
    new: Sequence[Mapping[str, Any]]
    added: Sequence[Mapping[str, Any]]

    @property
    def spliced(self) -> bool:
        return bool(self.new) or self.start != self.stop


def match(line: Line, wires: Sequence[Mapping[str, Any]]) -> Sync:
    known = len(line)
    ours = line.wires
    if list(wires[:known]) == ours:
        return Sync(start=known, stop=known, new=(), added=wires[known:])
    start = _agreeing(ours, wires)
    overlap, at = _overlap(line, wires, start)
    if not overlap:
        return Sync(start=start, stop=known, new=wires[start:], added=())
    return Sync(start=start, stop=known - overlap, new=wires[start:at], added=wires[at + overlap :])


def _agreeing(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> int:
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return index
    return min(len(ours), len(theirs))


def _overlap(line: Line, wires: Sequence[Mapping[str, Any]], start: int) -> tuple[int, int]:
    """How many messages at the end of the line stand in the list after `start`, and where they begin there."""
    names = [digest_of(wire) for wire in wires[start:]]
    if start >= len(line):
        return 0, start
    last = line[-1].digest
    for end in range(len(names) - 1, -1, -1):
        if names[end] != last:
            continue
        length = 1
        while length <= end and length < len(line) - start and names[end - length] == line[-1 - length].digest:
            length += 1
        return length, start + end - length + 1
    return 0, start
