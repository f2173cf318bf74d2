"""Tenants of one database: each is a role that cannot read another's data.

Roles can have any name. Session state would leak from one tenant to the next through a pooler, so none is set.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pgbouncer
import psycopg
import pytest
from postgres import wait_until
from torture.harness import ask, in_threads
from torture.postgres.actors import STREAM, adopt, census, names, now, page_draft, put
from torture.postgres.conftest import OwnServer
from torture.postgres.test_outages import works

from inmind.errors import StoreBusy, StoreUnavailable, UnsafeStorage
from inmind.store.postgres import PostgresStore
from inmind.store.protocol import Batch, PublishedVersion, Snapshot

STRANGE = [
    "O'Brien",
    'a "b" c',
    "x$$y",
    "$inmind$",
    "tenant.events",
    "'); DROP SCHEMA public; --",
    "50% %s %(name)s",
    "back\\slash",
    "UPPER lower",
    "ünïcödé 名前",
    "$1",
]


@pytest.mark.spec("N59", "J8")
@pytest.mark.parametrize("name", STRANGE)
def test_a_tenant_may_have_any_name(own: OwnServer, name: str) -> None:
    url = own.tenant(name)
    store = PostgresStore.open(url)
    assert store.database.schema == name
    put(store, f"of {name}", keyed=True)
    put(store, f"again {name}", keyed=True, companion="resource/eve")
    store.save_snapshot(STREAM, Snapshot(seq=1, fold_version=1, body="{}"))
    assert store.owners() == ["ada", "eve"]
    store.close()
    assert ask(census, url=url) == [f"of {name}", f"again {name}"]


TRIES = [
    "SELECT * FROM ada.events",
    "SELECT count(*) FROM ada.streams",
    "SELECT name FROM ada.owners",
    "SELECT last_value FROM ada.positions",
    "SELECT nextval('ada.positions')",
    "UPDATE ada.events SET body = '{}'",
    "DELETE FROM ada.events",
    "TRUNCATE ada.events",
    "INSERT INTO ada.streams (name) VALUES ('mine')",
    "SELECT ada.append('resource/ada', 'ada', 1, 0, NULL, NULL, '[]')",
    "DROP SCHEMA ada CASCADE",
    "ALTER SCHEMA ada OWNER TO eve",
    "GRANT USAGE ON SCHEMA ada TO eve",
    "CREATE TABLE ada.mine (id integer)",
    "DO $$ BEGIN LOCK TABLE ada.events IN SHARE MODE; END $$",
    "COPY ada.events TO STDOUT",
    "SET ROLE ada",
    "SET SESSION AUTHORIZATION ada",
]


@pytest.mark.spec("J8", "N57")
def test_one_tenant_cannot_read_count_change_or_delete_anothers(own: OwnServer) -> None:
    """With any statement that its credential allows."""
    ada, eve = own.tenant("ada"), own.tenant("eve")
    for url, text in ((ada, "ada's own"), (eve, "eve's own")):
        store = PostgresStore.open(url)
        put(store, text, keyed=True)
        store.close()
    with psycopg.connect(eve, autocommit=True) as connection:
        for statement in TRIES:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
    assert ask(census, url=ada) == ["ada's own"]
    assert ask(census, url=eve) == ["eve's own"]


@pytest.mark.spec("J8", "N57")
@pytest.mark.parametrize(
    "options", ["-csearch_path=bea,public", "-crole=bea", "-c search_path=bea -c row_security=off"]
)
def test_only_a_credential_leads_to_another_tenant(own: OwnServer, options: str) -> None:
    if not own.query("SELECT FROM pg_roles WHERE rolname = 'bea'"):
        store = PostgresStore.open(own.tenant("bea"))
        put(store, "bea's own", keyed=True)
        store.close()
        own.tenant("mallory")
    try:
        store = PostgresStore.open(own.url("mallory", options=options))
    except StoreUnavailable:
        assert "role" in options
    else:
        assert "role" not in options
        assert store.database.schema == "mallory"
        assert "bea's own" not in names(store)
        put(store, "mallory's own", keyed=False)
        store.close()
    assert ask(census, url=own.url("bea")) == ["bea's own"]


@pytest.mark.spec("J8")
def test_a_schema_of_another_role_is_refused(own: OwnServer) -> None:
    """A role that may create schemas could create one of another's name to read its content."""
    own.tenant("squatter")
    url = own.tenant("late")
    with psycopg.connect(own.url("squatter"), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA late")
        connection.execute("GRANT ALL ON SCHEMA late TO late")
    with pytest.raises(UnsafeStorage, match="belongs to another role"):
        PostgresStore.open(url)
    assert own.query("SELECT FROM pg_tables WHERE schemaname = 'late'") == []


@pytest.mark.spec("J8")
def test_a_role_without_create_rights_gets_a_clear_error(own: OwnServer) -> None:
    url = own.tenant("poor")
    own.execute("REVOKE CREATE ON DATABASE postgres FROM poor")
    with pytest.raises(UnsafeStorage, match="cannot create one"):
        PostgresStore.open(url)


# -- through a pooler --------------------------------------------------------------------------------------

SESSION_STATE = re.compile(
    r"^(SET (?!TRANSACTION|LOCAL)|PREPARE|DEALLOCATE|LISTEN|UNLISTEN|NOTIFY|DISCARD|RESET|DECLARE|LOAD)\b"
    r"|\bpg_(try_)?advisory_(lock|unlock)|\bset_config\b|\bCREATE (GLOBAL |LOCAL )?TEMP|\b(curr|last)val\b",
    re.IGNORECASE,
)


def use_everything(store: PostgresStore, name: str) -> None:
    """Every kind of call."""
    put(store, f"{name} plain", keyed=False)
    put(store, f"{name} keyed", keyed=True)
    put(store, f"{name} companion", keyed=True, companion="resource/companion")
    store.save_snapshot(STREAM, Snapshot(seq=1, fold_version=1, body="{}"))
    store.mark_published(STREAM, "MEMORY.md", PublishedVersion(digest="d", seq=1))
    adopt(store, f"resource/{name}")
    with store.consistent_read():
        assert store.events_since(0, kinds=["document"], limit=100)
        assert store.stream_names("resource/")
    assert store.snapshot(STREAM, fold_version=1)
    assert store.summary(STREAM).kinds["document"] >= 3


@pytest.mark.spec("J8")
def test_no_statement_changes_session_state(own: OwnServer) -> None:
    """A pooler may use another session for each transaction; checked in the server's log."""
    url = own.tenant("watched")
    before = len(own.server.log)
    store = PostgresStore.open(f"{url}&application_name=watched")
    use_everything(store, "watched")
    store.close()
    new_log = own.server.log[before:]
    statements = re.findall(r"LOG:  (?:statement|execute (\S+)): (.*)", new_log)
    assert len(statements) > 20, "the log has no statements"
    assert {name for name, _ in statements} <= {"", "<unnamed>"}, "something was prepared under a name"
    assert [text for _, text in statements if SESSION_STATE.search(text)] == []


@contextmanager
def pooler(own: OwnServer, folder: Path, *roles: str) -> Generator[int]:
    """In transaction mode, with one server connection for each role."""
    port, users = pgbouncer.free_port(), "".join(f'"{role}" ""\n' for role in roles)
    config = (
        f"[databases]\n* = host={own.server.folder} port={own.server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {folder / 'users'}\npool_mode = transaction\ndefault_pool_size = 1\n"
        "server_lifetime = 1\nquery_wait_timeout = 2\nserver_login_retry = 1\n"
    )
    with pgbouncer.pooler(folder, config, port=port, users=users):
        yield port


@pytest.mark.spec("J8")
def test_two_tenants_through_a_transaction_pooler(own: OwnServer) -> None:
    """Many threads share one server connection per tenant; all events are stored correctly."""
    with TemporaryDirectory(dir=own.server.run.folder) as folder, pooler(own, Path(folder), "pool1", "pool2") as port:
        urls = {name: f"postgresql://{name}@127.0.0.1:{port}/postgres?sslmode=disable" for name in ("pool1", "pool2")}
        for name in urls:
            own.tenant(name)
        stores = {name: PostgresStore.open(url, seconds=20, max_connections=4) for name, url in urls.items()}

        def use(task: tuple[str, int]) -> None:
            name, number = task
            use_everything(stores[name], f"{name} {number}")

        in_threads(use, [(name, number) for number in range(4) for name in urls])
        for store in stores.values():
            store.close()
    for name in urls:
        names_stored = ask(census, url=own.url(name))
        assert sorted(names_stored) == sorted(
            f"{name} {number} {what}" for number in range(4) for what in ("plain", "keyed", "companion")
        )


@pytest.mark.exhaustive
@pytest.mark.spec("P30", "J8")
def test_a_statement_that_a_pooler_never_sent_is_reported_as_not_stored(own: OwnServer) -> None:
    """The pooler had no connection to the server: the outcome is known."""
    with TemporaryDirectory(dir=own.server.run.folder) as folder, pooler(own, Path(folder), "pool3") as port:
        url = f"postgresql://pool3@127.0.0.1:{port}/postgres?sslmode=disable"
        own.tenant("pool3")
        store = PostgresStore.open(url, seconds=20, max_connections=2)
        put(store, "before", keyed=False)
        with psycopg.connect(url) as other:
            other.execute("SELECT 1")
            with pytest.raises(StoreBusy, match="query_wait_timeout"):
                store.append(Batch(STREAM, [page_draft("while all were in use")], 1), at=now())
            with pytest.raises(StoreBusy, match="query_wait_timeout"), store.bulk_import():
                pass
        put(store, "between", keyed=False)
        own.server.stop()
        try:
            with pytest.raises((StoreUnavailable, StoreBusy)) as refused:
                store.append(Batch(STREAM, [page_draft("while it was down")], 2), at=now())
            assert "nothing was stored" in str(refused.value)
        finally:
            own.server.start()
        wait_until(lambda: works(lambda: put(store, "after", keyed=True)), "the pooler does not find it again")
        assert names(store) == ["before", "between", "after"]
        store.close()
