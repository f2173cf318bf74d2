"""Consolidation, carried out: batch by batch, each a commit, so that it can stop anywhere and go on there.

What becomes of which crystal is decided in `crystals/consolidate`. First everything that was written down is gone
through: it is read once, and decided at once, since each of it has to be seen beside all others. What was not committed
before the time was over is decided again. Then comes what was said in sessions and may fade, a few at a time; how far
that came stands in the journal. A pass that found nothing to do leaves nothing there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import Consolidated
from inmind.core.frozen import frozen
from inmind.search.consolidate import plan_consolidation, split_batches
from inmind.search.decay import is_expired
from inmind.search.engine import SearchEngine
from inmind.search.index.record import Record
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

BATCH_SIZE = 500
"""Crystals of a batch."""


@frozen(kw_only=True)
class Consolidation:
    """What a consolidation has done so far."""

    merged: int = 0
    superseded: int = 0
    expired: int = 0
    finished: bool = True
    """False where time ran out: the next one goes on where this one stopped."""

    def with_batch(self, batch: Consolidated) -> Consolidation:
        return Consolidation(
            merged=self.merged + len(batch.merged),
            superseded=self.superseded + len(batch.superseded),
            expired=self.expired + len(batch.expired),
            finished=not batch.last_crystal,
        )


class Consolidator:
    """Goes through the crystals of one resource."""

    def __init__(
        self, search: SearchEngine, store: Store, stream: Stream[ResourceState], resource: str, clock: Clock
    ) -> None:
        self._search, self._store, self._stream, self._clock = search, store, stream, clock
        self._resource = resource

    def is_due(self, *, interval_seconds: float, finished_at: datetime | None = None) -> bool:
        """Has it not been done for so long, or was it left in the middle?

        `finished`: when whoever asks has last come to the end. The journal tells only of passes that found something.
        """
        last_batch = self._last_batch()
        if last_batch is not None and last_batch[0]:
            return True
        times = [moment for moment in (finished_at, last_batch and last_batch[1]) if moment is not None]
        return not times or (self._clock() - max(times)).total_seconds() >= interval_seconds

    @property
    def is_unfinished(self) -> bool:
        """Was the last one left in the middle, by whomever?"""
        last = self._last_batch()
        return last is not None and bool(last[0])

    def run(self, *, seconds: float | None = None) -> Consolidation:
        """Go on where the last one stopped, to the end or until the time is over.

        The time is looked at between batches. Reading what was written down and deciding on it comes before the first
        of them, and takes as long as it takes.
        """
        started = time.monotonic()
        last = self._last_batch()
        cursor = last[0] if last else ""
        # What was decided is held back until more is: so the last of a pass also tells that it came to its end.
        result, pending = Consolidation(), Consolidated(cursor)
        for batch in self._batches(cursor):
            if _has_changes(pending) and _has_changes(batch):
                self._commit(pending)
                cursor, pending = pending.last_crystal, batch
            else:
                pending = replace(pending if _has_changes(pending) else batch, last_crystal=batch.last_crystal)
            result = result.with_batch(batch)
            if seconds is not None and time.monotonic() - started >= seconds:
                break
        if _has_changes(pending) or pending.last_crystal != cursor:
            self._commit(pending)
        return result

    def _last_batch(self) -> tuple[str, datetime] | None:
        """Where the last batch ended, and when it was."""
        for event in reversed(self._store.read(self._stream.name, kind=Consolidated.kind)):
            if isinstance(event.payload, Consolidated):
                return event.payload.last_crystal, event.at
        return None

    def _commit(self, batch: Consolidated) -> None:
        self._stream.append(Draft(payload=batch, origin=Origin.OPERATOR))

    def _batches(self, cursor: str) -> Iterator[Consolidated]:
        """What is to be done from there on; the last batch, and no other, comes to the end of the pass."""
        now, resumed = self._clock(), self._search.record(cursor) if cursor else None
        made = 0
        if resumed is not None and resumed.source != "memory":
            made = resumed.made
        else:
            yield from split_batches(
                plan_consolidation(self._search.written_crystals(self._resource), now=now), BATCH_SIZE
            )
        while len(records := self._search.fading_records(self._resource, made, BATCH_SIZE)) == BATCH_SIZE:
            made = records[-1].made
            yield Consolidated(records[-1].id, expired=self._expired_ids(records, now))
        yield Consolidated("", expired=self._expired_ids(records, now))

    def _expired_ids(self, records: Sequence[Record], now: datetime) -> tuple[str, ...]:
        """What was said in sessions and is worth nothing by now."""
        return tuple(record.id for record in records if is_expired(record.crystal("", self._resource), now))


def _has_changes(batch: Consolidated) -> bool:
    return bool(batch.merged or batch.superseded or batch.expired)
