"""The documented production tasks: restoring backups and changing tables in use."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

import pgbouncer
import postgres
import psycopg
import pytest
from pages import PROJECT

from inmind import Memory
from inmind.errors import InmindError
from inmind.store.postgres import PostgresStore
from inmind.store.rows import load_queries

PAGE = (PROJECT / "docs" / "how-to" / "run-in-production.md").read_text("utf-8")
TENANTS_PAGE = (PROJECT / "docs" / "how-to" / "tenants.md").read_text("utf-8")
SCALE_PAGE = (PROJECT / "docs" / "hundred-million.md").read_text("utf-8")


@pytest.fixture
def drill(postgres_admin: str) -> Generator[str]:
    """An empty database next to the one of the other tests."""
    name = f"drill_{os.urandom(6).hex()}"
    with psycopg.connect(postgres_admin, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            with psycopg.connect(database_url(postgres_admin, name), autocommit=True) as database:
                database.execute("CREATE EXTENSION vector")
            yield database_url(postgres_admin, name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_dump_of_a_tenant_without_its_index_restores_completely(
    tenant_url: str, postgres_admin: str, postgres_run: postgres.Run, drill: str, tmp_path: Path
) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        session = memory.session("gateway", resource="lin")
        prompt = session.prepare([{"role": "user", "content": "The ferry leaves from pier 7."}])
        session.note("Lin looks after the gateway at night.")
        hits = [hit.crystal.id for hit in memory.resource("lin").search("ferry pier")]
    assert hits
    schema, dump = urlsplit(tenant_url).username or "", tmp_path / "dump"
    [derived] = re.findall(r"--exclude-table-data='acme\.(\S+?)'", PAGE)
    tables = load_queries("postgres/index")("tables")
    assert {*derived.strip("()").split("|")} == {*re.findall(r"'(\w{2,})'", tables)}
    programs = postgres_run.programs()
    excluded = f"--exclude-table-data={schema}.{derived}"
    run(programs / "pg_dump", "-Fc", f"--schema={schema}", excluded, f"--file={dump}", f"--dbname={postgres_admin}")
    run(programs / "pg_restore", "--exit-on-error", f"--dbname={drill}", dump)
    with psycopg.connect(drill, autocommit=True) as admin:
        assert count_rows(admin, schema, "events") > 0
        assert count_rows(admin, schema, "passages") == count_rows(admin, schema, "followed") == 0
    with Memory.open(database_url(tenant_url, urlsplit(drill).path[1:]), embedder=None) as memory:
        restored = memory.session("gateway")
        assert restored.prompt(1).request == prompt.request
        assert [hit.crystal.id for hit in memory.resource("lin").search("ferry pier")] == hits
        restored.note("The restored one goes on.")
        assert len(memory.resource("lin").search("restored")) == 1


def test_an_index_dropped_by_an_operator_is_rebuilt(tenant_url: str) -> None:
    [statement] = re.findall(r"`(DROP TABLE \w+)`", PAGE)
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.session("gateway", resource="lin").note("Lin looks after the gateway at night.")
        before = memory.resource("lin").search("gateway night")
        with psycopg.connect(tenant_url, autocommit=True) as operator:
            operator.execute(statement.encode())
        assert [hit.crystal for hit in memory.resource("lin").search("gateway night")] == [
            hit.crystal for hit in before
        ]


def test_the_documented_table_settings_apply_to_existing_tables(tenant_url: str) -> None:
    PostgresStore.open(tenant_url).close()
    [settings] = re.findall(r"```sql\n((?:ALTER TABLE .*\n)+)```", PAGE)
    lines = [line for line in settings.splitlines() if "procrastinate" not in line]
    assert len(lines) == len(settings.splitlines()) - 1 == 3
    with psycopg.connect(tenant_url, autocommit=True) as operator:
        for line in lines:
            operator.execute(line.encode())


@pytest.mark.parametrize("by", ["a superuser", "the tenant"])
def test_a_journal_can_be_partitioned_by_owner(tenant_url: str, postgres_admin: str, by: str) -> None:
    """As documented, except for the name of the tenant, which still owns the tables."""
    [statements] = re.findall(r"```sql\n(BEGIN;\n.+?)```", SCALE_PAGE, re.DOTALL)
    schema = urlsplit(tenant_url).username or ""
    with Memory.open(tenant_url, embedder=None) as memory:
        for resource in ("ada", "ben", "cyd"):
            memory.session(resource, resource=resource).note(f"{resource} likes tea.")
        with psycopg.connect(tenant_url if by == "the tenant" else postgres_admin, autocommit=True) as operator:
            psycopg.ClientCursor(operator).execute(statements.replace("acme", schema).encode())
        memory.session("ada").note("ada has had the memory open all the time.")
    with Memory.open(tenant_url, embedder=None) as memory:
        for resource in ("ada", "ben", "cyd", "dan"):
            session = memory.session(resource, resource=resource)
            session.note(f"{resource} likes coffee.")
            assert len(memory.resource(resource).search("likes coffee", limit=1)) == 1
        assert len(memory.session("ada").events()) >= 1
        assert memory.resources() == ["ada", "ben", "cyd", "dan"]
    with psycopg.connect(tenant_url, autocommit=True) as tenant:
        parts = tenant.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass").fetchone()
        assert parts == (32,)
        plan = tenant.execute("EXPLAIN SELECT * FROM events WHERE owner = 1 AND position > 0").fetchall()
        assert sum("events_" in line and "Scan" in line for (line,) in plan) == 1


def test_a_tenant_can_connect_through_the_documented_pooler(
    tenant_url: str, postgres_run: postgres.Run, drill: str
) -> None:
    """The configuration of this page, with the role and the function of the page on tenants."""
    [config] = re.findall(r"```ini\n(\[databases\]\n.+?)```", PAGE, re.DOTALL)
    [short] = re.findall(r"```ini\n(auth_type.+?)```", TENANTS_PAGE, re.DOTALL)
    assert {*short.splitlines()} <= {*config.splitlines()}
    [statements] = re.findall(r"```sql\n(CREATE ROLE pgbouncer .+?)```", TENANTS_PAGE, re.DOTALL)
    [user_entry] = re.findall(r'`("pgbouncer" ".+?")`', PAGE)
    role, secret = f"pgbouncer_{os.urandom(6).hex()}", os.urandom(6).hex()
    name, database, port = urlsplit(tenant_url).username or "", urlsplit(drill).path[1:], pgbouncer.free_port()
    with (
        TemporaryDirectory(dir=postgres_run.folder) as folder,
        psycopg.connect(drill, autocommit=True) as connection,
    ):
        host = (
            "127.0.0.1" if connection.info.host.startswith("/") else connection.info.host
        )  # a socket connection needs no password
        for documented, replacement in {
            "listen_addr = *": "listen_addr = 127.0.0.1\nunix_socket_dir =",
            "listen_port = 6432": f"listen_port = {port}",
            "host=db.internal port=5432 dbname=memory": f"host={host} port={connection.info.port} dbname={database}",
            "/etc/pgbouncer/userlist.txt": f"{folder}/userlist.txt",
            "auth_user = pgbouncer": f"auth_user = {role}",
        }.items():
            assert documented in config
            config = config.replace(documented, replacement)
        statements = statements.replace("pgbouncer LOGIN", f"{role} LOGIN").replace("'…'", f"'{secret}'")
        statements = re.sub(r"(AUTHORIZATION|TO) pgbouncer\b", rf"\1 {role}", statements)
        try:
            psycopg.ClientCursor(connection).execute(statements.encode())
            connection.execute(f"GRANT CREATE ON DATABASE {database} TO {name}".encode())
            users = user_entry.replace("pgbouncer", role).replace("its password", secret) + "\n"
            with pgbouncer.pooler(Path(folder), config, port=port, **{"userlist.txt": users}):
                password = urlsplit(tenant_url).password
                url = f"postgresql://{name}:{password}@127.0.0.1:{port}/memory"
                with Memory.open(url, embedder=None) as memory:
                    memory.resource("lin").note("Lin looks after the gateway at night.")
                    assert len(memory.resource("lin").search("gateway night")) == 1
                with pytest.raises(InmindError):
                    Memory.open(url.replace(f":{password}@", ":another@"))
        finally:
            connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())
            connection.execute(f"DROP OWNED BY {name} CASCADE".encode())


def database_url(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def count_rows(connection: psycopg.Connection[tuple[object, ...]], schema: str, table: str) -> int:
    [(number,)] = connection.execute(f"SELECT count(*) FROM {schema}.{table}".encode()).fetchall()
    assert isinstance(number, int)
    return number


def run(program: Path, *arguments: str | Path) -> None:
    process = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
