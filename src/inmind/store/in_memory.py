"""What a host needs to test its own agent: a store that forgets on exit, and a clock that is told the time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import islice

from inmind.core.events.base import Draft, Event, EventPayload
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.streams import owner_from_first_event
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.errors import Closed, Conflict, KeyReused
from inmind.store.protocol import Adopted, Appended, Batch, Begun, Key, Published, Receipt, Snapshot, Summary, Window


class InMemoryStore:
    """The reference store: the contract in its plainest form, for tests and as the measure for real stores."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: dict[str, list[Event]] = {}
        self._order: list[Event] = []
        self._keys: dict[tuple[str, str], tuple[str, Appended]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._published: dict[str, dict[str, Published]] = {}
        self._allowances: dict[tuple[str, int], int] = {}
        self._closed = False

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        at: datetime,
        key: Key | None = None,
        beside: Batch | None = None,
    ) -> Appended:
        with self._open():
            if key and (earlier := self.receipt(stream, key)):
                return earlier
            at = from_microseconds(to_microseconds(at))
            batches = [Batch(stream, drafts, expected), *([beside] if beside else [])]
            grown = {batch.stream: self._with(batch, at) for batch in batches}
            self._events |= grown
            self._order += [event for batch in batches for event in grown[batch.stream][batch.expected :]]
            appended = Appended(first=expected + 1, last=expected + len(drafts), at=at)
            if key:
                self._keys[stream, key.value] = (key.request, appended)
            return appended

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        with self._open():
            events = self._events.get(stream, [])[max(after, 0) : until]
            return [event for event in events if kind is None or event.kind == kind]

    def since(
        self, position: int, *, kinds: Sequence[str], most: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        with self._open():
            behind = enumerate(self._order[max(position, 0) :], max(position, 0) + 1)
            wanted = (
                (place, event)
                for place, event in behind
                if event.kind in kinds and owner in (None, self._owner(event.stream))
            )
            return list(islice(wanted, most))

    def all_up_to(self, position: int, *, most: int, owner: str | None = None) -> Iterator[tuple[int, Event | None]]:
        with self._open():
            there = list(enumerate(self._order[: max(position, 0)], 1))
        for start in range(0, len(there), most):
            with self._open():
                yield from [one for one in there[start : start + most] if owner in (None, self._owner(one[1].stream))]

    def position(self, *, owner: str | None = None) -> int:
        with self._open():
            theirs = (place for place, event in enumerate(self._order, 1) if owner in (None, self._owner(event.stream)))
            return max(theirs, default=0)

    def moment(self) -> AbstractContextManager[None]:
        return nullcontext()

    def owners(self, *, after: str | None = None, most: int | None = None) -> Sequence[str]:
        with self._open():
            names = sorted({owner for stream in self._events if (owner := self._owner(stream)) is not None})
        return [name for name in names if after is None or name > after][:most]

    def version(self, stream: str) -> int:
        with self._open():
            return len(self._events.get(stream, []))

    def receipt(self, stream: str, key: Key) -> Appended | None:
        with self._open():
            earlier = self._keys.get((stream, key.value))
            if earlier is None:
                return None
            request, appended = earlier
            if request != key.request:
                raise KeyReused(key=key.named)
            return Appended(first=appended.first, last=appended.last, at=appended.at, repeated=True)

    def receipts(self, stream: str, *, after: str | None = None, most: int) -> Sequence[Receipt]:
        with self._open():
            keys = sorted(key for of, key in self._keys if of == stream and (after is None or key > after))
            found = [(key, *self._keys[stream, key]) for key in keys[:most]]
            return [Receipt(stream, Key(key, request), appended) for key, request, appended in found]

    def all_receipts(self, *, most: int) -> Iterator[Receipt]:
        with self._open():
            streams = {stream for stream, _ in self._keys}
        for stream in sorted(streams):
            after: str | None = None
            while batch := self.receipts(stream, after=after, most=most):
                yield from batch
                after = batch[-1].key.value

    @contextmanager
    def adopting(self) -> Generator[_Adoption]:
        with self._open():
            before = self._events, self._order, self._keys
            self._events = {stream: [*events] for stream, events in self._events.items()}
            self._order, self._keys = [*self._order], {**self._keys}
            try:
                yield _Adoption(self._events, self._order, self._keys)
            except BaseException:
                self._events, self._order, self._keys = before
                raise

    def streams(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[str]:
        with self._open():
            names = (name for name in self._events if name.startswith(prefix))
            return sorted(name for name in names if owner in (None, self._owner(name)))[:most]

    def begun(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[Begun]:
        with self._open():
            streams = [events for name in self.streams(prefix, owner=owner) if (events := self._events[name])]
            found = [Begun(events[0], len(events), events[-1].at) for events in streams]
            return sorted(found, key=lambda one: one.updated, reverse=True)[:most]

    def summary(self, stream: str) -> Summary:
        with self._open():
            events = self._events[stream]
            return Summary(kinds=Counter(event.kind for event in events), updated=events[-1].at)

    def keep_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        with self._open():
            have = self._snapshots.get(stream)
            if have is None or have.seq < snapshot.seq or have.fold != snapshot.fold:
                self._snapshots[stream] = snapshot

    def snapshot(self, stream: str, *, fold: int, until: int | None = None) -> Snapshot | None:
        with self._open():
            have = self._snapshots.get(stream)
            fits = have is not None and have.fold == fold and (until is None or have.seq <= until)
            return have if fits else None

    def published(self, stream: str) -> dict[str, Published]:
        with self._open():
            return dict(self._published.get(stream, {}))

    def mark_published(self, stream: str, path: str, shown: Published) -> None:
        with self._open():
            self._published.setdefault(stream, {})[path] = shown

    def allow(self, window: Window, amount: int, *, most: int) -> bool:
        with self._open():
            if (used := self.used(window) + amount) > most:
                return False
            self._allowances[window.name, window.stamp] = used
            return True

    def settle(self, window: Window, amount: int) -> None:
        with self._open():
            if (window.name, window.stamp) in self._allowances:
                self._allowances[window.name, window.stamp] = max(0, self.used(window) + amount)

    def used(self, window: Window) -> int:
        with self._open():
            return self._allowances.get((window.name, window.stamp), 0)

    def close(self) -> None:
        self._closed = True

    def _with(self, batch: Batch, at: datetime) -> list[Event]:
        have = self._events.get(batch.stream, [])
        if len(have) != batch.expected:
            raise Conflict(stream=batch.stream, expected=batch.expected, actual=len(have))
        first = batch.expected + 1
        return [*have, *(_stored(batch.stream, first + n, at, d, opens=n == 0) for n, d in enumerate(batch.drafts))]

    def _owner(self, stream: str) -> str | None:
        events = self._events[stream]
        return owner_from_first_event(stream, events[0].payload) if events else None

    def _open(self) -> threading.RLock:
        if self._closed:
            raise Closed
        return self._lock


class _Adoption:
    def __init__(
        self, events: dict[str, list[Event]], order: list[Event], keys: dict[tuple[str, str], tuple[str, Appended]]
    ) -> None:
        self._events, self._order, self._keys = events, order, keys

    def add(self, event: Event) -> Adopted:
        have = self._events.setdefault(event.stream, [])
        if event.seq == len(have) + 1:
            have.append(replace(event, payload=_through_the_codec(event.payload)))
            self._order.append(have[-1])
            return Adopted(len(self._order), new=True)
        there = have[event.seq - 1] if 0 < event.seq <= len(have) else None
        if there is None or _told(there) != _told(event):
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=len(have))
        return Adopted(next(place for place, one in enumerate(self._order, 1) if one is there), new=False)

    def keep(self, receipt: Receipt) -> bool:
        have = self._events.setdefault(receipt.stream, [])
        stood = (receipt.key.request, receipt.appended)
        there = self._keys.setdefault((receipt.stream, receipt.key.value), stood)
        if there != stood:
            raise Conflict(stream=receipt.stream, expected=receipt.appended.last, actual=len(have))
        return there is stood


def _told(event: Event) -> tuple[object, ...]:
    """All of it, as it would be stored: NaN is not itself, its text is."""
    return (
        event.at,
        event.kind,
        event.origin,
        event.trust,
        event.starts_batch,
        event.sources,
        encode_payload(event.payload),
    )


def _through_the_codec(what: EventPayload) -> EventPayload:
    """As in a real store: what cannot be stored must not pass here either."""
    return decode_payload(what.kind, encode_payload(what).encode().decode())


def _stored(stream: str, seq: int, at: datetime, draft: Draft, *, opens: bool) -> Event:
    return Event(
        stream=stream,
        seq=seq,
        at=at,
        payload=_through_the_codec(draft.payload),
        origin=draft.origin,
        trust=draft.effective_trust,
        sources=draft.sources,
        starts_batch=opens,
    )
