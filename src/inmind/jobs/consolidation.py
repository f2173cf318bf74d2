"""Run a consolidation in batches, each a commit, so that it can stop and resume.

The decisions are made in `search/consolidate.py`. First all written crystals (notes and the like) are read and planned
together, because each has to be compared with all others; an uncommitted part is planned again after a stop. Then
crystals of sessions that may expire are checked batch by batch; the progress of that is in the journal. A pass without
changes leaves no event.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import Consolidated
from inmind.core.fair_turns import short_switch_interval
from inmind.core.frozen import frozen
from inmind.search.consolidate import plan_consolidation, split_batches
from inmind.search.crystal import is_expired
from inmind.search.engine import SearchEngine
from inmind.search.index.record import Record
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

BATCH_SIZE = 500
"""Crystals in one batch."""


@frozen(kw_only=True)
class Consolidation:
    """Numbers of crystals that a consolidation has changed."""

    merged: int = 0
    superseded: int = 0
    expired: int = 0
    finished: bool = True
    """False if time ran out; the next run resumes there."""

    def __str__(self) -> str:
        text = f"consolidation: {self.merged} merged, {self.superseded} superseded, {self.expired} expired"
        return text if self.finished else f"{text} (unfinished)"

    def with_batch(self, batch: Consolidated) -> Consolidation:
        return Consolidation(
            merged=self.merged + len(batch.merged),
            superseded=self.superseded + len(batch.superseded),
            expired=self.expired + len(batch.expired),
            finished=not batch.last_crystal,
        )


class Consolidator:
    """Consolidates the crystals of one resource."""

    def __init__(
        self, search: SearchEngine, store: Store, stream: Stream[ResourceState], resource: str, clock: Clock
    ) -> None:
        self._search, self._store, self._stream, self._clock = search, store, stream, clock
        self._resource = resource

    def is_due(self, *, interval_seconds: float, finished_at: datetime | None = None) -> bool:
        """True if the last pass is older than `interval_seconds` or unfinished.

        `finished_at`: when the caller last finished a pass. The journal only has passes that changed something.
        """
        last_batch = self._last_batch()
        if last_batch is not None and last_batch[0]:
            return True
        times = [moment for moment in (finished_at, last_batch and last_batch[1]) if moment is not None]
        return not times or (self._clock() - max(times)).total_seconds() >= interval_seconds

    @property
    def is_unfinished(self) -> bool:
        """True if the last pass stopped before its end, in any process."""
        last = self._last_batch()
        return last is not None and bool(last[0])

    @short_switch_interval()
    def run(self, *, seconds: float | None = None) -> Consolidation:
        """Resume at the last batch and run to the end, or until `seconds` have passed.

        The time is checked between batches. Reading and planning the written crystals comes before the first batch and
        is not interrupted.
        """
        started = time.monotonic()
        last = self._last_batch()
        cursor = last[0] if last else ""
        # A batch is committed when the next one has changes, so that the last one also records the end of the pass.
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
        """The last crystal of the last batch and the time of the batch."""
        for event in reversed(self._store.read(self._stream.name, kind=Consolidated.kind)):
            if isinstance(event.payload, Consolidated):
                return event.payload.last_crystal, event.at
        return None

    def _commit(self, batch: Consolidated) -> None:
        self._stream.append(Draft(payload=batch, origin=Origin.OPERATOR))

    def _batches(self, cursor: str) -> Iterator[Consolidated]:
        """The batches after a cursor.

        Only the last one has an empty cursor, which marks the end of the pass.
        """
        now, last_record = self._clock(), self._search.record(cursor) if cursor else None
        after = 0
        if last_record is not None and last_record.source != "memory":
            after = last_record.made
        else:
            yield from split_batches(
                plan_consolidation(self._search.written_crystals(self._resource), now=now), BATCH_SIZE
            )
        while len(records := self._search.fading_records(self._resource, after, BATCH_SIZE)) == BATCH_SIZE:
            after = records[-1].made
            yield Consolidated(records[-1].id, expired=self._expired_ids(records, now))
        yield Consolidated("", expired=self._expired_ids(records, now))

    def _expired_ids(self, records: Sequence[Record], now: datetime) -> tuple[str, ...]:
        """Ids of session crystals whose value has decayed."""
        return tuple(record.id for record in records if is_expired(record.crystal("", self._resource), now))


def _has_changes(batch: Consolidated) -> bool:
    return bool(batch.merged or batch.superseded or batch.expired)
