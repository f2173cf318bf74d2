"""Ten thousand dreams that are due, drained by four workers of which one is killed every few seconds.

Workers are `inmind worker` as anybody starts it, and die by SIGKILL, whatever they are at; another takes each one's
place. What is counted is what the journal says in the end: each resource dreamt of exactly once, whoever began it. With
a model, a stub on the loopback counts who asks: a worker that is killed while it waits for an answer has to ask again,
and nobody else may. By rules there are fewer: what is done for a dream is the same but for the model.
INMIND_BENCH_DREAMS=1000 says how many there are with a model.
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

from bench.postgres.dataset import filled
from bench.postgres.server import Ground, ground, sized
from bench.table import Row, Table
from bench.timing import spoken
from inmind import Memory

import loopback  # isort: skip -- of the tests, which `ground` has put on the path

DREAMS, BY_RULES = sized(10_000, 60), sized(1_000, 60)
NOTES = 6
"""Of each resource, which is what makes its dream due."""
WORKERS = 4
KILLED_EVERY = sized(5.0, 5.0)
"""Seconds."""
PATIENCE = sized(3_600.0, 300.0)

_INMIND = "from inmind.apps.cli import main; main()"
_SETTINGS = """
[dream]
first_minutes = 0
min_crystals = 5
[worker]
tries = 100
"""
"""Whoever is killed on purpose is not to be taken for a job that kills its workers."""
_WITH_MODEL = """
[model]
provider = "openai"
url = "{url}"
name = "stub"
"""


def run() -> list[Table]:
    many = int(os.environ.get("INMIND_BENCH_DREAMS") or DREAMS)
    return [_drained("by rules", min(many, BY_RULES)), _drained("with a model", many)]


def _drained(how: str, many: int) -> Table:
    with ground() as there, _stub() as stub, TemporaryDirectory() as folder:
        filled(there.tenant, "notes", many, NOTES)
        there.settle()
        with Memory.open(there.tenant, embedder=None) as memory:
            told = _SETTINGS + (_WITH_MODEL.format(url=stub.url) if how == "with a model" else "")
            memory.edit(memory.page("config.toml"), told)
        drained = _drain(there, Path(folder), many)
        rows = _rows(there, drained, many, stub if how == "with a model" else None)
        notes = [
            f"`inmind worker`, {WORKERS} processes; one is killed every {KILLED_EVERY:g} s, and replaced. Each "
            f"resource has {NOTES} notes and no dream yet. Time: from the start of the first worker to the last dream.",
            there.said,
        ]
    return Table(f"{many:,} due dreams {how}, drained by {WORKERS} workers", rows, notes)


# -- draining ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Drained:
    seconds: float = 0.0
    kills: int = 0
    kept: int = 0
    """Bytes more in the tenant's tables and indexes, that of deep memory among them."""
    workers: float = 0.0
    server: float = 0.0
    """Seconds for which they have computed."""


def _drain(there: Ground, folder: Path, many: int) -> Drained:
    done, begun, room, computed, spent = Drained(), monotonic(), there.room, _by_children(), there.spent or 0.0
    workers = [Worker(there.tenant, folder / f"{number}.log") for number in range(WORKERS)]
    next_kill = begun + KILLED_EVERY
    try:
        while _dreamt(there) < many and monotonic() - begun < PATIENCE:
            if monotonic() >= next_kill and workers[0].works:
                workers.pop(0).kill()
                done.kills += 1
                workers.append(Worker(there.tenant, folder / f"{WORKERS + done.kills}.log"))
                next_kill = monotonic() + KILLED_EVERY
            assert not workers[-1].has_left, workers[-1].log.read_text()[-2_000:]
            sleep(1)
        done.seconds = monotonic() - begun
        while _waiting(there) and monotonic() - begun < PATIENCE:  # what is left could dream once more
            sleep(1)
    finally:
        for worker in workers:
            worker.kill()
    done.kept, done.workers, done.server = there.room - room, _by_children() - computed, (there.spent or 0.0) - spent
    return done


def _by_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Worker:
    """`inmind worker`, as anybody starts it."""

    def __init__(self, url: str, log: Path) -> None:
        self.log = log
        with log.open("ab") as told:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _INMIND, "worker", "--every", "10"],
                env={**os.environ, "INMIND_DB": url, "PYTHONUNBUFFERED": "1"},
                stdout=told,
                stderr=told,
            )

    @property
    def works(self) -> bool:
        """It has something to say: who is killed before that is killed while it is loaded, which proves nothing."""
        return self.log.stat().st_size > 0

    @property
    def has_left(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _waiting(there: Ground) -> int:
    """Jobs that are to be done, or are being done, or whose workers are dead."""
    asked = f"SELECT count(*) FROM {there.schema}.procrastinate_jobs WHERE status IN ('todo', 'doing')"
    return there.ask(asked)[0][0]


def _dreamt(there: Ground) -> int:
    return there.ask(f"SELECT count(DISTINCT stream) FROM {there.schema}.events WHERE kind = 'dreamt'")[0][0]


def _happened(there: Ground, kind: str) -> int:
    return there.ask(f"SELECT count(*) FROM {there.schema}.events WHERE kind = %s", kind)[0][0]


# -- what came of it --------------------------------------------------------------------------------------------


def _rows(there: Ground, drained: Drained, many: int, stub: Stub | None) -> list[Row]:
    counted = f"SELECT stream, count(*) FROM {there.schema}.events WHERE kind = 'dreamt' GROUP BY stream"
    by_stream = dict(there.ask(counted))
    once = sum(number == 1 for number in by_stream.values())
    failed, taken = (_happened(there, kind) for kind in ("dream_failed", "dream_taken"))
    number = max(1, len(by_stream))
    rate = len(by_stream) / drained.seconds
    rows = [
        Row(
            what="dreamt exactly once",
            measured=f"{once:,} of {many:,}",
            bar="all",
            met=once == many == len(by_stream),
            figures={"once": once, "twice": len(by_stream) - once, "never": many - len(by_stream)},
        ),
        Row(
            what="dreams a second",
            measured=f"{rate:,.1f} ({drained.seconds:,.0f} s)",
            figures={"rate": rate, "seconds": drained.seconds},
        ),
        Row(
            what="workers killed",
            measured=f"{drained.kills}; {taken} dreams that they were in the middle of were gone on with by others",
            bar="some",
            met=taken > 0,
            figures={"kills": drained.kills, "taken": taken},
        ),
        Row(
            what="for each dream",
            measured=f"{spoken(drained.workers / number)} computed by workers, their starts included, "
            f"{spoken(drained.server / number)} by the server; {drained.kept / number:,.0f} bytes kept, with the index",
            figures={
                "workers": drained.workers / number,
                "server": drained.server / number,
                "kept": drained.kept / number,
            },
        ),
        Row(what="dreams that failed", measured=f"{failed:,}", bar="0", met=not failed, figures={"failed": failed}),
    ]
    if stub is not None:
        asked = Counter(stub.asked)
        again = sum(number - 1 for number in asked.values())
        rows.append(
            Row(
                what="questions to the model",
                measured=f"{sum(asked.values()):,} for {len(asked):,} dreams; {again} anew, after a kill",
                bar=f"<= {many:,} and one for each kill",
                met=len(asked) == many and again <= drained.kills,
                figures={"asked": sum(asked.values()), "again": again},
            )
        )
    return rows


# -- a model that counts ----------------------------------------------------------------------------------------

_WHO = re.compile(r"r-\d{7}")


@dataclass(slots=True)
class Stub:
    url: str
    asked: list[str] = field(default_factory=list[str])


@contextmanager
def _stub() -> Generator[Stub]:
    """Answers at once, with no edits of its own."""
    lock = Lock()

    class Handler(loopback.QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 -- as http.server calls it
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                stub.asked.append(_WHO.findall(body)[0])
            choice = {"message": {"role": "assistant", "content": '{"edits": []}'}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1_000, "completion_tokens": 10}
            answer = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    stub = Stub("")
    with loopback.listening(Handler) as url:
        stub.url = url
        yield stub
