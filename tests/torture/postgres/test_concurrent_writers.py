"""Many clients of one tenant: no lost update, no deadlock, and every conflict is resolved.

The tables of faults call this P31 and, for processes that create or migrate a schema, M36.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable

import psycopg
import pytest
from torture.harness import RunningActor, ask, in_threads, run_together
from torture.postgres.actors import STREAM, census, count_up, cross, names, now, open_fresh, page_draft, put
from torture.postgres.conftest import OwnServer

from inmind import Memory
from inmind.errors import Conflict, ReadOnly, StoreBusy
from inmind.store.postgres import PostgresStore
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import MIGRATIONS
from inmind.store.protocol import Batch

PROCESSES, THREADS = 4, 4


def race(url: str, *, each: int) -> None:
    clients = [RunningActor(count_up, url=url, threads=THREADS, each=each) for _ in range(PROCESSES)]
    decided = sum(outcome.answer for outcome in run_together(clients))
    total = PROCESSES * THREADS * each
    assert ask(census, url=url) == [str(number) for number in range(1, total + 1)]
    assert decided > total, "no conflict happened"
    print(f"{total} steps by {PROCESSES * THREADS} clients, {decided - total} retried")


@pytest.mark.spec("P31", "A3", "J2")
def test_sixteen_clients_increment_one_number_without_lost_updates(tenant_url: str) -> None:
    race(tenant_url, each=4)


@pytest.mark.torture
@pytest.mark.spec("P31", "A3", "J2")
def test_sixteen_clients_increment_one_number_for_long(tenant_url: str) -> None:
    race(tenant_url, each=100)


@pytest.mark.spec("P31")
@pytest.mark.parametrize("existing", [True, False], ids=["old streams", "new streams"])
def test_appends_to_two_streams_in_either_order_do_not_deadlock(own: OwnServer, existing: bool) -> None:
    """The server detects a deadlock after ten milliseconds here, and would log it."""
    url, each, deadlocks = own.tenant(f"cross {existing}"), 30, own.server.log.count("deadlock detected")
    store = PostgresStore.open(url)
    if existing:
        put(store, "first", keyed=False, stream="resource/left", companion="resource/right")
    store.close()
    ways = [("resource/left", "resource/right"), ("resource/right", "resource/left")] * 2
    pairs = 1 if existing else each
    actors = [
        RunningActor(cross, url=url, first=first, second=second, name=f"w{n}", each=each // pairs, pairs=pairs)
        for n, (first, second) in enumerate(ways)
    ]
    run_together(actors)
    for pair in range(pairs):
        left_names, right_names = (ask_names(url, f"resource/{side}{pair or ''}") for side in ("left", "right"))
        assert left_names == right_names
        assert len(set(left_names)) == len(left_names) == 4 * each // pairs + existing
    assert own.server.log.count("deadlock detected") == deadlocks


def ask_names(url: str, stream: str) -> list[str]:
    store = PostgresStore.open(url)
    try:
        return names(store, stream)
    finally:
        store.close()


class Boxes:
    """Two numbers in rows, changed inside `Database.write` by statements that conflict."""

    def __init__(self, url: str, *, seconds: float = 20) -> None:
        self.store = PostgresStore.open(url, seconds=seconds)
        self.database = self.store.database
        self.calls = 0
        self._execute("CREATE TABLE tenant.boxes (id integer PRIMARY KEY, number integer NOT NULL)")
        self._execute("INSERT INTO tenant.boxes VALUES (1, 0), (2, 0)")

    def numbers(self) -> list[int]:
        query = self.database.in_schema("SELECT number FROM tenant.boxes ORDER BY id")
        rows: list[tuple[int]] = self.database.read(lambda connection: connection.execute(query).fetchall())
        return [number for (number,) in rows]

    def add_to_both(self, order: tuple[int, int], meet: Callable[[], None]) -> None:
        """Add one to both, in this order; wait for the other in between."""
        add = self.database.in_schema("UPDATE tenant.boxes SET number = number + 1 WHERE id = $1")

        def act(connection: Connection) -> None:
            self.calls += 1
            with connection.transaction():
                connection.execute(add, (order[0],))
                meet()
                connection.execute(add, (order[1],))

        self.database.write(act)

    def read_then_write(self) -> None:
        """Add one to the value of a snapshot: the server refuses it after a concurrent change."""
        select = self.database.in_schema("SELECT number FROM tenant.boxes WHERE id = 1")
        update = self.database.in_schema("UPDATE tenant.boxes SET number = $1 WHERE id = 1")

        def act(connection: Connection) -> None:
            self.calls += 1
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                connection.execute(update, (connection.execute(select).get + 1,))

        self.database.write(act)

    def _execute(self, statement: str) -> None:
        query = self.database.in_schema(statement)
        self.database.write(lambda connection: connection.execute(query))


@pytest.mark.spec("P31")
def test_one_of_two_deadlocked_transactions_is_retried(own: OwnServer) -> None:
    """The test causes the deadlock (40P01), since inmind does not."""
    boxes, deadlocks = Boxes(own.tenant("circle")), own.server.log.count("deadlock detected")
    barrier = threading.Barrier(2)

    def meet() -> None:
        if boxes.calls <= 2:
            barrier.wait(timeout=10)

    in_threads(lambda order: boxes.add_to_both(order, meet), [(1, 2), (2, 1)])
    boxes.store.close()
    assert own.server.log.count("deadlock detected") == deadlocks + 1, "no deadlock happened"
    assert boxes.calls == 3
    assert ask_boxes(own, "circle") == [2, 2]


@pytest.mark.spec("P31")
def test_many_serialization_failures_end_with_each_transaction_done_once(own: OwnServer) -> None:
    """40001, repeatedly, in eight threads at once."""
    boxes, each = Boxes(own.tenant("storm")), 5

    def many(_: int) -> None:
        for _ in range(each):
            boxes.read_then_write()

    in_threads(many, range(8))
    boxes.store.close()
    assert boxes.calls > 8 * each, "no transaction was retried"
    assert ask_boxes(own, "storm")[0] == 8 * each
    print(f"{8 * each} done, {boxes.calls - 8 * each} retried")


@pytest.mark.spec("P31")
@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_a_transaction_that_always_fails_to_serialize_reports_a_busy_store(own: OwnServer, code: str) -> None:
    boxes = Boxes(own.tenant(f"never {code}"), seconds=2)
    began = time.monotonic()

    def act(connection: Connection) -> None:
        boxes.calls += 1
        connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{code}'; END $$")

    with pytest.raises(StoreBusy) as caught:
        boxes.database.write(act)
    assert caught.type is StoreBusy
    # The last attempt may have timed out.
    assert re.search("concurrent changes of the same rows: not now|the statement timed out", str(caught.value))
    assert time.monotonic() - began < 4
    assert 5 < boxes.calls <= 20
    with pytest.raises(StoreBusy) as caught, boxes.database.transaction() as connection:
        act(connection)
    assert caught.type is StoreBusy
    put(boxes.store, "as ever", keyed=False)
    boxes.store.close()


def ask_boxes(own: OwnServer, tenant: str) -> list[object]:
    return [number for (number,) in own.query(f'SELECT number FROM "{tenant}".boxes ORDER BY id')]


@pytest.mark.spec("M36")
def test_one_of_several_processes_that_open_a_new_schema_creates_it(tenant_url: str) -> None:
    opening = [RunningActor(open_fresh, url=tenant_url) for _ in range(4)]
    assert [outcome.answer for outcome in run_together(opening)] == [list(MIGRATIONS)] * 4
    assert len(set(ask(census, url=tenant_url))) == 4


@pytest.mark.spec("M36")
def test_a_newer_schema_is_read_and_not_written(tenant_url: str) -> None:
    store = PostgresStore.open(tenant_url)
    put(store, "of old", keyed=False)
    store.close()
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        steps = f'"{connection.info.user}".inmind_steps'
        connection.execute(f"INSERT INTO {steps} VALUES ({len(MIGRATIONS) + 1}, 'of tomorrow')".encode())
    newer = PostgresStore.open(tenant_url)
    assert names(newer) == ["of old"]
    for key in (True, False):
        with pytest.raises(ReadOnly, match="upgrade inmind"):
            put(newer, "new", keyed=key)
    with pytest.raises(ReadOnly), newer.bulk_import():
        pass
    with newer.consistent_read():
        assert names(newer) == ["of old"]
    newer.close()
    assert ask(census, url=tenant_url) == ["of old"]


@pytest.mark.spec("M36")
def test_an_open_store_refuses_writes_after_a_newer_inmind_migrated_it(tenant_url: str) -> None:
    stores = [PostgresStore.open(tenant_url) for _ in range(3)]
    for store in stores:
        put(store, "of old", keyed=False)
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        steps = f'"{connection.info.user}".inmind_steps'
        connection.execute(f"INSERT INTO {steps} VALUES ({len(MIGRATIONS) + 1}, 'of tomorrow')".encode())
    keyed, unkeyed, adopting = stores
    for store, key in ((keyed, True), (unkeyed, False)):
        for _ in range(2):
            with pytest.raises(ReadOnly, match=f"schema {len(MIGRATIONS) + 1}.*upgrade inmind"):
                put(store, "new", keyed=key)
    with pytest.raises(ReadOnly, match="upgrade inmind"), adopting.bulk_import():
        pass
    for store in stores:
        assert names(store) == ["of old"] * 3
        store.close()


@pytest.mark.spec("M36", "J8")
def test_locks_outside_a_schema_do_not_block_its_creation(own: OwnServer) -> None:
    url = own.tenant("held up", options="-c lock_timeout=5s")
    with psycopg.connect(own.tenant("other")) as other:
        for text in ("inmind held up", "inmind index of held up"):
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [text])
        with Memory.open(url, embedder=None) as memory:
            memory.resource("ada").note("The harbour is in the north")
            assert memory.resource("ada").search("harbour")


@pytest.mark.spec("K17")
def test_one_of_several_appends_at_one_version_wins(tenant_url: str) -> None:
    """Nothing of the others is stored."""
    store = PostgresStore.open(tenant_url)
    barrier = threading.Barrier(8)

    def write(number: int) -> str | tuple[str, int, int]:
        barrier.wait(timeout=10)
        try:
            store.append(Batch(STREAM, [page_draft(f"n{number}")], 0), at=now())
        except Conflict as conflict:
            return conflict.stream, conflict.expected, conflict.actual
        return f"n{number}"

    results = in_threads(write, range(8))
    store.close()
    assert results.count((STREAM, 0, 1)) == 7
    assert ask(census, url=tenant_url) == [name for name in results if isinstance(name, str)]
