"""Connections to PostgreSQL that work through a pooler and have deadlines, in a pool.

No settings, prepared statements or listeners are kept in a session: with a transaction pooler the next statement may
use another session. All settings apply to one transaction.
"""

from __future__ import annotations

import math
import os
import random
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import psycopg
from psycopg import RawCursor, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo, timeout_from_conninfo
from psycopg.pq import Conninfo

from inmind.core.paths import check_database_url
from inmind.errors import Closed, InvalidInput

T = TypeVar("T")

PROBE_AFTER_SECONDS = 20.0
"""A connection idle for longer is tested before use: a firewall drops connections silently."""

PROBE_SECONDS = 3.0
"""Timeout of that test."""

DEFAULTS: dict[str, Any] = {
    "application_name": "inmind",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Parameters unless the URL sets them, such as network timeouts."""

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
            # The cancel may arrive late and must not hit another statement: do not reuse the connection.
            self.created_at = -math.inf
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
    if now - connection.used_at <= PROBE_AFTER_SECONDS:
        return True
    with suppress(psycopg.Error), connection.limit_to(now + min(PROBE_SECONDS, (deadline - now) / 3)):
        connection.execute("")
        return True
    return False


def conninfo_for(url: str) -> str:
    """Return the driver's connection string for a URL, with our defaults."""
    with suppress(psycopg.Error):
        parameters = conninfo_to_dict(plain := driver_url(url))
        timeout_from_conninfo(parameters)
        defaults = {name: value for name, value in DEFAULTS.items() if name not in parameters}
        return make_conninfo(plain, **{**defaults, "client_encoding": "UTF8"})
    raise invalid_parameters(url)


def connect(conninfo: str, deadline: float) -> Connection:
    """Connect before the deadline. The driver's timeout is in whole seconds, at least two."""
    configured, remaining = timeout_from_conninfo(conninfo_to_dict(conninfo)), math.ceil(deadline - time.monotonic())
    connection = Connection.connect(conninfo, **OPTIONS, connect_timeout=min(configured, max(2, remaining)))
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


# -- inmind's parameters in a database URL ----------------------------------------------------------------

OWN_PARAMETERS = {"inmind_connections": 1_000, "inmind_seconds": 86_400}
"""Limits that a URL may set, each with its maximum: connections of this process, and the timeout of a call."""


def limits_in(url: str) -> dict[str, int]:
    """Return the limits that the URL sets, by parameter."""
    limits = own_parameters(url)
    for name, value in limits.items():
        maximum = OWN_PARAMETERS[name]
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= maximum:
            raise InvalidInput(field=name, value=value, expected=f"a whole number from 1 to {maximum}")
    return {name: int(value) for name, value in limits.items()}


def invalid_parameters(url: str) -> InvalidInput:
    """Return the error for a URL that the driver refuses.

    The driver's message may contain the password.
    """
    known = [*OWN_PARAMETERS, *(option.keyword.decode() for option in Conninfo.get_defaults())]
    for name in (pair.partition("=")[0] for pair in check_database_url(url, "url").partition("?")[2].split("&")):
        if name and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            return InvalidInput(field="url", value=name, expected=f"known parameters{hint}")
    return InvalidInput(field="url", expected="postgresql://user:password@host:port/database?…")


def driver_url(url: str) -> str:
    """Return the URL without inmind's parameters."""
    address, _, query = url.partition("?")
    rest = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] not in OWN_PARAMETERS)
    return f"{address}?{rest}" if rest else address


def own_parameters(url: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in url.partition("?")[2].split("&"))
    return {name: value for name, _, value in pairs if name in OWN_PARAMETERS}


_PERSONAL_PARAMETERS = {
    *"user password passfile options sslcert sslkey sslpassword application_name".split(),
    *OWN_PARAMETERS,
}
"""Parameters that belong to one role and must not be passed on to another."""


def url_with_role(url: str, role: str) -> str:
    """Return a URL with the same credential that switches to another role on connecting."""
    parameters = _url_parameters(url)
    escaped = "".join(f"\\{letter}" if letter == "\\" or letter.isspace() else letter for letter in role)
    parameters["options"] = f"{parameters.get('options', '')} -c role={escaped}".strip()
    return _build_url(parameters)


def url_for_login(url: str, role: str, password: str, *, defaults: Mapping[str, str]) -> str:
    """Return a URL of the same database for another credential.

    `defaults`: values for parts that the URL leaves out.
    """
    parameters = {name: value for name, value in _url_parameters(url).items() if name not in _PERSONAL_PARAMETERS}
    host_defaults = {"host": parameters["hostaddr"]} if "hostaddr" in parameters else defaults
    return _build_url(
        {**host_defaults, **defaults, **parameters, "user": role, **({"password": password} if password else {})}
    )


def _url_parameters(url: str) -> dict[str, str]:
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


# -- the pool ------------------------------------------------------------------------------------------------

MAX_AGE_SECONDS = 3600.0
"""Older connections are reopened: the host name may resolve to another server by now."""

MAX_IDLE_SECONDS = 60.0
"""Connections idle for longer are closed, except one."""


class PoolExhausted(Exception):
    """All connections were in use until the deadline."""


class Pool:
    """A pool of at most `max_size` connections, without threads.

    A connection is used by one thread at a time and opened by the thread that needs it. So the caller gets a connection
    error at once, a server that is back is used by the next call, and a fork interrupts no background work. (A pool
    that connects in the background makes callers wait for its next attempt, and detects ten dead connections one at a
    time.)
    """

    def __init__(self, create: Callable[[float], Connection], *, max_size: int) -> None:
        """`create`: opens a connection before a deadline."""
        self._create, self._max_size = create, max_size
        self._changed = threading.Condition(threading.Lock())
        self._borrowed = 0
        self._idle: deque[Connection] = deque()
        self._all: set[Connection] = set()
        self._inherited: set[Connection] = set()
        self._closed = False

    def borrow(self, deadline: float) -> Connection:
        """Take a connection. Raises PoolExhausted, or an error of `create`."""
        with self._changed:
            while self._borrowed >= self._max_size:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise PoolExhausted
            self._borrowed += 1
        try:
            if (connection := self._take_idle(deadline)) is None:
                connection = self._create(deadline)
                with self._changed:
                    self._all.add(connection)
            return connection
        except BaseException:
            with self._changed:
                self._release_slot()
            raise

    def give_back(self, connection: Connection) -> None:
        """Return a connection. It is closed if it is broken, old, or inside a transaction."""
        idle = not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._changed:
            kept = idle and not self._closed and not _is_old(connection)
            if kept:
                self._idle.append(connection)
            unneeded = [*self._take_unneeded(), *([] if kept else [connection])]
            self._release_slot()
        if unneeded:
            self._dispose(unneeded)

    def drop_idle(self) -> None:
        """Close all idle connections: if one is dead, the others probably are too."""
        with self._changed:
            idle, self._idle = self._idle, deque()
        self._dispose(idle)

    def close(self) -> None:
        """Close the pool. Borrowed connections are closed when they are given back."""
        with self._changed:
            self._closed = True
        self.drop_idle()

    def after_fork(self) -> None:
        """Detach the parent's connections in a forked child.

        The child must not use them, nor close them, which would end the parent's session. But while the child has their
        sockets open, the server would not notice the end of the parent and would keep its locks. So each descriptor
        is replaced by a socket without a peer.
        """
        for connection in self._all:
            with suppress(psycopg.Error, OSError):
                dead_end, peer = socket.socketpair()
                peer.close()
                os.dup2(dead_end.fileno(), connection.fileno(), inheritable=False)
                dead_end.close()
        self._changed, self._borrowed = threading.Condition(threading.Lock()), 0
        self._idle, self._inherited, self._all = deque(), self._all, set()

    def _take_idle(self, deadline: float) -> Connection | None:
        """Take the connection that was used last, so that the others become idle and are closed."""
        with self._changed:
            if self._closed:
                raise Closed
            unneeded = self._take_unneeded()
            while self._idle and _is_old(self._idle[-1]):
                unneeded.append(self._idle.pop())
            connection = self._idle.pop() if self._idle else None
        self._dispose(unneeded)
        if connection is None or is_alive(connection, deadline):
            return connection
        self._dispose([connection])
        self.drop_idle()
        return None

    def _dispose(self, connections: Collection[Connection]) -> None:
        """Close connections that are neither idle nor borrowed any more."""
        with self._changed:
            self._all.difference_update(connections)
        for connection in connections:
            connection.close()

    def _release_slot(self) -> None:
        self._borrowed -= 1
        self._changed.notify()

    def _take_unneeded(self) -> list[Connection]:
        """Take connections that were idle for long.

        They are in the order in which they were given back.
        """
        unneeded: list[Connection] = []
        while len(self._idle) > 1 and time.monotonic() - self._idle[0].used_at > MAX_IDLE_SECONDS:
            unneeded.append(self._idle.popleft())
        return unneeded


def _is_old(connection: Connection) -> bool:
    return time.monotonic() - connection.created_at > MAX_AGE_SECONDS
