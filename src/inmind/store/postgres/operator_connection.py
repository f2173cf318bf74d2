"""The operator's connection to a PostgreSQL server, for managing tenants."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from inmind.core.fork import Closing
from inmind.core.paths import check_database_url, redact_url
from inmind.errors import InvalidInput, OutcomeUnknown, StoreError, StoreUnavailable, UnsafeStorage
from inmind.store.postgres.connection import (
    OWN_PARAMETERS,
    Connection,
    connect,
    conninfo_for,
    driver_url,
    own_parameters,
    with_identifiers,
)
from inmind.store.postgres.database import MIN_VERSION
from inmind.store.postgres.errors import first_line, invalid_url, is_connection_lost, is_login_refused, translate_error
from inmind.store.rows import load_queries

REQUIRED_RIGHTS = "a superuser, or a role with CREATEROLE and with CREATE on the database"

STEP_SECONDS = 600.0
"""Timeout of one step: a large tenant takes long to count and to drop."""

_DIRECT_SETTING = "inmind.operator"
"""A custom setting passed on connecting. A pooler does not pass it on, which reveals the pooler."""

_HAS_DEPENDENTS, _INSUFFICIENT_PRIVILEGE = "2BP01", "42501"


_PERSONAL_PARAMETERS = (
    "user",
    "password",
    "passfile",
    "options",
    "sslcert",
    "sslkey",
    "sslpassword",
    "application_name",
    *OWN_PARAMETERS,
)
"""Parameters that belong to one role and must not be passed on to another."""

_sql = load_queries("postgres/tenants")


class OperatorConnection(Closing):
    """A connection of an operator. Its URL must lead to the server, not to a pooler."""

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
        parameters = conninfo_to_dict(settings := conninfo_for(self._url))
        options = f"{parameters.get('options') or ''} -c {_DIRECT_SETTING}=direct"
        try:
            connection = connect(make_conninfo(settings, options=options.strip()), time.monotonic() + self._seconds)
        except psycopg.Error as error:
            if "unsupported startup parameter" in first_line(error):
                raise self._pooler_error() from error
            if is_login_refused(error):
                raise invalid_url(error, place=self.place) from error
            raise StoreUnavailable(place=self.place, reason=first_line(error)) from error
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
        if is_connection_lost(error, connection):
            return OutcomeUnknown(place=self.place, reason=first_line(error))
        if error.sqlstate == _INSUFFICIENT_PRIVILEGE:
            return InvalidInput(field="url", value=self.place, expected=f"{REQUIRED_RIGHTS} ({first_line(error)})")
        if error.sqlstate == _HAS_DEPENDENTS:
            return StoreError(f"nothing was erased: {first_line(error)}, and those are not part of the tenant")
        return translate_error(error, place=self.place, seconds=self._seconds, writing=True)

    def _fetch_rows(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        with self._translate_errors() as connection:
            return connection.execute(_sql(name), values or None).fetchall()


# -- URLs of the same server for other roles: `check_database_url` recognises the password in them for any name ---


def url_with_role(url: str, role: str) -> str:
    """Return a URL with the same credential that switches to another role on connecting."""
    parameters = _parameters(url)
    escaped = "".join(f"\\{letter}" if letter == "\\" or letter.isspace() else letter for letter in role)
    parameters["options"] = f"{parameters.get('options', '')} -c role={escaped}".strip()
    return _build_url(parameters)


def url_for_login(url: str, role: str, password: str, *, defaults: Mapping[str, str]) -> str:
    """Return a URL of the same database for another credential.

    `defaults`: values for parts that the URL leaves out.
    """
    parameters = {name: value for name, value in _parameters(url).items() if name not in _PERSONAL_PARAMETERS}
    host_defaults = {"host": parameters["hostaddr"]} if "hostaddr" in parameters else defaults
    return _build_url(
        {**host_defaults, **defaults, **parameters, "user": role, **({"password": password} if password else {})}
    )


def _parameters(url: str) -> dict[str, str]:
    parameters = {name: str(value) for name, value in conninfo_to_dict(driver_url(url)).items() if value is not None}
    return {**parameters, **own_parameters(url)}


def _build_url(parameters: Mapping[str, str]) -> str:
    rest = dict(parameters)
    credentials = quote(rest.pop("user", ""), safe="")
    credentials += f":{quote(rest.pop('password'), safe='')}" if "password" in rest else ""
    address = ""
    if (host := rest.get("host", "")) and host.isascii() and host.replace(".", "").replace("-", "").isalnum():
        address = rest.pop("host") + (f":{rest.pop('port')}" if "port" in rest else "")
    name = quote(rest.pop("dbname", ""), safe="")
    query = f"?{urlencode(rest, quote_via=quote, safe='')}" if rest else ""
    return f"postgresql://{credentials}{'@' if credentials else ''}{address}/{name}{query}"
