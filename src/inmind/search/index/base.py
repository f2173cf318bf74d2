"""The search index: which passages have a word, their crystals and their vectors.

It is updated from the journal in storage order and catches up before each query, so every committed event is found
by every process. It is derived and deletable: an index that is damaged, of another version or of another journal is
rebuilt.

It stores numbers (`numbers`), records (`record`) and words; `indexer` updates it. Queries are the same for all
databases: `sqlite` keeps the tables in a file, `postgres` in a schema.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from inmind.core.encoding import to_microseconds
from inmind.core.events import DECODE_ERRORS
from inmind.core.events.base import Event
from inmind.core.frozen import frozen
from inmind.search.dates import DateSpan
from inmind.search.extract import MessageReader
from inmind.search.index.indexer import Indexer
from inmind.search.index.record import Record, Tables, parse_crystal_id
from inmind.store.protocol import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("inmind")

T = TypeVar("T")

VERSION = 9
"""Raised when the tables or their contents change. An index of another version is rebuilt."""

BATCH_SIZE = 500
"""Events indexed in one transaction, which bounds how long other writers wait."""

MAX_PASSAGES_PER_WORD = 4_800
"""Passages read per word, newest first. A word with more matches says little."""

MAX_SPEAKERS = 200

CLAIM_MICROSECONDS = 60_000_000
"""Time for which an embedding claim is valid. After a process was killed, others wait no longer than this."""


@frozen
class Scope:
    """A resource in the index."""

    id: int
    name: str
    passages: int
    hidden_version: int = 0
    """Changes whenever a crystal is hidden or becomes searchable again."""
    speakers: tuple[str, ...] = ()
    """Speakers with more than one message, most messages first."""
    newest_crystal: int = 0
    """`Record.made` of its last crystal."""
    embedded_upto: int = 0
    """`Record.made` of the last embedded crystal, if an embedder was named."""
    index_identity: bytes = b""
    """Identity of the index these values come from."""


@frozen
class WordMatches:
    """Number of passages with a word, and the numbers of some of them in index order."""

    count: int
    passages: Sequence[int]


@frozen
class NearestPassages:
    """Number of passages with vectors, and the nearest ones with their cosines, nearest first."""

    total: int
    passages: Sequence[tuple[int, float]]


def unpack_vectors(vectors: Sequence[bytes], dimensions: int) -> NDArray[np.float16]:
    """Return stored vectors of half floats as rows."""
    import numpy as np

    return np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), dimensions)


class SearchIndex(ABC):
    """Queries and updates that are the same for all databases."""

    place: str
    """Location of the index. If Damaged names it, nothing is lost."""

    @property
    def stores_vectors(self) -> bool:
        return True

    def __init__(self, store: Store, read_message: MessageReader) -> None:
        self._store, self._read_message = store, read_message

    # -- implemented by each database -----------------------------------------------------------------------

    @abstractmethod
    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        """Index new events of some resources, or of all until `until`. True if nothing is left."""

    @abstractmethod
    def catch_up_streams(self, streams: Iterable[str]) -> None:
        """Index new events of at least the owners of these streams."""

    @abstractmethod
    def stale_resources(self, after: str, limit: int) -> list[str]:
        """Return at most `limit` resources that may have unindexed events, sorted, after a name."""

    @abstractmethod
    def word_matches(self, scope: Scope, words: Iterable[str], *, all_passages: bool = False) -> dict[str, WordMatches]:
        """Return the passages for each word: the newest MAX_PASSAGES_PER_WORD, or all of them."""

    @abstractmethod
    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        """Return the nearest passages of a resource, with the same results in all databases."""

    @abstractmethod
    def mark_damaged(self, reason: object) -> None:
        """Discard a damaged index. The next query rebuilds it."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _query(self, run: Callable[[Tables], T]) -> T: ...

    @abstractmethod
    def _write(self, run: Callable[[Tables], T]) -> T:
        """Run in one transaction."""

    # -- indexing ------------------------------------------------------------------------------------------

    def _index_events(self, tables: Tables, events: Sequence[Event], *, resource: int | None = None) -> None:
        """Index events; an unreadable one is skipped so that it cannot block indexing forever.

        It is found by bisection, so readable batches cost nothing extra.
        """
        try:
            with tables.savepoint():
                Indexer(tables, self._store, self._read_message, resource=resource).index(events)
        except DECODE_ERRORS as error:
            if len(events) == 1:
                log.warning("event %s cannot be read and is not indexed: %r", events[0].id, error)
                return
            for half in (events[: len(events) // 2], events[len(events) // 2 :]):
                self._index_events(tables, half, resource=resource)

    # -- queries -------------------------------------------------------------------------------------------

    def identity(self) -> bytes:
        """Return the identity of this index; a rebuilt one has another and renumbers its rows."""
        return self._query(lambda tables: bytes(tables.value("identity")))

    def last_identity(self) -> bytes:
        """Return the identity at the last check, without a query if possible."""
        return self.identity()

    def scopes(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """Return the scopes of the resources that are indexed, in the given order."""
        wanted = list(dict.fromkeys(resources))
        scopes = {row[1]: self._scope(*row) for row in self._rows("scopes", wanted, embedder, MAX_SPEAKERS)}
        return [scopes[name] for name in wanted if name in scopes]

    def catch_up_scopes(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """Index new events of the resources, then return their scopes."""
        self.catch_up(resources)
        return self.scopes(resources, embedder=embedder)

    def resources(self) -> list[str]:
        return [name for (name,) in self._rows("resource_names")]

    def name_of(self, resource: int) -> str:
        """Return the name of a resource, or "" if unknown."""
        rows = self._rows("name_of", resource)
        return rows[0][0] if rows else ""

    def hidden_numbers(self, scope: Scope) -> frozenset[int]:
        """Return crystals that were retracted, replaced, merged or expired."""
        return frozenset(number for (number,) in self._rows("hidden", scope.id))

    def series_of(self, scope: Scope, stream: str) -> frozenset[int]:
        """Return the series of a stream: its conversation, notes and pages."""
        return frozenset(number for (number,) in self._rows("series_of", scope.id, stream))

    def records(self, resource: int, numbers: Iterable[int]) -> list[Record]:
        wanted = list(numbers)
        return self._records("crystals_by_number", resource, wanted) if wanted else []

    def find(self, id: str) -> Record | None:
        """Return a crystal's record by its id."""
        event_and_part = parse_crystal_id(id)
        return next(iter(self._records("crystal_by_event", *event_and_part)), None) if event_and_part else None

    def records_of_events(self, events: Iterable[str]) -> list[Record]:
        """Return the records of the crystals of some events."""
        wanted = list(events)
        return self._records("of_events", wanted) if wanted else []

    def count_since(self, scope: Scope, since: datetime, limit: int) -> int:
        """Return the number of crystals after a time, at most `limit`."""
        return self._rows("count_since", scope.id, to_microseconds(since), limit)[0][0]

    def numbers_in_span(self, scope: Scope, span: DateSpan, limit: int) -> list[int]:
        """Return crystals in a time span, newest first."""
        bounds = (scope.id, to_microseconds(span.start), to_microseconds(span.end), limit)
        return [number for (number,) in self._rows("numbers_in_span", *bounds)]

    def written_records(self, scope: Scope) -> list[Record]:
        """Return notes and dream crystals."""
        return self._records("written_crystals", scope.id)

    def fading_records(self, scope: Scope, after: int, limit: int) -> list[Record]:
        """Return messages that may expire, in index order."""
        return self._records("fading_crystals", scope.id, after, limit)

    # -- vectors -------------------------------------------------------------------------------------------

    def lagging_resources(self, embedder: str, limit: int, *, unclaimed_at: datetime | None = None) -> list[int]:
        """Return resources with crystals to embed.

        With `unclaimed_at`, without those claimed at that time.
        """
        free = None if unclaimed_at is None else to_microseconds(unclaimed_at)
        return [resource for (resource,) in self._rows("lagging_resources", embedder, limit, free, CLAIM_MICROSECONDS)]

    def unembedded_records(self, embedder: str, resource: int, limit: int) -> list[Record]:
        """Return crystals of a resource that are not embedded yet, in order."""
        return self._records("unembedded", embedder, resource, limit)

    def claim_unembedded(self, embedder: str, resource: int, limit: int, *, now: datetime) -> list[Record] | None:
        """Claim and return crystals to embed. None if another process has the claim."""

        def claim(tables: Tables) -> list[Record] | None:
            number = tables.value("add_embedder", embedder, to_microseconds(now))
            if not tables.rows("claim", number, resource, to_microseconds(now), CLAIM_MICROSECONDS):
                return None
            records = [Record(*row) for row in tables.rows("unembedded", embedder, resource, limit)]
            if not records:
                tables.rows("release_claim", embedder, resource)
            return records

        return self._write(claim)

    def release_claim(self, embedder: str, resource: int) -> None:
        """Release an embedding claim."""
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
        """Store vectors, and that the resource is embedded up to a crystal."""

        def store(tables: Tables) -> None:
            number = tables.value("add_embedder", embedder, to_microseconds(now))
            rows = [(number, resource, passage, tables.vector_parameter(vector)) for passage, vector in vectors]
            tables.execute_many("add_vector", rows)
            tables.rows("set_embedded_upto", number, resource, upto)

        self._write(store)

    def record_embedder_use(self, embedder: str, now: datetime) -> None:
        """Record that an embedder is used."""
        self._write(lambda tables: tables.value("add_embedder", embedder, to_microseconds(now)))

    def delete_unused_vectors(self, embedder: str, *, unused_since: datetime, limit: int) -> bool:
        """Delete vectors of embedders not used since, for at most `limit` resources.

        Returns True if none are left.
        """

        def delete(tables: Tables) -> bool:
            for (other,) in tables.rows("other_embedders", embedder, to_microseconds(unused_since)):
                if resources := [resource for (resource,) in tables.rows("embedded_by", other, limit)]:
                    tables.rows("drop_vectors", other, resources)
                    tables.rows("drop_embedded", other, resources)
                    return False
                tables.rows("drop_embedder", other)
            return True

        return not self._rows("other_embedders", embedder, to_microseconds(unused_since)) or self._write(delete)

    # -- tables --------------------------------------------------------------------------------------------

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._query(lambda tables: tables.rows(statement, *values))

    def _records(self, statement: str, *values: object) -> list[Record]:
        return [Record(*row) for row in self._rows(statement, *values)]

    def _scope(
        self, id: int, name: str, passages: int, hidden: int, speakers: Any, newest: int, embedded: int, index: bytes
    ) -> Scope:
        return Scope(id, name, passages, hidden, tuple(self._parse_list(speakers)), newest, embedded, bytes(index))

    def _parse_list(self, value: Any) -> list[Any]:
        """Parse a list returned as one value."""
        return value
