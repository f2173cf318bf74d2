"""Connections to PostgreSQL, as everything here needs them: safe behind a pooler, and with an end in time.

Nothing is ever set on a session, prepared there or listened to: behind a transaction pooler the next statement may go
through another one. What is said of a connection holds for one transaction.
"""

from __future__ import annotations

import select
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo

T = TypeVar("T")

IDLE = 20.0
"""Seconds after which a connection is asked whether it still leads anywhere: a firewall tells nobody what it drops."""

NETWORK: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""How long a silent network is believed, where a URL says nothing of it."""

WAIT = 0.1


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
    used: float = 0.0

    def execute(self, query: Any, params: Any = None, **options: Any) -> Cursor:
        """Statements are texts of ours, out of files."""
        return cast(Cursor, super().execute(query, params, **options))

    def wait(self, gen: Any, interval: float = WAIT, timeout: float | None = None) -> Any:
        left = timeout
        if self.deadline is not None:
            rest = max(0.0, self.deadline - time.monotonic())
            left = rest if timeout is None else min(rest, timeout)
        return super().wait(gen, interval, left)

    @contextmanager
    def until(self, deadline: float) -> Generator[None]:
        self.deadline = deadline
        try:
            yield
        finally:
            self.deadline, self.used = None, time.monotonic()


def check(connection: psycopg.Connection[Any]) -> None:
    """Raises where it leads nowhere. One whose server has left has that in its mailbox: nobody else is asked for it."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN | select.POLLERR | select.POLLHUP)
    if poll.poll(0):
        connection.close()
        raise psycopg.OperationalError("the server has closed the connection")
    if isinstance(connection, Connection) and time.monotonic() - connection.used > IDLE:
        with connection.until(time.monotonic() + NETWORK["connect_timeout"]):
            connection.execute("")


def settings_of(url: str) -> str:
    """What a URL says, with what it leaves open."""
    told = conninfo_to_dict(url)
    usual: dict[str, Any] = {key: value for key, value in NETWORK.items() if key not in told}
    return make_conninfo(url, **{"application_name": "inmind", **usual} if "application_name" not in told else usual)


def connect(conninfo: str) -> Connection:
    return Connection.connect(conninfo, **OPTIONS)


OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "cursor_factory": Cursor}


def shown_place(url: str) -> str:
    """A database as it may stand in a message: who, where, which; never a password."""
    told = conninfo_to_dict(url)
    user = f"{told['user']}@" if told.get("user") else ""
    host = cast(str, told.get("host") or told.get("hostaddr") or "")
    port = f":{told['port']}" if told.get("port") else ""
    where = "" if host.startswith("/") else f"{host}{port}"
    return f"postgresql://{user}{where}/{told.get('dbname') or ''}"
