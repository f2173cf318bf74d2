"""Workers on a database: what is due is done once, whoever dies, leaves or comes; and what they use is limited."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from dream_checks import accounted, events_of, in_order, text_of
from postgres import Tenants, wait_until
from torture import workers
from torture.harness import SECONDS, RunningActor, run
from torture.stages import BEHIND, PaidModel
from torture.workers import DONE, NOTES, QUICKLY, a_worker, asked, fill, leases_are_short

from inmind import Memory
from inmind.apps.worker.postgres import TenantConnector
from inmind.apps.worker.status import RemainingWork, remaining_work
from inmind.apps.worker.tasks import WorkerTasks, idle_delay
from inmind.core.events.dreams import DreamCommitted, DreamResumed
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.errors import StoreBusy
from inmind.memory.memory import upkeep_runner_of
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.jobs import Jobs, OwnerStatus
from inmind.testing import ManualClock


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def user_of(url: str) -> str:
    return urlsplit(url).username or ""


def dreams_in(url: str, resource: str = "ada") -> list[str]:
    """Once nobody dreams any more: accounts are taken of a resource that stands still."""
    with Memory.open(url, embedder=None) as memory:
        in_order(memory, resource=resource)
        accounted(memory, resource=resource)
        return [dream.status for dream in memory.resource(resource).dreams()]


def has_dreamt(url: str, resource: str) -> bool:
    with Memory.open(url, embedder=None) as memory:
        return "done" in [dream.status for dream in memory.resource(resource).dreams()]


def done_once(url: str, *, model: Any = None) -> None:
    with a_worker(url, model=model) as worker:
        worker.run_once()


# -- what is due --------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_a_worker_does_what_is_due_and_no_more(tenant_url: str) -> None:
    fill(tenant_url, "ada", "ben", "cy")
    done_once(tenant_url)
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben", "cy")] == [["done"]] * 3
    done_once(tenant_url)
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben", "cy")] == [["done"]] * 3


@pytest.mark.spec("J9", "G3")
def test_what_a_job_has_done_itself_is_no_reason_to_look_again(tenant_url: str, jobs: Jobs) -> None:
    """Or for each dream there would be two jobs."""
    fill(tenant_url, "ada")
    with a_worker(tenant_url) as worker:
        worker.run_once()
    assert dreams_in(tenant_url) == ["done"]
    assert jobs.owner_status("ada").has_new_events is False
    assert jobs.enqueue_due(datetime.now(UTC)) == 0
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1


@pytest.mark.spec("J9", "G3")
def test_whose_time_has_come_goes_before_those_who_have_news(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any]
) -> None:
    """However many these are: a dream that was cut off does not wait for all of them."""
    fill(tenant_url, "ada", "ben", "cy")
    now = datetime.now(UTC)
    assert jobs.enqueue_due(now) == 3
    sql.execute("DELETE FROM procrastinate_jobs WHERE lock = 'tend cy'")
    jobs.mark_maintained("cy", position=10**9, at=now, due=now)
    assert jobs.enqueue_due(now) == 1
    asked = "SELECT args ->> 'owner' FROM procrastinate_jobs ORDER BY priority DESC, id"
    assert [owner for (owner,) in sql.execute(asked).fetchall()] == ["cy", "ada", "ben"]


@pytest.mark.spec("J9")
def test_the_same_comes_of_jobs_as_of_upkeep_in_a_home(tenant_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    clock = ManualClock()
    pages: list[str] = []
    for place in (tenant_url, home):
        with Memory.open(place, embedder=None, settings=QUICKLY, clock=clock) as memory:
            for note in (*NOTES, NOTES[0]):
                memory.resource("ada").note(note)
    with a_worker(tenant_url, clock=clock) as worker:
        worker.run_once()
    with Memory.open(home, embedder=None, settings=QUICKLY, clock=clock) as memory:
        memory.run_upkeep()
    for place in (tenant_url, home):
        with Memory.open(place, embedder=None) as memory:
            (dream,) = memory.resource("ada").dreams()
            pages.append(text_of(memory, MEMORY_PAGE_PATH))
            assert (dream.status, dream.trigger) == ("done", "schedule")
    assert NOTES[0] in pages[0]
    assert pages[0] == pages[1]


@pytest.mark.spec("J9", "G3")
def test_a_schedule_outlives_those_who_keep_it(tenant_url: str) -> None:
    clock = ManualClock()
    fill(tenant_url, "ada")

    def worked() -> int:
        with a_worker(tenant_url, clock=clock) as worker:
            worker.run_once()
        return len(dreams_in(tenant_url))

    assert worked() == 1
    clock.advance(seconds=3_600)
    with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
        memory.resource("ada").note("Ben is on holiday")
    assert worked() == 1
    clock.advance(seconds=3_000)
    assert worked() == 1
    clock.advance(seconds=601)  # nobody has written anything since: it is due by what the database has kept
    assert worked() == 2


@pytest.mark.spec("J9")
def test_a_maintained_resource_gets_no_job_until_an_event_or_a_due_time(tenant_url: str, jobs: Jobs) -> None:
    now = datetime.now(UTC)
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(now) == 1
    assert jobs.enqueue_due(now) == 0  # its job waits
    done_once(tenant_url)
    assert jobs.enqueue_due(now) == 0
    assert jobs.count_due(now) == (0, None)
    fill(tenant_url, "ada", "ben")
    assert jobs.enqueue_due(now) == 2
    later = now + timedelta(days=40)
    done_once(tenant_url)
    assert jobs.enqueue_due(later) == 2
    assert jobs.owner_status("ada").maintained_position > 0


def test_a_stream_without_a_resource_gets_no_job(tenant_url: str, jobs: Jobs) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.session("alone").note("Just so")
    assert jobs.enqueue_due(datetime.now(UTC)) == 0


def test_who_has_been_quiet_for_long_is_looked_at_more_seldom() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert idle_delay(OwnerStatus(5, 3, now - timedelta(days=9)), now) == timedelta(days=1)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(hours=1)), now) == timedelta(days=1)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(days=9)), now) == timedelta(days=18)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(days=90)), now) == timedelta(days=30)


# -- whoever dies ------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "K22")
@pytest.mark.parametrize("stage", [*BEHIND, DONE])
def test_a_worker_killed_anywhere_leaves_one_dream_and_one_bill(tenant_url: str, calls: Path, stage: str) -> None:
    fill(tenant_url, "ada")
    ended = run(workers.killed_behind, url=tenant_url, calls=str(calls), stage=stage)
    assert (ended.killed, ended.all("ending")) == (True, [[stage]]), ended.output
    until = time.monotonic() + SECONDS
    with leases_are_short(), a_worker(tenant_url, model=PaidModel(str(calls))) as worker:
        while True:
            worker.run_once()
            with Memory.open(tenant_url, embedder=None) as memory:
                if [dream.status for dream in memory.resource("ada").dreams()] == ["done"] and not left_over(
                    tenant_url
                ):
                    break
            assert time.monotonic() < until, "nobody went on with it"
            time.sleep(0.1)
    assert dreams_in(tenant_url) == ["done"]
    assert asked(calls) == 1
    with Memory.open(tenant_url, embedder=None) as memory:
        happened = [event.payload for event in events_of(memory)]
        assert sum(isinstance(what, DreamCommitted) for what in happened) == 1
        assert sum(isinstance(what, DreamResumed) for what in happened) == (stage in BEHIND and stage != "committed")


def left_over(url: str) -> int:
    store = PostgresStore.open(url)
    queue = Jobs(store.database).queue_status(dead_after=30)
    store.close()
    return queue.running + queue.later


@pytest.mark.spec("J9", "K20")
@pytest.mark.parametrize("many", [30, pytest.param(200, marks=pytest.mark.torture)])
def test_two_workers_of_which_one_keeps_dying_dream_once_per_resource(
    tenant_url: str, calls: Path, sql: psycopg.Connection[Any], many: int
) -> None:
    resources = [f"r{number:03}" for number in range(many)]
    fill(tenant_url, *resources)
    running = [RunningActor(workers.goes_on, url=tenant_url, calls=str(calls)) for _ in range(2)]
    killed = seen = 0
    began = time.monotonic()
    try:
        while (done := _dreamt(sql)) < many:
            assert time.monotonic() < began + many * 5, f"only {done} were dreamt for"
            time.sleep(0.05)
            if done - seen >= many // 6:  # each has come to something before one dies
                doomed = running.pop(0)
                doomed.kill()
                doomed.finish()
                running.append(RunningActor(workers.goes_on, url=tenant_url, calls=str(calls)))
                killed, seen = killed + 1, done
        # What is left in the queue could dream once more.
        wait_until(lambda: not _left(sql), "the queue does not run empty", seconds=SECONDS)
    finally:
        for one in running:
            one.kill()
            one.finish()
    assert killed > 1
    for one in resources:
        assert dreams_in(tenant_url, one) == ["done"]
    assert asked(calls) <= len(resources) + killed  # whom it had just answered was killed before it could say so


def _left(sql: psycopg.Connection[Any]) -> int:
    left = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    return sql.execute(left).fetchall()[0][0]


def _dreamt(sql: psycopg.Connection[Any]) -> int:
    return sql.execute("SELECT count(*) FROM events WHERE kind = 'dreamt'").fetchall()[0][0]


@pytest.mark.spec("J9")
def test_the_sweep_restarts_jobs_of_dead_workers_up_to_a_limit(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tenant_url, "ada")
    jobs.enqueue_due(datetime.now(UTC))
    with Memory.open(tenant_url, embedder=None, settings={**QUICKLY, "worker.tries": 3}) as memory:
        work = WorkerTasks(upkeep_runner_of(memory), jobs, workers.ignore_heartbeats)
        for tries in range(3):
            fetch = "SELECT procrastinate_fetch_job_v2(NULL, worker_id) FROM procrastinate_register_worker_v1()"
            assert sql.execute(fetch).fetchone()
            assert work.recover_jobs() == 0  # it was heard of a moment ago
            sql.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'")
            assert work.recover_jobs() == (tries < 2)
        assert [record.getMessage() for record in caplog.records][:-1] == [
            "restarting job tend ada: no heartbeat of its worker for 0.6 s"
        ] * 2
        assert jobs.queue_status(dead_after=30).failed == 1
        ((owner, reason, until),) = jobs.failing_owners(10)
        assert (owner, reason) == ("ada", "3 workers died during it")
        assert until > datetime.now(UTC)
        assert jobs.enqueue_due(datetime.now(UTC)) == 0  # nobody tries for a while
        assert jobs.enqueue_due(until) == 1


# -- whoever has to leave ----------------------------------------------------------------------------------


@pytest.mark.spec("C08", "J9")
def test_a_worker_told_to_leave_lets_go_of_its_dream_and_the_next_one_goes_on_at_once(
    tenant_url: str, calls: Path
) -> None:
    fill(tenant_url, "ada")
    leaving = RunningActor(workers.leaves_in_the_middle, url=tenant_url)
    leaving.receive_until("asked")
    began = time.monotonic()
    os.kill(leaving.pid, signal.SIGTERM)
    leaving.receive_until("left")
    assert time.monotonic() - began < 5
    leaving.finish()
    with Memory.open(tenant_url, embedder=None) as memory:
        running = memory.resource("ada").state.dreams.running
        assert running is not None
        assert (running.stage, running.is_held(datetime.now(UTC))) == ("gathered", False)
    done_once(tenant_url, model=PaidModel(str(calls)))
    with Memory.open(tenant_url, embedder=None) as memory:
        (dream,) = memory.resource("ada").dreams()
        assert (dream.id, dream.status, dream.by) == (running.dream, "done", "paid")
    assert (dreams_in(tenant_url), asked(calls)) == (["done"], 1)


@pytest.mark.spec("J9", "P33")
def test_a_worker_outlives_connections_that_are_cut(
    tenant_url: str, postgres_admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.apps.worker.postgres.RETRY_SECONDS", 0.1)
    fill(tenant_url, "ada")
    with a_worker(tenant_url) as worker:
        thread = threading.Thread(target=worker.run, args=(1.0,))
        thread.start()
        try:
            wait_until(lambda: has_dreamt(tenant_url, "ada"), "no dream", seconds=SECONDS)
            cutting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
            with psycopg.connect(postgres_admin, autocommit=True) as admin:
                assert admin.execute(cutting, [user_of(tenant_url)]).fetchall()
            fill(tenant_url, "ben")
            wait_until(lambda: has_dreamt(tenant_url, "ben"), "it does not go on", seconds=SECONDS)
        finally:
            worker.stop()
            thread.join(SECONDS)
    assert not thread.is_alive()
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben")] == [["done"]] * 2


# -- what fails --------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_a_failing_resource_delays_no_other(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tenant_url, "ada", "ben")
    with a_worker(tenant_url, settings={"worker.tries": 2}) as worker:
        house = worker._upkeep  # pyright: ignore[reportPrivateUsage] -- as if something in it were broken
        tend = house.maintain

        def broken(resource: str, *rest: Any, **more: Any) -> Any:
            if resource == "ada":
                raise StoreBusy(place="here", seconds=1)
            return tend(resource, *rest, **more)

        monkeypatch.setattr(house, "maintain", broken)
        worker.run_once()
        assert (dreams_in(tenant_url, "ada"), dreams_in(tenant_url, "ben")) == ([], ["done"])
        queue = jobs.queue_status(dead_after=30)
        assert (queue.waiting, queue.later, queue.failed) == (0, 1, 0)
        assert remaining_work(house, jobs) == RemainingWork(dreams=0, limits=(), jobs=1)
        sql.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE task_name = 'tend'")
        worker.run_once()
        assert jobs.queue_status(dead_after=30).failed == 1
        ((owner, reason, _),) = jobs.failing_owners(10)
        assert (owner, reason.startswith("STORE_BUSY: ")) == ("ada", True)
    done_once(tenant_url)
    assert dreams_in(tenant_url, "ada") == []


@pytest.mark.spec("K20")
def test_a_dream_of_another_process_is_waited_for_without_failure(tenant_url: str, jobs: Jobs) -> None:
    fill(tenant_url, "ada")
    seen: list[int] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            done_once(tenant_url)
            seen.append(jobs.queue_status(dead_after=30).failed)

    with Memory.open(tenant_url, embedder=None) as memory:
        memory.dream("ada", watch=watch)
        due, _ = jobs.count_due(datetime.now(UTC) + timedelta(minutes=2))
    assert (seen, due) == ([0], 1)
    assert dreams_in(tenant_url) == ["done"]


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B47", "J9")
def test_eight_processes_at_once_keep_to_one_limit(tenant_url: str, calls: Path) -> None:
    names = [[f"r{process}-{n}" for n in range(2)] for process in range(8)]
    fill(tenant_url, *(name for some in names for name in some))
    limits = {"limits.model_calls_per_minute": 5}
    running = [
        RunningActor(workers.dreams_within, url=tenant_url, calls=str(calls), resources=some, limits=limits)
        for some in names
    ]
    for one in running:
        one.receive_until("waiting")
    for one in running:
        one.resume()
    ends = Counter(tuple(end) for one in running for end in one.finish().answer)
    assert asked(calls) == 5
    assert ends == {("paid", "done"): 5, ("paid", "DREAM_OVERTAKEN"): 11}, "all others wait, and none goes by rules"


# -- somebody else's tables --------------------------------------------------------------------------------


@pytest.mark.spec("J8", "J9")
def test_jobs_stay_in_the_tenants_schema_whatever_its_path_and_its_name(tenants: Tenants, postgres_admin: str) -> None:
    with tenants.fresh() as url, psycopg.connect(postgres_admin, autocommit=True) as admin:
        name = user_of(url)
        admin.execute(f"ALTER ROLE {name} SET search_path = pg_catalog".encode())
        fill(url, "ada")
        done_once(url)
        assert dreams_in(url) == ["done"]
        found = admin.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'procrastinate_jobs'").fetchall()
        assert (name,) in found
        assert ("public",) not in found


def test_a_schema_is_named_safely_in_each_statement() -> None:
    connector = TenantConnector("postgresql://nobody@127.0.0.1/none", 'a "b" 100%\\1', max_connections=1)
    said = connector.qualify("SELECT procrastinate_finish_job_v1(%(job_id)s)")
    assert said == 'SELECT "a ""b"" 100%%\\1".procrastinate_finish_job_v1(%(job_id)s)'


# -- the queue -------------------------------------------------------------------------------------------


@pytest.mark.spec("J9")
def test_a_job_of_a_dead_worker_does_not_block_a_waiting_one(jobs: Jobs, tenant_url: str) -> None:
    task = "embed"
    jobs.enqueue(task)
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
        jobs.enqueue(task)
        jobs.enqueue("another")
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE task_name = 'another'")
        again, _ = jobs.recover_stalled(dead_after=30, max_seconds=900, max_attempts=5)
        assert sorted(job.task for job in again) == sorted(["another", task])
        left = connection.execute("SELECT task_name, status FROM procrastinate_jobs ORDER BY task_name").fetchall()
    assert left == sorted([("another", "todo"), (task, "todo")])
