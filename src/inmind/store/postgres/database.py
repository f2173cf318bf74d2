"""One tenant's schema in a PostgreSQL database, and a pool of connections to it.

The credential selects the tenant: a role works in the schema of its name and in no other. No argument names a schema,
and PostgreSQL's permissions keep other roles out. All statements name the schema explicitly, so nothing depends on the
search path.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import TypeVar, cast

import psycopg

from inmind.core.fork import register_after_fork
from inmind.core.paths import redact_url
from inmind.errors import (
    NotFound,
    OutcomeUnknown,
    ReadOnly,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.store.postgres import connection as pg
from inmind.store.postgres import errors
from inmind.store.postgres.connection import Connection, Pool, PoolExhausted
from inmind.store.postgres.errors import ConnectionLost
from inmind.store.rows import load_queries, load_script

T = TypeVar("T")

CALL_SECONDS = 30.0
"""Timeout of a call, unless the URL sets it."""

MAX_CONNECTIONS = 10
"""Connections of one process, unless the URL sets it."""

MIN_VERSION = 15
_MAX_WRITES, _MAX_READS = 20, 3
_GRACE_SECONDS = 1.0
_LOCK_TIMEOUT = "500ms"
MIGRATIONS = ("0001_journal", "0002_index", "0003_allowances", "0004_note_withdrawals")
"""Named migrations, appended and never edited. A table of the schema records those applied."""


class Database:
    """Runs queries on pooled connections and translates their errors."""

    def __init__(
        self, url: str, *, seconds: float | None = None, max_connections: int | None = None, create: bool = True
    ) -> None:
        """`seconds` (timeout of a call) and `max_connections` override the URL.
        `create`: create a missing schema instead of raising NotFound.
        """
        self._conninfo, self.place = pg.conninfo_for(url), redact_url(url)
        limits = pg.limits_in(url)
        self._seconds = seconds or limits.get("inmind_seconds", CALL_SECONDS)
        self._max_connections = max_connections or limits.get("inmind_connections", MAX_CONNECTIONS)
        self._create = create
        self._pool = Pool(self._connect, max_size=self._max_connections)
        self._thread_state = threading.local()
        self.schema = ""
        self.read_only_reason = ""
        """Why writes are refused permanently; empty if they are not."""
        try:
            self.schema = self._open()
        except BaseException:
            self._pool.close()
            raise
        register_after_fork(self)

    def statements(self, *files: str) -> Callable[[str], str]:
        """Return a lookup of the queries of these files by name, with the tenant's schema inserted."""
        query = load_queries(*files)

        @cache
        def statement(name: str) -> str:
            return self.in_schema(query(name))

        return statement

    def in_schema(self, statement: str) -> str:
        """Insert the schema's name into a statement."""
        return pg.with_schema(statement, self.schema)

    # -- queries -------------------------------------------------------------------------------------------

    def read(self, query: Callable[[Connection], T]) -> T:
        """Run a read-only query. It is repeated if the connection is lost or does not answer."""
        until = time.monotonic() + self._seconds
        for tries in range(_MAX_READS - 1):
            try:
                return self._run_query(query, until=until if tries else pg.two_thirds_until(until))
            except (ConnectionLost, StoreBusy):
                if self._is_out_of_time(until):
                    raise
        return self._run_query(query, until=until)

    def write(self, query: Callable[[Connection], T], *, retryable: bool = False) -> T:
        """Run a write in one transaction, repeated on serialization failures and deadlocks.

        `retryable`: running it twice has the same effect as once, so it is also repeated if its outcome is unknown;
        otherwise that raises OutcomeUnknown. Once the outcome is unknown it stays so until an attempt succeeds: a
        failed second attempt does not show the outcome of the first.
        """
        until = time.monotonic() + self._seconds
        unknown: OutcomeUnknown | None = None
        for tries in range(_MAX_WRITES):
            try:
                allowed = until if tries or not retryable else pg.two_thirds_until(until)
                return self._run_query(query, writing=True, until=allowed)
            except OutcomeUnknown as unknown_outcome:
                unknown = unknown_outcome
                if not retryable or self._is_out_of_time(until):
                    raise
            except StoreError as error:
                first_try = retryable and not tries and isinstance(error, ConnectionLost | StoreBusy)
                may_try = (first_try or unknown or errors.is_conflict(error.__cause__)) and tries < _MAX_WRITES - 1
                if not may_try or self._is_out_of_time(until):
                    raise unknown or error from error.__cause__
            pg.sleep_before_retry(tries)
        raise unknown or AssertionError("the last attempt returns or raises")

    @contextmanager
    def transaction(self, *, snapshot: bool = False) -> Generator[Connection]:
        """Run all queries of this thread in the block in one transaction.

        `snapshot`: a read-only transaction that sees one state of the database.
        """
        if self.held_connection is not None:
            raise StoreError("transactions cannot be nested")
        writing = not snapshot
        with self._pooled_connection(writing=writing) as connection:
            # If the connection ends before COMMIT, nothing was stored.
            with self._translate_errors(connection, writing=writing, undecided=False):
                level = "repeatable read READ ONLY" if snapshot else _ISOLATION_LEVEL
                connection.execute(f"BEGIN ISOLATION LEVEL {level}")
                with self._bind_to_thread(connection):
                    yield connection
            until = time.monotonic() + self._seconds
            with self._translate_errors(connection, writing=writing), connection.limit_to(until, grace=self._grace):
                committed = connection.execute("COMMIT").statusmessage == "COMMIT"
            if not committed:  # a statement failed and its error was ignored
                raise StoreError(f"{self.place} refused a part of the transaction: nothing was stored")

    def extend_deadline(self) -> None:
        """Give the next step of a long transaction the full timeout. `read` and `write` call it."""
        if (held := self.held_connection) is not None:
            held.deadline = time.monotonic() + self._seconds

    def close(self) -> None:
        self._pool.close()

    def after_fork(self) -> None:
        self._pool.after_fork()
        self._thread_state = threading.local()

    # -- connections ---------------------------------------------------------------------------------------

    @property
    def held_connection(self) -> Connection | None:
        """The connection of this thread's transaction; None outside of one."""
        return getattr(self._thread_state, "connection", None)

    def _run_query(self, query: Callable[[Connection], T], *, until: float, writing: bool = False) -> T:
        """Run a query on a pooled connection, or on that of this thread's transaction.

        Every append comes through here, so it avoids context managers for speed.
        """
        if (held := self.held_connection) is not None:
            self.extend_deadline()
            return query(held)
        connection = self._borrow(until, writing=writing)
        try:
            connection.deadline, connection.grace = until, self._grace
            if connection.isolation == _ISOLATION_LEVEL:
                return query(connection)
            with connection.transaction():
                return query(connection)
        except psycopg.Error as error:
            raise self._translate_error(error, connection, writing=writing) from error
        finally:
            connection.clear_deadline()
            self._pool.give_back(connection)

    @contextmanager
    def _bind_to_thread(self, connection: Connection) -> Generator[None]:
        bound = self._thread_state
        bound.connection = connection
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error), connection.limit_to(time.monotonic() + self._grace):
                connection.execute("ROLLBACK")
            raise
        finally:
            bound.connection = None

    @contextmanager
    def _pooled_connection(self, *, writing: bool) -> Generator[Connection]:
        until = time.monotonic() + self._seconds
        connection = self._borrow(until, writing=writing)
        try:
            with connection.limit_to(until, grace=self._grace):
                yield connection
        finally:
            self._pool.give_back(connection)

    def _borrow(self, until: float, *, writing: bool) -> Connection:
        if writing and self.read_only_reason:
            raise ReadOnly(place=self.place, reason=self.read_only_reason)
        try:
            return self._pool.borrow(until)
        except PoolExhausted as error:
            reason = f"all {self._max_connections} connections of this process were in use for {self._seconds:g} s"
            raise StoreBusy(place=self.place, seconds=self._seconds, reason=reason) from error

    def _is_out_of_time(self, until: float) -> bool:
        """True if there is too little time left for another attempt."""
        return time.monotonic() > until - self._grace

    @property
    def _grace(self) -> float:
        return min(_GRACE_SECONDS, self._seconds / 4)

    @contextmanager
    def _translate_errors(self, connection: Connection, *, writing: bool, undecided: bool = True) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._translate_error(error, connection, writing=writing, undecided=undecided) from error

    def _translate_error(
        self, error: psycopg.Error, connection: Connection, *, writing: bool, undecided: bool = True
    ) -> StoreError:
        """Return the inmind error.

        `undecided`: if the connection ended here, the outcome is unknown.
        """
        reason = errors.first_line(error)
        if errors.is_connection_lost(error, connection):
            connection.close()
            self._pool.drop_idle()
            if waited := errors.pooler_error(error, place=self.place, seconds=self._seconds):
                return waited
            return (OutcomeUnknown if writing and undecided else ConnectionLost)(place=self.place, reason=reason)
        if error.sqlstate == errors.READ_ONLY_STATE:  # another server may be the one that writes now
            connection.close()
            self._pool.drop_idle()
        if error.sqlstate in errors.MISSING_OBJECT_STATES and self.schema:
            self._check_schema_exists()
        return errors.translate_error(error, place=self.place, seconds=self._seconds, writing=writing)

    def _connect(self, until: float) -> Connection:
        try:
            connection = pg.connect(self._conninfo, until)
            try:
                with connection.limit_to(until):
                    self._check_server(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            if waited := errors.pooler_error(error, place=self.place, seconds=self._seconds):
                raise waited from error
            if errors.is_login_refused(error) and not self.schema:
                raise errors.invalid_url(error, place=self.place) from error
            if errors.is_login_refused(error):  # the URL was valid when it was opened
                raise StoreUnavailable(place=self.place, reason=errors.login_refusal(error), gone=True) from error
            refused = StoreUnavailable if time.monotonic() < until else ConnectionLost
            raise refused(place=self.place, reason=errors.first_line(error)) from error
        return connection

    def _check_schema_exists(self) -> None:
        """Raise StoreUnavailable if the schema no longer exists.

        It uses a new connection: an old connection of a dropped role gets misleading errors.
        """
        until = time.monotonic() + self._seconds
        with suppress(psycopg.Error), self._connect(until) as connection, connection.limit_to(until):
            query = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
            if not connection.execute(query, (self.schema,)).get:
                reason = f"schema {self.schema!r} not found"
                raise StoreUnavailable(place=self.place, reason=reason, gone=True)

    # -- opening -------------------------------------------------------------------------------------------

    def _open(self) -> str:
        with (
            self._pooled_connection(writing=False) as connection,
            self._translate_errors(connection, writing=True, undecided=False),
        ):
            self.schema = cast(str, connection.execute("SELECT current_user::text").get)
            self._migrate(connection)
        return self.schema

    def _check_server(self, connection: Connection) -> None:
        """Check version, durability settings and encoding of the server.

        It runs for each connection, because a role or a pooler may differ.
        """
        version = connection.info.server_version // 10_000
        if version < MIN_VERSION:
            raise UnsafeStorage(place=self.place, reason=f"it is PostgreSQL {version}, and {MIN_VERSION} is needed")
        query = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY($1)"
        settings = dict(connection.execute(query, ([*_DURABILITY_SETTINGS, _ENCODING, _ISOLATION],)).fetchall())
        for name in _DURABILITY_SETTINGS:
            if settings.get(name) == "off":
                raise UnsafeStorage(place=self.place, reason=f"{name} is off: committed changes may be lost")
        if (encoding := settings.get(_ENCODING)) != "UTF8":
            raise UnsafeStorage(place=self.place, reason=f"its encoding is {encoding}, and UTF8 is required")
        connection.isolation = settings.get(_ISOLATION, "")

    def _migrate(self, connection: Connection) -> None:
        """Run the missing migrations, each in one transaction.

        If several processes migrate at once, one of them runs each step.
        """
        is_own = "SELECT pg_get_userbyid(nspowner) = current_user FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if connection.execute(is_own, (self.schema,)).get is False:  # the other role could read its content
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} belongs to another role")
        if not self._create and not self._schema_version(connection):
            raise NotFound(what="memory at", name=self.place)
        while (have := self._schema_version(connection)) < len(MIGRATIONS):
            connection.deadline = until = time.monotonic() + self._seconds
            for tries in count():
                try:
                    self._run_migration(connection, have)
                    break
                except (psycopg.errors.LockNotAvailable, *_CREATED_CONCURRENTLY):
                    if self._is_out_of_time(until):
                        raise
                    pg.sleep_before_retry(tries)
        self.check_schema_version(have)

    def check_schema_version(self, have: int) -> None:
        """Refuse writes if the schema is newer than this inmind."""
        if have > (known := len(MIGRATIONS)):
            self.read_only_reason = f"it has schema {have}, this inmind knows {known}: upgrade inmind to write"

    def _run_migration(self, connection: Connection, have: int) -> None:
        """Run a migration unless another process has.

        The lock timeout is short, since other statements wait for it. All locks are on objects of the schema, which no
        other tenant can lock. If several processes create the schema, the first table's name decides which one
        succeeds.
        """
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            if have:
                connection.execute(self.in_schema("LOCK TABLE tenant.inmind_steps IN ACCESS EXCLUSIVE MODE"))
            if self._schema_version(connection) != have:
                return
            if not have:
                self._create_schema(connection)
            step = MIGRATIONS[have]
            pg.run_script(connection, self.in_schema(load_script(f"postgres/{step}")))
            insert = "INSERT INTO tenant.inmind_steps (number, name) VALUES ($1, $2)"
            connection.execute(self.in_schema(insert), (have + 1, step))

    def _schema_version(self, connection: Connection) -> int:
        """Return the number of applied migrations.

        It reads the catalogue's tables: a name lookup may be cached from before a wait.
        """
        steps_table = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'inmind_steps'"
        if not connection.execute(steps_table, (self.schema,)).get:
            return 0
        return connection.execute(self.in_schema("SELECT coalesce(max(number), 0) FROM tenant.inmind_steps")).get

    def _create_schema(self, connection: Connection) -> None:
        is_foreign = "SELECT NOT bool_or(tablename = 'inmind_steps') FROM pg_catalog.pg_tables WHERE schemaname = $1"
        if connection.execute(is_foreign, (self.schema,)).get:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} belongs to another program")
        schema_count = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if not connection.execute(schema_count, (self.schema,)).get:
            try:
                connection.execute(f"CREATE SCHEMA {pg.quote_identifier(self.schema)}")
            except psycopg.errors.InsufficientPrivilege as error:
                reason = f"role {self.schema!r} has no schema and cannot create one: run `inmind tenant create`"
                raise UnsafeStorage(place=self.place, reason=reason) from error
        pg.run_script(connection, self.in_schema(load_script("postgres/steps")))


_CREATED_CONCURRENTLY = tuple(psycopg.errors.lookup(state) for state in ("42P06", "42P07", "42710", "23505"))
"""Errors of creating a schema, table or type that another process creates at the same time."""

_DURABILITY_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes")
_ENCODING, _ISOLATION = "server_encoding", "default_transaction_isolation"

_ISOLATION_LEVEL = "read committed"
"""After waiting for a row a statement sees its new version. A role may have another default level."""
