"""No tenant can read, count, change or delete data of another with its own credential.

Every role that can connect to PostgreSQL can read the names of roles, schemas, tables and functions and the sizes of
tables, as docs/how-to/tenants.md says. Only their owner can read the contents.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from bundle_builders import read_entries
from postgres import Run, Server
from tenant_builders import create_tenant, execute_sql, fill_tenant, query_sql

from inmind import Memory
from inmind.apps.tenants.folders import TenantHomes
from inmind.errors import KeyReused, NotFound, StoreUnavailable
from inmind.store.postgres.database import Database
from inmind.store.postgres.jobs import Jobs
from inmind.store.postgres.tenants import TenantRoles

pytestmark = pytest.mark.spec("J8")

DENIED = "42501"


@pytest.fixture(scope="module")
def server(postgres_run: Run) -> Generator[Server]:
    with postgres_run.server() as own:
        own.start()
        yield own


@pytest.fixture(scope="module")
def addresses(server: Server) -> dict[str, str]:
    """Two tenants with data; ada has jobs too."""
    with TenantRoles(server.url(tcp=True)) as roles:
        urls = {name: create_tenant(roles, name) for name in ("ada", "bob")}
        fill_tenant(urls["ada"], session="secret")
        fill_tenant(urls["bob"], session="plain")
        _give_jobs(urls["ada"])
    return urls


@pytest.fixture(scope="module")
def ada(addresses: dict[str, str]) -> str:
    return addresses["ada"]


@pytest.fixture(scope="module")
def bob(addresses: dict[str, str]) -> str:
    return addresses["bob"]


@pytest.fixture(scope="module")
def ada_db(ada: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(ada, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def bob_db(bob: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(bob, autocommit=True) as connection:
        yield connection


@pytest.fixture(autouse=True)
def _ada_is_unchanged(ada_db: psycopg.Connection) -> Generator[None]:
    before = _contents(ada_db)
    yield
    assert _contents(ada_db) == before


def _give_jobs(url: str) -> None:
    database = Database(url)
    Jobs(database).create_tables()
    database.close()


def _contents(ada_db: psycopg.Connection) -> list[object]:
    """The contents of all tables and sequences of ada."""
    relations = ada_db.execute(
        "SELECT relkind, relname FROM pg_class WHERE relowner = current_user::regrole AND relkind IN ('r', 'S')"
    ).fetchall()
    assert len(relations) > 10
    whole = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM ada.{} AS t"
    last = "SELECT last_value FROM ada.{}"
    return [
        (name, ada_db.execute((whole if kind == "r" else last).format(name).encode()).fetchall())
        for kind, name in relations
    ]


def sqlstate_of(bob_db: psycopg.Connection, statement: str) -> str:
    """The SQLSTATE of a refused statement. Only LOCK runs in a transaction."""
    with pytest.raises(psycopg.Error) as refusal, bob_db.transaction() if "LOCK" in statement else nullcontext():
        bob_db.execute(statement.encode())
    return refusal.value.sqlstate or ""


# -- by SQL ---------------------------------------------------------------------------------------------------


def test_no_table_of_another_tenant_is_read_changed_or_locked(
    ada_db: psycopg.Connection, bob_db: psycopg.Connection
) -> None:
    tables = [name for (name,) in ada_db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'ada'").fetchall()]
    assert {"events", "streams", "keys", "owners", "snapshots", "procrastinate_jobs"} <= {*tables}
    for table in tables:
        for statement in (
            "SELECT * FROM {}",
            "SELECT count(*) FROM {}",
            "SELECT 1 FROM {} LIMIT 0",
            "EXPLAIN ANALYZE SELECT * FROM {}",
            "INSERT INTO {} SELECT * FROM {}",
            "UPDATE {} SET xmin = xmin",
            "DELETE FROM {}",
            "TRUNCATE {}",
            "LOCK TABLE {}",
            "COPY {} TO STDOUT",
            "ANALYZE {}",
            "ALTER TABLE {} OWNER TO bob",
            "ALTER TABLE {} SET SCHEMA bob",
            "DROP TABLE {}",
            "GRANT ALL ON {} TO bob",
            "COMMENT ON TABLE {} IS 'mine'",
            "CREATE INDEX ON {} ((1))",
            "CREATE VIEW bob.theirs AS SELECT * FROM {}",
            "CREATE TABLE bob.heir () INHERITS ({})",
            "CREATE TABLE bob.pointing (a bigint REFERENCES {})",
        ):
            assert sqlstate_of(bob_db, statement.replace("{}", f"ada.{table}")) == DENIED, statement


def test_no_function_of_another_tenant_is_called(ada_db: psycopg.Connection, bob_db: psycopg.Connection) -> None:
    functions = ada_db.execute(
        "SELECT proname, pronargs FROM pg_proc WHERE pronamespace = 'ada'::regnamespace"
    ).fetchall()
    assert {"append", "procrastinate_defer_jobs_v1"} <= {name for name, _ in functions}
    for name, arguments in functions:
        assert sqlstate_of(bob_db, f"SELECT ada.{name}({', '.join(['NULL'] * arguments)})") == DENIED
    statement = "CREATE FUNCTION ada.append(a int) RETURNS int LANGUAGE sql AS 'SELECT 1'"
    assert sqlstate_of(bob_db, statement) == DENIED


def test_no_sequence_of_another_tenant_is_read_or_changed(
    ada_db: psycopg.Connection, bob_db: psycopg.Connection
) -> None:
    sequences = ada_db.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = 'ada'").fetchall()
    assert ("positions",) in sequences
    for (name,) in sequences:
        for statement in (
            "SELECT nextval('ada.{}')",
            "SELECT setval('ada.{}', 1)",
            "SELECT currval('ada.{}')",
            "SELECT last_value FROM ada.{}",
            "ALTER SEQUENCE ada.{} RESTART",
        ):
            assert sqlstate_of(bob_db, statement.format(name)) == DENIED
    values = bob_db.execute("SELECT DISTINCT last_value FROM pg_sequences WHERE schemaname = 'ada'").fetchall()
    assert values == [(None,)]


@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE ada",
        "SET LOCAL ROLE ada",
        "SET SESSION AUTHORIZATION ada",
        "SELECT set_config('role', 'ada', false)",
        "GRANT ada TO bob",
        "GRANT bob TO ada",
        "ALTER ROLE ada PASSWORD 'known'",
        "ALTER ROLE ada NOLOGIN",
        "ALTER ROLE ada RENAME TO eve",
        "ALTER ROLE bob SUPERUSER",
        "ALTER ROLE bob CREATEROLE",
        "ALTER ROLE bob RENAME TO eve",
        "DROP ROLE ada",
        "CREATE ROLE eve",
        "GRANT pg_read_all_data TO bob",
        "REASSIGN OWNED BY ada TO bob",
        "DROP OWNED BY ada",
        "ALTER DEFAULT PRIVILEGES FOR ROLE ada GRANT ALL ON TABLES TO bob",
        "DROP SCHEMA ada CASCADE",
        "ALTER SCHEMA ada OWNER TO bob",
        "ALTER SCHEMA ada RENAME TO eve",
        "ALTER SCHEMA bob RENAME TO eve",
        "GRANT USAGE ON SCHEMA ada TO bob",
        "CREATE TABLE ada.mine (a int)",
        "CREATE SCHEMA eve",
        "CREATE TABLE public.events (a int)",
        "CREATE FUNCTION public.nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
        "CREATE EXTENSION dblink",
        "CREATE LANGUAGE plpython3u",
        "CREATE EVENT TRIGGER eve ON ddl_command_end EXECUTE FUNCTION bob.has_news()",
        "CREATE PUBLICATION eve FOR ALL TABLES",
        "CREATE PUBLICATION eve FOR TABLE ada.events",
        "CREATE SUBSCRIPTION eve CONNECTION 'dbname=postgres' PUBLICATION eve",
        "CREATE SERVER eve FOREIGN DATA WRAPPER eve",
        "ALTER SYSTEM SET fsync = off",
        "ALTER DATABASE postgres SET search_path = bob",
        "COPY bob.events TO PROGRAM 'cat'",
        "COPY bob.events TO '/tmp/eve'",
        "SELECT pg_read_file('PG_VERSION')",
        "SELECT pg_ls_dir('base')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT * FROM pg_authid",
        "SELECT * FROM pg_shadow",
        "SELECT * FROM pg_statistic",
        "SELECT pg_stat_reset()",
        "SELECT pg_logical_slot_get_changes('eve', NULL, NULL)",
        "SELECT pg_create_logical_replication_slot('eve', 'test_decoding')",
        "DO $$ BEGIN EXECUTE 'SELECT * FROM ada.events'; END $$",
        "SELECT query_to_xml('SELECT * FROM ada.events', true, false, '')",
        "SELECT table_to_xml('ada.events', true, false, '')",
        "SELECT has_table_privilege('ada.events', 'SELECT')",
    ],
)
def test_no_statement_reaches_another_tenant(bob_db: psycopg.Connection, statement: str) -> None:
    assert sqlstate_of(bob_db, statement) in _REFUSALS


_REFUSALS = (DENIED, "42704", "22023", "0A000", "58P01", "55000")
"""Denied, or for a wrapper, language or decoder that is not installed."""


def test_a_role_setting_does_not_switch_the_tenant(bob: str) -> None:
    execute_sql(bob, "ALTER ROLE bob SET role = 'ada'")
    assert query_sql(bob, "SELECT current_user::text") == [("bob",)]
    with Memory.open(bob, embedder=None) as memory:
        assert "secret" not in memory
    execute_sql(bob, "ALTER ROLE bob RESET role")


def test_a_search_path_reaches_no_other_tenant(bob_db: psycopg.Connection) -> None:
    bob_db.execute("SET search_path = ada")
    for statement in ("SELECT * FROM events", "SELECT append('{}')", "SELECT nextval('positions')"):
        assert sqlstate_of(bob_db, statement) in ("42P01", "42883")
    bob_db.execute("RESET search_path")


def test_queries_of_another_tenant_cannot_be_read_or_cancelled(
    ada_db: psycopg.Connection, bob_db: psycopg.Connection
) -> None:
    ada_db.execute("SELECT 'the harbour is in the north'")
    number = ada_db.info.backend_pid
    rows = bob_db.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [number]).fetchall()
    assert rows == [("<insufficient privilege>",)]
    for function in ("pg_terminate_backend", "pg_cancel_backend"):
        assert sqlstate_of(bob_db, f"SELECT {function}({number})") == DENIED
    ada_db.execute("SELECT 1")


def test_statistics_of_a_tenants_tables_are_hidden_from_others(
    ada_db: psycopg.Connection, bob_db: psycopg.Connection
) -> None:
    ada_db.execute("ANALYZE ada.events")
    query = "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'ada'"
    assert (ada_db.execute(query).fetchone(), bob_db.execute(query).fetchone()) == ((True,), (False,))


def test_no_tenant_is_notified_of_another(server: Server, bob: str) -> None:
    with TenantRoles(server.url(tcp=True)) as roles, psycopg.connect(bob, autocommit=True) as listener:
        eve = create_tenant(roles, "eve")
        _give_jobs(eve)
        for channel in ("procrastinate_any_queue_v1", "procrastinate_queue_v1#default", "inmind", "eve"):
            listener.execute(f'LISTEN "{channel}"'.encode())
        fill_tenant(eve)
        execute_sql(eve, "INSERT INTO eve.procrastinate_jobs (queue_name, task_name) VALUES ('default', 'tend')")
        assert list(listener.notifies(timeout=0.05)) == []
        roles.erase("eve")


# -- by the library -------------------------------------------------------------------------------------------


def test_no_url_option_reaches_another_tenant(bob: str) -> None:
    for option in ("-c role=ada", "-c session_authorization=ada", "--role=ada"):
        with pytest.raises(StoreUnavailable):
            Memory.open(f"{bob}?options={quote(option)}", embedder=None)
    for harmless in ("-c search_path=ada", "-c search_path=ada,pg_catalog"):
        with Memory.open(f"{bob}?options={quote(harmless)}", embedder=None) as memory:
            assert [info.id for info in memory.sessions()] == ["plain"]


def test_hostile_names_stay_within_the_tenant(bob: str, tmp_path: Path) -> None:
    with Memory.open(bob, embedder=None) as memory:
        assert "secret" not in memory
        assert [info.id for info in memory.sessions(resource="ada")] == ["plain"]
        for name in ("ada", "ada.events", 'ada"."events', "'; SET ROLE ada; --", "../ada", "tenant.", "$1"):
            assert name not in memory
            memory.session(name, resource=name).note(f"I am called {name}")
            assert memory.has_resource(name)
        with pytest.raises(NotFound):
            memory.page("detail/harbour.md", session="secret")
        memory.export(tmp_path / "bob.inmind")
    assert b"harbour of plain" in read_entries(tmp_path / "bob.inmind")["journal.jsonl"]
    assert b"secret" not in read_entries(tmp_path / "bob.inmind")["journal.jsonl"]


@pytest.mark.spec("K25")
def test_a_key_of_one_tenant_is_unused_in_another(server: Server) -> None:
    with TenantRoles(server.url(tcp=True)) as roles:
        one, two = create_tenant(roles, "one"), create_tenant(roles, "two")
        _use_same_key(one, two)
        roles.erase("one")
        roles.erase("two")


@pytest.mark.spec("K25")
def test_a_key_of_one_home_is_unused_in_another(tmp_path: Path) -> None:
    with TenantHomes(tmp_path) as homes:
        _use_same_key(create_tenant(homes, "one"), create_tenant(homes, "two"))


def _use_same_key(one: str, two: str) -> None:
    """Use the same key for different texts; each place keeps its own text after reopening."""
    for place, text in ((one, "likes tea"), (two, "likes rum"), (one, "likes tea"), (two, "likes rum")):
        with Memory.open(place, embedder=None) as memory:
            session = memory.session("shop", resource="ada", cwd="/w")
            session.add([{"role": "user", "content": text}], key="k")
            memory.resource("ada").note(text, key="k")
            with pytest.raises(KeyReused):
                memory.resource("ada").note(f"{text} no more", key="k")
            assert [message.wire["content"] for message in session.state.conversation] == [text]
