"""Ten thousand due dreams, run by four workers of which one is killed every few seconds.

Workers are `inmind worker` processes and are killed by SIGKILL at any point; each is replaced. The journal must have
exactly one dream per resource at the end. With a model, a stub on loopback counts requests: only a worker killed while
it waits for a reply may cause a repeated request. By rules there are fewer dreams: apart from the model the work is the
same. INMIND_BENCH_DREAMS=1000 sets the number with a model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory
from threading import Lock
from time import monotonic, sleep

from bench.postgres.dataset import fill_database
from bench.postgres.server import BenchServer, choose_size, start_server
from bench.table import Row, Table
from bench.timing import format_duration
from inmind import Memory

import loopback  # isort: skip -- of the tests, which `server` has put on the path

DREAMS, RULE_DREAMS = choose_size(10_000, 60), choose_size(1_000, 60)
NOTES = 6
"""For each resource: enough to make its dream due."""
WORKERS = 4
SECONDS_BETWEEN_KILLS = choose_size(5.0, 5.0)
TIMEOUT_SECONDS = choose_size(3_600.0, 300.0)

_INMIND = "from inmind.apps.cli import main; main()"
_SETTINGS = """
[dream]
first_minutes = 0
min_crystals = 5
[worker]
tries = 100
"""
"""Many tries: jobs of killed workers must not run out of tries."""
_WITH_MODEL = """
[model]
provider = "openai"
url = "{url}"
name = "stub"
"""


def run() -> list[Table]:
    dreams = int(os.environ.get("INMIND_BENCH_DREAMS") or DREAMS)
    return [_drain_table("by rules", min(dreams, RULE_DREAMS)), _drain_table("with a model", dreams)]


def _drain_table(how: str, dreams: int) -> Table:
    with start_server() as server, _stub() as stub, TemporaryDirectory() as folder:
        fill_database(server.tenant, "notes", dreams, NOTES)
        server.finish_background_work()
        with Memory.open(server.tenant, embedder=None) as memory:
            settings = _SETTINGS + (_WITH_MODEL.format(url=stub.url) if how == "with a model" else "")
            memory.edit(memory.page("config.toml"), settings)
        drained = _drain(server, Path(folder), dreams)
        rows = _rows(server, drained, dreams, stub if how == "with a model" else None)
        notes = [
            f"`inmind worker`, {WORKERS} processes; one is killed every {SECONDS_BETWEEN_KILLS:g} s and replaced. Each "
            f"resource has {NOTES} notes and no dream yet. Time: from the start of the first worker to the last dream.",
            server.description,
        ]
    return Table(f"{dreams:,} due dreams {how}, drained by {WORKERS} workers", rows, notes)


# -- draining ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class DrainResult:
    seconds: float = 0.0
    kills: int = 0
    data_bytes: int = 0
    """Growth of the tenant's tables and indexes, including the search index."""
    worker_seconds: float = 0.0
    server_seconds: float = 0.0
    """CPU seconds, like those of the workers."""


def _drain(server: BenchServer, folder: Path, dreams: int) -> DrainResult:
    result, started, bytes_before, worker_cpu, server_cpu = (
        DrainResult(),
        monotonic(),
        server.data_bytes,
        _children_cpu_seconds(),
        server.cpu_seconds or 0.0,
    )
    workers = [Worker(server.tenant, folder / f"{number}.log") for number in range(WORKERS)]
    next_kill = started + SECONDS_BETWEEN_KILLS
    try:
        while _finished_dreams(server) < dreams and monotonic() - started < TIMEOUT_SECONDS:
            if monotonic() >= next_kill and workers[0].has_output:
                workers.pop(0).kill()
                result.kills += 1
                workers.append(Worker(server.tenant, folder / f"{WORKERS + result.kills}.log"))
                next_kill = monotonic() + SECONDS_BETWEEN_KILLS
            assert not workers[-1].has_exited, workers[-1].log.read_text()[-2_000:]
            sleep(1)
        result.seconds = monotonic() - started
        while _pending_jobs(server) and monotonic() - started < TIMEOUT_SECONDS:  # a pending job could dream again
            sleep(1)
    finally:
        for worker in workers:
            worker.kill()
    result.data_bytes, result.worker_seconds, result.server_seconds = (
        server.data_bytes - bytes_before,
        _children_cpu_seconds() - worker_cpu,
        (server.cpu_seconds or 0.0) - server_cpu,
    )
    return result


def _children_cpu_seconds() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Worker:
    """An `inmind worker` process."""

    def __init__(self, url: str, log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _INMIND, "worker", "--every", "10"],
                env={**os.environ, "INMIND_DB": url, "PYTHONUNBUFFERED": "1"},
                stdout=output,
                stderr=output,
            )

    @property
    def has_output(self) -> bool:
        """Whether it has written to its log: before that a kill would only hit its start."""
        return self.log.stat().st_size > 0

    @property
    def has_exited(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _pending_jobs(server: BenchServer) -> int:
    """Count the jobs that are queued, running, or left by dead workers."""
    statement = f"SELECT count(*) FROM {server.schema}.procrastinate_jobs WHERE status IN ('todo', 'doing')"
    return server.query(statement)[0][0]


def _finished_dreams(server: BenchServer) -> int:
    return server.query(f"SELECT count(DISTINCT stream) FROM {server.schema}.events WHERE kind = 'dreamt'")[0][0]


def _count_events(server: BenchServer, kind: str) -> int:
    return server.query(f"SELECT count(*) FROM {server.schema}.events WHERE kind = %s", kind)[0][0]


# -- results --------------------------------------------------------------------------------------------


def _rows(server: BenchServer, drained: DrainResult, dreams: int, stub: Stub | None) -> list[Row]:
    statement = f"SELECT stream, count(*) FROM {server.schema}.events WHERE kind = 'dreamt' GROUP BY stream"
    by_stream = dict(server.query(statement))
    once = sum(number == 1 for number in by_stream.values())
    failed, resumed = (_count_events(server, kind) for kind in ("dream_failed", "dream_taken"))
    number = max(1, len(by_stream))
    rate = len(by_stream) / drained.seconds
    rows = [
        Row(
            what="dreamt exactly once",
            measured=f"{once:,} of {dreams:,}",
            bar="all",
            met=once == dreams == len(by_stream),
            figures={"once": once, "twice": len(by_stream) - once, "never": dreams - len(by_stream)},
        ),
        Row(
            what="dreams a second",
            measured=f"{rate:,.1f} ({drained.seconds:,.0f} s)",
            figures={"rate": rate, "seconds": drained.seconds},
        ),
        Row(
            what="workers killed",
            measured=f"{drained.kills}; {resumed} unfinished dreams resumed by other workers",
            bar="some",
            met=resumed > 0,
            figures={"kills": drained.kills, "taken": resumed},
        ),
        Row(
            what="for each dream",
            measured=f"{format_duration(drained.worker_seconds / number)} computed by workers, their starts included, "
            f"{format_duration(drained.server_seconds / number)} by the server; "
            f"{drained.data_bytes / number:,.0f} bytes stored, with the index",
            figures={
                "workers": drained.worker_seconds / number,
                "server": drained.server_seconds / number,
                "kept": drained.data_bytes / number,
            },
        ),
        Row(what="dreams that failed", measured=f"{failed:,}", bar="0", met=not failed, figures={"failed": failed}),
    ]
    if stub is not None:
        requests = Counter(stub.requests)
        repeated = sum(number - 1 for number in requests.values())
        rows.append(
            Row(
                what="questions to the model",
                measured=f"{sum(requests.values()):,} for {len(requests):,} dreams; {repeated} repeated after a kill",
                bar=f"<= {dreams:,} and one for each kill",
                met=len(requests) == dreams and repeated <= drained.kills,
                figures={"asked": sum(requests.values()), "again": repeated},
            )
        )
    return rows


# -- the stub of a model ----------------------------------------------------------------------------------------

_RESOURCE = re.compile(r"r-\d{7}")


@dataclass(slots=True)
class Stub:
    url: str
    requests: list[str] = field(default_factory=list[str])


@contextmanager
def _stub() -> Generator[Stub]:
    """Answers at once, without edits."""
    lock = Lock()

    class Handler(loopback.QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 -- as http.server calls it
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                stub.requests.append(_RESOURCE.findall(body)[0])
            choice = {"message": {"role": "assistant", "content": '{"edits": []}'}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1_000, "completion_tokens": 10}
            answer = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    stub = Stub("")
    with loopback.serve_handler(Handler) as url:
        stub.url = url
        yield stub
