"""The conversation, and what of it is sent.

Compaction is a fold beside the line and never an edit of it: the line stays what the host and the journal agree on,
each compaction says which messages are sent as stubs, and what is sent follows from the two. So a compaction can be
taken back at any time, whatever came since, and nobody has to put a conversation together again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from inmind.core.encoding import digest_of
from inmind.core.events.base import Event
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced, MessageAdded, Retained, RetainedItem
from inmind.core.frozen import frozen
from inmind.history.conversation import Conversation, ConversationEntry, SeqRanges


@frozen
class ActiveCompaction:
    """One that is in force."""

    seq: int
    id: str
    payload: Compacted

    def replace_with_stubs(self, entries: Iterable[ConversationEntry]) -> Iterator[ConversationEntry]:
        """The same entries, with its stubs in the places of what they stand for."""
        runs = sorted(
            (first, last, place) for place, stub in enumerate(self.payload.stubs) for first, last in stub.message_ranges
        )
        starts = [first for first, _, _ in runs]
        shown: set[int] = set()
        for entry in entries:
            run = runs[bisect_right(starts, entry.seq) - 1] if starts and entry.seq >= starts[0] else None
            if run is None or entry.seq > run[1]:
                yield entry
            elif run[2] not in shown:
                shown.add(run[2])
                yield from self._stub_entries(run[2], entry.seq)

    @property
    def archived_ranges(self) -> SeqRanges:
        """The messages that its stubs stand for."""
        return tuple(run for stub in self.payload.stubs for run in stub.message_ranges)

    def overlaps(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """Is a message among these runs sent as a stub of its?"""
        runs = self.archived_ranges
        return any(begin <= last and first <= end for begin, end in ranges for first, last in runs)

    def ranges_by_stub(self) -> dict[str, SeqRanges]:
        """Which messages each of its stubs stands for, by the stub's digest; none for a stub's second message."""
        return {
            digest_of(wire): stub.message_ranges if number == 0 else ()
            for stub in self.payload.stubs
            for number, wire in enumerate(stub.messages)
        }

    def _stub_entries(self, place: int, seq: int) -> Iterator[ConversationEntry]:
        """What is sent there. It has the number of the first message that it stands for, and the id of the event."""
        stub = self.payload.stubs[place]
        for number, wire in enumerate(stub.messages):
            of = stub.message_ranges if number == 0 else ()
            yield ConversationEntry(
                seq, self.id, stub.format, wire, digest_of(wire), stands_for=of, is_block=stub.is_block or number > 0
            )


@frozen
class History:
    """All that was said, what of it is sent, and what must never be missing from that."""

    messages: Conversation = field(default_factory=Conversation)
    """The conversation, as the host has it."""
    sent: Conversation = field(default_factory=Conversation)
    """The conversation as it is sent: the very same line, while nothing is compacted."""
    compactions: tuple[ActiveCompaction, ...] = ()
    """Those in force, in the order in which they came."""
    pinned: tuple[RetainedItem, ...] = ()
    """What the host has declared."""
    released: frozenset[str] = frozenset()
    """Texts that no longer have to survive, whoever said them."""
    stub_ranges: Mapping[str, SeqRanges] = field(default_factory=dict[str, SeqRanges])
    """Messages that stubs stand for, or stood for before their compaction was taken back, by the stub's digest: a host
    may go on with a list that was made of any earlier prompt."""

    @property
    def items(self) -> tuple[RetainedItem, ...]:
        """What must survive: of the messages that have left the view, and what the host has declared."""
        gone = self.compactions[-1].payload.items if self.compactions else ()
        return (*self.pinned, *(item for item in gone if item.kind != "pinned" and item.text not in self.released))

    @property
    def dropped(self) -> tuple[RetainedItem, ...]:
        """What had to survive too and found no room. It comes back as soon as there is some."""
        gone = self.released.union(item.text for item in self.items)
        ever = dict.fromkeys(item for one in self.compactions for item in one.payload.left_out)
        return tuple(item for item in ever if item.text not in gone)

    @property
    def unsent_items(self) -> tuple[RetainedItem, ...]:
        """Those of the items that no message says any more: what it was said in is not sent, or not as it was."""
        items = self.items
        if not any(item.seq for item in items):
            return items
        said = {entry.seq for entry in self.sent if not entry.is_stub}
        return tuple(item for item in items if item.seq not in said)

    def ranges_at(self, places: Iterable[int]) -> SeqRanges:
        """The messages of the line that stand at these places of what is sent, those behind stubs included."""
        behind = EntriesByRange(self.messages)
        covered: set[int] = set()
        for entry in (self.sent[place] for place in places):
            covered.update(
                [entry.seq] if entry.stands_for is None else (message.seq for message in behind(entry.stands_for))
            )
        runs: list[tuple[int, int]] = []
        follows = False
        for seq in sorted(entry.seq for entry in self.messages):
            if seq in covered:
                runs[-1:] = [(runs[-1][0], seq)] if follows else [*runs[-1:], (seq, seq)]
            follows = seq in covered
        return tuple(runs)

    def apply(self, event: Event) -> History:
        match event.payload:
            case MessageAdded():
                line = self.messages.apply(event)
                return self._with_messages(line, self.sent.append(line[-1]) if self.compactions else line)
            case HistorySpliced():
                line = self.messages.apply(event)
                return self._with_messages(line, _apply_compactions(line, self.compactions, self.sent))
            case Compacted() as what:
                compaction = ActiveCompaction(event.seq, event.id, what)
                sent = self.sent.with_entries(list(compaction.replace_with_stubs(self.sent)))
                stub_ranges = {**self.stub_ranges, **compaction.ranges_by_stub()}
                return replace(self, sent=sent, compactions=(*self.compactions, compaction), stub_ranges=stub_ranges)
            case CompactionUndone(compaction_seq=of):
                left = tuple(compaction for compaction in self.compactions if compaction.seq != of)
                return replace(self, sent=_apply_compactions(self.messages, left, self.sent), compactions=left)
            case Retained(item=item, retain=kept):
                others = tuple(one for one in self.pinned if one.text != item.text)
                released = self.released - {item.text} if kept else self.released | {item.text}
                return replace(self, pinned=(*others, item) if kept else others, released=released)
            case _:
                return self

    def freeze(self) -> dict[str, Any]:
        return {
            "line": self.messages.freeze(),
            "compactions": [[one.seq, encode_payload(one.payload)] for one in self.compactions],
            "pinned": list(self.pinned),
            "released": sorted(self.released),
            "stood_for": dict(self.stub_ranges),
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], messages: Iterable[Event], stream: str) -> History:
        line = Conversation.thaw(frozen["line"], messages)
        compactions = tuple(_thaw_compaction(seq, body, stream) for seq, body in frozen["compactions"])
        sent = _apply_compactions(line, compactions, line)
        stood_for = {digest: tuple((a, b) for a, b in runs) for digest, runs in frozen["stood_for"].items()}
        pinned = tuple(RetainedItem(*item) for item in frozen["pinned"])
        return cls(line, sent, compactions, pinned, frozenset(frozen["released"]), stood_for)

    def _with_messages(self, messages: Conversation, sent: Conversation) -> History:
        return replace(self, messages=messages, sent=sent)


class EntriesByRange:
    """The messages of a line that stubs are sent for, found without going through all of it for each."""

    def __init__(self, line: Conversation) -> None:
        self._line = line
        self._places = sorted((entry.seq, place) for place, entry in enumerate(line))

    def __call__(self, runs: SeqRanges) -> list[ConversationEntry]:
        """In the order of the conversation."""
        found: list[int] = []
        for first, last in runs:
            start, stop = (bisect_left(self._places, (seq, 0)) for seq in (first, last + 1))
            found += [place for _, place in self._places[start:stop]]
        return [self._line[place] for place in sorted(found)]


def _apply_compactions(
    line: Conversation, compactions: Sequence[ActiveCompaction], previous: Conversation
) -> Conversation:
    """What is sent of a line under these compactions, worked out from the beginning."""
    if not compactions:
        return line
    entries: Iterable[ConversationEntry] = line
    for compaction in compactions:
        entries = list(compaction.replace_with_stubs(entries))
    return previous.with_entries(list(entries))


def _thaw_compaction(seq: int, body: str, stream: str) -> ActiveCompaction:
    what = decode_payload(Compacted.kind, body)
    if not isinstance(what, Compacted):
        raise TypeError(f"{what.kind} is no compaction")
    return ActiveCompaction(seq, f"{stream}#{seq}", what)
