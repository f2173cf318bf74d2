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
from inmind.search.index.base import Index, Scope
from inmind.search.index.record import Record, passages_of
from inmind.store.protocol import Clock

log = logging.getLogger("inmind")

TOGETHER, FEW = 64, 8
"""Crystals that are embedded together: where there is time, and where somebody waits."""

FEW_MISSING = 8
"""Crystals that may be without vectors while others are found by theirs."""

PATIENCE = 0.2
"""Seconds that a search spends on vectors of what has just come in."""

GLANCE = 0.005
"""Seconds between two looks at whether somebody else has made them."""

REST = 30
"""Seconds in which an embedder that took long to fail is not asked by those who search."""

PATIENT = 4
"""Texts in a row that an embedder may refuse, before it is taken to be out of order."""

IN_USE = timedelta(hours=1)
"""Between two times that a process says which embedder it uses."""

UNUSED = timedelta(days=1)
"""After which the vectors of an embedder are of no use: while machines are changed over one by one, both are."""

FORGOTTEN_TOGETHER = 50
"""Resources whose vectors are forgotten in one transaction."""


class Vectors:
    """Of one embedder, in one index."""

    def __init__(
        self, embedder: Embedder, index: Index, texts: Callable[[Iterable[Record]], dict[int, str]], clock: Clock
    ) -> None:
        """`texts`: the words of crystals, by `made`."""
        self._embedder, self._index, self._texts, self._clock = embedder, index, texts, clock
        self._rests_until = 0.0
        self._used: datetime | None = None

    @property
    def name(self) -> str:
        return self._embedder.name

    # -- asking --------------------------------------------------------------------------------------------

    def of_question(self, text: str) -> Sequence[float] | None:
        """None where that is not to be had now: searching goes by words alone."""
        if self._is_resting or not text.strip() or not self._index.takes_vectors:
            return None
        began = time.monotonic()
        try:
            (vector,) = self._embedder.embed([text])
        except InmindError as error:
            self._rest(error, since=began)
            return None
        return list(vector)

    def tell(self, scope: Scope) -> bool:
        """Whether what is close can be told by them: what has one must not outrank what will have one."""
        if scope.newest <= scope.embedded:
            return True
        return len(self._index.unembedded(self.name, scope.id, FEW_MISSING)) < FEW_MISSING

    def lacking(self, most: int) -> int:
        """How many resources have something that the embedder has not been through, of at most so many."""
        if not self._index.takes_vectors:
            return 0
        self._use(self._clock())
        return len(self._index.lagging(self.name, most))

    # -- making --------------------------------------------------------------------------------------------

    def make(self, resources: Iterable[int], *, until: float | None = None) -> bool:
        """Those of some resources, as long as there is time. True when nothing is left; what somebody else makes is."""
        if not self._index.takes_vectors:
            return True
        is_all = True
        for resource in resources:
            is_all &= self._make(resource, until) == "all"
            if until is not None and time.monotonic() > until:
                return False
        return is_all

    def make_all(self, *, until: float | None = None) -> bool:
        """The same, of everybody who is in the index, but for those whom somebody else sees to."""
        if not self._index.takes_vectors:
            return True
        self._use(self._clock())
        before: list[int] = []
        while (lagging := self._index.lagging(self.name, TOGETHER, free_at=self._clock())) and lagging != before:
            for resource in lagging:
                self._make(resource, until)
                if until is not None and time.monotonic() > until:
                    return False
            before = lagging
        return True

    def make_for_a_moment(self, scopes: Sequence[Scope]) -> tuple[Sequence[Scope], Sequence[str]]:
        """The same scopes, those embedded for which there was time; and the names of the others."""
        if not self._index.takes_vectors or self._is_resting:
            return scopes, ()
        began, done = time.monotonic(), list(scopes)
        try:
            self._use_now_and_then()
            for place, scope in enumerate(scopes):
                if scope.newest > scope.embedded:
                    if not self._made_by_anybody(scope.id, began + PATIENCE):
                        break
                    done[place] = replace(scope, embedded=scope.newest)
        except InmindError as error:
            self._rest(error, since=began)
        return done, [scope.name for scope in done if scope.newest > scope.embedded]

    def forget_others(self, *, until: float) -> bool:
        """Those of embedders that nobody uses any more, once there are all of this one. True when none are left."""
        if not self._index.takes_vectors or self.lacking(1):
            return True
        unused = self._clock() - UNUSED
        while not self._index.forget_others(self.name, unused_since=unused, most=FORGOTTEN_TOGETHER):
            if time.monotonic() > until:
                return False
        return True

    def _made_by_anybody(self, resource: int, until: float) -> bool:
        while (made := self._make(resource, until)) == "held" and time.monotonic() < until:
            time.sleep(GLANCE)
        return made == "all"

    def _make(self, resource: int, until: float | None) -> Literal["all", "some", "held"]:
        together = TOGETHER if until is None else FEW
        while records := self._index.claimed(self.name, resource, together, now=self._clock()):
            try:
                self._embed(resource, records)
            except BaseException:
                with suppress(StoreError):
                    self._index.let_go(self.name, resource)
                raise
            if len(records) < together:
                return "all"
            if until is not None and time.monotonic() > until:
                return "some"
        return "held" if records is None else "all"

    def _embed(self, resource: int, records: Sequence[Record]) -> None:
        standing = [record for record in records if not record.gone]
        texts = self._texts(standing)
        wanted = [one for record in standing for one in passages_of(record, texts.get(record.made, ""))]
        rows = _embedded(self._embedder, [text for _, text in wanted])
        made = [(passage, list(row)) for (passage, _), row in zip(wanted, rows, strict=True) if row is not None]
        self._index.embedded(self.name, resource, upto=records[-1].made, vectors=made, now=self._clock())

    def _use_now_and_then(self) -> None:
        now = self._clock()
        if self._used is None or abs(now - self._used) > IN_USE:
            self._use(now)

    def _use(self, now: datetime) -> None:
        """Say that somebody does; where nothing can be written, nobody forgets anything either."""
        with suppress(ReadOnly):
            self._index.use(self.name, now)
        self._used = now

    @property
    def _is_resting(self) -> bool:
        """Has somebody who searched just waited in vain for the embedder? Then the next ones do not."""
        return time.monotonic() < self._rests_until

    def _rest(self, error: InmindError, *, since: float) -> None:
        log.warning("searching by words alone: %s", error)
        if time.monotonic() - since > PATIENCE:
            self._rests_until = time.monotonic() + REST


def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Iterable[float] | None]:
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
            if len(rows) >= PATIENT and not any(row is not None for row in rows):
                raise
    if not any(row is not None for row in rows):
        raise ModelFailed(reason="the embedder takes none of what it is given")
    return rows
