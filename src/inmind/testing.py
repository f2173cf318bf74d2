"""What a host needs to test its own agent: a store that forgets on exit, and a clock that is told the time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from inmind.errors import Closed, Conflict, KeyReused
from inmind.journal import Draft, Event, decode, encode, microseconds, moment
from inmind.stores.base import Appended, Batch, Key, Published, Snapshot, Summary


@dataclass
class ManualClock:
    """A clock that stands still until it is moved."""

    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def advance(self, *, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class InMemoryStore:
    """The reference store: the contract in its plainest form, for tests and as the measure for real stores."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: dict[str, list[Event]] = {}
        self._order: list[Event] = []
        self._keys: dict[tuple[str, str], tuple[str, Appended]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._published: dict[str, dict[str, Published]] = {}
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
            at = moment(microseconds(at))
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

    def since(self, position: int, *, kinds: Sequence[str], most: int) -> Sequence[tuple[int, Event | None]]:
        with self._open():
            behind = enumerate(self._order[max(position, 0) :], max(position, 0) + 1)
            return list(islice(((place, event) for place, event in behind if event.kind in kinds), most))

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

    def streams(self, prefix: str) -> Sequence[str]:
        with self._open():
            return sorted(name for name in self._events if name.startswith(prefix))

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

    def close(self) -> None:
        self._closed = True

    def _with(self, batch: Batch, at: datetime) -> list[Event]:
        have = self._events.get(batch.stream, [])
        if len(have) != batch.expected:
            raise Conflict(stream=batch.stream, expected=batch.expected, actual=len(have))
        first = batch.expected + 1
        return [*have, *(_stored(batch.stream, first + n, at, d, opens=n == 0) for n, d in enumerate(batch.drafts))]

    def _open(self) -> threading.RLock:
        if self._closed:
            raise Closed
        return self._lock


def _stored(stream: str, seq: int, at: datetime, draft: Draft, *, opens: bool) -> Event:
    """Through the codec, as a real store would: what cannot be stored must not pass here either."""
    body = encode(draft.what).encode().decode()
    return Event(
        stream=stream,
        seq=seq,
        at=at,
        what=decode(draft.what.kind, body),
        origin=draft.origin,
        trust=draft.trusted,
        sources=draft.sources,
        opens=opens,
    )
