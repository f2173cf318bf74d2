"""Creating and erasing tenants of a database: the rights they need and grant."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import pgbouncer
import psycopg
import pytest
from pages import PROJECT
from postgres import Run, Server, wait_until
from tenant_builders import OPERATOR, PASSWORD, create_tenant, execute_sql, fill_tenant, operator_url, query_sql

from inmind import Memory
from inmind.apps.tenants import move
from inmind.apps.tenants.folders import TenantHomes
from inmind.errors import (
    InmindError,
    InvalidInput,
    OutcomeUnknown,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)
from inmind.store.postgres.database import Database
from inmind.store.postgres.jobs import Jobs
from inmind.store.postgres.tenants import TenantRoles

pytestmark = pytest.mark.spec("J8")

DATABASE = "memories"


@pytest.fixture(scope="module")
def server(postgres_run: Run) -> Generator[Server]:
    """A server that logs every statement."""
    with postgres_run.server(log_statement="all", log_min_duration_statement="0") as own:
        own.start()
        execute_sql(own.url(), f"CREATE DATABASE {DATABASE}")
        yield own


@pytest.fixture
def admin(server: Server) -> Generator[str]:
    """A superuser's URL of a database, which is cleaned after the test."""
    url = server.url(database=DATABASE, tcp=True)
    yield url
    for (name,) in query_sql(url, "SELECT quote_ident(rolname) FROM pg_roles WHERE rolname !~ '^(pg_|postgres$)'"):
        execute_sql(url, f"DROP OWNED BY {name} CASCADE")
        execute_sql(server.url(), f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")
    execute_sql(
        url,
        "DROP SCHEMA IF EXISTS extensions, lonely, postgres, pgbouncer CASCADE",
        "DROP EXTENSION IF EXISTS vector CASCADE",
    )
    execute_sql(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC", f"REVOKE CREATE ON DATABASE {DATABASE} FROM PUBLIC")
    execute_sql(url, f"GRANT CONNECT ON DATABASE {DATABASE} TO PUBLIC")


@pytest.fixture
def roles(admin: str) -> Generator[TenantRoles]:
    with TenantRoles(admin) as tenants:
        yield tenants


def is_there(url: str, name: str) -> bool:
    return bool(query_sql(url, "SELECT 1 FROM pg_roles WHERE rolname = %s", name))


# -- rights of a tenant ---------------------------------------------------------------------------------------


def test_a_tenant_has_no_right_but_to_connect_and_owns_its_schema(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    powers = "rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls"
    [(*attributes,)] = query_sql(admin, f"SELECT {powers} FROM pg_roles WHERE rolname = 'ada'")
    assert attributes == [False] * 6
    assert query_sql(admin, "SELECT 1 FROM pg_auth_members WHERE member = 'ada'::regrole") == []
    assert query_sql(address, "SELECT has_database_privilege(current_database(), 'CREATE')") == [(False,)]
    namespaces = "SELECT nspname FROM pg_namespace WHERE has_schema_privilege(oid, %s) ORDER BY 1"
    assert query_sql(address, namespaces, "CREATE") == [("ada",)]
    assert query_sql(address, namespaces, "USAGE") == [("ada",), ("information_schema",), ("pg_catalog",), ("public",)]
    foreign = "SELECT relname FROM pg_class WHERE relnamespace = 'ada'::regnamespace AND relowner <> 'ada'::regrole"
    assert query_sql(admin, foreign) == []


def test_a_new_tenant_has_all_tables(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    tables = query_sql(admin, "SELECT tablename FROM pg_tables WHERE schemaname = 'ada'")
    fill_tenant(address)
    assert query_sql(admin, "SELECT tablename FROM pg_tables WHERE schemaname = 'ada'") == tables


def test_vectors_are_available_if_the_operator_may_create_the_extension(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    assert query_sql(address, "SELECT '[1,2]'::vector <-> '[1,2]'::vector") == [(0.0,)]
    execute_sql(
        admin, "DROP EXTENSION vector CASCADE", "CREATE SCHEMA extensions", "CREATE EXTENSION vector SCHEMA extensions"
    )
    address = create_tenant(roles, "bob")
    assert query_sql(address, "SELECT '[1,2]'::extensions.vector::text") == [("[1,2]",)]


def test_only_an_operator_may_create_objects_that_others_could_mistake(roles: TenantRoles, admin: str) -> None:
    execute_sql(admin, "GRANT CREATE ON SCHEMA public TO PUBLIC", f"GRANT CREATE ON DATABASE {DATABASE} TO PUBLIC")
    address = create_tenant(roles, "ada")
    for statement in ("CREATE TABLE public.events (a int)", "CREATE SCHEMA bob"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute_sql(address, statement)


def test_a_tenant_may_connect_if_public_may_not(roles: TenantRoles, admin: str) -> None:
    execute_sql(admin, f"REVOKE CONNECT ON DATABASE {DATABASE} FROM PUBLIC")
    fill_tenant(create_tenant(roles, "ada"))
    roles.erase("ada")
    assert not is_there(admin, "ada")


def test_an_operator_who_cannot_grant_connect_creates_no_tenant(server: Server, admin: str) -> None:
    execute_sql(admin, f"REVOKE CONNECT ON DATABASE {DATABASE} FROM PUBLIC")
    operator = operator_url(server, database=DATABASE)
    execute_sql(admin, f"GRANT CONNECT ON DATABASE {DATABASE} TO {OPERATOR}")
    with TenantRoles(operator) as roles:
        with pytest.raises(UnsafeStorage, match="GRANT CONNECT"):
            create_tenant(roles, "ada")
        assert not is_there(admin, "ada")
        execute_sql(admin, f"GRANT CONNECT ON DATABASE {DATABASE} TO {OPERATOR} WITH GRANT OPTION")
        fill_tenant(create_tenant(roles, "ada"))
        roles.erase("ada")
    assert not is_there(admin, "ada")


def test_a_pooler_set_up_as_documented_knows_new_tenants(roles: TenantRoles, server: Server, admin: str) -> None:
    page = (PROJECT / "docs/how-to/tenants.md").read_text()
    [statements] = [block for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "pgbouncer" in block]
    execute_sql(admin, statements.replace("'…'", f"'{PASSWORD}'"))
    ada = create_tenant(roles, "ada")
    pooler = server.url("pgbouncer", password=PASSWORD, database=DATABASE, tcp=True)
    look_up = "SELECT usename::text, passwd FROM pgbouncer.user_lookup(%s)"
    assert query_sql(pooler, look_up, "ada") == query_sql(
        admin, "SELECT 'ada', rolpassword FROM pg_authid WHERE rolname = 'ada'"
    )
    assert query_sql(pooler, look_up, "postgres") == [(None, None)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        query_sql(ada, look_up, "ada")


def test_a_tenant_can_change_its_own_password_and_only_that(roles: TenantRoles) -> None:
    address = create_tenant(roles, "ada")
    create_tenant(roles, "bob")
    execute_sql(address, "ALTER ROLE ada PASSWORD 'another'")
    with pytest.raises(InvalidInput, match="that the server accepts"):
        Memory.open(address, embedder=None)
    parts = urlsplit(address)
    Memory.open(address.replace(f":{parts.password}@", ":another@"), embedder=None).close()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute_sql(address.replace(f":{parts.password}@", ":another@"), "ALTER ROLE bob PASSWORD 'another'")


# -- secrets --------------------------------------------------------------------------------------------------


def test_a_password_is_returned_only_to_the_caller(
    roles: TenantRoles, server: Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    address = create_tenant(roles, "ada")
    secret = urlsplit(address).password or ""
    assert len(secret) >= 32
    assert create_tenant(roles, "bob") != address
    chosen = create_tenant(roles, "cy", password="p w:@/?#é%")
    assert unquote(urlsplit(chosen).password or "") == "p w:@/?#é%"
    Memory.open(chosen, embedder=None).close()
    everywhere = server.log + caplog.text + "".join(capfd.readouterr())
    assert "ALTER ROLE" in everywhere
    for password in (secret, "p w:@/?#é%"):
        assert password not in everywhere
    for call in (lambda: create_tenant(roles, "ada"), lambda: Memory.open(address.replace(secret, f"{secret}x"))):
        with pytest.raises(InmindError) as error:
            call()
        assert secret not in str(error.value)


@pytest.mark.parametrize("password", ["", "a\nb", "a\0b"])
def test_a_password_that_cannot_be_typed_is_refused_and_no_tenant_is_created(
    roles: TenantRoles, admin: str, password: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        create_tenant(roles, "ada", password=password)
    assert error.value.field == "password"
    assert not is_there(admin, "ada")


# -- rights of an operator ------------------------------------------------------------------------------------


def test_a_role_that_may_create_roles_and_schemas_is_an_operator(server: Server, admin: str) -> None:
    with TenantRoles(operator_url(server, database=DATABASE)) as roles:
        address = create_tenant(roles, "ada")
        fill_tenant(address)
        inherits = "SELECT inherit_option FROM pg_auth_members WHERE roleid = 'ada'::regrole"
        assert {*query_sql(admin, inherits)} == {(False,)}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):  # the operator's role cannot read their tables
            query_sql(server.url(OPERATOR, password=PASSWORD, database=DATABASE, tcp=True), "SELECT * FROM ada.events")
        assert roles.erase("ada").events > 3
    assert not is_there(admin, "ada")


@pytest.mark.parametrize("rights", ["NOCREATEROLE", "CREATEROLE"], ids=["without CREATEROLE", "without CREATE"])
def test_a_missing_right_is_named_and_nothing_is_left_over(server: Server, admin: str, rights: str) -> None:
    execute_sql(admin, f"CREATE ROLE weak LOGIN {rights} PASSWORD '{PASSWORD}'")
    if rights == "NOCREATEROLE":
        execute_sql(admin, f"GRANT CREATE ON DATABASE {DATABASE} TO weak")
    with pytest.raises(InvalidInput, match=r"CREATEROLE.*CREATE on the database") as error:  # noqa: SIM117
        with TenantRoles(server.url("weak", password=PASSWORD, database=DATABASE, tcp=True)) as roles:
            create_tenant(roles, "ada")
    assert PASSWORD not in str(error.value)
    assert not is_there(admin, "ada")
    assert query_sql(admin, "SELECT 1 FROM pg_namespace WHERE nspname = 'ada'") == []


def test_an_operator_who_cannot_revoke_access_creates_no_tenant(server: Server, admin: str) -> None:
    execute_sql(admin, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    with TenantRoles(operator_url(server, database=DATABASE)) as roles:
        with pytest.raises(UnsafeStorage, match='REVOKE CREATE ON SCHEMA "public" FROM PUBLIC'):
            create_tenant(roles, "ada")
        assert not is_there(admin, "ada")
        execute_sql(admin, 'REVOKE CREATE ON SCHEMA "public" FROM PUBLIC')
        fill_tenant(create_tenant(roles, "ada"))


def test_an_operator_reaches_no_tenant_of_another_operator(server: Server, roles: TenantRoles) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    before = roles.inventory("ada")
    with TenantRoles(operator_url(server, database=DATABASE)) as others:
        for call in (others.inventory, others.erase):
            with pytest.raises(InvalidInput, match="CREATEROLE"):
                call("ada")
    assert roles.inventory("ada") == before


def test_other_roles_are_not_listed_erased_or_replaced(roles: TenantRoles, admin: str) -> None:
    """A superuser with a memory, a role with another program's schema, one without a schema."""
    Memory.open(admin, embedder=None).close()
    execute_sql(
        admin, "CREATE ROLE app LOGIN", "CREATE SCHEMA app AUTHORIZATION app", "CREATE TABLE app.orders (id int)"
    )
    execute_sql(admin, "ALTER TABLE app.orders OWNER TO app", "CREATE ROLE plain LOGIN", "CREATE SCHEMA lonely")
    assert roles.list_all() == []
    for name in ("postgres", "app", "plain", "lonely"):
        with pytest.raises(InmindError):
            roles.erase(name)
        with pytest.raises(InvalidInput, match=r"a name that no|does not exist yet"):
            create_tenant(roles, name)
    assert query_sql(admin, "SELECT count(*) FROM app.orders") == [(0,)]


def test_concurrent_creation_gives_a_usable_tenant(admin: str) -> None:
    def attempt(_: int) -> str:
        with TenantRoles(admin) as roles:
            with suppress(InvalidInput):
                return create_tenant(roles, "ada", password="the same")
            return ""

    with ThreadPoolExecutor(4) as pool:
        addresses = [one for one in pool.map(attempt, range(4)) if one]
    assert addresses
    fill_tenant(addresses[0])


# -- erasing --------------------------------------------------------------------------------------------------


def test_erasing_a_tenant_removes_all_its_objects(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    with Memory.open(address, embedder="wordllama") as memory:
        assert memory.search("tabs")
        memory.flush()
    jobs = Database(address)
    Jobs(jobs).create_tables()
    jobs.close()
    [(number,)] = query_sql(admin, "SELECT oid FROM pg_roles WHERE rolname = 'ada'")
    execute_sql(address, "CREATE TABLE ada.more (a int)", "SELECT lo_create(0)", "ALTER ROLE ada SET work_mem = '1MB'")
    assert roles.erase("ada").events > 3
    for remaining in (
        "pg_class WHERE relowner = %s",
        "pg_namespace WHERE nspowner = %s",
        "pg_proc WHERE proowner = %s",
        "pg_type WHERE typowner = %s",
        "pg_largeobject_metadata WHERE lomowner = %s",
        "pg_shdepend WHERE refobjid = %s",
        "pg_db_role_setting WHERE setrole = %s",
        "pg_authid WHERE oid = %s",
    ):
        assert query_sql(admin, f"SELECT count(*) FROM {remaining}", number) == [(0,)], remaining
    assert query_sql(admin, "SELECT count(*) FROM pg_namespace WHERE nspname = 'ada'") == [(0,)]


def test_erasing_a_tenant_ends_its_connections(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    with psycopg.connect(address) as held, psycopg.connect(address, autocommit=True) as idle:
        held.execute("SELECT * FROM ada.streams FOR UPDATE")
        idle.execute("SELECT 1")
        roles.erase("ada")
        for connection in (held, idle):
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
            connection.close()
    assert query_sql(admin, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'ada'") == [(0,)]


def test_clients_that_reconnect_during_an_erase_get_tenant_not_found(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    [(number,)] = query_sql(admin, "SELECT oid::bigint FROM pg_roles WHERE rolname = 'ada'")
    turns: dict[int, int] = {}

    def work(client: int) -> str:
        with Memory.open(address, embedder=None) as memory:
            for turn in count():
                turns[client] = turn
                try:
                    memory.session(f"of {client}", resource="ada", cwd="/w").note(f"note {turn}")
                except OutcomeUnknown:
                    continue
                except InmindError as error:
                    return f"{error.code}: {error}"
        raise AssertionError("the client was not refused")

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, client) for client in range(4)]
        wait_until(lambda: len(turns) == 4 and min(turns.values()) > 1, "a client has not written")
        roles.erase("ada")
        outcomes = [each.result(60) for each in futures]
    for each in outcomes:
        assert each.startswith("STORE_UNAVAILABLE"), each
        assert "tenant not found (moved, erased, or wrong password)" in each
    assert query_sql(admin, "SELECT count(*) FROM pg_stat_activity WHERE usesysid = %s", number) == [(0,)]


def test_an_open_memory_of_a_dropped_tenant_raises_tenant_not_found(roles: TenantRoles, admin: str) -> None:
    """The tenant was dropped by SQL, which is not damage."""
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    with Memory.open(address, embedder=None) as memory:
        execute_sql(admin, "DROP OWNED BY ada CASCADE", "DROP ROLE ada")
        for act in (memory.sessions, lambda: memory.session("shop").note("one more")):
            with pytest.raises(StoreUnavailable, match="tenant not found"):
                act()


def test_a_tenant_that_could_not_be_erased_can_still_connect(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    execute_sql(address, "GRANT USAGE ON SCHEMA ada TO PUBLIC", "GRANT SELECT ON ada.events TO PUBLIC")
    execute_sql(admin, "CREATE VIEW public.how_many AS SELECT count(*) FROM ada.events")
    with pytest.raises(StoreError, match="nothing was erased"), roles.lock("ada") as held:
        held.erase()
    fill_tenant(address, session="later")
    with pytest.raises(StoreError, match="nothing was erased"):
        roles.erase("ada")
    fill_tenant(address, session="latest")
    execute_sql(admin, "DROP VIEW public.how_many")


def test_a_tenant_cannot_act_as_operator(roles: TenantRoles) -> None:
    address = create_tenant(roles, "ada")
    create_tenant(roles, "bob")
    with pytest.raises(InvalidInput, match="a superuser, or a role with CREATEROLE"):
        TenantRoles(address)


def test_the_error_for_a_refused_url_names_the_reason(roles: TenantRoles, server: Server) -> None:
    address = create_tenant(roles, "ada")
    for url, message in (
        (server.url("ada", password="wrong", database=DATABASE, tcp=True), "password authentication failed"),
        (server.url("ada", password="", database=DATABASE, tcp=True), "no password supplied"),
        (f"{address}?sslmode=require", "SSL"),
        (server.url(database="nowhere", tcp=True), 'database "nowhere" does not exist'),
    ):
        for opening in (lambda url=url: Memory.open(url, embedder=None), lambda url=url: TenantRoles(url)):
            with pytest.raises(InvalidInput, match=r"~/\.pgpass") as error:
                opening()
            assert (error.value.field, message in str(error.value)) == ("url", True), error.value


def test_a_tenant_with_dependent_objects_of_others_is_not_erased(roles: TenantRoles, admin: str) -> None:
    address = create_tenant(roles, "ada")
    fill_tenant(address)
    execute_sql(address, "GRANT USAGE ON SCHEMA ada TO PUBLIC", "GRANT SELECT ON ada.events TO PUBLIC")
    execute_sql(admin, "CREATE VIEW public.how_many AS SELECT count(*) FROM ada.events")
    before = roles.inventory("ada")
    with pytest.raises(StoreError, match="nothing was erased"):
        roles.erase("ada")
    assert roles.inventory("ada") == before
    execute_sql(admin, "DROP VIEW public.how_many")
    roles.erase("ada")


def test_a_role_with_objects_in_another_database_is_not_erased(roles: TenantRoles, server: Server) -> None:
    fill_tenant(create_tenant(roles, "ada"))
    execute_sql(server.url(), "CREATE SCHEMA ada AUTHORIZATION ada")
    before = roles.inventory("ada")
    with pytest.raises(StoreError, match="nothing was erased"):
        roles.erase("ada")
    assert roles.inventory("ada") == before
    execute_sql(server.url(), "DROP SCHEMA ada")
    roles.erase("ada")


def test_an_erase_that_times_out_changes_nothing(
    admin: str, roles: TenantRoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator's connection holds a lock; an erase ends only connections of the tenant."""
    monkeypatch.setattr("inmind.store.postgres.tenants._LOCK_TIMEOUT", "50ms")
    fill_tenant(create_tenant(roles, "ada"))
    before = roles.inventory("ada")
    with psycopg.connect(admin) as held:
        held.execute("SELECT count(*) FROM ada.streams")
        with pytest.raises(StoreBusy):
            roles.erase("ada")
    assert roles.inventory("ada") == before


# -- hostile objects in a schema ------------------------------------------------------------------------------

TRAP = """
CREATE FUNCTION eve.trap() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'RESET ROLE';
    BEGIN EXECUTE 'ALTER ROLE eve SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN EXECUTE 'ALTER ROLE eve CREATEROLE'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN EXECUTE 'GRANT ada TO eve'; EXCEPTION WHEN OTHERS THEN NULL; END;
    BEGIN EXECUTE 'GRANT CREATE ON DATABASE memories TO eve'; EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN 1;
END $$;
CREATE FUNCTION eve.trap_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM eve.trap(); RETURN NEW; END $$;
"""

TRAPS = {
    "views": """
        ALTER TABLE eve.streams RENAME TO real_streams;
        CREATE VIEW eve.streams AS SELECT * FROM eve.real_streams WHERE eve.trap() > 0;
        ALTER TABLE eve.keys RENAME TO real_keys;
        CREATE VIEW eve.keys AS SELECT * FROM eve.real_keys WHERE eve.trap() > 0;
        ALTER TABLE eve.inmind_steps RENAME TO real_steps;
        CREATE VIEW eve.inmind_steps AS SELECT * FROM eve.real_steps WHERE eve.trap() > 0;
    """,
    "policies": """
        ALTER TABLE eve.streams ENABLE ROW LEVEL SECURITY;
        ALTER TABLE eve.streams FORCE ROW LEVEL SECURITY;
        CREATE POLICY trap ON eve.streams USING (eve.trap() > 0);
    """,
    "triggers": """
        CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON eve.streams FOR EACH ROW EXECUTE FUNCTION eve.trap_row();
        CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON eve.snapshots FOR EACH ROW EXECUTE FUNCTION eve.trap_row();
        CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON eve.owners FOR EACH ROW EXECUTE FUNCTION eve.trap_row();
    """,
}


def privileges(admin: str) -> list[tuple[object, ...]]:
    columns = "rolsuper, rolcreaterole, has_database_privilege(oid, current_database(), 'CREATE')"
    member = "EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid)"
    return query_sql(admin, f"SELECT {columns}, {member} FROM pg_roles WHERE rolname = 'eve'")


@pytest.mark.parametrize("kind", TRAPS)
@pytest.mark.parametrize("role", ["superuser", pytest.param("operator", marks=pytest.mark.exhaustive)])
def test_objects_in_a_tenants_schema_never_run_with_an_operators_rights(
    server: Server, admin: str, tmp_path: Path, kind: str, role: str
) -> None:
    url = admin if role == "superuser" else operator_url(server, database=DATABASE)
    with TenantRoles(url) as roles, TenantHomes(tmp_path / "homes") as homes:
        fill_tenant(create_tenant(roles, "ada"))
        eve = create_tenant(roles, "eve")
        fill_tenant(eve)
        execute_sql(eve, TRAP, TRAPS[kind])
        for act in (
            lambda: roles.inventory("eve"),
            lambda: create_tenant(roles, "eve"),
            lambda: export_eve(roles, tmp_path / "eve.inmind"),
            lambda: move("eve", roles, homes, keep=True, on_address=ignore, watch=ignore),
            lambda: move("eve", homes, roles, keep=True, on_address=ignore, watch=ignore),
            lambda: lock_eve(roles),
        ):
            with suppress(InmindError):
                act()
            assert privileges(admin) == [(False, False, False, False)]
        roles.erase("eve")
        assert not is_there(admin, "eve")
        assert roles.inventory("ada").events > 3


def ignore(*_: object) -> None: ...


def export_eve(roles: TenantRoles, to: Path) -> None:
    with roles.open_as_operator("eve") as place, Memory.open(place, embedder=None) as memory:
        memory.export(to)


def lock_eve(roles: TenantRoles) -> None:
    with roles.lock("eve") as eve:
        eve.inventory()


def test_the_traps_work_after_a_plain_set_role(roles: TenantRoles, admin: str) -> None:
    """The test before this one proves nothing if the traps do not work."""
    eve = create_tenant(roles, "eve")
    fill_tenant(eve)
    execute_sql(eve, TRAP, TRAPS["views"])
    execute_sql(admin, "SET ROLE eve; SELECT count(*) FROM eve.streams")
    [(is_superuser, *_)] = privileges(admin)
    assert is_superuser is True


def test_delegate_roles_are_removed_after_use_or_expiry(roles: TenantRoles, admin: str) -> None:
    fill_tenant(create_tenant(roles, "ada"))
    delegates = "SELECT rolname FROM pg_roles WHERE rolname LIKE 'inmind_delegate_%%'"
    with roles.open_as_operator("ada") as place:
        [(name,)] = query_sql(admin, delegates)
        assert urlsplit(place).username == name
        assert query_sql(place, "SELECT current_user::text, session_user::text") == [("ada", name)]
        for statement in ("CREATE ROLE more", "SET ROLE postgres", "CREATE SCHEMA more", "ALTER ROLE ada LOGIN"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                execute_sql(place, f"RESET ROLE; {statement}")
    assert query_sql(admin, delegates) == []
    with pytest.raises(InvalidInput, match="that the server accepts"):
        Memory.open(place, embedder=None)
    execute_sql(admin, "CREATE ROLE inmind_delegate_left LOGIN VALID UNTIL '2020-01-01' IN ROLE ada")
    execute_sql(admin, "CREATE ROLE inmind_delegate_busy LOGIN VALID UNTIL '2120-01-01' IN ROLE ada")
    roles.inventory("ada")
    assert query_sql(admin, delegates) == [("inmind_delegate_busy",)]


# -- invalid places -------------------------------------------------------------------------------------------


def test_the_error_for_a_role_without_a_tenant_names_the_command(server: Server, admin: str) -> None:
    execute_sql(admin, f"CREATE ROLE lost LOGIN PASSWORD '{PASSWORD}'")
    with pytest.raises(UnsafeStorage, match="`inmind tenant create`"):
        Memory.open(server.url("lost", password=PASSWORD, database=DATABASE, tcp=True), embedder=None)


def test_a_schema_of_another_role_is_not_written_to(server: Server, admin: str) -> None:
    """Its owner could read everything that is written there."""
    execute_sql(admin, f"CREATE ROLE spy LOGIN PASSWORD '{PASSWORD}'", f"CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'")
    execute_sql(admin, "CREATE SCHEMA ada AUTHORIZATION spy", "GRANT ALL ON SCHEMA ada TO ada")
    with pytest.raises(UnsafeStorage, match="belongs to another role"):
        Memory.open(server.url("ada", password=PASSWORD, database=DATABASE, tcp=True), embedder=None)


@pytest.mark.parametrize("ignored", ["extra_float_digits", "options"], ids=["refused", "ignored"])
def test_an_operators_url_that_leads_to_a_pooler_is_refused(server: Server, postgres_run: Run, ignored: str) -> None:
    """A pooler would give the role of a delegate to its next client."""
    port = pgbouncer.free_port()
    with TemporaryDirectory(dir=postgres_run.folder) as folder:
        config = (
            f"[databases]\n* = host={server.folder} port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\n"
            f"pool_mode = transaction\nignore_startup_parameters = {ignored}\n"
        )
        with (
            pgbouncer.pooler(Path(folder), config, port=port, users='"postgres" ""\n'),
            pytest.raises(InvalidInput, match="of the server itself, not of a pooler"),
        ):
            TenantRoles(f"postgresql://postgres@127.0.0.1:{port}/{DATABASE}?sslmode=disable")


def test_a_refused_operator_url_is_reported_without_its_password(server: Server) -> None:
    for url, expected in (
        (server.url("unknown", password="hush-hush", tcp=True), InvalidInput),
        ("postgresql://a:hush-hush@127.0.0.1:1/x", StoreUnavailable),
    ):
        with pytest.raises(expected) as error:
            TenantRoles(url)
        assert "hush-hush" not in str(error.value)
    with pytest.raises(InvalidInput) as malformed:
        TenantRoles("postgresql://a:hush-hush@b:c@d/x")
    assert "hush-hush" not in str(malformed.value)
