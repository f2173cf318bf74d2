"""Deep memory: asked, kept current, and consolidated.

What is found is decided by pure functions in `crystals`; here the index is brought up to date, asked for what those
functions need, and the words of what was found are read from the journal. Vectors are made behind everybody's back: a
search never waits for more than a moment of that, and finds by words what has no vector yet.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from heapq import nlargest
from typing import Concatenate, ParamSpec, TypeVar

from inmind.crystals.asked import Asked, asked
from inmind.crystals.crystal import Crystal
from inmind.crystals.embed import Embedder
from inmind.crystals.glean import Said, gleaned
from inmind.crystals.passages import passages
from inmind.crystals.query import Hit, Query
from inmind.crystals.rank import TOLD_LATE, Field, Placed, brevity, by_meaning, by_words, gathered, ranked, rarity
from inmind.crystals.score import worth
from inmind.crystals.telling import beside
from inmind.crystals.when import Span
from inmind.documents import OVERVIEW
from inmind.errors import Damaged, InmindError, ModelFailed, NotFound
from inmind.frozen import frozen
from inmind.journal import Event, MessageAdded, microseconds, moment
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Text
from inmind.stores.base import Clock, Store
from inmind.stores.following import Read
from inmind.stores.fork import tell_after_fork
from inmind.stores.index import COMMON, Holding, Index, Scope
from inmind.stores.numbers import best_passages, conversation_of, crystal_of, place_of, series_of
from inmind.stores.records import Record, passages_of

log = logging.getLogger("inmind")

P = ParamSpec("P")
T = TypeVar("T")

BEST_BY_WORDS, BEST_BY_MEANING = 600, 300
"""Passages that can bring their crystals and what stands by them to the front."""

LOOKED_AT, IN_SPAN = 64, 300
"""Crystals that are looked at closely: the most promising ones, and those of the days that are meant."""

FEW = 20
"""Passages of which nothing can be said about how close any of them is to anything."""

UNRELATED = 0.15
"""A cosine that texts have which share nothing but their language."""

PATIENT = 4
"""Texts in a row that an embedder may refuse, before it is taken to be out of order."""

FEW_LEFT = 8
"""Crystals that may be without vectors while others are found by theirs."""

REST = 30
"""Seconds in which an embedder that took long to fail is not asked by those who search."""

EMBEDDED_TOGETHER = 64
PATIENCE = 0.2
"""Seconds that a search spends on vectors of what has just come in."""

MOST_INDEXES = 4
"""That are asked for one answer, each made after the one before was lost."""

AT_A_TIME = 400
"""Crystals that are looked up together, where filters let only some pass."""

CLOSE = 8
"""Events that are read along, rather than to ask once more."""

AROUND = 200
"""Characters of a line that is shown because it stands beside one that was found."""


@frozen
class _Found:
    """What the index knows of a query in one resource."""

    words: dict[int, float]
    """What crystals are worth by the words that they share with it."""
    meaning: dict[int, float]
    """What they are worth by being close to it."""
    passage: dict[int, int]
    """The passage of each that is worth the most."""
    strength: float
    """How good the best of them is, on a scale that holds across resources."""

    @property
    def own(self) -> dict[int, float]:
        """What they are worth by themselves."""
        own = dict(self.words)
        for number, close in self.meaning.items():
            own[number] = own.get(number, 0.0) + close
        return own


@frozen
class _Answer:
    score: float
    parts: Mapping[str, float]
    record: Record
    resource: str
    passage: int


def _on_a_sound_index(asked: Callable[Concatenate[DeepMemory, P], T]) -> Callable[Concatenate[DeepMemory, P], T]:
    """An index that turns out to be damaged is made anew, and asked again: nothing was in it alone.

    So is one that another process has made anew meanwhile, of which half the answer may be missing.
    """

    @wraps(asked)
    def answered(deep: DeepMemory, *args: P.args, **kwargs: P.kwargs) -> T:
        index = deep._index  # pyright: ignore[reportPrivateUsage] -- it is the class's own
        for _ in range(MOST_INDEXES - 1):
            try:
                before = index.identity()
                try:
                    answer = asked(deep, *args, **kwargs)
                except NotFound:
                    if index.identity() == before:
                        raise
                else:
                    if index.identity() == before:
                        return answer
            except Damaged as error:
                if error.place != str(index.path):
                    raise
                index.start_anew(error.reason)
        return asked(deep, *args, **kwargs)

    return answered


class DeepMemory:
    """The crystals of one home."""

    def __init__(self, index: Index, store: Store, read: Read, clock: Clock, embedder: Embedder | None = None) -> None:
        self._index, self._store, self._read, self._clock = index, store, read, clock
        self.embedder = embedder
        self._rests_until = 0.0
        self.behind = False
        """There was not time enough to embed all that a search could have found by its meaning."""
        self._matrices: dict[int, _Matrix] = {}
        self._hidden_of: dict[int, tuple[tuple[bytes, int], frozenset[int]]] = {}
        self._lock = threading.Lock()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been filling a matrix: the child makes its own."""
        self._lock = threading.Lock()
        self._matrices.clear()

    # -- asking --------------------------------------------------------------------------------------------

    @_on_a_sound_index
    def search(self, query: Query, resources: Sequence[str] | None = None) -> list[Hit]:
        """The best answers, the best first; of some resources, or of all there are."""
        self._index.catch_up()
        self._embed_for_a_moment()
        now = query.as_of or self._clock()
        found: list[_Answer] = []
        for name in self._index.resources() if resources is None else resources:
            if scope := self._index.scope(name):
                found += self._ranked(query, scope, now)
        return self._shown(nlargest(query.limit, found, key=lambda one: (one.score, one.record.at)), query)

    @_on_a_sound_index
    def crystal(self, id: str) -> Crystal:
        """One crystal, as it stands now."""
        self._index.catch_up()
        record = self._index.known(id)
        if record is None:
            raise NotFound(what="crystal", name=id)
        return self._crystal(record)

    @_on_a_sound_index
    def record(self, id: str) -> Record | None:
        """What the index knows of a crystal."""
        self._index.catch_up()
        return self._index.known(id)

    @_on_a_sound_index
    def written(self, resource: str) -> list[Crystal]:
        """All that was written down in a resource."""
        self._index.catch_up()
        scope = self._index.scope(resource)
        records = self._index.written(scope) if scope else []
        texts = self._texts(records)
        return [record.crystal(texts.get(record.number, ""), resource) for record in records]

    @_on_a_sound_index
    def of_events(self, events: Sequence[str]) -> list[Record]:
        """What the index knows of the crystals of some events."""
        self._index.catch_up()
        return self._index.of_events(events)

    @_on_a_sound_index
    def fresh(self, resource: str, since: datetime, most: int) -> int:
        """How many crystals a resource has that were said since then, of at most so many."""
        self._index.catch_up()
        scope = self._index.scope(resource)
        return self._index.fresh(scope, since, most) if scope else 0

    @_on_a_sound_index
    def fading(self, resource: str, made: int, most: int) -> list[Record]:
        scope = self._index.scope(resource)
        return self._index.fading(scope, made, most) if scope else []

    @_on_a_sound_index
    def resources(self) -> list[str]:
        """Everybody who has crystals."""
        self._index.catch_up()
        return self._index.resources()

    @_on_a_sound_index
    def catch_up(self) -> None:
        self._index.catch_up()

    @_on_a_sound_index
    def forget_other_vectors(self) -> None:
        """Vectors of embedders that are no longer in use, once all is embedded by the one that is."""
        if self.embedder is not None and self.embed():
            self._index.forget_others(self.embedder.name)

    def close(self) -> None:
        self._index.close()

    def _ranked(self, query: Query, scope: Scope, now: datetime) -> list[_Answer]:
        question = asked(query.text, now=now, speakers=self._index.speakers(scope))
        found = self._found(question, query, scope)
        field = Field(self._visible(found.own, query), conversation_of)
        records = {record.number: record for record in self._candidates(field, question, query, scope)}
        placed = [_placed(record, now, query) for record in records.values()]
        return [
            _Answer(
                one.score * found.strength,
                {"words": found.words.get(one.number, 0.0), "meaning": found.meaning.get(one.number, 0.0), **one.parts},
                records[one.number],
                scope.name,
                found.passage.get(one.number, 0),
            )
            for one in ranked(placed, field, question, query.limit)
        ] or [
            _Answer(0.0, {}, record, scope.name, 0)
            for record in sorted(records.values(), key=lambda one: -one.at)[: query.limit]
            if not question.words
        ]

    def _visible(self, own: dict[int, float], query: Query) -> dict[int, float]:
        """Without what this query may not find: it must not bring up what stands beside it."""
        if query.as_of is None and not query.without:
            return own
        best = nlargest(_wide(2 * LOOKED_AT, query), own, key=own.__getitem__)
        unseen = {record.number for record in self._index.records(best) if not _is_visible(record, query)}
        return {number: worth for number, worth in own.items() if number not in unseen}

    def _hidden(self, scope: Scope, query: Query) -> frozenset[int]:
        """Crystals that are found no more. As of an earlier day others were: then each is looked at by itself."""
        if query.as_of is not None or not scope.hidden:
            return frozenset()
        mark = (self._index.identity(), scope.hidden)
        known = self._hidden_of.get(scope.id)
        if known is None or known[0] != mark:
            known = self._hidden_of[scope.id] = (mark, self._index.hidden(scope))
        return known[1]

    def _holding(self, scope: Scope, query: Query, words: Iterable[str]) -> dict[str, Holding]:
        """Where words stand that can be found. A word that very many hold is looked up only where no other is."""
        found = {word: self._index.holding(scope, word, every=query.narrow) for word in words}
        if not query.narrow:
            found = {word: held for word, held in found.items() if held.count < COMMON} or found
        hidden = self._hidden(scope, query)
        inside = self._index.series_of(f"session/{query.session}") if query.session else None
        if not hidden and inside is None:
            return found
        return {
            word: Holding(
                held.count,
                [
                    passage
                    for passage in held.passages
                    if crystal_of(passage) not in hidden and (inside is None or series_of(passage) in inside)
                ],
            )
            for word, held in found.items()
        }

    def _found(self, question: Asked, query: Query, scope: Scope) -> _Found:
        """Passages by words and by meaning, and what their crystals come to."""
        held = self._holding(scope, query, question.words)
        gains = {word: question.words[word] * rarity(found.count, scope.passages) for word, found in held.items()}
        gained = gathered(
            [(gains[word], found.passages) for word, found in held.items()], most=_wide(BEST_BY_WORDS, query)
        )
        passages = best_passages(gained, brevity)
        lexical = {crystal: worth for crystal, (worth, _) in passages.items()}
        best = {crystal: place_of(passage) for crystal, (_, passage) in passages.items()}
        meaning, floor = self._meaning(query, scope, best)
        words, meant = by_words(lexical, alone=not meaning), by_meaning(meaning, floor=floor)
        covered = max(lexical.values(), default=0.0) / (sum(gains.values()) * brevity(1)) if lexical else 0.0
        return _Found(words, meant, best, max(covered, max(meaning.values(), default=0.0), 1e-9))

    def _meaning(self, query: Query, scope: Scope, best: dict[int, int]) -> tuple[dict[int, float], float]:
        """How close the closest crystals are, and how close one has to be to be closer than others."""
        if self.embedder is None or not query.text.strip() or self._resting:
            return {}, 0.0
        if self.behind and self._index.behind(self.embedder.name, scope, FEW_LEFT) == FEW_LEFT:
            return {}, 0.0  # what has a vector must not outrank what will have one
        began = time.monotonic()
        try:
            (vector,) = self.embedder.embed([query.text])
        except InmindError as error:
            self._rest(error, since=began)
            return {}, 0.0
        with self._lock:
            matrix = self._matrix(self.embedder, scope)
            held, near = len(matrix), matrix.nearest(vector, _wide(BEST_BY_MEANING, query))
        meaning: dict[int, float] = {}
        hidden = self._hidden(scope, query)
        for passage, cosine in near:
            crystal = crystal_of(passage)
            if crystal not in meaning and crystal not in hidden:
                meaning[crystal] = cosine
                best.setdefault(crystal, place_of(passage))
        usual = min(BEST_BY_MEANING, held // 2)
        return meaning, max(near[usual - 1][1] if held >= FEW else 0.0, UNRELATED)

    def _candidates(self, field: Field, question: Asked, query: Query, scope: Scope) -> list[Record]:
        """Those worth a closer look, that stand and pass the filters: a narrow query looks at more to find enough."""
        span = question.span
        amid = self._index.amid(scope, Span(span.first, span.before + TOLD_LATE), IN_SPAN) if span else []
        numbers = list(dict.fromkeys((*field.promising(_wide(LOOKED_AT, query)), *amid)))
        if not numbers and query.narrow:  # whoever asks for nothing in particular is shown what came last
            numbers = self._index.amid(scope, _any_time(query), IN_SPAN)
        found: list[Record] = []
        for start in range(0, len(numbers), AT_A_TIME):
            seen = [one for one in self._index.records(numbers[start : start + AT_A_TIME]) if _is_visible(one, query)]
            found += [one for one in seen if not query.narrow or query.allows(one.crystal("", ""))]
            if query.narrow and len(found) >= LOOKED_AT:
                break
        return found

    def _shown(self, best: Sequence[_Answer], query: Query) -> list[Hit]:
        talking = [one.record.number for one in best if conversation_of(one.record.number) is not None]
        around = self._index.records(number + step for number in talking for step in (-1, 1))
        near = {record.number: record for record in around if _is_visible(record, query)}
        texts = self._texts([*(one.record for one in best), *near.values()])
        lines = {number: beside(record.crystal(texts.get(number, ""), ""), AROUND) for number, record in near.items()}
        hits: list[Hit] = []
        for one in best:
            number, text = one.record.number, texts.get(one.record.number, "")
            parts = passages(text)
            before, after = (lines.get(number + step, "") if number in talking else "" for step in (-1, 1))
            hits.append(
                Hit(
                    crystal=self._as_known(one.record, query).crystal(text, one.resource),
                    score=round(one.score, 4),
                    parts={name: round(value, 4) for name, value in one.parts.items()},
                    passage=parts[one.passage] if one.passage < len(parts) else text,
                    before=before,
                    after=after,
                )
            )
        return hits

    def _as_known(self, record: Record, query: Query) -> Record:
        return record.as_known(query.as_of, self._index.known(record.superseded_by)) if query.as_of else record

    def _crystal(self, record: Record) -> Crystal:
        names = {scope.id: scope.name for name in self._index.resources() if (scope := self._index.scope(name))}
        return record.crystal(self._text(record), names.get(record.resource, ""))

    def _text(self, record: Record) -> str:
        return self._texts([record]).get(record.number, "")

    def _texts(self, records: Iterable[Record]) -> dict[int, str]:
        """The words of crystals, out of the journal; lines that stand close together are read together."""
        wanted = {(record.event, record.part): record.number for record in records}
        named = {event for event, _ in wanted}
        texts: dict[int, str] = {}
        for stream, first, last in _runs(named):
            for event in self._events(stream, first, last):
                if event.id in named:
                    said = self._read(event.what) if isinstance(event.what, MessageAdded) else None
                    texts |= {
                        wanted[event.id, one.part]: one.text
                        for one in gleaned(event, said)
                        if (event.id, one.part) in wanted
                    }
        return texts

    def _events(self, stream: str, first: int, last: int) -> Sequence[Event]:
        """What is damaged among them is as good as not found."""
        try:
            return self._store.read(stream, after=first - 1, until=last)
        except Damaged:
            if first == last:
                return ()
        return [event for seq in range(first, last + 1) for event in self._events(stream, seq, seq)]

    # -- vectors -------------------------------------------------------------------------------------------

    @_on_a_sound_index
    def embed(self, *, seconds: float | None = None) -> bool:
        """Make vectors of what has none yet, as long as there is time. True when nothing is left to do."""
        if self.embedder is None:
            return True
        self._index.catch_up()
        return self._embed_all(self.embedder, seconds)

    def _embed_all(self, embedder: Embedder, seconds: float | None) -> bool:
        began = time.monotonic()
        together = EMBEDDED_TOGETHER if seconds is None else 8
        while records := self._index.unembedded(embedder.name, together):
            self._embed(embedder, records)
            if seconds is not None and time.monotonic() - began > seconds:
                return False
        return True

    def _embed(self, embedder: Embedder, records: Sequence[Record]) -> None:
        import numpy as np  # comes with whatever brought the embedder

        wanted = [
            (record.resource, number, text)
            for record in records
            if not record.gone
            for number, text in passages_of(record, self._text(record))
        ]
        rows = _embedded(embedder, [text for _, _, text in wanted])
        made = [
            (resource, number, np.asarray(row, np.float16).tobytes())
            for (resource, number, _), row in zip(wanted, rows, strict=True)
            if row is not None
        ]
        self._index.embedded(embedder.name, upto=records[-1].made, vectors=made)

    def _embed_for_a_moment(self) -> None:
        if self.embedder is None or self._resting:
            return
        began = time.monotonic()
        try:
            self.behind = not self._embed_all(self.embedder, PATIENCE)
        except InmindError as error:
            self.behind = True
            self._rest(error, since=began)

    @property
    def _resting(self) -> bool:
        """Has somebody who searched just waited in vain for the embedder? Then the next ones do not."""
        return time.monotonic() < self._rests_until

    def _rest(self, error: InmindError, *, since: float) -> None:
        log.warning("searching by words alone: %s", error)
        if time.monotonic() - since > PATIENCE:
            self._rests_until = time.monotonic() + REST

    def _matrix(self, embedder: Embedder, scope: Scope) -> _Matrix:
        matrix = self._matrices.get(scope.id)
        index = self._index.identity()
        if matrix is None or (matrix.embedder, matrix.index) != (embedder.name, index):
            matrix = self._matrices[scope.id] = _Matrix(embedder, index)
        matrix.refresh(self._index, scope)
        return matrix


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
            rows += embedder.embed([text])
        except ModelFailed as error:
            log.warning("a text has no vector: %s", error)
            rows.append(None)
            if len(rows) >= PATIENT and not any(row is not None for row in rows):
                raise
    if not any(row is not None for row in rows):
        raise ModelFailed(reason="the embedder takes none of what it is given")
    return rows


class _Matrix:
    """The vectors of one resource in memory, following those of the index."""

    def __init__(self, embedder: Embedder, index: bytes) -> None:
        from inmind.embedders.nearest import Nearest

        self.embedder, self.index = embedder.name, index
        self._nearest: Nearest = Nearest(embedder.dimensions)
        self._upto = 0

    def refresh(self, index: Index, scope: Scope) -> None:
        import numpy as np

        while rows := index.vectors(self.embedder, scope, after=self._upto, most=10_000):
            numbers = np.frombuffer(b"".join(vector for _, _, vector in rows), np.float16)
            self._nearest.add([passage for _, passage, _ in rows], numbers.reshape(len(rows), -1))
            self._upto = rows[-1][0]

    def __len__(self) -> int:
        return len(self._nearest)

    def nearest(self, vector: Iterable[float], most: int) -> list[tuple[int, float]]:
        import numpy as np

        return self._nearest.nearest(np.asarray(vector, np.float32), most)


def _runs(events: Iterable[str]) -> list[tuple[str, int, int]]:
    """Streams with the first and the last of events that stand close together there."""
    runs: list[tuple[str, int, int]] = []
    for stream, seq in sorted((stream, int(seq)) for stream, _, seq in (id.rpartition("#") for id in set(events))):
        if runs and runs[-1][0] == stream and seq - runs[-1][2] <= CLOSE:
            runs[-1] = (stream, runs[-1][1], seq)
        else:
            runs.append((stream, seq, seq))
    return runs


def reader(is_own: Callable[[str], bool]) -> Read:
    """How messages are read for deep memory. `is_own`: is a tool memory's own?

    What memory's tools were asked is memory's business, and is found as what came of it; but for the overview, which is
    no crystal itself, and whose earlier versions nobody would find.
    """

    def wanted(name: str, arguments: str) -> bool:
        return not is_own(name) or (name == "memory_write" and OVERVIEW in arguments)

    def read(message: MessageAdded) -> Said:
        said = FORMATS[message.format].read(message.wire)
        answers = (part.text for result in said.results for part in result.parts if isinstance(part, Text))
        name = message.wire.get("name")
        return Said(
            role=said.role if said.text or not said.results else "tool",
            name=name if isinstance(name, str) and said.role != "tool" else "",
            text="\n".join((*([said.text] if said.text else []), *answers)),
            calls=[(call.name, call.arguments) for call in said.calls if wanted(call.name, call.arguments)],
        )

    return read


def _placed(record: Record, now: datetime, query: Query) -> Placed:
    over = record.valid_to is not None and record.valid_to <= microseconds(now)
    frozen = record.lifecycle == "frozen"
    return Placed(
        number=record.number,
        words=record.words,
        role=record.role,
        speaker=record.speaker,
        at=moment(record.at),
        answers=bool(record.answers),
        worth=worth(
            kind=record.kind,
            importance=record.importance,
            valence=record.valence,
            accesses=record.accesses,
            age=timedelta() if frozen else now - record.last,
        ).total,
        superseded=query.as_of is None and (over or bool(record.superseded_by)),
    )


def _is_visible(record: Record, query: Query) -> bool:
    """May it be found, or quoted beside what is? As of a day, what was there then and was not taken back by then."""
    if record.event in query.without:
        return False
    if query.as_of is None:
        return record.found_again
    return record.stood(query.as_of) and moment(record.at) <= query.as_of


def _wide(most: int, query: Query) -> int:
    """How many to look at: where filters let only some pass, enough for those to be among them."""
    return 50 * most if query.narrow else most


def _any_time(query: Query) -> Span:
    return Span(query.since or datetime(1970, 1, 1, tzinfo=UTC), query.until or datetime(9999, 1, 1, tzinfo=UTC))
