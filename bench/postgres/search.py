"""Time of a search among the crystals of a thousand resources, and the size of the index.

The index is the real one: it follows imported events resource by resource, as the first search of a resource does.
Cold: the server was restarted and its files are not in the system's cache; each question goes to another resource.
Warm: the same questions again. INMIND_BENCH_SIZES=100000 sets the number of crystals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from random import Random
from statistics import mean
from time import monotonic, perf_counter

from bench.postgres.client_processes import Barrier, run_clients
from bench.postgres.dataset import FILL_PROCESSES, fill_database, lines, question_about, resource_name
from bench.postgres.server import BenchServer, choose_size, start_server
from bench.table import Row, Table
from bench.timing import Timings, format_duration
from inmind import Memory
from inmind.search.embedders import create_embedder
from inmind.search.embedders.base import Embedder
from inmind.search.engine import SearchEngine
from inmind.search.extract import message_reader
from inmind.search.index.postgres import PostgresIndex
from inmind.session.tools.registry import is_memory_tool
from inmind.store.postgres import PostgresStore

RESOURCES = choose_size(1_000, 50)
SIZES = choose_size((100_000, 1_000_000), (5_000,))
QUESTIONS = choose_size(300, 30)
INDEX_SECONDS = choose_size(600.0, 60.0)
"""Limit for the index and for the vectors. Only resources processed by then are searched."""

MEAN_LINE_CHARACTERS = mean(len(line) for line in islice(lines("any"), 1_000))


def run() -> list[Table]:
    sizes = [int(size) for size in os.environ.get("INMIND_BENCH_SIZES", "").split(",") if size] or SIZES
    return [_search_table(size) for size in sizes]


def _search_table(size: int) -> Table:
    per_resource = size // RESOURCES
    with start_server() as server:
        started = perf_counter()
        fill_database(server.tenant, "messages", RESOURCES, per_resource)
        import_seconds = perf_counter() - started
        journal_bytes = server.data_bytes
        indexed = _process_resources(server, "index")
        rows = [
            _rate_row("imported", size, import_seconds),
            _rate_row("indexed", len(indexed) * per_resource, indexed.seconds),
        ]
        server.finish_background_work()
        rows += _search_rows(server, indexed, per_resource, "by words", None)
        if (embedder := _embedder()) is not None and server.query(
            "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
        ):
            embedded = _process_resources(server, "embed")
            rows.append(_rate_row("embedded, embedder time included", len(embedded) * per_resource, embedded.seconds))
            server.finish_background_work()
            rows += _search_rows(server, embedded, per_resource, f"with vectors of {embedder.name}", embedder)
        rows += _size_rows(server, journal_bytes, len(indexed) * per_resource)
        notes = [
            f"Lines of {MEAN_LINE_CHARACTERS:.0f} characters on average, {per_resource:,} in each resource.",
            server.description,
        ]
        if len(indexed) < RESOURCES:
            notes.insert(
                0, f"Time ran out: {len(indexed) * per_resource:,} crystals of {len(indexed)} resources were indexed."
            )
    return Table(f"search among {size:,} crystals of {RESOURCES:,} resources, in PostgreSQL", rows, notes)


# -- filling ----------------------------------------------------------------------------------------------------


class ProcessedResources:
    """The processed resources, and the seconds it took."""

    def __init__(self, resources: Sequence[int], seconds: float) -> None:
        self.resources, self.seconds = sorted(resources), seconds

    def __len__(self) -> int:
        return len(self.resources)


def _process_resources(server: BenchServer, what: str) -> ProcessedResources:
    started = perf_counter()
    resources = run_clients(FILL_PROCESSES, {"index": _index, "embed": _embed}[what], server.tenant)
    return ProcessedResources([resource for part in resources for resource in part], perf_counter() - started)


def _index(number: int, barrier: Barrier, url: str) -> list[int]:
    with Memory.open(url, embedder=None) as memory:
        return _process_share(number, barrier, lambda resource: memory.resource(resource).search("news"))


def _embed(number: int, barrier: Barrier, url: str) -> list[int]:
    store, read = PostgresStore.open(url), message_reader(is_memory_tool)
    engine = SearchEngine(PostgresIndex(store, read), store, read, lambda: datetime.now(UTC), _embedder())
    try:
        return _process_share(number, barrier, lambda resource: engine.embed([resource]))
    finally:
        store.close()


def _process_share(number: int, barrier: Barrier, do: Callable[[str], object]) -> list[int]:
    """Process a share of the resources until the time limit."""
    done: list[int] = []
    barrier.wait()
    until = monotonic() + INDEX_SECONDS
    for resource in range(number, RESOURCES, FILL_PROCESSES):
        if monotonic() > until:
            break
        do(resource_name(resource))
        done.append(resource)
    return done


def _embedder() -> Embedder | None:
    """The embedder of the extra `vectors`."""
    return create_embedder("auto")


# -- searches -----------------------------------------------------------------------------------------------------


def _search_rows(
    server: BenchServer, indexed: ProcessedResources, per_resource: int, how: str, embedder: Embedder | None
) -> list[Row]:
    random = Random(23)
    chosen = random.sample(indexed.resources, min(QUESTIONS, len(indexed)))
    searches: list[tuple[str, str, str]] = []
    for number in chosen:
        resource = resource_name(number)
        line = next(islice(lines(resource), random.randrange(per_resource), None))
        searches.append((resource, question_about(line), line))
    rows: list[Row] = []
    for state in ("cold", "warm"):
        if state == "cold" and not server.drop_caches():
            continue
        timings, recall = _time_searches(server.tenant, searches, embedder)
        rows.append(
            Row(
                what=f"search {how}, {state}",
                measured=f"{format_duration(timings.median('search'))} p50, "
                f"{format_duration(timings.p99('search'))} p99 (found {recall:.0%})",
                figures={"p50": timings.median("search"), "p99": timings.p99("search"), "found": recall},
            )
        )
    return rows


def _time_searches(
    url: str, searches: Sequence[tuple[str, str, str]], embedder: Embedder | None
) -> tuple[Timings, float]:
    """Search each question once, after one search that opens the connection."""
    timings, hits_found = Timings(), 0
    with Memory.open(url, embedder=embedder) as memory:
        memory.resource(searches[0][0]).search("anything")
        for resource, query, line in searches[1:]:
            started = perf_counter()
            hits = memory.resource(resource).search(query, limit=10)
            timings.add_sample("search", perf_counter() - started)
            hits_found += any(hit.crystal.text == line for hit in hits)
    return timings, hits_found / (len(searches) - 1)


# -- disk usage -------------------------------------------------------------------------------------------------------


def _size_rows(server: BenchServer, journal_bytes: int, crystals: int) -> list[Row]:
    sizes = server.sizes()
    largest = sorted(sizes.items(), key=lambda item: -(item[1][0] + item[1][1]))[:6]
    total = server.data_bytes
    rows = [
        Row(
            what="journal with its indexes",
            measured=f"{journal_bytes / 1e6:,.0f} MB, {journal_bytes / crystals:,.0f} bytes a message",
            figures={"bytes": journal_bytes, "each": journal_bytes / crystals},
        ),
        Row(
            what="search index, with vectors if there are any",
            measured=f"{(total - journal_bytes) / 1e6:,.0f} MB, "
            f"{(total - journal_bytes) / crystals:,.0f} bytes a crystal",
            figures={"bytes": total - journal_bytes, "each": (total - journal_bytes) / crystals},
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


def _rate_row(what: str, number: int, seconds: float) -> Row:
    return Row(
        what=what,
        measured=f"{number / seconds:,.0f} a second ({number:,} in {seconds:,.0f} s, {FILL_PROCESSES} processes)",
        figures={"rate": number / seconds, "seconds": seconds},
    )
