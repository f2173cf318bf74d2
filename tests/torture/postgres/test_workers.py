"""Workers and the server die repeatedly while dreams are due.

Nothing is lost or done twice.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg
import pytest
from dream_checks import account_for_notes, check_dream_order
from postgres import Run, Server, wait_until
from torture import workers
from torture.harness import TIMEOUT_SECONDS, RunningActor, seeded_random
from torture.postgres.conftest import OwnServer
from torture.workers import NOTES, count_requests, fill

from inmind import Memory

UNFINISHED = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
DONE = "SELECT count(*) FROM events WHERE kind = 'dreamt'"


@pytest.mark.spec("J9", "K20", "K22", "P30")
@pytest.mark.parametrize(("resource_count", "crashes"), [(3, 2), pytest.param(40, 20, marks=pytest.mark.torture)])
def test_when_workers_and_the_server_die_each_dream_runs_once_and_is_paid_once(
    postgres_run: Run, tmp_path: Path, resource_count: int, crashes: int
) -> None:
    rng = seeded_random()
    resources, calls = [f"r{number:03}" for number in range(resource_count)], tmp_path / "calls"
    with postgres_run.server() as server:
        server.start()
        url = OwnServer(server).tenant("ada")
        fill(url, *resources)
        written = [resource_count * len(NOTES)]
        for _ in resources:  # each dies after the first paid answer
            doomed = RunningActor(workers.die_after_answer, url=url, calls=str(calls))
            doomed.receive_until("answered")
            assert doomed.finish().killed
            crash(server, rng)
            note(url, resources, written)
        assert count_requests(calls) == resource_count
        running = [RunningActor(workers.work_until_killed, url=url, calls=str(calls)) for _ in range(2)]
        try:
            for _ in range(crashes):
                before = count(url, DONE)
                wait_until(
                    lambda before=before: count(url, DONE) > before or count(url, DONE) == resource_count,
                    "no progress",
                    seconds=TIMEOUT_SECONDS,
                )
                crash(server, rng)
                note(url, resources, written)
            until = time.monotonic() + max(TIMEOUT_SECONDS, 2.0 * resource_count)
            while count(url, DONE) < resource_count or count(url, UNFINISHED):
                assert time.monotonic() < until, "the jobs do not finish"
                time.sleep(0.1)
        finally:
            for one in running:
                one.kill()
                one.finish()
        assert count_requests(calls) == resource_count
        with Memory.open(url, embedder=None) as memory:
            for resource in resources:
                check_dream_order(memory, resource=resource)
                account_for_notes(memory, resource=resource)
                assert [dream.status for dream in memory.resource(resource).dreams()] == ["done"]
        assert count(url, "SELECT count(*) FROM events WHERE kind = 'note'") == written[0]
        assert server.log.count("was not properly shut down") == resource_count + crashes


def crash(server: Server, rng: Random) -> None:
    if rng.random() < 0.5:
        server.kill_postmaster()
    else:
        server.stop("immediate")
    server.start()


def note(url: str, resources: list[str], written: list[int]) -> None:
    """Notes acknowledged between two crashes."""
    with Memory.open(url, embedder=None) as memory:
        memory.resource(resources[written[0] % len(resources)]).note(f"Fact {written[0]} on boats")
    written[0] += 1


def count(url: str, statement: str) -> int:
    with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()[0][0]
    return -1
