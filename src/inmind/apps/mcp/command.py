"""`inmind mcp`: serves a memory over MCP, on stdio or HTTP."""

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
from typing import TYPE_CHECKING, Any

import click

from inmind.core.text import printable
from inmind.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server import Server

    from inmind.apps.mcp.sessions import SessionPool
    from inmind.memory.memory import Memory

HOST, PORT = "127.0.0.1", 8765

FINISH_SECONDS = 2.0
"""Time for running calls to finish after a signal."""
SHUTDOWN_SECONDS = 4.0
"""The process exits after this time even if a client does not read or a dream runs; acknowledged data is stored."""


@click.option("--http", is_flag=True, help="Serve over HTTP, for any number of clients.")
@click.option("--host", default=HOST, help="With --http: address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    help="With --http: port; 0 takes any free one.",
)
@click.option(
    "--session", default="", envvar="INMIND_SESSION", help="Session of calls that name none; or $INMIND_SESSION."
)
@click.option("--resource", default="", envvar="INMIND_RESOURCE", help="Resource of all sessions; or $INMIND_RESOURCE.")
@click.option("--cwd", type=Path, metavar="DIR", help="Project folder; default: as the client reports, or this folder.")
@click.option("--all-resources", is_flag=True, help="Give every client access to the memory of all projects.")
@click.option("--public-url", metavar="URL", help="With --http: the URL that clients use, if behind a TLS proxy.")
@click.option("--no-dreams", is_flag=True, help="Leave upkeep and dreams to `inmind worker`.")
def mcp(
    http: bool,
    host: str,
    port: int,
    session: str,
    resource: str,
    cwd: Path | None,
    all_resources: bool,
    public_url: str | None,
    no_dreams: bool,
) -> None:
    """Run an MCP server that gives an agent working memory.

    By default on stdin and stdout, started by the client, for example with `claude mcp add inmind -- inmind mcp`.

    With --http at http://HOST:PORT/mcp. Clients need a token: the one in $INMIND_MCP_TOKEN, or one that is generated
    and stored in the home (not with a database). A client names its project in the URL:
    http://HOST:PORT/mcp?project=NAME.

    Each project has a separate memory, named after its folder; no project can access another one.
    """
    _check_installed()

    from inmind.apps.cli.console import selected_place
    from inmind.apps.mcp.server import build_server
    from inmind.apps.mcp.sessions import ServerDefaults, SessionPool
    from inmind.memory.memory import Memory

    defaults = ServerDefaults.from_options(
        cwd=cwd, session=session, resource=resource, all_resources=all_resources, use_cwd=not http
    )
    with _close_in_time(Memory.open(selected_place())) as memory:
        pool = SessionPool(memory)
        server = build_server(pool, pool.resolve_defaults(defaults))
        if not no_dreams:
            memory.start_upkeep()
        if http:
            _serve_http(server, pool, host, port, public_url)
        else:
            _serve_stdio(server, pool)


def _check_installed() -> None:
    if any(find_spec(name) is None for name in ("mcp", "uvicorn")):
        raise InvalidInput(field="mcp", expected='the mcp extra: pip install "inmind[mcp]"')


@contextmanager
def _close_in_time(memory: Memory) -> Generator[Memory]:
    """Close the memory, but exit after SHUTDOWN_SECONDS: a dream may be waiting for its model."""
    try:
        yield memory
    finally:
        timer = _exit_after(SHUTDOWN_SECONDS)
        try:
            memory.close()
        finally:
            timer.cancel()


def _serve_stdio(server: Server[Any], pool: SessionPool) -> None:
    import anyio

    from inmind.apps.mcp.stdio import serve_stdio

    if sys.stdin.isatty():
        print("inmind: waiting for an MCP client on stdin; Ctrl-C stops", file=sys.stderr, flush=True)
    anyio.run(serve_stdio, server, partial(_wait_for_shutdown, pool))


def _serve_http(server: Server[Any], pool: SessionPool, host: str, port: int, public_url: str | None) -> None:
    import anyio

    from inmind.apps.mcp.http import PATH, open_listener, serve_http
    from inmind.apps.mcp.http_auth import ENV_VARIABLE, ServerAddress, is_loopback, load_token, parse_public_url

    if not is_loopback(host) and not os.environ.get(ENV_VARIABLE):
        raise InvalidInput(field="--host", value=host, expected=f"a loopback address, or a token in ${ENV_VARIABLE}")
    public = None if public_url is None else parse_public_url(public_url)
    token = load_token(pool.memory.home, os.environ)
    with open_listener(host, port) as listener:
        bound_host, bound_port = listener.getsockname()[:2]
        address = ServerAddress(host=bound_host, port=bound_port, public=public)
        message = f"inmind: {address.url}{PATH}, with the token in {token.source}"
        print(printable(message), file=sys.stderr, flush=True)
        anyio.run(serve_http, server, listener, address, token, partial(_wait_for_shutdown, pool))


async def _wait_for_shutdown(pool: SessionPool) -> None:
    """Return after SIGINT or SIGTERM, when running calls are answered."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(aiter(signals))
    _exit_after(SHUTDOWN_SECONDS)
    await pool.shutdown(FINISH_SECONDS)


def _exit_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
    return timer
