"""Tenants of a PostgreSQL database: each is a role with a private schema of its name.

A tenant may only connect, and owns its schema. It is created by an operator: a superuser, or a role with CREATEROLE and
with CREATE on the database. Creating or erasing a tenant is one transaction.

A tenant may have put anything into its schema, and querying it may run that code. An operator who only used SET ROLE
would lose the protection by one RESET ROLE. So operators never read there themselves: they use a delegate, a
short-lived role that may become the tenant and nothing else.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from inmind.core.paths import check_database_url, redact_url
from inmind.errors import (
    InmindError,
    InvalidInput,
    OutcomeUnknown,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.store import tenants
from inmind.store.postgres import connection as pg
from inmind.store.postgres import errors
from inmind.store.postgres.connection import Connection, with_identifiers
from inmind.store.postgres.database import MIN_VERSION
from inmind.store.postgres.store import PostgresStore
from inmind.store.rows import load_queries
from inmind.store.tenants import EMPTY_INVENTORY, Inventory, LockedTenant, MemoryLocation, Tenant, Tenants

REQUIRED_RIGHTS = "a superuser, or a role with CREATEROLE and with CREATE on the database"

STEP_SECONDS = 600.0
"""Timeout of one step: a large tenant takes long to count and to drop."""

_DIRECT_SETTING = "inmind.operator"
"""A custom setting passed on connecting. A pooler does not pass it on, which reveals the pooler."""

_HAS_DEPENDENTS, _INSUFFICIENT_PRIVILEGE = "2BP01", "42501"

COUNT_SECONDS = 60.0
"""Timeout for counting a tenant's events while it is locked."""

DELEGATE_PREFIX = "inmind_delegate_"
"""Prefix of the names of delegates."""

_LOCK_TIMEOUT = "5s"
"""Timeout of waiting for a lock of a tenant's connection. Then that connection is ended."""


_MAX_LOCK_ATTEMPTS = 3
_UNUSED_ROLE_NAME = (
    "a name that no role of this server has: roles belong to the server, so move a tenant of another database on it "
    "to a folder first, and from there"
)
_ALREADY_EXISTS = ("42710", "42P06", "23505")
_VECTOR_ERRORS = tuple(psycopg.errors.lookup(state) for state in ("42501", "0A000", "58P01", "3F000", *_ALREADY_EXISTS))
_sql = load_queries("postgres/tenants")


class TenantRoles(Tenants):
    """The tenants of one database, managed by an operator.

    The URL must lead to the server, not to a pooler.
    """

    def __init__(self, url: str, *, seconds: float = STEP_SECONDS) -> None:
        self._url, self.place, self._seconds = check_database_url(url, "url"), redact_url(url), seconds
        self._connection = self._connect()
        try:
            [(self._is_superuser, may_create_roles, self._database, number)] = self._fetch_rows("operator")
            if not self._is_superuser and not may_create_roles:  # a tenant must not see other tenants
                raise InvalidInput(field="url", value=self.place, expected=REQUIRED_RIGHTS)
            self._version = number // 10_000
            if self._version < MIN_VERSION:
                reason = f"it is PostgreSQL {self._version}, and {MIN_VERSION} is needed"
                raise UnsafeStorage(place=self.place, reason=reason)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Connection:
        """Connect with a custom setting, which a pooler refuses or does not pass on."""
        parameters = conninfo_to_dict(settings := pg.conninfo_for(self._url))
        options = f"{parameters.get('options') or ''} -c {_DIRECT_SETTING}=direct"
        try:
            connection = pg.connect(make_conninfo(settings, options=options.strip()), time.monotonic() + self._seconds)
        except psycopg.Error as error:
            if "unsupported startup parameter" in errors.first_line(error):
                raise self._pooler_error() from error
            if errors.is_login_refused(error):
                raise errors.invalid_url(error, place=self.place) from error
            raise StoreUnavailable(place=self.place, reason=errors.first_line(error)) from error
        if connection.execute("SELECT current_setting($1, true)", (_DIRECT_SETTING,)).get != "direct":
            connection.close()
            raise self._pooler_error()
        return connection

    def _pooler_error(self) -> InvalidInput:
        expected = "an operator's URL of the server itself, not of a pooler"
        return InvalidInput(field="url", value=self.place, expected=expected)

    def _set_role(self, connection: Connection, name: str) -> None:
        """Become the tenant until the transaction ends."""
        self._grant_role_to_self(connection, name)
        connection.execute(with_identifiers("SET LOCAL ROLE {}", name))

    def _grant_role_to_self(self, connection: Connection, name: str) -> None:
        """Grant the role to the operator, which may grant it to any role and so to itself."""
        query = "may_become_16" if self._version >= 16 else "may_become_15"
        if not self._is_superuser and not connection.execute(_sql(query), (name,)).get:
            connection.execute(with_identifiers(f"GRANT {{}} TO CURRENT_USER{self._grant_options}", name))

    @property
    def _grant_options(self) -> str:
        """Do not inherit the tenant's rights without SET ROLE."""
        return " WITH INHERIT FALSE, SET TRUE" if self._version >= 16 else ""

    def close(self) -> None:
        self._connection.close()

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
        """Give the next step the full timeout."""
        connection.deadline = time.monotonic() + self._seconds

    def _translate_error(self, error: psycopg.Error, connection: Connection) -> InvalidInput | StoreError:
        if errors.is_connection_lost(error, connection):
            return OutcomeUnknown(place=self.place, reason=errors.first_line(error))
        if error.sqlstate == _INSUFFICIENT_PRIVILEGE:
            return InvalidInput(
                field="url", value=self.place, expected=f"{REQUIRED_RIGHTS} ({errors.first_line(error)})"
            )
        if error.sqlstate == _HAS_DEPENDENTS:
            return StoreError(f"nothing was erased: {errors.first_line(error)}, and those are not part of the tenant")
        return errors.translate_error(error, place=self.place, seconds=self._seconds, writing=True)

    def _fetch_rows(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        with self._translate_errors() as connection:
            return connection.execute(_sql(name), values or None).fetchall()

    # -- existing tenants ----------------------------------------------------------------------------------

    def list_all(self) -> Sequence[Tenant]:
        return self._tenants(None)

    def _tenants(self, name: str | None) -> list[Tenant]:
        rows = self._fetch_rows("tenants", name)
        return [Tenant(name=one, can_log_in=login, bytes=size) for one, login, size in rows]

    @contextmanager
    def open_as_operator(self, name: str) -> Generator[str]:
        self._require(name)
        delegate, password = f"{DELEGATE_PREFIX}{secrets.token_hex(8)}", secrets.token_urlsafe(24)
        with self._transaction() as connection:
            for (expired,) in connection.execute(_sql("expired_delegates"), (f"{DELEGATE_PREFIX}%",)).fetchall():
                self._drop_role(connection, expired)
            [(until,)] = connection.execute("SELECT (now() + interval '1 day')::text").fetchall()
            connection.execute(with_identifiers("CREATE ROLE {} LOGIN NOINHERIT", delegate))
            connection.execute(
                pg.with_literal("ALTER ROLE {} PASSWORD", delegate, self._scram_verifier(delegate, password))
            )
            connection.execute(pg.with_literal("ALTER ROLE {} VALID UNTIL", delegate, until))
            connection.execute(with_identifiers(f"GRANT {{}} TO {{}}{self._grant_options}", name, delegate))
            self._grant_connect(connection, delegate)
        try:
            yield pg.url_with_role(self.address(delegate, password), name)
        finally:
            with suppress(InmindError), self._transaction() as connection:
                self._drop_role(connection, delegate)  # if this fails, it expires after a day

    def inventory(self, name: str) -> Inventory:
        with self.open_as_operator(name) as place:
            return self._count(place, name)

    def identity(self, name: str) -> object:
        return next(iter(self._fetch_rows("identity", tenants.check_tenant_name(name))), None)

    def _find(self, name: str) -> Tenant | None:
        return next(iter(self._tenants(tenants.check_tenant_name(name))), None)

    def _require(self, name: str) -> Tenant:
        tenant = self._find(name)
        if tenant is None:
            raise tenants.tenant_not_found(name, self.place, (one.name for one in self.list_all()))
        return tenant

    # -- creating ------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None) -> Generator[str]:
        tenant = self._find(name)
        if tenant is not None and not self._can_continue(tenant, continues):
            raise tenants.name_exists(name)
        [(has_role, has_schema)] = self._fetch_rows("name_exists", name)
        if tenant is None and has_schema:
            raise tenants.name_exists(name)
        if tenant is None and has_role:
            raise InvalidInput(field="name", value=name, expected=_UNUSED_ROLE_NAME)
        try:
            with self._transaction() as connection:
                if tenant is None:
                    connection.execute(with_identifiers("CREATE ROLE {} NOLOGIN NOINHERIT", name))
                    self._grant_role_to_self(connection, name)
                    connection.execute(with_identifiers("CREATE SCHEMA {} AUTHORIZATION {}", name, name))
                self._revoke_public_create(connection)
                self._grant_connect(connection, name)
        except StoreError as error:
            if getattr(error.__cause__, "sqlstate", "") in _ALREADY_EXISTS:
                raise tenants.name_exists(name) from error
            raise
        self._enable_pgvector(name)
        with self.open_as_operator(name) as place:
            PostgresStore.open(place, max_connections=1).close()
            yield place

    def _can_continue(self, tenant: Tenant, continues: Callable[[MemoryLocation], bool] | None) -> bool:
        if tenant.can_log_in and continues is None:
            return False
        with self.open_as_operator(tenant.name) as place:
            return (not tenant.can_log_in and _is_empty(place)) or (continues is not None and continues(place))

    def address(self, name: str, password: str) -> str:
        info = self._connection.info
        usual = {"host": info.host, "port": str(info.port), "dbname": self._database}
        role = tenants.check_tenant_name(name)
        return pg.url_for_login(self._url, role, password and tenants.check_password(password), defaults=usual)

    def admit(self, name: str, password: str) -> None:
        """See Tenants. The server gets a verifier, never the password: it may log statements."""
        self._require(name)
        with self._translate_errors() as connection:
            connection.execute(
                pg.with_literal("ALTER ROLE {} LOGIN PASSWORD", name, self._scram_verifier(name, password))
            )

    def missing_features(self, name: str) -> str:
        if any(usable for _, usable in self._fetch_rows("pgvector_schema", name)):
            return ""
        return f"{self.place} has no pgvector: search uses words only until a superuser runs CREATE EXTENSION vector"

    def _scram_verifier(self, name: str, password: str) -> str:
        given = tenants.check_password(password).encode()
        return self._connection.pgconn.encrypt_password(given, name.encode(), b"scram-sha-256").decode()

    def _grant_connect(self, connection: Connection, name: str) -> None:
        if connection.execute(_sql("may_connect"), (name,)).get:
            return
        statement = with_identifiers("GRANT CONNECT ON DATABASE {} TO {}", self._database, name)
        connection.execute(statement)
        if not connection.execute(_sql("may_connect"), (name,)).get:  # some refusals are only warnings
            reason = f"PUBLIC may not connect, and this operator is not allowed to run: {statement.as_string(None)}"
            raise UnsafeStorage(place=self.place, reason=reason)

    def _revoke_public_create(self, connection: Connection) -> None:
        """Revoke CREATE from PUBLIC.

        Objects of one tenant could otherwise shadow those that another tenant's statements use.
        """
        for object_type, object_name in connection.execute(_sql("public_create_grants")).fetchall():
            statement = with_identifiers(f"REVOKE CREATE ON {object_type} {{}} FROM PUBLIC", object_name)
            with suppress(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(statement)
            remaining = connection.execute(_sql("public_create_grants")).fetchall()
            if (object_type, object_name) in remaining:  # some refusals are only warnings
                reason = f"PUBLIC may create objects there; its owner has to run: {statement.as_string(None)}"
                raise UnsafeStorage(place=self.place, reason=reason)

    def _enable_pgvector(self, name: str) -> None:
        """Enable pgvector if it is available and permitted; otherwise search uses words only."""
        if not self._fetch_rows("pgvector_schema", name) and self._fetch_rows("pgvector_available") == [(True,)]:
            with self._translate_errors() as connection, suppress(*_VECTOR_ERRORS):
                connection.execute("CREATE EXTENSION vector SCHEMA public")
        for schema, usable in self._fetch_rows("pgvector_schema", name):
            if not usable:
                with self._translate_errors() as connection, suppress(*_VECTOR_ERRORS):
                    connection.execute(with_identifiers("GRANT USAGE ON SCHEMA {} TO {}", schema, name))

    # -- locking and erasing -------------------------------------------------------------------------------

    @contextmanager
    def lock(self, name: str) -> Generator[LockedTenant]:
        with self.open_as_operator(name) as place, ExitStack() as until_erased, self._locked(name) as connection:

            def erase() -> None:
                until_erased.enter_context(self._forbid_login(name))
                self._drop_role(connection, name)

            yield LockedTenant(place, lambda: self._count(place, name), erase)

    def erase(self, name: str) -> Inventory:
        with self.open_as_operator(name) as place, self._forbid_login(name), self._locked(name) as connection:
            try:
                inventory = self._count(place, name)
            except StoreError:
                inventory = EMPTY_INVENTORY  # a tenant with damaged tables can be erased too
            self._drop_role(connection, name)
        return inventory

    @contextmanager
    def _forbid_login(self, name: str) -> Generator[None]:
        """Forbid new logins and end existing connections.

        If the tenant is not erased, logins are allowed again.

        It uses a separate connection, so that the change is visible at once: the current transaction may be waiting for
        those connections.
        """
        could_log_in = self._require(name).can_log_in
        try:
            with closing(self._connect()) as other, self._translate_errors(other):
                other.execute(with_identifiers("ALTER ROLE {} NOLOGIN", name))
                self._end_all_connections(other, name)
            yield
        except BaseException:
            if could_log_in:
                with suppress(InmindError), self._translate_errors() as connection:
                    connection.execute(with_identifiers("ALTER ROLE {} LOGIN", name))
            raise

    def _end_all_connections(self, connection: Connection, name: str) -> None:
        until, ended = time.monotonic() + self._seconds, True
        while ended:
            with connection.transaction():
                self._set_role(connection, name)
                ended = self._end_connections(connection, name)
            if ended and time.monotonic() > until:
                raise StoreBusy(place=self.place, seconds=self._seconds, reason="its connections do not end")

    @contextmanager
    def _locked(self, name: str) -> Generator[Connection]:
        """Lock a tenant's tables for one transaction.

        Connections that hold locks for too long are ended.
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
            connection.execute(f"SET LOCAL {limit} = 0")  # this transaction waits for other work
        connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        self._set_role(connection, name)
        try:
            if self._has_tables(connection, name):
                with connection.transaction():
                    connection.execute(_in_schema("lock_tables", name))
        except psycopg.errors.LockNotAvailable:
            self._end_connections(connection, name)
            return False
        connection.execute("RESET ROLE")
        return True

    def _drop_role(self, connection: Connection, role: str) -> None:
        """Drop a role, its connections and its objects, but no dependent objects of others."""
        self._extend_deadline(connection)
        [(number,)] = connection.execute(_sql("role_oid"), (role,)).fetchall()
        self._set_role(connection, role)
        self._end_connections(connection, role)
        connection.execute(with_identifiers("DROP OWNED BY {} RESTRICT", role))
        connection.execute("RESET ROLE")
        for what, of in connection.execute(_sql("grants_to_role"), (number,)).fetchall():
            connection.execute(with_identifiers(f"REVOKE ALL ON {what} {{}} FROM {{}}", of, role))
        connection.execute(with_identifiers("DROP ROLE {}", role))
        remaining = [what for (what,) in connection.execute(_sql("remaining_objects"), (role, number)).fetchall()]
        if remaining:
            raise StoreError(f"nothing was erased: {', '.join(remaining)} of {role!r} would remain")

    def _end_connections(self, connection: Connection, role: str) -> bool:
        """End a role's connections; True if there were any."""
        return bool(connection.execute(_sql("end_connections"), (role,)).fetchall())

    def _count(self, place: str, name: str) -> Inventory:
        """Count a tenant's events as a delegate: only here could code of the tenant run."""
        until = time.monotonic() + COUNT_SECONDS
        try:
            with pg.connect(pg.conninfo_for(place), until) as connection, connection.limit_to(until):
                if not self._has_tables(connection, name):
                    return EMPTY_INVENTORY
                versions = dict(connection.execute(_in_schema("versions", name)).fetchall())
                keys = dict(connection.execute(_in_schema("keys", name)).fetchall())
                return Inventory(versions=versions, keys_by_stream=keys)
        except psycopg.Error as error:
            raise errors.translate_error(error, place=self.place, seconds=COUNT_SECONDS, writing=False) from error

    def _has_tables(self, connection: Connection, name: str) -> bool:
        table = f"{pg.quote_identifier(name)}.inmind_steps"
        return bool(connection.execute(_sql("has_tables"), (table,)).get)


def _is_empty(place: str) -> bool:
    store = PostgresStore.open(place, max_connections=1)
    try:
        return not store.stream_names("")
    finally:
        store.close()


def _in_schema(query: str, name: str) -> str:
    return _sql(query).replace("tenant.", f"{pg.quote_identifier(name)}.")
