"""How many turns a second any number of processes take through one database: prepare, and record of the reply.

Two kinds of hosts. One holds its sessions open. The other is stateless: each turn opens its session anew, and the next
turn of that session is taken by another process. Sessions have had ten turns, each belongs to a resource of its own,
and no two processes are at the same one at the same time.
"""

from __future__ import annotations

import gc
from itertools import islice
from time import perf_counter
from typing import Any

from bench.postgres.crowd import Together, crowd
from bench.postgres.ground import ground, sized
from bench.table import Row, Table
from bench.talk import Message, exchanges
from bench.timing import Race, spoken
from inmind import Memory, Session

PROCESSES = (1, 2, 4, 8)
SESSIONS = sized(240, 24)
SECONDS = sized(8.0, 1.5)
BEFORE = 10
"""Turns that each session has had."""

_TURNS = [message for exchange in islice(exchanges(asked=200, answered=800), 2_000) for message in exchange]

KINDS = {
    "held": "sessions held open",
    "anew": "stateless: opened anew, by another process each time",
}


def run() -> list[Table]:
    rows: list[Row] = []
    with ground() as there:
        for kind, what in KINDS.items():
            alone = 0.0
            for processes in PROCESSES:
                race, turns = Race(), 0
                for taken in crowd(processes, _host, there.tenant, kind, processes):
                    turns += len(taken)
                    for seconds in taken:
                        race.enter("turn", seconds)
                rate = turns / SECONDS
                alone = alone or rate
                shares = f"a turn {spoken(race.median('turn'))} p50, {spoken(race.p99('turn'))} p99"
                rows.append(
                    Row(
                        what=f"{what}, {processes} process{'es' if processes > 1 else ''}",
                        measured=f"{rate:,.0f} a second, {rate / alone:.2f}x one process ({shares})",
                        figures={
                            "rate": rate,
                            "against_one": rate / alone,
                            "p50": race.median("turn"),
                            "p99": race.p99("turn"),
                        },
                    )
                )
        said = there.said
    title = f"turns a second through one database: prepare and record, {SESSIONS} sessions, {SECONDS:g} s each"
    note = (
        f"A turn: {BEFORE} turns and more of 1 KB in the host's list, prepare with a message more, record of a reply; "
        "two commits at least. The server and all processes share this machine's cores, so that is where it levels off."
    )
    return [Table(title, rows, [note, said])]


def _host(number: int, together: Together, url: str, kind: str, processes: int) -> list[float]:
    """Seconds of each turn that it has taken."""
    with Memory.open(url, embedder=None) as memory:
        held: dict[int, Session] = {}

        def session(place: int) -> Session:
            if kind == "anew":
                return _opened(memory, kind, processes, place)
            if place not in held:
                held[place] = _opened(memory, kind, processes, place)
            return held[place]

        for place in range(number, SESSIONS, processes):
            _turn(session(place), 0)
        gc.collect()
        gc.disable()
        together.wait()
        taken: list[float] = []
        end = perf_counter() + SECONDS
        step = 0
        while (begun := perf_counter()) < end:
            passed, block = divmod(step, SESSIONS // processes)
            shifted = number if kind == "held" else (number + passed) % processes
            _turn(session(block * processes + shifted), passed + 1)
            taken.append(perf_counter() - begun)
            step += 1
        together.wait()
        return taken


def _opened(memory: Memory, kind: str, processes: int, place: int) -> Session:
    return memory.session(f"{kind} {processes} {place}", resource=f"{kind} {processes} {place}", window=1_000_000)


def _turn(session: Session, passed: int) -> None:
    asked = 2 * (BEFORE + passed)
    session.prepare(_TURNS[: asked + 1])
    session.record(_reply(_TURNS[asked + 1]))


def _reply(said: Message) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
    }
