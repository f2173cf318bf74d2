"""A store of events, and the status of its job queue.

Each guarantee is a test in tests/contract/test_store.py, which every store has to pass. Both databases answer the same
named statements with the same columns (`sql/shared.sql`, `sql/queries.sql`, `sql/postgres/queries.sql`), so only what
differs is up to the subclass: how a statement runs, how events are appended and imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import Draft, Event
from inmind.core.frozen import frozen
from inmind.errors import KeyReused
from inmind.store.rows import event_from_row, event_or_none

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

    def events(self, at: datetime) -> list[Event]:
        """The events if this batch is stored at this time."""
        return [
            Event(
                stream=self.stream,
                seq=self.expected + 1 + n,
                at=at,
                payload=draft.payload,
                origin=draft.origin,
                trust=draft.effective_trust,
                sources=draft.sources,
                starts_batch=n == 0,
            )
            for n, draft in enumerate(self.drafts)
        ]


@frozen
class Receipt:
    """A key of a stream and the result of its append.

    An export contains receipts and events.
    """

    stream: str
    key: Key
    appended: AppendResult

    @classmethod
    def from_row(cls, stream: str, key: str, row: Sequence[Any]) -> Receipt:
        request, first, last, at = row
        return cls(stream, Key(key, request), AppendResult(first=first, last=last, at=from_microseconds(at)))


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


class Store(ABC):
    """Streams of events, with data that only makes reading faster.

    Guarantees: events are returned in order and without gaps; a batch is stored as a whole or not stored; events
    survive a kill once `append` has returned; a stale `expected` raises Conflict and stores nothing; the same key
    stores once and always returns the same result, and with other arguments raises KeyReused; a reader never sees part
    of a commit.
    """

    @abstractmethod
    def append(
        self, batch: Batch, *, at: datetime, key: Key | None = None, companion: Batch | None = None
    ) -> AppendResult:
        """Append the drafts as the next events of their stream.

        `companion`: events of another stream, stored in the same transaction. The key belongs to the first stream.
        """

    @abstractmethod
    def consistent_read(self) -> AbstractContextManager[None]:
        """All reads of this thread in the block see one state, unaffected by other writers."""

    @abstractmethod
    def bulk_import(self) -> AbstractContextManager[BulkImport]:
        """Import events from another store; stored when the block ends, discarded if it raises.

        Inside the block this store reads the events imported so far; other readers see none of them before the end.
        """

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _fetch_rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement that only reads. A list is one value."""

    @abstractmethod
    def _write(self, statement: str, *values: object, retryable: bool = True) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction.

        `retryable`: running it twice has the same effect as once.
        """

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        """Events with after < seq <= until, in order, optionally of one kind."""
        rows = self._fetch_rows("events", stream, _bigint(after), _bigint(until), kind)
        return [event_from_row(stream, row) for row in rows]

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        """Events of these kinds stored after a position, each with its position, in that order.

        Events of one owner can be followed: a reader that has processed all of them up to a position misses none before
        it. Events of all owners must be read inside `consistent_read`: events of two owners may get their positions in
        one order and be stored in the other. An event that cannot be decoded is None: opening its stream raises
        Damaged, other streams are not affected.
        """
        values = _bigint(position), list(kinds), limit
        if owner is None:
            rows = self._fetch_rows("events_since", *values)
        else:
            rows = self._fetch_rows("events_since_of_owner", *values, owner)
        return [(row[0], event_or_none(row[1], row[2:])) for row in rows]

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        """Every event of any kind up to a position, each with its position, read in batches.

        Events of one owner come in the order in which they were stored; one owner's may all come after another's, so
        that each batch costs the same. Read inside `consistent_read`. None has the same meaning as in `events_since`.
        """
        last: tuple[int, int] = (0, 0)
        while True:
            rows = self._fetch_rows("all_events", *last, _bigint(position), owner, batch_size)
            yield from ((row[1], event_or_none(row[2], row[3:])) for row in rows)
            if len(rows) < batch_size:
                return
            last = rows[-1][0], rows[-1][1]

    def last_position(self, *, owner: str | None = None) -> int:
        """The highest position of any event, or of one owner's events; 0 if there are none."""
        return self._fetch_rows("last_position", owner)[0][0]

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Sorted owner names after `after`, at most `limit`: see `owner_of`."""
        return [name for (name,) in self._fetch_rows("owners", after, limit)]

    def version(self, stream: str) -> int:
        """The sequence number of the newest event; 0 for a stream that does not exist."""
        rows = self._fetch_rows("version", stream)
        return rows[0][0] if rows else 0

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        """The result of an earlier append with this key, if there was one."""
        for request, first, last, at in self._fetch_rows("receipt", stream, key.value):
            if request != key.request:
                raise KeyReused(key=key.caller_key)
            return AppendResult(first=first, last=last, at=from_microseconds(at), repeated=True)
        return None

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        """Receipts of a stream, sorted by key, after `after`, at most `limit`."""
        rows = self._fetch_rows("receipts", stream, after, limit)
        return [Receipt.from_row(stream, key, row) for key, *row in rows]

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        """Receipts of all streams, grouped by stream and sorted by key, read in batches."""
        last: tuple[int, str] = (0, "")
        while True:
            rows = self._fetch_rows("all_receipts", *last, batch_size)
            yield from (Receipt.from_row(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < batch_size:
                return
            last = rows[-1][0], rows[-1][2]

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        """Sorted names of the streams with this prefix, optionally of one owner, at most `limit`."""
        return [name for (name,) in self._fetch_rows("stream_names", prefix, f"{prefix}\U0010ffff", limit, owner)]

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        """Streams with this prefix that have events, last written first, at most `limit`."""
        rows = self._fetch_rows("stream_infos", prefix, f"{prefix}\U0010ffff", limit, owner)
        return [
            StreamInfo(first=event_from_row(name, first), version=version, updated=from_microseconds(updated))
            for name, version, updated, *first in rows
        ]

    def summary(self, stream: str) -> StreamSummary:
        """Summary of an existing stream."""
        rows = self._fetch_rows("summary", stream)
        return StreamSummary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        """Replace the stream's snapshot if this one is newer. Snapshots only save time."""
        self._write("save_snapshot", stream, snapshot.seq, snapshot.fold_version, snapshot.body)

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        """The stream's snapshot, if it has this fold version and is not newer than `until`."""
        rows = self._fetch_rows("snapshot", stream, fold_version, _bigint(until))
        return Snapshot(*rows[0]) if rows else None

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        """The version of each live file of the stream that was last written, by path."""
        rows = self._fetch_rows("published_versions", stream)
        return {path: PublishedVersion(digest=digest, seq=seq) for path, digest, seq in rows}

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None:
        self._write("mark_published", stream, path, version.digest, version.seq)

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        """Add `amount` to the usage of a window; False, without adding, if that exceeds `limit`.

        Concurrent calls, also of several processes, together never exceed the limit. A call is retried if the reply is
        lost: counting twice refuses too early, never too late.
        """
        self._write("delete_expired_usage", window.name, window.expired_before)
        return bool(self._write("try_consume", window.name, window.start_microseconds, amount, limit))

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        """Correct the usage of a window by `amount`, positive or negative, without a limit."""
        self._write("adjust_usage", window.name, window.start_microseconds, amount, retryable=False)

    def usage(self, window: RateWindow) -> int:
        """The usage of a window."""
        rows = self._fetch_rows("usage", window.name, window.start_microseconds)
        return rows[0][0] if rows else 0


_MAX_INTEGER = 2**63 - 1


def _bigint(value: int | None) -> int:
    """Limit a number to the range of a column; None is the highest."""
    return _MAX_INTEGER if value is None else max(-_MAX_INTEGER, min(value, _MAX_INTEGER))


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
