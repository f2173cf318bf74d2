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
from typing import Any, Self

import psycopg
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
from inmind.store.named_sql import load_queries
from inmind.store.postgres.connection import (
    Connection,
    connect,
    conninfo_for,
    quote_identifier,
    with_identifiers,
    with_literal,
)
from inmind.store.postgres.database import MIN_VERSION
from inmind.store.postgres.errors import first_line, invalid_url, is_connection_lost, is_login_refused, translate_error
from inmind.store.postgres.store import PostgresStore
from inmind.store.postgres.url import url_for_login, url_with_role
from inmind.store.tenants import (
    EMPTY_INVENTORY,
    Inventory,
    MemoryLocation,
    Tenant,
    Tenants,
    check_password,
    check_tenant_name,
    name_exists,
    tenant_not_found,
)

REQUIRED_RIGHTS = "a superuser, or a role that may create roles (CREATEROLE) and has CREATE on the database"

STEP_SECONDS = 600.0
"""That one step may take: a large tenant has much to count and to drop."""

COUNT_SECONDS = 60.0
"""Seconds for counting what a tenant has while nobody can write."""

DELEGATE_PREFIX = "inmind_delegate_"
"""How the names of delegates begin."""

_LOCK_TIMEOUT = "5s"
"""For a lock that a connection of the tenant holds, before that connection is ended."""

_DIRECT_SETTING = "inmind.operator"
"""A setting of ours that PostgreSQL takes from whoever connects, and that means nothing to it."""

_MAX_LOCK_ATTEMPTS = 3
_HAS_DEPENDENTS, _INSUFFICIENT_PRIVILEGE = "2BP01", "42501"
_UNUSED_ROLE_NAME = (
    "a name that no role of this server has: roles are a server's, so a tenant of another database of it is moved "
    "into a folder first, and from there"
)
_ALREADY_EXISTS = ("42710", "42P06", "23505")
_VECTOR_ERRORS = tuple(psycopg.errors.lookup(state) for state in ("42501", "0A000", "58P01", "3F000", *_ALREADY_EXISTS))
_sql = load_queries("tenants", package="inmind.store.postgres")


class TenantRoles:
    """The Tenants of one database, by an operator's URL, which leads to the server itself and not to a pooler."""

    def __init__(self, url: str, *, seconds: float = STEP_SECONDS) -> None:
        self._url, self.place, self._seconds = checked_url(url, "url"), shown_url(url), seconds
        self._connection = self._connect()
        try:
            self._is_superuser, may_create_roles, self._database, number = self._fetch_row("operator")
        except BaseException:
            self.close()
            raise
        if not self._is_superuser and not may_create_roles:  # a tenant has no business with others
            self.close()
            raise InvalidInput(field="url", value=self.place, expected=REQUIRED_RIGHTS)
        self._version = number // 10_000
        if self._version < MIN_VERSION:
            self.close()
            reason = f"it is PostgreSQL {self._version}, and {MIN_VERSION} is needed"
            raise UnsafeStorage(place=self.place, reason=reason)

    def _connect(self) -> Connection:
        """With a word of its own for the server, which a pooler does not take, or keeps to itself."""
        told = conninfo_to_dict(settings := conninfo_for(self._url))
        options = f"{told.get('options') or ''} -c {_DIRECT_SETTING}=said"
        try:
            connection = connect(make_conninfo(settings, options=options.strip()), time.monotonic() + self._seconds)
        except psycopg.Error as error:
            if "unsupported startup parameter" in first_line(error):
                raise self._pooler_error() from error
            if is_login_refused(error):
                raise invalid_url(error, place=self.place) from error
            raise StoreUnavailable(place=self.place, reason=first_line(error)) from error
        if connection.execute("SELECT current_setting($1, true)", (_DIRECT_SETTING,)).get != "said":
            connection.close()
            raise self._pooler_error()
        return connection

    def _pooler_error(self) -> InvalidInput:
        expected = "an operator's URL that leads to the server itself, and not to a pooler"
        return InvalidInput(field="url", value=self.place, expected=expected)

    # -- those there are -----------------------------------------------------------------------------------

    def list_all(self) -> Sequence[Tenant]:
        return [
            Tenant(name=name, can_log_in=login, bytes=size) for name, login, size in self._fetch_rows("tenants", None)
        ]

    @contextmanager
    def open_as_operator(self, name: str) -> Generator[str]:
        self._require(name)
        delegate, password = f"{DELEGATE_PREFIX}{secrets.token_hex(8)}", secrets.token_urlsafe(24)
        with self._transaction() as connection:
            for (left,) in connection.execute(_sql("late_delegates"), (f"{DELEGATE_PREFIX}%",)).fetchall():
                self._drop_role(connection, left)
            [(until,)] = connection.execute("SELECT (now() + interval '1 day')::text").fetchall()
            connection.execute(with_identifiers("CREATE ROLE {} LOGIN NOINHERIT", delegate))
            connection.execute(
                with_literal("ALTER ROLE {} PASSWORD", delegate, self._scram_verifier(delegate, password))
            )
            connection.execute(with_literal("ALTER ROLE {} VALID UNTIL", delegate, until))
            connection.execute(with_identifiers(f"GRANT {{}} TO {{}}{self._grant_options}", name, delegate))
            self._grant_connect(connection, delegate)
        try:
            yield url_with_role(self.address(delegate, password), name)
        finally:
            with suppress(InmindError), self._transaction() as connection:  # one that is left is nobody's, for a day
                self._drop_role(connection, delegate)

    def inventory(self, name: str) -> Inventory:
        with self.open_as_operator(name) as place:
            return self._count(place, name)

    def identity(self, name: str) -> object:
        return next(iter(self._fetch_rows("identity", check_tenant_name(name))), None)

    def is_within(self, others: Tenants, name: str) -> bool:  # noqa: ARG002 -- no schema is in another
        return False

    def _find(self, name: str) -> Tenant | None:
        for one, login, size in self._fetch_rows("tenants", check_tenant_name(name)):
            return Tenant(name=one, can_log_in=login, bytes=size)
        return None

    def _require(self, name: str) -> Tenant:
        found = self._find(name)
        if found is None:
            raise tenant_not_found(name, self.place, (one.name for one in self.list_all()))
        return found

    # -- one more ------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None) -> Generator[str]:
        found = self._find(name)
        if found is not None and not self._can_continue(found, continues):
            raise name_exists(name)
        [(has_role, has_schema)] = self._fetch_rows("is_taken", name)
        if found is None and has_role and not has_schema:
            raise InvalidInput(field="name", value=name, expected=_UNUSED_ROLE_NAME)
        if found is None and has_schema:
            raise name_exists(name)
        try:
            with self._transaction() as connection:
                if found is None:
                    self._create_role_and_schema(connection, name)
                self._revoke_public_create(connection)
                self._grant_connect(connection, name)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", "") in _ALREADY_EXISTS:
                raise name_exists(name) from error
            raise
        self._enable_pgvector(name)
        with self.open_as_operator(name) as place:
            PostgresStore.open(place, max_connections=1).close()
            yield place

    def _can_continue(self, found: Tenant, continues: Callable[[MemoryLocation], bool] | None) -> bool:
        if found.can_log_in and continues is None:
            return False
        with self.open_as_operator(found.name) as place:
            return (not found.can_log_in and _is_empty(place)) or (continues is not None and continues(place))

    def address(self, name: str, password: str) -> str:
        info = self._connection.info
        usual = {"host": info.host, "port": str(info.port), "dbname": self._database}
        return url_for_login(self._url, check_tenant_name(name), password and check_password(password), defaults=usual)

    def admit(self, name: str, password: str) -> None:
        """The server is told what proves the password, and never the password: it may write down what it is told."""
        self._require(name)
        with self._translate_errors() as connection:
            connection.execute(with_literal("ALTER ROLE {} LOGIN PASSWORD", name, self._scram_verifier(name, password)))

    def missing_features(self, name: str) -> str:
        if any(usable for _, usable in self._fetch_rows("vectors", name)):
            return ""
        return f"{self.place} has no pgvector: search goes by words until a superuser says CREATE EXTENSION vector"

    def _scram_verifier(self, name: str, password: str) -> str:
        given = check_password(password).encode()
        return self._connection.pgconn.encrypt_password(given, name.encode(), b"scram-sha-256").decode()

    def _create_role_and_schema(self, connection: Connection, name: str) -> None:
        connection.execute(with_identifiers("CREATE ROLE {} NOLOGIN NOINHERIT", name))
        self._grant_role_to_self(connection, name)
        connection.execute(with_identifiers("CREATE SCHEMA {} AUTHORIZATION {}", name, name))

    def _grant_connect(self, connection: Connection, name: str) -> None:
        if connection.execute(_sql("may_connect"), (name,)).get:
            return
        asked = with_identifiers("GRANT CONNECT ON DATABASE {} TO {}", self._database, name)
        connection.execute(asked)
        if not connection.execute(_sql("may_connect"), (name,)).get:  # some refusals are mere warnings
            reason = f"not everybody may connect, and this operator cannot say: {asked.as_string(None)}"
            raise UnsafeStorage(place=self.place, reason=reason)

    def _revoke_public_create(self, connection: Connection) -> None:
        """Nobody but an operator may make what other tenants' statements could take for something else."""
        for what, of in connection.execute(_sql("open_doors")).fetchall():
            asked = with_identifiers(f"REVOKE CREATE ON {what} {{}} FROM PUBLIC", of)
            with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(asked)
            if (what, of) in connection.execute(_sql("open_doors")).fetchall():  # some refusals are mere warnings
                reason = f"everybody may create things there, and its owner has to say: {asked.as_string(None)}"
                raise UnsafeStorage(place=self.place, reason=reason)

    def _enable_pgvector(self, name: str) -> None:
        """What vectors are searched with, where it is at hand and the operator may; else search goes by words."""
        if not self._fetch_rows("vectors", name) and self._fetch_rows("vectors_are_available") == [(True,)]:
            with self._translate_errors() as connection, suppress(*_VECTOR_ERRORS):
                connection.execute("CREATE EXTENSION vector SCHEMA public")
        for schema, usable in self._fetch_rows("vectors", name):
            if not usable:
                with self._translate_errors() as connection, suppress(*_VECTOR_ERRORS):
                    connection.execute(with_identifiers("GRANT USAGE ON SCHEMA {} TO {}", schema, name))

    # -- one less ------------------------------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str) -> Generator[_LockedRole]:
        with self.open_as_operator(name) as place, ExitStack() as until_erased, self._locked(name) as connection:

            def erase() -> None:
                until_erased.enter_context(self._forbid_login(name))
                self._drop_role(connection, name)

            yield _LockedRole(place, lambda: self._count(place, name), erase)

    def erase(self, name: str) -> Inventory:
        with (
            self.open_as_operator(name) as place,
            self._forbid_login(name),
            self._locked(name) as connection,
        ):
            try:
                was = self._count(place, name)
            except StoreError:
                was = EMPTY_INVENTORY  # whatever it has made of its tables, it can be erased
            self._drop_role(connection, name)
        return was

    @contextmanager
    def _forbid_login(self, name: str) -> Generator[None]:
        """Nobody comes in any more, and who was in is out. What is not erased then is let in again.

        By a connection of its own: others see it at once, and not when a transaction ends that may be waiting for them.
        """
        was_let_in = self._require(name).can_log_in
        try:
            with closing(self._connect()) as other, self._translate_errors(other):
                other.execute(with_identifiers("ALTER ROLE {} NOLOGIN", name))
                self._end_all_connections(other, name)
            yield
        except BaseException:
            if was_let_in:
                with suppress(InmindError), self._translate_errors() as connection:
                    connection.execute(with_identifiers("ALTER ROLE {} LOGIN", name))
            raise

    def _end_all_connections(self, connection: Connection, name: str) -> None:
        until, found = time.monotonic() + self._seconds, True
        while found:
            with connection.transaction():
                self._set_role(connection, name)
                found = self._end_connections(connection, name)
            if found and time.monotonic() > until:
                raise StoreBusy(place=self.place, seconds=self._seconds, reason="connections of it do not end")

    @contextmanager
    def _locked(self, name: str) -> Generator[Connection]:
        """By a lock that goes with its transaction, whatever ends it.

        Whoever holds another for too long is cut off.
        """
        with self._transaction() as connection:
            self._grant_role_to_self(connection, name)
        for _ in range(_MAX_LOCK_ATTEMPTS):
            with self._transaction() as connection:
                if self._try_lock(connection, name):
                    yield connection
                    self._extend_deadline(connection)
                    return
        raise StoreBusy(place=self.place, seconds=self._seconds)

    def _try_lock(self, connection: Connection, name: str) -> bool:
        for limit in ("idle_in_transaction_session_timeout", *(["transaction_timeout"] if self._version >= 17 else [])):
            connection.execute(f"SET LOCAL {limit} = 0")  # others work meanwhile, and this one waits for them
        connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        self._set_role(connection, name)
        try:
            if self._has_tables(connection, name):
                with connection.transaction():
                    connection.execute(_in_schema("hold", name))
        except psycopg.errors.LockNotAvailable:
            self._end_connections(connection, name)
            return False
        connection.execute("RESET ROLE")
        return True

    def _drop_role(self, connection: Connection, role: str) -> None:
        """A role, its connections and all that it owns; nothing that others have made of that."""
        self._extend_deadline(connection)
        [(number,)] = connection.execute(_sql("role_number"), (role,)).fetchall()
        self._set_role(connection, role)
        self._end_connections(connection, role)
        connection.execute(with_identifiers("DROP OWNED BY {} RESTRICT", role))
        connection.execute("RESET ROLE")
        for what, of in connection.execute(_sql("granted"), (number,)).fetchall():
            connection.execute(with_identifiers(f"REVOKE ALL ON {what} {{}} FROM {{}}", of, role))
        connection.execute(with_identifiers("DROP ROLE {}", role))
        left = [what for (what,) in connection.execute(_sql("left_of"), (role, number)).fetchall()]
        if left:
            raise StoreError(f"nothing was erased: {', '.join(left)} of {role!r} would be left")

    def _end_connections(self, connection: Connection, role: str) -> bool:
        """Were there any?"""
        return bool(connection.execute(_sql("end_connections"), (role,)).fetchall())

    def _count(self, place: str, name: str) -> Inventory:
        """By a delegate: here, and only here, something of the tenant's own could run."""
        until = time.monotonic() + COUNT_SECONDS
        try:
            with connect(conninfo_for(place), until) as connection, connection.limit_to(until):
                if not self._has_tables(connection, name):
                    return EMPTY_INVENTORY
                asked = (_in_schema(what, name) for what in ("versions", "keys"))
                versions, keys = (dict(connection.execute(statement).fetchall()) for statement in asked)
                return Inventory(versions=versions, keys_by_stream=keys)
        except psycopg.Error as error:
            raise translate_error(error, place=self.place, seconds=COUNT_SECONDS, writing=False) from error

    def _has_tables(self, connection: Connection, name: str) -> bool:
        table = f"{quote_identifier(name)}.inmind_steps"
        return bool(connection.execute(_sql("has_tables"), (table,)).get)

    # -- the operator --------------------------------------------------------------------------------------

    def _set_role(self, connection: Connection, name: str) -> None:
        """To the end of the transaction."""
        self._grant_role_to_self(connection, name)
        connection.execute(with_identifiers("SET LOCAL ROLE {}", name))

    def _grant_role_to_self(self, connection: Connection, name: str) -> None:
        """Whoever may give a role to others may give it to itself."""
        asked = "may_become_16" if self._version >= 16 else "may_become_15"
        if not self._is_superuser and not connection.execute(_sql(asked), (name,)).get:
            connection.execute(with_identifiers(f"GRANT {{}} TO CURRENT_USER{self._grant_options}", name))

    @property
    def _grant_options(self) -> str:
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
        with self._translate_errors() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _translate_errors(self, other: Connection | None = None) -> Generator[Connection]:
        connection = other or self._connection
        try:
            with connection.limit_to(time.monotonic() + self._seconds):
                yield connection
        except psycopg.Error as error:
            raise self._translate_error(error, connection) from error

    def _extend_deadline(self, connection: Connection) -> None:
        """The next step has its own time."""
        connection.deadline = time.monotonic() + self._seconds

    def _translate_error(self, error: psycopg.Error, connection: Connection) -> InvalidInput | StoreError:
        if is_connection_lost(error, connection):
            return OutcomeUnknown(place=self.place, reason=first_line(error))
        if error.sqlstate == _INSUFFICIENT_PRIVILEGE:
            return InvalidInput(field="url", value=self.place, expected=f"{REQUIRED_RIGHTS} ({first_line(error)})")
        if error.sqlstate == _HAS_DEPENDENTS:
            return StoreError(f"nothing was erased: {first_line(error)}, which are no part of a tenant")
        return translate_error(error, place=self.place, seconds=self._seconds, writing=True)

    def _fetch_rows(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        with self._translate_errors() as connection:
            return connection.execute(_sql(name), values or None).fetchall()

    def _fetch_row(self, name: str) -> tuple[Any, ...]:
        return self._fetch_rows(name)[0]


@frozen
class _LockedRole:
    place: str
    inventory: Callable[[], Inventory]
    erase: Callable[[], None]


def _is_empty(place: str) -> bool:
    store = PostgresStore.open(place, max_connections=1)
    try:
        return not store.stream_names("")
    finally:
        store.close()


def _in_schema(query: str, name: str) -> str:
    return _sql(query).replace("tenant.", f"{quote_identifier(name)}.")
