"""Time of an append, against a bare INSERT of the same bytes.

Bare is a table with a number and a text, on the same server, with the same driver: INSERT in autocommit. Like ours it
does not use prepared statements, as with a transaction pooler; the time with them is shown too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from time import perf_counter_ns

import psycopg

from bench.conversations import prose
from bench.postgres.client_processes import Barrier, run_clients
from bench.postgres.server import BenchServer, choose_size, start_server
from bench.store import NOTE
from bench.table import Row, Table
from bench.timing import TimedCall, Timings
from inmind import Memory
from inmind.core.events import encode_payload
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.session import MessageAdded
from inmind.store.postgres import PostgresStore
from inmind.store.protocol import Batch

MAX_RATIO = 1.5
"""Against a bare commit, at the median and at p99."""

CLIENTS = 8
REPETITIONS = choose_size(2_000, 100)
ROUNDS, ROUND_SIZE = choose_size(10, 3), choose_size(100, 20)

SIZES: dict[str, EventPayload] = {
    "a note of 90 bytes": NoteAdded(text=NOTE, importance=0.5),
    "a message of 1 KB": MessageAdded(wire={"role": "assistant", "content": prose(Random(3), 1_024)}),
}


def run() -> list[Table]:
    with start_server() as server:
        return [_single_client_table(server), _many_clients_table(server)]


class StoreAppend:
    """Appends single events to the stream of a resource."""

    def __init__(self, store: PostgresStore, resource: str, payload: EventPayload) -> None:
        self._store, self._stream, self._drafts = (
            store,
            f"resource/{resource}",
            [Draft(payload=payload, origin=Origin.USER)],
        )
        self._version = store.version(self._stream)

    def append(self) -> None:
        at = datetime.now(UTC)
        self._version = self._store.append(Batch(self._stream, self._drafts, self._version), at=at).last


class BareInsert:
    """The minimum of server work that stores the same bytes equally safely."""

    def __init__(self, url: str, what: EventPayload, *, prepared: bool = False) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0 if prepared else None)
        self._body = encode_payload(what)

    @staticmethod
    def create_table(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"
            )

    def insert(self) -> None:
        self._connection.execute("INSERT INTO bare (body) VALUES (%s)", (self._body,))

    def close(self) -> None:
        self._connection.close()


# -- one client -------------------------------------------------------------------------------------------------


def _single_client_table(server: BenchServer) -> Table:
    store = PostgresStore.open(server.tenant)  # makes the schema, which the bare table is in as well
    BareInsert.create_table(server.tenant)
    rows: list[Row] = []
    for what, payload in SIZES.items():
        timings = Timings()
        store_append, bare, prepared = (
            StoreAppend(store, what, payload),
            BareInsert(server.tenant, payload),
            BareInsert(server.tenant, payload, prepared=True),
        )
        timed_calls = {
            "append": TimedCall(store_append.append),
            "bare": TimedCall(bare.insert),
            "prepared": TimedCall(prepared.insert),
        }
        _run(timings, timed_calls)
        bare.close()
        prepared.close()
        rows += [*_append_rows(timings, f"append, {what}", has_bar=True)]
        rows.append(timings.ratio_row("  the bare one prepared, p50", "prepared", "bare"))
    store.close()
    rows.append(_note_row(server))
    notes = [
        "append: `Store.append` of one event. session.note: the whole call. Interleaved.",
        server.description,
    ]
    return Table(f"an append against a bare INSERT of the same bytes, 1 client, {REPETITIONS:,} of each", rows, notes)


def _note_row(server: BenchServer) -> Row:
    timings, bare = Timings(), BareInsert(server.tenant, SIZES["a note of 90 bytes"])
    with Memory.open(server.tenant, embedder=None) as memory:
        session = memory.session("bench", resource="ada")
        _run(timings, {"note": TimedCall(lambda: session.note(NOTE)), "bare": TimedCall(bare.insert)})
    bare.close()
    return timings.ratio_row("session.note, p50", "note", "bare")


def _run(timings: Timings, timed_calls: dict[str, TimedCall]) -> None:
    Timings().run(timed_calls, repetitions=20)  # warm-up: connections and plans
    timings.run(timed_calls, repetitions=REPETITIONS)


# -- many clients -----------------------------------------------------------------------------------------------


def _many_clients_table(server: BenchServer) -> Table:
    """In rounds: all clients append, then all insert. So the two never wait for each other."""
    timings, spans = Timings(), dict[str, list[float]]()
    for samples, durations in run_clients(CLIENTS, _client, server.tenant):
        for name, taken in samples.items():
            spans.setdefault(name, []).append(durations[name])
            for seconds in taken:
                timings.add_sample(name, seconds)
    total = ROUNDS * ROUND_SIZE * CLIENTS
    rates = {name: total / max(durations) for name, durations in spans.items()}
    rows = [
        *_append_rows(timings, f"append, {CLIENTS} clients on {CLIENTS} resources", has_bar=False),
        Row(
            what="  a second, all clients",
            measured=f"{rates['append']:,.0f} against {rates['bare']:,.0f}",
            figures={"append": rates["append"], "bare": rates["bare"]},
        ),
    ]
    note = (
        f"One process each, in {ROUNDS} rounds: all append {ROUND_SIZE} notes, then all insert as many. "
        f"{server.description}"
    )
    return Table(
        f"an append against a bare INSERT of the same bytes, {CLIENTS} clients, {total:,} of each", rows, [note]
    )


def _client(number: int, barrier: Barrier, url: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return the samples, and the total seconds of each kind."""
    payload = SIZES["a note of 90 bytes"]
    store, bare = PostgresStore.open(url), BareInsert(url, payload)
    store_append = StoreAppend(store, f"client {number}", payload)
    samples: dict[str, list[float]] = {"append": [], "bare": []}
    durations = dict.fromkeys(samples, 0.0)
    actions: dict[str, Callable[[], None]] = {"append": store_append.append, "bare": bare.insert}
    for action in actions.values():
        action()
    gc.disable()
    for _ in range(ROUNDS):
        for name, action in actions.items():
            barrier.wait()
            started = perf_counter_ns()
            for _ in range(ROUND_SIZE):
                start = perf_counter_ns()
                action()
                samples[name].append((perf_counter_ns() - start) / 1e9)
            durations[name] += (perf_counter_ns() - started) / 1e9
    store.close()
    bare.close()
    return samples, durations


# -- rows -------------------------------------------------------------------------------------------------------


def _append_rows(timings: Timings, what: str, *, has_bar: bool) -> list[Row]:
    limit = MAX_RATIO if has_bar else None
    return [
        timings.ratio_row(f"{what}, {share}", "append", "bare", limit, quantile=quantile)
        for share, quantile in (("p50", timings.median), ("p99", timings.p99))
    ]
