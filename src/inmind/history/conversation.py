"""The line: the messages that make up the conversation right now, in order.

Messages are never removed from the journal; the line is which of them count. It grows by one or two a turn and
is read whole on every call, so it must append in constant time and still be a value: a `Line` sees only the
first `length` items of storage that newer lines go on filling. A line that is not the newest copies instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from inmind.core.encoding import digest, digest_of
from inmind.core.events.base import Event
from inmind.core.events.session import HistorySpliced, MessageAdded
from inmind.core.frozen import frozen

SeqRanges = tuple[tuple[int, int], ...]
"""Numbers of messages, from first to last, run by run."""


@frozen
class ConversationEntry:
    """One message of the line."""

    seq: int
    id: str
    """Of the event that brought it."""
    format: str
    wire: Mapping[str, Any]
    digest: str
    is_memory_reply: bool = False
    """Memory's own answer to a call."""
    stands_for: SeqRanges | None = None
    """The messages that it is sent in the place of, from this one on; None for a message itself."""
    is_block: bool = False
    """It is a block of ours, in the place of whole messages."""

    @property
    def is_stub(self) -> bool:
        return self.stands_for is not None


class Conversation:
    """A growing sequence with value semantics.

    Wires and names run beside the entries, so that a host's list is compared, and a prefix named, without a
    loop. The name of a prefix is a hash chain over its messages: equal names, equal messages.
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
        """Is the message of this event one of the recent ones? Looked for from the end, up to what is older than it.

        In a line that was spliced an older message may stand behind a newer one; then the answer is no.
        """
        seq = int(id.rpartition("#")[2] or 0)
        for place in range(self.length - 1, -1, -1):
            if self._entries[place].seq <= seq:
                return self._entries[place].id == id
        return False

    def prefix_digest(self, length: int | None = None) -> str:
        """What the first `upto` messages are called, all of them by default."""
        length = self.length if length is None else length
        return self._chain[length - 1] if length else ""

    def begins_with(self, length: int, name: str) -> bool:
        """Are the first `length` messages the ones that had this name?"""
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

    def freeze(self) -> dict[str, Any]:
        """The line as ranges of sequence numbers: the messages themselves are in the journal already."""
        ranges: list[list[int]] = []
        for entry in self:
            if ranges and ranges[-1][1] == entry.seq - 1:
                ranges[-1][1] = entry.seq
            else:
                ranges.append([entry.seq, entry.seq])
        return {"ranges": ranges}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], messages: Iterable[Event]) -> Conversation:
        by_seq = {event.seq: event for event in messages}
        events = [by_seq[seq] for first, last in frozen["ranges"] for seq in range(first, last + 1)]
        entries = [_to_entry(e.seq, e.id, e.payload) for e in events if isinstance(e.payload, MessageAdded)]
        return cls()._extend(entries)

    def append(self, entry: ConversationEntry) -> Conversation:
        if len(self._entries) != self.length:  # a newer line went on from here: this one takes its own storage
            return self._copy_prefix(self.length).append(entry)
        self._chain.append(digest(self.prefix_digest(), entry.digest))
        self._wires.append(entry.wire)
        self._entries.append(entry)
        grown = Conversation()
        grown._entries, grown._wires, grown._chain = self._entries, self._wires, self._chain
        grown.length = self.length + 1
        return grown

    def with_entries(self, entries: Sequence[ConversationEntry]) -> Conversation:
        """The line of these entries; what they begin with as this one does is not worked out again."""
        return self._copy_prefix(same := self.common_length(entries))._extend(entries[same:])

    def common_length(self, entries: Sequence[ConversationEntry]) -> int:
        """How many of these stand at the beginning of this line."""
        pairs = zip(self._entries[: self.length], entries, strict=False)
        differing = (n for n, (a, b) in enumerate(pairs) if a is not b and (a.seq, a.digest) != (b.seq, b.digest))
        return next(differing, min(self.length, len(entries)))

    def _extend(self, entries: Iterable[ConversationEntry]) -> Conversation:
        conversation = self
        for entry in entries:
            conversation = conversation.append(entry)
        return conversation

    def _copy_prefix(self, length: int) -> Conversation:
        """Its first messages, in storage of their own."""
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
    )
