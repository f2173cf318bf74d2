"""Consolidation, carried out: batch by batch, each a commit, so that it can stop anywhere and go on there.

What becomes of which crystal is decided in `crystals/consolidate`. First everything that was written down is gone
through, then what was said in sessions and may fade. Where the last batch ended stands in the journal; a pass that
found nothing to do leaves nothing there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from inmind.crystals.consolidate import plan
from inmind.crystals.score import expires
from inmind.deep import DeepMemory
from inmind.frozen import frozen
from inmind.journal import Consolidated, Draft, Origin
from inmind.mind import Belongings
from inmind.stores.base import Clock, Store
from inmind.stores.index import Record
from inmind.stores.stream import Stream

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


class Consolidator:
    """Goes through the crystals of one resource."""

    def __init__(self, deep: DeepMemory, store: Store, stream: Stream[Belongings], resource: str, clock: Clock) -> None:
        self._deep, self._store, self._stream, self._clock = deep, store, stream, clock
        self._resource = resource

    def due(self, *, every_seconds: float) -> bool:
        """Has it not been done for so long, or was it left in the middle?"""
        last = self._last()
        return last is None or bool(last[0]) or (self._clock() - last[1]).total_seconds() >= every_seconds

    def run(self, *, seconds: float | None = None) -> Consolidation:
        """Go on where the last one stopped, to the end or until the time is over."""
        began = time.monotonic()
        last = self._last()
        after = last[0] if last else ""
        done = Consolidation()
        while True:
            decided = self._batch(after)
            if decided.upto or decided.merged or decided.superseded or decided.expired or after:
                self._stream.append(Draft(what=decided, origin=Origin.OPERATOR))
            after = decided.upto
            done = Consolidation(
                merged=done.merged + len(decided.merged),
                superseded=done.superseded + len(decided.superseded),
                expired=done.expired + len(decided.expired),
                finished=not after,
            )
            if not after or (seconds is not None and time.monotonic() - began >= seconds):
                return done

    def _last(self) -> tuple[str, datetime] | None:
        """Where the last batch ended, and when it was."""
        for event in reversed(self._store.read(self._stream.name, kind=Consolidated.kind)):
            if isinstance(event.what, Consolidated):
                return event.what.upto, event.at
        return None

    def _batch(self, after: str) -> Consolidated:
        now, resumed = self._clock(), self._deep.record(after) if after else None
        if resumed is None or resumed.source == "memory":
            written = plan(self._deep.written(self._resource), now=now, after=after, most=AT_A_TIME)
            if written.upto:
                return written
            said = self._faded(None, now)
            return Consolidated(
                upto=said.upto,
                merged=written.merged,
                superseded=written.superseded,
                expired=(*written.expired, *said.expired),
            )
        return self._faded(resumed, now)

    def _faded(self, after: Record | None, now: datetime) -> Consolidated:
        """What was said in sessions and is worth nothing by now, of the next so many."""
        records: Sequence[Record] = self._deep.fading(self._resource, after.made if after else 0, AT_A_TIME)
        expired = tuple(record.id for record in records if expires(record.crystal("", self._resource), now))
        return Consolidated(upto=records[-1].id if len(records) == AT_A_TIME else "", expired=expired)
