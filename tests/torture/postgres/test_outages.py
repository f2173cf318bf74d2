"""A server that is read-only, restarted, full or locked: each call ends in time.

It reports the reason, and later calls succeed. The tables of faults call this P33.
"""

from __future__ import annotations

import socket
import threading
import time
import traceback
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import psycopg
import pytest
from postgres import wait_until
from tables import each_row
from torture.harness import ask, in_threads
from torture.postgres.actors import STREAM, census, make_key, names, now, page_draft, put
from torture.postgres.conftest import SECRET, OwnServer

from inmind import Memory
from inmind.errors import InmindError, InvalidInput, ReadOnly, StoreBusy, StoreError, StoreUnavailable
from inmind.store.postgres import PostgresStore, connection
from inmind.store.protocol import Batch

SECONDS = 3.0
"""Enough for a machine that runs other tests."""

SHORT_SECONDS = 1.0
"""For calls that are expected to time out."""


@contextmanager
def opened(url: str, *, connections: int = 4, seconds: float = SECONDS) -> Generator[PostgresStore]:
    store = PostgresStore.open(url, seconds=seconds, max_connections=connections)
    try:
        yield store
    finally:
        store.close()


def refused(call: Callable[[], object], error: type[StoreError]) -> str:
    """The error, raised in time."""
    began = time.monotonic()
    with pytest.raises(error) as caught:
        call()
    assert caught.type is error
    assert time.monotonic() - began < SECONDS + 1
    return str(caught.value)


def works(call: Callable[[], object]) -> bool:
    try:
        call()
    except StoreError:
        return False
    return True


@pytest.mark.spec("P33")
def test_a_server_that_turns_read_only_can_be_read_and_recovers(own: OwnServer) -> None:
    with opened(own.tenant("turned")) as store:
        put(store, "before", keyed=False)
        own.execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        try:
            wait_until(lambda: not works(lambda: put(store, "early", keyed=True)), "it still accepts writes")
            for keyed in (True, False):
                refused(lambda keyed=keyed: put(store, "in vain", keyed=keyed), ReadOnly)
            assert names(store)[0] == "before"
            with opened(own.url("turned")) as another:
                assert names(another) == names(store)
                refused(lambda: put(another, "in vain", keyed=True), ReadOnly)
        finally:
            own.execute("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
        wait_until(lambda: works(lambda: put(store, "after", keyed=True)), "it does not recover")
    names_stored = ask(census, url=own.url("turned"))
    assert "in vain" not in names_stored
    assert (names_stored[0], names_stored[-1], names_stored.count("after")) == ("before", "after", 1)


@pytest.mark.spec("P33")
def test_a_connection_to_a_read_only_server_is_not_kept(own: OwnServer) -> None:
    """After a failover a new connection leads to the server that accepts writes."""
    with opened(own.tenant("moved")) as store:
        put(store, "before", keyed=False)
        own.execute("ALTER ROLE moved SET default_transaction_read_only = on")
        own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'moved'")
        refused(lambda: put(store, "in vain", keyed=False), ReadOnly)
        own.execute("ALTER ROLE moved RESET default_transaction_read_only")
        put(store, "after", keyed=False)
    assert ask(census, url=own.url("moved")) == ["before", "after"]


@pytest.mark.spec("P33")
def test_nothing_is_created_on_a_read_only_server(own: OwnServer) -> None:
    url = own.tenant("too early")
    own.execute('ALTER ROLE "too early" SET default_transaction_read_only = on')
    refused(lambda: PostgresStore.open(url, seconds=SECONDS), ReadOnly)
    own.execute('ALTER ROLE "too early" RESET default_transaction_read_only')
    with opened(url) as store:
        put(store, "then", keyed=False)


@pytest.mark.spec("P33", "P29")
def test_a_restart_during_use_is_reported_and_recovered_from(own: OwnServer) -> None:
    """Ten connections of one process die at once: the next call must not test them one by one."""
    url, errors, acknowledged = own.tenant("amid"), list[str](), list[str]()
    with opened(url, connections=10) as store:
        stop, slow = threading.Event(), list[float]()

        def write_forever(thread: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                began = time.monotonic()
                try:
                    put(store, f"t{thread}-{number}", keyed=True, stream=f"resource/t{thread}")
                    acknowledged.append(f"t{thread}-{number}")
                except InmindError as error:
                    errors.append(error.code)
                    time.sleep(0.02)
                slow.append(time.monotonic() - began)

        threads = [threading.Thread(target=write_forever, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(2):
                known = len(acknowledged)
                wait_until(lambda known=known: len(acknowledged) > known + 20, "no writer writes")
                own.server.restart()
                known = len(acknowledged)
                wait_until(lambda known=known: len(acknowledged) > known + 20, "no writer continues")
        finally:
            stop.set()
            for thread in threads:
                thread.join(timeout=20)
    assert errors, "no writer noticed"
    assert set(errors) <= {"STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"}
    assert max(slow) < SECONDS + 3
    names_stored = [name for n in range(6) for name in ask(census, url=url, stream=f"resource/t{n}")]
    assert set(acknowledged) <= set(names_stored)
    assert len(names_stored) == len(set(names_stored))
    print(f"{len(acknowledged)} acknowledged, {len(errors)} errors during restarts, slowest call {max(slow):.2f} s")


@pytest.mark.spec("P33")
def test_a_process_whose_connections_are_all_in_use_is_busy(own: OwnServer) -> None:
    with opened(own.tenant("full"), connections=2, seconds=SHORT_SECONDS) as store:
        put(store, "before", keyed=False)
        held, done = threading.Barrier(3), threading.Event()

        def hold() -> None:
            with store.database.transaction():
                held.wait(timeout=10)
                done.wait(timeout=20)

        threads = [threading.Thread(target=hold) for _ in range(2)]
        for thread in threads:
            thread.start()
        held.wait(timeout=10)
        for call in (lambda: put(store, "in vain", keyed=True), lambda: names(store)):
            assert "all 2 connections of this process were in use for 1 s" in refused(call, StoreBusy)
        done.set()
        for thread in threads:
            thread.join()
        put(store, "after", keyed=False)
    assert ask(census, url=own.url("full")) == ["before", "after"]


@pytest.mark.spec("P33")
def test_a_server_without_free_connections_is_reported_and_retried(own: OwnServer) -> None:
    url = own.tenant("crowd")
    with opened(url) as store, ExitStack() as crowd:
        put(store, "before", keyed=False)
        own.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'crowd'")
        with suppress(psycopg.OperationalError):
            while True:
                crowd.enter_context(psycopg.connect(url))
        for call in (lambda: put(store, "in vain", keyed=True), lambda: names(store)):
            assert "connection" in refused(call, StoreUnavailable)
        crowd.close()
        wait_until(lambda: works(lambda: put(store, "after", keyed=True)), "it does not recover")
    assert ask(census, url=url) == ["before", "after"]


@pytest.mark.spec("P33")
@pytest.mark.parametrize("held", ["a stream", "an owner", "the table"])
def test_a_row_locked_by_another_is_busy_and_no_statement_keeps_waiting(own: OwnServer, held: str) -> None:
    name = f"held {held}"
    url = own.tenant(name)
    statements = {
        "a stream": f'SELECT FROM "{name}".streams FOR UPDATE',
        "an owner": f'SELECT FROM "{name}".owners FOR UPDATE',
        "the table": f'LOCK TABLE "{name}".events IN ACCESS EXCLUSIVE MODE',
    }
    with opened(url, seconds=SHORT_SECONDS) as store:
        put(store, "before", keyed=False)
        with psycopg.connect(url) as holder:
            holder.execute(statements[held].encode())
            for keyed in (True, False):
                key = make_key("in vain") if keyed else None
                refused(
                    lambda key=key: store.append(Batch(STREAM, [page_draft("in vain")], 1), at=now(), key=key),
                    StoreBusy,
                )
            if held == "the table":
                refused(lambda: names(store), StoreBusy)
            else:
                assert names(store) == ["before"]
            waiting = f"SELECT pid FROM pg_stat_activity WHERE usename = '{name}' AND wait_event_type = 'Lock'"
            assert own.query(waiting) == [], "a statement that timed out still waits"
        put(store, "after", keyed=False)
    assert ask(census, url=url) == ["before", "after"]


@pytest.mark.spec("P33")
@pytest.mark.parametrize("code", ["57014", "53200", "53400", "55P03"])
def test_a_busy_store_reports_the_reason(own: OwnServer, code: str) -> None:
    raising = f"DO $$ BEGIN RAISE EXCEPTION 'its own words' USING ERRCODE = '{code}'; END $$"
    with opened(own.tenant(f"why {code}")) as store:
        for method in (store.database.read, store.database.write):
            message = refused(lambda call=method: call(lambda connection: connection.execute(raising)), StoreBusy)
            assert ("by another writer" in message, "its own words" in message) == (False, True)


def unused_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.spec("P33", "N57")
@pytest.mark.parametrize("wrong", ["password", "database", "user", "port", "socket"])
def test_a_refused_login_is_reported_at_once_without_the_password(own: OwnServer, wrong: str) -> None:
    if wrong not in {row[0] for row in own.query("SELECT rolname FROM pg_roles")}:
        own.tenant(f"no {wrong}")
    secret, port = "top secret", own.server.port
    urls = {
        "password": own.url("no password", password=secret, tcp=True),
        "database": f"postgresql://no database:{SECRET}@127.0.0.1:{port}/nowhere",
        "user": own.url("no such role", password=secret, tcp=True),
        "port": f"postgresql://u:{secret}@127.0.0.1:{unused_port()}/postgres".replace(" ", "%20"),
        "socket": f"postgresql://u:{secret}@/postgres?host=/nowhere&port=1".replace(" ", "%20"),
    }
    began = time.monotonic()
    with pytest.raises(StoreUnavailable if wrong in ("port", "socket") else InvalidInput) as caught:
        PostgresStore.open(urls[wrong].replace(" ", "%20"))
    assert time.monotonic() - began < 1.5
    assert_secret_hidden(caught.value, secret, SECRET)


@pytest.mark.spec("P33", "N57")
@each_row(
    "url",
    [
        "postgresql://u:top secret@[::1/x",
        "postgresql://u:top%zzsecret@h/x",
        "postgresql://u:topsecret@h:port/x",
        "postgresql://u:topsecret@h/x?nonsense=1",
        "postgresql://u:topsecret@h/x?connect_timeout=soon",
        "postgresql://u:topsecret@h/x?sslmode",
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises((InvalidInput, StoreUnavailable)) as caught:
        PostgresStore.open(url, seconds=SECONDS)
    assert_secret_hidden(caught.value, "top secret", "topsecret", "zzsecret")


def assert_secret_hidden(error: InmindError, *secrets: str) -> None:
    """Neither in the message nor in its cause."""
    assert not [secret for secret in secrets for value in vars(error).values() if secret in str(value)]
    seen: BaseException | None = error
    while seen is not None:
        texts = [str(seen), repr(seen), *map(str, seen.args)]
        assert not [secret for secret in secrets for text in texts if secret in text]
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    printed = "".join(traceback.format_exception(error))
    assert not [secret for secret in secrets if secret in printed]


@pytest.mark.spec("P33")
def test_idle_connections_are_closed(own: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but one, by the next call; and a connection that is too old is not used."""

    def connection_count() -> int:
        return len(own.query("SELECT FROM pg_stat_activity WHERE usename = 'crowded'"))

    with opened(own.tenant("crowded")) as store:
        put(store, "before", keyed=False)
        held = threading.Barrier(4)

        def hold(_: int) -> None:
            with store.database.transaction():
                held.wait(timeout=10)

        in_threads(hold, range(4))
        names(store)
        assert connection_count() == 4
        monkeypatch.setattr(connection, "MAX_IDLE_SECONDS", 0.0)
        names(store)
        wait_until(lambda: connection_count() == 1, "they stay open")
        (kept,) = own.query("SELECT pid FROM pg_stat_activity WHERE usename = 'crowded'")
        names(store)
        assert own.query("SELECT pid FROM pg_stat_activity WHERE usename = 'crowded'") == [kept]
        monkeypatch.setattr(connection, "MAX_AGE_SECONDS", 0.0)
        pid_query = "SELECT pg_backend_pid()"
        assert store.database.read(lambda connection: connection.execute(pid_query).get) != kept[0]


@pytest.mark.spec("P33", "J8")
def test_a_url_sets_the_number_of_connections_and_the_timeout(own: OwnServer) -> None:
    url = own.tenant("limited")
    with Memory.open(f"{url}&inmind_connections=1&inmind_seconds=1", embedder=None) as memory:
        store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- to hold the only connection
        assert isinstance(store, PostgresStore)
        with ThreadPoolExecutor(1) as thread, store.database.transaction():
            message = thread.submit(lambda: refused(memory.resources, StoreBusy)).result(timeout=10)
        assert "all 1 connections of this process were in use for 1 s" in message
        assert "inmind_" not in memory.location


@pytest.mark.spec("P33")
@pytest.mark.parametrize(
    "parameter", ["inmind_seconds=0", "inmind_connections=1.5", "inmind_seconds=soon", "inmind_seconds"]
)
def test_a_url_with_an_invalid_number_is_refused(parameter: str) -> None:
    with pytest.raises(InvalidInput, match=r"inmind_\w+: expected a whole number from 1 to"):
        PostgresStore.open(f"postgresql://ada@127.0.0.1:1/there?connect_timeout=1&{parameter}")
