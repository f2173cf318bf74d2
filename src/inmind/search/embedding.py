"""Vectors of crystals, made behind everybody's back.

Whoever has time makes those that are missing: a search for a moment, a host those of what it has just written, workers
all that there are. What somebody is making nobody else makes meanwhile, since an embedder may have to be paid.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal

from inmind.errors import InmindError, ModelFailed, ReadOnly, StoreError
from inmind.search.embedders.base import Embedder
from inmind.search.index.base import Scope, SearchIndex
from inmind.search.index.record import Record, passages_of
from inmind.store.protocol import Clock

log = logging.getLogger("inmind")

BATCH_SIZE, SMALL_BATCH_SIZE = 64, 8
"""Crystals that are embedded together: where there is time, and where somebody waits."""

MAX_MISSING = 8
"""Crystals that may be without vectors while others are found by theirs."""

SEARCH_WAIT_SECONDS = 0.2
"""Seconds that a search spends on vectors of what has just come in."""

POLL_SECONDS = 0.005
"""Seconds between two looks at whether somebody else has made them."""

BACKOFF_SECONDS = 30
"""Seconds in which an embedder that took long to fail is not asked by those who search."""

MAX_REFUSED_TEXTS = 4
"""Texts in a row that an embedder may refuse, before it is taken to be out of order."""

USE_RECORD_INTERVAL = timedelta(hours=1)
"""Between two times that a process says which embedder it uses."""

UNUSED_AFTER = timedelta(days=1)
"""After which the vectors of an embedder are of no use: while machines are changed over one by one, both are."""

DELETE_BATCH_SIZE = 50
"""Resources whose vectors are forgotten in one transaction."""


class CrystalEmbedder:
    """Of one embedder, in one index."""

    def __init__(
        self, embedder: Embedder, index: SearchIndex, texts: Callable[[Iterable[Record]], dict[int, str]], clock: Clock
    ) -> None:
        """`texts`: the words of crystals, by `made`."""
        self._embedder, self._index, self._texts, self._clock = embedder, index, texts, clock
        self._backoff_until = 0.0
        self._use_recorded_at: datetime | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    # -- asking --------------------------------------------------------------------------------------------

    def embed_query(self, text: str) -> Sequence[float] | None:
        """None where that is not to be had now: searching goes by words alone."""
        if self._is_backing_off or not text.strip() or not self._index.stores_vectors:
            return None
        started_at = time.monotonic()
        try:
            (vector,) = self._embedder.embed([text])
        except InmindError as error:
            self._back_off(error, since=started_at)
            return None
        return list(vector)

    def covers(self, scope: Scope) -> bool:
        """Whether what is close can be told by them: what has one must not outrank what will have one."""
        if scope.newest_crystal <= scope.embedded_upto:
            return True
        return len(self._index.unembedded_records(self.name, scope.id, MAX_MISSING)) < MAX_MISSING

    def count_lagging(self, limit: int) -> int:
        """How many resources have something that the embedder has not been through, of at most so many."""
        if not self._index.stores_vectors:
            return 0
        self._record_use(self._clock())
        return len(self._index.lagging_resources(self.name, limit))

    # -- making --------------------------------------------------------------------------------------------

    def embed_resources(self, resources: Iterable[int], *, until: float | None = None) -> bool:
        """Those of some resources, as long as there is time. True when nothing is left; what somebody else makes is."""
        if not self._index.stores_vectors:
            return True
        is_complete = True
        for resource in resources:
            is_complete &= self._embed_resource(resource, until) == "all"
            if until is not None and time.monotonic() > until:
                return False
        return is_complete

    def embed_all(self, *, until: float | None = None) -> bool:
        """The same, of everybody who is in the index, but for those whom somebody else sees to."""
        if not self._index.stores_vectors:
            return True
        self._record_use(self._clock())
        previous: list[int] = []
        while (
            lagging := self._index.lagging_resources(self.name, BATCH_SIZE, unclaimed_at=self._clock())
        ) and lagging != previous:
            for resource in lagging:
                self._embed_resource(resource, until)
                if until is not None and time.monotonic() > until:
                    return False
            previous = lagging
        return True

    def embed_briefly(self, scopes: Sequence[Scope]) -> tuple[Sequence[Scope], Sequence[str]]:
        """The same scopes, those embedded for which there was time; and the names of the others."""
        if not self._index.stores_vectors or self._is_backing_off:
            return scopes, ()
        started_at, updated = time.monotonic(), list(scopes)
        try:
            self._record_use_periodically()
            for index, scope in enumerate(scopes):
                if scope.newest_crystal > scope.embedded_upto:
                    if not self._embed_or_wait(scope.id, started_at + SEARCH_WAIT_SECONDS):
                        break
                    updated[index] = replace(scope, embedded_upto=scope.newest_crystal)
        except InmindError as error:
            self._back_off(error, since=started_at)
        return updated, [scope.name for scope in updated if scope.newest_crystal > scope.embedded_upto]

    def delete_unused_vectors(self, *, until: float) -> bool:
        """Those of embedders that nobody uses any more, once there are all of this one. True when none are left."""
        if not self._index.stores_vectors or self.count_lagging(1):
            return True
        unused = self._clock() - UNUSED_AFTER
        while not self._index.delete_unused_vectors(self.name, unused_since=unused, limit=DELETE_BATCH_SIZE):
            if time.monotonic() > until:
                return False
        return True

    def _embed_or_wait(self, resource: int, until: float) -> bool:
        while (outcome := self._embed_resource(resource, until)) == "held" and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        return outcome == "all"

    def _embed_resource(self, resource: int, until: float | None) -> Literal["all", "some", "held"]:
        batch_size = BATCH_SIZE if until is None else SMALL_BATCH_SIZE
        while records := self._index.claim_unembedded(self.name, resource, batch_size, now=self._clock()):
            try:
                self._embed_records(resource, records)
            except BaseException:
                with suppress(StoreError):
                    self._index.release_claim(self.name, resource)
                raise
            if len(records) < batch_size:
                return "all"
            if until is not None and time.monotonic() > until:
                return "some"
        return "held" if records is None else "all"

    def _embed_records(self, resource: int, records: Sequence[Record]) -> None:
        live = [record for record in records if not record.gone]
        texts = self._texts(live)
        passages = [one for record in live for one in passages_of(record, texts.get(record.made, ""))]
        rows = _embed_texts(self._embedder, [text for _, text in passages])
        vectors = [(passage, list(row)) for (passage, _), row in zip(passages, rows, strict=True) if row is not None]
        self._index.store_vectors(self.name, resource, upto=records[-1].made, vectors=vectors, now=self._clock())

    def _record_use_periodically(self) -> None:
        now = self._clock()
        if self._use_recorded_at is None or abs(now - self._use_recorded_at) > USE_RECORD_INTERVAL:
            self._record_use(now)

    def _record_use(self, now: datetime) -> None:
        """Say that somebody does; where nothing can be written, nobody forgets anything either."""
        with suppress(ReadOnly):
            self._index.record_embedder_use(self.name, now)
        self._use_recorded_at = now

    @property
    def _is_backing_off(self) -> bool:
        """Has somebody who searched just waited in vain for the embedder? Then the next ones do not."""
        return time.monotonic() < self._backoff_until

    def _back_off(self, error: InmindError, *, since: float) -> None:
        log.warning("searching by words alone: %s", error)
        if time.monotonic() - since > SEARCH_WAIT_SECONDS:
            self._backoff_until = time.monotonic() + BACKOFF_SECONDS


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> list[Iterable[float] | None]:
    """A vector for each text. One that the embedder refuses has none, and is found by its words; but one that refuses
    all of them is out of order, and will be asked again."""
    if not texts:
        return []
    try:
        return list(embedder.embed(texts))
    except ModelFailed:
        if len(texts) == 1:
            raise
    rows: list[Iterable[float] | None] = []
    for text in texts:
        try:
            rows.extend(embedder.embed([text]))  # not +=: an array would be added to the list, number by number
        except ModelFailed as error:
            log.warning("a text has no vector: %s", error)
            rows.append(None)
            if len(rows) >= MAX_REFUSED_TEXTS and not any(row is not None for row in rows):
                raise
    if not any(row is not None for row in rows):
        raise ModelFailed(reason="the embedder takes none of what it is given")
    return rows
