"""One tenant's part of a PostgreSQL server: a schema that is named like the role, and a pool of connections to it.

The credential is the tenant. Whoever connects as a role works in that role's schema and in no other: no argument names
one, and PostgreSQL's own rights keep everybody else out. All statements name the schema, so nothing depends on what a
session's search path is.
"""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar, cast

import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from inmind.errors import (
    Closed,
    InvalidInput,
    OutcomeUnknown,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.stores.fork import tell_after_fork
from inmind.stores.postgres.connection import OPTIONS, Connection, check, connect, settings_of, shown_place
from inmind.stores.postgres.refusals import AGAIN, first_line, is_lost, translated
from inmind.stores.statements import named, script

T = TypeVar("T")

SECONDS = 30.0
"""That a call may take, whatever it waits for."""

MOST = 10
"""Connections of one process."""

LEAST_VERSION = 15
_TRIES = 20
_PACKAGE = "inmind.stores.postgres"

MIGRATIONS = ("0001_journal", "0002_index")
"""Named steps, appended and never edited. The schema's own table says how many of them it has."""


class Database:
    """Whoever asks gets a connection for as long as a block lasts; what goes wrong is told in our own errors."""

    def __init__(self, url: str, *, seconds: float = SECONDS, most: int = MOST) -> None:
        try:
            self._conninfo, self.place = settings_of(url), shown_place(url)
        except psycopg.Error as error:
            raise InvalidInput(field="url", value="…", expected=f"postgresql://… ({first_line(error)})") from error
        self._seconds, self._most = seconds, most
        self._closed = False
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._bound = threading.local()
        self.refusal = ""
        """Why nothing is written here, where that is so for good."""
        self.schema = self._opened()
        tell_after_fork(self)

    def statements(self, file: str) -> Callable[[str], str]:
        """The queries of a file, each by its name, with the tenant's schema in them."""
        found = named(file, package=_PACKAGE)

        @cache
        def statement(name: str) -> str:
            return self.in_schema(found(name))

        return statement

    def in_schema(self, statement: str) -> str:
        return statement.replace("tenant.", f"{_quoted(self.schema)}.")

    # -- asking and telling --------------------------------------------------------------------------------

    def read(self, ask: Callable[[Connection], T]) -> T:
        """What is asked has no effect, so it is asked again where the connection has ended in the middle."""
        for is_last in (False, False, True):
            try:
                with self.connection() as connection:
                    return ask(connection)
            except StoreUnavailable:
                if is_last or self.held is not None:
                    raise
        raise AssertionError("the last try answers or raises")

    def write(self, act: Callable[[Connection], T], *, safe: bool = False) -> T:
        """One transaction, again where others stood in its way. `safe`: twice is the same as once, so that it is done
        again too where nobody can tell whether it was done; else that is OutcomeUnknown.
        """
        until = time.monotonic() + self._seconds
        for tries in range(_TRIES):
            try:
                with self.connection(writing=True) as connection:
                    return act(connection)
            except _Again as again:
                if tries == _TRIES - 1 or time.monotonic() > until or self.held is not None:
                    raise StoreBusy(place=self.place, seconds=self._seconds) from again.__cause__
            except OutcomeUnknown:
                if not safe or time.monotonic() > until:
                    raise
            except StoreUnavailable:
                if tries == 0 or not safe or time.monotonic() > until:
                    raise
            time.sleep(min(0.5, 0.002 * 2**tries) * random.random())  # noqa: S311 -- only to part those who collide
        raise StoreBusy(place=self.place, seconds=self._seconds)

    @contextmanager
    def connection(self, *, writing: bool = False) -> Generator[Connection]:
        """One of the pool, in no transaction; inside a `transaction` of this thread, that one's."""
        if (held := self.held) is not None:
            yield held
            return
        if writing and self.refusal:
            raise ReadOnly(place=self.place, reason=self.refusal)
        with self._taken() as connection, self._told(connection, writing=writing):
            yield connection

    @contextmanager
    def transaction(self, *, snapshot: bool = False) -> Generator[Connection]:
        """All that this thread asks and tells inside is one transaction; `snapshot`: it sees one moment, and writes
        nothing."""
        if self.held is not None:
            raise StoreError("a transaction inside another")
        with self.connection(writing=not snapshot) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if snapshot else "BEGIN")
            self._bound.connection = connection
            try:
                yield connection
                connection.deadline = time.monotonic() + self._seconds
                self._bound.connection = None
                connection.execute("COMMIT")
            except BaseException:
                self._bound.connection = None
                if not connection.closed:
                    try:
                        connection.execute("ROLLBACK")
                    except psycopg.Error:
                        connection.close()
                raise

    def go_on(self) -> None:
        """In a transaction that takes long: each step of it has its own time."""
        if (held := self.held) is not None:
            held.deadline = time.monotonic() + self._seconds

    def close(self) -> None:
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.close()

    def after_fork(self) -> None:
        """Its connections are the parent's: they must not even be closed here, which would say good-bye for it."""
        if self._pool is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pool))
            self._pool = None
        self._lock, self._bound = threading.Lock(), threading.local()

    # -- connections ---------------------------------------------------------------------------------------

    @property
    def held(self) -> Connection | None:
        """The connection of the transaction that this thread is in."""
        return getattr(self._bound, "connection", None)

    @contextmanager
    def _taken(self) -> Generator[Connection]:
        pool = self._usable()
        failed = pool.get_stats().get("connections_errors", 0)
        try:
            connection = pool.getconn(timeout=self._seconds)
        except PoolTimeout as error:
            if pool.get_stats().get("connections_errors", 0) > failed:
                raise StoreUnavailable(place=self.place, reason="no connection could be made") from error
            raise StoreBusy(place=self.place, seconds=self._seconds) from error
        except PoolClosed as error:
            raise Closed from error
        except psycopg.Error as error:
            raise StoreUnavailable(place=self.place, reason=first_line(error)) from error
        try:
            with connection.until(time.monotonic() + self._seconds):
                yield connection
        finally:
            if not connection.closed and connection.pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()
            pool.putconn(connection)

    @contextmanager
    def _told(self, connection: Connection, *, writing: bool) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            lost = is_lost(error, connection)
            if lost:
                connection.close()
            if lost and writing:
                raise OutcomeUnknown(place=self.place, reason=first_line(error)) from error
            if error.sqlstate in AGAIN and writing:
                raise _Again from error
            raise translated(error, place=self.place, seconds=self._seconds, writing=writing) from error

    def _usable(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._closed:
                raise Closed
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._conninfo,
                    connection_class=Connection,
                    kwargs=OPTIONS,
                    min_size=0,
                    max_size=self._most,
                    num_workers=1,
                    timeout=self._seconds,
                    reconnect_timeout=self._seconds,
                    check=check,
                    configure=self._examined,
                    open=True,
                    name="inmind",
                )
            return self._pool

    # -- opening -------------------------------------------------------------------------------------------

    def _opened(self) -> str:
        try:
            connection = connect(self._conninfo)
        except psycopg.Error as error:
            raise StoreUnavailable(place=self.place, reason=first_line(error)) from error
        try:
            with connection.until(time.monotonic() + self._seconds):
                self._examined(connection)
                self.schema = cast(str, connection.execute("SELECT current_user::text").get)
                self._migrate(connection)
        except psycopg.Error as error:
            raise translated(error, place=self.place, seconds=self._seconds, writing=True) from error
        finally:
            connection.close()
        return self.schema

    def _examined(self, connection: Connection) -> None:
        """Does the server keep what it acknowledges? Asked of each connection, since a role or a pooler may differ."""
        version = connection.info.server_version // 10_000
        if version < LEAST_VERSION:
            raise UnsafeStorage(place=self.place, reason=f"it is PostgreSQL {version}, and {LEAST_VERSION} is needed")
        asked = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY($1)"
        for name, value in connection.execute(asked, (list(_DURABLE),)).fetchall():
            if value == "off":
                raise UnsafeStorage(place=self.place, reason=f"{name} is off: what it acknowledges may be lost")

    def _migrate(self, connection: Connection) -> None:
        """Bring the schema to ours, a committed step at a time; of several processes, each step has one winner."""
        while (have := self._steps(connection)) < len(MIGRATIONS):
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", (f"inmind {self.schema}",))
                if (now := self._steps(connection)) != have:
                    have = now
                    continue
                if not have:
                    self._make_schema(connection)
                step = MIGRATIONS[have]
                _run(connection, self.in_schema(script(step, package=_PACKAGE)))
                added = "INSERT INTO tenant.inmind_steps (number, name) VALUES ($1, $2)"
                connection.execute(self.in_schema(added), (have + 1, step))
        if have > len(MIGRATIONS):
            self.refusal = f"it has schema {have}, this inmind knows {len(MIGRATIONS)}: upgrade inmind to write"

    def _steps(self, connection: Connection) -> int:
        there = "SELECT to_regclass($1) IS NOT NULL"
        if not connection.execute(there, (f"{_quoted(self.schema)}.inmind_steps",)).get:
            return 0
        return connection.execute(self.in_schema("SELECT coalesce(max(number), 0) FROM tenant.inmind_steps")).get

    def _make_schema(self, connection: Connection) -> None:
        others = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1"
        if connection.execute(others, (self.schema,)).get:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} is of another program")
        made = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if not connection.execute(made, (self.schema,)).get:
            connection.execute(f"CREATE SCHEMA {_quoted(self.schema)}")
        _run(connection, self.in_schema(script("steps", package=_PACKAGE)))


class _Again(Exception):
    """Others stood in the way of a transaction, and nothing of it stands."""


_DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _run(connection: Connection, statements: str) -> None:
    """Many statements, with nothing put in: the server takes them as one text."""
    psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(statements.encode())
