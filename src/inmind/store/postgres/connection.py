"""Connections to PostgreSQL, as everything here needs them: safe behind a pooler, and with an end in time.

Nothing is ever set on a session, prepared there or listened to: behind a transaction pooler the next statement may go
through another one. What is said of a connection holds for one transaction.
"""

from __future__ import annotations

import math
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
"""Seconds after which a connection is asked whether it still leads anywhere: a firewall tells nobody what it drops."""

PROBE_SECONDS = 3.0
"""Seconds that it has to answer that."""

NETWORK_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How long a silent network is believed, where a URL says nothing of it."""

POLL_SECONDS = 0.1


class Cursor(RawCursor[Any]):
    """Statements have `$1` for what is put in, which is PostgreSQL's own way."""

    @property
    def get(self) -> Any:
        """The one value of the one row."""
        row = self.fetchone()
        return row[0] if row else None


class Connection(psycopg.Connection[Any]):
    """One that gives up at a deadline, whoever keeps it waiting: a lock, a slow disk or a network that swallows all."""

    deadline: float | None = None
    grace: float = 0.0
    created_at: float = 0.0
    used_at: float = 0.0
    isolation: str = ""
    """Of isolation, that a transaction has here for which none is named."""
    incoming: select.poll
    """Has something in it where nothing was asked: the server has left."""

    def __del__(self, *_: Any) -> None:
        """Without a warning: a memory that nobody has closed ends with its process, also where that is in a folder."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Cursor:
        """Statements are texts of ours, out of files."""
        return cast(Cursor, super().execute(query, params, **options))

    def wait(self, gen: Any, interval: float = POLL_SECONDS, timeout: float | None = None) -> Any:
        """At the deadline the server is told to let it be, and has a moment to say what has become of it: a statement
        that waits would stand in its queue for ever, and nobody would know."""
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
            )  # the order to stop may arrive late, and must not meet somebody else's statement
            with suppress(psycopg.Error):
                self.cancel_safe(timeout=self.grace / 2)
            return super().wait(gen, interval, max(0.0, self.deadline - time.monotonic()))

    @contextmanager
    def limit_to(self, deadline: float, *, grace: float = 0.0) -> Generator[None]:
        """`grace`: seconds before it that are for finding out what became of a statement."""
        self.deadline, self.grace = deadline, grace
        try:
            yield
        finally:
            self.clear_deadline()

    def clear_deadline(self) -> None:
        self.deadline, self.used_at = None, time.monotonic()


def is_alive(connection: Connection, deadline: float) -> bool:
    """One whose server has left has that in its mailbox. One that was silent for long is asked."""
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
    """What a URL tells the driver, with what it leaves open."""
    with suppress(psycopg.Error):
        told = conninfo_to_dict(plain := driver_url(url))
        timeout_from_conninfo(told)
        usual = {
            key: value for key, value in {**NETWORK_DEFAULTS, "application_name": "inmind"}.items() if key not in told
        }
        return make_conninfo(plain, **{**usual, "client_encoding": "UTF8"})
    raise invalid_parameters(url)


def connect(conninfo: str, deadline: float) -> Connection:
    """The network counts in whole seconds here, two at least."""
    wanted, left = timeout_from_conninfo(conninfo_to_dict(conninfo)), max(2, math.ceil(deadline - time.monotonic()))
    connection = Connection.connect(conninfo, **OPTIONS, connect_timeout=min(wanted, left))
    connection.created_at = connection.used_at = time.monotonic()
    connection.incoming = select.poll()
    connection.incoming.register(connection.fileno(), select.POLLIN | select.POLLERR | select.POLLHUP)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "cursor_factory": Cursor}


def quote_identifier(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def run_script(connection: Connection, statements: str) -> None:
    """Many statements, with nothing put in: the server takes them as one text."""
    psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(statements.encode())


def with_identifiers(statement: str, *names: str) -> sql.Composed:
    """A statement of ours with names in it, whatever these are."""
    return sql.SQL(cast(Any, statement)).format(*map(sql.Identifier, names))


def with_literal(statement: str, name: str, text: str) -> sql.Composed:
    return with_identifiers(statement, name) + sql.SQL(" ") + sql.Literal(text)
