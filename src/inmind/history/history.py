"""The conversation, and what of it is sent.

Compaction is a fold beside the line and never an edit of it: the line stays what the host and the journal agree on,
each compaction says which messages are sent as stubs, and what is sent follows from the two. So a compaction can be
taken back at any time, whatever came since, and nobody has to put a conversation together again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.history.line import Entry, Line
from inmind.journal import (
    Compacted,
    CompactionLifted,
    Event,
    HistorySpliced,
    Item,
    MessageAdded,
    Retained,
    decode,
    digest_of,
    encode,
)


@dataclass(frozen=True, slots=True)
class Compaction:
    """One that is in force."""

    seq: int
    id: str
    what: Compacted

    def among(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """The same entries, with its stubs in the places of what they stand for."""
        runs = sorted((first, last, place) for place, stub in enumerate(self.what.stubs) for first, last in stub.of)
        starts = [first for first, _, _ in runs]
        shown: set[int] = set()
        for entry in entries:
            run = runs[bisect_right(starts, entry.seq) - 1] if starts and entry.seq >= starts[0] else None
            if run is None or entry.seq > run[1]:
                yield entry
            elif run[2] not in shown:
                shown.add(run[2])
                yield from self._stubs(run[2], entry.seq)

    def stood_for(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """Which messages each of its stubs stands for, by the stub's digest; none for a stub's second message."""
        return {
            digest_of(wire): stub.of if number == 0 else ()
            for stub in self.what.stubs
            for number, wire in enumerate(stub.wires)
        }

    def _stubs(self, place: int, seq: int) -> Iterator[Entry]:
        """What is sent there. It has the number of the first message that it stands for, and the id of the event."""
        stub = self.what.stubs[place]
        for wire in stub.wires:
            yield Entry(seq, self.id, stub.format, wire, digest_of(wire), stub=True)


@dataclass(frozen=True, slots=True)
class History:
    """All that was said, what of it is sent, and what must never be missing from that."""

    line: Line = field(default_factory=Line)
    """The conversation, as the host has it."""
    sent: Line = field(default_factory=Line)
    """The conversation as it is sent: the very same line, while nothing is compacted."""
    compactions: tuple[Compaction, ...] = ()
    """Those in force, in the order in which they came."""
    pinned: tuple[Item, ...] = ()
    """What the host has declared."""
    stood_for: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict[str, Any])
    """Messages that stubs stand for, or stood for before their compaction was taken back, by the stub's digest: a host
    may go on with a list that was made of any earlier prompt."""

    @property
    def items(self) -> tuple[Item, ...]:
        """What must survive: of the messages that have left the view, and what the host has declared."""
        gone = self.compactions[-1].what.items if self.compactions else ()
        return (*self.pinned, *(item for item in gone if item.kind != "pinned"))

    def behind(self, digest: str) -> list[Entry] | None:
        """The messages that a stub is sent for; of several in a row, the first stands for all. None: it is no stub."""
        runs = self.stood_for.get(digest)
        if runs is None:
            return None
        return [entry for entry in self.line if any(first <= entry.seq <= last for first, last in runs)]

    def apply(self, event: Event) -> History:
        match event.what:
            case MessageAdded():
                line = self.line.apply(event)
                return self._with(line, self.sent.grown(line[-1]) if self.compactions else line)
            case HistorySpliced():
                line = self.line.apply(event)
                return self._with(line, _sent(line, self.compactions, self.sent))
            case Compacted() as what:
                compaction = Compaction(event.seq, event.id, what)
                sent = self.sent.changed(list(compaction.among(self.sent)))
                stood_for = {**self.stood_for, **compaction.stood_for()}
                return replace(self, sent=sent, compactions=(*self.compactions, compaction), stood_for=stood_for)
            case CompactionLifted(of=of):
                left = tuple(compaction for compaction in self.compactions if compaction.seq != of)
                return replace(self, sent=_sent(self.line, left, self.sent), compactions=left)
            case Retained(item=item, kept=kept):
                others = tuple(one for one in self.pinned if one.text != item.text)
                return replace(self, pinned=(*others, item) if kept else others)
            case _:
                return self

    def freeze(self) -> dict[str, Any]:
        return {
            "line": self.line.freeze(),
            "compactions": [[one.seq, encode(one.what)] for one in self.compactions],
            "pinned": list(self.pinned),
            "stood_for": dict(self.stood_for),
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], messages: Iterable[Event], stream: str) -> History:
        line = Line.thaw(frozen["line"], messages)
        compactions = tuple(_thawed(seq, body, stream) for seq, body in frozen["compactions"])
        sent = _sent(line, compactions, line)
        stood_for = {digest: tuple((a, b) for a, b in runs) for digest, runs in frozen["stood_for"].items()}
        return cls(line, sent, compactions, tuple(Item(*item) for item in frozen["pinned"]), stood_for)

    def _with(self, line: Line, sent: Line) -> History:
        return History(line, sent, self.compactions, self.pinned, self.stood_for)


def _sent(line: Line, compactions: Sequence[Compaction], before: Line) -> Line:
    """What is sent of a line under these compactions, worked out from the beginning."""
    if not compactions:
        return line
    entries: Iterable[Entry] = line
    for compaction in compactions:
        entries = list(compaction.among(entries))
    return before.changed(list(entries))


def _thawed(seq: int, body: str, stream: str) -> Compaction:
    what = decode(Compacted.kind, body)
    if not isinstance(what, Compacted):
        raise TypeError(f"{what.kind} is no compaction")
    return Compaction(seq, f"{stream}#{seq}", what)
