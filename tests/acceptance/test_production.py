"""The instructions of the page on production work: backups can be restored, and tables changed while in use."""

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
from inmind.store.named_sql import load_queries
from inmind.store.postgres import PostgresStore

PAGE = (PROJECT / "docs" / "how-to" / "run-in-production.md").read_text("utf-8")
ON_TENANTS = (PROJECT / "docs" / "how-to" / "tenants.md").read_text("utf-8")
ON_PAPER = (PROJECT / "docs" / "hundred-million.md").read_text("utf-8")


@pytest.fixture
def drill(postgres_admin: str) -> Generator[str]:
    """An empty database next to the one of the other tests."""
    name = f"drill_{os.urandom(6).hex()}"
    with psycopg.connect(postgres_admin, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            with psycopg.connect(elsewhere(postgres_admin, name), autocommit=True) as there:
                there.execute("CREATE EXTENSION vector")
            yield elsewhere(postgres_admin, name)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_a_dump_of_a_tenant_without_its_index_restores_completely(
    tenant_url: str, postgres_admin: str, postgres_run: postgres.Run, drill: str, tmp_path: Path
) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        session = memory.session("gateway", resource="lin")
        prompt = session.prepare([{"role": "user", "content": "The ferry leaves from pier 7."}])
        session.note("Lin looks after the gateway at night.")
        found = [hit.crystal.id for hit in memory.resource("lin").search("ferry pier")]
    assert found
    schema, dump = urlsplit(tenant_url).username or "", tmp_path / "dump"
    [derived] = re.findall(r"--exclude-table-data='acme\.(\S+?)'", PAGE)
    tables = load_queries("index", package="inmind.store.postgres")("tables")
    assert {*derived.strip("()").split("|")} == {*re.findall(r"'(\w{2,})'", tables)}
    programs = postgres_run.programs()
    excluded = f"--exclude-table-data={schema}.{derived}"
    run(programs / "pg_dump", "-Fc", f"--schema={schema}", excluded, f"--file={dump}", f"--dbname={postgres_admin}")
    run(programs / "pg_restore", "--exit-on-error", f"--dbname={drill}", dump)
    with psycopg.connect(drill, autocommit=True) as admin:
        assert counted(admin, schema, "events") > 0
        assert counted(admin, schema, "passages") == counted(admin, schema, "followed") == 0
    with Memory.open(elsewhere(tenant_url, urlsplit(drill).path[1:]), embedder=None) as memory:
        again = memory.session("gateway")
        assert again.prompt(1).request == prompt.request
        assert [hit.crystal.id for hit in memory.resource("lin").search("ferry pier")] == found
        again.note("The restored one goes on.")
        assert len(memory.resource("lin").search("restored")) == 1


def test_an_index_dropped_by_an_operator_is_rebuilt(tenant_url: str) -> None:
    [dropping] = re.findall(r"`(DROP TABLE \w+)`", PAGE)
    with Memory.open(tenant_url, embedder=None) as memory:
        memory.session("gateway", resource="lin").note("Lin looks after the gateway at night.")
        before = memory.resource("lin").search("gateway night")
        with psycopg.connect(tenant_url, autocommit=True) as operator:
            operator.execute(dropping.encode())
        assert [hit.crystal for hit in memory.resource("lin").search("gateway night")] == [
            hit.crystal for hit in before
        ]


def test_the_documented_table_settings_apply_to_existing_tables(tenant_url: str) -> None:
    PostgresStore.open(tenant_url).close()
    [settings] = re.findall(r"```sql\n((?:ALTER TABLE .*\n)+)```", PAGE)
    ours = [line for line in settings.splitlines() if "procrastinate" not in line]
    assert len(ours) == len(settings.splitlines()) - 1 == 3
    with psycopg.connect(tenant_url, autocommit=True) as operator:
        for line in ours:
            operator.execute(line.encode())


@pytest.mark.parametrize("by", ["a superuser", "the tenant"])
def test_a_journal_can_be_partitioned_by_owner(tenant_url: str, postgres_admin: str, by: str) -> None:
    """As printed, except for the name of the tenant. The tables stay the tenant's."""
    [partitioning] = re.findall(r"```sql\n(BEGIN;\n.+?)```", ON_PAPER, re.DOTALL)
    schema = urlsplit(tenant_url).username or ""
    with Memory.open(tenant_url, embedder=None) as memory:
        for resource in ("ada", "ben", "cyd"):
            memory.session(resource, resource=resource).note(f"{resource} likes tea.")
        with psycopg.connect(tenant_url if by == "the tenant" else postgres_admin, autocommit=True) as operator:
            psycopg.ClientCursor(operator).execute(partitioning.replace("acme", schema).encode())
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
    [short] = re.findall(r"```ini\n(auth_type.+?)```", ON_TENANTS, re.DOTALL)
    assert {*short.splitlines()} <= {*config.splitlines()}
    [making] = re.findall(r"```sql\n(CREATE ROLE pgbouncer .+?)```", ON_TENANTS, re.DOTALL)
    [listed] = re.findall(r'`("pgbouncer" ".+?")`', PAGE)
    role, secret = f"pgbouncer_{os.urandom(6).hex()}", os.urandom(6).hex()
    name, database, port = urlsplit(tenant_url).username or "", urlsplit(drill).path[1:], pgbouncer.free_port()
    with (
        TemporaryDirectory(dir=postgres_run.folder) as folder,
        psycopg.connect(drill, autocommit=True) as there,
    ):
        host = (
            "127.0.0.1" if there.info.host.startswith("/") else there.info.host
        )  # a socket connection needs no password
        for printed, here in {
            "listen_addr = *": "listen_addr = 127.0.0.1\nunix_socket_dir =",
            "listen_port = 6432": f"listen_port = {port}",
            "host=db.internal port=5432 dbname=memory": f"host={host} port={there.info.port} dbname={database}",
            "/etc/pgbouncer/userlist.txt": f"{folder}/userlist.txt",
            "auth_user = pgbouncer": f"auth_user = {role}",
        }.items():
            assert printed in config
            config = config.replace(printed, here)
        making = making.replace("pgbouncer LOGIN", f"{role} LOGIN").replace("'…'", f"'{secret}'")
        making = re.sub(r"(AUTHORIZATION|TO) pgbouncer\b", rf"\1 {role}", making)
        try:
            psycopg.ClientCursor(there).execute(making.encode())
            there.execute(f"GRANT CREATE ON DATABASE {database} TO {name}".encode())
            users = listed.replace("pgbouncer", role).replace("its password", secret) + "\n"
            with pgbouncer.pooler(Path(folder), config, port=port, **{"userlist.txt": users}):
                password = urlsplit(tenant_url).password
                url = f"postgresql://{name}:{password}@127.0.0.1:{port}/memory"
                with Memory.open(url, embedder=None) as memory:
                    memory.resource("lin").note("Lin looks after the gateway at night.")
                    assert len(memory.resource("lin").search("gateway night")) == 1
                with pytest.raises(InmindError):
                    Memory.open(url.replace(f":{password}@", ":another@"))
        finally:
            there.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())
            there.execute(f"DROP OWNED BY {name} CASCADE".encode())


def elsewhere(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def counted(connection: psycopg.Connection[tuple[object, ...]], schema: str, table: str) -> int:
    [(number,)] = connection.execute(f"SELECT count(*) FROM {schema}.{table}".encode()).fetchall()
    assert isinstance(number, int)
    return number


def run(program: Path, *arguments: str | Path) -> None:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
