"""Over HTTP: the protocol's streamable transport behind the guard, on a server that waits for nobody without end."""

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

from inmind.apps.mcp.http_auth import Address, Guard, Public
from inmind.apps.mcp.token import Token
from inmind.errors import InvalidInput

PATH = "/mcp"
MOST_CONNECTIONS = 512
MOST_SILENT = 128
"""Connections that ask nothing; of more, the one that has been silent the longest makes room."""
HEADER_SECONDS = 10
"""For the head of a request to come, whether none of it has or it trickles in."""
KEEP_ALIVE_SECONDS = 10
"""Between two requests. Longer than clients keep a connection (4 or 5 s): a request that is sent while we close it
fails, and who sent it cannot know whether it was done."""
LEAVING_SECONDS = 1
"""For answers to be sent, once we leave; those who only listen on are cut off then."""
IDLE_SECONDS = 1_800.0
"""After which a connection of the older kind is forgotten."""


def listening(host: str, port: int) -> socket.socket:
    """A socket at this address, before anything is told about it."""
    try:
        (family, *_, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(address, family=family, backlog=MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        expected = f"an address to listen at, and a port that is free there ({error})"
        raise InvalidInput(field="host and port", value=f"{host} {port}", expected=expected) from error


def address_of(listener: socket.socket, public: Public | None = None) -> Address:
    host, port = listener.getsockname()[:2]
    return Address(host=host, port=port, public=public)


async def serve_http(
    server: Server[Any],
    listener: socket.socket,
    address: Address,
    token: Token,
    until_told: Callable[[], Awaitable[None]],
) -> None:
    """Answer until we are told to leave; then let everybody finish who does not take too long."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MOST_CONNECTIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard has done that
    )
    config = uvicorn.Config(
        Guard(app, address, token.value),
        http=_Impatient,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=LEAVING_SECONDS,
    )
    serving = _Server(config)

    async def leave() -> None:
        await until_told()
        serving.should_exit = True

    async with anyio.create_task_group() as group:
        group.start_soon(leave)
        await serving.serve(sockets=[listener])
        group.cancel_scope.cancel()


class _Server(uvicorn.Server):
    """Signals are for whoever runs us: this one would raise them again before memory is closed."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _Impatient(H11Protocol):
    """uvicorn waits for the head of a request for as long as bytes trickle in, or none come, and turns newcomers away
    when too many of those are there."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._wait_or_not()
        everyone = cast("set[_Impatient]", self.connections)
        silent = [one for one in everyone if one._patience is not None]
        if len(silent) > MOST_SILENT:
            min(silent, key=_Impatient._until)._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_or_not()

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        super().connection_lost(exc)

    def _wait_or_not(self) -> None:
        if self._is_asked():
            self._rest()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEADER_SECONDS, self._lose_patience)

    def _is_asked(self) -> bool:
        """Is there a request whose head has come, and that is not answered yet?"""
        return self.cycle is not None and not self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison] -- None before the first

    def _lose_patience(self) -> None:
        if not self._is_asked():
            self.transport.close()

    def _until(self) -> float:
        return self._patience.when() if self._patience is not None else 0.0

    def _make_room(self) -> None:
        self._rest()
        self.transport.close()

    def _rest(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
