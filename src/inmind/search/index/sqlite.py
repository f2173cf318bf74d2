"""The index of a home: a SQLite file next to the journal.

It has one position for all owners, because a home's journal is in storage order. A word is looked up in chunks of
passage numbers, and vectors are read to be held in memory.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from inmind.core.encoding import to_microseconds
from inmind.core.events.base import Event
from inmind.core.fork import SqliteConnectionOwner, register_after_fork
from inmind.errors import Closed, Damaged, StorageFull, StoreBusy, StoreError, UnsafeStorage
from inmind.search.extract import MessageReader
from inmind.search.index import base
from inmind.search.index.base import NearestPassages, Scope, SearchIndex, WordMatches
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.search.index.record import PassageWords, Tables, expand_columns, pack_vector
from inmind.store.protocol import Store
from inmind.store.rows import load_queries
from inmind.store.sqlite.connection import is_disk_full, lists_as_json, open_database, set_up_connection, transaction

if TYPE_CHECKING:
    from inmind.search.nearest import NearestVectors

log = logging.getLogger("inmind")

T = TypeVar("T")

CHUNK_SIZE = 120
"""Passages stored together under a word, so that several chunks fit into a page of the file."""

VECTOR_BATCH_SIZE = 10_000
"""Number of vectors read into memory at once."""

_PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "normal"),
    ("trusted_schema", False),
    ("secure_delete", True),
    ("journal_size_limit", 4_194_304),
)
"""A power cut may lose the last changes; they are indexed again from the journal."""

_named_statement = load_queries("index_shared", "index", for_sqlite=True)


@cache
def _sql(name: str) -> str:
    return expand_columns(_named_statement(name))


class SqliteIndex(SearchIndex, SqliteConnectionOwner):
    """The index of one home."""

    def __init__(self, path: Path, store: Store, read_message: MessageReader, *, busy_seconds: float = 30.0) -> None:
        self.path, self.place, self._busy_seconds = path, str(path), busy_seconds
        SearchIndex.__init__(self, store, read_message)
        SqliteConnectionOwner.__init__(self)
        self._closed = False
        self._damaged = False
        """Invalid data was read: the file is not accepted as an index again."""
        self._matrices = _VectorMatrices(self)

    # -- indexing ------------------------------------------------------------------------------------------

    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        while self._index_batch():
            if resources is None and until is not None and time.monotonic() > until:
                return False
        return True

    def catch_up_streams(self, streams: Iterable[str]) -> None:  # noqa: ARG002 -- all owners are indexed together
        self.catch_up()

    def stale_resources(self, after: str, limit: int) -> list[str]:
        upto = self._query(lambda tables: tables.value("position"))
        owners = self._store.owners() if self._store.events_since(upto, kinds=INDEXED_KINDS, limit=1) else ()
        return [owner for owner in owners if owner > after][:limit]

    def _index_batch(self) -> bool:
        with self._connected() as connection:
            tables = SqliteTables(connection, self.place)
            if not self._store.events_since(tables.value("position"), kinds=INDEXED_KINDS, limit=1):
                return False
            with transaction(connection):
                upto = tables.value("position")
                new_events = self._store.events_since(upto, kinds=INDEXED_KINDS, limit=base.BATCH_SIZE)
                if new_events:
                    self._index_events(tables, [event for _, event in new_events if event])
                    tables.rows("set_position", *_position_mark(*new_events[-1]))
            return bool(new_events)

    # -- queries -------------------------------------------------------------------------------------------

    def word_matches(self, scope: Scope, words: Iterable[str], *, all_passages: bool = False) -> dict[str, WordMatches]:
        return self._query(
            lambda tables: {word: _word_matches(tables, scope, word, all_passages=all_passages) for word in words}
        )

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        return self._matrices.nearest(embedder, scope, vector, limit)

    def read_vectors(self, embedder: str, scope: Scope, *, after: int) -> list[tuple[int, int, bytes]]:
        """Return the next vectors (made, passage, half floats) of a resource."""
        return self._rows("vectors", embedder, scope.id, after, VECTOR_BATCH_SIZE)

    def _query(self, run: Callable[[Tables], T]) -> T:
        with self._connected() as connection:
            return run(SqliteTables(connection, self.place))

    def _write(self, run: Callable[[Tables], T]) -> T:
        with self._connected() as connection, transaction(connection):
            return run(SqliteTables(connection, self.place))

    def _parse_list(self, value: Any) -> list[Any]:
        return json.loads(value)

    # -- the file ------------------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    @contextlib.contextmanager
    def _connected(self) -> Generator[Any]:
        """Yield the connection.

        Errors become Damaged with the path of this file; the caller rebuilds it, which loses nothing.
        """
        with self._lock:
            if self._closed:
                raise Closed
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            try:
                yield connection
            except apsw.Error as error:
                raise self._translate_error(error, connection) from error

    def _translate_error(self, error: apsw.Error, connection: Any) -> StoreError:
        """Map SQLite errors: anything but busy or full means that the file is not a valid index."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=self.place, seconds=self._busy_seconds)
        if is_disk_full(error, connection):
            return StorageFull(place=self.place)
        return Damaged(place=self.place, reason=str(error))

    def _connect(self) -> Any:
        """Open the file.

        An invalid file is emptied in place, which other processes survive, and deleted only if that fails.
        """
        for is_last in (False, True):
            connection: Any = open_database(self.path, busy_seconds=self._busy_seconds)
            try:
                if not self._is_valid(connection):
                    _reset_database(connection)
                    self._set_up(connection)
                self._damaged = False
                return connection
            except apsw.Error as error:
                translated = self._translate_error(error, connection)
                connection.close()
                if is_last or not isinstance(translated, Damaged):
                    raise translated from error
            except BaseException:
                connection.close()
                raise
            self._delete()
        raise AssertionError("the last attempt returns or raises")

    def _is_valid(self, connection: Any) -> bool:
        if self._damaged:
            return False
        try:
            self._set_up(connection)
            if self._matches_journal(connection):
                return True
            log.info("rebuilding index: schema version or journal changed")
        except apsw.Error as error:
            if not isinstance(translated := self._translate_error(error, connection), Damaged):
                raise translated from error
            log.warning("rebuilding damaged index: %s", error)
        return False

    def _set_up(self, connection: Any) -> None:
        set_up_connection(connection, _PRAGMAS, place=self.path, busy_seconds=self._busy_seconds)
        with transaction(connection):
            if connection.pragma("user_version") == 0:
                connection.execute(_sql("schema"))
                connection.pragma("user_version", base.VERSION)

    def _matches_journal(self, connection: Any) -> bool:
        """Return True if version and journal match: the last indexed event is at its position.

        A journal restored from a copy has another event there, or none.
        """
        if connection.pragma("user_version") != base.VERSION:
            return False
        row = connection.execute(_sql("last_event")).fetchone()
        if row is None:
            return False
        upto, *last = row
        stored_events = self._store.events_since(upto - 1, kinds=INDEXED_KINDS, limit=1) if upto else ()
        return not upto or [_position_mark(*stored_event) for stored_event in stored_events] == [(upto, *last)]

    def mark_damaged(self, reason: object) -> None:
        """Discard a damaged index. The next query rebuilds it."""
        log.warning("rebuilding damaged index: %s", reason)
        with self._lock:
            self._disconnect()
            self._damaged = True

    def _delete(self) -> None:
        """Delete the file, SQLite's companion files first: an old log would damage a new file."""
        try:
            for suffix in ("-wal", "-shm", "-journal", ""):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            raise UnsafeStorage(place=self.place, reason=str(error)) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(apsw.Error):  # errors of a damaged file do not matter
                self._connection.close()
            self._connection = None


class SqliteTables(Tables):
    """The index tables in SQLite."""

    def __init__(self, connection: Any, place: str) -> None:
        self._connection, self.place = connection, place

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(_sql(statement), lists_as_json(values)).fetchall()

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._connection.executemany(_sql(statement), rows)

    def add_words(self, passages: Sequence[PassageWords]) -> None:
        passages_by_word: dict[tuple[int, str], array[int]] = {}
        for resource, passage, words in passages:
            for word in words:
                passages_by_word.setdefault((resource, word), array("q")).append(passage)
        for (resource, word), numbers in passages_by_word.items():
            self._add_word(resource, word, numbers)

    def _add_word(self, resource: int, word: str, numbers: array[int]) -> None:
        last = self.row("last_chunk", resource, word)
        chunk, length = (last[0], last[1] // numbers.itemsize) if last else (0, 0)
        while numbers:
            if length >= CHUNK_SIZE:
                chunk, length = chunk + 1, 0
            free = CHUNK_SIZE - length
            self.rows("add_words", resource, word, chunk, numbers[:free].tobytes())
            numbers, length = numbers[free:], CHUNK_SIZE

    def vector_parameter(self, numbers: Sequence[float]) -> object:
        return pack_vector(numbers)

    def savepoint(self) -> AbstractContextManager[Any]:
        return self._connection


def _word_matches(tables: Tables, scope: Scope, word: str, *, all_passages: bool) -> WordMatches:
    last = tables.row("last_chunk", scope.id, word)
    if last is None:
        return WordMatches(0, ())
    limit = last[0] + 1 if all_passages else base.MAX_PASSAGES_PER_WORD // CHUNK_SIZE + 1
    chunks = [chunk for (chunk,) in tables.rows("word_matches", scope.id, word, limit)]
    numbers = array("q", b"".join(reversed(chunks)))
    return WordMatches(
        last[0] * CHUNK_SIZE + last[1] // numbers.itemsize,
        numbers if all_passages else numbers[-base.MAX_PASSAGES_PER_WORD :],
    )


class _VectorMatrices:
    """One in-memory matrix for each searched resource."""

    def __init__(self, index: SqliteIndex) -> None:
        self._index = index
        self._by_resource: dict[int, _VectorMatrix] = {}
        self._lock = threading.Lock()
        register_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been filling a matrix: the child starts empty."""
        self._lock = threading.Lock()
        self._by_resource.clear()

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        from inmind.search.nearest import NearestVectors

        with self._lock:
            content, matrix = (embedder, scope.index_identity), self._by_resource.get(scope.id)
            if matrix is None or matrix.content != content:
                matrix = self._by_resource[scope.id] = _VectorMatrix(content, NearestVectors(len(vector)))
            while rows := self._index.read_vectors(embedder, scope, after=matrix.upto):
                numbers = base.unpack_vectors([stored for _, _, stored in rows], len(vector))
                matrix.vectors.add([passage for _, passage, _ in rows], numbers)
                matrix.upto = rows[-1][0]
            return NearestPassages(len(matrix.vectors), matrix.vectors.nearest(vector, limit))


@dataclass
class _VectorMatrix:
    content: tuple[str, bytes]
    """Embedder and index that the vectors are of."""
    vectors: NearestVectors
    upto: int = 0
    """`Record.made` of the last crystal in it."""


def _reset_database(connection: Any) -> None:
    """Reset a file with any content, as SQLite documents it."""
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        connection.execute("VACUUM")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


def _position_mark(position: int, event: Event | None) -> tuple[int, str, int]:
    """Return the journal position, and the event that identifies it."""
    return (position, event.id, to_microseconds(event.at)) if event else (position, "", 0)
