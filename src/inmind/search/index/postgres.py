"""The index in a tenant's schema, updated and queried by any number of processes.

Each owner has its own position, because only the events of one owner are in storage order. A query first indexes
the new events of its owners, holding the owner's row lock; other processes wait for one batch and then find it
done. Words are a full-text index over our stems, each prefixed with the resource number; vectors are compared by
pgvector if the database has it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from struct import unpack
from typing import Any, NamedTuple, TypeVar

import psycopg

from inmind.core.events.crystals import CrystalPinned
from inmind.core.fork import register_after_fork
from inmind.core.paths import ANONYMOUS, PRIVATE
from inmind.errors import Damaged, OutcomeUnknown, ReadOnly, StoreBusy
from inmind.search.extract import MessageReader
from inmind.search.index import base
from inmind.search.index.base import NearestPassages, Scope, SearchIndex, WordMatches
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.search.index.record import PassageWords, Tables, expand_columns, format_vector, pack_vector
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import Database
from inmind.store.postgres.errors import first_line
from inmind.store.postgres.store import PostgresStore

log = logging.getLogger("inmind")

T = TypeVar("T")

OWNER_BATCH_SIZE = 100
"""Owners processed at once when all are caught up."""

SWEEP_BATCH_SIZE = 1_000
"""Owners marked as stale at once after a rebuild, or resources for a new embedder."""

PGVECTOR_CHECK_SECONDS = 60.0
"""Interval at which a database without pgvector is checked again."""

RERANK_COUNT = 1_000
"""Number of vectors measured again: far more than can become hits."""

VECTOR_HEADER_BYTES = 4
"""Bytes that pgvector sends before the numbers of a vector."""

_MAX_ATTEMPTS = 5


class _OwnerProgress(NamedTuple):
    """Indexing progress of an owner."""

    owner: int
    name: str
    is_stale: bool
    is_valid: bool
    """The last indexed passage is where it was stored."""
    scope: Scope | None


class PostgresIndex(SearchIndex):
    """The index of one tenant."""

    def __init__(self, store: PostgresStore, read_message: MessageReader) -> None:
        super().__init__(store, read_message)
        self._database = store.database
        self.place = f"{self._database.place} (index)"
        self._sql = self._database.statements("index_shared", "postgres/index")
        self._identity = b""
        """Identity of the index at the last check; empty before the first."""
        self._damaged = b""
        """Identity of a damaged index, which is not accepted again."""
        self._pgvector = ""
        """Quoted schema of pgvector, if the database has it."""
        self._pgvector_checked_at = float("-inf")
        self._warned = False
        self._pgvector_lock = threading.Lock()
        register_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have held the lock."""
        self._pgvector_lock = threading.Lock()

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
        """Return the scopes with one query if no owner has new events."""
        progress = self._catch_up_owners(_with_anonymous(resources), embedder)
        if any(owner.is_stale or not owner.is_valid for owner in progress):
            return self.scopes(resources, embedder=embedder)
        scopes_by_name = {owner.scope.name: owner.scope for owner in progress if owner.scope}
        return [scopes_by_name[name] for name in dict.fromkeys(resources) if name in scopes_by_name]

    def catch_up_streams(self, streams: Iterable[str]) -> None:
        if wanted := sorted(set(streams)):
            self.catch_up([name for (name,) in self._rows("owners_of", wanted)])

    def stale_resources(self, after: str, limit: int) -> list[str]:
        """Return stale resources; after a rebuild, owners are checked until some are found."""
        rows: list[tuple[Any, ...]] = []
        while not rows and self._mark_stale_batch():
            rows = self._rows("stale_owners", after, limit)
        return [name for (name,) in rows or self._rows("stale_owners", after, limit)]

    def _mark_stale_batch(self) -> bool:
        """After a rebuild, mark the next batch of owners as stale.

        Returns False when all are marked, or if the database is read-only.
        """
        with suppress(ReadOnly):
            return bool(self._write(lambda tables: tables.rows("mark_stale_owners", SWEEP_BATCH_SIZE)))
        return False

    def _catch_up_owners(self, owners: set[str], embedder: str = "") -> list[_OwnerProgress]:
        """Index new events of the owners; return their progress before that."""
        progress = self._read_progress(sorted(owners), embedder) if owners else []
        for owner in progress:
            if not owner.is_valid:
                self._rebuild_owner(owner, "indexed passages are missing")
            elif owner.is_stale:
                self._index_owner_if_writable(owner)
        return progress

    def _index_owner_if_writable(self, progress: _OwnerProgress) -> None:
        """Index new events; a read-only database returns what it has."""
        try:
            while not self._index_batch(progress):
                pass
        except ReadOnly as error:
            log.warning("new events of %s cannot be indexed: %s", progress.name, error)
        except Damaged as error:
            if error.place != self.place:
                raise
            self._rebuild_owner(progress, error.reason)

    def _rebuild_owner(self, progress: _OwnerProgress, reason: object) -> None:
        """Delete one owner's index and index all its events.

        Pin events of anonymous sessions are in the `default` stream, so that owner is deleted too.
        """
        log.warning("rebuilding damaged index of %s: %s", progress.name, reason)
        anonymous = self._read_progress([ANONYMOUS], "") if progress.name.startswith(PRIVATE) else []
        has_vectors = self.stores_vectors

        def delete(tables: PostgresTables) -> None:
            for owner in sorted({progress.owner, *(other.owner for other in anonymous)}):
                tables.rows("delete_resource", owner, f"{quote_lexeme(f'{owner} ')}:*")
                if has_vectors:
                    tables.rows("delete_vectors", owner)

        self._write(delete)
        while not self._index_batch(progress):
            pass

    def _read_progress(self, owners: list[str], embedder: str) -> list[_OwnerProgress]:
        progress: list[_OwnerProgress] = []
        rows = self._rows("owner_progress", owners, embedder, base.MAX_SPEAKERS)
        for owner, name, is_stale, is_valid, identity, *scope_row in rows:
            self._identity = bytes(identity or b"")
            if self._identity and self._identity == self._damaged:
                raise Damaged(place=self.place, reason="invalid data was read from the index")
            scope = self._scope(*scope_row) if scope_row[0] is not None else None
            progress.append(_OwnerProgress(owner, name, is_stale, is_valid, scope))
        return progress

    def _index_batch(self, progress: _OwnerProgress) -> bool:
        """Index one batch of new events. True if nothing is left."""
        owner, name = progress.owner, progress.name
        if name == ANONYMOUS:
            self._catch_up_pinned(owner)

        def index_batch(tables: PostgresTables) -> bool:
            if (row := tables.row("lock_owner", owner)) is None:
                tables.rows("add_owner", owner)
                row = tables.row("lock_owner", owner)
            upto, position = row or (0, 0)
            new_events = self._store.events_since(upto, kinds=INDEXED_KINDS, limit=base.BATCH_SIZE, owner=name)
            if events := [event for _, event in new_events if event]:
                self._index_events(tables, events, resource=owner)
            is_done = len(new_events) < base.BATCH_SIZE
            mark = max(upto, position if is_done else 0, new_events[-1][0] if new_events else 0)
            tables.rows("set_position", owner, mark, tables.last_passage)
            return is_done

        return self._write(index_batch)

    def _catch_up_pinned(self, anonymous: int) -> None:
        """Index the owners of crystals that are pinned in the anonymous stream first."""
        upto = next((upto for (upto,) in self._rows("position_of", anonymous)), 0)
        pin_events = self._store.events_since(upto, kinds=(CrystalPinned.kind,), limit=base.BATCH_SIZE, owner=ANONYMOUS)
        pins = [event.payload for _, event in pin_events if event]
        streams = sorted({pin.id.rpartition("#")[0] for pin in pins if isinstance(pin, CrystalPinned)})
        self._catch_up_owners({name for (name,) in self._rows("owners_of", streams)} - {ANONYMOUS})

    # -- queries -------------------------------------------------------------------------------------------

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
        rows = self._rows("word_matches", lexemes, None if all_passages else base.MAX_PASSAGES_PER_WORD)
        matches = {number: WordMatches(count, parse_numbers("q", passages)) for number, count, passages in rows}
        return {word: matches.get(number, WordMatches(0, ())) for number, word in enumerate(wanted, 1)}

    @property
    def stores_vectors(self) -> bool:
        """True if the database has pgvector, which the operator installs."""
        if not self._pgvector:
            with self._pgvector_lock:  # other threads wait for the result of the check
                if not self._pgvector and time.monotonic() - self._pgvector_checked_at > PGVECTOR_CHECK_SECONDS:
                    self._check_pgvector()
        return bool(self._pgvector)

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        """Return the nearest passages.

        The best ones are measured again: pgvector sums in single precision and would order near-equal vectors
        differently.
        """
        from inmind.search.nearest import NearestVectors

        rows = self._rows("nearest", embedder, scope.id, format_vector(vector), limit, RERANK_COUNT)
        stored = {row[0]: parse_numbers("H", row[3][VECTOR_HEADER_BYTES:]).tobytes() for row in rows if row[3]}
        nearest = NearestVectors(len(vector))
        nearest.add([*stored], base.unpack_vectors([*stored.values()], len(vector)))
        others = [(passage, cosine) for passage, cosine, _, _ in rows if passage not in stored]
        return NearestPassages(rows[0][2] if rows else 0, [*nearest.nearest(vector, len(stored)), *others])

    def lagging_resources(self, embedder: str, limit: int, *, unclaimed_at: datetime | None = None) -> list[int]:
        """Return lagging resources; for a new embedder, resources are checked until some are found."""
        while not (resources := super().lagging_resources(embedder, limit, unclaimed_at=unclaimed_at)):
            with suppress(ReadOnly):
                if self._write(lambda tables: tables.rows("mark_stale_resources", embedder, SWEEP_BATCH_SIZE)):
                    continue
            return []
        return resources

    def _check_pgvector(self) -> None:
        rows = self._rows("pgvector")
        self._pgvector_checked_at = time.monotonic()
        if not rows:
            if not self._warned:
                log.warning("%s has no pgvector: searching by words only", self._database.place)
            self._warned = True
            return
        ((schema,),) = rows

        def create_table(tables: PostgresTables) -> None:
            tables.rows("lock")
            if "vectors" not in self._existing_tables(tables):
                tables.execute(expand_statement(self._sql("add_vectors"), schema))

        with suppress(ReadOnly):
            if "vectors" not in self._query(self._existing_tables):
                self._write(create_table)
            self._pgvector = schema

    def mark_damaged(self, reason: object) -> None:
        log.warning("rebuilding damaged index: %s", reason)
        self._damaged = self._identity or self._damaged
        self._identity, self._pgvector, self._pgvector_checked_at = b"", "", float("-inf")

    def close(self) -> None:
        """Do nothing: the store owns the connections."""

    def _query(self, run: Callable[[PostgresTables], T]) -> T:
        self._ensure_index()
        return self._database.read(lambda connection: run(self._tables(connection)))

    def _write(self, run: Callable[[PostgresTables], T]) -> T:
        self._ensure_index()
        return self._write_with_retry(run)

    def _write_with_retry(self, run: Callable[[PostgresTables], T]) -> T:
        """Run an idempotent write again if it deadlocked or its outcome is unknown."""
        for attempt in range(_MAX_ATTEMPTS):
            try:
                with self._database.transaction() as connection:
                    return run(self._tables(connection))
            except (OutcomeUnknown, StoreBusy) as error:
                deadlocked = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
                if attempt == _MAX_ATTEMPTS - 1 or not (deadlocked or isinstance(error, OutcomeUnknown)):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _ensure_index(self) -> None:
        """Ensure that a valid index exists: checked once, and again after damage."""
        if self._identity:
            return
        identity: bytes | None = None
        with suppress(Damaged):
            identity = self._database.read(lambda connection: self._valid_identity(self._tables(connection)))
        self._identity = identity or self._write_with_retry(self._rebuild)

    def _valid_identity(self, tables: PostgresTables) -> bytes | None:
        """Return the identity of the existing index if its version matches."""
        version, identity = (tables.row("state") if "followed" in self._existing_tables(tables) else None) or (0, b"")
        if version > base.VERSION:
            reason = f"index version {version} is newer than {base.VERSION}: upgrade inmind to search"
            raise ReadOnly(place=self._database.place, reason=reason)
        return bytes(identity) if version == base.VERSION and bytes(identity) != self._damaged else None

    def _rebuild(self, tables: PostgresTables) -> bytes:
        """Create empty tables, in one process; then each process indexes what it needs."""
        tables.rows("lock")
        with suppress(Damaged), tables.savepoint():
            if identity := self._valid_identity(tables):
                return identity
        for table in self._existing_tables(tables).values():
            tables.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
        tables.execute(self._sql("schema"))
        tables.rows("add_state", base.VERSION)
        return bytes(tables.value("identity"))

    def _existing_tables(self, tables: PostgresTables) -> dict[str, str]:
        """Return the existing index tables, each with its schema."""
        return dict(tables.rows("tables", self._database.schema))

    def _tables(self, connection: Connection) -> PostgresTables:
        return PostgresTables(self._database, connection, self._statement, self.place)

    def _statement(self, name: str) -> str:
        return expand_statement(self._sql(name), self._pgvector)


def _with_anonymous(resources: Iterable[str]) -> set[str]:
    """Add the anonymous owner: lifecycle events of anonymous sessions may be in its stream."""
    owners = set(resources)
    return owners | {ANONYMOUS} if any(owner.startswith(PRIVATE) for owner in owners) else owners


class PostgresTables(Tables):
    """The index tables in PostgreSQL."""

    def __init__(self, database: Database, connection: Connection, statement: Callable[[str], str], place: str) -> None:
        self._database, self._connection, self._statement, self.place = database, connection, statement, place
        self.last_passage = 0
        """The last passage whose words were stored."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.execute(self._statement(statement), values)

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for all rows, with an array for each column."""
        if rows:
            self.rows(statement, *(list(column) for column in zip(*rows, strict=True)))

    def add_words(self, passages: Sequence[PassageWords]) -> None:
        if passages:
            lines = ["\n".join(f"{resource} {word}" for word in words) for resource, _, words in passages]
            self.last_passage = self.value("add_words", [passage for _, passage, _ in passages], lines)

    def vector_parameter(self, numbers: Sequence[float]) -> object:
        return format_vector(unpack(f"<{len(numbers)}e", pack_vector(numbers)))

    @contextmanager
    def savepoint(self) -> Generator[None]:
        last = self.last_passage
        try:
            with self._connection.transaction():
                yield
        except BaseException:
            self.last_passage = last
            raise

    def execute(self, text: str, values: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        self._database.extend_deadline()
        try:
            cursor = self._connection.execute(text, values)
        except psycopg.Error as error:
            if _is_damage(error):
                raise Damaged(place=self.place, reason=first_line(error)) from error
            raise
        return cursor.fetchall() if cursor.description else []


@cache
def expand_statement(statement: str, pgvector: str) -> str:
    """Insert the columns of records and the schema of pgvector."""
    statement = expand_columns(statement)
    return statement.replace("pgvector.", f"{pgvector}.") if pgvector else statement


def _is_damage(error: psycopg.Error) -> bool:
    """Return True for errors about missing or invalid tables and values."""
    state = error.sqlstate or ""
    return (state[:2] in ("22", "23", "3F", "42") and state != "42501") or state.startswith("XX")


def quote_lexeme(lexeme: str) -> str:
    """Quote a lexeme as a full-text query for exactly this lexeme."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def parse_numbers(typecode: str, sent: bytes) -> array[int]:
    """Return numbers that PostgreSQL has sent in network byte order."""
    numbers = array(typecode, sent)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
