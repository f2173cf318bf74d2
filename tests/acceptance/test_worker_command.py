"""`inmind worker` and `inmind status`: their output, signals and lost databases."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import postgres
import psycopg
import pytest
from builders import Home
from postgres import wait_until
from terminal import INMIND, command, inmind, run_in_process
from torture.harness import TIMEOUT_SECONDS
from torture.workers import FAST_SETTINGS, fill

from inmind import Memory
from inmind.apps.worker.status import get_status
from inmind.memory.memory import upkeep_runner_of
from inmind.store.postgres.jobs import Jobs
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores

# -- status ------------------------------------------------------------------------------------------------


@pytest.mark.spec("J9")
def test_the_status_shows_running_waiting_and_given_up_work(tenant_url: str, jobs: Jobs) -> None:
    fill(tenant_url, "ada", "ben")
    now = datetime.now(UTC)
    jobs.enqueue_due(now)
    jobs.mark_maintained("ben", position=0, at=now, due=now + timedelta(hours=1), reason="STORE: no room")
    limited = {**FAST_SETTINGS, "limits.dreams_per_hour": 3, "limits.price_per_day": 1.5}
    statuses: list[Any] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            statuses.append(get_status(upkeep_runner_of(memory), jobs))

    with Memory.open(tenant_url, embedder=None, settings=limited) as memory:
        memory.dream("ada", watch=watch)
        (status,) = statuses
    assert (status.queue.waiting, status.queue.running, status.queue.workers) == (2, 0, 0)
    ((resource, dream),) = status.dreams.items()
    assert (resource, dream.phase, dream.trigger, dream.is_held(now)) == ("ada", "gather", "asked", True)
    assert [(use.name, use.used, use.limit) for use in status.limits] == [
        ("price_per_day", 0.0, 1.5),
        ("dreams_per_hour", 0.0, 3.0),
    ]
    (one,) = status.given_up
    assert (one.resource, one.reason) == ("ben", "STORE: no room")
    text = inmind("status", "--db", tenant_url).stdout.splitlines()
    assert [line.split()[0] for line in text[1:]] == ["queue", "due", "index", "given"]
    assert "2 waiting" in text[1]
    as_json = json.loads(inmind("status", "--db", tenant_url, "--json").stdout)
    assert (as_json["queue"]["waiting"], as_json["given_up"][0]["resource"]) == (2, "ben")


def test_the_status_creates_no_job_tables(tenant_url: str, sql: psycopg.Connection[Any]) -> None:
    fill(tenant_url, "ada")
    status = json.loads(inmind("status", "--db", tenant_url, "--json").stdout)
    assert (status["due"], status["queue"]["workers"]) == (1, 0)
    assert sql.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,)


# -- the command -------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_once_does_due_work_and_exits(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        for number in range(6):
            memory.resource("ada").note(f"Fact number {number} about boats")
    first = inmind("worker", "--db", tenant_url, "--once")
    assert (first.returncode, first.stderr) == (0, "")
    dream, done = first.stdout.splitlines()
    assert dream.startswith("Dream ")
    assert done == "All due work is done."
    assert inmind("worker", "--db", tenant_url, "--once").stdout == "All due work is done.\n"


@pytest.mark.spec("G3")
def test_once_does_the_same_in_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.open(home, embedder=None) as memory:
        for number in range(6):
            memory.resource("ada").note(f"Fact number {number} about boats")
    first = run_in_process("worker", "--once", home=home)
    assert first.output.splitlines()[-1] == "All due work is done."
    assert first.output.startswith("Dream ")
    result = run_in_process("worker", "--jobs", "2", home=home)
    assert (result.exit_code, "--jobs" in result.output) == (2, True)
    status = run_in_process("status", home=home).output.splitlines()
    assert status[1] == "queue     0 waiting, 0 running, 0 stalled, 0 given up"


@pytest.mark.spec("B47", "J9")
@pytest.mark.parametrize("place", ["database", "home"])
def test_once_prints_how_many_dreams_wait_and_until_when(place: str, tenant_url: str, tmp_path: Path) -> None:
    home = tenant_url if place == "database" else tmp_path / "home"
    with Memory.open(home, embedder=None, settings=FAST_SETTINGS) as memory:
        for resource in ("ada", "ben", "cy"):
            memory.resource(resource).note("Just so")
    limits = "[dream]\nmin_crystals = 1\n[limits]\ndreams_per_hour = 1\n"
    if isinstance(home, Path):
        (home / "config.toml").write_text(limits)
    else:
        with Memory.open(home, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), limits)
    while (now := datetime.now(UTC)).minute == 59:  # the next hour has room again
        time.sleep(1)
    dream, done, waiting = inmind("worker", "--once", home=home).stdout.splitlines()
    assert dream.startswith("Dream ")
    assert done == "All other due work is done."
    until = (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:00:00Z")
    assert waiting == f"Waiting: 2 dreams, dreams_per_hour reached until {until}."


def test_limits_are_printed_with_thousands_separators(home: Home) -> None:
    limits = "[limits]\ntokens_per_day = 2_000_000\nprice_per_day = 1.25\n"
    with Memory.open(home, embedder=None) as memory:
        memory.resource("ada").note("Just so")
        memory.edit(memory.page("config.toml"), limits)
    lines = run_in_process("status", home=home).output.splitlines()
    limit_lines = [line.split(", until")[0] for line in lines if line.startswith("limit")]
    assert limit_lines == ["limit     tokens_per_day: 0 of 2,000,000", "limit     price_per_day: 0 of 1.25"]


@pytest.mark.spec("G3")
def test_workers_on_one_home_share_a_consolidation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    clock = ManualClock()
    with (
        Memory.open(home, embedder=None, clock=clock) as one,
        Memory.open(home, embedder=None, clock=clock) as other,
    ):
        one.resource("ada").note("Just so")
        rounds = [upkeep_runner_of(memory).run(60, shared=True) for memory in (one, other)]
        assert [list(round.consolidated) for round in rounds] == [["ada"], []]
        clock.advance(seconds=1_800)
        rounds = [upkeep_runner_of(memory).run(60, shared=True) for memory in (other, one)]
        assert [list(round.consolidated) for round in rounds] == [["ada"], []]


# -- signals and lost connections --------------------------------------------------------------------------


@pytest.mark.spec("C08")
@pytest.mark.parametrize("signum", [pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive), signal.SIGTERM])
def test_the_command_stops_cleanly_on_a_signal(tenant_url: str, signum: signal.Signals) -> None:
    fill(tenant_url, "ada")
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.edit(memory.page("config.toml"), "[dream]\nmin_crystals = 1\n[worker]\npoll_seconds = 0.1\n")
    arguments = command("worker", "--db", tenant_url, "--every", "1", "--jobs", "2")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(signum)
        rest, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert lines[0].startswith("Running upkeep on postgresql://")
    assert "2 notes merged" in lines[1]
    assert (process.returncode, rest, errors) == (0, "Stopped.\n", "")


WAITING, AVAILABLE = (
    "inmind: WARNING: waiting for the database: ",
    "inmind: WARNING: the database is available again after ",
)


class WorkerProcess:
    """`inmind worker` in another process with a short retry delay, and its output lines."""

    def __init__(self, url: str) -> None:
        patch = "import inmind.apps.worker.postgres as its; its.RETRY_SECONDS = 0.2; "
        arguments = [sys.executable, "-c", patch + INMIND, "worker", "--db", url, "--every", "0.5"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.stdout_lines: list[str] = []
        self.stderr_lines: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        streams = (self.process.stdout, self.stdout_lines), (self.process.stderr, self.stderr_lines)
        self._readers = [threading.Thread(target=self._read_lines, args=stream) for stream in streams]
        for one in self._readers:
            one.start()

    @staticmethod
    def _read_lines(stream: IO[str], lines: list[str]) -> None:
        with stream:
            lines.extend(line.rstrip() for line in stream)

    @property
    def database_lines(self) -> list[str]:
        """Lines about the database, without those of running jobs."""
        return [line for line in self.stderr_lines if line.startswith((WAITING, AVAILABLE))]

    def expect_lines(self, *lines: str) -> None:
        """Wait until the lines about the database start with these texts."""

        def matches() -> bool:
            current = self.database_lines
            return len(current) == len(lines) and all(map(str.startswith, current, lines))

        try:
            wait_until(matches, "", seconds=TIMEOUT_SECONDS)
        except AssertionError:
            pytest.fail(f"expected {lines}, got {self.stderr_lines}")

    def stop(self) -> float:
        """Return the seconds it took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(TIMEOUT_SECONDS)
        for one in self._readers:
            one.join()
        return time.monotonic() - start


@contextmanager
def running_worker(url: str) -> Generator[WorkerProcess]:
    worker = WorkerProcess(url)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.stop()


@pytest.mark.spec("J9", "P33")
def test_a_worker_waits_for_a_lost_database_and_logs_each_change(postgres_run: postgres.Run) -> None:
    with postgres_run.server() as server:
        server.start()
        name = f"t_{os.urandom(6).hex()}"
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
            admin.execute(f"CREATE ROLE {name} LOGIN; GRANT CREATE ON DATABASE postgres TO {name}".encode())
        url = server.url(name)
        with Memory.open(url, embedder=None) as memory:
            settings = "[dream]\nmin_crystals = 1\n[worker]\npoll_seconds = 0.1\nstalled_seconds = 0.6\n"
            memory.edit(memory.page("config.toml"), settings)
        server.stop()
        with running_worker(url) as worker:
            worker.expect_lines(WAITING)
            assert worker.stdout_lines == []
            server.start()
            worker.expect_lines(WAITING, AVAILABLE)
            wait_until(lambda: len(worker.stdout_lines) == 1, "the worker has not started", seconds=TIMEOUT_SECONDS)
            server.stop()
            worker.expect_lines(WAITING, AVAILABLE, WAITING)
            time.sleep(1)  # retries are not logged
            server.start()
            worker.expect_lines(WAITING, AVAILABLE, WAITING, AVAILABLE)
            fill(url, "ada")
            wait_until(lambda: len(worker.stdout_lines) == 2, "the worker does not continue", seconds=TIMEOUT_SECONDS)
            server.stop()
            worker.expect_lines(WAITING, AVAILABLE, WAITING, AVAILABLE, WAITING)
            reasons = worker.database_lines[::2]
            # The third is a lost reply if the server stops in a commit of the worker.
            assert all("cannot be reached (" in line or "was lost (" in line for line in reasons), reasons
            assert worker.stop() < 6
            assert (worker.process.returncode, worker.stdout_lines[-1]) == (0, "Stopped."), worker.stderr_lines
            assert len(worker.database_lines) == 5


@pytest.mark.parametrize(
    "arguments",
    [["worker", "--db", "A", "--db", "B"], ["worker", "--db=A", "--db=B"], ["--db", "A", "--db", "B", "worker"]],
)
def test_a_worker_serves_one_memory_and_a_second_is_refused(arguments: list[str]) -> None:
    urls = {"A": "postgresql://ada@db.internal/memory", "B": "postgresql://ben@db.internal/memory"}
    command_line = [one.replace("A", urls["A"]).replace("B", urls["B"]) for one in arguments]
    process = inmind(*command_line)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("inmind: USAGE: --db is given twice: pass it once.")
