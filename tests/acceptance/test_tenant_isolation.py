"""No tenant reads, counts, changes or deletes anything of another's, whatever it tries with its own credential.

Names of roles, schemas, tables and functions, and how large tables are, PostgreSQL tells everybody who can connect;
docs/how-to/tenants.md says so. What is in them it tells nobody but their owner.
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
from tenant_builders import ask, lived, made, tell

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
    """Two tenants who have lived through things; ada has jobs too."""
    with TenantRoles(server.url(tcp=True)) as roles:
        found = {name: made(roles, name) for name in ("ada", "bob")}
        lived(found["ada"], session="secret")
        lived(found["bob"], session="plain")
        _give_jobs(found["ada"])
    return found


@pytest.fixture(scope="module")
def ada(addresses: dict[str, str]) -> str:
    return addresses["ada"]


@pytest.fixture(scope="module")
def bob(addresses: dict[str, str]) -> str:
    return addresses["bob"]


@pytest.fixture(scope="module")
def hers(ada: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(ada, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def his(bob: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(bob, autocommit=True) as connection:
        yield connection


@pytest.fixture(autouse=True)
def _ada_has_what_she_had(hers: psycopg.Connection) -> Generator[None]:
    before = _everything(hers)
    yield
    assert _everything(hers) == before


def _give_jobs(url: str) -> None:
    database = Database(url)
    Jobs(database).create_tables()
    database.close()


def _everything(hers: psycopg.Connection) -> list[object]:
    """All that is in her tables and sequences."""
    found = hers.execute(
        "SELECT relkind, relname FROM pg_class WHERE relowner = current_user::regrole AND relkind IN ('r', 'S')"
    ).fetchall()
    assert len(found) > 10
    whole = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM ada.{} AS t"
    last = "SELECT last_value FROM ada.{}"
    return [
        (name, hers.execute((whole if kind == "r" else last).format(name).encode()).fetchall()) for kind, name in found
    ]


def refused(his: psycopg.Connection, statement: str) -> str:
    """How it was refused; and that it was. Some statements are for transactions alone, some never are."""
    with pytest.raises(psycopg.Error) as refusal, his.transaction() if "LOCK" in statement else nullcontext():
        his.execute(statement.encode())
    return refusal.value.sqlstate or ""


# -- by SQL ---------------------------------------------------------------------------------------------------


def test_no_table_of_another_is_read_counted_changed_deleted_or_locked(
    hers: psycopg.Connection, his: psycopg.Connection
) -> None:
    tables = [name for (name,) in hers.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'ada'").fetchall()]
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
            assert refused(his, statement.replace("{}", f"ada.{table}")) == DENIED, statement


def test_no_function_of_another_is_called(hers: psycopg.Connection, his: psycopg.Connection) -> None:
    found = hers.execute("SELECT proname, pronargs FROM pg_proc WHERE pronamespace = 'ada'::regnamespace").fetchall()
    assert {"append", "procrastinate_defer_jobs_v1"} <= {name for name, _ in found}
    for name, arguments in found:
        assert refused(his, f"SELECT ada.{name}({', '.join(['NULL'] * arguments)})") == DENIED
    made = "CREATE FUNCTION ada.append(a int) RETURNS int LANGUAGE sql AS 'SELECT 1'"
    assert refused(his, made) == DENIED


def test_no_sequence_of_another_is_read_or_moved(hers: psycopg.Connection, his: psycopg.Connection) -> None:
    found = hers.execute("SELECT sequencename FROM pg_sequences WHERE schemaname = 'ada'").fetchall()
    assert ("positions",) in found
    for (name,) in found:
        for statement in (
            "SELECT nextval('ada.{}')",
            "SELECT setval('ada.{}', 1)",
            "SELECT currval('ada.{}')",
            "SELECT last_value FROM ada.{}",
            "ALTER SEQUENCE ada.{} RESTART",
        ):
            assert refused(his, statement.format(name)) == DENIED
    told = his.execute("SELECT DISTINCT last_value FROM pg_sequences WHERE schemaname = 'ada'").fetchall()
    assert told == [(None,)]


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
def test_no_statement_leads_to_another(his: psycopg.Connection, statement: str) -> None:
    assert refused(his, statement) in _NO_WAY


_NO_WAY = (DENIED, "42704", "22023", "0A000", "58P01", "55000")
"""Or not there: a wrapper, a language or a decoder that nobody has installed."""


def test_an_existing_role_is_not_taken_for_a_tenant(bob: str) -> None:
    tell(bob, "ALTER ROLE bob SET role = 'ada'")
    assert ask(bob, "SELECT current_user::text") == [("bob",)]
    with Memory.open(bob, embedder=None) as memory:
        assert "secret" not in memory
    tell(bob, "ALTER ROLE bob RESET role")


def test_a_search_path_is_no_way_in(his: psycopg.Connection) -> None:
    his.execute("SET search_path = ada")
    for statement in ("SELECT * FROM events", "SELECT append('{}')", "SELECT nextval('positions')"):
        assert refused(his, statement) in ("42P01", "42883")
    his.execute("RESET search_path")


def test_what_another_just_does_is_neither_seen_nor_stopped(hers: psycopg.Connection, his: psycopg.Connection) -> None:
    hers.execute("SELECT 'the harbour is in the north'")
    number = hers.info.backend_pid
    seen = his.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [number]).fetchall()
    assert seen == [("<insufficient privilege>",)]
    for function in ("pg_terminate_backend", "pg_cancel_backend"):
        assert refused(his, f"SELECT {function}({number})") == DENIED
    hers.execute("SELECT 1")


def test_statistics_of_a_tenants_tables_are_hidden_from_others(
    hers: psycopg.Connection, his: psycopg.Connection
) -> None:
    hers.execute("ANALYZE ada.events")
    told = "SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'ada'"
    assert (hers.execute(told).fetchone(), his.execute(told).fetchone()) == ((True,), (False,))


def test_no_tenant_is_notified_of_another(server: Server, bob: str) -> None:
    with TenantRoles(server.url(tcp=True)) as roles, psycopg.connect(bob, autocommit=True) as listening:
        eve = made(roles, "eve")
        _give_jobs(eve)
        for channel in ("procrastinate_any_queue_v1", "procrastinate_queue_v1#default", "inmind", "eve"):
            listening.execute(f'LISTEN "{channel}"'.encode())
        lived(eve)
        tell(eve, "INSERT INTO eve.procrastinate_jobs (queue_name, task_name) VALUES ('default', 'tend')")
        assert list(listening.notifies(timeout=0.05)) == []
        roles.erase("eve")


# -- by the library -------------------------------------------------------------------------------------------


def test_no_option_of_a_url_leads_to_another(bob: str) -> None:
    for option in ("-c role=ada", "-c session_authorization=ada", "--role=ada"):
        with pytest.raises(StoreUnavailable):
            Memory.open(f"{bob}?options={quote(option)}", embedder=None)
    for harmless in ("-c search_path=ada", "-c search_path=ada,pg_catalog"):
        with Memory.open(f"{bob}?options={quote(harmless)}", embedder=None) as memory:
            assert [info.id for info in memory.sessions()] == ["plain"]


def test_whatever_a_tenant_names_it_is_its_own(bob: str, tmp_path: Path) -> None:
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
def test_a_key_of_one_tenant_means_nothing_to_another(server: Server) -> None:
    with TenantRoles(server.url(tcp=True)) as roles:
        one, two = made(roles, "one"), made(roles, "two")
        _same_key_twice(one, two)
        roles.erase("one")
        roles.erase("two")


@pytest.mark.spec("K25")
def test_a_key_of_one_home_means_nothing_to_another(tmp_path: Path) -> None:
    with TenantHomes(tmp_path) as homes:
        _same_key_twice(made(homes, "one"), made(homes, "two"))


def _same_key_twice(one: str, two: str) -> None:
    """The same session, resource and key, for other words; each keeps its own, also after it was opened anew."""
    for place, said in ((one, "likes tea"), (two, "likes rum"), (one, "likes tea"), (two, "likes rum")):
        with Memory.open(place, embedder=None) as memory:
            session = memory.session("shop", resource="ada", cwd="/w")
            session.add([{"role": "user", "content": said}], key="k")
            memory.resource("ada").note(said, key="k")
            with pytest.raises(KeyReused):
                memory.resource("ada").note(f"{said} no more", key="k")
            assert [message.wire["content"] for message in session.state.conversation] == [said]
