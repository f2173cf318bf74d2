"""The index of deep memory: which passages hold a word, where they stand, and their vectors.

It follows the journal in the order in which events were stored, and is asked only after it has caught up; so whatever
was acknowledged is found, by whichever process asks. It is derived and deletable: one that is damaged, of another
shape, or made of another journal, is made anew.

What it holds are numbers (`numbers`), records of crystals (`records`) and words; how it follows is in `following`. What
is asked is the same wherever its tables are. `sqlite_index` has them in a file, `postgres.index` in a database.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from inmind.core.events.base import Event
from inmind.core.events.codec import DECODE_ERRORS
from inmind.core.frozen import frozen
from inmind.core.timestamps import to_microseconds
from inmind.search.dates import DateSpan
from inmind.search.index.indexer import Indexer, MessageReader
from inmind.search.index.record import Record, parse_crystal_id
from inmind.search.index.tables import Tables
from inmind.store.protocol import Store

log = logging.getLogger("inmind")

T = TypeVar("T")

VERSION = 9
"""Raised when the shape of an index changes, or what is put there: one of another version is made anew."""

BATCH_SIZE = 500
"""Events that are followed in one transaction: others who want to write wait for no more than these."""

MAX_PASSAGES_PER_WORD = 4_800
"""Passages that are looked at for one word, the newest of those that hold it. A word that so many hold tells little."""

MAX_SPEAKERS = 200

CLAIM_MICROSECONDS = 60_000_000
"""Microseconds for which nobody else makes vectors that somebody has begun to make. One who was killed is not waited
for any longer."""


@frozen
class Scope:
    """Whose memory is asked: a resource, as the index numbers it, and how many passages it has."""

    id: int
    name: str
    passages: int
    hidden_version: int = 0
    """Changes whenever something of it is hidden, or found again."""
    speakers: tuple[str, ...] = ()
    """Those of whom there is more than one message, the most talkative first."""
    newest_crystal: int = 0
    """Its last crystal, by `Record.made`."""
    embedded_upto: int = 0
    """The last one that an embedder has been through, where one was named."""
    index_identity: bytes = b""
    """The identity of the index that says so."""


@frozen
class WordMatches:
    """How many passages hold a word, and the numbers of some of them, in the order in which they came."""

    count: int
    passages: Sequence[int]


@frozen
class NearestPassages:
    """How many passages of a resource have vectors, and which are nearest, each with its cosine, the nearest first."""

    total: int
    passages: Sequence[tuple[int, float]]


@frozen
class ComparedPassages:
    """The same, as tables tell that compare vectors themselves; the first ones with their numbers, as half floats."""

    total: int
    passages: Sequence[tuple[int, float, bytes | None]]


class SearchIndex:
    """What is asked and told, over tables of either kind."""

    place: str
    """Of the index: where Damaged names it, nothing is lost."""

    @property
    def compares_vectors(self) -> bool:
        """Whether vectors are compared where they lie, or are to be held in memory for that."""
        return False

    @property
    def stores_vectors(self) -> bool:
        return True

    def __init__(self, store: Store, read_message: MessageReader) -> None:
        self._store, self._read_message = store, read_message

    # -- what each database does in its own way ------------------------------------------------------------

    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        """Take in all that the journal has and this has not, at least of some resources; of all there are only as long
        as there is time. True when nothing is left.
        """
        raise NotImplementedError

    def catch_up_streams(self, streams: Iterable[str]) -> None:
        """At least of those whom these streams belong to."""
        raise NotImplementedError

    def stale_resources(self, after: str, limit: int) -> list[str]:
        """Resources of which the journal may have something that this has not: so many, by name, behind one."""
        raise NotImplementedError

    def word_matches(self, scope: Scope, words: Iterable[str], *, all_passages: bool = False) -> dict[str, WordMatches]:
        """Passages that hold each of these words: the newest COMMON of them, unless `every` one is asked for."""
        raise NotImplementedError

    def read_vectors(self, embedder: str, scope: Scope, *, after: int, limit: int) -> list[tuple[int, int, bytes]]:
        """Vectors (made, passage, half floats) of a resource by this embedder, for whoever holds them in memory."""
        raise NotImplementedError

    def nearest_vectors(
        self, embedder: str, scope: Scope, vector: Sequence[float], limit: int, with_vectors: int
    ) -> ComparedPassages:
        """The nearest vectors of a resource, so many of them whole."""
        raise NotImplementedError

    def mark_damaged(self, reason: object) -> None:
        """Let go of an index that has turned out to be damaged; the next who asks makes it again."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _query(self, run: Callable[[Tables], T]) -> T:
        raise NotImplementedError

    def _write(self, run: Callable[[Tables], T]) -> T:
        """In one transaction."""
        raise NotImplementedError

    # -- following the journal -----------------------------------------------------------------------------

    def _index_events(self, tables: Tables, events: Sequence[Event], *, resource: int | None = None) -> None:
        """All of them; but one that cannot be read is passed over, or nobody would ever find anything again.

        It is looked for by halves, so that where all can be read, as they always should, nothing is paid for it.
        """
        try:
            with tables.savepoint():
                Indexer(tables, self._store, self._read_message, resource=resource).index(events)
        except DECODE_ERRORS as error:
            if len(events) == 1:
                log.warning("passed over, and not found: event %s cannot be read: %r", events[0].id, error)
                return
            for half in (events[: len(events) // 2], events[len(events) // 2 :]):
                self._index_events(tables, half, resource=resource)

    # -- asking --------------------------------------------------------------------------------------------

    def identity(self) -> bytes:
        """Of all that is here: one that was made anew is another, and numbers its rows from the beginning."""
        return self._query(lambda tables: bytes(tables.value("identity")))

    def last_identity(self) -> bytes:
        """As it was when somebody last looked, which costs nothing where looking does."""
        return self.identity()

    def scopes(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """Of those that have anything here, in the order in which they are named."""
        wanted = list(dict.fromkeys(resources))
        rows = self._query(lambda tables: tables.rows("scopes", tables.list_parameter(wanted), embedder, MAX_SPEAKERS))
        found = {row[1]: self._scope(*row) for row in rows}
        return [found[name] for name in wanted if name in found]

    def catch_up_scopes(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """The same, with all that the journal has of them."""
        self.catch_up(resources)
        return self.scopes(resources, embedder=embedder)

    def resources(self) -> list[str]:
        return [name for (name,) in self._rows("resource_names")]

    def name_of(self, resource: int) -> str:
        """By its number; of one that is not there, nothing."""
        rows = self._rows("name_of", resource)
        return rows[0][0] if rows else ""

    def hidden_numbers(self, scope: Scope) -> frozenset[int]:
        """Crystals that were taken back, overtaken or merged, or have faded."""
        return frozenset(number for (number,) in self._rows("hidden", scope.id))

    def series_of(self, scope: Scope, stream: str) -> frozenset[int]:
        """What of a stream stands in order: its conversation, its notes, its pages."""
        return frozenset(number for (number,) in self._rows("series_of", scope.id, stream))

    def records(self, resource: int, numbers: Iterable[int]) -> list[Record]:
        wanted = list(numbers)
        if not wanted:
            return []
        return self._records(lambda tables: tables.rows("crystals_by_number", resource, tables.list_parameter(wanted)))

    def find(self, id: str) -> Record | None:
        """A crystal by its id."""
        place = parse_crystal_id(id)
        found = self._records(lambda tables: tables.rows("crystal_by_event", *place)) if place else []
        return found[0] if found else None

    def records_of_events(self, events: Iterable[str]) -> list[Record]:
        """The crystals of some events, by the ids of these."""
        wanted = list(events)
        return self._records(lambda tables: tables.rows("of_events", tables.list_parameter(wanted))) if wanted else []

    def count_since(self, scope: Scope, since: datetime, limit: int) -> int:
        """How many crystals were said after some moment, of at most so many."""
        return self._rows("count_since", scope.id, to_microseconds(since), limit)[0][0]

    def numbers_in_span(self, scope: Scope, span: DateSpan, limit: int) -> list[int]:
        """Crystals that were said in a span of time, the newest first."""
        bounds = (scope.id, to_microseconds(span.start), to_microseconds(span.end), limit)
        return [number for (number,) in self._rows("numbers_in_span", *bounds)]

    def written_records(self, scope: Scope) -> list[Record]:
        """Notes, and what dreams have found."""
        return self._records(lambda tables: tables.rows("written_crystals", scope.id))

    def fading_records(self, scope: Scope, made: int, limit: int) -> list[Record]:
        """What was said and may leave search, in the order in which it was taken in."""
        return self._records(lambda tables: tables.rows("fading_crystals", scope.id, made, limit))

    # -- vectors -------------------------------------------------------------------------------------------

    def lagging_resources(self, embedder: str, limit: int, *, unclaimed_at: datetime | None = None) -> list[int]:
        """Numbers of resources that have crystals which an embedder has not been through; without those that somebody
        sees to at a moment, where one is given.
        """
        free = None if unclaimed_at is None else to_microseconds(unclaimed_at)
        return [resource for (resource,) in self._rows("lagging_resources", embedder, limit, free, CLAIM_MICROSECONDS)]

    def unembedded_records(self, embedder: str, resource: int, limit: int) -> list[Record]:
        """Crystals of a resource that an embedder has not been through yet, in their order."""
        return self._records(lambda tables: tables.rows("unembedded", embedder, resource, limit))

    def claim_unembedded(self, embedder: str, resource: int, limit: int, *, now: datetime) -> list[Record] | None:
        """The same, for one who embeds them, and for a while for nobody else. None: somebody else does already."""

        def claim(tables: Tables) -> list[Record] | None:
            number = tables.value("add_embedder", embedder, to_microseconds(now))
            if not tables.rows("claim", number, resource, to_microseconds(now), CLAIM_MICROSECONDS):
                return None
            found = [Record(*row) for row in tables.rows("unembedded", embedder, resource, limit)]
            if not found:
                tables.rows("release_claim", embedder, resource)
            return found

        return self._write(claim)

    def release_claim(self, embedder: str, resource: int) -> None:
        """Of what was claimed."""
        self._write(lambda tables: tables.rows("release_claim", embedder, resource))

    def store_vectors(
        self,
        embedder: str,
        resource: int,
        *,
        upto: int,
        vectors: Sequence[tuple[int, Sequence[float]]],
        now: datetime,
    ) -> None:
        """Keep vectors of passages, and that the embedder has been through all of this resource up to a crystal."""

        def keep(tables: Tables) -> None:
            number = tables.value("add_embedder", embedder, to_microseconds(now))
            rows = [(number, resource, passage, tables.vector_parameter(vector)) for passage, vector in vectors]
            tables.execute_many("add_vector", rows)
            tables.rows("set_embedded_upto", number, resource, upto)

        self._write(keep)

    def record_embedder_use(self, embedder: str, now: datetime) -> None:
        """Say that somebody does."""
        self._write(lambda tables: tables.value("add_embedder", embedder, to_microseconds(now)))

    def delete_unused_vectors(self, embedder: str, *, unused_since: datetime, limit: int) -> bool:
        """The vectors of embedders that nobody has used since, of so many resources. True when none are left."""

        def forget(tables: Tables) -> bool:
            for (other,) in tables.rows("other_embedders", embedder, to_microseconds(unused_since)):
                if resources := [resource for (resource,) in tables.rows("embedded_by", other, limit)]:
                    tables.rows("drop_vectors", other, tables.list_parameter(resources))
                    tables.rows("drop_embedded", other, tables.list_parameter(resources))
                    return False
                tables.rows("drop_embedder", other)
            return True

        return not self._rows("other_embedders", embedder, to_microseconds(unused_since)) or self._write(forget)

    # -- tables --------------------------------------------------------------------------------------------

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._query(lambda tables: tables.rows(statement, *values))

    def _records(self, run: Callable[[Tables], list[tuple[Any, ...]]]) -> list[Record]:
        return [Record(*row) for row in self._query(run)]

    def _scope(
        self, id: int, name: str, passages: int, hidden: int, speakers: Any, newest: int, embedded: int, index: bytes
    ) -> Scope:
        return Scope(id, name, passages, hidden, tuple(self._parse_list(speakers)), newest, embedded, bytes(index))

    def _parse_list(self, value: Any) -> list[Any]:
        """Many values, as a statement answers with them in one."""
        return value
