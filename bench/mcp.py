"""What a memory tool costs over MCP, beside the library call and beside a tool that only echoes over the same pipe.

`python -m bench.mcp` is that tool's server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server import Server, ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent

from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind import Memory
from inmind.apps.mcp import tools
from inmind.apps.mcp.project import Project, ServerDefaults
from inmind.apps.mcp.server import build_server
from inmind.apps.mcp.session_pool import SessionPool
from inmind.apps.mcp.stdio import serve_stdio

MOST_AGAINST_LIBRARY = 1.5
REPETITIONS = 150
NOTES = 200
"""That are there to be found."""

_SESSION = {"session": "bench"}


def run() -> list[Table]:
    race = _raced()
    return [
        Table(
            "one MCP tool call over stdio, against the library call and the transport",
            [_against_library(race, what) for what in ("note", "search")],
            (
                "Transport: a tool with the schemas of a note that only echoes, in a server of its own, over the same "
                "kind of pipe; the client checks its answers as it does ours. What is left of a call without it is "
                "compared with the library's: session.note, session.search. In process: the official client and the "
                "server in one, without a pipe. Medians, taking turns.",
            ),
        )
    ]


def _against_library(race: Race, what: str) -> Row:
    library, stdio, transport = (race.median(one) for one in (what, f"{what}: stdio", "echo"))
    ratio = max(0.0, stdio - transport) / library
    parts = f"{spoken(stdio)} - {spoken(transport)} / {spoken(library)}"
    beside = f"in process {spoken(race.median(f'{what}: in process'))}"
    return Row(
        what=what,
        measured=f"{ratio:.2f}x ({parts}; {beside})",
        bar=f"at most {MOST_AGAINST_LIBRARY:g}x",
        met=ratio <= MOST_AGAINST_LIBRARY,
        figures={
            "ratio": ratio,
            "library": library,
            "stdio": stdio,
            "transport": transport,
            "in_process": race.median(f"{what}: in process"),
        },
    )


def _raced() -> Race:
    race = Race()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        portal = stack.enter_context(start_blocking_portal())
        memory = stack.enter_context(Memory.open(folder / "library"))
        inner = stack.enter_context(Memory.open(folder / "in-process"))
        session = memory.session("bench", resource="bench")
        served = build_server(SessionPool(inner), ServerDefaults(project=Project.at(folder)))
        within = stack.enter_context(_connected(portal, Client(served)))
        home = ("-c", "from inmind.apps.cli import main; main()", "--home", str(folder / "stdio"), "mcp")
        across = stack.enter_context(_connected(portal, Client(stdio_client(_program(*home)))))
        echoing = stack.enter_context(_connected(portal, Client(stdio_client(_program("-m", "bench.mcp")))))
        numbers = count()

        def note() -> str:
            return f"Note {next(numbers)}: the gate on platform nine opens at half past six"

        def call(client: Client, tool: str, **arguments: Any) -> None:
            result = portal.call(partial(client.call_tool, tool, arguments))
            assert not result.is_error, result

        for _ in range(NOTES):
            session.note(note())
            call(within, "working_memory_note", note=note(), **_SESSION)
            call(across, "working_memory_note", note=note(), **_SESSION)
        asked = {"query": "when does the gate open", **_SESSION}
        race.run(
            {
                "note": Contender(lambda: session.note(note())),
                "note: in process": Contender(lambda: call(within, "working_memory_note", note=note(), **_SESSION)),
                "note: stdio": Contender(lambda: call(across, "working_memory_note", note=note(), **_SESSION)),
                "echo": Contender(lambda: call(echoing, "echo", note=note(), **_SESSION)),
                "search": Contender(lambda: session.search("when does the gate open")),
                "search: in process": Contender(lambda: call(within, "memory_search", **asked)),
                "search: stdio": Contender(lambda: call(across, "memory_search", **asked)),
            },
            repetitions=REPETITIONS,
        )
    return race


@contextmanager
def _connected(portal: BlockingPortal, client: Client) -> Generator[Client]:
    with portal.wrap_async_context_manager(client) as connected:
        yield connected


def _program(*arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=list(arguments), env=dict(os.environ))


async def _listed(_: ServerRequestContext[Any, Any], __: PaginatedRequestParams | None) -> ListToolsResult:
    noting = next(
        tool for tool in tools.mcp_tools(tracked=True, all_resources=False) if tool.name == "working_memory_note"
    )
    return ListToolsResult(tools=[noting.model_copy(update={"name": "echo"})])


async def _echoed(_: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
    said = str(params.arguments)
    content = {"id": said, "at": said}
    return CallToolResult(content=[TextContent(type="text", text=said)], structured_content=content)


if __name__ == "__main__":
    anyio.run(serve_stdio, Server[Any]("echo", on_list_tools=_listed, on_call_tool=_echoed), anyio.sleep_forever)
