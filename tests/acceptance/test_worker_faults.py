"""Workers on a database where something goes wrong around them: it is found, told, and gone on from."""

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
from torture.harness import SECONDS
from torture.stages import PaidModel
from torture.workers import a_worker, asked, fill

from inmind import Memory
from inmind.apps.worker.postgres import DatabaseWorker, TenantConnector
from inmind.apps.worker.status import get_status
from inmind.errors import ReadOnly
from inmind.jobs.upkeep import is_maintained
from inmind.memory.memory import upkeep_runner_of
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.clock import ServerClock
from inmind.store.postgres.jobs import Jobs, procrastinate_migrations
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores

FETCH = "SELECT id FROM procrastinate_fetch_job_v2(NULL, %s)"


@contextmanager
def working(worker: DatabaseWorker, *, every: float = 0.5) -> Generator[None]:
    thread = threading.Thread(target=worker.run, args=(every,))
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join(SECONDS)
    assert not thread.is_alive()


def dreamt(url: str, resource: str = "ada") -> list[str]:
    with Memory.open(url, embedder=None) as memory:
        return [dream.status for dream in memory.resource(resource).dreams()]


def is_dreamt(url: str, resource: str = "ada") -> Callable[[], bool]:
    return lambda: dreamt(url, resource) == ["done"]


@pytest.mark.spec("J9")
def test_a_dead_worker_blocks_no_other(tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any]) -> None:
    """All that stands in the queue is held by somebody dead: jobs of one owner, and those of the whole tenant."""
    fill(tenant_url, "ada")
    jobs.enqueue_due(datetime.now(UTC))
    jobs.enqueue("embed")
    (dead,) = sql.execute("SELECT worker_id FROM procrastinate_register_worker_v1()").fetchall()[0]
    assert all(sql.execute(FETCH, [dead]).fetchall()[0][0] for _ in range(2))
    sql.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    with a_worker(tenant_url) as worker, working(worker):
        wait_until(is_dreamt(tenant_url), "nobody goes on", seconds=SECONDS)


@pytest.mark.spec("J9", "P33")
def test_a_job_whose_end_could_not_be_told_is_found_by_its_own_worker(
    tenant_url: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.apps.worker.tasks.REPORT_SECONDS", 0.3)
    cut: list[str] = []
    telling = TenantConnector.execute_query_async

    async def cutting(connector: TenantConnector, query: str, **arguments: Any) -> None:
        if "finish_job" in query and not cut:
            cut.append(query)
            raise ConnectorException("cut")
        await telling(connector, query, **arguments)

    monkeypatch.setattr(TenantConnector, "execute_query_async", cutting)
    fill(tenant_url, "ada")
    left = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    settings = {"worker.stalled_seconds": 60.0}  # it is alive, and nobody else would look
    monkeypatch.setattr(DatabaseWorker, "_stalled_seconds", 0.4)
    with a_worker(tenant_url, settings=settings) as worker, working(worker):
        wait_until(lambda: bool(cut), "no job came to its end", seconds=SECONDS)
        wait_until(lambda: sql.execute(left).fetchone() == (0,), "it is never told", seconds=SECONDS)
    assert dreamt(tenant_url) == ["done"]


@pytest.mark.spec("J9")
@pytest.mark.usefixtures("jobs")
def test_what_fails_outside_the_queue_is_told(
    tenant_url: str, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    fill(tenant_url, "ada")
    sql.execute("ALTER TABLE tending RENAME COLUMN reason TO why")

    def told() -> bool:
        return any("look_around failed" in record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.WARNING, "inmind"), a_worker(tenant_url) as worker, working(worker):
        wait_until(told, "nobody is told", seconds=SECONDS)
        sql.execute("ALTER TABLE tending RENAME COLUMN why TO reason")
        wait_until(is_dreamt(tenant_url), "it does not go on", seconds=SECONDS)


def test_of_all_who_look_around_one_does_and_the_next_after_as_long_as_was_said(jobs: Jobs) -> None:
    assert [jobs.claim_scan(60), jobs.claim_scan(60), jobs.claim_scan(0)] == [True, False, True]


@pytest.mark.spec("J8", "J9")
def test_no_other_schema_can_block_the_jobs(
    tenant_url: str, jobs: Jobs, postgres_admin: str, sql: psycopg.Connection[Any]
) -> None:
    fill(tenant_url, "ada")
    with psycopg.connect(postgres_admin) as stranger:
        stranger.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"inmind {jobs.schema}"])
        sql.execute("SET lock_timeout = '1s'")
        assert jobs.enqueue_due(datetime.now(UTC)) == 1
        jobs.enqueue("embed")


@pytest.mark.spec("J9")
def test_jobs_that_are_tried_again_later_take_no_room_from_the_others(
    tenant_url: str, jobs: Jobs, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.store.postgres.jobs.MAX_QUEUED", 1)
    fill(tenant_url, "ada")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1
    fill(tenant_url, "ben")
    assert jobs.enqueue_due(datetime.now(UTC)) == 0
    sql.execute("UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 hour'")
    assert jobs.enqueue_due(datetime.now(UTC)) == 1


# -- whose turn it is --------------------------------------------------------------------------------------


@pytest.mark.spec("B47", "J9")
def test_with_limited_dreams_the_longest_waiting_resource_is_next(tenant_url: str) -> None:
    clock, owners = ManualClock(), "abc"
    for hour in range(3):
        with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
            for owner in owners:
                memory.resource(owner).note(f"Fact {hour} about {owner} and its boats")
        with a_worker(tenant_url, clock=clock, settings={"limits.dreams_per_hour": 1}) as worker:
            worker.run_once()
        clock.advance(seconds=3_600)
    assert [len(dreamt(tenant_url, owner)) for owner in owners] == [1] * 3


@pytest.mark.spec("B47", "J9")
def test_where_calls_of_a_minute_are_limited_dreams_wait_their_turn_and_none_goes_by_rules(
    tenant_url: str, tmp_path: Path
) -> None:
    clock, owners, model = ManualClock(), ["ada", "ben", "cy"], PaidModel(str(tmp_path / "calls"))
    with Memory.open(tenant_url, embedder=None, clock=clock) as memory:
        for owner in owners:
            memory.resource(owner).note(f"Just so, {owner}")
    for minute in range(1, 4):
        with a_worker(tenant_url, clock=clock, model=model, settings={"limits.model_calls_per_minute": 1}) as worker:
            worker.run_once()
        assert asked(tmp_path / "calls") == minute
        clock.advance(seconds=60)
    with Memory.open(tenant_url, embedder=None) as memory:
        made = [(dream.by, dream.status) for owner in owners for dream in memory.resource(owner).dreams()]
    assert made == [("paid", "done")] * 3


@pytest.mark.spec("B47", "J9")
def test_where_dreams_wait_for_room_no_more_are_woken_than_there_is_room_for(tenant_url: str, jobs: Jobs) -> None:
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


# -- what has to go on ------------------------------------------------------------------------------------


@pytest.mark.spec("G3")
def test_a_round_goes_on_where_the_last_one_had_no_more_time_and_comes_to_an_end(home: Path) -> None:
    names = ["ada", "ben", "cy"]
    with Memory.open(home, embedder=None) as memory:
        for name in names:
            memory.resource(name).note("Just so")
        house = upkeep_runner_of(memory)
        rounds = [house.run(0.0, shared=True) for _ in names]
        assert [list(done.consolidated) for done in rounds] == [[name] for name in names]
        assert [done.finished for done in rounds] == [False, False, True]


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
        upkeep_runner_of(one).search().catch_up(["ada"])
        sql.execute("UPDATE crystals SET importance = 0.1")
        clock.advance(seconds=400 * 86_400)
        done = [upkeep_runner_of(memory).maintain("ada", 0.0, shared=True).done for memory in (one, other, other, one)]
    assert [round.consolidated["ada"].finished for round in done] == [False, False, False, True]


@pytest.mark.spec("J9")
def test_a_worker_sees_settings_that_are_changed_while_it_works(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.edit(memory.page("config.toml"), "[dream]\nenabled = false\n")
    fill(tenant_url, "ada")
    with a_worker(tenant_url) as worker, working(worker):
        wait_until(lambda: not looked_after(tenant_url), "nobody looks after her", seconds=SECONDS)
        assert dreamt(tenant_url) == []
        with Memory.open(tenant_url, embedder=None) as memory:
            memory.edit(memory.page("config.toml"), "[dream]\nenabled = true\n")
        fill(tenant_url, "ada")
        wait_until(is_dreamt(tenant_url), "it has not read them", seconds=SECONDS)


def looked_after(url: str) -> int:
    """How many are still to be."""
    store = PostgresStore.open(url)
    there = Jobs(store.database)
    due = there.count_due(datetime.now(UTC))[0] if there.tables_exist else 1
    store.close()
    return due


# -- clocks ------------------------------------------------------------------------------------------------


@pytest.mark.spec("J9", "K20")
@pytest.mark.parametrize("off", [120, -120])
def test_a_machine_whose_clock_is_wrong_goes_by_that_of_the_server(off: int, caplog: pytest.LogCaptureFixture) -> None:
    noon = datetime(2026, 3, 12, 12, tzinfo=UTC)
    shown = [noon + timedelta(seconds=off)]
    clock = ServerClock(lambda: noon, lambda: shown[0])
    clock.synchronize()
    clock.synchronize()
    assert clock() == noon
    assert [record.getMessage().split(" s; using")[0].split()[-1] for record in caplog.records] == [str(off)]
    shown[0] = noon + timedelta(seconds=1)  # somebody has set it right
    clock.synchronize()
    assert clock() == shown[0]


# -- looking -----------------------------------------------------------------------------------------------


def test_what_may_be_very_many_is_counted_as_far_as_anybody_wants_to_know(
    tenant_url: str, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inmind.apps.worker.status.MAX_COUNT", 2)
    fill(tenant_url, "ada", "ben")
    with Memory.open(tenant_url, embedder=None) as memory:
        assert get_status(upkeep_runner_of(memory), jobs).due == 2
    fill(tenant_url, "cy", "dee", "eve")
    with Memory.open(tenant_url, embedder=None) as memory:
        assert get_status(upkeep_runner_of(memory), jobs).due == 3


def test_a_queue_is_not_told_of_once_its_worker_has_left(tenant_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever exports metrics asks for the last ones when the program ends."""
    looks: list[Callable[[], Mapping[str, float]]] = []
    monkeypatch.setattr("inmind.core.metrics.observe_queue", looks.append)
    with a_worker(tenant_url) as worker, working(worker):
        wait_until(lambda: bool(looks), "nobody is told of the queue", seconds=SECONDS)
        assert looks[0]().keys() == {"waiting", "running", "lag"}
    assert looks[0]() == {}


# -- the engine --------------------------------------------------------------------------------------------


def test_a_queue_of_a_newer_engine_is_left_alone_and_an_older_one_is_brought_up(
    jobs: Jobs, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("UPDATE engine SET step = %s", [procrastinate_migrations()[-2]])
    made = "procrastinate_trigger_function_status_events_update_v1"  # anew, by the last step
    sql.execute(f"DROP FUNCTION {made} CASCADE".encode())
    jobs.create_tables()
    assert sql.execute("SELECT proconfig IS NOT NULL FROM pg_proc WHERE proname = %s", [made]).fetchone() == (True,)
    assert sql.execute("SELECT step FROM engine").fetchall() == [(procrastinate_migrations()[-1],)]
    sql.execute("UPDATE engine SET step = '99.00.00_01_beyond', version = '99.0'")
    with pytest.raises(ReadOnly, match=r"belongs to procrastinate 99\.0"):
        jobs.create_tables()


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("name", ["", "default", "\x01private", "ada", "Default", " "])
def test_the_database_agrees_on_who_is_looked_after(sql: psycopg.Connection[Any], name: str) -> None:
    assert sql.execute("SELECT is_tended(%s)", [name]).fetchone() == (is_maintained(name),)
