"""The MCP server over stdio: stray output, invalid input and shutdown."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_client import MODES, Mode, call_tool, over_stdio, roots, text_of
from terminal import command, run_in_process

from inmind import Memory
from inmind.apps.mcp.sessions import folder_project_name
from inmind.apps.mcp.stdio import MAX_MESSAGE_BYTES, find_id, split_lines

CALLS = 100

# A library that prints, and slow calls, so that some are pending when the signal comes.
NOISY_AND_SLOW = """
import time
from inmind.session.session import Session
from inmind.apps.cli import main
fast = Session.call_tool
def slow(*given, **named):
    print("a stray line")
    time.sleep(0.1)
    return fast(*given, **named)
Session.call_tool = slow
main()
"""

# Prints the number of concurrent calls, with a limit of two.
COUNTING = """
import os, time
import inmind.apps.mcp.stdio as stdio
from inmind.session.session import Session
from inmind.apps.cli import main
stdio.MAX_PENDING_BYTES = 2 * stdio.MIN_REQUEST_BYTES
fast, running = Session.call_tool, []
def counted(*given, **named):
    running.append(1)
    os.write(2, b"running %d\\n" % len(running))  # one write, so that lines do not mix
    time.sleep(0.05)
    running.pop()
    return fast(*given, **named)
Session.call_tool = counted
main()
"""

# A dream whose model does not answer.
DREAMING = """
import sys, time
import inmind.apps.mcp.command as command
from inmind.jobs.upkeep import UpkeepScheduler
from inmind.apps.cli import main
command.SHUTDOWN_SECONDS = 1.0
begin = UpkeepScheduler.start
def round(self, seconds):
    print("a round begins", file=sys.stderr, flush=True)
    time.sleep(60)
UpkeepScheduler.run = round
UpkeepScheduler.start = lambda self, every: begin(self, 0.05)
main()
"""


@pytest.mark.embedded
@pytest.mark.spec("I3")
@pytest.mark.parametrize("mode", MODES)
def test_an_agent_works_over_a_pipe(home: Path, tmp_path: Path, mode: Mode) -> None:
    """A client of the older protocol reports its folder; the newer protocol cannot."""
    client_folder = tmp_path / "elsewhere"

    async def work() -> None:
        async with over_stdio(home, tmp_path, mode=mode, list_roots_callback=roots(client_folder)) as client:
            await call_tool(client, "working_memory_note", note="Ada prefers tabs")
            await call_tool(client, "memory_read", path="overview.md")
            await call_tool(client, "memory_write", path="overview.md", text="# Mine\n- tabs\n")
            results = await asyncio.gather(*(call_tool(client, "memory_search", query="tabs") for _ in range(20)))
            assert all("Ada prefers tabs" in text_of(one) for one in results)
            assert "# Mine\n- tabs" in text_of(await call_tool(client, "working_memory_show"))

    asyncio.run(work())
    with Memory.open(home) as memory:
        assert [info.id for info in memory.sessions()] == [
            folder_project_name(client_folder if mode == "legacy" else tmp_path)
        ]


@pytest.mark.embedded
@pytest.mark.spec("C08", "I3")
def test_on_sigterm_all_calls_are_answered_and_acknowledged_notes_are_stored(home: Path, tmp_path: Path) -> None:
    process = start_server(home, tmp_path, NOISY_AND_SLOW)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    send(process, "initialize", 0, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": NAME})
    lines = [process.stdout.readline()]
    send(process, "notifications/initialized")
    for number in range(1, CALLS + 1):
        send(process, "tools/call", number, {"name": "working_memory_note", "arguments": {"note": f"note-{number}-"}})
    lines.append(process.stdout.readline())
    since = time.monotonic()
    process.send_signal(signal.SIGTERM)
    lines += process.stdout.readlines()
    code = process.wait(timeout=20)  # while stdin is open
    assert time.monotonic() - since < 5
    assert code == 0
    log = process.stderr.read()
    process.communicate()
    answers = {answer["id"]: answer for answer in map(json.loads, lines)}
    assert len(answers) == len(lines)
    assert set(answers) == set(range(CALLS + 1))
    rejected = {
        number for number, answer in answers.items() if answer.get("result", {}).get("isError", "error" in answer)
    }
    assert 0 < len(rejected) < CALLS
    assert all("closed" in json.dumps(answers[number]).lower() for number in rejected)
    assert "a stray line" in log
    assert not (home / "inmind.db-wal").exists()
    with Memory.open(home) as memory:
        (resource,) = memory.resources()
        page = memory.resource(resource).state.documents.text("memory/scratch.md")
    stored = {number for number in range(1, CALLS + 1) if f"note-{number}-" in page}
    assert stored == set(range(1, CALLS + 1)) - rejected


@pytest.mark.exhaustive
@pytest.mark.embedded
def test_shutdown_does_not_wait_for_a_client_that_keeps_sending(home: Path, tmp_path: Path) -> None:
    process = start_server(home, tmp_path, "from inmind.apps.cli import main; main()")
    assert process.stdin is not None
    assert process.stdout is not None
    send(process, "initialize", 0, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": NAME})
    process.stdout.readline()
    send(process, "notifications/initialized")
    sent: list[int] = []

    def keep_sending() -> None:
        with suppress(BrokenPipeError):
            for number in range(1, 1_000_000):
                send(process, "ping", number)
                sent.append(number)

    sender = threading.Thread(target=keep_sending)
    sender.start()
    lines = [process.stdout.readline()]
    process.send_signal(signal.SIGTERM)
    lines += process.stdout.readlines()
    assert process.wait(timeout=20) == 0
    sender.join()
    with suppress(BrokenPipeError):
        process.communicate()
    answered = sorted(json.loads(line)["id"] for line in lines)
    assert answered == list(range(1, len(answered) + 1)), "a received request was not answered"
    assert len(answered) < len(sent), "the server waited until all was sent"


@pytest.mark.embedded
@pytest.mark.spec("N63")
def test_invalid_messages_get_an_error_and_the_server_exits_at_eof(home: Path, tmp_path: Path) -> None:
    """Invalid JSON, a message over the size limit, and an unterminated last line."""
    call = (
        '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "x", "arguments": {"id": 3, "y": %s}}}'
    )
    broken = {
        7: call % (7, f'"{"x" * MAX_MESSAGE_BYTES}"'),
        8: call % (8, "[" * 5_000 + "]" * 5_000),
        "nine": call % ('"nine"', '"\\ud800"'),
        10: '{"id": 10, "method": 5, "jsonrpc": "2.0"}',
    }
    nameless = ["\udcff\udcfe not json", "{}", "[]", f"[{line_of('ping', 11).strip()}]", "[" * 100_000]
    process = start_server(home, tmp_path, NOISY_AND_SLOW)
    begin = line_of("initialize", 0, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": NAME})
    sent = [begin.strip(), *broken.values(), "", *nameless, line_of("ping", 1).strip(), '{"jsonrpc"']
    rest, log = process.communicate("\n".join(sent), timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in log
    answers = [json.loads(line) for line in rest.splitlines()]
    assert [one["id"] for one in answers if "result" in one] == [0, 1]
    errors = [(one["id"], one["error"]["code"]) for one in answers if "error" in one]
    assert errors[:4] == [(7, -32700), (8, -32700), ("nine", -32700), (10, -32600)]
    assert errors[4:] == [(None, code) for code in (-32700, -32600, -32600, -32600, -32700, -32700)]
    assert log.count("inmind: invalid message: ") == len(errors)


@pytest.mark.exhaustive
@pytest.mark.embedded
@pytest.mark.spec("C08")
def test_a_client_that_exits_before_its_answers_is_no_failure(home: Path, tmp_path: Path) -> None:
    process = start_server(home, tmp_path, NOISY_AND_SLOW)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    send(process, "initialize", 0, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": NAME})
    process.stdout.readline()
    for number in range(1, 31):
        send(process, "tools/call", number, {"name": "working_memory_note", "arguments": {"note": f"note {number}"}})
    process.stdout.close()
    assert process.wait(timeout=20) == 0  # while stdin is open
    assert "Traceback" not in process.stderr.read()
    process.stdin.close()
    process.stderr.close()


@pytest.mark.exhaustive
@pytest.mark.embedded
def test_pending_requests_limit_how_many_are_read(home: Path, tmp_path: Path) -> None:
    process = start_server(home, tmp_path, COUNTING)
    calls = [line_of("tools/call", n, {"name": "working_memory_note", "arguments": {"note": "x"}}) for n in range(1, 9)]
    begin = line_of("initialize", 0, {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": NAME})
    cancelled = line_of("notifications/cancelled", params={"requestId": 1})
    rest, log = process.communicate("".join([begin, calls[0], cancelled, *calls[1:]]), timeout=30)
    answered = {json.loads(line)["id"] for line in rest.splitlines()}
    assert answered >= {0, *range(2, 9)}
    running = [int(line.split()[1]) for line in log.splitlines() if line.startswith("running ")]
    assert 2 <= max(running) <= 3  # the cancelled call continues next to two others


@pytest.mark.embedded
@pytest.mark.parametrize("options", [(), pytest.param(("--no-dreams",), marks=pytest.mark.exhaustive)])
def test_the_server_dreams_in_the_background_and_exits_without_waiting(
    home: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    process = start_server(home, tmp_path, DREAMING, *options)
    assert process.stderr is not None
    assert process.stdin is not None
    if options:
        send(process, "ping", 0)
    else:
        assert process.stderr.readline() == "a round begins\n"
    since = time.monotonic()
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - since < 10
    assert log == ""


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\id1 methodrsul', max_size=60).map(str.encode))
def test_find_id_accepts_any_bytes(line: bytes) -> None:
    request_id = find_id(line)
    assert (
        request_id is None
        or str(request_id) in line.decode(errors="replace").replace("\\", "")
        or isinstance(request_id, str)
    )


@given(st.integers() | st.text(max_size=50), st.booleans(), st.integers(0, 3))
def test_find_id_finds_ids_of_requests_but_not_of_answers(id: int | str, answers: bool, place: int) -> None:
    fields: list[tuple[str, Any]] = [
        ("jsonrpc", "2.0"),
        ("params", {"id": 99, "x": ["id", {"id": 98}]}),
        ("y", '"id": 97'),
    ]
    fields.insert(place, ("id", id))
    fields.insert(0, ("result", {}) if answers else ("method", "id"))
    line = json.dumps(dict(fields)).encode()
    assert find_id(line) == (None if answers else id)


@pytest.mark.embedded
@pytest.mark.spec("I3", "J3")
def test_an_invalid_home_is_reported_in_one_line_on_stderr(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    not_a_folder = run_in_process("mcp", home=tmp_path / "file")
    assert (not_a_folder.exit_code, not_a_folder.stdout) == (5, "")
    assert not_a_folder.stderr.startswith("inmind: UNSAFE_STORAGE: ")
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[dream]\nenabeld = false\n")
    misspelt = run_in_process("mcp", home=home)
    assert (misspelt.exit_code, misspelt.stdout) == (2, "")
    assert "did you mean dream.enabled?" in misspelt.stderr
    assert [result.stderr.count("\n") for result in (not_a_folder, misspelt)] == [1, 1]


@pytest.mark.embedded
def test_without_the_mcp_extra_the_error_names_the_package(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inmind.apps.mcp.command.find_spec", lambda name: None if name == "mcp" else name)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    result = run_in_process("mcp", home=home)
    assert result.exit_code == 2
    assert 'pip install "inmind[mcp]"' in result.stderr
    assert not home.exists()


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 7))
def test_lines_are_split_the_same_for_any_chunk_size(lines: list[bytes], size: int) -> None:
    sent = b"".join(line + b"\n" for line in lines)

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(sent), size):
            yield sent[at : at + size]

    async def split() -> list[bytes]:
        return [line async for line in split_lines(chunks())]

    assert asyncio.run(split()) == lines


NAME = {"name": "raw", "version": "1"}


def start_server(home: Path, folder: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    program, option, _, *rest = command("mcp", *arguments, home=home)
    return subprocess.Popen(
        [program, option, code, *rest],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )


def line_of(method: str, id: int | None = None, params: dict[str, Any] | None = None) -> str:
    numbered = {} if id is None else {"id": id}
    return json.dumps({"jsonrpc": "2.0", **numbered, "method": method, "params": params or {}}) + "\n"


def send(
    process: subprocess.Popen[str], method: str, id: int | None = None, params: dict[str, Any] | None = None
) -> None:
    assert process.stdin is not None
    process.stdin.write(line_of(method, id, params))
    process.stdin.flush()
