"""Tenants of a PostgreSQL database: each is a role, with a schema of its name that nobody else may look into.

A tenant is given no right but to connect, and owns its schema. It is made by an operator: a superuser, or a role that
may create roles (CREATEROLE) and has CREATE on the database. Whatever is made or erased is one transaction.

A tenant may have put anything into its schema, and who asks there may run it. An operator who had only put on the
tenant's role would lose it by one RESET ROLE. So operators never read there themselves: they send a delegate, a role
of a minute that may become the tenant and nothing else.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from types import TracebackType
from typing import Any, Self, cast

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from inmind.core.frozen import frozen
from inmind.core.paths import checked_url, shown_url
from inmind.errors import (
    InmindError,
    InvalidInput,
    OutcomeUnknown,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.store.named_sql import named
from inmind.store.postgres.connection import Connection, connect, settings_of
from inmind.store.postgres.database import LEAST_VERSION
from inmind.store.postgres.errors import first_line, is_lost, is_shut_out, shut_out, translated
from inmind.store.postgres.store import PostgresStore
from inmind.store.postgres.url import acting_as, let_in
from inmind.store.tenants import (
    NOTHING,
    Inventory,
    Tenant,
    Tenants,
    Where,
    checked_password,
    checked_tenant,
    taken,
    unknown,
)

RIGHTS = "a superuser, or a role that may create roles (CREATEROLE) and has CREATE on the database"

SECONDS = 600.0
"""That one step may take: a large tenant has much to count and to drop."""

COUNTING = 60.0
"""Seconds for counting what a tenant has while nobody can write."""

DELEGATE = "inmind_delegate_"
"""How the names of delegates begin."""

_WAIT = "5s"
"""For a lock that a connection of the tenant holds, before that connection is ended."""

_WORD = "inmind.operator"
"""A setting of ours that PostgreSQL takes from whoever connects, and that means nothing to it."""

_TRIES = 3
_DEPENDED_ON, _NOT_ALLOWED = "2BP01", "42501"
_NO_ROLE = (
    "a name that no role of this server has: roles are a server's, so a tenant of another database of it is moved "
    "into a folder first, and from there"
)
_IS_THERE = ("42710", "42P06", "23505")
_WITHOUT_VECTORS = tuple(psycopg.errors.lookup(state) for state in ("42501", "0A000", "58P01", "3F000", *_IS_THERE))
_sql = named("tenants", package="inmind.store.postgres")


class TenantRoles:
    """The Tenants of one database, by an operator's URL, which leads to the server itself and not to a pooler."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self._url, self.place, self._seconds = checked_url(url, "url"), shown_url(url), seconds
        self._connection = self._connected()
        try:
            self._is_superuser, may_create_roles, self._database, number = self._row("operator")
        except BaseException:
            self.close()
            raise
        if not self._is_superuser and not may_create_roles:  # a tenant has no business with others
            self.close()
            raise InvalidInput(field="url", value=self.place, expected=RIGHTS)
        self._version = number // 10_000
        if self._version < LEAST_VERSION:
            self.close()
            reason = f"it is PostgreSQL {self._version}, and {LEAST_VERSION} is needed"
            raise UnsafeStorage(place=self.place, reason=reason)

    def _connected(self) -> Connection:
        """With a word of its own for the server, which a pooler does not take, or keeps to itself."""
        told = conninfo_to_dict(settings := settings_of(self._url))
        options = f"{told.get('options') or ''} -c {_WORD}=said"
        try:
            connection = connect(make_conninfo(settings, options=options.strip()), time.monotonic() + self._seconds)
        except psycopg.Error as error:
            if "unsupported startup parameter" in first_line(error):
                raise self._pooled() from error
            if is_shut_out(error):
                raise shut_out(error, place=self.place) from error
            raise StoreUnavailable(place=self.place, reason=first_line(error)) from error
        if connection.execute("SELECT current_setting($1, true)", (_WORD,)).get != "said":
            connection.close()
            raise self._pooled()
        return connection

    def _pooled(self) -> InvalidInput:
        expected = "an operator's URL that leads to the server itself, and not to a pooler"
        return InvalidInput(field="url", value=self.place, expected=expected)

    # -- those there are -----------------------------------------------------------------------------------

    def all(self) -> Sequence[Tenant]:
        return [Tenant(name=name, admitted=login, bytes=size) for name, login, size in self._rows("tenants", None)]

    @contextmanager
    def entered(self, name: str) -> Generator[str]:
        self._known(name)
        delegate, password = f"{DELEGATE}{secrets.token_hex(8)}", secrets.token_urlsafe(24)
        with self._transaction() as connection:
            for (left,) in connection.execute(_sql("late_delegates"), (f"{DELEGATE}%",)).fetchall():
                self._drop(connection, left)
            [(until,)] = connection.execute("SELECT (now() + interval '1 day')::text").fetchall()
            connection.execute(_put("CREATE ROLE {} LOGIN NOINHERIT", delegate))
            connection.execute(_with("ALTER ROLE {} PASSWORD", delegate, self._proof(delegate, password)))
            connection.execute(_with("ALTER ROLE {} VALID UNTIL", delegate, until))
            connection.execute(_put(f"GRANT {{}} TO {{}}{self._only_to_become}", name, delegate))
            self._let_connect(connection, delegate)
        try:
            yield acting_as(self.address(delegate, password), name)
        finally:
            with suppress(InmindError), self._transaction() as connection:  # one that is left is nobody's, for a day
                self._drop(connection, delegate)

    def inventory(self, name: str) -> Inventory:
        with self.entered(name) as place:
            return self._counted(place, name)

    def identity(self, name: str) -> object:
        return next(iter(self._rows("identity", checked_tenant(name))), None)

    def is_within(self, others: Tenants, name: str) -> bool:  # noqa: ARG002 -- no schema is in another
        return False

    def _find(self, name: str) -> Tenant | None:
        for one, login, size in self._rows("tenants", checked_tenant(name)):
            return Tenant(name=one, admitted=login, bytes=size)
        return None

    def _known(self, name: str) -> Tenant:
        found = self._find(name)
        if found is None:
            raise unknown(name, self.place, (one.name for one in self.all()))
        return found

    # -- one more ------------------------------------------------------------------------------------------

    @contextmanager
    def arriving(self, name: str, *, continues: Callable[[Where], bool] | None = None) -> Generator[str]:
        found = self._find(name)
        if found is not None and not self._goes_on(found, continues):
            raise taken(name)
        [(has_role, has_schema)] = self._rows("is_taken", name)
        if found is None and has_role and not has_schema:
            raise InvalidInput(field="name", value=name, expected=_NO_ROLE)
        if found is None and has_schema:
            raise taken(name)
        try:
            with self._transaction() as connection:
                if found is None:
                    self._make(connection, name)
                self._shut_the_doors(connection)
                self._let_connect(connection, name)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", "") in _IS_THERE:
                raise taken(name) from error
            raise
        self._give_vectors(name)
        with self.entered(name) as place:
            PostgresStore.open(place, most=1).close()
            yield place

    def _goes_on(self, found: Tenant, continues: Callable[[Where], bool] | None) -> bool:
        if found.admitted and continues is None:
            return False
        with self.entered(found.name) as place:
            return (not found.admitted and _is_empty(place)) or (continues is not None and continues(place))

    def address(self, name: str, password: str) -> str:
        info = self._connection.info
        usual = {"host": info.host, "port": str(info.port), "dbname": self._database}
        return let_in(self._url, checked_tenant(name), password and checked_password(password), usual=usual)

    def admit(self, name: str, password: str) -> None:
        """The server is told what proves the password, and never the password: it may write down what it is told."""
        self._known(name)
        with self._told() as connection:
            connection.execute(_with("ALTER ROLE {} LOGIN PASSWORD", name, self._proof(name, password)))

    def lacks(self, name: str) -> str:
        if any(usable for _, usable in self._rows("vectors", name)):
            return ""
        return f"{self.place} has no pgvector: search goes by words until a superuser says CREATE EXTENSION vector"

    def _proof(self, name: str, password: str) -> str:
        given = checked_password(password).encode()
        return self._connection.pgconn.encrypt_password(given, name.encode(), b"scram-sha-256").decode()

    def _make(self, connection: Connection, name: str) -> None:
        connection.execute(_put("CREATE ROLE {} NOLOGIN NOINHERIT", name))
        self._may_become(connection, name)
        connection.execute(_put("CREATE SCHEMA {} AUTHORIZATION {}", name, name))

    def _let_connect(self, connection: Connection, name: str) -> None:
        if connection.execute(_sql("may_connect"), (name,)).get:
            return
        asked = _put("GRANT CONNECT ON DATABASE {} TO {}", self._database, name)
        connection.execute(asked)
        if not connection.execute(_sql("may_connect"), (name,)).get:  # some refusals are mere warnings
            reason = f"not everybody may connect, and this operator cannot say: {asked.as_string(None)}"
            raise UnsafeStorage(place=self.place, reason=reason)

    def _shut_the_doors(self, connection: Connection) -> None:
        """Nobody but an operator may make what other tenants' statements could take for something else."""
        for what, of in connection.execute(_sql("open_doors")).fetchall():
            asked = _put(f"REVOKE CREATE ON {what} {{}} FROM PUBLIC", of)
            with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(asked)
            if (what, of) in connection.execute(_sql("open_doors")).fetchall():  # some refusals are mere warnings
                reason = f"everybody may create things there, and its owner has to say: {asked.as_string(None)}"
                raise UnsafeStorage(place=self.place, reason=reason)

    def _give_vectors(self, name: str) -> None:
        """What vectors are searched with, where it is at hand and the operator may; else search goes by words."""
        if not self._rows("vectors", name) and self._rows("vectors_are_available") == [(True,)]:
            with self._told() as connection, suppress(*_WITHOUT_VECTORS):
                connection.execute("CREATE EXTENSION vector SCHEMA public")
        for schema, usable in self._rows("vectors", name):
            if not usable:
                with self._told() as connection, suppress(*_WITHOUT_VECTORS):
                    connection.execute(_put("GRANT USAGE ON SCHEMA {} TO {}", schema, name))

    # -- one less ------------------------------------------------------------------------------------------

    @contextmanager
    def held(self, name: str) -> Generator[_Held]:
        with self.entered(name) as place, ExitStack() as until_erased, self._holding(name) as connection:

            def erase() -> None:
                until_erased.enter_context(self._shut_out(name))
                self._drop(connection, name)

            yield _Held(place, lambda: self._counted(place, name), erase)

    def erase(self, name: str) -> Inventory:
        with (
            self.entered(name) as place,
            self._shut_out(name),
            self._holding(name) as connection,
        ):
            try:
                was = self._counted(place, name)
            except StoreError:
                was = NOTHING  # whatever it has made of its tables, it can be erased
            self._drop(connection, name)
        return was

    @contextmanager
    def _shut_out(self, name: str) -> Generator[None]:
        """Nobody comes in any more, and who was in is out. What is not erased then is let in again.

        By a connection of its own: others see it at once, and not when a transaction ends that may be waiting for them.
        """
        was_let_in = self._known(name).admitted
        try:
            with closing(self._connected()) as other, self._told(other):
                other.execute(_put("ALTER ROLE {} NOLOGIN", name))
                self._empty(other, name)
            yield
        except BaseException:
            if was_let_in:
                with suppress(InmindError), self._told() as connection:
                    connection.execute(_put("ALTER ROLE {} LOGIN", name))
            raise

    def _empty(self, connection: Connection, name: str) -> None:
        until, found = time.monotonic() + self._seconds, True
        while found:
            with connection.transaction():
                self._become(connection, name)
                found = self._end_connections(connection, name)
            if found and time.monotonic() > until:
                raise StoreBusy(place=self.place, seconds=self._seconds, reason="connections of it do not end")

    @contextmanager
    def _holding(self, name: str) -> Generator[Connection]:
        """By a lock that goes with its transaction, whatever ends it. Whoever holds another for too long is cut off."""
        with self._transaction() as connection:
            self._may_become(connection, name)
        for _ in range(_TRIES):
            with self._transaction() as connection:
                if self._hold(connection, name):
                    yield connection
                    self._go_on(connection)
                    return
        raise StoreBusy(place=self.place, seconds=self._seconds)

    def _hold(self, connection: Connection, name: str) -> bool:
        for limit in ("idle_in_transaction_session_timeout", *(["transaction_timeout"] if self._version >= 17 else [])):
            connection.execute(f"SET LOCAL {limit} = 0")  # others work meanwhile, and this one waits for them
        connection.execute(f"SET LOCAL lock_timeout = '{_WAIT}'")
        self._become(connection, name)
        try:
            if self._has_tables(connection, name):
                with connection.transaction():
                    connection.execute(_in_schema("hold", name))
        except psycopg.errors.LockNotAvailable:
            self._end_connections(connection, name)
            return False
        connection.execute("RESET ROLE")
        return True

    def _drop(self, connection: Connection, role: str) -> None:
        """A role, its connections and all that it owns; nothing that others have made of that."""
        self._go_on(connection)
        [(number,)] = connection.execute(_sql("role_number"), (role,)).fetchall()
        self._become(connection, role)
        self._end_connections(connection, role)
        connection.execute(_put("DROP OWNED BY {} RESTRICT", role))
        connection.execute("RESET ROLE")
        for what, of in connection.execute(_sql("granted"), (number,)).fetchall():
            connection.execute(_put(f"REVOKE ALL ON {what} {{}} FROM {{}}", of, role))
        connection.execute(_put("DROP ROLE {}", role))
        left = [what for (what,) in connection.execute(_sql("left_of"), (role, number)).fetchall()]
        if left:
            raise StoreError(f"nothing was erased: {', '.join(left)} of {role!r} would be left")

    def _end_connections(self, connection: Connection, role: str) -> bool:
        """Were there any?"""
        return bool(connection.execute(_sql("end_connections"), (role,)).fetchall())

    def _counted(self, place: str, name: str) -> Inventory:
        """By a delegate: here, and only here, something of the tenant's own could run."""
        until = time.monotonic() + COUNTING
        try:
            with connect(settings_of(place), until) as connection, connection.until(until):
                if not self._has_tables(connection, name):
                    return NOTHING
                asked = (_in_schema(what, name) for what in ("versions", "keys"))
                versions, keys = (dict(connection.execute(statement).fetchall()) for statement in asked)
                return Inventory(versions=versions, keys_of=keys)
        except psycopg.Error as error:
            raise translated(error, place=self.place, seconds=COUNTING, writing=False) from error

    def _has_tables(self, connection: Connection, name: str) -> bool:
        table = f"{_quoted(name)}.inmind_steps"
        return bool(connection.execute(_sql("has_tables"), (table,)).get)

    # -- the operator --------------------------------------------------------------------------------------

    def _become(self, connection: Connection, name: str) -> None:
        """To the end of the transaction."""
        self._may_become(connection, name)
        connection.execute(_put("SET LOCAL ROLE {}", name))

    def _may_become(self, connection: Connection, name: str) -> None:
        """Whoever may give a role to others may give it to itself."""
        asked = "may_become_16" if self._version >= 16 else "may_become_15"
        if not self._is_superuser and not connection.execute(_sql(asked), (name,)).get:
            connection.execute(_put(f"GRANT {{}} TO CURRENT_USER{self._only_to_become}", name))

    @property
    def _only_to_become(self) -> str:
        """Without a tenant's rights as long as it is not put on."""
        return " WITH INHERIT FALSE, SET TRUE" if self._version >= 16 else ""

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        with self._told() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _told(self, other: Connection | None = None) -> Generator[Connection]:
        connection = other or self._connection
        try:
            with connection.until(time.monotonic() + self._seconds):
                yield connection
        except psycopg.Error as error:
            raise self._translated(error, connection) from error

    def _go_on(self, connection: Connection) -> None:
        """The next step has its own time."""
        connection.deadline = time.monotonic() + self._seconds

    def _translated(self, error: psycopg.Error, connection: Connection) -> InvalidInput | StoreError:
        if is_lost(error, connection):
            return OutcomeUnknown(place=self.place, reason=first_line(error))
        if error.sqlstate == _NOT_ALLOWED:
            return InvalidInput(field="url", value=self.place, expected=f"{RIGHTS} ({first_line(error)})")
        if error.sqlstate == _DEPENDED_ON:
            return StoreError(f"nothing was erased: {first_line(error)}, which are no part of a tenant")
        return translated(error, place=self.place, seconds=self._seconds, writing=True)

    def _rows(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        with self._told() as connection:
            return connection.execute(_sql(name), values or None).fetchall()

    def _row(self, name: str) -> tuple[Any, ...]:
        return self._rows(name)[0]


@frozen
class _Held:
    place: str
    inventory: Callable[[], Inventory]
    erase: Callable[[], None]


def _is_empty(place: str) -> bool:
    store = PostgresStore.open(place, most=1)
    try:
        return not store.streams("")
    finally:
        store.close()


def _put(statement: str, *names: str) -> sql.Composed:
    """A statement of ours with names in it, whatever these are."""
    return sql.SQL(cast(Any, statement)).format(*map(sql.Identifier, names))


def _with(statement: str, name: str, text: str) -> sql.Composed:
    return _put(statement, name) + sql.SQL(" ") + sql.Literal(text)


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _in_schema(query: str, name: str) -> str:
    return _sql(query).replace("tenant.", f"{_quoted(name)}.")
