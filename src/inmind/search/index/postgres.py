"""The index of deep memory in a tenant's schema, where any number of processes catch it up and ask it.

Each owner is followed for itself: its events alone are in the order in which they were stored. Whoever asks about one
takes in its news first, holding its row of the index, so that nobody else takes the same; others wait for a batch, and
then find it done. Words are a full-text index over stems of ours, each behind the number of its resource; vectors are
compared by pgvector where the database has it.
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
from typing import Any, NamedTuple, TypeVar

import psycopg

from inmind.core.events.crystals import CrystalPinned
from inmind.core.fork import tell_after_fork
from inmind.core.streams import ANONYMOUS, PRIVATE
from inmind.errors import Damaged, OutcomeUnknown, ReadOnly, StoreBusy
from inmind.search.index.base import AT_A_TIME, COMMON, MOST_SPEAKERS, VERSION, Compared, Holding, Index, Scope
from inmind.search.index.ids import half
from inmind.search.index.indexer import FOLLOWED, Read
from inmind.search.index.record import by_column
from inmind.search.index.tables import Held, Missing, Tables
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import Database
from inmind.store.postgres.errors import first_line
from inmind.store.postgres.store import PostgresStore

log = logging.getLogger("inmind")

T = TypeVar("T")

OWNERS_AT_A_TIME = 100
"""That are asked about together, by whoever means all of them."""

SWEPT_AT_A_TIME = 1_000
"""Owners that are told apart together after an index was made anew, or resources when an embedder is new."""

LOOK_AGAIN = 60.0
"""Seconds after which a database without pgvector is asked again whether it has it by now."""

_HEAD = 4
"""Bytes that pgvector sends before the numbers of a vector."""

_TRIES = 5


class PostgresIndex(Index):
    """The derived index of one tenant."""

    def __init__(self, store: PostgresStore, read: Read) -> None:
        super().__init__(store, read)
        self._database = store.database
        self.place = f"{self._database.place} (index)"
        self._sql = self._database.statements("index")
        self._identity = b""
        """Of the index that was last seen; none was, as long as this is empty."""
        self._broken = b""
        """Of the one in which something was read that cannot be: it is not taken for an index again."""
        self._pgvector = ""
        """The schema of pgvector, quoted, where the database has it."""
        self._looked = float("-inf")
        self._has_said_so = False
        self._looking = threading.Lock()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been looking."""
        self._looking = threading.Lock()

    # -- following the journal -----------------------------------------------------------------------------

    def catch_up(self, resources: Iterable[str] | None = None, *, until: float | None = None) -> bool:
        if resources is not None:
            self._caught_up(_and_nobody(resources))
            return True
        while self._swept():
            pass
        last = ""
        while behind := self.with_news(last, OWNERS_AT_A_TIME):
            for last in behind:
                self._caught_up(_and_nobody([last]))
                if until is not None and time.monotonic() > until:
                    return not self.with_news("", 1)
        return True

    def caught_up(self, resources: Sequence[str], *, embedder: str = "") -> list[Scope]:
        """In one question, where nobody of them has news."""
        standing = self._caught_up(_and_nobody(resources), embedder)
        if any(one.has_news or not one.is_sound for one in standing):
            return self.scopes(resources, embedder=embedder)
        found = {one.scope.name: one.scope for one in standing if one.scope}
        return [found[name] for name in dict.fromkeys(resources) if name in found]

    def catch_up_streams(self, streams: Iterable[str]) -> None:
        if wanted := sorted(set(streams)):
            self.catch_up([name for (name,) in self._rows("owners_of", wanted)])

    def with_news(self, after: str, most: int) -> list[str]:
        """None only where nobody has: after an index was made anew, that takes a look at everybody."""
        found: list[tuple[Any, ...]] = []
        while not found and self._swept():
            found = self._rows("with_news", after, most)
        return [name for (name,) in found or self._rows("with_news", after, most)]

    def _swept(self) -> bool:
        """After an index was made anew, of the next so many owners those have news whom it has not followed to their
        end. False when that is told of everybody; or cannot be, where nothing can be written.
        """
        with suppress(ReadOnly):
            return bool(self._put("sweep", SWEPT_AT_A_TIME))
        return False

    def _caught_up(self, owners: set[str], embedder: str = "") -> list[_Standing]:
        """How they stood before all that was there was taken in."""
        standing = self._standing(sorted(owners), embedder) if owners else []
        for one in standing:
            if not one.is_sound:
                self._forget(one, "it does not have what it took in")
                self._follow_to_the_end(one)
            elif one.has_news:
                self._follow_as_far_as_can_be(one)
        return standing

    def _follow_as_far_as_can_be(self, one: _Standing) -> None:
        """What nothing can be written to, as long as that lasts, still answers with what it has."""
        try:
            self._follow_to_the_end(one)
        except ReadOnly as error:
            log.warning("what is new of %s is not found yet: %s", one.name, error)
        except Damaged as error:
            if error.place != self.place:
                raise
            self._forget(one, error.reason)
            self._follow_to_the_end(one)

    def _follow_to_the_end(self, one: _Standing) -> None:
        while not self._follow(one.owner, one.name):
            pass

    def _forget(self, one: _Standing, reason: object) -> None:
        """What it has of one owner is made anew, and all else stays. What is frozen of a session that is nobody's is in
        nobody's stream: the one is not made anew without the other."""
        log.warning("the index of %s is damaged and is made anew: %s", one.name, reason)
        nobody = self._standing([ANONYMOUS], "") if one.name.startswith(PRIVATE) else []
        has_vectors = self.takes_vectors

        def forget(tables: _Tables) -> None:
            for owner in sorted({one.owner, *(other.owner for other in nobody)}):
                tables.rows("forget_resource", owner, f"{_quoted(f'{owner} ')}:*")
                if has_vectors:
                    tables.rows("forget_vectors", owner)

        self._tell(forget)

    def _standing(self, owners: list[str], embedder: str) -> list[_Standing]:
        standing: list[_Standing] = []
        for owner, name, has_news, is_sound, identity, *scope in self._rows(
            "standing", owners, embedder, MOST_SPEAKERS
        ):
            self._identity = bytes(identity or b"")
            if self._identity and self._identity == self._broken:
                raise Damaged(place=self.place, reason="something was read there that cannot be")
            found = self._scope(*scope) if scope[0] is not None else None
            standing.append(_Standing(owner, name, has_news, is_sound, found))
        return standing

    def _follow(self, owner: int, name: str) -> bool:
        """Some of its news. True when there is nothing left."""
        if name == ANONYMOUS:
            self._catch_up_with_frozen(owner)

        def follow(tables: _Tables) -> bool:
            held = tables.row("hold_resource", owner)
            if held is None:
                tables.rows("meet_resource", owner)
                held = tables.row("hold_resource", owner) or (0, 0)
            upto, position = held
            news = self._store.since(upto, kinds=FOLLOWED, most=AT_A_TIME, owner=name)
            if events := [event for _, event in news if event]:
                self._take(tables, events, resource=owner)
            is_done = len(news) < AT_A_TIME
            mark = max(upto, position if is_done else 0, news[-1][0] if news else 0)
            tables.rows("follow", owner, mark, tables.last)
            return is_done

        return self._tell(follow)

    def _put(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What one statement tells, and may be told twice."""
        self._make_sure()
        return self._database.write(lambda connection: self._tables(connection).rows(statement, *values), safe=True)

    def _catch_up_with_frozen(self, nobody: int) -> None:
        """What is frozen of a session that is nobody's stands in nobody's stream: it has to be there by then."""
        upto = next((upto for (upto,) in self._rows("upto_of", nobody)), 0)
        found = self._store.since(upto, kinds=(CrystalPinned.kind,), most=AT_A_TIME, owner=ANONYMOUS)
        frozen = {event.payload.id for _, event in found if event and isinstance(event.payload, CrystalPinned)}
        streams = sorted({id.rpartition("#")[0] for id in frozen})
        self._caught_up({name for (name,) in self._rows("owners_of", streams)} - {ANONYMOUS})

    # -- asking --------------------------------------------------------------------------------------------

    def identity(self) -> bytes:
        self._identity = super().identity()
        return self._identity

    def seen_identity(self) -> bytes:
        return self._identity or self.identity()

    def holding(self, scope: Scope, words: Iterable[str], *, every: bool = False) -> dict[str, Holding]:
        asked = list(words)
        if not asked:
            return {}
        lexemes = [_quoted(f"{scope.id} {word}") for word in asked]
        rows = self._rows("holding", lexemes, None if every else COMMON)
        found = {place: Holding(count, _numbers(passages)) for place, count, passages in rows}
        return {word: found.get(place, Holding(0, ())) for place, word in enumerate(asked, 1)}

    # -- vectors -------------------------------------------------------------------------------------------

    @property
    def compares(self) -> bool:
        return True

    @property
    def takes_vectors(self) -> bool:
        """Whether the database has pgvector. It is for whoever runs the server to make."""
        if not self._pgvector:
            with self._looking:  # whoever comes while another looks waits for what is found
                if not self._pgvector and time.monotonic() - self._looked > LOOK_AGAIN:
                    self._look_for_vectors()
        return bool(self._pgvector)

    def compared(self, embedder: str, scope: Scope, vector: Sequence[float], most: int, whole: int) -> Compared:
        rows = self._rows("nearest", embedder, scope.id, _vector(vector), most, whole)
        among = rows[0][2] if rows else 0
        return Compared(among, [(passage, close, sent and _halves(sent)) for passage, close, _, sent in rows])

    def lagging(self, embedder: str, most: int, *, free_at: datetime | None = None) -> list[int]:
        """None only where nobody does: for an embedder that is new, that takes a look at everybody."""
        while not (found := super().lagging(embedder, most, free_at=free_at)):
            with suppress(ReadOnly):
                if self._put("sweep_embedder", embedder, SWEPT_AT_A_TIME):
                    continue
            return []
        return found

    def _look_for_vectors(self) -> None:
        found = self._rows("pgvector")
        self._looked = time.monotonic()
        if not found:
            if not self._has_said_so:
                log.warning("%s has no pgvector: searching by words alone", self._database.place)
            self._has_said_so = True
            return
        ((schema,),) = found
        with suppress(ReadOnly):
            if "vectors" not in self._ask(self._there):
                self._tell(lambda tables: self._add_vectors(tables, schema))
            self._pgvector = schema

    def _add_vectors(self, tables: _Tables, schema: str) -> None:
        self._lock_out_others(tables)
        if "vectors" not in self._there(tables):
            tables.run("add_vectors", pgvector=schema)

    # -- the tables ----------------------------------------------------------------------------------------

    def start_anew(self, reason: object) -> None:
        log.warning("the index is damaged and is made anew: %s", reason)
        self._broken = self._identity or self._broken
        self._identity, self._pgvector, self._looked = b"", "", float("-inf")

    def close(self) -> None:
        """The connections are the store's."""

    def _ask(self, ask: Callable[[_Tables], T]) -> T:
        self._make_sure()
        return self._database.read(lambda connection: ask(self._tables(connection)))

    def _tell(self, tell: Callable[[_Tables], T]) -> T:
        self._make_sure()
        return self._told(tell)

    def _told(self, tell: Callable[[_Tables], T]) -> T:
        """Whatever is told here may be told twice, so where nobody knows whether it was done it is done again."""
        for _ in range(_TRIES - 1):
            try:
                return self._told_once(tell)
            except OutcomeUnknown:
                pass
            except StoreBusy as error:  # somebody who makes it anew may stand in the way of all who follow
                if not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                    raise
        return self._told_once(tell)

    def _told_once(self, tell: Callable[[_Tables], T]) -> T:
        with self._database.transaction() as connection:
            return tell(self._tables(connection))

    def _make_sure(self) -> None:
        """That there is an index, and that it is ours: looked at once, and whenever one has turned out not to be."""
        if self._identity:
            return
        try:
            found = self._database.read(lambda connection: self._sound(self._tables(connection)))
        except Damaged:
            found = None
        self._identity = found or self._told(self._made_anew)

    def _sound(self, tables: _Tables) -> bytes | None:
        """The identity of the index that is there, if it is of our shape."""
        version, identity = (tables.row("state") if "followed" in self._there(tables) else None) or (0, b"")
        if version > VERSION:
            reason = f"its index is of version {version}, this inmind knows {VERSION}: upgrade inmind to search"
            raise ReadOnly(place=self._database.place, reason=reason)
        return bytes(identity) if version == VERSION and bytes(identity) != self._broken else None

    def _made_anew(self, tables: _Tables) -> bytes:
        """By one process: others wait a moment for empty tables, and then each takes in what it needs."""
        self._lock_out_others(tables)
        with suppress(Damaged), tables.undone_if_it_fails():
            if found := self._sound(tables):
                return found
        for table in self._there(tables).values():
            tables.plain(f"DROP TABLE IF EXISTS {table} CASCADE")
        tables.run("schema")
        tables.rows("begin", VERSION)
        return bytes(tables.value("identity"))

    def _there(self, tables: _Tables) -> dict[str, str]:
        """The tables of an index that there are, each with its schema."""
        return dict(tables.rows("tables", self._database.schema))

    def _lock_out_others(self, tables: _Tables) -> None:
        tables.rows("lock")

    def _tables(self, connection: Connection) -> _Tables:
        return _Tables(self._database, connection, self._statement, self.place)

    def _statement(self, name: str) -> str:
        return _with(self._sql(name), self._pgvector)


class _Standing(NamedTuple):
    """How far an owner was followed."""

    owner: int
    name: str
    has_news: bool
    is_sound: bool
    """What was taken in last is where it was put."""
    scope: Scope | None


class _Tables(Tables):
    """In the words of PostgreSQL."""

    def __init__(self, database: Database, connection: Connection, statement: Callable[[str], str], place: str) -> None:
        self._database, self._connection, self._statement, self._place = database, connection, statement, place
        self.last = 0
        """The last passage that was put under its words here."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.plain(self._statement(statement), values)

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Column by column, which is one statement for all of them."""
        if rows:
            self.rows(statement, *(list(column) for column in zip(*rows, strict=True)))

    def listed(self, values: Iterable[object]) -> object:
        return list(values)

    def hold(self, passages: Sequence[Held]) -> None:
        if passages:
            lines = ["\n".join(f"{one.resource} {word}" for word in one.words) for one in passages]
            self.last = self.value("hold", [one.passage for one in passages], lines)

    def vector(self, numbers: Sequence[float]) -> object:
        return _vector(half(numbers))

    def value(self, statement: str, *values: object) -> Any:
        try:
            return super().value(statement, *values)
        except Missing as error:
            raise Damaged(place=self._place, reason=str(error)) from error

    @contextmanager
    def undone_if_it_fails(self) -> Generator[None]:
        last = self.last
        try:
            with self._connection.transaction():
                yield
        except BaseException:
            self.last = last
            raise

    def run(self, statement: str, *, pgvector: str = "") -> None:
        """Many statements, with nothing put in."""
        self.plain(_with(self._statement(statement), pgvector))

    def plain(self, text: str, values: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        self._database.go_on()
        try:
            cursor = self._connection.execute(text, values)
        except psycopg.Error as error:
            if _is_damage(error):
                raise Damaged(place=self._place, reason=first_line(error)) from error
            raise
        return cursor.fetchall() if cursor.description else []


@cache
def _with(statement: str, pgvector: str) -> str:
    """With the columns of records, and with the schema that pgvector is in."""
    statement = by_column(statement)
    return statement.replace("pgvector.", f"{pgvector}.") if pgvector else statement


def _and_nobody(resources: Iterable[str]) -> set[str]:
    """Where a session is nobody's, what became of its crystals may stand in nobody's stream."""
    wanted = set(resources)
    return wanted | {ANONYMOUS} if any(one.startswith(PRIVATE) for one in wanted) else wanted


def _is_damage(error: psycopg.Error) -> bool:
    """Are the tables not as they should be, or what is in them?"""
    state = error.sqlstate or ""
    return (state[:2] in ("22", "23", "3F", "42") and state != "42501") or state.startswith("XX")


def _quoted(lexeme: str) -> str:
    """As a query for this and nothing else."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _numbers(passages: bytes) -> Sequence[int]:
    numbers = array("q", bytes(passages))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _halves(sent: bytes) -> bytes:
    numbers = array("H", bytes(sent)[_HEAD:])
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def _vector(numbers: Sequence[float]) -> str:
    return f"[{','.join(map(repr, map(float, numbers)))}]"
