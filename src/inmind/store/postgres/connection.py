"""Connections to PostgreSQL that work through a pooler and have deadlines.

No settings, prepared statements or listeners are kept in a session: with a transaction pooler the next statement may
use another session. All settings apply to one transaction.
"""

from __future__ import annotations

import math
import random
import re
import select
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

import psycopg
from psycopg import RawCursor, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo, timeout_from_conninfo

from inmind.store.postgres.url import driver_url, invalid_parameters

T = TypeVar("T")

PROBE_AFTER_SECONDS = 20.0
"""A connection idle for longer is tested before use: a firewall drops connections silently."""

PROBE_SECONDS = 3.0
"""Timeout of that test."""

NETWORK_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Network timeouts, unless the URL sets them."""

POLL_SECONDS = 0.1


class Cursor(RawCursor[Any]):
    """A cursor for statements with `$1` parameters, which is PostgreSQL's own syntax."""

    @property
    def get(self) -> Any:
        """The single value of the single row; None if there is none."""
        row = self.fetchone()
        return row[0] if row else None


class Connection(psycopg.Connection[Any]):
    """A connection that stops waiting at a deadline, for a lock, a slow disk or the network."""

    deadline: float | None = None
    grace: float = 0.0
    created_at: float = 0.0
    used_at: float = 0.0
    isolation: str = ""
    """Default isolation level of transactions on this connection."""
    incoming: select.poll
    """Readable while no query is running if the server has closed the connection."""

    def __del__(self, *_: Any) -> None:
        """Suppress psycopg's warning: a memory that was not closed ends with its process."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Cursor:
        """Execute a statement. Statements come from our SQL files."""
        return cast(Cursor, super().execute(query, params, **options))

    def wait(self, gen: Any, interval: float = POLL_SECONDS, timeout: float | None = None) -> Any:
        """Wait until the deadline. Then the statement is cancelled.

        The server gets `grace` seconds to report the outcome. Without the cancel, a statement that waits for a lock
        would stay in the server's queue.
        """
        if self.deadline is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, max(0.0, self.deadline - self.grace - time.monotonic()))
        except psycopg.OperationalError as error:
            if error.sqlstate or not self.grace or time.monotonic() < self.deadline - self.grace:
                raise
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE:
                raise
            self.created_at = (
                -math.inf
            )  # the cancel may arrive late and must not hit another statement: do not reuse it
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=self.grace / 2)
            return super().wait(gen, interval, max(0.0, self.deadline - time.monotonic()))

    @contextmanager
    def limit_to(self, deadline: float, *, grace: float = 0.0) -> Generator[None]:
        """Set a deadline for the block.

        `grace`: seconds reserved to find out the outcome of a statement.
        """
        self.deadline, self.grace = deadline, grace
        try:
            yield
        finally:
            self.clear_deadline()

    def clear_deadline(self) -> None:
        self.deadline, self.used_at = None, time.monotonic()


def is_alive(connection: Connection, deadline: float) -> bool:
    """True if the connection works. A connection that was idle for long is tested."""
    if connection.closed or connection.incoming.poll(0):
        return False
    now = time.monotonic()
    if now - connection.used_at > PROBE_AFTER_SECONDS:
        try:
            with connection.limit_to(now + min(PROBE_SECONDS, (deadline - now) / 3)):
                connection.execute("")
        except psycopg.Error:
            return False
    return True


def conninfo_for(url: str) -> str:
    """Return the driver's connection string for a URL, with our defaults."""
    with suppress(psycopg.Error):
        parameters = conninfo_to_dict(plain := driver_url(url))
        timeout_from_conninfo(parameters)
        defaults = {
            key: value
            for key, value in {**NETWORK_DEFAULTS, "application_name": "inmind"}.items()
            if key not in parameters
        }
        return make_conninfo(plain, **{**defaults, "client_encoding": "UTF8"})
    raise invalid_parameters(url)


def connect(conninfo: str, deadline: float) -> Connection:
    """Connect before the deadline. The driver's timeout is in whole seconds, at least two."""
    configured, remaining = (
        timeout_from_conninfo(conninfo_to_dict(conninfo)),
        max(2, math.ceil(deadline - time.monotonic())),
    )
    connection = Connection.connect(conninfo, **OPTIONS, connect_timeout=min(configured, remaining))
    connection.created_at = connection.used_at = time.monotonic()
    connection.incoming = select.poll()
    connection.incoming.register(connection.fileno(), select.POLLIN | select.POLLERR | select.POLLHUP)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "cursor_factory": Cursor}


def quote_identifier(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def with_schema(statement: str, schema: str) -> str:
    """Replace `tenant.` in a statement by the schema's name.

    The name may contain characters that would end an identifier, a text or a function body.
    """
    name, delimiter = quote_identifier(schema), "$inmind$"
    while delimiter in name:
        delimiter = f"{delimiter[:-1]}_$"
    in_text = name.replace("'", "''")
    replacements = {"$$": delimiter, "'tenant.": f"'{in_text}.", "tenant.": f"{name}."}
    return re.sub(r"\$\$|'?\btenant\.", lambda match: replacements[match[0]], statement)


def run_script(connection: Connection, statements: str) -> None:
    """Run several statements without parameters, sent as one text."""
    psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(statements.encode())


def with_identifiers(statement: str, *names: str) -> sql.Composed:
    """Insert quoted identifiers into a statement."""
    return sql.SQL(cast(Any, statement)).format(*map(sql.Identifier, names))


def with_literal(statement: str, name: str, text: str) -> sql.Composed:
    """Insert an identifier and append a quoted literal."""
    return with_identifiers(statement, name) + sql.SQL(" ") + sql.Literal(text)


def two_thirds_until(until: float) -> float:
    """Return a deadline after two thirds of the time, so that another attempt fits in."""
    return until - (until - time.monotonic()) / 3


def sleep_before_retry(tries: int) -> None:
    time.sleep(min(0.5, 0.002 * 2**tries) * random.random())  # noqa: S311 -- only to spread retries
