"""Time of a memory tool over MCP, against the library call and an echo tool.

The echo tool uses the same kind of pipe. `python -m bench.mcp` is the server of the echo tool.
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
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory
from inmind.apps.mcp.server import build_server, mcp_tools
from inmind.apps.mcp.sessions import Project, ServerDefaults, SessionPool
from inmind.apps.mcp.stdio import serve_stdio

MAX_LIBRARY_RATIO = 1.5
REPETITIONS = 150
NOTES = 200
"""Notes in memory before the search."""

_SESSION = {"session": "bench"}


def run() -> list[Table]:
    timings = _time_calls()
    return [
        Table(
            "one MCP tool call over stdio, against the library call and the transport",
            [_against_library(timings, what) for what in ("note", "search")],
            (
                "Transport: an echo tool with the schemas of a note, in a separate server, over the same kind of pipe; "
                "the client validates its results as it does ours. The time of a call minus the transport is compared "
                "with the library call: session.note, session.search. In process: the official client and the server "
                "in one process, without a pipe. Medians, interleaved.",
            ),
        )
    ]


def _against_library(timings: Timings, what: str) -> Row:
    library, stdio, transport = (timings.median(name) for name in (what, f"{what}: stdio", "echo"))
    ratio = max(0.0, stdio - transport) / library
    parts = f"{format_duration(stdio)} - {format_duration(transport)} / {format_duration(library)}"
    in_process = f"in process {format_duration(timings.median(f'{what}: in process'))}"
    return Row(
        what=what,
        measured=f"{ratio:.2f}x ({parts}; {in_process})",
        bar=f"at most {MAX_LIBRARY_RATIO:g}x",
        met=ratio <= MAX_LIBRARY_RATIO,
        figures={
            "ratio": ratio,
            "library": library,
            "stdio": stdio,
            "transport": transport,
            "in_process": timings.median(f"{what}: in process"),
        },
    )


def _time_calls() -> Timings:
    timings = Timings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        portal = stack.enter_context(start_blocking_portal())
        memory = stack.enter_context(Memory.open(folder / "library"))
        served_memory = stack.enter_context(Memory.open(folder / "in-process"))
        session = memory.session("bench", resource="bench")
        server = build_server(SessionPool(served_memory), ServerDefaults(project=Project.at(folder)))
        in_process_client = stack.enter_context(_connect(portal, Client(server)))
        command = ("-c", "from inmind.apps.cli import main; main()", "--home", str(folder / "stdio"), "mcp")
        piped_client = stack.enter_context(_connect(portal, Client(stdio_client(_server_parameters(*command)))))
        echo_client = stack.enter_context(_connect(portal, Client(stdio_client(_server_parameters("-m", "bench.mcp")))))
        numbers = count()

        def note() -> str:
            return f"Note {next(numbers)}: the gate on platform nine opens at half past six"

        def call(client: Client, tool: str, **arguments: Any) -> None:
            result = portal.call(partial(client.call_tool, tool, arguments))
            assert not result.is_error, result

        for _ in range(NOTES):
            session.note(note())
            call(in_process_client, "working_memory_note", note=note(), **_SESSION)
            call(piped_client, "working_memory_note", note=note(), **_SESSION)
        search_arguments = {"query": "when does the gate open", **_SESSION}
        timings.run(
            {
                "note": TimedCall(lambda: session.note(note())),
                "note: in process": TimedCall(
                    lambda: call(in_process_client, "working_memory_note", note=note(), **_SESSION)
                ),
                "note: stdio": TimedCall(lambda: call(piped_client, "working_memory_note", note=note(), **_SESSION)),
                "echo": TimedCall(lambda: call(echo_client, "echo", note=note(), **_SESSION)),
                "search": TimedCall(lambda: session.search("when does the gate open")),
                "search: in process": TimedCall(lambda: call(in_process_client, "memory_search", **search_arguments)),
                "search: stdio": TimedCall(lambda: call(piped_client, "memory_search", **search_arguments)),
            },
            repetitions=REPETITIONS,
        )
    return timings


@contextmanager
def _connect(portal: BlockingPortal, client: Client) -> Generator[Client]:
    with portal.wrap_async_context_manager(client) as connected:
        yield connected


def _server_parameters(*arguments: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=list(arguments), env=dict(os.environ))


async def _list_tools(_: ServerRequestContext[Any, Any], __: PaginatedRequestParams | None) -> ListToolsResult:
    note_tool = next(
        tool for tool in mcp_tools(tracked=True, all_resources=False) if tool.name == "working_memory_note"
    )
    return ListToolsResult(tools=[note_tool.model_copy(update={"name": "echo"})])


async def _echo(_: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
    text = str(params.arguments)
    content = {"id": text, "at": text}
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


if __name__ == "__main__":
    anyio.run(serve_stdio, Server[Any]("echo", on_list_tools=_list_tools, on_call_tool=_echo), anyio.sleep_forever)
