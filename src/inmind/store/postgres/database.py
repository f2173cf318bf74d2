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
from typing import TypeVar, cast

import psycopg

from inmind.core.fork import register_after_fork
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
from inmind.store.named_sql import load_queries, load_script
from inmind.store.postgres.connection import Connection, connect, conninfo_for, quote_identifier, run_script
from inmind.store.postgres.errors import (
    MISSING_OBJECT_STATES,
    READ_ONLY_STATE,
    RETRY_STATES,
    ConnectionLost,
    TransactionRetry,
    first_line,
    invalid_url,
    is_connection_lost,
    is_login_refused,
    login_refusal,
    pooler_error,
    public_error,
    public_errors,
    translate_error,
)
from inmind.store.postgres.pool import Pool, PoolExhausted
from inmind.store.postgres.url import limits_in

T = TypeVar("T")

CALL_SECONDS = 30.0
"""That a call may take, whatever it waits for, unless a URL says another number."""

MAX_CONNECTIONS = 10
"""Connections of one process, likewise."""

MIN_VERSION = 15
_MAX_WRITES, _MAX_READS = 20, 3
_GRACE_SECONDS = 1.0
_LOCK_TIMEOUT = "500ms"
_PACKAGE = "inmind.store.postgres"

MIGRATIONS = ("0001_journal", "0002_index", "0003_allowances")
"""Named steps, appended and never edited. The schema's own table says how many of them it has."""


class Database:
    """Whoever asks gets a connection for as long as a block lasts; what goes wrong is told in our own errors."""

    def __init__(
        self, url: str, *, seconds: float | None = None, max_connections: int | None = None, create: bool = True
    ) -> None:
        """`seconds` that a call may take and `most` connections, if it is not for the URL to say. `make`: a schema,
        where there is none; else that is NotFound."""
        self._conninfo, self.place = conninfo_for(url), shown_url(url)
        limits = limits_in(url)
        self._seconds, self._max_connections = (
            seconds or limits.seconds or CALL_SECONDS,
            max_connections or limits.connections or MAX_CONNECTIONS,
        )
        self._create = create
        self._pool = Pool(self._connect, max_size=self._max_connections)
        self._thread_state = threading.local()
        self.schema = ""
        self.read_only_reason = ""
        """Why nothing is written here, where that is so for good."""
        try:
            self.schema = self._open()
        except BaseException:
            self._pool.close()
            raise
        register_after_fork(self)

    def statements(self, file: str) -> Callable[[str], str]:
        """The queries of a file, each by its name, with the tenant's schema in them."""
        found = load_queries(file, package=_PACKAGE)

        @cache
        def statement(name: str) -> str:
            return self.in_schema(found(name))

        return statement

    def in_schema(self, statement: str) -> str:
        """Whatever the schema is called: its name may hold what ends a name, a text or a function elsewhere."""
        name, around = quote_identifier(self.schema), "$inmind$"
        while around in name:
            around = f"{around[:-1]}_$"
        in_a_text = name.replace("'", "''")
        instead = {"$$": around, "'tenant.": f"'{in_a_text}.", "tenant.": f"{name}."}
        return re.sub(r"\$\$|'?\btenant\.", lambda found: instead[found[0]], statement)

    # -- asking and telling --------------------------------------------------------------------------------

    def read(self, query: Callable[[Connection], T]) -> T:
        """What is asked has no effect, so it is asked again where the connection has ended, or nothing came by it."""
        until = time.monotonic() + self._seconds
        for tries in range(_MAX_READS):
            is_last = tries == _MAX_READS - 1
            try:
                return self._run_query(query, until=until if tries else _two_thirds_until(until))
            except (ConnectionLost, StoreBusy) as error:
                if is_last or self._is_out_of_time(until):
                    raise public_error(error) from error.__cause__
        raise AssertionError("the last try answers or raises")

    def write(self, query: Callable[[Connection], T], *, retryable: bool = False) -> T:
        """One transaction, again where others stood in its way. `safe`: twice is the same as once, so that it is done
        again too where nobody can tell whether it was done; else that is OutcomeUnknown. Once nobody can tell, it stays
        so until an answer comes: that a second try failed says nothing of the first.
        """
        until = time.monotonic() + self._seconds
        unknown: OutcomeUnknown | None = None
        for tries in range(_MAX_WRITES):
            try:
                allowed = until if tries or not retryable else _two_thirds_until(until)
                return self._run_query(query, writing=True, until=allowed)
            except TransactionRetry as again:
                if tries == _MAX_WRITES - 1 or self._is_out_of_time(until):
                    raise unknown or public_error(again) from again.__cause__
            except OutcomeUnknown as lost:
                unknown = lost
                if not retryable or self._is_out_of_time(until):
                    raise
            except StoreError as error:
                may_try = unknown or (retryable and not tries and isinstance(error, ConnectionLost | StoreBusy))
                if not may_try or self._is_out_of_time(until):
                    raise unknown or public_error(error) from error.__cause__
            _sleep_before_retry(tries)
        raise unknown or AssertionError("the last try answers or raises")

    @contextmanager
    def transaction(self, *, snapshot: bool = False) -> Generator[Connection]:
        """All that this thread asks and tells inside is one transaction; `snapshot`: it sees one moment, and writes
        nothing."""
        if self.held_connection is not None:
            raise StoreError("a transaction inside another")
        with public_errors(), self._pooled_connection(writing=not snapshot) as connection:
            # Where the connection ends before it is asked to commit, nothing of it stands.
            with self._translate_errors(connection, writing=not snapshot, undecided=False):
                connection.execute(
                    f"BEGIN ISOLATION LEVEL {'repeatable read READ ONLY' if snapshot else _ISOLATION_LEVEL}"
                )
                with self._bind_to_thread(connection):
                    yield connection
            with self._translate_errors(connection, writing=not snapshot), self._with_deadline(connection):
                if connection.execute("COMMIT").statusmessage != "COMMIT":  # it had failed, and somebody went on
                    raise StoreError(f"{self.place} has refused a part of this: nothing was stored")

    def extend_deadline(self) -> None:
        """In a transaction that takes long: each step of it has its own time. Whatever is read or written there by
        `read` and `write` is a step."""
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
        """The connection of the transaction that this thread is in."""
        return getattr(self._thread_state, "connection", None)

    def _run_query(self, query: Callable[[Connection], T], *, until: float, writing: bool = False) -> T:
        """With one of the pool, where each statement is a transaction; inside a `transaction` of this thread, with that
        one's. Every append comes by here, so it is done by hand and not by contexts in contexts."""
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

    def _with_deadline(self, connection: Connection) -> AbstractContextManager[None]:
        return connection.limit_to(time.monotonic() + self._seconds, grace=self._grace)

    def _is_out_of_time(self, until: float) -> bool:
        """Is what is left too little for another try?"""
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
        """In words of ours. `undecided`: when the connection ends here, what was told may stand or not."""
        reason = first_line(error)
        if is_connection_lost(error, connection):
            connection.close()
            self._pool.drop_idle()
            if waited := pooler_error(error, place=self.place, seconds=self._seconds):
                return waited
            return (OutcomeUnknown if writing and undecided else ConnectionLost)(place=self.place, reason=reason)
        if error.sqlstate == READ_ONLY_STATE:  # another server may be the one that writes now
            connection.close()
            self._pool.drop_idle()
        if error.sqlstate in MISSING_OBJECT_STATES:
            self._check_schema_exists()
        told = translate_error(error, place=self.place, seconds=self._seconds, writing=writing)
        if error.sqlstate in RETRY_STATES and isinstance(told, StoreBusy) and writing:
            return TransactionRetry(place=self.place, seconds=self._seconds, reason=told.reason)
        return told

    def _connect(self, until: float) -> Connection:
        try:
            connection = connect(self._conninfo, until)
            try:
                with connection.limit_to(until):
                    self._check_server(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            if waited := pooler_error(error, place=self.place, seconds=self._seconds):
                raise waited from error
            if is_login_refused(error):
                raise self._login_error(error) from error
            refused = StoreUnavailable if time.monotonic() < until else ConnectionLost
            raise refused(place=self.place, reason=first_line(error)) from error
        return connection

    def _login_error(self, error: psycopg.Error) -> InvalidInput | StoreUnavailable:
        """Who was let in before has made no mistake."""
        if not self.schema:
            return invalid_url(error, place=self.place)
        return StoreUnavailable(place=self.place, reason=login_refusal(error), gone=True)

    def _check_schema_exists(self) -> None:
        """By a connection of its own: one that is left of a role that was dropped is told nothing right."""
        if not self.schema:
            return
        until = time.monotonic() + self._seconds
        with suppress(psycopg.Error), self._connect(until) as connection, connection.limit_to(until):
            asked = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
            if not connection.execute(asked, (self.schema,)).get:
                reason = f"there is no schema {self.schema!r}"
                raise StoreUnavailable(place=self.place, reason=reason, gone=True)

    # -- opening -------------------------------------------------------------------------------------------

    def _open(self) -> str:
        with (
            public_errors(),
            self._pooled_connection(writing=False) as connection,
            self._translate_errors(connection, writing=True, undecided=False),
        ):
            self.schema = cast(str, connection.execute("SELECT current_user::text").get)
            self._migrate(connection)
        return self.schema

    def _check_server(self, connection: Connection) -> None:
        """Does the server keep what it acknowledges? Asked of each connection, since a role or a pooler may differ."""
        version = connection.info.server_version // 10_000
        if version < MIN_VERSION:
            raise UnsafeStorage(place=self.place, reason=f"it is PostgreSQL {version}, and {MIN_VERSION} is needed")
        asked = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY($1)"
        told = dict(connection.execute(asked, ([*_DURABILITY_SETTINGS, _ENCODING, _ISOLATION],)).fetchall())
        for name in _DURABILITY_SETTINGS:
            if told.get(name) == "off":
                raise UnsafeStorage(place=self.place, reason=f"{name} is off: what it acknowledges may be lost")
        if (encoding := told.get(_ENCODING)) != "UTF8":
            raise UnsafeStorage(place=self.place, reason=f"its encoding is {encoding}: only UTF8 holds every text")
        connection.isolation = told.get(_ISOLATION, "")

    def _migrate(self, connection: Connection) -> None:
        """Bring the schema to ours, a committed step at a time; of several processes, each step has one winner."""
        self._refuse_foreign_owner(connection)
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
                    _sleep_before_retry(tries)
        self.check_schema_version(have)

    def check_schema_version(self, have: int) -> None:
        """Nothing more is written to a schema of more steps than are known here: what they mean nobody can tell."""
        if have > len(MIGRATIONS):
            self.read_only_reason = (
                f"it has schema {have}, this inmind knows {len(MIGRATIONS)}: upgrade inmind to write"
            )

    def _run_migration(self, connection: Connection, have: int) -> None:
        """Unless somebody else has. It waits for a table only a moment: whoever comes to it meanwhile waits as well.

        All locks are the schema's own, which no other tenant can take: of several who come first it is the name of the
        first table that one of them gets.
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
            run_script(connection, self.in_schema(load_script(step, package=_PACKAGE)))
            added = "INSERT INTO tenant.inmind_steps (number, name) VALUES ($1, $2)"
            connection.execute(self.in_schema(added), (have + 1, step))

    def _schema_version(self, connection: Connection) -> int:
        """Out of the catalogue's own tables: what is resolved by name may be remembered from before a wait."""
        there = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'inmind_steps'"
        if not connection.execute(there, (self.schema,)).get:
            return 0
        return connection.execute(self.in_schema("SELECT coalesce(max(number), 0) FROM tenant.inmind_steps")).get

    def _refuse_foreign_owner(self, connection: Connection) -> None:
        """Somebody could have made a schema of this name first, to read what is put there."""
        asked = "SELECT pg_get_userbyid(nspowner) = current_user FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if connection.execute(asked, (self.schema,)).get is False:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} is another role's")

    def _create_schema(self, connection: Connection) -> None:
        others = "SELECT NOT bool_or(tablename = 'inmind_steps') FROM pg_catalog.pg_tables WHERE schemaname = $1"
        if connection.execute(others, (self.schema,)).get:
            raise UnsafeStorage(place=self.place, reason=f"the schema {self.schema!r} is of another program")
        made = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1"
        if not connection.execute(made, (self.schema,)).get:
            try:
                connection.execute(f"CREATE SCHEMA {quote_identifier(self.schema)}")
            except psycopg.errors.InsufficientPrivilege as error:
                reason = f"{self.schema!r} has no schema here, and may not make one: `inmind tenant create` makes both"
                raise UnsafeStorage(place=self.place, reason=reason) from error
        run_script(connection, self.in_schema(load_script("steps", package=_PACKAGE)))


def _two_thirds_until(until: float) -> float:
    """Of the time there is: so that some is left to ask again by another connection, if nothing comes by this one."""
    return until - (until - time.monotonic()) / 3


def _sleep_before_retry(tries: int) -> None:
    time.sleep(min(0.5, 0.002 * 2**tries) * random.random())  # noqa: S311 -- only to part those who collide


_CREATED_CONCURRENTLY = tuple(psycopg.errors.lookup(state) for state in ("42P06", "42P07", "42710", "23505"))
"""A schema, a table, its type, or any of them: whoever makes one at the same time is told so in either way."""

_DURABILITY_SETTINGS = ("fsync", "synchronous_commit", "full_page_writes")
_ENCODING, _ISOLATION = "server_encoding", "default_transaction_isolation"

_ISOLATION_LEVEL = "read committed"
"""Whoever waited for a row sees what it has become. A role may have another level by default."""
