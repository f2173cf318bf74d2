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
from inmind.search.consolidate import in_batches, plan
from inmind.search.decay import expires
from inmind.search.engine import DeepMemory
from inmind.search.index.record import Record
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

AT_A_TIME = 500
"""Crystals of a batch."""


@frozen(kw_only=True)
class Consolidation:
    """What a consolidation has done so far."""

    merged: int = 0
    superseded: int = 0
    expired: int = 0
    finished: bool = True
    """False where time ran out: the next one goes on where this one stopped."""

    def and_then(self, batch: Consolidated) -> Consolidation:
        return Consolidation(
            merged=self.merged + len(batch.merged),
            superseded=self.superseded + len(batch.superseded),
            expired=self.expired + len(batch.expired),
            finished=not batch.last_crystal,
        )


class Consolidator:
    """Goes through the crystals of one resource."""

    def __init__(
        self, deep: DeepMemory, store: Store, stream: Stream[ResourceState], resource: str, clock: Clock
    ) -> None:
        self._deep, self._store, self._stream, self._clock = deep, store, stream, clock
        self._resource = resource

    def due(self, *, every_seconds: float, finished: datetime | None = None) -> bool:
        """Has it not been done for so long, or was it left in the middle?

        `finished`: when whoever asks has last come to the end. The journal tells only of passes that found something.
        """
        last = self._last()
        if last is not None and last[0]:
            return True
        done = [moment for moment in (finished, last and last[1]) if moment is not None]
        return not done or (self._clock() - max(done)).total_seconds() >= every_seconds

    @property
    def is_midway(self) -> bool:
        """Was the last one left in the middle, by whomever?"""
        last = self._last()
        return last is not None and bool(last[0])

    def run(self, *, seconds: float | None = None) -> Consolidation:
        """Go on where the last one stopped, to the end or until the time is over.

        The time is looked at between batches. Reading what was written down and deciding on it comes before the first
        of them, and takes as long as it takes.
        """
        began = time.monotonic()
        last = self._last()
        upto = last[0] if last else ""
        # What was decided is held back until more is: so the last of a pass also tells that it came to its end.
        done, held = Consolidation(), Consolidated(upto)
        for batch in self._batches(upto):
            if _decides(held) and _decides(batch):
                self._commit(held)
                upto, held = held.last_crystal, batch
            else:
                held = replace(held if _decides(held) else batch, last_crystal=batch.last_crystal)
            done = done.and_then(batch)
            if seconds is not None and time.monotonic() - began >= seconds:
                break
        if _decides(held) or held.last_crystal != upto:
            self._commit(held)
        return done

    def _last(self) -> tuple[str, datetime] | None:
        """Where the last batch ended, and when it was."""
        for event in reversed(self._store.read(self._stream.name, kind=Consolidated.kind)):
            if isinstance(event.payload, Consolidated):
                return event.payload.last_crystal, event.at
        return None

    def _commit(self, batch: Consolidated) -> None:
        self._stream.append(Draft(payload=batch, origin=Origin.OPERATOR))

    def _batches(self, upto: str) -> Iterator[Consolidated]:
        """What is to be done from there on; the last batch, and no other, comes to the end of the pass."""
        now, resumed = self._clock(), self._deep.record(upto) if upto else None
        made = 0
        if resumed is not None and resumed.source != "memory":
            made = resumed.made
        else:
            yield from in_batches(plan(self._deep.written(self._resource), now=now), AT_A_TIME)
        while len(records := self._deep.fading(self._resource, made, AT_A_TIME)) == AT_A_TIME:
            made = records[-1].made
            yield Consolidated(records[-1].id, expired=self._faded(records, now))
        yield Consolidated("", expired=self._faded(records, now))

    def _faded(self, records: Sequence[Record], now: datetime) -> tuple[str, ...]:
        """What was said in sessions and is worth nothing by now."""
        return tuple(record.id for record in records if expires(record.crystal("", self._resource), now))


def _decides(batch: Consolidated) -> bool:
    return bool(batch.merged or batch.superseded or batch.expired)
