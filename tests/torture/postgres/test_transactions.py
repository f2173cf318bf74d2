"""Transactions: a timeout for each step, no false commit, equal isolation for every role."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from postgres import wait_until
from torture.harness import ask, in_threads
from torture.postgres.actors import STREAM, add_pages, adopt, census, names, now, put
from torture.postgres.conftest import OwnServer
from torture.postgres.test_outages import SHORT_SECONDS, opened

from inmind import Memory
from inmind.errors import StoreError, UnsafeStorage
from inmind.store.postgres import PostgresStore, database
from inmind.store.postgres.store import IMPORT_BATCH_SIZE
from inmind.store.protocol import AppendResult, Batch, Key, Receipt


def is_past(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() > until


@pytest.mark.spec("J8")
def test_a_consistent_read_may_last_longer_than_a_call(own: OwnServer) -> None:
    """Each query has its own timeout, so that reading a large memory completes."""
    with opened(own.tenant("slow"), seconds=SHORT_SECONDS) as store:
        put(store, "one", keyed=False)
        with store.consistent_read():
            for _ in range(3):
                store.database.read(lambda connection: connection.execute("SELECT pg_sleep($1)", (SHORT_SECONDS / 2,)))
            assert names(store) == ["one"]


@pytest.mark.spec("J8")
def test_an_import_may_last_longer_than_a_call(own: OwnServer) -> None:
    with opened(own.tenant("slowly"), seconds=SHORT_SECONDS) as store:
        with store.bulk_import() as adoption:
            add_pages(adoption, STREAM)
            done = AppendResult(first=1, last=3, at=now(), repeated=False)
            for name in ("one", "two"):
                wait_until(is_past(SHORT_SECONDS * 0.75), "the clock stands still")
                assert adoption.add_receipt(Receipt(stream=STREAM, key=Key(value=name, request=name), appended=done))
        assert len(names(store)) == 3


@pytest.mark.spec("P31")
def test_a_transaction_rolled_back_by_the_server_is_not_reported_as_committed(own: OwnServer) -> None:
    """COMMIT of a failed transaction returns ROLLBACK without an error."""
    with opened(own.tenant("undone")) as store:

        def write_and_fail() -> None:
            with store.database.transaction() as connection:
                connection.execute(store.database.in_schema("INSERT INTO tenant.owners (name) VALUES ('ada')"))
                with pytest.raises(psycopg.errors.DivisionByZero):
                    connection.execute("SELECT 1 / 0")

        with pytest.raises(StoreError, match="nothing was stored"):
            write_and_fail()
        assert own.query("SELECT FROM undone.owners") == []
        put(store, "as ever", keyed=False)


@pytest.mark.spec("J8")
def test_each_of_several_concurrent_imports_sees_its_own_events(tenant_url: str) -> None:
    store, both = PostgresStore.open(tenant_url), threading.Barrier(2)

    def bring(stream: str) -> int:
        with store.bulk_import() as adoption:
            both.wait(timeout=10)
            add_pages(adoption, stream)
            both.wait(timeout=10)
            return store.version(stream)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(bring, ["resource/ada", "resource/ben"])) == [3, 3]
    store.close()


@pytest.mark.spec("P30")
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_with_another_encoding_is_refused(own: OwnServer, encoding: str) -> None:
    name = encoding.lower()
    url = own.tenant(f"in {encoding}").replace("/postgres?", f"/{name}?")
    own.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    own.execute(f'GRANT CREATE ON DATABASE {name} TO "in {encoding}"')
    with pytest.raises(UnsafeStorage, match=f"{encoding}.*UTF8"):
        PostgresStore.open(url)


@pytest.mark.spec("P34")
def test_texts_do_not_depend_on_the_client_encoding_of_a_role(own: OwnServer) -> None:
    url = own.tenant("latin")
    own.execute("ALTER ROLE latin SET client_encoding = 'LATIN1'")
    for parameter in ("", "&client_encoding=LATIN1"):
        with opened(f"{url}{parameter}") as store:
            put(store, f"日本 {parameter}", keyed=False)
    assert ask(census, url=url) == ["日本 ", "日本 &client_encoding=LATIN1"]


@pytest.mark.spec("P31")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_role_with_another_isolation_level_writes_like_others(own: OwnServer, level: str) -> None:
    url = own.tenant(f"by {level}")
    own.execute(f"ALTER ROLE \"by {level}\" SET default_transaction_isolation = '{level}'")
    with opened(url, connections=8, seconds=10) as store:

        def write(name: int) -> None:
            for number in range(5):
                put(store, f"{name}-{number}", keyed=True)
            with store.database.transaction():
                put(store, f"{name} within", keyed=False, stream=f"resource/{name}")
                assert (
                    store.database.read(lambda one: one.execute("SHOW transaction_isolation").get) == "read committed"
                )
            adopt(store, f"resource/from elsewhere {name}")

        in_threads(write, range(6))
        assert len(set(names(store))) == 30
        one = Key(value="once", request="once")
        in_threads(lambda _: store.append(Batch("resource/none", [], 0), at=now(), key=one), range(6))


@pytest.mark.spec("M36", "P33")
def test_a_migration_that_waits_for_a_reader_blocks_no_other(own: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url, ours = own.tenant("older"), database.MIGRATIONS
    monkeypatch.setattr(database, "MIGRATIONS", ours[:1])
    with opened(url) as store:
        put(store, "before", keyed=False)
    monkeypatch.setattr(database, "MIGRATIONS", ours)
    waiting = "SELECT FROM pg_locks WHERE relation = 'older.owners'::regclass AND NOT granted"
    with psycopg.connect(url) as reader, ThreadPoolExecutor(1) as thread:
        reader.execute("SELECT FROM older.owners")
        opening = thread.submit(PostgresStore.open, url, seconds=20)
        wait_until(lambda: bool(own.query(waiting)), "no migration waits for the table")
        own.execute("SET lock_timeout = '5s'; SELECT FROM older.owners")
        assert not opening.done()
        reader.rollback()
        store = opening.result(timeout=20)
    put(store, "after", keyed=False)
    store.close()
    assert ask(census, url=url) == ["before", "after"]


@pytest.mark.spec("J8")
def test_an_import_sends_events_in_batches(own: OwnServer, tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", embedder=None) as memory:
        session = memory.session("of ada", resource="ada")
        for number in range(40):
            session.prepare([{"role": "user", "content": f"Look at src/file_{number}.py"}])
        memory.export(tmp_path / "all.inmind")
    with Memory.open(own.tenant("brought"), embedder=None) as memory:
        before = own.server.log.count('COPY "brought".events')
        done = memory.import_bundle(tmp_path / "all.inmind")
    sent = own.server.log.count('COPY "brought".events') - before
    assert (done.events > 100, 0 < sent <= done.events // IMPORT_BATCH_SIZE + 1) == (True, True), (done.events, sent)
