"""The index of deep memory in a tenant's schema, where any number of processes catch it up and ask it.

Each owner is followed for itself: its events alone are in the order in which they were stored. Whoever asks about one
takes in its news first, holding its row of the index, so that nobody else takes the same; others wait for a batch, and
then find it done. Words are a full-text index over stems of ours, each behind the number of its resource; vectors are
compared by pgvector where the database has it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import psycopg

from inmind.core.events.crystals import CrystalPinned
from inmind.core.fork import register_after_fork
from inmind.core.streams import ANONYMOUS, PRIVATE
from inmind.errors import Damaged, OutcomeUnknown, ReadOnly, StoreBusy
from inmind.search.index.base import (
    BATCH_SIZE,
    MAX_PASSAGES_PER_WORD,
    MAX_SPEAKERS,
    VERSION,
    ComparedPassages,
    Scope,
    SearchIndex,
    WordMatches,
)
from inmind.search.index.indexer import INDEXED_KINDS, MessageReader
from inmind.search.index.postgres_tables import (
    PostgresTables,
    expand_statement,
    format_vector,
    parse_halves,
    parse_passages,
    quote_lexeme,
)
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.store import PostgresStore

log = logging.getLogger("inmind")

T = TypeVar("T")

OWNER_BATCH_SIZE = 100
"""That are asked about together, by whoever means all of them."""

SWEEP_BATCH_SIZE = 1_000
"""Owners that are told apart together after an index was made anew, or resources when an embedder is new."""

PGVECTOR_CHECK_SECONDS = 60.0
"""Seconds after which a database without pgvector is asked again whether it has it by now."""


_MAX_ATTEMPTS = 5


class PostgresIndex(SearchIndex):
    """The derived index of one tenant."""

    def __init__(self, store: PostgresStore, read_message: MessageReader) -> None:
        super().__init__(store, read_message)
        self._database = store.database
        self.place = f"{self._database.place} (index)"
        self._sql = self._database.statements("index")
        self._identity = b""
        """Of the index that was last seen; none was, as long as this is empty."""
        self._damaged = b""
        """Of the one in which something was read that cannot be: it is not taken for an index again."""
        self._pgvector = ""
        """The schema of pgvector, quoted, where the database has it."""
        self._pgvector_checked_at = float("-inf")
        self._warned = False
        self._pgvector_lock = threading.Lock()
        register_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been looking."""
        self._pgvector_lock = threading.Lock()

    # -- following the journal -----------------------------------------------------------------------------

    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        if resources is not None:
            self._catch_up_owners(_with_anonymous(resources))
            return True
        while self._mark_stale_batch():
            pass
        last = ""
        while stale := self.stale_resources(last, OWNER_BATCH_SIZE):
            for last in stale:
                self._catch_up_owners(_with_anonymous([last]))
                if until is not None and time.monotonic() > until:
                    return not self.stale_resources("", 1)
        return True

    def catch_up_scopes(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """In one question, where nobody of them has news."""
        progress = self._catch_up_owners(_with_anonymous(resources), embedder)
        if any(one.is_stale or not one.is_valid for one in progress):
            return self.scopes(resources, embedder=embedder)
        found = {one.scope.name: one.scope for one in progress if one.scope}
        return [found[name] for name in dict.fromkeys(resources) if name in found]

    def catch_up_streams(self, streams: Iterable[str]) -> None:
        if wanted := sorted(set(streams)):
            self.catch_up([name for (name,) in self._rows("owners_of", wanted)])

    def stale_resources(self, after: str, limit: int) -> list[str]:
        """None only where nobody has: after an index was made anew, that takes a look at everybody."""
        found: list[tuple[Any, ...]] = []
        while not found and self._mark_stale_batch():
            found = self._rows("stale_owners", after, limit)
        return [name for (name,) in found or self._rows("stale_owners", after, limit)]

    def _mark_stale_batch(self) -> bool:
        """After an index was made anew, of the next so many owners those have news whom it has not followed to their
        end. False when that is told of everybody; or cannot be, where nothing can be written.
        """
        with suppress(ReadOnly):
            return bool(self._write_statement("mark_stale_owners", SWEEP_BATCH_SIZE))
        return False

    def _catch_up_owners(self, owners: set[str], embedder: str = "") -> list[_OwnerProgress]:
        """How they stood before all that was there was taken in."""
        progress = self._read_progress(sorted(owners), embedder) if owners else []
        for owner_progress in progress:
            if not owner_progress.is_valid:
                self._delete_owner(owner_progress, "it does not have what it took in")
                self._index_owner(owner_progress)
            elif owner_progress.is_stale:
                self._index_owner_if_writable(owner_progress)
        return progress

    def _index_owner_if_writable(self, progress: _OwnerProgress) -> None:
        """What nothing can be written to, as long as that lasts, still answers with what it has."""
        try:
            self._index_owner(progress)
        except ReadOnly as error:
            log.warning("what is new of %s is not found yet: %s", progress.name, error)
        except Damaged as error:
            if error.place != self.place:
                raise
            self._delete_owner(progress, error.reason)
            self._index_owner(progress)

    def _index_owner(self, progress: _OwnerProgress) -> None:
        while not self._index_batch(progress.owner, progress.name):
            pass

    def _delete_owner(self, progress: _OwnerProgress, reason: object) -> None:
        """What it has of one owner is made anew, and all else stays. What is frozen of a session that is nobody's is in
        nobody's stream: the one is not made anew without the other."""
        log.warning("the index of %s is damaged and is made anew: %s", progress.name, reason)
        anonymous = self._read_progress([ANONYMOUS], "") if progress.name.startswith(PRIVATE) else []
        has_vectors = self.stores_vectors

        def forget(tables: PostgresTables) -> None:
            for owner in sorted({progress.owner, *(other.owner for other in anonymous)}):
                tables.rows("delete_resource", owner, f"{quote_lexeme(f'{owner} ')}:*")
                if has_vectors:
                    tables.rows("delete_vectors", owner)

        self._write(forget)

    def _read_progress(self, owners: list[str], embedder: str) -> list[_OwnerProgress]:
        progress: list[_OwnerProgress] = []
        for owner, name, has_news, is_sound, identity, *scope in self._rows("owner_progress", owners, embedder, MAX_SPEAKERS):
            self._identity = bytes(identity or b"")
            if self._identity and self._identity == self._damaged:
                raise Damaged(place=self.place, reason="something was read there that cannot be")
            found = self._scope(*scope) if scope[0] is not None else None
            progress.append(_OwnerProgress(owner, name, has_news, is_sound, found))
        return progress

    def _index_batch(self, owner: int, name: str) -> bool:
        """Some of its news. True when there is nothing left."""
        if name == ANONYMOUS:
            self._catch_up_pinned(owner)

        def index_batch(tables: PostgresTables) -> bool:
            row = tables.row("lock_owner", owner)
            if row is None:
                tables.rows("add_owner", owner)
                row = tables.row("lock_owner", owner) or (0, 0)
            upto, position = row
            new_events = self._store.events_since(upto, kinds=INDEXED_KINDS, limit=BATCH_SIZE, owner=name)
            if events := [event for _, event in new_events if event]:
                self._index_events(tables, events, resource=owner)
            is_done = len(new_events) < BATCH_SIZE
            mark = max(upto, position if is_done else 0, new_events[-1][0] if new_events else 0)
            tables.rows("set_position", owner, mark, tables.last_passage)
            return is_done

        return self._write(index_batch)

    def _write_statement(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What one statement tells, and may be told twice."""
        self._ensure_index()
        return self._database.write(
            lambda connection: self._tables(connection).rows(statement, *values), retryable=True
        )

    def _catch_up_pinned(self, anonymous: int) -> None:
        """What is frozen of a session that is nobody's stands in nobody's stream: it has to be there by then."""
        upto = next((upto for (upto,) in self._rows("position_of", anonymous)), 0)
        found = self._store.events_since(upto, kinds=(CrystalPinned.kind,), limit=BATCH_SIZE, owner=ANONYMOUS)
        pinned = {event.payload.id for _, event in found if event and isinstance(event.payload, CrystalPinned)}
        streams = sorted({id.rpartition("#")[0] for id in pinned})
        self._catch_up_owners({name for (name,) in self._rows("owners_of", streams)} - {ANONYMOUS})

    # -- asking --------------------------------------------------------------------------------------------

    def identity(self) -> bytes:
        self._identity = super().identity()
        return self._identity

    def last_identity(self) -> bytes:
        return self._identity or self.identity()

    def word_matches(self, scope: Scope, words: Iterable[str], *, all_passages: bool = False) -> dict[str, WordMatches]:
        wanted = list(words)
        if not wanted:
            return {}
        lexemes = [quote_lexeme(f"{scope.id} {word}") for word in wanted]
        rows = self._rows("word_matches", lexemes, None if all_passages else MAX_PASSAGES_PER_WORD)
        found = {place: WordMatches(count, parse_passages(passages)) for place, count, passages in rows}
        return {word: found.get(place, WordMatches(0, ())) for place, word in enumerate(wanted, 1)}

    # -- vectors -------------------------------------------------------------------------------------------

    @property
    def compares_vectors(self) -> bool:
        return True

    @property
    def stores_vectors(self) -> bool:
        """Whether the database has pgvector. It is for whoever runs the server to make."""
        if not self._pgvector:
            with self._pgvector_lock:  # whoever comes while another looks waits for what is found
                if not self._pgvector and time.monotonic() - self._pgvector_checked_at > PGVECTOR_CHECK_SECONDS:
                    self._check_pgvector()
        return bool(self._pgvector)

    def nearest_vectors(
        self, embedder: str, scope: Scope, vector: Sequence[float], limit: int, with_vectors: int
    ) -> ComparedPassages:
        rows = self._rows("nearest", embedder, scope.id, format_vector(vector), limit, with_vectors)
        total = rows[0][2] if rows else 0
        return ComparedPassages(
            total, [(passage, close, sent and parse_halves(sent)) for passage, close, _, sent in rows]
        )

    def lagging_resources(self, embedder: str, limit: int, *, unclaimed_at: datetime | None = None) -> list[int]:
        """None only where nobody does: for an embedder that is new, that takes a look at everybody."""
        while not (found := super().lagging_resources(embedder, limit, unclaimed_at=unclaimed_at)):
            with suppress(ReadOnly):
                if self._write_statement("mark_stale_resources", embedder, SWEEP_BATCH_SIZE):
                    continue
            return []
        return found

    def _check_pgvector(self) -> None:
        found = self._rows("pgvector")
        self._pgvector_checked_at = time.monotonic()
        if not found:
            if not self._warned:
                log.warning("%s has no pgvector: searching by words alone", self._database.place)
            self._warned = True
            return
        ((schema,),) = found
        with suppress(ReadOnly):
            if "vectors" not in self._query(self._existing_tables):
                self._write(lambda tables: self._create_vector_table(tables, schema))
            self._pgvector = schema

    def _create_vector_table(self, tables: PostgresTables, schema: str) -> None:
        self._lock(tables)
        if "vectors" not in self._existing_tables(tables):
            tables.run_script("add_vectors", pgvector=schema)

    # -- the tables ----------------------------------------------------------------------------------------

    def mark_damaged(self, reason: object) -> None:
        log.warning("the index is damaged and is made anew: %s", reason)
        self._damaged = self._identity or self._damaged
        self._identity, self._pgvector, self._pgvector_checked_at = b"", "", float("-inf")

    def close(self) -> None:
        """The connections are the store's."""

    def _query(self, run: Callable[[PostgresTables], T]) -> T:
        self._ensure_index()
        return self._database.read(lambda connection: run(self._tables(connection)))

    def _write(self, run: Callable[[PostgresTables], T]) -> T:
        self._ensure_index()
        return self._write_with_retry(run)

    def _write_with_retry(self, run: Callable[[PostgresTables], T]) -> T:
        """Whatever is told here may be told twice, so where nobody knows whether it was done it is done again."""
        for _ in range(_MAX_ATTEMPTS - 1):
            try:
                return self._write_once(run)
            except OutcomeUnknown:
                pass
            except StoreBusy as error:  # somebody who makes it anew may stand in the way of all who follow
                if not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                    raise
        return self._write_once(run)

    def _write_once(self, run: Callable[[PostgresTables], T]) -> T:
        with self._database.transaction() as connection:
            return run(self._tables(connection))

    def _ensure_index(self) -> None:
        """That there is an index, and that it is ours: looked at once, and whenever one has turned out not to be."""
        if self._identity:
            return
        try:
            found = self._database.read(lambda connection: self._valid_identity(self._tables(connection)))
        except Damaged:
            found = None
        self._identity = found or self._write_with_retry(self._rebuild)

    def _valid_identity(self, tables: PostgresTables) -> bytes | None:
        """The identity of the index that is there, if it is of our shape."""
        version, identity = (tables.row("state") if "followed" in self._existing_tables(tables) else None) or (0, b"")
        if version > VERSION:
            reason = f"its index is of version {version}, this inmind knows {VERSION}: upgrade inmind to search"
            raise ReadOnly(place=self._database.place, reason=reason)
        return bytes(identity) if version == VERSION and bytes(identity) != self._damaged else None

    def _rebuild(self, tables: PostgresTables) -> bytes:
        """By one process: others wait a moment for empty tables, and then each takes in what it needs."""
        self._lock(tables)
        with suppress(Damaged), tables.savepoint():
            if found := self._valid_identity(tables):
                return found
        for table in self._existing_tables(tables).values():
            tables.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
        tables.run_script("schema")
        tables.rows("add_state", VERSION)
        return bytes(tables.value("identity"))

    def _existing_tables(self, tables: PostgresTables) -> dict[str, str]:
        """The tables of an index that there are, each with its schema."""
        return dict(tables.rows("tables", self._database.schema))

    def _lock(self, tables: PostgresTables) -> None:
        tables.rows("lock")

    def _tables(self, connection: Connection) -> PostgresTables:
        return PostgresTables(self._database, connection, self._statement, self.place)

    def _statement(self, name: str) -> str:
        return expand_statement(self._sql(name), self._pgvector)


class _OwnerProgress(NamedTuple):
    """How far an owner was followed."""

    owner: int
    name: str
    is_stale: bool
    is_valid: bool
    """What was taken in last is where it was put."""
    scope: Scope | None


def _with_anonymous(resources: Iterable[str]) -> set[str]:
    """Where a session is nobody's, what became of its crystals may stand in nobody's stream."""
    owners = set(resources)
    return owners | {ANONYMOUS} if any(one.startswith(PRIVATE) for one in owners) else owners
