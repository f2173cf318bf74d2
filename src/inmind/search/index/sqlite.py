"""The index of a home: a file of its own beside the journal.

It follows everybody from one mark, since a home's journal is in the order in which everything was stored. A word is
looked up in chunks of numbers, and vectors are handed out to be held in memory.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import apsw

from inmind.core.encoding import to_json
from inmind.core.events.base import Event
from inmind.core.fork import Connected
from inmind.core.timestamps import to_microseconds
from inmind.errors import Closed, Damaged, StorageFull, StoreBusy, StoreError, UnsafeStorage
from inmind.search.index.base import AT_A_TIME, COMMON, VERSION, Holding, Index, Scope
from inmind.search.index.ids import packed
from inmind.search.index.indexer import FOLLOWED, Read
from inmind.search.index.record import by_column
from inmind.search.index.tables import Held, Missing, Tables
from inmind.store.atomic_files import create_private
from inmind.store.named_sql import named
from inmind.store.protocol import Store
from inmind.store.sqlite import is_full, set_journal_mode

log = logging.getLogger("inmind")

T = TypeVar("T")

CHUNK = 120
"""Passages that are kept together under a word: as many as fit into a page of the file beside others."""

_named = named("index")


@cache
def _sql(name: str) -> str:
    return by_column(_named(name))


class SqliteIndex(Index, Connected):
    """The derived index of one home."""

    def __init__(self, path: Path, store: Store, read: Read, *, busy_seconds: float = 30.0) -> None:
        self.path, self.place, self._busy_seconds = path, str(path), busy_seconds
        Index.__init__(self, store, read)
        Connected.__init__(self)
        self._closed = False
        self._broken = False
        """Something has read there what cannot be: it is not taken for an index again."""

    # -- following the journal -----------------------------------------------------------------------------

    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        while self._follow():
            if resources is None and until is not None and time.monotonic() > until:
                return False
        return True

    def catch_up_streams(self, streams: Iterable[str]) -> None:  # noqa: ARG002 -- it follows everybody
        self.catch_up()

    def with_news(self, after: str, most: int) -> list[str]:
        upto = self._ask(lambda tables: tables.value("upto"))
        behind = self._store.owners() if self._store.since(upto, kinds=FOLLOWED, most=1) else ()
        return [owner for owner in behind if owner > after][:most]

    def _follow(self) -> bool:
        with self._using() as connection:
            tables = _Tables(connection)
            if not self._store.since(tables.value("upto"), kinds=FOLLOWED, most=1):
                return False
            with _transaction(connection):
                news = self._store.since(tables.value("upto"), kinds=FOLLOWED, most=AT_A_TIME)
                if news:
                    self._take(tables, [event for _, event in news if event])
                    tables.rows("follow", *_mark(*news[-1]))
            return bool(news)

    # -- asking --------------------------------------------------------------------------------------------

    def holding(self, scope: Scope, words: Iterable[str], *, every: bool = False) -> dict[str, Holding]:
        return self._ask(lambda tables: {word: _holding(tables, scope, word, every=every) for word in words})

    def vectors(self, embedder: str, scope: Scope, *, after: int, most: int) -> list[tuple[int, int, bytes]]:
        return self._ask(lambda tables: tables.rows("vectors", embedder, scope.id, after, most))

    def _ask(self, ask: Callable[[Tables], T]) -> T:
        with self._using() as connection:
            return ask(_Tables(connection))

    def _tell(self, tell: Callable[[Tables], T]) -> T:
        with self._using() as connection, _transaction(connection):
            return tell(_Tables(connection))

    def _unlisted(self, value: Any) -> list[Any]:
        return json.loads(value)

    # -- the file ------------------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._let_go()

    @contextlib.contextmanager
    def _using(self) -> Generator[Any]:
        """The connection. Damaged with the place of this file: whoever asks starts anew, since nothing is lost."""
        with self._lock:
            if self._closed:
                raise Closed
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            try:
                yield connection
            except (apsw.Error, Missing) as error:
                raise self._translated(error, connection) from error

    def _translated(self, error: apsw.Error | Missing, connection: Any) -> StoreError:
        """Whatever else SQLite says of it, that a table is missing or a file has moved: it is no index of ours."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=str(self.path), seconds=self._busy_seconds)
        if isinstance(error, apsw.Error) and is_full(error, connection):
            return StorageFull(place=str(self.path))
        return Damaged(place=str(self.path), reason=str(error))

    def _connect(self) -> Any:
        """What is no index, or not ours, is emptied, which others who have it open survive; deleted only if it must."""
        for is_last in (False, True):
            create_private(self.path)
            try:
                connection: Any = apsw.Connection(str(self.path))
            except apsw.Error as error:
                raise UnsafeStorage(place=str(self.path), reason=str(error)) from error
            try:
                connection.set_busy_timeout(int(self._busy_seconds * 1000))
                if not self._is_sound(connection):
                    _empty(connection)
                    self._set_up(connection)
                self._broken = False
                return connection
            except apsw.Error as error:
                translated = self._translated(error, connection)
                connection.close()
                if is_last or not isinstance(translated, Damaged):
                    raise translated from error
            except BaseException:
                connection.close()
                raise
            self._delete()
        raise AssertionError("the last try answers or raises")

    def _is_sound(self, connection: Any) -> bool:
        if self._broken:
            return False
        try:
            self._set_up(connection)
            if self._is_ours(connection):
                return True
            log.info("the index is of another version or journal and is made anew")
        except apsw.Error as error:
            if not isinstance(translated := self._translated(error, connection), Damaged):
                raise translated from error
            log.warning("the index is damaged and is made anew: %s", error)
        return False

    def _set_up(self, connection: Any) -> None:
        set_journal_mode(connection, place=self.path, busy_seconds=self._busy_seconds)
        for pragma, value in _PRAGMAS:
            connection.pragma(pragma, value)
        with _transaction(connection):
            if connection.pragma("user_version") == 0:
                connection.execute(_sql("schema"))
                connection.pragma("user_version", VERSION)

    def _is_ours(self, connection: Any) -> bool:
        """Of our shape, and made of this journal: the last event that it took in stands where it stood.

        A home whose journal was brought back from a copy has other events there, or none.
        """
        if connection.pragma("user_version") != VERSION:
            return False
        row = connection.execute(_sql("followed")).fetchone()
        if row is None:
            return False
        upto, *last = row
        there = self._store.since(upto - 1, kinds=FOLLOWED, most=1) if upto else ()
        return not upto or [_mark(*one) for one in there] == [(upto, *last)]

    def start_anew(self, reason: object) -> None:
        """Let go of an index that has turned out to be damaged; the next who asks makes it again."""
        log.warning("the index is damaged and is made anew: %s", reason)
        with self._lock:
            self._let_go()
            self._broken = True

    def _delete(self) -> None:
        """What SQLite keeps beside it goes first: a new file that met an old log would be damaged by it."""
        try:
            for suffix in ("-wal", "-shm", "-journal", ""):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        except OSError as error:
            raise UnsafeStorage(place=str(self.path), reason=str(error)) from error

    def _let_go(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(apsw.Error):  # of a damaged one there is nothing to save
                self._connection.close()
            self._connection = None


class _Tables(Tables):
    """In the words of SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connection.execute(_sql(statement), values).fetchall()

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._connection.executemany(_sql(statement), rows)

    def listed(self, values: Iterable[object]) -> object:
        return to_json(list(values))

    def hold(self, passages: Sequence[Held]) -> None:
        held: dict[tuple[int, str], array[int]] = {}
        for resource, passage, words in passages:
            for word in words:
                held.setdefault((resource, word), array("q")).append(passage)
        for (resource, word), numbers in held.items():
            self._hold(resource, word, numbers)

    def _hold(self, resource: int, word: str, numbers: array[int]) -> None:
        last = self.row("last_chunk", resource, word)
        chunk, length = (last[0], last[1] // numbers.itemsize) if last else (0, 0)
        while numbers:
            if length >= CHUNK:
                chunk, length = chunk + 1, 0
            room = CHUNK - length
            self.rows("hold", resource, word, chunk, numbers[:room].tobytes())
            numbers, length = numbers[room:], CHUNK

    def vector(self, numbers: Sequence[float]) -> object:
        return packed(numbers)

    def undone_if_it_fails(self) -> AbstractContextManager[Any]:
        return self._connection


def _holding(tables: Tables, scope: Scope, word: str, *, every: bool) -> Holding:
    last = tables.row("last_chunk", scope.id, word)
    if last is None:
        return Holding(0, ())
    most = last[0] + 1 if every else COMMON // CHUNK + 1
    chunks = [chunk for (chunk,) in tables.rows("holding", scope.id, word, most)]
    numbers = array("q", b"".join(reversed(chunks)))
    return Holding(last[0] * CHUNK + last[1] // numbers.itemsize, numbers if every else numbers[-COMMON:])


_PRAGMAS: tuple[tuple[str, Any], ...] = (
    ("synchronous", "normal"),
    ("trusted_schema", False),
    ("secure_delete", True),
    ("journal_size_limit", 4_194_304),
)
"""A power cut may take the last of it: it is made of the journal, which is asked again."""


@contextlib.contextmanager
def _transaction(connection: Any) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(apsw.Error):
                connection.execute("ROLLBACK")
        raise


def _empty(connection: Any) -> None:
    """SQLite's own way to begin again in a file that may hold anything."""
    connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 1)
    try:
        connection.execute("VACUUM")
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_RESET_DATABASE, 0)


def _mark(position: int, event: Event | None) -> tuple[int, str, int]:
    """Where the journal was followed to, and by which event that can be known again."""
    return (position, event.id, to_microseconds(event.at)) if event else (position, "", 0)
