"""MCP as its clients meet it: the official one, in process and over both transports, and bytes on a bare socket."""

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
from inmind.apps.mcp.project import Project, ServerDefaults
from inmind.apps.mcp.server import build_server
from inmind.apps.mcp.session_pool import SessionPool
from inmind.apps.mcp.token import ENV_VARIABLE, FILE_NAME

Mode = Literal["auto", "legacy"]
MODES: tuple[Mode, ...] = ("auto", "legacy")
"""The protocol of 2026-07-28, and the one before it."""

# Faults that a server outwaits must not take the tests as long as they may take an attacker.
HURRIED = (
    "import inmind.apps.mcp.http_auth as guard, inmind.apps.mcp.http as http;"
    "guard.BODY_SECONDS, http.HEADER_SECONDS = 1.5, 1;"
)


_TRUST = ssl.create_default_context()
"""Made once: fifty clients would each read all that this machine trusts."""


def a_server(memory: Memory, folder: Path, **told: Any) -> Server[Any]:
    keeper = SessionPool(memory)
    return build_server(keeper, keeper.resolve_defaults(ServerDefaults(project=Project.at(folder.resolve()), **told)))


def text_of(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


async def called(client: Client, tool: str, /, **arguments: Any) -> CallToolResult:
    """A call that succeeds."""
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
class Listening:
    """A server over HTTP, in a process of its own."""

    process: subprocess.Popen[str]
    home: Path
    port: int
    token: str
    told: str
    """What it said when it began."""

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
        """What comes back for these bytes, until the server has closed the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(sent)
                if finish:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has heard enough; what it said is there to be read
            came = b""
            try:
                while more := connection.recv(65_536):
                    came += more
            except ConnectionResetError:
                pass
            return came

    def asked(
        self, method: str, path: str, headers: Mapping[str, str] | list[tuple[str, str]], body: bytes = b""
    ) -> int:
        """The status of one request, whose headers are these and no others."""
        pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
        return status_of(self.raw(head.encode("latin-1") + body))


def status_of(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else 0


@contextmanager
def over_http(
    home: Path, folder: Path, *arguments: str, token: str = "", before: str = HURRIED
) -> Generator[Listening]:
    """A server that any number of clients can ask, until the end of the block; then it is told to leave."""
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
        while (found := re.search(r"http://[^ ]+?:(\d+)/mcp", "".join(lines[-1:]))) is None:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        told = "".join(lines)
        kept = token or (home / FILE_NAME).read_text().strip()
        yield Listening(process, home, int(found[1]), kept, told)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
