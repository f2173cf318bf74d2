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
from importlib import import_module
from pathlib import Path

from bench.table import WIDTH, Table

BENCHES = (
    *("prepare", "record", "wrapped", "store", "scratchpad", "compaction", "imports", "loop", "mcp", "cli", "cache"),
    *("tokens", "references", "resolve", "retention", "vectors", "search", "dreams"),
    *("postgres-append", "postgres-sessions", "postgres-search", "postgres-dreams"),
)
"""Each is the `run` of the module of this name."""


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
            tables[name] = import_module(f"bench.{name.replace('-', '.')}").run()
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
