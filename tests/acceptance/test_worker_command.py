"""Workers and the status in the terminal: what they say, and how they come and go."""

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
from terminal import INMIND, at_once, command, inmind
from torture.harness import SECONDS
from torture.workers import QUICKLY, fill

from inmind import Memory
from inmind.apps.worker.status import get_status
from inmind.memory.memory import upkeep_runner_of
from inmind.store.postgres.jobs import Jobs
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores

# -- looking -----------------------------------------------------------------------------------------------


@pytest.mark.spec("J9")
def test_the_status_tells_what_is_done_what_waits_and_what_was_given_up(tenant_url: str, jobs: Jobs) -> None:
    fill(tenant_url, "ada", "ben")
    now = datetime.now(UTC)
    jobs.enqueue_due(now)
    jobs.mark_maintained("ben", position=0, at=now, due=now + timedelta(hours=1), reason="STORE: no room")
    limited = {**QUICKLY, "limits.dreams_per_hour": 3, "limits.price_per_day": 1.5}
    told: list[Any] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            told.append(get_status(upkeep_runner_of(memory), jobs))

    with Memory.open(tenant_url, embedder=None, settings=limited) as memory:
        memory.dream("ada", watch=watch)
        (found,) = told
    assert (found.queue.waiting, found.queue.running, found.queue.workers) == (2, 0, 0)
    (dream,) = found.dreams
    assert (dream.resource, dream.stage, dream.trigger, dream.holds) == ("ada", "gathered", "asked", True)
    assert [(use.name, use.used, use.limit) for use in found.limits] == [
        ("price_per_day", 0.0, 1.5),
        ("dreams_per_hour", 0.0, 3.0),
    ]
    (one,) = found.given_up
    assert (one.resource, one.reason) == ("ben", "STORE: no room")
    text = inmind("status", "--db", tenant_url).stdout.splitlines()
    assert [line.split()[0] for line in text[1:]] == ["queue", "due", "index", "given"]
    assert "2 waiting" in text[1]
    as_json = json.loads(inmind("status", "--db", tenant_url, "--json").stdout)
    assert (as_json["queue"]["waiting"], as_json["given_up"][0]["resource"]) == (2, "ben")


def test_looking_makes_no_tables_for_jobs(tenant_url: str, sql: psycopg.Connection[Any]) -> None:
    fill(tenant_url, "ada")
    found = json.loads(inmind("status", "--db", tenant_url, "--json").stdout)
    assert (found["due"], found["queue"]["workers"]) == (1, 0)
    assert sql.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,)


# -- the command -------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_once_does_what_is_due_and_leaves(tenant_url: str) -> None:
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
def test_once_in_a_home_is_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.open(home, embedder=None) as memory:
        for number in range(6):
            memory.resource("ada").note(f"Fact number {number} about boats")
    first = at_once("worker", "--once", home=home)
    assert first.output.splitlines()[-1] == "All due work is done."
    assert first.output.startswith("Dream ")
    refused = at_once("worker", "--jobs", "2", home=home)
    assert (refused.exit_code, "--jobs" in refused.output) == (2, True)
    status = at_once("status", home=home).output.splitlines()
    assert status[1] == "queue     0 waiting, 0 running, 0 stalled, 0 given up"


@pytest.mark.spec("B47", "J9")
@pytest.mark.parametrize("place", ["database", "home"])
def test_once_says_which_dreams_had_to_wait_and_until_when(place: str, tenant_url: str, tmp_path: Path) -> None:
    home = tenant_url if place == "database" else tmp_path / "home"
    with Memory.open(home, embedder=None, settings=QUICKLY) as memory:
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
    dream, done, left = inmind("worker", "--once", home=home).stdout.splitlines()
    assert dream.startswith("Dream ")
    assert done == "All other due work is done."
    until = (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:00:00Z")
    assert left == f"Waiting: 2 dreams, dreams_per_hour reached until {until}."


def test_limits_are_told_in_digits_that_people_read(home: Home) -> None:
    limits = "[limits]\ntokens_per_day = 2_000_000\nprice_per_day = 1.25\n"
    with Memory.open(home, embedder=None) as memory:
        memory.resource("ada").note("Just so")
        memory.edit(memory.page("config.toml"), limits)
    said = at_once("status", home=home).output.splitlines()
    told = [line.split(", until")[0] for line in said if line.startswith("limit")]
    assert told == ["limit     tokens_per_day: 0 of 2,000,000", "limit     price_per_day: 0 of 1.25"]


@pytest.mark.spec("G3")
def test_workers_on_one_home_share_a_consolidation(tmp_path: Path) -> None:
    home = tmp_path / "home"
    clock = ManualClock()
    with (
        Memory.open(home, embedder=None, clock=clock) as one,
        Memory.open(home, embedder=None, clock=clock) as other,
    ):
        one.resource("ada").note("Just so")
        done = [upkeep_runner_of(memory).run(60, shared=True) for memory in (one, other)]
        assert [list(round.consolidated) for round in done] == [["ada"], []]
        clock.advance(seconds=1_800)
        done = [upkeep_runner_of(memory).run(60, shared=True) for memory in (other, one)]
        assert [list(round.consolidated) for round in done] == [["ada"], []]


# -- coming and going --------------------------------------------------------------------------------------


@pytest.mark.spec("C08")
@pytest.mark.parametrize("which", [pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive), signal.SIGTERM])
def test_the_command_ends_in_good_order(tenant_url: str, which: signal.Signals) -> None:
    fill(tenant_url, "ada")
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.edit(memory.page("config.toml"), "[dream]\nmin_crystals = 1\n[worker]\npoll_seconds = 0.1\n")
    arguments = command("worker", "--db", tenant_url, "--every", "1", "--jobs", "2")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(which)
        rest, complaints = process.communicate(timeout=SECONDS)
    assert said[0].startswith("Running upkeep on postgresql://")
    assert "2 notes merged" in said[1]
    assert (process.returncode, rest, complaints) == (0, "Stopped.\n", "")


AWAY, BACK = "inmind: WARNING: waiting for the database: ", "inmind: WARNING: the database is available again after "


class Commanded:
    """`inmind worker` in a process of its own, that tries again soon, and every line that it says as it comes."""

    def __init__(self, url: str) -> None:
        soon = "import inmind.apps.worker.postgres as its; its.RETRY_SECONDS = 0.2; "
        arguments = [sys.executable, "-c", soon + INMIND, "worker", "--db", url, "--every", "0.5"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self.told: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        streams = (self.process.stdout, self.said), (self.process.stderr, self.told)
        self._hearing = [threading.Thread(target=self._hear, args=stream) for stream in streams]
        for one in self._hearing:
            one.start()

    @staticmethod
    def _hear(stream: IO[str], heard: list[str]) -> None:
        with stream:
            heard.extend(line.rstrip() for line in stream)

    @property
    def of_the_database(self) -> list[str]:
        """A job that was under way may have a word of its own."""
        return [line for line in self.told if line.startswith((AWAY, BACK))]

    def tells(self, *lines: str) -> None:
        """Each of these words begins a line, in this order, and there is no other."""

        def heard() -> bool:
            told = self.of_the_database
            return len(told) == len(lines) and all(map(str.startswith, told, lines))

        try:
            wait_until(heard, "", seconds=SECONDS)
        except AssertionError:
            pytest.fail(f"it should have told {lines}, and told {self.told}")

    def leave(self) -> float:
        """How long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS)
        for one in self._hearing:
            one.join()
        return time.monotonic() - began


@contextmanager
def commanded(url: str) -> Generator[Commanded]:
    worker = Commanded(url)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.leave()


@pytest.mark.spec("J9", "P33")
def test_a_database_that_is_away_is_waited_for_and_told_of_when_it_goes_and_comes(postgres_run: postgres.Run) -> None:
    with postgres_run.server() as server:
        server.start()
        name = f"t_{os.urandom(6).hex()}"
        with psycopg.connect(server.url(), autocommit=True) as admin:
            admin.execute("CREATE EXTENSION vector")
            admin.execute(f"CREATE ROLE {name} LOGIN; GRANT CREATE ON DATABASE postgres TO {name}".encode())
        url = server.url(name)
        with Memory.open(url, embedder=None) as memory:
            quickly = "[dream]\nmin_crystals = 1\n[worker]\npoll_seconds = 0.1\nstalled_seconds = 0.6\n"
            memory.edit(memory.page("config.toml"), quickly)
        server.stop()
        with commanded(url) as worker:
            worker.tells(AWAY)
            assert worker.said == []
            server.start()
            worker.tells(AWAY, BACK)
            wait_until(lambda: len(worker.said) == 1, "it does not begin", seconds=SECONDS)
            server.stop()
            worker.tells(AWAY, BACK, AWAY)
            time.sleep(1)  # in which it tries again and again, and says nothing
            server.start()
            worker.tells(AWAY, BACK, AWAY, BACK)
            fill(url, "ada")
            wait_until(lambda: len(worker.said) == 2, "it does not go on", seconds=SECONDS)
            server.stop()
            worker.tells(AWAY, BACK, AWAY, BACK, AWAY)
            assert all("cannot be reached (" in line for line in worker.of_the_database[::2])
            assert worker.leave() < 6
            assert (worker.process.returncode, worker.said[-1]) == (0, "Stopped."), worker.told
            assert len(worker.of_the_database) == 5


@pytest.mark.parametrize(
    "arguments",
    [["worker", "--db", "A", "--db", "B"], ["worker", "--db=A", "--db=B"], ["--db", "A", "--db", "B", "worker"]],
)
def test_a_worker_serves_one_memory_and_a_second_is_refused(arguments: list[str]) -> None:
    urls = {"A": "postgresql://ada@db.internal/memory", "B": "postgresql://ben@db.internal/memory"}
    given = [one.replace("A", urls["A"]).replace("B", urls["B"]) for one in arguments]
    ran = inmind(*given)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("inmind: USAGE: --db is given twice: pass it once.")
