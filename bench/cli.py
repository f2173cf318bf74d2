"""What a person or a program waits for at the doors: each command in a process of its own, from start to end."""

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
from bench.timing import Contender, Race, spoken
from inmind import Memory

MOST_FOR_HELP = 0.150
MOST_FOR_NOTE = 0.400

_SAMPLES = 15
_SESSIONS = 20
_COMMAND = Path(sys.executable).with_name("inmind")
_BARE = "an interpreter that does nothing"
_HELP = "inmind --help"
_NOTE = "inmind note, in a home that is there"
_LIST = f"inmind sessions, of {_SESSIONS}"
_MCP = "inmind mcp, until its first answer"
_BARS = {_HELP: MOST_FOR_HELP, _NOTE: MOST_FOR_NOTE}


def run() -> list[Table]:
    race = Race()
    with TemporaryDirectory() as home:
        _fill(Path(home))
        environment = _environment(home)
        facts = (f"Fact {number}." for number in count(1))
        course = {
            _BARE: Contender(lambda: _process(environment, sys.executable, "-c", "pass")),
            _HELP: Contender(lambda: _process(environment, _COMMAND, "--help")),
            _NOTE: Contender(lambda: _process(environment, _COMMAND, "note", next(facts), "--resource", "ada")),
            _LIST: Contender(lambda: _process(environment, _COMMAND, "sessions")),
        }
        race.run(course, repetitions=1)  # compiles everything once, as installing a package does
        _first_answer(environment)
        race.samples.clear()
        for _ in range(_SAMPLES):
            race.run(course, repetitions=1)
            race.enter(_MCP, _first_answer(environment))
    return [
        Table(
            "The command line, in fresh processes",
            [_row(race, what) for what in (*course, _MCP)],
            (
                f"Medians of {_SAMPLES}, taking turns; in brackets, how many interpreters that do nothing would have "
                "come and gone meanwhile. The bars are meant for an idle machine; on a busy one the ratios hold. A "
                "note is durable when its process ends.",
            ),
        )
    ]


def _row(race: Race, what: str) -> Row:
    took, ratio, most = race.median(what), race.ratio(what, _BARE), _BARS.get(what)
    return Row(
        what=what,
        measured=spoken(took) if what == _BARE else f"{spoken(took)} ({ratio:.1f})",
        bar=f"<= {spoken(most)}" if most else "",
        met=took <= most if most else None,
        figures={"seconds": took, "ratio": ratio},
    )


def _fill(home: Path) -> None:
    with Memory.open(home, embedder=None) as memory:
        for number in range(_SESSIONS):
            session = memory.session(f"talk-{number}", resource="ada")
            session.add([{"role": "user", "content": f"What did we say of order {number}?"}])
            session.prepare(system="You look after orders.")
            session.record({"role": "assistant", "content": "That it is packed."})


def _environment(home: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**ours, "INMIND_HOME": home}


def _process(environment: Mapping[str, str], *command: str | Path) -> None:
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


def _first_answer(environment: Mapping[str, str]) -> float:
    """Seconds until a client that greets a new server over stdio is greeted back; its end is not waited for in them."""
    begun = perf_counter()
    with subprocess.Popen(
        [_COMMAND, "mcp"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(f"{json.dumps(_GREETING)}\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        took = perf_counter() - begun
        server.stdin.close()
    assert answer["result"]["serverInfo"]["name"] == "inmind", answer
    return took


_GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
