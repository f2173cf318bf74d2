"""MCP clients: the official one, in process and over both transports, and a bare socket."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp_types import CallToolResult, ListRootsResult, Root, TextContent
from terminal import command

from inmind import Memory
from inmind.apps.mcp.http_auth import ENV_VARIABLE, FILE_NAME
from inmind.apps.mcp.server import build_server
from inmind.apps.mcp.sessions import Project, ServerDefaults, SessionPool

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
"""The protocol of 2026-07-28, and the one before it."""

# Short timeouts, so that tests of slow clients are fast.
SHORT_TIMEOUTS = (
    "import inmind.apps.mcp.http_auth as guard, inmind.apps.mcp.http as http;"
    "guard.BODY_SECONDS, http.HEADER_SECONDS = 1.5, 1;"
)


_TRUST = ssl.create_default_context()
"""Created once: loading the system's certificates is slow."""


def a_server(memory: Memory, folder: Path, **defaults: Any) -> Server[Any]:
    pool = SessionPool(memory)
    return build_server(pool, pool.resolve_defaults(ServerDefaults(project=Project.at(folder.resolve()), **defaults)))


def text_of(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


async def call_tool(client: Client, tool: str, /, **arguments: Any) -> CallToolResult:
    """Call a tool and check that it succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result


def roots(*folders: Path) -> Any:
    async def answer(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=folder.as_uri()) for folder in folders])  # pyright: ignore[reportArgumentType] -- it takes texts

    return answer


def over_stdio(home: Path, folder: Path, *arguments: str, mode: Mode = "auto", **client: Any) -> Client:
    """A client whose server is a child process that works in a folder."""
    program, *rest = command("mcp", *arguments, home=home)
    parameters = StdioServerParameters(command=program, args=rest, cwd=folder)
    return Client(stdio_client(parameters), mode=mode, **client)


@dataclass(frozen=True)
class HttpServer:
    """A server over HTTP, in a separate process."""

    process: subprocess.Popen[str]
    home: Path
    port: int
    token: str
    startup_output: str
    """Its output at start."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @asynccontextmanager
    async def client(self, *, mode: Mode = "auto", project: str = "", **client: Any) -> AsyncGenerator[Client]:
        url = f"{self.url}?project={quote(project)}" if project else self.url
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, verify=_TRUST) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, **client) as connected,
        ):
            yield connected

    def raw(self, sent: bytes, *, seconds: float = 20.0, finish: bool = False) -> bytes:
        """Send bytes and return the reply until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(sent)
                if finish:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the server stopped reading; its reply can still be read
            received = b""
            try:
                while more := connection.recv(65_536):
                    received += more
            except ConnectionResetError:
                pass
            return received

    def request_status(
        self, method: str, path: str, headers: Mapping[str, str] | list[tuple[str, str]], body: bytes = b""
    ) -> int:
        """Return the status of one request with exactly these headers."""
        pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
        return status_of(self.raw(head.encode("latin-1") + body))


def status_of(answer: bytes) -> int:
    status_line = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(status_line[1]) if status_line else 0


@contextmanager
def over_http(
    home: Path, folder: Path, *arguments: str, token: str = "", before: str = SHORT_TIMEOUTS
) -> Generator[HttpServer]:
    """Run a server for any number of clients; stop it at the end of the block."""
    program, option, code, *rest = command("mcp", "--http", "--port", "0", *arguments, home=home)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INMIND_")}
    process = subprocess.Popen(
        [program, option, before + code, *rest],
        cwd=folder,
        env=environment | ({ENV_VARIABLE: token} if token else {}),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        lines = list[str]()
        while (match := re.search(r"http://[^ ]+?:(\d+)/mcp", "".join(lines[-1:]))) is None:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        startup_output = "".join(lines)
        used_token = token or (home / FILE_NAME).read_text().strip()
        yield HttpServer(process, home, int(match[1]), used_token, startup_output)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
