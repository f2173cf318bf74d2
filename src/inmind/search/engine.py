"""Deep memory: asked, kept current, and consolidated.

What is found is decided by pure functions in `crystals`; here the index is brought up to date, asked for what those
functions need, and the words of what was found are read from the journal. Vectors are made elsewhere (`vectors`): a
search never waits for more than a moment of that, and finds by words what has no vector yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from heapq import nlargest
from typing import Concatenate, ParamSpec, TypeVar

from inmind.core.events.base import Event
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Text
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.documents.document import OVERVIEW_PATH
from inmind.errors import Damaged, NotFound
from inmind.search.crystal import Crystal
from inmind.search.dates import Span
from inmind.search.decay import worth
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import Vectors
from inmind.search.extract import Said, gleaned
from inmind.search.index.base import COMMON, Holding, Index, Scope
from inmind.search.index.ids import best_passages, conversation_of, crystal_of, place_of, series_of
from inmind.search.index.indexer import Read
from inmind.search.index.record import Record, named_by
from inmind.search.passages import passages
from inmind.search.query import Hit, Query
from inmind.search.query_parse import Asked, asked
from inmind.search.rank import TOLD_LATE, Field, Placed, brevity, by_meaning, by_words, gathered, ranked, rarity
from inmind.search.render import beside
from inmind.search.vector_search import Matrices, Measured
from inmind.store.protocol import Clock, Store

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

MOST_INDEXES = 4
"""That are asked for one answer, each made after the one before was lost."""

MOST_REMEMBERED = 1_000
"""Resources of which is remembered what is hidden."""

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
                before = index.seen_identity()
                try:
                    answer = asked(deep, *args, **kwargs)
                except NotFound:
                    if index.identity() == before:
                        raise
                else:
                    if index.identity() == before:
                        return answer
            except Damaged as error:
                if error.place != index.place:
                    raise
                index.start_anew(error.reason)
        return asked(deep, *args, **kwargs)

    return answered


class DeepMemory:
    """The crystals of one home."""

    def __init__(self, index: Index, store: Store, read: Read, clock: Clock, embedder: Embedder | None = None) -> None:
        self._index, self._store, self._read, self._clock = index, store, read, clock
        self.vectors = None if embedder is None else Vectors(embedder, index, self._texts, clock)
        self.behind: Sequence[str] = ()
        """Resources of which the last search could have found more by its meaning: there was not time enough."""
        self._measuring = Measured(index) if index.compares else Matrices(index)
        self._hidden_of: dict[int, tuple[tuple[bytes, int], frozenset[int]]] = {}

    # -- asking --------------------------------------------------------------------------------------------

    @_on_a_sound_index
    def search(self, query: Query, resources: Sequence[str] | None = None) -> list[Hit]:
        """The best answers, the best first; of some resources, or of all there are."""
        wanted = self._everybody() if resources is None else resources
        scopes: Sequence[Scope] = self._index.caught_up(wanted, embedder=self.vectors.name if self.vectors else "")
        if self.vectors is not None:
            scopes, self.behind = self.vectors.make_for_a_moment(scopes)
        now = query.as_of or self._clock()
        found = [one for scope in scopes for one in self._ranked(query, scope, now)]
        return self._shown(nlargest(query.limit, found, key=lambda one: (one.score, one.record.at)), query)

    @_on_a_sound_index
    def crystal(self, id: str) -> Crystal:
        """One crystal, as it stands now."""
        self._catch_up_with([id])
        record = self._index.known(id)
        if record is None:
            raise NotFound(what="crystal", name=id)
        return self._crystal(record)

    @_on_a_sound_index
    def record(self, id: str) -> Record | None:
        """What the index knows of a crystal."""
        self._catch_up_with([id])
        return self._index.known(id)

    @_on_a_sound_index
    def written(self, resource: str) -> list[Crystal]:
        """All that was written down in a resource."""
        records = [record for scope in self._index.caught_up([resource]) for record in self._index.written(scope)]
        texts = self._texts(records)
        return [record.crystal(texts.get(record.made, ""), resource) for record in records]

    @_on_a_sound_index
    def of_events(self, events: Sequence[str]) -> list[Record]:
        """What the index knows of the crystals of some events."""
        self._catch_up_with(events)
        return self._index.of_events(events)

    @_on_a_sound_index
    def fresh(self, resource: str, since: datetime, most: int) -> int:
        """How many crystals a resource has that were said since then, of at most so many."""
        return sum(self._index.fresh(scope, since, most) for scope in self._index.caught_up([resource]))

    @_on_a_sound_index
    def fading(self, resource: str, made: int, most: int) -> list[Record]:
        return [one for scope in self._index.scopes([resource]) for one in self._index.fading(scope, made, most)]

    @_on_a_sound_index
    def resources(self) -> list[str]:
        """Everybody who has crystals, as far as they were taken in."""
        return self._index.resources()

    @_on_a_sound_index
    def catch_up(self, resources: Sequence[str] | None = None, *, until: float | None = None) -> bool:
        """Take in what is new of some resources, or of all as long as there is time. True when nothing is left."""
        return self._index.catch_up(resources, until=until)

    @_on_a_sound_index
    def with_news(self, *, after: str = "", most: int) -> list[str]:
        """Resources of which something has happened that is not found yet: so many, by name, behind one."""
        return self._index.with_news(after, most)

    @_on_a_sound_index
    def without_vectors(self, most: int) -> int:
        """How many resources have something that an embedder has not been through, of at most so many."""
        return self.vectors.lacking(most) if self.vectors else 0

    @_on_a_sound_index
    def embed(self, resources: Sequence[str] | None = None, *, seconds: float | None = None) -> bool:
        """Make vectors of what has none yet, of some resources or of all, as long as there is time. True when nothing
        is left.
        """
        if self.vectors is None:
            return True
        until = None if seconds is None else time.monotonic() + seconds
        if resources is not None:
            return self.vectors.make((scope.id for scope in self._index.caught_up(resources)), until=until)
        return self._index.catch_up(until=until) and self.vectors.make_all(until=until)

    @_on_a_sound_index
    def forget_other_vectors(self, *, seconds: float) -> bool:
        """Those of embedders that nobody uses any more, as long as there is time. True when none are left."""
        return self.vectors is None or self.vectors.forget_others(until=time.monotonic() + seconds)

    def close(self) -> None:
        self._index.close()

    def _everybody(self) -> list[str]:
        self._index.catch_up()
        return self._index.resources()

    def _catch_up_with(self, ids: Iterable[str]) -> None:
        """Whosever these crystals or events are."""
        named = (named_by(id) for id in ids)
        self._index.catch_up_streams({event.rpartition("#")[0] for event, _ in filter(None, named)})

    def _ranked(self, query: Query, scope: Scope, now: datetime) -> list[_Answer]:
        question = asked(query.text, now=now, speakers=scope.speakers)
        found = self._found(question, query, scope)
        field = Field(self._visible(found.own, query, scope), conversation_of)
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

    def _visible(self, own: dict[int, float], query: Query, scope: Scope) -> dict[int, float]:
        """Without what this query may not find: it must not bring up what stands beside it."""
        if query.as_of is None and not query.without:
            return own
        best = nlargest(_wide(2 * LOOKED_AT, query), own, key=own.__getitem__)
        unseen = {record.number for record in self._index.records(scope.id, best) if not _is_visible(record, query)}
        return {number: worth for number, worth in own.items() if number not in unseen}

    def _hidden(self, scope: Scope, query: Query) -> frozenset[int]:
        """Crystals that are found no more. As of an earlier day others were: then each is looked at by itself."""
        if query.as_of is not None or not scope.hidden:
            return frozenset()
        mark = (scope.index, scope.hidden)
        known = self._hidden_of.get(scope.id)
        if known is None or known[0] != mark:
            if len(self._hidden_of) >= MOST_REMEMBERED:
                self._hidden_of.clear()
            known = self._hidden_of[scope.id] = (mark, self._index.hidden(scope))
        return known[1]

    def _holding(self, scope: Scope, query: Query, words: Iterable[str]) -> dict[str, Holding]:
        """Where words stand that can be found. A word that very many hold is looked up only where no other is."""
        found = self._index.holding(scope, words, every=query.narrow)
        if not query.narrow:
            found = {word: held for word, held in found.items() if held.count < COMMON} or found
        hidden = self._hidden(scope, query)
        inside = self._index.series_of(scope, f"session/{query.session}") if query.session else None
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
        if self.vectors is None or not self.vectors.tell(scope):
            return {}, 0.0
        vector = self.vectors.of_question(query.text)
        if vector is None:
            return {}, 0.0
        near = self._measuring.nearest(self.vectors.name, scope, vector, _wide(BEST_BY_MEANING, query))
        meaning: dict[int, float] = {}
        hidden = self._hidden(scope, query)
        for passage, cosine in near.passages:
            crystal = crystal_of(passage)
            if crystal not in meaning and crystal not in hidden:
                meaning[crystal] = cosine
                best.setdefault(crystal, place_of(passage))
        usual = min(BEST_BY_MEANING, near.among // 2)
        return meaning, max(near.passages[usual - 1][1] if near.among >= FEW else 0.0, UNRELATED)

    def _candidates(self, field: Field, question: Asked, query: Query, scope: Scope) -> list[Record]:
        """Those worth a closer look, that stand and pass the filters: a narrow query looks at more to find enough."""
        span = question.span
        amid = self._index.amid(scope, Span(span.first, span.before + TOLD_LATE), IN_SPAN) if span else []
        numbers = list(dict.fromkeys((*field.promising(_wide(LOOKED_AT, query)), *amid)))
        if not numbers and query.narrow:  # whoever asks for nothing in particular is shown what came last
            numbers = self._index.amid(scope, _any_time(query), IN_SPAN)
        found: list[Record] = []
        for start in range(0, len(numbers), AT_A_TIME):
            records = self._index.records(scope.id, numbers[start : start + AT_A_TIME])
            seen = [one for one in records if _is_visible(one, query)]
            found += [one for one in seen if not query.narrow or query.allows(one.crystal("", ""))]
            if query.narrow and len(found) >= LOOKED_AT:
                break
        return found

    def _shown(self, best: Sequence[_Answer], query: Query) -> list[Hit]:
        beside_them: dict[int, list[int]] = {}
        for one in best:
            if conversation_of(one.record.number) is not None:
                beside_them.setdefault(one.record.resource, []).extend(one.record.number + step for step in (-1, 1))
        around = [record for of, numbers in beside_them.items() for record in self._index.records(of, numbers)]
        near = [record for record in around if _is_visible(record, query)]
        texts = self._texts([*(one.record for one in best), *near])
        lines = {
            (record.resource, record.number): beside(record.crystal(texts.get(record.made, ""), ""), AROUND)
            for record in near
        }
        hits: list[Hit] = []
        for one in best:
            of, number, text = one.record.resource, one.record.number, texts.get(one.record.made, "")
            parts = passages(text)
            talks = conversation_of(number) is not None
            before, after = (lines.get((of, number + step), "") if talks else "" for step in (-1, 1))
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
        return record.crystal(self._text(record), self._index.name_of(record.resource))

    def _text(self, record: Record) -> str:
        return self._texts([record]).get(record.made, "")

    def _texts(self, records: Iterable[Record]) -> dict[int, str]:
        """The words of crystals, by `made`, out of the journal; lines that stand close together are read together."""
        wanted = {(record.event, record.part): record.made for record in records}
        named = {event for event, _ in wanted}
        texts: dict[int, str] = {}
        for stream, first, last in _runs(named):
            for event in self._events(stream, first, last):
                if event.id in named:
                    said = self._read(event.payload) if isinstance(event.payload, MessageAdded) else None
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
        return not is_own(name) or (name == "memory_write" and OVERVIEW_PATH in arguments)

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
    over = record.valid_to is not None and record.valid_to <= to_microseconds(now)
    frozen = record.lifecycle == "frozen"
    return Placed(
        number=record.number,
        words=record.words,
        role=record.role,
        speaker=record.speaker,
        at=from_microseconds(record.at),
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
    return record.stood(query.as_of) and from_microseconds(record.at) <= query.as_of


def _wide(most: int, query: Query) -> int:
    """How many to look at: where filters let only some pass, enough for those to be among them."""
    return 50 * most if query.narrow else most


def _any_time(query: Query) -> Span:
    return Span(query.since or datetime(1970, 1, 1, tzinfo=UTC), query.until or datetime(9999, 1, 1, tzinfo=UTC))
