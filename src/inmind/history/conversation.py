"""The conversation: the current messages in order.

Messages are never removed from the journal; the conversation is the list of those in effect. It grows by one or two a
turn and is read as a whole on every call, so it must append in constant time and still be a value: a `Conversation`
sees only the first `length` items of storage that it shares with newer ones. One that is not the newest copies instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from inmind.core.encoding import digest, digest_of
from inmind.core.events.base import Event
from inmind.core.events.session import HistorySpliced, MessageAdded
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
        seq = int(id.rpartition("#")[2] or 0)
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
