"""The search engine: keeps the index current, runs queries and reads the texts of the hits.

Passages are matched and crystals ranked in `rank`. Crystals are embedded elsewhere (`embedding`): a
search waits for that only briefly, and finds crystals without vectors by their words.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from heapq import nlargest
from typing import Concatenate, ParamSpec, TypeVar

from inmind.core.encoding import from_microseconds
from inmind.core.events.base import Event, EventId
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.errors import Damaged, NotFound
from inmind.search.crystal import Crystal
from inmind.search.dates import DateSpan
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import CrystalEmbedder
from inmind.search.extract import MessageReader, extract_crystals
from inmind.search.index.base import Scope, SearchIndex
from inmind.search.index.record import Record, conversation_of, parse_crystal_id
from inmind.search.query import Hit, ParsedQuery, Query, parse_query
from inmind.search.rank import (
    LATE_PERIOD,
    PassageMatcher,
    RankedRecord,
    ResourceMatches,
    ScoreField,
    rank_records,
    widen,
)
from inmind.search.render import render_context_line
from inmind.search.tokenize import split_passages
from inmind.store.protocol import Clock, Store

P = ParamSpec("P")
T = TypeVar("T")


MAX_CANDIDATES, MAX_SPAN_CANDIDATES = 64, 300
"""Crystals that are ranked: the most promising, and those in the dates of the query."""


MAX_ATTEMPTS = 4
"""Attempts per call, each after the index was lost or rebuilt."""


LOOKUP_BATCH_SIZE = 400
"""Crystals looked up at once when filters remove some of them."""


_FIRST_DAY, _LAST_DAY = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


MAX_CONTEXT_CHARS = 200
"""Maximum length of a line shown next to a hit."""


@frozen
class SearchResult:
    """The best hits, best first.

    `stale_owners`: those whose new crystals could not be embedded in time.
    """

    hits: list[Hit]
    stale_owners: Sequence[str] = ()


def _retry_on_rebuilt_index(
    method: Callable[Concatenate[SearchEngine, P], T],
) -> Callable[Concatenate[SearchEngine, P], T]:
    """Decorator: run a method again if the index was damaged or rebuilt.

    A damaged index is rebuilt, which loses nothing. If another process rebuilt the index during the call, part of
    the result may be missing.
    """

    @wraps(method)
    def wrapper(engine: SearchEngine, *args: P.args, **kwargs: P.kwargs) -> T:
        index = engine._index  # pyright: ignore[reportPrivateUsage] -- used as a method
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                before = index.last_identity()
                try:
                    result = method(engine, *args, **kwargs)
                except NotFound:
                    if index.identity() == before:
                        raise
                else:
                    if index.identity() == before:
                        return result
            except Damaged as error:
                if error.place != index.place:
                    raise
                index.mark_damaged(error.reason)
        return method(engine, *args, **kwargs)

    return wrapper


class SearchEngine:
    """Searches the crystals of one home or database."""

    def __init__(
        self,
        index: SearchIndex,
        store: Store,
        read_message: MessageReader,
        clock: Clock,
        embedder: Embedder | None = None,
    ) -> None:
        self._index, self._clock = index, clock
        self._texts = CrystalTexts(store, read_message)
        self.crystal_embedder = None if embedder is None else CrystalEmbedder(embedder, index, self._texts.read, clock)
        self._matcher = PassageMatcher(index, self.crystal_embedder)

    # -- queries -------------------------------------------------------------------------------------------

    @_retry_on_rebuilt_index
    def search(self, query: Query, resources: Sequence[str] | None = None) -> SearchResult:
        """Search some resources or all."""
        if resources is None:
            self._index.catch_up()
            resources = self._index.resources()
        embedder, stale_owners = self.crystal_embedder, list[str]()
        scopes = self._index.catch_up_scopes(resources, embedder=embedder.name if embedder else "")
        if embedder is not None:
            scopes, stale_owners = embedder.embed_briefly(scopes)
        now = query.as_of or self._clock()
        matches: dict[int, ResourceMatches] = {}
        ranked = [ranked_record for scope in scopes for ranked_record in self._rank(query, scope, now, matches)]
        best = nlargest(query.limit, ranked, key=lambda ranked_record: (ranked_record.score, ranked_record.record.at))
        return SearchResult(self._make_hits(best, query, matches), stale_owners)

    @_retry_on_rebuilt_index
    def crystal(self, id: str) -> Crystal:
        """Return a crystal in its current state."""
        self._catch_up_ids([id])
        record = self._index.find(id)
        if record is None:
            raise NotFound(what="crystal", name=id)
        return record.crystal(self._texts.read([record]).get(record.made, ""), self._index.name_of(record.resource))

    @_retry_on_rebuilt_index
    def record(self, id: str) -> Record | None:
        """Return the index record of a crystal."""
        self._catch_up_ids([id])
        return self._index.find(id)

    @_retry_on_rebuilt_index
    def written_crystals(self, resource: str) -> list[Crystal]:
        """Return the notes and dream crystals of a resource."""
        scopes = self._index.catch_up_scopes([resource])
        records = [record for scope in scopes for record in self._index.written_records(scope)]
        texts = self._texts.read(records)
        return [record.crystal(texts.get(record.made, ""), resource) for record in records]

    @_retry_on_rebuilt_index
    def records_of_events(self, events: Sequence[str]) -> list[Record]:
        """Return the index records of the crystals of some events."""
        self._catch_up_ids(events)
        return self._index.records_of_events(events)

    @_retry_on_rebuilt_index
    def count_since(self, resource: str, since: datetime, limit: int) -> int:
        """Return the number of crystals since a time, at most `limit`."""
        return sum(self._index.count_since(scope, since, limit) for scope in self._index.catch_up_scopes([resource]))

    @_retry_on_rebuilt_index
    def fading_records(self, resource: str, after: int, limit: int) -> list[Record]:
        scopes = self._index.scopes([resource])
        return [record for scope in scopes for record in self._index.fading_records(scope, after, limit)]

    @_retry_on_rebuilt_index
    def resources(self) -> list[str]:
        """Return the names of all indexed resources."""
        return self._index.resources()

    @_retry_on_rebuilt_index
    def catch_up(self, resources: Sequence[str] | None = None, *, until: float | None = None) -> bool:
        """Index new events of some resources, or of all until `until`. True if nothing is left."""
        return self._index.catch_up(resources, until=until)

    @_retry_on_rebuilt_index
    def stale_resources(self, *, after: str = "", limit: int) -> list[str]:
        """Return at most `limit` resources with unindexed events, sorted, after a name."""
        return self._index.stale_resources(after, limit)

    @_retry_on_rebuilt_index
    def count_without_vectors(self, limit: int) -> int:
        """Return the number of resources with crystals to embed, at most `limit`."""
        return self.crystal_embedder.count_lagging(limit) if self.crystal_embedder else 0

    @_retry_on_rebuilt_index
    def embed(self, resources: Sequence[str] | None = None, *, seconds: float | None = None) -> bool:
        """Embed new crystals of some resources or of all for `seconds`. True if nothing is left."""
        if self.crystal_embedder is None:
            return True
        until = None if seconds is None else time.monotonic() + seconds
        if resources is not None:
            scopes = self._index.catch_up_scopes(resources)
            return self.crystal_embedder.embed_resources((scope.id for scope in scopes), until=until)
        return self._index.catch_up(until=until) and self.crystal_embedder.embed_all(until=until)

    @_retry_on_rebuilt_index
    def delete_unused_vectors(self, *, seconds: float) -> bool:
        """Delete vectors of unused embedders for `seconds`. True if none are left."""
        until = time.monotonic() + seconds
        return self.crystal_embedder is None or self.crystal_embedder.delete_unused_vectors(until=until)

    def close(self) -> None:
        self._index.close()

    def _catch_up_ids(self, ids: Iterable[str]) -> None:
        """Index new events of the owners of these crystals or events."""
        parsed_ids = (parse_crystal_id(id) for id in ids)
        self._index.catch_up_streams({event.rpartition("#")[0] for event, _ in filter(None, parsed_ids)})

    def _rank(
        self, query: Query, scope: Scope, now: datetime, matches_by_resource: dict[int, ResourceMatches]
    ) -> list[RankedRecord]:
        parsed = parse_query(query.text, now=now, speakers=scope.speakers)
        matches = matches_by_resource[scope.id] = self._matcher.find(parsed, query, scope)
        field = ScoreField(self._remove_invisible(matches.combined, query, scope), conversation_of)
        records = self._candidates(field, parsed, query, scope)
        if ranked := rank_records(records, field, parsed, query, now):
            return [matches.with_match_scores(ranked_record) for ranked_record in ranked]
        latest = nlargest(query.limit, records, key=lambda record: record.at) if not parsed.words else []
        return [RankedRecord(record, 0.0, {}) for record in latest]

    def _remove_invisible(self, scores: dict[int, float], query: Query, scope: Scope) -> dict[int, float]:
        """Remove crystals this query must not return, so that they do not raise their neighbours."""
        if query.as_of is None and not query.excluded_events:
            return scores
        best = nlargest(widen(2 * MAX_CANDIDATES, query), scores, key=scores.__getitem__)
        invisible = {record.number for record in self._index.records(scope.id, best) if not _is_visible(record, query)}
        return {number: score for number, score in scores.items() if number not in invisible}

    def _candidates(self, field: ScoreField, parsed: ParsedQuery, query: Query, scope: Scope) -> list[Record]:
        """Return the records to rank that are visible and pass the filters.

        With filters, more are read.
        """
        numbers = field.most_promising(widen(MAX_CANDIDATES, query))
        if parsed.span:
            span = DateSpan(parsed.span.start, parsed.span.end + LATE_PERIOD)
            in_span = self._index.numbers_in_span(scope, span, MAX_SPAN_CANDIDATES)
            numbers = list(dict.fromkeys((*numbers, *in_span)))
        if not numbers and query.has_filters:  # an empty query returns the latest crystals
            span = DateSpan(query.since or _FIRST_DAY, query.until or _LAST_DAY)
            numbers = self._index.numbers_in_span(scope, span, MAX_SPAN_CANDIDATES)
        candidates: list[Record] = []
        for start in range(0, len(numbers), LOOKUP_BATCH_SIZE):
            records = self._index.records(scope.id, numbers[start : start + LOOKUP_BATCH_SIZE])
            visible = [record for record in records if _is_visible(record, query)]
            if not query.has_filters:
                candidates += visible
                continue
            candidates += [record for record in visible if query.allows(record.crystal("", ""))]
            if len(candidates) >= MAX_CANDIDATES:
                break
        return candidates

    def _make_hits(
        self, best: Sequence[RankedRecord], query: Query, matches: Mapping[int, ResourceMatches]
    ) -> list[Hit]:
        records = [ranked.record for ranked in best]
        neighbours = self._neighbours(records, query)
        texts = self._texts.read([*records, *neighbours])
        lines: dict[tuple[int, int], str] = {}
        for record in neighbours:
            crystal = record.crystal(texts.get(record.made, ""), "")
            lines[record.resource, record.number] = render_context_line(crystal, MAX_CONTEXT_CHARS)
        hits: list[Hit] = []
        for ranked, record in zip(best, records, strict=True):
            resource_matches, text = matches[record.resource], texts.get(record.made, "")
            passages, passage = split_passages(text), resource_matches.passage.get(record.number, 0)
            before, after = (
                lines.get((record.resource, record.number + step), "") if conversation_of(record.number) else ""
                for step in (-1, 1)
            )
            if query.as_of:
                record = record.as_of(query.as_of, self._index.find(record.superseded_by))
            hits.append(
                Hit(
                    crystal=record.crystal(text, resource_matches.resource),
                    score=round(ranked.score, 4),
                    parts={name: round(value, 4) for name, value in ranked.parts.items()},
                    passage=passages[passage] if passage < len(passages) else text,
                    before=before,
                    after=after,
                )
            )
        return hits

    def _neighbours(self, records: Sequence[Record], query: Query) -> list[Record]:
        """Return the visible lines before and after each record in its conversation."""
        numbers: defaultdict[int, list[int]] = defaultdict(list)
        for record in records:
            if conversation_of(record.number) is not None:
                numbers[record.resource] += (record.number - 1, record.number + 1)
        near = (self._index.records(resource, adjacent) for resource, adjacent in numbers.items())
        return [record for records_near in near for record in records_near if _is_visible(record, query)]


def _is_visible(record: Record, query: Query) -> bool:
    """Return True if a record may be returned or quoted.

    With `as_of`: if it existed then and was retracted later.
    """
    if record.event in query.excluded_events:
        return False
    if query.as_of is None:
        return record.is_searchable
    return record.was_live(query.as_of) and from_microseconds(record.at) <= query.as_of


MAX_EVENT_GAP = 8
"""Events up to this far apart are read in one query."""


class CrystalTexts:
    """Reads the texts of crystals from the journal: the index stores none."""

    def __init__(self, store: Store, read_message: MessageReader) -> None:
        self._store, self._read_message = store, read_message

    def read(self, records: Iterable[Record]) -> dict[int, str]:
        """Return the texts of crystals by `made`. Nearby events are read together."""
        wanted = {(record.event, record.part): record.made for record in records}
        event_ids = {event for event, _ in wanted}
        texts: dict[int, str] = {}
        for stream, first, last in _event_runs(event_ids):
            for event in self._events(stream, first, last):
                if event.id in event_ids:
                    message = self._read_message(event.payload) if isinstance(event.payload, MessageAdded) else None
                    texts |= {
                        wanted[event.id, draft.part]: draft.text
                        for draft in extract_crystals(event, message)
                        if (event.id, draft.part) in wanted
                    }
        return texts

    def _events(self, stream: str, first: int, last: int) -> Sequence[Event]:
        """Read a range of events; damaged ones are skipped."""
        try:
            return self._store.read(stream, after=first - 1, until=last)
        except Damaged:
            if first == last:
                return ()
        return [event for seq in range(first, last + 1) for event in self._events(stream, seq, seq)]


def _event_runs(events: Iterable[str]) -> list[tuple[str, int, int]]:
    """Group events by stream into (stream, first, last) ranges."""
    runs: list[tuple[str, int, int]] = []
    for stream, seq in sorted(map(EventId.of, set(events))):
        if runs and runs[-1][0] == stream and seq - runs[-1][2] <= MAX_EVENT_GAP:
            runs[-1] = (stream, runs[-1][1], seq)
        else:
            runs.append((stream, seq, seq))
    return runs
