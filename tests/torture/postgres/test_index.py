"""The index in PostgreSQL: concurrent indexing, kills, and damage during use.

Acknowledged content is always found again, and only once.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from builders import user
from postgres import wait_until
from psycopg import sql
from torture import searching
from torture.harness import RunningActor, ask, run_together, seeded_random
from torture.test_index import damage_used_index

from inmind import Memory

BACKLOG = 1_200
"""More than two batches."""


@contextmanager
def in_schema(url: str, *, autocommit: bool = True) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(connection.info.user)))
        connection.autocommit = autocommit
        yield connection


def create_backlog(url: str) -> list[str]:
    """Much content that is not indexed yet."""
    with Memory.open(url, embedder=None) as memory:
        session = memory.session("s", resource="ada", cwd="/w")
        session.add([user(f"The ferry has made trip {n}") for n in range(BACKLOG)])
        last = session.state.seq
    return [f"session/s#{seq}" for seq in range(last - BACKLOG + 1, last + 1)]


def assert_indexed_once(url: str, ids: list[str]) -> None:
    with in_schema(url) as connection:
        crystals = connection.execute("SELECT event FROM crystals ORDER BY made").fetchall()
        passages = connection.execute("SELECT count(*), count(DISTINCT number) FROM passages").fetchone()
        counted = connection.execute("SELECT sum(passages) FROM resources").fetchone()
    assert [event for (event,) in crystals] == ids
    assert passages == (len(ids), len(ids))
    assert counted == (len(ids),)


@pytest.mark.spec("J2", "M39")
def test_several_processes_that_index_at_once_index_nothing_twice(tenant_url: str) -> None:
    ids = create_backlog(tenant_url)
    running = [RunningActor(searching.search, home=tenant_url, query="ferry trip 7", resource="ada") for _ in range(3)]
    results = [one.finish().answer for one in running]
    assert results[0] == results[1] == results[2]
    assert results[0][0] == ids[7]
    assert_indexed_once(tenant_url, ids)


@pytest.mark.spec("J2")
def test_every_process_finds_its_new_notes(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None):
        pass
    run_together([RunningActor(searching.note_and_search, home=tenant_url, name=f"n{n}", number=12) for n in range(3)])


@pytest.mark.spec("J1", "M39")
@pytest.mark.parametrize("table", ["crystals", "passages", "owners"])
def test_the_next_process_completes_the_index_after_a_kill(tenant_url: str, table: str) -> None:
    """It is blocked at a table in its second batch, and killed there."""
    ids = create_backlog(tenant_url)
    ask(searching.search, home=tenant_url, query="nothing of the kind", resource="bob")  # creates the tables
    with in_schema(tenant_url, autocommit=False) as holder:
        if table == "owners":
            holder.execute("SELECT FROM owners WHERE name = 'ada' FOR UPDATE")
        else:
            holder.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE".encode())
        killed = RunningActor(searching.search, home=tenant_url, query="ferry", resource="ada")
        with in_schema(tenant_url) as observer:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = current_user"
            wait_until(lambda: observer.execute(waits).fetchone() == (1,), "it did not reach that table")
        killed.kill()
        assert killed.finish().killed
    assert ask(searching.search, home=tenant_url, query="ferry trip 7", resource="ada")[0] == ids[7]
    assert_indexed_once(tenant_url, ids)


def kill_searching_processes(url: str, *, kills: int, rng: random.Random) -> None:
    acknowledged: list[str] = []
    for number in range(kills):
        writer = RunningActor(searching.note_and_search_forever, home=url, name=f"k{number}")
        for _ in range(rng.randrange(1, 8)):
            writer.receive_until("noted")
        writer.kill()
        outcome = writer.finish()
        assert outcome.killed, f"it ended before it could be killed: {outcome.output}"
        acknowledged += [id for (id,) in outcome.all("noted")]
    assert ask(searching.known_ids, home=url, ids=acknowledged) == acknowledged


@pytest.mark.spec("J1", "M39")
def test_a_process_killed_during_a_search_damages_nothing(tenant_url: str) -> None:
    kill_searching_processes(tenant_url, kills=4, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J1", "M39")
def test_many_processes_killed_during_searches_damage_nothing(tenant_url: str) -> None:
    kill_searching_processes(tenant_url, kills=100, rng=seeded_random())


DAMAGE = (
    "DROP TABLE IF EXISTS crystals",
    "DROP TABLE IF EXISTS passages CASCADE",
    "DROP TABLE IF EXISTS followed",
    "DROP TABLE IF EXISTS resources, series, shown, speakers",
    "TRUNCATE resources, crystals, series, passages, shown, speakers, followed",
    "UPDATE followed SET version = 1",
)


def damage_index(url: str, *, times: int) -> None:
    rng, damages = seeded_random(), count()

    def damage() -> None:
        with in_schema(url) as connection:
            try:
                connection.execute(rng.choice(DAMAGE).encode())
                next(damages)
            except (psycopg.errors.UndefinedTable, psycopg.errors.DeadlockDetected):
                pass  # it is being rebuilt

    damage_used_index(url, damage, processes=2, times=times)
    assert next(damages), "no damage was done"


@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_while_several_processes_use_it_recovers_for_all(tenant_url: str) -> None:
    damage_index(tenant_url, times=5)


@pytest.mark.torture
@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_repeatedly_recovers(tenant_url: str) -> None:
    damage_index(tenant_url, times=100)
