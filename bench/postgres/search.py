"""What a search takes among the crystals of a thousand resources, and how much room the index has.

The index is the real one: it follows events that were adopted, resource by resource, as a search does which finds news.
Cold: the server was restarted, and nothing of its files is in the system's memory; each question goes to another
resource. Warm: the same questions again. INMIND_BENCH_SIZES=100000 says how many crystals there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from random import Random
from statistics import mean
from time import monotonic, perf_counter

from bench.postgres.client_processes import Together, crowd
from bench.postgres.dataset import FILLERS, filled, lines, question, resource_named
from bench.postgres.server import Ground, ground, sized
from bench.table import Row, Table
from bench.timing import Race, spoken
from inmind import Memory
from inmind.search.crystal_texts import message_reader
from inmind.search.embedders import create_embedder
from inmind.search.embedders.base import Embedder
from inmind.search.engine import SearchEngine
from inmind.search.index.postgres import PostgresIndex
from inmind.session.tools.registry import is_memory_tool
from inmind.store.postgres import PostgresStore

RESOURCES = sized(1_000, 50)
SIZES = sized((100_000, 1_000_000), (5_000,))
QUESTIONS = sized(300, 30)
PATIENCE = sized(600.0, 60.0)
"""Seconds for the index, and for vectors. What is reached by then is what is searched."""

LENGTH = mean(len(line) for line in islice(lines("anybody"), 1_000))


def run() -> list[Table]:
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    return [_searched(size) for size in sizes]


def _searched(size: int) -> Table:
    each = size // RESOURCES
    with ground() as there:
        begun = perf_counter()
        filled(there.tenant, "talk", RESOURCES, each)
        adopted = perf_counter() - begun
        journal = there.room
        done = _through(there, "index")
        rows = [_speed("taken in, as an import does", size, adopted), _speed("indexed", len(done) * each, done.seconds)]
        there.settle()
        rows += _asked(there, done, each, "by words", None)
        if (by_meaning := _embedder()) is not None and there.ask("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
            embedded = _through(there, "embed")
            rows.append(_speed("embedded, the embedder's own time included", len(embedded) * each, embedded.seconds))
            there.settle()
            rows += _asked(there, embedded, each, f"with vectors of {by_meaning.name}", by_meaning)
        rows += _room(there, journal, len(done) * each)
        notes = [f"Lines of {LENGTH:.0f} characters on average, {each:,} in each resource.", there.said]
        if len(done) < RESOURCES:
            notes.insert(0, f"Time ran out: {len(done) * each:,} crystals of {len(done)} resources were indexed.")
    return Table(f"search among {size:,} crystals of {RESOURCES:,} resources, in PostgreSQL", rows, notes)


# -- filling ----------------------------------------------------------------------------------------------------


class Done:
    """Resources that were gone through, and how long that took."""

    def __init__(self, resources: Sequence[int], seconds: float) -> None:
        self.resources, self.seconds = sorted(resources), seconds

    def __len__(self) -> int:
        return len(self.resources)


def _through(there: Ground, what: str) -> Done:
    begun = perf_counter()
    gone = crowd(FILLERS, {"index": _index, "embed": _embed}[what], there.tenant)
    return Done([resource for many in gone for resource in many], perf_counter() - begun)


def _index(number: int, together: Together, url: str) -> list[int]:
    with Memory.open(url, embedder=None) as memory:
        return _go_through(number, together, lambda resource: memory.resource(resource).search("news"))


def _embed(number: int, together: Together, url: str) -> list[int]:
    store, read = PostgresStore.open(url), message_reader(is_memory_tool)
    deep = SearchEngine(PostgresIndex(store, read), store, read, lambda: datetime.now(UTC), _embedder())
    try:
        return _go_through(number, together, lambda resource: deep.embed([resource]))
    finally:
        store.close()


def _go_through(number: int, together: Together, do: Callable[[str], object]) -> list[int]:
    """Its share of the resources, as far as time allows."""
    done: list[int] = []
    together.wait()
    until = monotonic() + PATIENCE
    for resource in range(number, RESOURCES, FILLERS):
        if monotonic() > until:
            break
        do(resource_named(resource))
        done.append(resource)
    return done


def _embedder() -> Embedder | None:
    """The one that the extra `vectors` brings."""
    return create_embedder("auto")


# -- asking -----------------------------------------------------------------------------------------------------


def _asked(there: Ground, done: Done, each: int, how: str, by_meaning: Embedder | None) -> list[Row]:
    random = Random(23)
    chosen = random.sample(done.resources, min(QUESTIONS, len(done)))
    asking: list[tuple[str, str, str]] = []
    for number in chosen:
        resource = resource_named(number)
        line = next(islice(lines(resource), random.randrange(each), None))
        asking.append((resource, question(line), line))
    rows: list[Row] = []
    for state in ("cold", "warm"):
        if state == "cold" and not there.chill():
            continue
        race, found = _race(there.tenant, asking, by_meaning)
        rows.append(
            Row(
                what=f"search {how}, {state}",
                measured=f"{spoken(race.median('search'))} p50, {spoken(race.p99('search'))} p99 (found {found:.0%})",
                figures={"p50": race.median("search"), "p99": race.p99("search"), "found": found},
            )
        )
    return rows


def _race(url: str, asking: Sequence[tuple[str, str, str]], by_meaning: Embedder | None) -> tuple[Race, float]:
    """Each question once. The first resource is asked before: whoever searches has been connected for a while."""
    race, found = Race(), 0
    with Memory.open(url, embedder=by_meaning) as memory:
        memory.resource(asking[0][0]).search("anything")
        for resource, asked, line in asking[1:]:
            begun = perf_counter()
            hits = memory.resource(resource).search(asked, limit=10)
            race.enter("search", perf_counter() - begun)
            found += any(hit.crystal.text == line for hit in hits)
    return race, found / (len(asking) - 1)


# -- room -------------------------------------------------------------------------------------------------------


def _room(there: Ground, journal: int, crystals: int) -> list[Row]:
    sizes = there.sizes()
    largest = sorted(sizes.items(), key=lambda item: -(item[1][0] + item[1][1]))[:6]
    total = there.room
    rows = [
        Row(
            what="journal with its indexes",
            measured=f"{journal / 1e6:,.0f} MB, {journal / crystals:,.0f} bytes a message",
            figures={"bytes": journal, "each": journal / crystals},
        ),
        Row(
            what="index of deep memory, with vectors where they are",
            measured=f"{(total - journal) / 1e6:,.0f} MB, {(total - journal) / crystals:,.0f} bytes a crystal",
            figures={"bytes": total - journal, "each": (total - journal) / crystals},
        ),
    ]
    for name, (table, indexes, _) in largest:
        rows.append(
            Row(
                what=f"  {name}",
                measured=f"{table / 1e6:,.0f} MB and {indexes / 1e6:,.0f} MB of indexes",
                figures={"table": table, "indexes": indexes},
            )
        )
    return rows


def _speed(what: str, number: int, seconds: float) -> Row:
    return Row(
        what=what,
        measured=f"{number / seconds:,.0f} a second ({number:,} in {seconds:,.0f} s, {FILLERS} processes)",
        figures={"rate": number / seconds, "seconds": seconds},
    )
