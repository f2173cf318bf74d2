"""What an append costs beside the one commit that it cannot do without: the same bytes into a bare table.

Bare is a table with a number and a text, on the same server, by the same driver: INSERT, which is its own transaction.
Like ours it prepares nothing, as behind a transaction pooler; how much that would save stands beside it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from time import perf_counter_ns

import psycopg

from bench.conversations import prose
from bench.postgres.client_processes import Together, crowd
from bench.postgres.server import Ground, ground, sized
from bench.store import NOTE
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind import Memory
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.codec import encode_payload
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.session import MessageAdded
from inmind.store.postgres import PostgresStore

MOST = 1.5
"""Times a bare commit, at the median and at p99."""

CLIENTS = 8
REPETITIONS = sized(2_000, 100)
ROUNDS, IN_A_ROUND = sized(10, 3), sized(100, 20)

SIZES: dict[str, EventPayload] = {
    "a note of 90 bytes": NoteAdded(text=NOTE, importance=0.5),
    "a message of 1 KB": MessageAdded(wire={"role": "assistant", "content": prose(Random(3), 1_024)}),
}


def run() -> list[Table]:
    with ground() as there:
        return [_alone(there), _together(there)]


class Ours:
    """Appends to the stream of a resource, one event after the other."""

    def __init__(self, store: PostgresStore, resource: str, what: EventPayload) -> None:
        self._store, self._stream, self._drafts = (
            store,
            f"resource/{resource}",
            [Draft(payload=what, origin=Origin.USER)],
        )
        self._version = store.version(self._stream)

    def append(self) -> None:
        at = datetime.now(UTC)
        self._version = self._store.append(self._stream, self._drafts, expected=self._version, at=at).last


class Bare:
    """The least that the server can be asked to do to keep the same bytes as safe."""

    def __init__(self, url: str, what: EventPayload, *, prepared: bool = False) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=0 if prepared else None)
        self._body = encode_payload(what)

    @staticmethod
    def lay_out(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"
            )

    def insert(self) -> None:
        self._connection.execute("INSERT INTO bare (body) VALUES (%s)", (self._body,))

    def close(self) -> None:
        self._connection.close()


# -- one client -------------------------------------------------------------------------------------------------


def _alone(there: Ground) -> Table:
    store = PostgresStore.open(there.tenant)  # makes the schema, which the bare table is in as well
    Bare.lay_out(there.tenant)
    rows: list[Row] = []
    for what, happened in SIZES.items():
        race = Race()
        ours, bare, prepared = (
            Ours(store, what, happened),
            Bare(there.tenant, happened),
            Bare(there.tenant, happened, prepared=True),
        )
        course = {
            "append": Contender(ours.append),
            "bare": Contender(bare.insert),
            "prepared": Contender(prepared.insert),
        }
        _run(race, course)
        bare.close()
        prepared.close()
        rows += [*_against(race, f"append, {what}", barred=True)]
        rows.append(_beside(race, "  the bare one prepared", "prepared"))
    store.close()
    rows.append(_noted(there))
    notes = ["append: `Store.append` of one event. session.note: all that a host waits for. Taking turns.", there.said]
    return Table(f"an append against a bare INSERT of the same bytes, 1 client, {REPETITIONS:,} of each", rows, notes)


def _noted(there: Ground) -> Row:
    race, bare = Race(), Bare(there.tenant, SIZES["a note of 90 bytes"])
    with Memory.open(there.tenant, embedder=None) as memory:
        session = memory.session("bench", resource="ada")
        _run(race, {"note": Contender(lambda: session.note(NOTE)), "bare": Contender(bare.insert)})
    bare.close()
    return _beside(race, "session.note", "note")


def _run(race: Race, course: dict[str, Contender]) -> None:
    Race().run(course, repetitions=20)  # until connections are open and plans are known
    race.run(course, repetitions=REPETITIONS)


# -- many clients -----------------------------------------------------------------------------------------------


def _together(there: Ground) -> Table:
    """In rounds: everybody appends, then everybody inserts. Nobody of one kind has to wait for the other."""
    race, spans = Race(), dict[str, list[float]]()
    for samples, lasted in crowd(CLIENTS, _client, there.tenant):
        for name, taken in samples.items():
            spans.setdefault(name, []).append(lasted[name])
            for seconds in taken:
                race.enter(name, seconds)
    each = ROUNDS * IN_A_ROUND * CLIENTS
    rate = {name: each / max(lasted) for name, lasted in spans.items()}
    rows = [
        *_against(race, f"append, {CLIENTS} clients on {CLIENTS} resources", barred=False),
        Row(
            what="  a second, all clients",
            measured=f"{rate['append']:,.0f} against {rate['bare']:,.0f}",
            figures={"append": rate["append"], "bare": rate["bare"]},
        ),
    ]
    note = f"A process each, in {ROUNDS} rounds: all append {IN_A_ROUND} notes, then all insert as many. {there.said}"
    return Table(
        f"an append against a bare INSERT of the same bytes, {CLIENTS} clients, {each:,} of each", rows, [note]
    )


def _client(number: int, together: Together, url: str) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Its samples, and how long it was at them."""
    happened = SIZES["a note of 90 bytes"]
    store, bare = PostgresStore.open(url), Bare(url, happened)
    ours = Ours(store, f"client {number}", happened)
    samples: dict[str, list[float]] = {"append": [], "bare": []}
    lasted = dict.fromkeys(samples, 0.0)
    acts: dict[str, Callable[[], None]] = {"append": ours.append, "bare": bare.insert}
    for act in acts.values():
        act()
    gc.disable()
    for _ in range(ROUNDS):
        for name, act in acts.items():
            together.wait()
            begun = perf_counter_ns()
            for _ in range(IN_A_ROUND):
                start = perf_counter_ns()
                act()
                samples[name].append((perf_counter_ns() - start) / 1e9)
            lasted[name] += (perf_counter_ns() - begun) / 1e9
    store.close()
    bare.close()
    return samples, lasted


# -- rows -------------------------------------------------------------------------------------------------------


def _against(race: Race, what: str, *, barred: bool) -> list[Row]:
    return [_one(race, f"{what}, {share}", share, "append", barred=barred) for share in ("p50", "p99")]


def _beside(race: Race, what: str, name: str) -> Row:
    return _one(race, f"{what}, p50", "p50", name, barred=False)


def _one(race: Race, what: str, share: str, name: str, *, barred: bool) -> Row:
    of = race.median if share == "p50" else race.p99
    ratio = of(name) / of("bare")
    return Row(
        what=what,
        measured=f"{ratio:.2f}x ({spoken(of(name))} / {spoken(of('bare'))})",
        bar=f"<= {MOST:g}x" if barred else "",
        met=ratio <= MOST if barred else None,
        figures={"ratio": ratio, "seconds": of(name), "bare": of("bare")},
    )
