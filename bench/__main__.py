"""Run benchmarks: `python -m bench [name …] [--json FILE]`.

Each number is printed with its bar. A missed bar does not fail the run; a benchmark that crashes does.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench import (
    cache,
    cli,
    compaction,
    dreams,
    imports,
    loop,
    mcp,
    prepare,
    record,
    references,
    resolve,
    retention,
    scratchpad,
    search,
    store,
    tokens,
    vectors,
    wrapped,
)
from bench.postgres import append, sessions
from bench.postgres import dreams as postgres_dreams
from bench.postgres import search as postgres_search
from bench.table import WIDTH, Table

BENCHES: dict[str, Callable[[], list[Table]]] = {
    "prepare": prepare.run,
    "record": record.run,
    "wrapped": wrapped.run,
    "store": store.run,
    "scratchpad": scratchpad.run,
    "compaction": compaction.run,
    "imports": imports.run,
    "loop": loop.run,
    "mcp": mcp.run,
    "cli": cli.run,
    "cache": cache.run,
    "tokens": tokens.run,
    "references": references.run,
    "resolve": resolve.run,
    "retention": retention.run,
    "vectors": vectors.run,
    "search": search.run,
    "dreams": dreams.run,
    "postgres-append": append.run,
    "postgres-sessions": sessions.run,
    "postgres-search": postgres_search.run,
    "postgres-dreams": postgres_dreams.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure inmind and print each number with its bar."
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"benchmarks to run, by default all: {', '.join(BENCHES)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHES]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}: choose from {', '.join(BENCHES)}")

    tables: dict[str, list[Table]] = {}
    crashed: list[str] = []
    for name in options.names or BENCHES:
        started = time.monotonic()
        try:
            tables[name] = BENCHES[name]()
        except Exception:
            traceback.print_exc()
            crashed.append(name)
            continue
        for table in tables[name]:
            print(table, end="\n\n")
        print(f"{name}: {time.monotonic() - started:.0f} s".rjust(WIDTH), end="\n\n", flush=True)

    verdicts = [
        row.met
        for benchmark_tables in tables.values()
        for table in benchmark_tables
        for row in table.rows
        if row.met is not None
    ]
    if options.json:
        options.json.write_text(_figures(tables, crashed), "utf-8")
    failed = f"; crashed: {', '.join(crashed)}" if crashed else ""
    print(f"{verdicts.count(True)} bars met, {verdicts.count(False)} missed{failed}")
    return 1 if crashed else 0


def _figures(tables: dict[str, list[Table]], crashed: list[str]) -> str:
    measured = {
        name: [{"title": table.title, "rows": [row.as_json() for row in table.rows]} for table in benchmark_tables]
        for name, benchmark_tables in tables.items()
    }
    machine = {"python": platform.python_version(), "system": platform.platform()}
    return json.dumps({**machine, "benches": measured, "crashed": crashed}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
