"""One tenant's part of a PostgreSQL server: a schema that is named like the role, and a pool of connections to it.

The credential is the tenant. Whoever connects as a role works in that role's schema and in no other: no argument names
one, and PostgreSQL's own rights keep everybody else out. All statements name the schema, so nothing depends on what a
session's search path is.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql

from inmind.core.fork import tell_after_fork
from inmind.core.paths import shown_url
from inmind.errors import (
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.store.named_sql import named, script
from inmind.store.postgres.connection import Connection, connect, settings_of
from inmind.store.postgres.errors import (
    AGAIN,
    GONE,
    READ_ONLY,
    first_line,
    is_lost,
    is_shut_out,
    never_sent,
    shut_out,
    translated,
    why_shut_out,
)
from inmind.store.postgres.pool import Exhausted, Pool
from inmind.store.postgres.url import limits_in

T = TypeVar("T")

SECONDS = 30.0
"""That a call may take, whatever it waits for, unless a URL says another number."""

MOST = 10
"""Connections of one process, likewise."""

LEAST_VERSION = 15
_TRIES, _READS = 20, 3
_GRACE = 1.0
_MOMENT = "500ms"
_PACKAGE = "inmind.store.postgres"

MIGRATIONS = ("0001_journal", "0002_index", "0003_allowances")
"""Named steps, appended and never edited. The schema's own table says how many of them it has."""


class Database:
    """Whoever asks gets a connection for as long as a block lasts; what goes wrong is told in our own errors."""

    def __init__(self, url: str, *, seconds: float | None = None, most: int | None = None, make: bool = True) -> None:
        """`seconds` that a call may take and `most` connections, if it is not for the URL to say. `make`: a schema,
        where there is none; else that is NotFound."""
        self._conninfo, self.place = settings_of(url), shown_url(url)
        limits = limits_in(url)
        self._seconds, self._most = seconds or limits.seconds or SECONDS, most or limits.connections or MOST
        self._make = make
        self._pool = Pool(self._connected, most=self._most)
        self._bound = threading.local()
        self.schema = ""
        self.refusal = ""
        """Why nothing is written here, where that is so for good."""
        try:
            self.schema = self._opened()
        except BaseException:
            self._pool.close()
            raise
        tell_after_fork(self)

    def statements(self, file: str) -> Callable[[str], str]:
        """The queries of a file, each by its name, with the tenant's schema in them."""
        found = named(file, package=_PACKAGE)

        @cache
        def statement(name: str) -> str:
            return self.in_schema(found(name))

        return statement

    def in_schema(self, statement: str) -> str:
        """Whatever the schema is called: its name may hold what ends a name, a text or a function elsewhere."""
        name, around = _quoted(self.schema), "$inmind$"
        while around in name:
            around = f"{around[:-1]}_$"
        in_a_text = name.replace("'", "''")
        instead = {"$$": around, "'tenant.": f"'{in_a_text}.", "tenant.": f"{name}."}
        return re.sub(r"\$\$|'?\btenant\.", lambda found: instead[found[0]], statement)

    # -- asking and telling --------------------------------------------------------------------------------

    def read(self, ask: Callable[[Connection], T]) -> T:
        """What is asked has no effect, so it is asked again where the connection has ended, or nothing came by it."""
        until = time.monotonic() + self._seconds
        for tries in range(_READS):
            is_last = tries == _READS - 1
            try:
                return self._asked(ask, until=until if tries else _most_of(until))
            except (_Lost, StoreBusy) as error:
                if is_last or self._is_over(until):
                    raise _as_told(error) from error.__cause__
        raise AssertionError("the last try answers or raises")

    def write(self, act: Callable[[Connection], T], *, safe: bool = False) -> T:
        """One transaction, again where others stood in its way. `safe`: twice is the same as once, so that it is done
        again too where nobody can tell whether it was done; else that is OutcomeUnknown. Once nobody can tell, it stays
        so until an answer comes: that a second try failed says nothing of the first.
        """
        until = time.monotonic() + self._seconds
        unknown: OutcomeUnknown | None = None
        for tries in range(_TRIES):
            try:
                allowed = until if tries or not safe else _most_of(until)
                return self._asked(act, writing=True, until=allowed)
            except _Again as again:
                if tries == _TRIES - 1 or self._is_over(until):
                    raise unknown or _as_told(again) from again.__cause__
            except OutcomeUnknown as lost:
                unknown = lost
                if not safe or self._is_over(until):
                    raise
            except StoreError as error:
                may_try = unknown or (safe and not tries and isinstance(error, _Lost | StoreBusy))
                if not may_try or self._is_over(until):
                    raise unknown or _as_told(error) from error.__cause__
            _part(tries)
        raise unknown or AssertionError("the last try answers or raises")

    @contextmanager
    def transaction(self, *, snapshot: bool = False) -> Generator[Connection]:
        """All that this thread asks and tells inside is one transaction; `snapshot`: it sees one moment, and writes
        nothing."""
        if self.held is not None:
            raise StoreError("a transaction inside another")
        with _by_their_names(), self._lent(writing=not snapshot) as connection:
            # Where the connection ends before it is asked to commit, nothing of it stands.
            with self._told(connection, writing=not snapshot, undecided=False):
                connection.execute(f"BEGIN ISOLATION LEVEL {'repeatable read READ ONLY' if snapshot else _LEVEL}")
                with self._holding(connection):
                    yield connection
            with self._told(connection, writing=not snapshot), self._timed(connection):
                if connection.execute("COMMIT").statusmessage != "COMMIT":  # it had failed, and somebody went on
                    raise StoreError(f"{self.place} has refused a part of this: nothing was stored")

    def go_on(self) -> None:
        """In a transaction that takes long: each step of it has its own time. Whatever is read or written there by
        `read` and `write` is a step."""
        if (held := self.held) is not None:
            held.deadline = time.monotonic() + self._seconds

    def close(self) -> None:
        self._pool.close()

    def after_fork(self) -> None:
        self._pool.after_fork()
        self._bound = threading.local()

    # -- connections ---------------------------------------------------------------------------------------

    @property
    def held(self) -> Connection | None:
        """The connection of the transaction that this thread is in."""
        return getattr(self._bound, "connection", None)

    def _asked(self, act: Callable[[Connection], T], *, until: float, writing: bool = False) -> T:
        """With one of the pool, where each statement is a transaction; inside a `transaction` of this thread, with that
        one's. Every append comes by here, so it is done by hand and not by contexts in contexts."""
        if (held := self.held) is not None:
            self.go_on()
            return act(held)
        connection = self._lend(until, writing=writing)
        try:
            connection.deadline, connection.grace = until, self._grace
            if connection.level == _LEVEL:
                return act(connection)
            with connection.transaction():
                return act(connection)
        except psycopg.Error as error:
            raise self._refused(error, connection, writing=writing) from error
        finally:
            connection.rest()
            self._pool.take_back(connection)

    @contextmanager
    def _holding(self, connection: Connection) -> Generator[None]:
        bound = self._bound
        bound.connection = connection
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error), connection.until(time.monotonic() + self._grace):
                connection.execute("ROLLBACK")
            raise
        finally:
            bound.connection = None

    @contextmanager
    def _lent(self, *, writing: bool) -> Generator[Connection]:
        until = time.monotonic() + self._seconds
        connection = self._lend(until, writing=writing)
        try:
            with connection.until(until, grace=self._grace):
                yield connection
        finally:
            self._pool.take_back(connection)

    def _lend(self, until: float, *, writing: bool) -> Connection:
        if writing and self.refusal:
            raise ReadOnly(place=self.place, reason=self.refusal)
        try:
            return self._pool.lend(until)
        except Exhausted as error:
            reason = f"all {self._most} connections of this process were in use for {self._seconds:g} s"
            raise StoreBusy(place=self.place, seconds=self._seconds, reason=reason) from error

    def _timed(self, connection: Connection) -> AbstractContextManager[None]:
        return connection.until(time.monotonic() + self._seconds, grace=self._grace)

    def _is_over(self, until: float) -> bool:
        """Is what is left too little for another try?"""
        return time.monotonic() > until - self._grace

    @property
    def _grace(self) -> float:
        return min(_GRACE, self._seconds / 4)

    @contextmanager
    def _told(self, connection: Connection, *, writing: bool, undecided: bool = True) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._refused(error, connection, writing=writing, undecided=undecided) from error

    def _refused(
        self, error: psycopg.Error, connection: Connection, *, writing: bool, undecided: bool = True
    ) -> StoreError:
        """In words of ours. `undecided`: when the connection ends here, what was told may stand or not."""
        reason = first_line(error)
        if is_lost(error, connection):
            connection.close()
            self._pool.drop_idle()
            if waited := never_sent(error, place=self.place, seconds=self._seconds):
                return waited
            return (OutcomeUnknown if writing and undecided else _Lost)(place=self.place, reason=reason)
        if error.sqlstate == READ_ONLY:  # another server may be the one that writes now
            connection.close()
            self._pool.drop_idle()
        if error.sqlstate in GONE:
            self._check_it_is_there()
        told = translated(error, place=self.place, seconds=self._seconds, writing=writing)
        if error.sqlstate in AGAIN and isinstance(told, StoreBusy) and writing:
            return _Again(place=self.place, seconds=self._seconds, reason=told.reason)
        return told

    def _connected(self, until: float) -> Connection:
        try:
            connection = connect(self._conninfo, until)
            try:
                with connection.until(until):
                    self._examine(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            if waited := never_sent(error, place=self.place, seconds=self._seconds):
                raise waited from error
            if is_shut_out(error):
                raise self._shut_out(error) from error
            refused = StoreUnavailable if time.monotonic() < until else _Lost
            raise refused(place=self.place, reason=first_line(error)) from error
        return connection

    def _shut_out(self, error: psycopg.Error) -> InvalidInput | StoreUnavailable:
        """Who was let in before has made no mistake."""
        if not self.schema:
            return shut_out(error, place=self.place)
        return StoreUnavailable(place=self.place, reason=why_shut_out(error), gone=True)

    def _check_it_is_there(self) -> None:
        """By a connection of its own: one that is left of a role that was dropped is told nothing right."""
        if not self.schema:
            return
        until = time.monotonic() + self._seconds
        with suppress(psycopg.Error), self._connected(until) as connection, connection.until(until):
            asked = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
            if not connection.execute(asked, (self.schema,)).get:
                reason = f"there is no schema {self.schema!r}"
                raise StoreUnavailable(place=self.place, reason=reason, gone=True)

    # -- opening -------------------------------------------------------------------------------------------

    def _opened(self) -> str:
        with (
            _by_their_names(),
            self._lent(writing=False) as connection,
            self._told(connection, writing=True, undecided=False),
        ):
            self.schema = cast(str, connection.execute("SELECT current_user::text").get)
            self._migrate(connection)
        return self.schema

    def _examine(self, connection: Connection) -> None:
        """Does the server keep what it acknowledges? Asked of each connection, since a role or a pooler may differ."""
        version = connection.info.server_version // 10_000
        if version < LEAST_VERSION:
            raise UnsafeStorage(place=self.place, reason=f"it is PostgreSQL {version}, and {LEAST_VERSION} is needed")
        asked = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY($1)"
        told = dict(connection.execute(asked, ([*_DURABLE, _ENCODING, _ISOLATION],)).fetchall())
        for name in _DURABLE:
            if told.get(name) == "off":
                raise UnsafeStorage(place=self.place, reason=f"{name} is off: what it acknowledges may be lost")
        if (encoding := told.get(_ENCODING)) != "UTF8":
            raise UnsafeStorage(place=self.place, reason=f"its encoding is {encoding}: only UTF8 holds every text")
        connection.level = told.get(_ISOLATION, "")

    def _migrate(self, connection: Connection) -> None:
        """Bring the schema to ours, a committed step at a time; of several processes, each step has one winner."""
        self._refuse_anothers(connection)
        if not self._make and not self._steps(connection):
            raise NotFound(what="memory at", name=self.place)
        while (have := self._steps(connection)) < len(MIGRATIONS):
            connection.deadline = until = time.monotonic() + self._seconds
            for tries in count():
                try:
                    self._take_step(connection, have)
                    break
                except (psycopg.errors.LockNotAvailable, *_MADE_MEANWHILE):
                    if self._is_over(until):
                        raise
                    _part(tries)
        self.outgrown(have)

    def outgrown(self, have: int) -> None:
        """Nothing more is written to a schema of more steps than are known here: what they mean nobody can tell."""
        if have > len(MIGRATIONS):
            self.refusal = f"it has schema {have}, this inmind knows {len(MIGRATIONS)}: upgrade inmind to write"

    def _take_step(self, connection: Connection, have: int) -> None:
        """Unless somebody else has. It waits for a table only a moment: whoever comes to it meanwhile waits as well.

        All locks are the schema's own, which no other tenant can take: of several who come first it is the name of the
        first table that one of them gets.
        """
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_MOMENT}'")
            if have:
                connection.execute(self.in_schema("LOCK TABLE tenant.inmind_steps IN ACCESS EXCLUSIVE MODE"))
            if self._steps(connection) != have:
                return
            if not have:
                self._make_schema(connection)
            step = MIGRATIONS[have]
            _run(connection, self.in_schema(script(step, package=_PACKAGE)))
            added = "INSERT INTO tenant.inmind_steps (number, name) VALUES ($1, $2)"
            connection.execute(self.in_schema(added), (have + 1, step))

    def _steps(self, connection: Connection) -> int:
        """Out of the catalogue's own tables: what is resolved by name may be remembered from before a wait."""
        there = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'inmind_steps'"
        if not connection.execute(there, (self.schema,)).get:
            return 0
        return connection.execute(self.in_schema("SELECT coalesce(max(number), 0) FROM tenant.inmind_steps")).get

    def _refuse_anothers(self, connection: Connection) -> None:
        """Somebody could have made a schema of this name first, to read what is put there."""
        asked = "SELECT pg_get_userbyid(nspowner) = current_user FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if connection.execute(asked, (self.schema,)).get is False:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} is another role's")

    def _make_schema(self, connection: Connection) -> None:
        others = "SELECT NOT bool_or(tablename = 'inmind_steps') FROM pg_catalog.pg_tables WHERE schemaname = $1"
        if connection.execute(others, (self.schema,)).get:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} is of another program")
        made = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if not connection.execute(made, (self.schema,)).get:
            try:
                connection.execute(f"CREATE SCHEMA {_quoted(self.schema)}")
            except psycopg.errors.InsufficientPrivilege as error:
                reason = f"{self.schema!r} has no schema here, and may not make one: `inmind tenant create` makes both"
                raise UnsafeStorage(place=self.place, reason=reason) from error
        _run(connection, self.in_schema(script("steps", package=_PACKAGE)))


class _Again(StoreBusy):
    """Others stood in the way of a transaction, and nothing of it stands."""


class _Lost(StoreUnavailable):
    """The connection ended in the middle, or never came about in time; nothing has come of it."""


def _most_of(until: float) -> float:
    """Of the time there is: so that some is left to ask again by another connection, if nothing comes by this one."""
    return until - (until - time.monotonic()) / 3


def _part(tries: int) -> None:
    time.sleep(min(0.5, 0.002 * 2**tries) * random.random())  # noqa: S311 -- only to part those who collide


@contextmanager
def _by_their_names() -> Generator[None]:
    try:
        yield
    except (_Again, _Lost) as error:
        raise _as_told(error) from error.__cause__


def _as_told(error: StoreError) -> StoreError:
    """What is only told apart here is told to nobody else."""
    match error:
        case _Again():
            return StoreBusy(place=error.place, seconds=error.seconds, reason=error.reason)
        case _Lost():
            return StoreUnavailable(place=error.place, reason=error.reason)
        case _:
            return error


_MADE_MEANWHILE = tuple(psycopg.errors.lookup(state) for state in ("42P06", "42P07", "42710", "23505"))
"""A schema, a table, its type, or any of them: whoever makes one at the same time is told so in either way."""

_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")
_ENCODING, _ISOLATION = "server_encoding", "default_transaction_isolation"

_LEVEL = "read committed"
"""Whoever waited for a row sees what it has become. A role may have another level by default."""


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _run(connection: Connection, statements: str) -> None:
    """Many statements, with nothing put in: the server takes them as one text."""
    psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(statements.encode())
