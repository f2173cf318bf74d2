"""A store in memory, for tests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import islice

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import Draft, Event, EventPayload
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.stream_names import owner_from_first_event
from inmind.errors import Closed, Conflict, KeyReused
from inmind.store.protocol import (
    AppendResult,
    Batch,
    ImportedEvent,
    Key,
    PublishedVersion,
    RateWindow,
    Receipt,
    Snapshot,
    StreamInfo,
    StreamSummary,
)


class InMemoryStore:
    """The reference implementation of `Store`, for tests and as a model for other stores."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: dict[str, list[Event]] = {}
        self._order: list[Event] = []
        self._keys: dict[tuple[str, str], tuple[str, AppendResult]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._published: dict[str, dict[str, PublishedVersion]] = {}
        self._usage: dict[tuple[str, int], int] = {}
        self._closed = False

    def append(
        self, batch: Batch, *, at: datetime, key: Key | None = None, companion: Batch | None = None
    ) -> AppendResult:
        with self._open():
            if key and (earlier := self.receipt(batch.stream, key)):
                return earlier
            at = from_microseconds(to_microseconds(at))
            batches = [batch, *([companion] if companion else [])]
            extended = {one.stream: self._extended(one, at) for one in batches}
            self._events |= extended
            self._order += [event for one in batches for event in extended[one.stream][one.expected :]]
            appended = batch.result(at)
            if key:
                self._keys[batch.stream, key.value] = (key.request, appended)
            return appended

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        with self._open():
            events = self._events.get(stream, [])[max(after, 0) : until]
            return [event for event in events if kind is None or event.kind == kind]

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        with self._open():
            later = enumerate(self._order[max(position, 0) :], max(position, 0) + 1)
            matching = (
                (place, event)
                for place, event in later
                if event.kind in kinds and owner in (None, self._owner(event.stream))
            )
            return list(islice(matching, limit))

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        with self._open():
            positioned = list(enumerate(self._order[: max(position, 0)], 1))
        for start in range(0, len(positioned), batch_size):
            with self._open():
                yield from [
                    one for one in positioned[start : start + batch_size] if owner in (None, self._owner(one[1].stream))
                ]

    def last_position(self, *, owner: str | None = None) -> int:
        with self._open():
            positions = (
                place for place, event in enumerate(self._order, 1) if owner in (None, self._owner(event.stream))
            )
            return max(positions, default=0)

    def consistent_read(self) -> AbstractContextManager[None]:
        return nullcontext()

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        with self._open():
            names = sorted({owner for stream in self._events if (owner := self._owner(stream)) is not None})
        return [name for name in names if after is None or name > after][:limit]

    def version(self, stream: str) -> int:
        with self._open():
            return len(self._events.get(stream, []))

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        with self._open():
            earlier = self._keys.get((stream, key.value))
            if earlier is None:
                return None
            request, appended = earlier
            if request != key.request:
                raise KeyReused(key=key.caller_key)
            return AppendResult(first=appended.first, last=appended.last, at=appended.at, repeated=True)

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        with self._open():
            keys = sorted(
                key for owning_stream, key in self._keys if owning_stream == stream and (after is None or key > after)
            )
            rows = [(key, *self._keys[stream, key]) for key in keys[:limit]]
            return [Receipt(stream, Key(key, request), appended) for key, request, appended in rows]

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        with self._open():
            streams = {stream for stream, _ in self._keys}
        for stream in sorted(streams):
            after: str | None = None
            while batch := self.receipts(stream, after=after, limit=batch_size):
                yield from batch
                after = batch[-1].key.value

    @contextmanager
    def bulk_import(self) -> Generator[_InMemoryImport]:
        with self._open():
            before = self._events, self._order, self._keys
            self._events = {stream: [*events] for stream, events in self._events.items()}
            self._order, self._keys = [*self._order], {**self._keys}
            try:
                yield _InMemoryImport(self._events, self._order, self._keys)
            except BaseException:
                self._events, self._order, self._keys = before
                raise

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        with self._open():
            names = (name for name in self._events if name.startswith(prefix))
            return sorted(name for name in names if owner in (None, self._owner(name)))[:limit]

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        with self._open():
            streams = [events for name in self.stream_names(prefix, owner=owner) if (events := self._events[name])]
            infos = [StreamInfo(events[0], len(events), events[-1].at) for events in streams]
            return sorted(infos, key=lambda one: one.updated, reverse=True)[:limit]

    def summary(self, stream: str) -> StreamSummary:
        with self._open():
            events = self._events[stream]
            return StreamSummary(kinds=Counter(event.kind for event in events), updated=events[-1].at)

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with self._open():
            have = self._snapshots.get(stream)
            if have is None or have.seq < snapshot.seq or have.fold_version != snapshot.fold_version:
                self._snapshots[stream] = snapshot

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        with self._open():
            have = self._snapshots.get(stream)
            fits = have is not None and have.fold_version == fold_version and (until is None or have.seq <= until)
            return have if fits else None

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        with self._open():
            return dict(self._published.get(stream, {}))

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None:
        with self._open():
            self._published.setdefault(stream, {})[path] = version

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        with self._open():
            if (used := self.usage(window) + amount) > limit:
                return False
            self._usage[window.name, window.start_microseconds] = used
            return True

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        with self._open():
            if (window.name, window.start_microseconds) in self._usage:
                self._usage[window.name, window.start_microseconds] = max(0, self.usage(window) + amount)

    def usage(self, window: RateWindow) -> int:
        with self._open():
            return self._usage.get((window.name, window.start_microseconds), 0)

    def close(self) -> None:
        self._closed = True

    def _extended(self, batch: Batch, at: datetime) -> list[Event]:
        have = self._events.get(batch.stream, [])
        if len(have) != batch.expected:
            raise Conflict(stream=batch.stream, expected=batch.expected, actual=len(have))
        first = batch.expected + 1
        return [
            *have,
            *(_stored_event(batch.stream, first + n, at, d, starts_batch=n == 0) for n, d in enumerate(batch.drafts)),
        ]

    def _owner(self, stream: str) -> str | None:
        events = self._events[stream]
        return owner_from_first_event(stream, events[0].payload) if events else None

    def _open(self) -> threading.RLock:
        if self._closed:
            raise Closed
        return self._lock


class _InMemoryImport:
    def __init__(
        self, events: dict[str, list[Event]], order: list[Event], keys: dict[tuple[str, str], tuple[str, AppendResult]]
    ) -> None:
        self._events, self._order, self._keys = events, order, keys

    def add_event(self, event: Event) -> ImportedEvent:
        have = self._events.setdefault(event.stream, [])
        if event.seq == len(have) + 1:
            have.append(replace(event, payload=_encode_and_decode(event.payload)))
            self._order.append(have[-1])
            return ImportedEvent(len(self._order), is_new=True)
        stored = have[event.seq - 1] if 0 < event.seq <= len(have) else None
        if stored is None or _comparable(stored) != _comparable(event):
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=len(have))
        return ImportedEvent(next(place for place, one in enumerate(self._order, 1) if one is stored), is_new=False)

    def add_receipt(self, receipt: Receipt) -> bool:
        have = self._events.setdefault(receipt.stream, [])
        added = (receipt.key.request, receipt.appended)
        stored = self._keys.setdefault((receipt.stream, receipt.key.value), added)
        if stored != added:
            raise Conflict(stream=receipt.stream, expected=receipt.appended.last, actual=len(have))
        return stored is added


def _comparable(event: Event) -> tuple[object, ...]:
    """All fields of an event as stored: NaN is not equal to itself, its text is."""
    return (
        event.at,
        event.kind,
        event.origin,
        event.trust,
        event.starts_batch,
        event.sources,
        encode_payload(event.payload),
    )


def _encode_and_decode(payload: EventPayload) -> EventPayload:
    """Encode and decode the payload, so that values that cannot be stored fail here too."""
    return decode_payload(payload.kind, encode_payload(payload).encode().decode())


def _stored_event(stream: str, seq: int, at: datetime, draft: Draft, *, starts_batch: bool) -> Event:
    return Event(
        stream=stream,
        seq=seq,
        at=at,
        payload=_encode_and_decode(draft.payload),
        origin=draft.origin,
        trust=draft.effective_trust,
        sources=draft.sources,
        starts_batch=starts_batch,
    )
