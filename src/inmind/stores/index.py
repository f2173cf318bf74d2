"""The index of deep memory: which passages hold a word, where they stand, and their vectors.

It follows the journal in the order in which events were stored, and is asked only after it has caught up; so whatever
was acknowledged is found, by whichever process asks. It is a file of its own, derived and deletable: one that is
damaged, of another shape, or made of another journal, is made anew.

What it holds are numbers (`numbers`), records of crystals (`records`) and words; how it follows is in `following`.
"""

from __future__ import annotations

import contextlib
import logging
from array import array
from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from inmind.crystals.when import Span
from inmind.errors import Closed, Damaged, StorageFull, StoreBusy, StoreError, UnsafeStorage
from inmind.frozen import frozen
from inmind.journal import (
    UNREADABLE,
    Event,
    microseconds,
    to_json,
)
from inmind.stores.base import Store
from inmind.stores.files import create_private
from inmind.stores.following import CHUNK, FOLLOWED, Follower, Read
from inmind.stores.fork import Connected
from inmind.stores.records import Record, known
from inmind.stores.sqlite import is_full, set_journal_mode
from inmind.stores.statements import named

log = logging.getLogger("inmind")

VERSION = 7
"""Raised when the shape of the index changes, or what is put there: one of another version is made anew."""

AT_A_TIME = 500
"""Events that are followed in one transaction: others who want to write wait for no more than these."""

COMMON = 4_800
"""Passages that are looked at for one word, the newest of those that hold it. A word that so many hold tells little."""

MOST_SPEAKERS = 200

_sql = named("index")


@frozen
class Scope:
    """Whose memory is asked: a resource, as the index numbers it, and how many passages it has."""

    id: int
    name: str
    passages: int
    hidden: int = 0
    """Changes whenever something of it is hidden, or found again."""


@frozen
class Holding:
    """How many passages hold a word, and the numbers of some of them."""

    count: int
    passages: Sequence[int]


class Index(Connected):
    """The derived index of one home."""

    def __init__(self, path: Path, store: Store, read: Read, *, busy_seconds: float = 30.0) -> None:
        self.path = path
        self._store, self._read, self._busy_seconds = store, read, busy_seconds
        super().__init__()
        self._closed = False
        self._broken = False
        """Something has read there what cannot be: it is not taken for an index again."""

    # -- following the journal -----------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Take in all that the journal has and this has not. True if there was anything."""
        any_news = False
        while self._follow():
            any_news = True
        return any_news

    def _follow(self) -> bool:
        with self._using() as connection:
            upto = connection.execute(_sql("upto")).get
            if not self._store.since(upto, kinds=FOLLOWED, most=1):
                return False
            with _transaction(connection):
                upto = connection.execute(_sql("upto")).get
                news = self._store.since(upto, kinds=FOLLOWED, most=AT_A_TIME)
                if news:
                    self._take(connection, [event for _, event in news if event])
                    connection.execute(_sql("follow"), _mark(*news[-1]))
            return bool(news)

    def _take(self, connection: Any, events: Sequence[Event]) -> None:
        """All of them; but one that cannot be read is passed over, or nobody would ever find anything again.

        It is looked for by halves, so that where all can be read, as they always should, nothing is paid for it.
        """
        try:
            with connection:  # a savepoint
                Follower(connection, self._store, self._read).take(events)
        except UNREADABLE as error:
            if len(events) == 1:
                log.warning("passed over, and not found: event %s cannot be read: %r", events[0].id, error)
                return
            for half in (events[: len(events) // 2], events[len(events) // 2 :]):
                self._take(connection, half)

    # -- asking --------------------------------------------------------------------------------------------

    def scope(self, resource: str) -> Scope | None:
        with self._using() as connection:
            row = connection.execute(_sql("resource"), (resource,)).fetchone()
        return Scope(row[0], resource, row[1], row[2]) if row else None

    def resources(self) -> list[str]:
        with self._using() as connection:
            return [name for (name,) in connection.execute(_sql("resource_names")).fetchall()]

    def holding(self, scope: Scope, word: str, *, every: bool = False) -> Holding:
        """Passages that hold a word: at most COMMON of them, the newest, unless `every` one is asked for."""
        with self._using() as connection:
            last = connection.execute(_sql("last_chunk"), (scope.id, word)).fetchone()
            if last is None:
                return Holding(0, ())
            most = last[0] + 1 if every else COMMON // CHUNK
            rows = connection.execute(_sql("holding"), (scope.id, word, most)).fetchall()
        numbers = array("q", b"".join(chunk for (chunk,) in rows))
        return Holding(last[0] * CHUNK + last[1] // numbers.itemsize, numbers)

    def hidden(self, scope: Scope) -> frozenset[int]:
        """Crystals that were taken back, overtaken or merged, or have faded."""
        with self._using() as connection:
            return frozenset(number for (number,) in connection.execute(_sql("hidden"), (scope.id,)).fetchall())

    def series_of(self, stream: str) -> frozenset[int]:
        """What of a stream stands in order: its conversation, its notes, its pages. See `series`."""
        with self._using() as connection:
            return frozenset(number for (number,) in connection.execute(_sql("series_of"), (stream,)).fetchall())

    def speakers(self, scope: Scope) -> list[str]:
        with self._using() as connection:
            return [name for (name,) in connection.execute(_sql("speakers"), (scope.id, MOST_SPEAKERS)).fetchall()]

    def records(self, numbers: Iterable[int]) -> list[Record]:
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("placed"), (to_json(list(numbers)),)).fetchall()]

    def known(self, id: str) -> Record | None:
        """A crystal by its id."""
        with self._using() as connection:
            return known(connection, id)

    def of_events(self, events: Iterable[str]) -> list[Record]:
        """The crystals of some events, by the ids of these."""
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("of_events"), (to_json(list(events)),)).fetchall()]

    def fresh(self, scope: Scope, since: datetime, most: int) -> int:
        """How many crystals were said after some moment, of at most so many."""
        with self._using() as connection:
            return connection.execute(_sql("fresh"), (scope.id, microseconds(since), most)).get

    def amid(self, scope: Scope, span: Span, most: int) -> list[int]:
        """Crystals that were said in a span of time, the newest first."""
        bounds = (scope.id, microseconds(span.first), microseconds(span.before), most)
        with self._using() as connection:
            return [number for (number,) in connection.execute(_sql("amid"), bounds).fetchall()]

    def written(self, scope: Scope) -> list[Record]:
        """Notes, and what dreams have found."""
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("written"), (scope.id,)).fetchall()]

    def fading(self, scope: Scope, made: int, most: int) -> list[Record]:
        """What was said and may leave search, in the order in which it was taken in."""
        with self._using() as connection:
            return [Record(*row) for row in connection.execute(_sql("fading"), (scope.id, made, most)).fetchall()]

    # -- vectors -------------------------------------------------------------------------------------------

    def unembedded(self, embedder: str, most: int) -> list[Record]:
        """Crystals that an embedder has not been through yet, in their order."""
        with self._using() as connection:
            _, upto = _embedder(connection, embedder)
            return [Record(*row) for row in connection.execute(_sql("unembedded"), (upto, most)).fetchall()]

    def behind(self, embedder: str, scope: Scope, most: int) -> int:
        """How many crystals of a resource an embedder has not been through yet, of at most so many."""
        with self._using() as connection:
            _, upto = _embedder(connection, embedder)
            return connection.execute(_sql("unembedded_of"), (upto, scope.id, most)).get

    def embedded(self, embedder: str, *, upto: int, vectors: Sequence[tuple[int, int, bytes]]) -> None:
        """Keep vectors (resource, passage, numbers), and that the embedder has been through all up to a crystal."""
        with self._using() as connection, _transaction(connection):
            number, known = connection.execute(_sql("add_embedder"), (embedder,)).fetchone()
            for resource, passage, numbers in vectors:
                connection.execute(_sql("add_vector"), (number, resource, passage, numbers))
            connection.execute(_sql("embedded_upto"), (number, max(upto, known)))

    def vectors(self, embedder: str, scope: Scope, *, after: int, most: int) -> list[tuple[int, int, bytes]]:
        """Vectors (made, passage, numbers) of a resource by this embedder and no other."""
        with self._using() as connection:
            number, _ = _embedder(connection, embedder)
            return connection.execute(_sql("vectors"), (number, scope.id, after, most)).fetchall()

    def identity(self) -> bytes:
        """Of all that is here: one that was made anew is another, and numbers its rows from the beginning."""
        with self._using() as connection:
            return connection.execute(_sql("identity")).get

    def forget_others(self, embedder: str) -> None:
        """Once all is embedded anew, the vectors of embedders that came before are of no use."""
        with self._using() as connection, _transaction(connection):
            for (other,) in connection.execute(_sql("other_embedders"), (embedder,)).fetchall():
                connection.execute(_sql("drop_vectors"), (other,))
                connection.execute(_sql("drop_embedder"), (other,))

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
            except apsw.Error as error:
                raise self._translated(error, connection) from error

    def _translated(self, error: apsw.Error, connection: Any) -> StoreError:
        """Whatever else SQLite says of it, that a table is missing or a file has moved: it is no index of ours."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(place=str(self.path), seconds=self._busy_seconds)
        if is_full(error, connection):
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
        upto, *last = connection.execute(_sql("followed")).fetchone() or (0,)
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
    return (position, event.id, microseconds(event.at)) if event else (position, "", 0)


def _embedder(connection: Any, name: str) -> tuple[int, int]:
    """Its number, and how far it is; one that has embedded nothing yet has none."""
    return connection.execute(_sql("embedder"), (name,)).fetchone() or (0, 0)
