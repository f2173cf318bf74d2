"""Turns per second (prepare and record) through one database, by number of processes.

There are two kinds of hosts. One keeps its sessions open. The other is stateless: each turn opens its session again, in
another process than the last turn. Each session has ten previous turns and its own resource, and no two processes use a
session at the same time.
"""

from __future__ import annotations

import gc
from itertools import islice
from time import perf_counter, process_time
from typing import Any

from bench.conversations import Message
from bench.postgres.client_processes import Barrier, run_clients
from bench.postgres.dataset import texts
from bench.postgres.server import BenchServer, choose_size, start_server
from bench.table import Row, Table
from bench.timing import Timings, format_duration
from inmind import Memory, Session

PROCESSES = (1, 2, 4, 8)
SESSIONS = choose_size(240, 24)
SECONDS = choose_size(8.0, 1.5)
SIZE_TURNS, SIZE_SESSIONS = choose_size(50, 5), choose_size(20, 4)
TEXT_LENGTHS = (200, 800)
PREVIOUS_TURNS = 10
"""Of each session."""

KINDS = {
    "held": "sessions held open",
    "reopened": "stateless: reopened by another process each time",
}


def run() -> list[Table]:
    with start_server() as server:
        return [_rate_table(server), _size_table(server)]


def _rate_table(server: BenchServer) -> Table:
    rows: list[Row] = []
    cpu_rows: list[Row] = []
    for kind, what in KINDS.items():
        single_rate = 0.0
        for processes in PROCESSES:
            timings, before, hosts = Timings(), server.cpu_seconds, 0.0
            for turn_seconds, host in run_clients(processes, _host, server.tenant, kind, processes):
                hosts += host
                for seconds in turn_seconds:
                    timings.add_sample("turn", seconds)
            p50, p99, rate = timings.median("turn"), timings.p99("turn"), len(timings.samples["turn"]) / SECONDS
            single_rate = single_rate or rate
            times = f", {rate / single_rate:.2f}x one" if processes > 1 else ""
            rows.append(
                Row(
                    what=f"{what}: {processes}",
                    measured=f"{rate:,.0f} a second{times} "
                    f"(a turn {format_duration(p50)} p50, {format_duration(p99)} p99)",
                    figures={"rate": rate, "against_one": rate / single_rate, "p50": p50, "p99": p99},
                )
            )
            if before is not None and server.cpu_seconds is not None and processes == PROCESSES[-1]:
                turns = len(timings.samples["turn"]) + SESSIONS  # each session has had one before
                cpu_rows.append(_cpu_row(kind, hosts / turns, (server.cpu_seconds - before) / turns))
    title = f"turns a second through one database, by processes, {SESSIONS} sessions, {SECONDS:g} s each"
    note = (
        f"A turn: prepare with at least {PREVIOUS_TURNS} turns of 1 KB in the host's list and a new message, "
        "then record. The server and all processes share the cores of one machine, which limits the rate."
    )
    return Table(title, [*rows, *cpu_rows], [note, server.description])


def _cpu_row(kind: str, host: float, server: float) -> Row:
    return Row(
        what=f"  computed for a turn, {KINDS[kind].partition(':')[0]}",
        measured=f"{format_duration(host)} by the host, {format_duration(server)} by the server",
        figures={"host": host, "server": server},
    )


def _size_table(server: BenchServer) -> Table:
    """Bytes stored by a turn: in tables, and in the WAL that goes to backups and standbys."""
    with Memory.open(server.tenant, embedder=None) as memory:
        sessions = [_open_session(memory, "sized", 1, place) for place in range(SIZE_SESSIONS)]
        turns = {session.id: _turns(session.id, SIZE_TURNS + 1) for session in sessions}
        for session in sessions:
            _turn(session, turns[session.id], 0)
            memory.resource(session.resource).search("anything")
        before = server.data_bytes, server.wal_bytes, server.count("events")
        for turn_number in range(1, SIZE_TURNS + 1):
            for session in sessions:
                _turn(session, turns[session.id], turn_number)
        after = server.data_bytes, server.wal_bytes, server.count("events")
        for session in sessions:
            memory.resource(session.resource).search("anything")
        indexed = (server.data_bytes - after[0]) / (SIZE_TURNS * SIZE_SESSIONS)
    journal_bytes, wal_bytes, events = (
        (later - earlier) / (SIZE_TURNS * SIZE_SESSIONS) for earlier, later in zip(before, after, strict=True)
    )
    rows = [
        Row(what="events", measured=f"{events:.1f}", figures={"events": events}),
        Row(what="bytes of text", measured=f"{sum(TEXT_LENGTHS):,}", figures={"said": sum(TEXT_LENGTHS)}),
        Row(
            what="bytes in the journal, with its indexes",
            measured=f"{journal_bytes:,.0f}",
            figures={"kept": journal_bytes},
        ),
        Row(what="bytes of WAL", measured=f"{wal_bytes:,.0f}", figures={"logged": wal_bytes}),
        Row(what="bytes in the index, by words", measured=f"{indexed:,.0f}", figures={"indexed": indexed}),
    ]
    rows += [_hot_update_row(server, table) for table in ("streams", "owners")]
    title = f"bytes stored by one turn, a mean of {SIZE_TURNS} in each of {SIZE_SESSIONS} sessions"
    return Table(title, rows, [server.description])


def _hot_update_row(server: BenchServer, table: str) -> Row:
    statement = "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE schemaname = %s AND relname = %s"
    [(hot, updates)] = server.query(statement, server.schema, table)
    share = hot / max(1, updates)
    return Row(what=f"updates of {table} in their place (HOT)", measured=f"{share:.0%}", figures={"share": share})


def _host(number: int, barrier: Barrier, url: str, kind: str, processes: int) -> tuple[list[float], float]:
    """Return the seconds of each turn, and the CPU seconds of the process."""
    with Memory.open(url, embedder=None) as memory:
        open_sessions: dict[int, Session] = {}
        turns = _turns("any", 2_000)

        def session(place: int) -> Session:
            if kind == "reopened":
                return _open_session(memory, kind, processes, place)
            if place not in open_sessions:
                open_sessions[place] = _open_session(memory, kind, processes, place)
            return open_sessions[place]

        started = process_time()
        for place in range(number, SESSIONS, processes):
            _turn(session(place), turns, 0)
        gc.collect()
        gc.disable()
        barrier.wait()
        turn_seconds: list[float] = []
        end = perf_counter() + SECONDS
        step = 0
        while (started := perf_counter()) < end:
            turn_number, block = divmod(step, SESSIONS // processes)
            shifted = number if kind == "held" else (number + turn_number) % processes
            _turn(session(block * processes + shifted), turns, turn_number + 1)
            turn_seconds.append(perf_counter() - started)
            step += 1
        barrier.wait()
        return turn_seconds, process_time() - started


def _open_session(memory: Memory, kind: str, processes: int, place: int) -> Session:
    return memory.session(f"{kind} {processes} {place}", resource=f"{kind} {processes} {place}", window=1_000_000)


def _turns(resource: str, number: int) -> list[Message]:
    contents = islice(texts(resource, *TEXT_LENGTHS), 2 * (PREVIOUS_TURNS + number))
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(contents)]


def _turn(session: Session, turns: list[Message], turn_number: int) -> None:
    position = 2 * (PREVIOUS_TURNS + turn_number)
    session.prepare(turns[: position + 1])
    session.record(_reply(turns[position + 1]))


def _reply(message: Message) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
    }
