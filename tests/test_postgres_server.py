"""The PostgreSQL server of the tests is as strict as in production and ends with the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from postgres import Run, Server, Tenants, wait_until


def test_the_shared_server_is_durable_and_has_pgvector(postgres_admin: str) -> None:
    with psycopg.connect(postgres_admin) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute("SELECT current_setting(%s)", [setting]).fetchone() == ("on",)
        assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (True,)


def test_a_tenant_creates_its_schema_and_sees_no_other(tenants: Tenants) -> None:
    with tenants.fresh() as ada, tenants.fresh() as bob, psycopg.connect(ada) as mine, psycopg.connect(bob) as theirs:
        mine.execute("CREATE SCHEMA AUTHORIZATION CURRENT_USER CREATE TABLE kept (v int)")
        mine.commit()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            theirs.execute(f"SELECT * FROM {mine.info.user}.kept".encode())


def test_a_removed_tenant_leaves_nothing_even_with_an_open_transaction(tenants: Tenants, postgres_admin: str) -> None:
    with tenants.fresh() as url:
        connection = psycopg.connect(url)
        connection.execute("CREATE SCHEMA AUTHORIZATION CURRENT_USER CREATE TABLE kept (v int)")
        connection.commit()
        connection.execute("SELECT * FROM pg_class")
    name = connection.info.user
    connection.close()
    with psycopg.connect(postgres_admin) as admin:
        assert admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [name]).fetchone() is None
        assert admin.execute("SELECT FROM pg_namespace WHERE nspname = %s", [name]).fetchone() is None


def test_a_private_server_has_settings_and_survives_stop_and_crash(
    postgres_run: Run,
) -> None:
    with postgres_run.server(work_mem="1234kB") as server:
        server.start()
        with psycopg.connect(server.url(), autocommit=True) as connection:
            assert connection.execute("SHOW work_mem").fetchone() == ("1234kB",)
            connection.execute("CREATE TABLE kept (v text)")
        for end in (server.stop, lambda: server.stop("immediate"), server.kill_postmaster):
            connection = psycopg.connect(server.url(), autocommit=True)
            connection.execute("INSERT INTO kept VALUES ('acknowledged')")
            first = server.pid
            end()
            assert not server.is_running
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
            connection.close()
            server.start()
            assert server.pid != first
        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (3,)


def test_the_port_requires_a_password(postgres_run: Run) -> None:
    server = postgres_run.shared()
    psycopg.connect(server.url(tcp=True)).close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url(password="wrong", tcp=True))


def test_a_killed_run_leaves_no_server(postgres_run: Run) -> None:
    run_process = subprocess.Popen(
        [sys.executable, "-c", _HANGING_RUN, str(postgres_run.template())],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run_process.stdout is not None
    folder = Path(run_process.stdout.readline().strip())
    server = Server(Run(folder), "shared")
    postmaster = server.pid
    assert postmaster is not None
    os.kill(run_process.pid, signal.SIGKILL)
    run_process.communicate()
    wait_until(lambda: not folder.exists(), f"{folder} remains")
    wait_until(lambda: not _is_alive(postmaster), f"{postmaster} remains")


_HANGING_RUN = """
import subprocess, sys, time
from postgres import Run
run = Run.begin()
subprocess.run(["cp", "-a", sys.argv[1], run.folder / "template"], check=True)
run.shared()
print(run.folder, flush=True)
time.sleep(600)
"""


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
