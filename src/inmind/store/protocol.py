"""The port to a store: the few promises that everything above stands on.

Each promise is a test in tests/contract/test_store.py, which every store has to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from inmind.core.events.base import Draft, Event
from inmind.core.frozen import frozen
from inmind.core.timestamps import to_microseconds

Clock = Callable[[], datetime]


@frozen
class Key:
    """An idempotency key and the digest of the request it stands for."""

    value: str
    request: str

    @property
    def caller_key(self) -> str:
        """As its caller has named it: in front stands the operation that it is for."""
        return self.value.partition(" ")[2] or self.value


@frozen
class Batch:
    """Events for one stream, decided at its version `expected`."""

    stream: str
    drafts: Sequence[Draft]
    expected: int


@frozen
class AppendResult:
    """Where the events of one append stand. `repeated`: an earlier call with the same key had put them there."""

    first: int
    last: int
    at: datetime
    repeated: bool = False


@frozen
class Receipt:
    """A key of a stream, with what its append did: who carries a stream elsewhere takes these along."""

    stream: str
    key: Key
    appended: AppendResult


@frozen
class ImportedEvent:
    """Where an event stands that happened elsewhere. Not `new`: it stood there already, the same in everything."""

    position: int
    is_new: bool


@frozen
class Snapshot:
    """A state at `seq`, as JSON text, for a fold of that version."""

    seq: int
    fold_version: int
    body: str


@frozen
class StreamSummary:
    """A stream at a glance: how many events of each kind, and when the last one came."""

    kinds: Mapping[str, int]
    updated: datetime


@frozen
class StreamInfo:
    """A stream as it stands in a list: what it began with, how far it goes, and when something last happened there."""

    first: Event
    version: int
    updated: datetime


@frozen
class PublishedVersion:
    """What a live file was last made to show: the digest of its text ("" for none), and the journal's state then.

    A version that came later was never confirmed to be shown. If the file shows it all the same, a writer was
    killed before it could say so; if it shows any other text, a person wrote that.
    """

    digest: str
    seq: int


@frozen
class RateWindow:
    """A stretch of time in which something may be used so often, or so much, and then not before the next one."""

    name: str
    """What is counted."""
    start: datetime
    length: timedelta

    @classmethod
    def at(cls, now: datetime, name: str, length: timedelta) -> RateWindow:
        """The one that a moment is in: every process that counts the same comes to the same."""
        return cls(name, now - (now - _EPOCH) % length, length)

    @property
    def end(self) -> datetime:
        return self.start + self.length

    @property
    def start_microseconds(self) -> int:
        return to_microseconds(self.start)

    @property
    def expired_before(self) -> int:
        """What began before this is over for everybody, whose clock it may be."""
        return self.start_microseconds - 3 * round(self.length.total_seconds() * 1e6)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BulkImport(Protocol):
    """What happened elsewhere, on its way into a store: all of it, or nothing."""

    def add_event(self, event: Event) -> ImportedEvent:
        """An event with its own number and time: the next one of its stream, or one that is there and is the same.

        One that differs from what stands there, or would leave a gap, is a Conflict.
        """
        ...

    def add_receipt(self, receipt: Receipt) -> bool:
        """A key; False if it is there already. One that stands for another append there is a Conflict."""
        ...


class Store(Protocol):
    """Streams of events, and beside them what only makes reading quick.

    Its promises: events come back in order and gap-free; a batch is there whole or not at all; what `append`
    returned survives a kill; a stale expectation raises Conflict and stores nothing; the same key stores once
    and answers alike for ever, with other arguments it raises KeyReused; a reader never sees half a commit.
    """

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        at: datetime,
        key: Key | None = None,
        companion: Batch | None = None,
    ) -> AppendResult:
        """Store the drafts as the next events of the stream, decided at version `expected`.

        `beside`: events of another stream, stored with them or not at all; the key is the first stream's.
        """
        ...

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        """Events with after < seq <= until, in order; of one kind, when given."""
        ...

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        """Events of these kinds that were stored behind a position, each with its own; in that order.

        Those of one owner's streams can be followed: whoever has taken in all of them up to a position misses nothing
        before it. Those of everybody are read inside a `moment`: two owners' events may get their positions in one
        order, and be stored in the other.
        None stands for an event that does not read back: who opens its stream is told, and nobody else is held up.
        """
        ...

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        """Every event up to a position, of whichever kind, each with its own; so many are read at a time.

        Each owner's come in the order in which they were stored, and one owner's may come behind all of another's: so
        that reading on costs the same wherever one is. Inside a `moment`, as with `since`; so is what None stands for.
        """
        ...

    def last_position(self, *, owner: str | None = None) -> int:
        """The highest that any event has, or any of one owner's; 0 before the first."""
        ...

    def consistent_read(self) -> AbstractContextManager[None]:
        """All that this thread reads inside the block is of one moment, whatever others write meanwhile."""
        ...

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Everybody whom streams with events belong to, sorted: see `owner_by`. So many, behind a name."""
        ...

    def version(self, stream: str) -> int:
        """The number of the newest event; 0 for a stream that does not exist."""
        ...

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        """What an earlier append with this key did, if there was one."""
        ...

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        """The keys of a stream, in their order: so many, behind one."""
        ...

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        """The keys of all streams, each stream's together and in their order; so many are read at a time."""
        ...

    def bulk_import(self) -> AbstractContextManager[BulkImport]:
        """Take in what happened elsewhere: stored when the block ends, and not at all if it raises.

        Inside the block this store reads what was adopted so far; nobody else sees any of it before the end.
        """
        ...

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Names of the streams that begin with the prefix, sorted, and so many at most; of one owner's, where one is
        named."""
        ...

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        """The streams that begin with the prefix and have events, the last written first, and so many at most; of one
        owner's, where one is named."""
        ...

    def summary(self, stream: str) -> StreamSummary:
        """Of a stream that exists."""
        ...

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Replace the stream's snapshot if this one is newer. Losing it costs time, never content."""
        ...

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        """The stream's snapshot, if it is of this fold and not newer than `until`."""
        ...

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        """What was last written to each live file of the stream, by path."""
        ...

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None: ...

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        """Use so much more of what a window has; False, and nothing is used, if that came to more than `most`.

        However many ask at once, in whichever processes, together they never use more than that.
        """
        ...

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        """It was so much more than was allowed for, or so much less: what is over counts whatever was allowed."""
        ...

    def usage(self, window: RateWindow) -> int:
        """Of what a window has."""
        ...

    def close(self) -> None: ...
