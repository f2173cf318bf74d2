"""Faults around workers on a database are found and logged, and the work continues."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres import wait_until
from procrastinate.exceptions import ConnectorException
from torture.harness import TIMEOUT_SECONDS
from torture.stages import PaidModel
from torture.workers import count_requests, fill, open_worker

from inmind import Memory
from inmind.apps.worker.postgres import DatabaseWorker, TenantConnector
from inmind.apps.worker.status import get_status
from inmind.errors import ReadOnly
from inmind.jobs.upkeep import is_maintained
from inmind.memory.memory import upkeep_runner_of
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.jobs import Jobs, procrastinate_migrations
from inmind.store.postgres.store import ServerClock
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores

FETCH = "SELECT id FROM procrastinate_fetch_job_v2(NULL, %s)"


@contextmanager
def run_in_thread(worker: DatabaseWorker, *, every: float = 0.5) -> Generator[None]:
    thread = threading.Thread(target=worker.run, args=(every,))
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(TIMEOUT_SECONDS)
    assert not thread.is_alive()


def dream_statuses(url: str, resource: str = "ada") -> list[str]:
    with Memory.open(url, embedder=None) as memory:
        return [dream.status for dream in memory.resource(resource).dreams()]


def has_dreamt(url: str, resource: str = "ada") -> Callable[[], bool]:
    return lambda: dream_statuses(url, resource) == ["done"]


@pytest.mark.spec("J9")
def test_a_dead_worker_blocks_no_other(tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any]) -> None:
    """A dead worker holds all jobs of the queue: those of an owner and those of the tenant."""
    fill(tenant_url, "ada")
    jobs.enqueue_due(datetime.now(UTC))
    jobs.enqueue("embed")
    (dead,) = sql.execute("SELECT worker_id FROM procrastinate_register_worker_v1()").fetchall()[0]
    assert all(sql.execute(FETCH, [dead]).fetchall()[0][0] for _ in range(2))
    sql.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    with open_worker(tenant_url) as worker, run_in_thread(worker):
        wait_until(has_dreamt(tenant_url), "the jobs are not resumed", seconds=TIMEOUT_SECONDS)


@pytest.mark.spec("J9", "P33")
def test_a_job_whose_end_was_not_recorded_is_recovered_by_its_worker(
    tenant_url: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.apps.worker.tasks.REPORT_SECONDS", 0.3)
    cut: list[str] = []
    original = TenantConnector.execute_query_async

    async def fail_once(connector: TenantConnector, query: str, **arguments: Any) -> None:
        if "finish_job" in query and not cut:
            cut.append(query)
            raise ConnectorException("cut")
        await original(connector, query, **arguments)

    monkeypatch.setattr(TenantConnector, "execute_query_async", fail_once)
    fill(tenant_url, "ada")
    unfinished = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    settings = {"worker.stalled_seconds": 60.0}  # the worker is alive: no other recovers its job
    monkeypatch.setattr(DatabaseWorker, "_stalled_seconds", 0.4)
    with open_worker(tenant_url, settings=settings) as worker, run_in_thread(worker):
        wait_until(lambda: bool(cut), "no job has ended", seconds=TIMEOUT_SECONDS)
        wait_until(
            lambda: sql.execute(unfinished).fetchone() == (0,), "the end is not recorded", seconds=TIMEOUT_SECONDS
        )
    assert dream_statuses(tenant_url) == ["done"]


@pytest.mark.spec("J9")
@pytest.mark.usefixtures("jobs")
def test_failures_outside_the_queue_are_logged(
    tenant_url: str, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tenant_url, "ada")
    sql.execute("ALTER TABLE tending RENAME COLUMN reason TO why")

    def is_logged() -> bool:
        return any("look_around failed" in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.WARNING, "inmind"), open_worker(tenant_url) as worker, run_in_thread(worker):
        wait_until(is_logged, "the failure is not logged", seconds=TIMEOUT_SECONDS)
        sql.execute("ALTER TABLE tending RENAME COLUMN why TO reason")
        wait_until(has_dreamt(tenant_url), "the worker does not continue", seconds=TIMEOUT_SECONDS)


def test_one_worker_per_interval_claims_the_scan(jobs: Jobs) -> None:
    assert [jobs.claim_scan(60), jobs.claim_scan(60), jobs.claim_scan(0)] == [True, False, True]


@pytest.mark.spec("J8", "J9")
def test_no_other_schema_can_block_the_jobs(
    tenant_url: str, jobs: Jobs, postgres_admin: str, sql: psycopg.Connection[Any]
) -> None:
    fill(tenant_url, "ada")
    with psycopg.connect(postgres_admin) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"inmind {jobs.schema}"])
        sql.execute("SET lock_timeout = '1s'")
        assert jobs.enqueue_due(datetime.now(UTC)) == 1
        jobs.enqueue("embed")


@pytest.mark.spec("J9")
def test_delayed_jobs_do_not_count_towards_the_queue_limit(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.store.postgres.jobs.MAX_QUEUED", 1)
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1
    fill(tenant_url, "ben")
    assert jobs.enqueue_due(datetime.now(UTC)) == 0
    sql.execute("UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 hour'")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1


# -- order -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B47", "J9")
def test_with_limited_dreams_the_longest_waiting_resource_is_next(tenant_url: str) -> None:
    clock, owners = ManualClock(), "abc"
    for hour in range(3):
        with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
            for owner in owners:
                memory.resource(owner).note(f"Fact {hour} about {owner} and its boats")
        with open_worker(tenant_url, clock=clock, settings={"limits.dreams_per_hour": 1}) as worker:
            worker.run_once()
        clock.advance(seconds=3_600)
    assert [len(dream_statuses(tenant_url, owner)) for owner in owners] == [1] * 3


@pytest.mark.spec("B47", "J9")
def test_with_limited_calls_dreams_wait_and_none_uses_rules(tenant_url: str, tmp_path: Path) -> None:
    clock, owners, model = ManualClock(), ["ada", "ben", "cy"], PaidModel(str(tmp_path / "calls"))
    with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
        for owner in owners:
            memory.resource(owner).note(f"Just so, {owner}")
    for minute in range(1, 4):
        with open_worker(tenant_url, clock=clock, model=model, settings={"limits.model_calls_per_minute": 1}) as worker:
            worker.run_once()
        assert count_requests(tmp_path / "calls") == minute
        clock.advance(seconds=60)
    with Memory.open(tenant_url, embedder=None) as memory:
        outcomes = [(dream.by, dream.status) for owner in owners for dream in memory.resource(owner).dreams()]
    assert outcomes == [("paid", "done")] * 3


@pytest.mark.spec("B47", "J9")
def test_waiting_dreams_are_enqueued_up_to_the_free_limit(tenant_url: str, jobs: Jobs) -> None:
    now = datetime.now(UTC)
    fill(tenant_url, "ada", "ben", "cy")
    for minutes, owner in enumerate(("cy", "ada", "ben")):
        at = now - timedelta(minutes=9 - minutes)
        jobs.mark_maintained(owner, position=10**9, at=at, due=now, waits_for_dream=True)
    assert jobs.enqueue_due(now, 0) == 0
    assert [jobs.dreams_ahead(owner, 5) for owner in ("cy", "ada", "ben", "dee")] == [0, 1, 2, 3]
    assert jobs.enqueue_due(now, 2) == 2
    jobs.mark_maintained("cy", position=10**9, at=now, due=now + timedelta(hours=1))
    assert [jobs.dreams_ahead(owner, 1) for owner in ("ada", "ben")] == [0, 1]


# -- continued work ----------------------------------------------------------------------------------------


@pytest.mark.spec("G3")
def test_a_round_continues_where_the_last_one_stopped(home: Path) -> None:
    names = ["ada", "ben", "cy"]
    with Memory.open(home, embedder=None) as memory:
        for name in names:
            memory.resource(name).note("Just so")
        upkeep = upkeep_runner_of(memory)
        rounds = [upkeep.run(0.0, shared=True) for _ in names]
        assert [list(result.consolidated) for result in rounds] == [[name] for name in names]
        assert [result.finished for result in rounds] == [False, False, True]


@pytest.mark.spec("G3", "J9")
def test_an_interrupted_consolidation_is_continued_by_the_next_worker(
    tenant_url: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.jobs.consolidation.BATCH_SIZE", 2)
    clock, settings = ManualClock(), {"dream.enabled": False}
    with (
        Memory.open(tenant_url, embedder=None, settings=settings, clock=clock) as one,
        Memory.open(tenant_url, embedder=None, settings=settings, clock=clock) as other,
    ):
        one.session("talk", resource="ada").add([{"role": "user", "content": f"The boat {n} is red"} for n in range(6)])
        upkeep_runner_of(one).search.engine.catch_up(["ada"])
        sql.execute("UPDATE crystals SET importance = 0.1")
        clock.advance(seconds=400 * 86_400)
        rounds = [
            upkeep_runner_of(memory).maintain("ada", 0.0, shared=True).done for memory in (one, other, other, one)
        ]
    assert [round.consolidated["ada"].finished for round in rounds] == [False, False, False, True]


@pytest.mark.spec("J9")
def test_a_running_worker_uses_changed_settings(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.edit(memory.page("config.toml"), "[dream]\nenabled = false\n")
    fill(tenant_url, "ada")
    with open_worker(tenant_url) as worker, run_in_thread(worker):
        wait_until(lambda: not count_due_owners(tenant_url), "ada is not maintained", seconds=TIMEOUT_SECONDS)
        assert dream_statuses(tenant_url) == []
        with Memory.open(tenant_url, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), "[dream]\nenabled = true\n")
        fill(tenant_url, "ada")
        wait_until(has_dreamt(tenant_url), "the new settings are not used", seconds=TIMEOUT_SECONDS)


def count_due_owners(url: str) -> int:
    store = PostgresStore.open(url)
    jobs = Jobs(store.database)
    due = jobs.count_due(datetime.now(UTC))[0] if jobs.tables_exist else 1
    store.close()
    return due


# -- clocks ------------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "K20")
@pytest.mark.parametrize("off", [120, -120])
def test_the_servers_clock_replaces_a_wrong_local_clock(off: int, caplog: pytest.LogCaptureFixture) -> None:
    noon = datetime(2026, 3, 12, 12, tzinfo=UTC)
    local_time = [noon + timedelta(seconds=off)]
    clock = ServerClock(lambda: noon, lambda: local_time[0])
    clock.synchronize()
    clock.synchronize()
    assert clock() == noon
    assert [record.getMessage().split(" s; using")[0].split()[-1] for record in caplog.records] == [str(off)]
    local_time[0] = noon + timedelta(seconds=1)  # the local clock was corrected
    clock.synchronize()
    assert clock() == local_time[0]


# -- status ------------------------------------------------------------------------------------------------


def test_due_resources_are_counted_up_to_a_limit(tenant_url: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inmind.apps.worker.status.MAX_COUNT", 2)
    fill(tenant_url, "ada", "ben")
    with Memory.open(tenant_url, embedder=None) as memory:
        assert get_status(upkeep_runner_of(memory), jobs).due == 2
    fill(tenant_url, "cy", "dee", "eve")
    with Memory.open(tenant_url, embedder=None) as memory:
        assert get_status(upkeep_runner_of(memory), jobs).due == 3


def test_a_stopped_worker_reports_no_queue_metrics(tenant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters read metrics once more when the program ends."""
    callbacks: list[Callable[[], Mapping[str, float]]] = []
    monkeypatch.setattr("inmind.core.metrics.observe_queue", callbacks.append)
    with open_worker(tenant_url) as worker, run_in_thread(worker):
        wait_until(lambda: bool(callbacks), "no callback was registered", seconds=TIMEOUT_SECONDS)
        assert callbacks[0]().keys() == {"waiting", "running", "lag"}
    assert callbacks[0]() == {}


# -- versions of procrastinate -----------------------------------------------------------------------------


def test_a_newer_queue_schema_is_left_alone_and_an_older_one_is_migrated(
    jobs: Jobs, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("UPDATE engine SET step = %s", [procrastinate_migrations()[-2]])
    function = "procrastinate_trigger_function_status_events_update_v1"  # created by the last migration
    sql.execute(f"DROP FUNCTION {function} CASCADE".encode())
    jobs.create_tables()
    assert sql.execute("SELECT proconfig IS NOT NULL FROM pg_proc WHERE proname = %s", [function]).fetchone() == (True,)
    assert sql.execute("SELECT step FROM engine").fetchall() == [(procrastinate_migrations()[-1],)]
    sql.execute("UPDATE engine SET step = '99.00.00_01_beyond', version = '99.0'")
    with pytest.raises(ReadOnly, match=r"belongs to procrastinate 99\.0"):
        jobs.create_tables()


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("name", ["", "default", "\x01private", "ada", "Default", " "])
def test_sql_and_python_agree_on_maintained_names(sql: psycopg.Connection[Any], name: str) -> None:
    assert sql.execute("SELECT is_tended(%s)", [name]).fetchone() == (is_maintained(name),)
