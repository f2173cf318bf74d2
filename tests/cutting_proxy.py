"""A proxy to PostgreSQL that cuts connections at chosen statements.

The worst moment to lose a connection is after the server's commit and before the client gets the reply. A test chooses
the moment, and whether the connection is closed, reset, or silently blocked.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, Self
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

Where = Literal["connect", "before", "after", "reply"]
"""`connect`: no connection is accepted. For a statement: `before` the server gets it; `after` it was forwarded, with
any outcome; `reply`: it is committed and the reply is lost."""

How = Literal["closed", "reset", "silence"]
"""The connection is closed, reset, or stays open and forwards nothing."""


@dataclass
class Cut:
    """A fault that waits for its statement."""

    where: Where
    how: How
    at: bytes = b""
    """Part of the statement's text."""
    times: int = 1
    fired: int = 0

    def fires(self, where: Where, sent: bytes = b"") -> bool:
        if self.where != where or self.fired >= self.times or self.at not in sent:
            return False
        self.fired += 1
        return True


class Proxy:
    """Forwards connections to one server, on a local port."""

    def __init__(self, url: str) -> None:
        self._parameters: dict[str, Any] = conninfo_to_dict(url)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._lock = threading.Lock()
        self._active: set[_ProxiedConnection] = set()
        self._threads: list[threading.Thread] = []
        self._cut: Cut | None = None
        self._closed = False
        self.connections = 0

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop("reset")
        for thread in self._threads:
            thread.join(timeout=10)
            assert not thread.is_alive(), "the proxy hangs"

    @property
    def url(self) -> str:
        """The URL for clients: the same user and database, through this proxy."""
        parameters = self._parameters
        credentials = quote(parameters["user"], safe="") + (
            f":{quote(parameters['password'], safe='')}" if parameters.get("password") else ""
        )
        address = f"127.0.0.1:{self._listener.getsockname()[1]}/{quote(parameters['dbname'], safe='')}"
        return f"postgresql://{credentials}@{address}?sslmode=disable&gssencmode=disable"

    @contextmanager
    def cutting(self, where: Where, how: How, *, at: str = "", times: int = 1) -> Generator[Cut]:
        """Cut the connection of `times` statements that contain `at`; at least one must occur."""
        self._cut = cut = Cut(where, how, at.encode(), times)
        try:
            yield cut
        finally:
            self._cut = None
        assert cut.fired, f"nothing was cut at {where} {at!r}"

    def drop(self, how: How) -> int:
        """Cut all connections and return their number."""
        with self._lock:
            connections = [*self._active]
        for connection in connections:
            connection.end(how)
        for thread in [thread for connection in connections for thread in connection.threads if how != "silence"]:
            thread.join(timeout=10)  # the system keeps a connection while a thread reads from it
        return len(connections)

    def _spawn(self, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            connection = _ProxiedConnection(self, client)
            with self._lock:
                self._active.add(connection)
            if (cut := self._cut) and cut.fires("connect"):
                connection.end(cut.how)
                continue
            try:
                connection.server = self._server()
            except OSError:  # it is down
                connection.end("reset")
                continue
            connection.threads = [self._spawn(connection.client_to_server), self._spawn(connection.server_to_client)]

    def _server(self) -> socket.socket:
        host, port = self._parameters.get("host") or "127.0.0.1", self._parameters.get("port") or "5432"
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))

    def at(self, where: Where, sent: bytes) -> Cut | None:
        with self._lock:
            cut = self._cut
            return cut if cut and cut.fires(where, sent) else None

    def forget(self, connection: _ProxiedConnection) -> None:
        with self._lock:
            self._active.discard(connection)


class _ProxiedConnection:
    """One connection in both directions.

    `client_to_server` forwards the messages of a client until it waits for a reply.
    """

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy, self._client = proxy, client
        self.server: socket.socket | None = None
        self.threads: list[threading.Thread] = []
        self._silent = False
        self._without_replies = False
        """Set before the last statement is forwarded: its reply may be faster than the end of the connection."""
        self._lost_reply: Cut | None = None
        """Set if the next reply must not arrive."""

    def client_to_server(self) -> None:
        assert self.server
        pending, statement, began = b"", b"", False
        with suppress(OSError):
            while received := self._client.recv(1 << 16):
                pending += received
                while (size := _size(pending, typed=began)) is not None and size <= len(pending):
                    message, pending = pending[:size], pending[size:]
                    statement += message
                    if not began or message[:1] in b"QSpXdcf":
                        if not self._forward(statement):
                            return
                        statement = b""
                    began = True
        self.end("closed")

    def _forward(self, statement: bytes) -> bool:
        assert self.server
        if cut := self._proxy.at("before", statement):
            self.end(cut.how)
            return cut.how == "silence"
        self._lost_reply = self._lost_reply or self._proxy.at("reply", statement)
        cut = self._proxy.at("after", statement)
        self._without_replies = cut is not None
        if not self._silent:
            self.server.sendall(statement)
        if cut:
            self.end(cut.how)
            return cut.how == "silence"
        return True

    def server_to_client(self) -> None:
        assert self.server
        pending = b""
        with suppress(OSError):
            while received := self.server.recv(1 << 16):
                pending += received
                while (size := _size(pending, typed=True)) is not None and size <= len(pending):
                    message, pending = pending[:size], pending[size:]
                    if self._lost_reply:
                        if message[:1] == b"Z":  # the server has committed, and is ready for the next statement
                            cut, self._lost_reply = self._lost_reply, None
                            self.end(cut.how)
                    elif not (self._silent or self._without_replies):
                        self._client.sendall(message)
        self.end("closed")

    def end(self, how: How) -> None:
        if how == "silence":
            self._silent = True
            return
        if self._silent and how == "closed":
            return  # a silent connection must not get a FIN
        self._proxy.forget(self)
        for side in (self._client, self.server):
            if side is None:
                continue
            with suppress(OSError):
                if how == "reset" and side is self._client:
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    side.shutdown(socket.SHUT_RD)  # a pending read keeps it open
                else:
                    side.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                side.close()


def _size(pending: bytes, *, typed: bool) -> int | None:
    """Size of the first message; None if incomplete. A client's first message has no type."""
    head = 5 if typed else 4
    if len(pending) < head:
        return None
    return struct.unpack("!i", pending[head - 4 : head])[0] + (1 if typed else 0)
