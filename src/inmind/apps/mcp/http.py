"""HTTP: the streamable transport of MCP, with authentication, timeouts and limits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from inmind.apps.mcp.http_auth import AccessToken, AuthMiddleware, ServerAddress
from inmind.errors import InvalidInput

PATH = "/mcp"
MAX_CONNECTIONS = 512
MAX_IDLE_CONNECTIONS = 128
"""Maximum number of connections without a request; above it the oldest idle one is closed."""
HEADER_SECONDS = 10
"""Timeout for the complete request header."""
KEEP_ALIVE_SECONDS = 10
"""Idle time between two requests. Longer than clients keep a connection (4 or 5 s): a request sent while the server
closes the connection fails, and the client cannot know whether it was executed."""
SHUTDOWN_SECONDS = 1
"""Time for answers to be sent during shutdown; open event streams are closed after it."""
IDLE_SECONDS = 1_800.0
"""Idle time after which a session of the older protocol versions is dropped."""


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket."""
    try:
        (family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(address, family=family, backlog=MAX_CONNECTIONS)
    except (OSError, OverflowError) as error:
        expected = f"an address of this machine and a free port ({error})"
        raise InvalidInput(field="host and port", value=f"{host} {port}", expected=expected) from error


async def serve_http(
    server: Server[Any],
    listener: socket.socket,
    address: ServerAddress,
    token: AccessToken,
    wait_for_shutdown: Callable[[], Awaitable[None]],
) -> None:
    """Serve until shutdown, then let running requests finish within a time limit."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MAX_CONNECTIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # done by AuthMiddleware
    )
    config = uvicorn.Config(
        AuthMiddleware(app, address, token.value),
        http=_TimeoutProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    uvicorn_server = _UvicornServer(config)

    async def stop() -> None:
        await wait_for_shutdown()
        uvicorn_server.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        await uvicorn_server.serve(sockets=[listener])
        group.cancel_scope.cancel()


class _UvicornServer(uvicorn.Server):
    """uvicorn without signal handling.

    It would raise signals again before the memory is closed.
    """

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _TimeoutProtocol(H11Protocol):
    """Adds a header timeout and a limit of idle connections.

    uvicorn waits without limit for a request header, and rejects new clients when too many connections are open.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._update_timer()
        connections = cast("set[_TimeoutProtocol]", self.connections)
        idle = [one for one in connections if one._timer is not None]
        if len(idle) > MAX_IDLE_CONNECTIONS:
            min(idle, key=_TimeoutProtocol._deadline)._close()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _update_timer(self) -> None:
        if self._has_request():
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def _has_request(self) -> bool:
        """True if a request header has arrived and the request is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] -- None before the first request

    def _close_if_idle(self) -> None:
        if not self._has_request():
            self.transport.close()

    def _deadline(self) -> float:
        return self._timer.when() if self._timer is not None else 0.0

    def _close(self) -> None:
        self._stop_timer()
        self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
