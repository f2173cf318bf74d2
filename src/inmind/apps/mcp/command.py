"""`inmind mcp`: reads what it is told, opens the home, and serves it over stdio or HTTP until it is told to leave."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inmind.core.text import printable
from inmind.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server import Server

    from inmind.apps.mcp.session_pool import Keeper
    from inmind.memory.memory import Memory

HOST, PORT = "127.0.0.1", 8765

FINISHING_SECONDS = 2.0
"""For calls that are being carried out when we are told to leave."""
LEAVING_SECONDS = 4.0
"""After which we are gone, whoever does not take our answers or dreams on: what was acknowledged is stored."""


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP, for any number of clients.")] = False,
    host: Annotated[str, typer.Option(help="Where to listen, with --http.")] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="And at which port; 0 takes any.")] = PORT,
    session: Annotated[
        str | None, typer.Option(help="What calls are about that name no session; or $INMIND_SESSION.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option(help="Whose it all is, and nobody else's; or $INMIND_RESOURCE.")
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The project; by default what the client says, or this folder.")
    ] = None,
    all_resources: Annotated[
        bool, typer.Option("--all-resources", help="Open the memory of every project to every client.")
    ] = False,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="With --http: where clients see it, behind a proxy with TLS.")
    ] = None,
    no_dreams: Annotated[bool, typer.Option("--no-dreams", help="Leave upkeep and dreams to `inmind worker`.")] = False,
) -> None:
    """Give working memory to an agent that speaks MCP.

    Over stdin and stdout, for a client that starts it, as `claude mcp add inmind -- inmind mcp` tells one to.

    With --http at http://HOST:PORT/mcp, for clients that bring a token: the one in $INMIND_MCP_TOKEN, or else one that
    is made and kept in the home; a database keeps none. There a client says its project in its URL, as http://HOST:PORT/mcp?project=NAME.

    Each project has a memory of its own, which is named after its folder, and none reaches another's.
    """
    _check_installed()

    from inmind.apps.cli.console import selected_place
    from inmind.apps.mcp.project import Usual
    from inmind.apps.mcp.server import server_of
    from inmind.apps.mcp.session_pool import Keeper
    from inmind.memory.memory import Memory

    usual = Usual.of(os.environ, cwd=cwd, session=session, resource=resource, everybody=all_resources, here=not http)
    with _closed_in_time(Memory.open(selected_place())) as memory:
        keeper = Keeper(memory)
        server = server_of(keeper, keeper.settled(usual))
        if not no_dreams:
            memory.start_upkeep()
        if http:
            _serve_http(server, keeper, host, port, public_url)
        else:
            _serve_stdio(server, keeper)


def _check_installed() -> None:
    if any(find_spec(name) is None for name in ("mcp", "uvicorn")):
        raise InvalidInput(field="mcp", expected='its extra: pip install "inmind[mcp]"')


@contextmanager
def _closed_in_time(memory: Memory) -> Generator[Memory]:
    """A dream may be waiting for its model when we leave; it changes nothing then, and is not waited for."""
    try:
        yield memory
    finally:
        late = _gone_in(LEAVING_SECONDS)
        try:
            memory.close()
        finally:
            late.cancel()


def _serve_stdio(server: Server[Any], keeper: Keeper) -> None:
    import anyio

    from inmind.apps.mcp.stdio import serve_stdio

    if sys.stdin.isatty():
        print("inmind: waiting for a client to speak MCP on stdin; Ctrl-C leaves", file=sys.stderr, flush=True)
    anyio.run(serve_stdio, server, partial(_told_to_leave, keeper))


def _serve_http(server: Server[Any], keeper: Keeper, host: str, port: int, public_url: str | None) -> None:
    import anyio

    from inmind.apps.mcp.http import PATH, address_of, listening, serve_http
    from inmind.apps.mcp.http_auth import Public, is_loopback
    from inmind.apps.mcp.token import VARIABLE, token_of

    if not is_loopback(host) and not os.environ.get(VARIABLE):
        raise InvalidInput(
            field="--host", value=host, expected=f"this machine alone, or a token of yours in ${VARIABLE}"
        )
    public = None if public_url is None else Public.at(public_url)
    token = token_of(keeper.memory.home, os.environ)
    with listening(host, port) as listener:
        address = address_of(listener, public)
        told = f"inmind: {address.url}{PATH}, with the token in {token.kept_in}"
        print(printable(told), file=sys.stderr, flush=True)
        anyio.run(serve_http, server, listener, address, token, partial(_told_to_leave, keeper))


async def _told_to_leave(keeper: Keeper) -> None:
    """Comes back when somebody has told us to, and those are answered who were being asked."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(aiter(signals))
    _gone_in(LEAVING_SECONDS)
    await keeper.leave(FINISHING_SECONDS)


def _gone_in(seconds: float) -> threading.Timer:
    late = threading.Timer(seconds, os._exit, (0,))
    late.daemon = True
    late.start()
    return late
