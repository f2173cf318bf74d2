"""Time of each CLI command in a fresh process, from start to exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory

MAX_HELP_SECONDS = 0.150
MAX_NOTE_SECONDS = 0.400

_SAMPLES = 15
_SESSIONS = 20
_COMMAND = Path(sys.executable).with_name("inmind")
_BARE = "an interpreter that does nothing"
_HELP = "inmind --help"
_NOTE = "inmind note, in an existing home"
_LIST = f"inmind sessions, of {_SESSIONS}"
_MCP = "inmind mcp, until its first response"
_BARS = {_HELP: MAX_HELP_SECONDS, _NOTE: MAX_NOTE_SECONDS}


def run() -> list[Table]:
    timings = Timings()
    with TemporaryDirectory() as home:
        _fill(Path(home))
        environment = _environment(home)
        facts = (f"Fact {number}." for number in count(1))
        timed_calls = {
            _BARE: TimedCall(lambda: _process(environment, sys.executable, "-c", "pass")),
            _HELP: TimedCall(lambda: _process(environment, _COMMAND, "--help")),
            _NOTE: TimedCall(lambda: _process(environment, _COMMAND, "note", next(facts), "--resource", "ada")),
            _LIST: TimedCall(lambda: _process(environment, _COMMAND, "sessions")),
        }
        timings.run(timed_calls, repetitions=1)  # compiles everything once, as installing a package does
        _time_first_response(environment)
        timings.samples.clear()
        for _ in range(_SAMPLES):
            timings.run(timed_calls, repetitions=1)
            timings.add_sample(_MCP, _time_first_response(environment))
    return [
        Table(
            "The command line, in fresh processes",
            [_row(timings, what) for what in (*timed_calls, _MCP)],
            (
                f"Medians of {_SAMPLES}, interleaved; in brackets, multiples of an interpreter that does "
                "nothing. The bars are for an idle machine; on a busy one compare the ratios. A note is durable when "
                "its process ends.",
            ),
        )
    ]


def _row(timings: Timings, what: str) -> Row:
    median, ratio, limit = timings.median(what), timings.ratio(what, _BARE), _BARS.get(what)
    return Row(
        what=what,
        measured=format_duration(median) if what == _BARE else f"{format_duration(median)} ({ratio:.1f})",
        bar=f"<= {format_duration(limit)}" if limit else "",
        met=median <= limit if limit else None,
        figures={"seconds": median, "ratio": ratio},
    )


def _fill(home: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        for number in range(_SESSIONS):
            session = memory.session(f"talk-{number}", resource="ada")
            session.add([{"role": "user", "content": f"What did we say of order {number}?"}])
            session.prepare(system="You look after orders.")
            session.record({"role": "assistant", "content": "That it is packed."})


def _environment(home: str) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**variables, "INMIND_HOME": home}


def _process(environment: Mapping[str, str], *command: str | Path) -> None:
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def _time_first_response(environment: Mapping[str, str]) -> float:
    """Return the seconds until a new stdio server answers `initialize`, without its shutdown."""
    started = perf_counter()
    with subprocess.Popen(
        [_COMMAND, "mcp"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(f"{json.dumps(_INITIALIZE)}\n")
        server.stdin.flush()
        response = json.loads(server.stdout.readline())
        seconds = perf_counter() - started
        server.stdin.close()
    assert response["result"]["serverInfo"]["name"] == "inmind", response
    return seconds


_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
