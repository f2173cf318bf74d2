"""The conversation, its active compactions, and the messages that are sent.

A compaction never edits the conversation, so that it stays equal to the host's list. It lists messages that are sent
as stubs, and the sent messages follow from both. So a compaction can be undone at any time, regardless of later
messages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from inmind.core.encoding import decode, digest_of, encode_fields
from inmind.core.events.base import Event
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced, MessageAdded, Retained, RetainedItem
from inmind.core.frozen import frozen
from inmind.history.conversation import Conversation, ConversationEntry, SeqRanges


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

    def holds(self, seq: int) -> bool:
        """True if the provider holds this message in a thread."""
        return self.payload.is_thread and self.overlaps([(seq, seq)])

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
                return self._with_messages(line, self.sent.append(line[-1]) if self.compactions else line)
            case HistorySpliced():
                line = self.messages.apply(event)
                return self._with_messages(line, _apply_compactions(line, self.compactions, self.sent))
            case Compacted(stubs=(), provider_item=0):  # the provider has cleared content of one prompt
                return self
            case Compacted() as compacted:
                compaction = ActiveCompaction(event.seq, event.id, compacted)
                if compacted.is_thread:
                    return self._with_thread(compaction)
                sent = self.sent.with_entries(list(compaction.replace_with_stubs(self.sent)))
                stub_ranges = {**self.stub_ranges, **compaction.ranges_by_stub()}
                return replace(self, sent=sent, compactions=(*self.compactions, compaction), stub_ranges=stub_ranges)
            case CompactionUndone(compaction_seq=undone):
                remaining = tuple(compaction for compaction in self.compactions if compaction.seq != undone)
                return replace(
                    self, sent=_apply_compactions(self.messages, remaining, self.sent), compactions=remaining
                )
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
        return replace(history, sent=_apply_compactions(line, history.compactions, line))

    def _with_thread(self, thread: ActiveCompaction) -> History:
        """The history after a thread has grown. What it held before is a part of what it holds now."""
        compactions = (*(one for one in self.compactions if not one.payload.is_thread), thread)
        sent = _apply_compactions(self.messages, compactions, self.sent)
        return replace(self, sent=sent, compactions=compactions)

    def _with_messages(self, messages: Conversation, sent: Conversation) -> History:
        return replace(self, messages=messages, sent=sent)


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


def _apply_compactions(
    line: Conversation, compactions: Sequence[ActiveCompaction], previous: Conversation
) -> Conversation:
    """Compute the sent conversation from the start."""
    if not compactions:
        return line
    entries: Iterable[ConversationEntry] = line
    for compaction in compactions:
        entries = list(compaction.replace_with_stubs(entries))
    return previous.with_entries(list(entries))
