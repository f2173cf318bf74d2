"""Workers on a database: due work is done once and within limits, also if a worker dies."""

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
from dream_checks import account_for_notes, check_dream_order, events_of, text_of
from postgres import Tenants, wait_until
from torture import workers
from torture.harness import TIMEOUT_SECONDS, RunningActor, run
from torture.stages import PaidModel
from torture.workers import DONE, FAST_SETTINGS, NOTES, count_requests, fill, open_worker, short_leases

from inmind import Memory
from inmind.apps.worker.postgres import TenantConnector
from inmind.apps.worker.status import describe_remaining_work
from inmind.apps.worker.tasks import WorkerTasks, idle_delay
from inmind.core.events.dreams import DreamCommitted, DreamResumed
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.errors import StoreBusy
from inmind.jobs.dreaming import PHASES
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
    """The status of each dream, after checks that need an idle resource."""
    with Memory.open(url, embedder=None) as memory:
        check_dream_order(memory, resource=resource)
        account_for_notes(memory, resource=resource)
        return [dream.status for dream in memory.resource(resource).dreams()]


def has_dreamt(url: str, resource: str) -> bool:
    with Memory.open(url, embedder=None) as memory:
        return "done" in [dream.status for dream in memory.resource(resource).dreams()]


def run_worker_once(url: str, *, model: Any = None) -> None:
    with open_worker(url, model=model) as worker:
        worker.run_once()


# -- due work -----------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_a_worker_does_due_work_once(tenant_url: str) -> None:
    fill(tenant_url, "ada", "ben", "cy")
    run_worker_once(tenant_url)
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben", "cy")] == [["done"]] * 3
    run_worker_once(tenant_url)
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben", "cy")] == [["done"]] * 3


@pytest.mark.spec("J9", "G3")
def test_events_of_a_job_do_not_enqueue_another(tenant_url: str, jobs: Jobs) -> None:
    """Otherwise there would be two jobs for each dream."""
    fill(tenant_url, "ada")
    with open_worker(tenant_url) as worker:
        worker.run_once()
    assert dreams_in(tenant_url) == ["done"]
    assert jobs.owner_status("ada").has_new_events is False
    assert jobs.enqueue_due(datetime.now(UTC)) == 0
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1


@pytest.mark.spec("J9", "G3")
def test_resources_at_their_due_time_come_before_those_with_new_events(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any]
) -> None:
    """An interrupted dream does not wait for all resources with new events."""
    fill(tenant_url, "ada", "ben", "cy")
    now = datetime.now(UTC)
    assert jobs.enqueue_due(now) == 3
    sql.execute("DELETE FROM procrastinate_jobs WHERE lock = 'tend cy'")
    jobs.mark_maintained("cy", position=10**9, at=now, due=now)
    assert jobs.enqueue_due(now) == 1
    query = "SELECT args ->> 'owner' FROM procrastinate_jobs ORDER BY priority DESC, id"
    assert [owner for (owner,) in sql.execute(query).fetchall()] == ["cy", "ada", "ben"]


@pytest.mark.spec("J9")
def test_jobs_write_the_same_page_as_upkeep_in_a_home(tenant_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    clock = ManualClock()
    pages: list[str] = []
    for place in (tenant_url, home):
        with Memory.open(place, embedder=None, settings=FAST_SETTINGS, clock=clock) as memory:
            for note in (*NOTES, NOTES[0]):
                memory.resource("ada").note(note)
    with open_worker(tenant_url, clock=clock) as worker:
        worker.run_once()
    with Memory.open(home, embedder=None, settings=FAST_SETTINGS, clock=clock) as memory:
        memory.run_upkeep()
    for place in (tenant_url, home):
        with Memory.open(place, embedder=None) as memory:
            (dream,) = memory.resource("ada").dreams()
            pages.append(text_of(memory, MEMORY_PAGE_PATH))
            assert (dream.status, dream.trigger) == ("done", "schedule")
    assert NOTES[0] in pages[0]
    assert pages[0] == pages[1]


@pytest.mark.spec("J9", "G3")
def test_a_schedule_outlives_its_workers(tenant_url: str) -> None:
    clock = ManualClock()
    fill(tenant_url, "ada")

    def run_and_count_dreams() -> int:
        with open_worker(tenant_url, clock=clock) as worker:
            worker.run_once()
        return len(dreams_in(tenant_url))

    assert run_and_count_dreams() == 1
    clock.advance(seconds=3_600)
    with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
        memory.resource("ada").note("Ben is on holiday")
    assert run_and_count_dreams() == 1
    clock.advance(seconds=3_000)
    assert run_and_count_dreams() == 1
    clock.advance(seconds=601)  # no new event: the database has stored the due time
    assert run_and_count_dreams() == 2


@pytest.mark.spec("J9")
def test_a_maintained_resource_gets_no_job_until_an_event_or_a_due_time(tenant_url: str, jobs: Jobs) -> None:
    now = datetime.now(UTC)
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(now) == 1
    assert jobs.enqueue_due(now) == 0  # its job waits
    run_worker_once(tenant_url)
    assert jobs.enqueue_due(now) == 0
    assert jobs.count_due(now) == (0, None)
    fill(tenant_url, "ada", "ben")
    assert jobs.enqueue_due(now) == 2
    later = now + timedelta(days=40)
    run_worker_once(tenant_url)
    assert jobs.enqueue_due(later) == 2
    assert jobs.owner_status("ada").maintained_position > 0


def test_a_stream_without_a_resource_gets_no_job(tenant_url: str, jobs: Jobs) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.session("alone").note("Just so")
    assert jobs.enqueue_due(datetime.now(UTC)) == 0


def test_idle_resources_are_checked_less_often() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert idle_delay(OwnerStatus(5, 3, now - timedelta(days=9)), now) == timedelta(days=1)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(hours=1)), now) == timedelta(days=1)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(days=9)), now) == timedelta(days=18)
    assert idle_delay(OwnerStatus(5, 5, now - timedelta(days=90)), now) == timedelta(days=30)


# -- killed workers ----------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "K22")
@pytest.mark.parametrize("phase", [*PHASES, DONE])
def test_a_worker_killed_anywhere_leaves_one_dream_and_one_bill(tenant_url: str, calls: Path, phase: str) -> None:
    fill(tenant_url, "ada")
    result = run(workers.die_in_phase, url=tenant_url, calls=str(calls), phase=phase)
    assert (result.killed, result.all("ending")) == (True, [[phase]]), result.output
    until = time.monotonic() + TIMEOUT_SECONDS
    with short_leases(), open_worker(tenant_url, model=PaidModel(str(calls))) as worker:
        while True:
            worker.run_once()
            with Memory.open(tenant_url, embedder=None) as memory:
                if [dream.status for dream in memory.resource("ada").dreams()] == ["done"] and not unfinished_jobs(
                    tenant_url
                ):
                    break
            assert time.monotonic() < until, "the dream was not resumed"
            time.sleep(0.1)
    assert dreams_in(tenant_url) == ["done"]
    assert count_requests(calls) == 1
    with Memory.open(tenant_url, embedder=None) as memory:
        payloads = [event.payload for event in events_of(memory)]
        assert sum(isinstance(item, DreamCommitted) for item in payloads) == 1
        assert sum(isinstance(item, DreamResumed) for item in payloads) == (phase not in ("index", DONE))


def unfinished_jobs(url: str) -> int:
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
    running = [RunningActor(workers.work_until_killed, url=tenant_url, calls=str(calls)) for _ in range(2)]
    killed = seen = 0
    start = time.monotonic()
    try:
        while (done := _count_dreams(sql)) < many:
            assert time.monotonic() < start + many * 5, f"only {done} were dreamt for"
            time.sleep(0.05)
            if done - seen >= many // 6:  # both have made progress before one is killed
                doomed = running.pop(0)
                doomed.kill()
                doomed.finish()
                running.append(RunningActor(workers.work_until_killed, url=tenant_url, calls=str(calls)))
                killed, seen = killed + 1, done
        # A job that is still queued could dream again.
        wait_until(lambda: not _queued_jobs(sql), "the queue is not empty", seconds=TIMEOUT_SECONDS)
    finally:
        for one in running:
            one.kill()
            one.finish()
    assert killed > 1
    for one in resources:
        assert dreams_in(tenant_url, one) == ["done"]
    assert count_requests(calls) <= len(resources) + killed  # a killed worker may not have stored an answer


def _queued_jobs(sql: psycopg.Connection[Any]) -> int:
    query = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    return sql.execute(query).fetchall()[0][0]


def _count_dreams(sql: psycopg.Connection[Any]) -> int:
    return sql.execute("SELECT count(*) FROM events WHERE kind = 'dreamt'").fetchall()[0][0]


@pytest.mark.spec("J9")
def test_the_sweep_restarts_jobs_of_dead_workers_up_to_a_limit(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tenant_url, "ada")
    jobs.enqueue_due(datetime.now(UTC))
    with Memory.open(tenant_url, embedder=None, settings={**FAST_SETTINGS, "worker.tries": 3}) as memory:
        work = WorkerTasks(upkeep_runner_of(memory), jobs, workers.ignore_heartbeats)
        for tries in range(3):
            fetch = "SELECT procrastinate_fetch_job_v2(NULL, worker_id) FROM procrastinate_register_worker_v1()"
            assert sql.execute(fetch).fetchone()
            assert work.recover_jobs() == 0  # its heartbeat is recent
            sql.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'")
            assert work.recover_jobs() == (tries < 2)
        assert [record.getMessage() for record in caplog.records][:-1] == [
            "restarting job tend ada: no heartbeat of its worker for 0.6 s"
        ] * 2
        assert jobs.queue_status(dead_after=30).failed == 1
        ((owner, reason, until),) = jobs.failing_owners(10)
        assert (owner, reason) == ("ada", "3 workers died during it")
        assert until > datetime.now(UTC)
        assert jobs.enqueue_due(datetime.now(UTC)) == 0  # paused after its failures
        assert jobs.enqueue_due(until) == 1


# -- stopped workers and lost connections ------------------------------------------------------------------


@pytest.mark.spec("C08", "J9")
def test_a_stopped_worker_releases_its_dream_and_the_next_one_resumes_it(tenant_url: str, calls: Path) -> None:
    fill(tenant_url, "ada")
    actor = RunningActor(workers.stop_during_model_call, url=tenant_url)
    actor.receive_until("asked")
    start = time.monotonic()
    os.kill(actor.pid, signal.SIGTERM)
    actor.receive_until("left")
    assert time.monotonic() - start < 5
    actor.finish()
    with Memory.open(tenant_url, embedder=None) as memory:
        running = memory.resource("ada").state.dreams.running
        assert running is not None
        assert (running.phase, running.is_held(datetime.now(UTC))) == ("gather", False)
    run_worker_once(tenant_url, model=PaidModel(str(calls)))
    with Memory.open(tenant_url, embedder=None) as memory:
        (dream,) = memory.resource("ada").dreams()
        assert (dream.id, dream.status, dream.by) == (running.dream, "done", "paid")
    assert (dreams_in(tenant_url), count_requests(calls)) == (["done"], 1)


@pytest.mark.spec("J9", "P33")
def test_a_worker_survives_lost_connections(
    tenant_url: str, postgres_admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.apps.worker.postgres.RETRY_SECONDS", 0.1)
    fill(tenant_url, "ada")
    with open_worker(tenant_url) as worker:
        thread = threading.Thread(target=worker.run, args=(1.0,))
        thread.start()
        try:
            wait_until(lambda: has_dreamt(tenant_url, "ada"), "no dream", seconds=TIMEOUT_SECONDS)
            statement = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
            with psycopg.connect(postgres_admin, autocommit=True) as admin:
                assert admin.execute(statement, [user_of(tenant_url)]).fetchall()
            fill(tenant_url, "ben")
            wait_until(lambda: has_dreamt(tenant_url, "ben"), "the worker does not continue", seconds=TIMEOUT_SECONDS)
        finally:
            worker.stop()
            thread.join(TIMEOUT_SECONDS)
    assert not thread.is_alive()
    assert [dreams_in(tenant_url, one) for one in ("ada", "ben")] == [["done"]] * 2


# -- failures ----------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "G3")
def test_a_failing_resource_delays_no_other(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tenant_url, "ada", "ben")
    with open_worker(tenant_url, settings={"worker.tries": 2}) as worker:
        upkeep = worker._upkeep  # pyright: ignore[reportPrivateUsage] -- as if something in it were broken
        original = upkeep.maintain

        def fail_for_ada(resource: str, *rest: Any, **more: Any) -> Any:
            if resource == "ada":
                raise StoreBusy(place="here", seconds=1)
            return original(resource, *rest, **more)

        monkeypatch.setattr(upkeep, "maintain", fail_for_ada)
        worker.run_once()
        assert (dreams_in(tenant_url, "ada"), dreams_in(tenant_url, "ben")) == ([], ["done"])
        queue = jobs.queue_status(dead_after=30)
        assert (queue.waiting, queue.later, queue.failed) == (0, 1, 0)
        assert describe_remaining_work(upkeep, jobs)[1:] == ["To be retried: 1 failed job."]
        sql.execute("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE task_name = 'tend'")
        worker.run_once()
        assert jobs.queue_status(dead_after=30).failed == 1
        ((owner, reason, _),) = jobs.failing_owners(10)
        assert (owner, reason.startswith("STORE_BUSY: ")) == ("ada", True)
    run_worker_once(tenant_url)
    assert dreams_in(tenant_url, "ada") == []


@pytest.mark.spec("K20")
def test_a_dream_of_another_process_is_waited_for_without_failure(tenant_url: str, jobs: Jobs) -> None:
    fill(tenant_url, "ada")
    seen: list[int] = []

    def watch(phase: str, _: str) -> None:
        if phase == "propose":
            run_worker_once(tenant_url)
            seen.append(jobs.queue_status(dead_after=30).failed)

    with Memory.open(tenant_url, embedder=None) as memory:
        memory.dream("ada", watch=watch)
        due, _ = jobs.count_due(datetime.now(UTC) + timedelta(minutes=2))
    assert (seen, due) == ([0], 1)
    assert dreams_in(tenant_url) == ["done"]


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.spec("B47", "J9")
def test_eight_processes_share_one_limit(tenant_url: str, calls: Path) -> None:
    names = [[f"r{process}-{n}" for n in range(2)] for process in range(8)]
    fill(tenant_url, *(name for some in names for name in some))
    limits = {"limits.model_calls_per_minute": 5}
    running = [
        RunningActor(workers.dream_within_limits, url=tenant_url, calls=str(calls), resources=some, limits=limits)
        for some in names
    ]
    for one in running:
        one.receive_until("waiting")
    for one in running:
        one.resume()
    ends = Counter(tuple(end) for one in running for end in one.finish().answer)
    assert count_requests(calls) == 5
    assert ends == {("paid", "done"): 5, ("paid", "DREAM_OVERTAKEN"): 11}, "all others wait, and none uses rules"


# -- schemas -----------------------------------------------------------------------------------------------


@pytest.mark.spec("J8", "J9")
def test_jobs_stay_in_the_tenants_schema_with_any_search_path(tenants: Tenants, postgres_admin: str) -> None:
    with tenants.fresh() as url, psycopg.connect(postgres_admin, autocommit=True) as admin:
        name = user_of(url)
        admin.execute(f"ALTER ROLE {name} SET search_path = pg_catalog".encode())
        fill(url, "ada")
        run_worker_once(url)
        assert dreams_in(url) == ["done"]
        schemas = admin.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'procrastinate_jobs'").fetchall()
        assert (name,) in schemas
        assert ("public",) not in schemas


def test_a_schema_is_named_safely_in_each_statement() -> None:
    connector = TenantConnector("postgresql://user@127.0.0.1/none", 'a "b" 100%\\1', max_connections=1)
    statement = connector.qualify("SELECT procrastinate_finish_job_v1(%(job_id)s)")
    assert statement == 'SELECT "a ""b"" 100%%\\1".procrastinate_finish_job_v1(%(job_id)s)'


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
        recovered, _ = jobs.recover_stalled(dead_after=30, max_seconds=900, max_attempts=5)
        assert sorted(job.task for job in recovered) == sorted(["another", task])
        rows = connection.execute("SELECT task_name, status FROM procrastinate_jobs ORDER BY task_name").fetchall()
    assert rows == sorted([("another", "todo"), (task, "todo")])
