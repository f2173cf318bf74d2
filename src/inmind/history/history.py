"""The conversation, its active compactions, and the messages that are sent.

Messages are never removed from the journal; the conversation is the list of those in effect. It grows by one or two a
turn and is read as a whole on every call, so it must append in constant time and still be a value: a `Conversation`
sees only the first `length` items of storage that it shares with newer ones. One that is not the newest copies instead.

A compaction never edits the conversation, so that it stays equal to the host's list. It lists messages that are sent
as stubs, and the sent messages follow from both. So a compaction can be undone at any time, regardless of later
messages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, overload

from inmind.core.encoding import decode, digest, digest_of, encode_fields
from inmind.core.events.base import Event, EventId
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced, MessageAdded, Retained, RetainedItem
from inmind.core.frozen import frozen

SeqRanges = tuple[tuple[int, int], ...]
"""First and last sequence number of each run of messages."""


@frozen
class ConversationEntry:
    """One message of the conversation, or a stub sent in place of messages."""

    seq: int
    id: str
    """Id of the event that added it."""
    format: str
    wire: Mapping[str, Any]
    digest: str
    is_memory_reply: bool = False
    """Result of a memory tool, written by memory."""
    replaced_ranges: SeqRanges | None = None
    """Messages that this stub replaces, this one first; None for a message."""
    is_block: bool = False
    """A stub that replaces whole messages."""
    reply_id: str = ""
    """The provider's id of the reply that it is from."""

    @property
    def is_stub(self) -> bool:
        return self.replaced_ranges is not None


class Conversation:
    """An append-only sequence with value semantics.

    Wires and prefix digests are kept in parallel lists, so that comparing a host's list or naming a prefix needs no
    loop. A prefix digest is a hash chain over the messages: equal digests mean equal messages.
    """

    __slots__ = ("_chain", "_entries", "_wires", "length")

    def __init__(self) -> None:
        self._entries: list[ConversationEntry] = []
        self._wires: list[Mapping[str, Any]] = []
        self._chain: list[str] = []
        self.length = 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[ConversationEntry]:
        return iter(self._entries[: self.length])

    @overload
    def __getitem__(self, index: int) -> ConversationEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[ConversationEntry]: ...
    def __getitem__(self, index: int | slice) -> ConversationEntry | list[ConversationEntry]:
        if isinstance(index, slice):
            return self._entries[slice(*index.indices(self.length))]
        if not -self.length <= index < self.length:
            raise IndexError(index)
        return self._entries[index % self.length]

    @property
    def wires(self) -> list[Mapping[str, Any]]:
        return self._wires[: self.length]

    def contains_event(self, id: str) -> bool:
        """True if the message of this event is among the recent ones.

        Searches from the end up to the first older message. In a spliced conversation an older message may come
        after a newer one; the result is then False.
        """
        seq = EventId.of(id).seq if id else 0
        for place in range(self.length - 1, -1, -1):
            if self._entries[place].seq <= seq:
                return self._entries[place].id == id
        return False

    def prefix_digest(self, length: int | None = None) -> str:
        """Return the digest of the first `length` messages, by default of all."""
        length = self.length if length is None else length
        return self._chain[length - 1] if length else ""

    def begins_with(self, length: int, name: str) -> bool:
        """True if the first `length` messages have this digest."""
        return length <= self.length and self.prefix_digest(length) == name

    def apply(self, event: Event) -> Conversation:
        payload = event.payload
        if isinstance(payload, MessageAdded):
            return self.append(_to_entry(event.seq, event.id, payload))
        if isinstance(payload, HistorySpliced):
            new = self._entries[self.length - payload.inserted : self.length]
            rest = self._entries[payload.stop : self.length - payload.inserted]
            return self._copy_prefix(payload.start)._extend([*new, *rest])
        return self

    def ranges(self) -> list[list[int]]:
        """Ranges of sequence numbers, for a snapshot; the messages themselves are in the journal."""
        ranges: list[list[int]] = []
        for entry in self:
            if ranges and ranges[-1][1] == entry.seq - 1:
                ranges[-1][1] = entry.seq
            else:
                ranges.append([entry.seq, entry.seq])
        return ranges

    @classmethod
    def of_ranges(cls, ranges: Iterable[Sequence[int]], messages: Iterable[Event]) -> Conversation:
        by_seq = {event.seq: event for event in messages}
        events = [by_seq[seq] for first, last in ranges for seq in range(first, last + 1)]
        entries = [_to_entry(e.seq, e.id, e.payload) for e in events if isinstance(e.payload, MessageAdded)]
        return cls()._extend(entries)

    def append(self, entry: ConversationEntry) -> Conversation:
        if len(self._entries) != self.length:  # a newer conversation appended to the storage: copy it
            return self._copy_prefix(self.length).append(entry)
        self._chain.append(digest(self.prefix_digest(), entry.digest))
        self._wires.append(entry.wire)
        self._entries.append(entry)
        grown = Conversation()
        grown._entries, grown._wires, grown._chain = self._entries, self._wires, self._chain
        grown.length = self.length + 1
        return grown

    def with_entries(self, entries: Sequence[ConversationEntry]) -> Conversation:
        """Return a conversation of these entries; a common prefix is not recomputed."""
        return self._copy_prefix(same := self.common_length(entries))._extend(entries[same:])

    def common_length(self, entries: Sequence[ConversationEntry]) -> int:
        """Number of leading entries that are equal."""
        pairs = zip(self._entries[: self.length], entries, strict=False)
        differing = (n for n, (a, b) in enumerate(pairs) if a is not b and (a.seq, a.digest) != (b.seq, b.digest))
        return next(differing, min(self.length, len(entries)))

    def _extend(self, entries: Iterable[ConversationEntry]) -> Conversation:
        conversation = self
        for entry in entries:
            conversation = conversation.append(entry)
        return conversation

    def _copy_prefix(self, length: int) -> Conversation:
        """Return the first `length` messages in separate storage."""
        conversation = Conversation()
        conversation._entries, conversation._wires = self._entries[:length], self._wires[:length]
        conversation._chain, conversation.length = self._chain[:length], length
        return conversation


def _to_entry(seq: int, id: str, payload: MessageAdded) -> ConversationEntry:
    return ConversationEntry(
        seq=seq,
        id=id,
        format=payload.format,
        wire=payload.wire,
        digest=digest_of(payload.wire),
        is_memory_reply=payload.from_memory,
        reply_id=payload.reply_id,
    )


@frozen
class ActiveCompaction:
    """A compaction that is in effect."""

    seq: int
    id: str
    payload: Compacted

    def replace_with_stubs(self, entries: Iterable[ConversationEntry]) -> Iterator[ConversationEntry]:
        """Yield the entries with archived ones replaced by stubs."""
        runs = sorted(
            (first, last, place) for place, stub in enumerate(self.payload.stubs) for first, last in stub.message_ranges
        )
        starts = [first for first, _, _ in runs]
        sent_stubs: set[int] = set()
        for entry in entries:
            run = runs[bisect_right(starts, entry.seq) - 1] if starts and entry.seq >= starts[0] else None
            if run is None or entry.seq > run[1]:
                yield entry
            elif run[2] not in sent_stubs:
                sent_stubs.add(run[2])
                yield from self._stub_entries(run[2], entry.seq)

    @property
    def archived_ranges(self) -> SeqRanges:
        """Messages that its stubs replace."""
        return tuple(run for stub in self.payload.stubs for run in stub.message_ranges)

    def overlaps(self, ranges: Iterable[tuple[int, int]]) -> bool:
        """True if a message in these ranges is sent as one of its stubs."""
        runs = self.archived_ranges
        return any(begin <= last and first <= end for begin, end in ranges for first, last in runs)

    def ranges_by_stub(self) -> dict[str, SeqRanges]:
        """Ranges of each stub by its digest; empty for a stub's second message."""
        return {
            digest_of(wire): stub.message_ranges if number == 0 else ()
            for stub in self.payload.stubs
            for number, wire in enumerate(stub.messages)
        }

    def _stub_entries(self, place: int, seq: int) -> Iterator[ConversationEntry]:
        """Yield the stub's entries, with the first message's number and the compaction's id."""
        stub = self.payload.stubs[place]
        for number, wire in enumerate(stub.messages):
            ranges = stub.message_ranges if number == 0 else ()
            yield ConversationEntry(
                seq,
                self.id,
                stub.format,
                wire,
                digest_of(wire),
                replaced_ranges=ranges,
                is_block=stub.is_block or number > 0,
            )


@frozen
class History:
    """All messages, the sent messages, and the items that must stay in every prompt."""

    messages: Conversation = field(default_factory=Conversation)
    """The conversation as the host has it."""
    sent: Conversation = field(default_factory=Conversation)
    """The conversation as it is sent; the same object while nothing is compacted."""
    compactions: tuple[ActiveCompaction, ...] = ()
    """Active compactions in order."""
    pinned: tuple[RetainedItem, ...] = ()
    """Items pinned by the host."""
    released: frozenset[str] = frozenset()
    """Texts that no longer have to be retained."""
    stub_ranges: Mapping[str, SeqRanges] = field(default_factory=dict[str, SeqRanges])
    """Ranges by stub digest, also of undone compactions: a host may continue with a list from any earlier prompt."""

    @property
    def items(self) -> tuple[RetainedItem, ...]:
        """Retained items: those pinned by the host, and those of archived messages.

        Without the last request, which depends on the messages since the compaction.
        """
        archived = self.compactions[-1].payload.items if self.compactions else ()
        kept = (item for item in archived if item.kind not in ("pinned", "request") and item.text not in self.released)
        return (*self.pinned, *kept)

    @property
    def dropped(self) -> tuple[RetainedItem, ...]:
        """Items that did not fit. They return as soon as there is room."""
        excluded = self.released.union(item.text for item in self.items)
        unfitting = dict.fromkeys(item for one in self.compactions for item in one.payload.left_out)
        return tuple(item for item in unfitting if item.text not in excluded)

    @property
    def visible(self) -> Sequence[ConversationEntry]:
        """Sent messages that the model sees: those from the provider's compaction on, or all."""
        provider_items = {one.payload.provider_item for one in self.compactions} - {0}
        first = max((place for place, entry in enumerate(self.sent) if entry.seq in provider_items), default=0)
        return self.sent[first:]

    def ranges_at(self, places: Iterable[int]) -> SeqRanges:
        """Ranges of messages at these places of what is sent, including those replaced by stubs."""
        entries_by_range = EntriesByRange(self.messages)
        covered: set[int] = set()
        for entry in (self.sent[place] for place in places):
            covered.update(
                [entry.seq]
                if entry.replaced_ranges is None
                else (message.seq for message in entries_by_range(entry.replaced_ranges))
            )
        return self.ranges_of(covered)

    def ranges_of(self, covered: Container[int]) -> SeqRanges:
        """Ranges of the messages with these numbers."""
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
                return replace(self, messages=line, sent=self.sent.append(line[-1]) if self.compactions else line)
            case HistorySpliced():
                return replace(self, messages=self.messages.apply(event))._with(self.compactions)
            case Compacted(stubs=(), provider_item=0):  # the provider has cleared content of one prompt
                return self
            case Compacted() as compacted:
                compaction = ActiveCompaction(event.seq, event.id, compacted)
                if compacted.is_thread:
                    # What a thread held before is a part of what it holds now.
                    return self._with((*(one for one in self.compactions if not one.payload.is_thread), compaction))
                sent = self.sent.with_entries(list(compaction.replace_with_stubs(self.sent)))
                stub_ranges = {**self.stub_ranges, **compaction.ranges_by_stub()}
                return replace(self, sent=sent, compactions=(*self.compactions, compaction), stub_ranges=stub_ranges)
            case CompactionUndone(compaction_seq=undone):
                return self._with(tuple(one for one in self.compactions if one.seq != undone))
            case Retained(item=item, retain=kept):
                others = tuple(one for one in self.pinned if one.text != item.text)
                released = self.released - {item.text} if kept else self.released | {item.text}
                return replace(self, pinned=(*others, item) if kept else others, released=released)
            case _:
                return self

    def freeze(self) -> dict[str, Any]:
        """Return the fields for a snapshot.

        Messages are ranges of the journal, and the sent ones follow from them.
        """
        return {**encode_fields(self), "messages": self.messages.ranges(), "sent": None}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], messages: Iterable[Event]) -> History:
        line = Conversation.of_ranges(frozen["messages"], messages)
        history = decode(cls, {**frozen, "messages": line, "sent": line})
        return history._with(history.compactions)

    def _with(self, compactions: Sequence[ActiveCompaction]) -> History:
        """The history with these compactions in effect; what is sent is computed from the start."""
        if not compactions:
            return replace(self, sent=self.messages, compactions=())
        entries: Iterable[ConversationEntry] = self.messages
        for compaction in compactions:
            entries = compaction.replace_with_stubs(entries)
        return replace(self, sent=self.sent.with_entries(list(entries)), compactions=tuple(compactions))


class EntriesByRange:
    """Finds the messages of ranges without scanning the conversation for each."""

    def __init__(self, line: Conversation) -> None:
        self._line = line
        self._places = sorted((entry.seq, place) for place, entry in enumerate(line))

    def __call__(self, runs: SeqRanges) -> list[ConversationEntry]:
        """Return the entries in the order of the conversation."""
        places: list[int] = []
        for first, last in runs:
            start, stop = (bisect_left(self._places, (seq, 0)) for seq in (first, last + 1))
            places += [place for _, place in self._places[start:stop]]
        return [self._line[place] for place in sorted(places)]
