"""Background embedding of crystals.

Any caller embeds crystals without vectors: a search for a short time, a host after writing, a worker until none is
left. A claim keeps two processes from paying for the same text.
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
"""Crystals embedded at once: normally, and while a caller waits."""

MAX_MISSING = 8
"""Number of crystals that may be without vectors while search by meaning is used."""

SEARCH_WAIT_SECONDS = 0.2
"""Time that a search spends on embedding new crystals."""

POLL_SECONDS = 0.005
"""Interval for checking whether another process finished embedding."""

BACKOFF_SECONDS = 30
"""Time during which searches do not call an embedder that failed slowly."""

MAX_REFUSED_TEXTS = 4
"""Consecutive refused texts after which the embedder is considered broken."""

USE_RECORD_INTERVAL = timedelta(hours=1)
"""Interval at which a process records which embedder it uses."""

UNUSED_AFTER = timedelta(days=1)
"""Time after which vectors of an unused embedder are deleted.

While machines are updated one by one, both are used."""

DELETE_BATCH_SIZE = 50
"""Resources whose vectors are deleted in one transaction."""


class CrystalEmbedder:
    """Embeds the crystals of one index with one embedder."""

    def __init__(
        self, embedder: Embedder, index: SearchIndex, texts: Callable[[Iterable[Record]], dict[int, str]], clock: Clock
    ) -> None:
        """`texts` returns the texts of crystals by `made`."""
        self._embedder, self._index, self._texts, self._clock = embedder, index, texts, clock
        self._backoff_until = 0.0
        self._use_recorded_at: datetime | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    # -- queries -------------------------------------------------------------------------------------------

    def embed_query(self, text: str) -> Sequence[float] | None:
        """Embed a query; None if the embedder is unavailable and search uses words only."""
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
        """Return True if nearly all crystals have vectors.

        Otherwise crystals with vectors would outrank those without.
        """
        if scope.newest_crystal <= scope.embedded_upto:
            return True
        return len(self._index.unembedded_records(self.name, scope.id, MAX_MISSING)) < MAX_MISSING

    def count_lagging(self, limit: int) -> int:
        """Return the number of resources with crystals to embed, at most `limit`."""
        if not self._index.stores_vectors:
            return 0
        self._record_use(self._clock())
        return len(self._index.lagging_resources(self.name, limit))

    # -- embedding -----------------------------------------------------------------------------------------

    def embed_resources(self, resources: Iterable[int], *, until: float | None = None) -> bool:
        """Embed the crystals of some resources until `until`.

        Returns True if nothing is left; crystals claimed by another process count as left.
        """
        if not self._index.stores_vectors:
            return True
        is_complete = True
        for resource in resources:
            is_complete &= self._embed_resource(resource, until) == "all"
            if until is not None and time.monotonic() > until:
                return False
        return is_complete

    def embed_all(self, *, until: float | None = None) -> bool:
        """Embed all crystals of the index that no other process has claimed."""
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

    def embed_briefly(self, scopes: list[Scope]) -> tuple[list[Scope], list[str]]:
        """Embed new crystals for at most SEARCH_WAIT_SECONDS.

        Returns the updated scopes and the names of resources that are not complete.
        """
        if not self._index.stores_vectors or self._is_backing_off:
            return scopes, []
        started_at, updated, now = time.monotonic(), list(scopes), self._clock()
        try:
            if self._use_recorded_at is None or abs(now - self._use_recorded_at) > USE_RECORD_INTERVAL:
                self._record_use(now)
            for index, scope in enumerate(scopes):
                if scope.newest_crystal > scope.embedded_upto:
                    if not self._embed_or_wait(scope.id, started_at + SEARCH_WAIT_SECONDS):
                        break
                    updated[index] = replace(scope, embedded_upto=scope.newest_crystal)
        except InmindError as error:
            self._back_off(error, since=started_at)
        return updated, [scope.name for scope in updated if scope.newest_crystal > scope.embedded_upto]

    def delete_unused_vectors(self, *, until: float) -> bool:
        """Delete vectors of unused embedders, after this one is complete.

        Returns True if none are left.
        """
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
        passages = [pair for record in live for pair in passages_of(record, texts.get(record.made, ""))]
        rows = _embed_texts(self._embedder, [text for _, text in passages])
        vectors = [(passage, list(row)) for (passage, _), row in zip(passages, rows, strict=True) if row is not None]
        self._index.store_vectors(self.name, resource, upto=records[-1].made, vectors=vectors, now=self._clock())

    def _record_use(self, now: datetime) -> None:
        """Record that this embedder is used. A read-only store deletes nothing either."""
        with suppress(ReadOnly):
            self._index.record_embedder_use(self.name, now)
        self._use_recorded_at = now

    @property
    def _is_backing_off(self) -> bool:
        """True for a while after a search waited for an embedder that failed."""
        return time.monotonic() < self._backoff_until

    def _back_off(self, error: InmindError, *, since: float) -> None:
        log.warning("embedder failed, searching by words only: %s", error)
        if time.monotonic() - since > SEARCH_WAIT_SECONDS:
            self._backoff_until = time.monotonic() + BACKOFF_SECONDS


def _embed_texts(embedder: Embedder, texts: Sequence[str]) -> list[Iterable[float] | None]:
    """Return a vector for each text, or None for a text that the embedder refuses.

    A refused text is found by its words. An embedder that refuses all texts is broken and is called again later.
    """
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
            rows.extend(embedder.embed([text]))  # not +=: numpy would add the array to each element
        except ModelFailed as error:
            log.warning("embedder refused a text, it has no vector: %s", error)
            rows.append(None)
            if len(rows) >= MAX_REFUSED_TEXTS and not any(row is not None for row in rows):
                raise
    if not any(row is not None for row in rows):
        raise ModelFailed(reason="the embedder refused every text")
    return rows
