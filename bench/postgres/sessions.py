"""How many turns a second any number of processes take through one database: prepare, and record of the reply.

Two kinds of hosts. One holds its sessions open. The other is stateless: each turn opens its session anew, and the next
turn of that session is taken by another process. Sessions have had ten turns, each belongs to a resource of its own,
and no two processes are at the same one at the same time.
"""

from __future__ import annotations

import gc
from itertools import islice
from time import perf_counter, process_time
from typing import Any

from bench.conversations import Message
from bench.postgres.client_processes import Together, crowd
from bench.postgres.dataset import said
from bench.postgres.server import Ground, ground, sized
from bench.table import Row, Table
from bench.timing import Race, spoken
from inmind import Memory, Session

PROCESSES = (1, 2, 4, 8)
SESSIONS = sized(240, 24)
SECONDS = sized(8.0, 1.5)
WEIGHED, SPREAD = sized(50, 5), sized(20, 4)
LENGTHS = (200, 800)
BEFORE = 10
"""Turns that each session has had."""

KINDS = {
    "held": "sessions held open",
    "anew": "stateless: opened anew, by another process each time",
}


def run() -> list[Table]:
    with ground() as there:
        return [_taken(there), _weighed(there)]


def _taken(there: Ground) -> Table:
    rows: list[Row] = []
    computed: list[Row] = []
    for kind, what in KINDS.items():
        alone = 0.0
        for processes in PROCESSES:
            race, before, hosts = Race(), there.spent, 0.0
            for taken, host in crowd(processes, _host, there.tenant, kind, processes):
                hosts += host
                for seconds in taken:
                    race.enter("turn", seconds)
            p50, p99, rate = race.median("turn"), race.p99("turn"), len(race.samples["turn"]) / SECONDS
            alone = alone or rate
            times = f", {rate / alone:.2f}x one" if processes > 1 else ""
            rows.append(
                Row(
                    what=f"{what}: {processes}",
                    measured=f"{rate:,.0f} a second{times} (a turn {spoken(p50)} p50, {spoken(p99)} p99)",
                    figures={"rate": rate, "against_one": rate / alone, "p50": p50, "p99": p99},
                )
            )
            if before is not None and there.spent is not None and processes == PROCESSES[-1]:
                turns = len(race.samples["turn"]) + SESSIONS  # each session has had one before
                computed.append(_computed(kind, hosts / turns, (there.spent - before) / turns))
    title = f"turns a second through one database, by processes, {SESSIONS} sessions, {SECONDS:g} s each"
    note = (
        f"A turn: prepare with {BEFORE} turns and more of 1 KB in the host's list and a message more, record of the "
        "reply. The server and all processes share this machine's cores, and that is where it levels off."
    )
    return Table(title, [*rows, *computed], [note, there.said])


def _computed(kind: str, host: float, server: float) -> Row:
    return Row(
        what=f"  computed for a turn, {KINDS[kind].partition(':')[0]}",
        measured=f"{spoken(host)} by the host, {spoken(server)} by the server",
        figures={"host": host, "server": server},
    )


def _weighed(there: Ground) -> Table:
    """What a turn leaves behind: in tables, and in the log that goes to backups and standbys."""
    with Memory.open(there.tenant, embedder=None) as memory:
        opened = [_opened(memory, "weighed", 1, place) for place in range(SPREAD)]
        turns = {session.id: _turns(session.id, WEIGHED + 1) for session in opened}
        for session in opened:
            _turn(session, turns[session.id], 0)
            memory.resource(session.resource).search("anything")
        before = there.room, there.logged, there.count("events")
        for passed in range(1, WEIGHED + 1):
            for session in opened:
                _turn(session, turns[session.id], passed)
        after = there.room, there.logged, there.count("events")
        for session in opened:
            memory.resource(session.resource).search("anything")
        indexed = (there.room - after[0]) / (WEIGHED * SPREAD)
    kept, logged, events = ((late - early) / (WEIGHED * SPREAD) for early, late in zip(before, after, strict=True))
    rows = [
        Row(what="events", measured=f"{events:.1f}", figures={"events": events}),
        Row(what="bytes that were said", measured=f"{sum(LENGTHS):,}", figures={"said": sum(LENGTHS)}),
        Row(what="bytes in the journal, with its indexes", measured=f"{kept:,.0f}", figures={"kept": kept}),
        Row(what="bytes of WAL", measured=f"{logged:,.0f}", figures={"logged": logged}),
        Row(what="bytes in the index, by words", measured=f"{indexed:,.0f}", figures={"indexed": indexed}),
    ]
    rows += [_in_place(there, table) for table in ("streams", "owners")]
    title = f"what one turn leaves, a mean of {WEIGHED} in each of {SPREAD} sessions"
    return Table(title, rows, [there.said])


def _in_place(there: Ground, table: str) -> Row:
    asked = "SELECT n_tup_hot_upd, n_tup_upd FROM pg_stat_user_tables WHERE schemaname = %s AND relname = %s"
    [(hot, all_of_them)] = there.ask(asked, there.schema, table)
    share = hot / max(1, all_of_them)
    return Row(what=f"updates of {table} in their place (HOT)", measured=f"{share:.0%}", figures={"share": share})


def _host(number: int, together: Together, url: str, kind: str, processes: int) -> tuple[list[float], float]:
    """Seconds of each turn that it has taken, and those for which it has computed."""
    with Memory.open(url, embedder=None) as memory:
        held: dict[int, Session] = {}
        turns = _turns("anybody", 2_000)

        def session(place: int) -> Session:
            if kind == "anew":
                return _opened(memory, kind, processes, place)
            if place not in held:
                held[place] = _opened(memory, kind, processes, place)
            return held[place]

        started = process_time()
        for place in range(number, SESSIONS, processes):
            _turn(session(place), turns, 0)
        gc.collect()
        gc.disable()
        together.wait()
        taken: list[float] = []
        end = perf_counter() + SECONDS
        step = 0
        while (begun := perf_counter()) < end:
            passed, block = divmod(step, SESSIONS // processes)
            shifted = number if kind == "held" else (number + passed) % processes
            _turn(session(block * processes + shifted), turns, passed + 1)
            taken.append(perf_counter() - begun)
            step += 1
        together.wait()
        return taken, process_time() - started


def _opened(memory: Memory, kind: str, processes: int, place: int) -> Session:
    return memory.session(f"{kind} {processes} {place}", resource=f"{kind} {processes} {place}", window=1_000_000)


def _turns(who: str, number: int) -> list[Message]:
    texts = islice(said(who, *LENGTHS), 2 * (BEFORE + number))
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]


def _turn(session: Session, turns: list[Message], passed: int) -> None:
    asked = 2 * (BEFORE + passed)
    session.prepare(turns[: asked + 1])
    session.record(_reply(turns[asked + 1]))


def _reply(said: Message) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
    }
