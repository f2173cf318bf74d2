"""The interface of a store, and the status of its job queue.

Each guarantee is a test in tests/contract/test_store.py, which every store has to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Protocol

from inmind.core.encoding import to_microseconds
from inmind.core.events.base import Draft, Event
from inmind.core.frozen import frozen

Clock = Callable[[], datetime]
"""Returns the current time, with a time zone."""


@frozen
class Key:
    """An idempotency key and the digest of its request."""

    value: str
    request: str

    @property
    def caller_key(self) -> str:
        """The key as the caller passed it, without the operation in front of it."""
        return self.value.partition(" ")[2] or self.value


@frozen
class AppendResult:
    """Sequence numbers of the appended events.

    `repeated`: an earlier call with the same key appended them.
    """

    first: int
    last: int
    at: datetime
    repeated: bool = False


@frozen
class Batch:
    """Events for one stream, based on its version `expected`."""

    stream: str
    drafts: Sequence[Draft]
    expected: int

    def result(self, at: datetime) -> AppendResult:
        """The result if this batch is stored at this time."""
        return AppendResult(first=self.expected + 1, last=self.expected + len(self.drafts), at=at)


@frozen
class Receipt:
    """A key of a stream and the result of its append.

    An export contains receipts and events.
    """

    stream: str
    key: Key
    appended: AppendResult


@frozen
class ImportedEvent:
    """The position of an imported event. Not `is_new`: the same event was already stored."""

    position: int
    is_new: bool


@frozen
class Snapshot:
    """A state at `seq` as JSON text, written by a fold of this version."""

    seq: int
    fold_version: int
    body: str


@frozen
class StreamSummary:
    """The number of events of each kind in a stream, and the time of the last one."""

    kinds: Mapping[str, int]
    updated: datetime


@frozen
class StreamInfo:
    """One stream of a list: its first event, its version and the time of its last event."""

    first: Event
    version: int
    updated: datetime


@frozen
class PublishedVersion:
    """The version of a live file that was last written.

    `digest` is that of its text ("" for none), `seq` the version of the journal. A later version was never confirmed as
    written. If the file nevertheless shows one, a writer was killed before it could confirm; if it shows any other
    text, a person wrote that.
    """

    digest: str
    seq: int


@frozen
class RateWindow:
    """A time window of a rate limit. Usage is counted per window."""

    name: str
    """The counter."""
    start: datetime
    length: timedelta

    @classmethod
    def at(cls, now: datetime, name: str, length: timedelta) -> RateWindow:
        """Return the window that contains `now`. Every process computes the same one."""
        return cls(name, now - (now - _EPOCH) % length, length)

    @property
    def end(self) -> datetime:
        return self.start + self.length

    @property
    def start_microseconds(self) -> int:
        return to_microseconds(self.start)

    @property
    def expired_before(self) -> int:
        """Windows that started before this are over in every process, even if clocks differ."""
        return self.start_microseconds - 3 * round(self.length.total_seconds() * 1e6)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BulkImport(Protocol):
    """An import of events from another store: all of them are stored, or none."""

    def add_event(self, event: Event) -> ImportedEvent:
        """Add an event with its number and time: the next of its stream, or one already stored.

        Raises Conflict if a different event is stored there, or if there would be a gap.
        """
        ...

    def add_receipt(self, receipt: Receipt) -> bool:
        """Add a key; False if it is already stored.

        Raises Conflict if it belongs to another append there.
        """
        ...


class Store(Protocol):
    """Streams of events, with data that only makes reading faster.

    Guarantees: events are returned in order and without gaps; a batch is stored as a whole or not stored; events
    survive a kill once `append` has returned; a stale `expected` raises Conflict and stores nothing; the same key
    stores once and always returns the same result, and with other arguments raises KeyReused; a reader never sees part
    of a commit.
    """

    def append(
        self, batch: Batch, *, at: datetime, key: Key | None = None, companion: Batch | None = None
    ) -> AppendResult:
        """Append the drafts as the next events of their stream.

        `companion`: events of another stream, stored in the same transaction. The key belongs to the first stream.
        """
        ...

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        """Events with after < seq <= until, in order, optionally of one kind."""
        ...

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        """Events of these kinds stored after a position, each with its position, in that order.

        Events of one owner can be followed: a reader that has processed all of them up to a position misses none before
        it. Events of all owners must be read inside `consistent_read`: events of two owners may get their positions in
        one order and be stored in the other. An event that cannot be decoded is None: opening its stream raises
        Damaged, other streams are not affected.
        """
        ...

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        """Every event of any kind up to a position, each with its position, read in batches.

        Events of one owner come in the order in which they were stored; one owner's may all come after another's, so
        that each batch costs the same. Read inside `consistent_read`. None has the same meaning as in `events_since`.
        """
        ...

    def last_position(self, *, owner: str | None = None) -> int:
        """The highest position of any event, or of one owner's events; 0 if there are none."""
        ...

    def consistent_read(self) -> AbstractContextManager[None]:
        """All reads of this thread in the block see one state, unaffected by other writers."""
        ...

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Sorted owner names after `after`, at most `limit`: see `owner_of`."""
        ...

    def version(self, stream: str) -> int:
        """The sequence number of the newest event; 0 for a stream that does not exist."""
        ...

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        """The result of an earlier append with this key, if there was one."""
        ...

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        """Receipts of a stream, sorted by key, after `after`, at most `limit`."""
        ...

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        """Receipts of all streams, grouped by stream and sorted by key, read in batches."""
        ...

    def bulk_import(self) -> AbstractContextManager[BulkImport]:
        """Import events from another store; stored when the block ends, discarded if it raises.

        Inside the block this store reads the events imported so far; other readers see none of them before the end.
        """
        ...

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Sorted names of the streams with this prefix, optionally of one owner, at most `limit`."""
        ...

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        """Streams with this prefix that have events, last written first, at most `limit`."""
        ...

    def summary(self, stream: str) -> StreamSummary:
        """Summary of an existing stream."""
        ...

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Replace the stream's snapshot if this one is newer. Snapshots only save time."""
        ...

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        """The stream's snapshot, if it has this fold version and is not newer than `until`."""
        ...

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        """The version of each live file of the stream that was last written, by path."""
        ...

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None: ...

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        """Add `amount` to the usage of a window; False, without adding, if that exceeds `limit`.

        Concurrent calls, also of several processes, together never exceed the limit.
        """
        ...

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        """Correct the usage of a window by `amount`, positive or negative, without a limit."""
        ...

    def usage(self, window: RateWindow) -> int:
        """The usage of a window."""
        ...

    def close(self) -> None: ...


@frozen(kw_only=True)
class QueueStatus:
    """Counts of jobs in a database.

    A home has no queue: there they count resources with work to do.
    """

    waiting: int = 0
    waiting_seconds: float = 0.0
    """Waiting time of the oldest job."""
    later: int = 0
    """Jobs that have failed and will be retried."""
    running: int = 0
    stalled: int = 0
    """Running jobs whose worker has sent no heartbeat."""
    failed: int = 0
    """Jobs that failed permanently."""
    workers: int | None = None
    """None if it is not known."""
