"""The measured server: new for each part, on disk, configured like a small production one."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # for the servers of the tests

import postgres
import psycopg
from psycopg.conninfo import conninfo_to_dict

T = TypeVar("T")

QUICK = os.environ.get("INMIND_BENCH_QUICK", "0") != "0"

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "2GB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
    "effective_cache_size": "8GB",
    "maintenance_work_mem": "512MB",
    "dynamic_shared_memory_type": "posix",
}
WAL_SEGMENT_MEGABYTES = 16


def choose_size(full: T, quick: T) -> T:
    """Return the full size, or the quick one if INMIND_BENCH_QUICK is set."""
    return quick if QUICK else full


@dataclass(frozen=True, slots=True)
class BenchServer:
    """A server with one new tenant."""

    admin: str
    tenant: str
    server: postgres.Server | None

    def query(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a query as the superuser."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            return connection.execute(statement.encode(), values or None).fetchall()

    @property
    def schema(self) -> str:
        return str(conninfo_to_dict(self.tenant)["user"])

    def finish_background_work(self) -> None:
        """Vacuum and checkpoint, so that earlier work does not affect the next measurement."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")

    def drop_caches(self) -> bool:
        """Drop the data from the caches of server and system. Return False if that is impossible."""
        if self.server is None or not hasattr(os, "posix_fadvise"):
            return False
        self.server.stop()
        for path in self.server.data.rglob("*"):
            if path.is_file():
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
        self.server.start()
        return True

    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """Return the bytes of each table of the tenant, of its indexes, and its rows."""
        return {name: (table, indexes, rows) for name, table, indexes, rows in self.query(_SIZES, self.schema)}

    @property
    def data_bytes(self) -> int:
        """Bytes of all tables of the tenant with their indexes."""
        return sum(table + indexes for table, indexes, _ in self.sizes().values())

    @property
    def wal_bytes(self) -> int:
        """Bytes written to the WAL so far."""
        return int(self.query("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0][0])

    @property
    def cpu_seconds(self) -> float | None:
        """CPU seconds of all server processes so far, including those that have ended."""
        if self.server is None or self.server.pid is None or sys.platform != "linux":
            return None
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text().rpartition(") ")[2].split()
                if int(stat.parent.name) == self.server.pid:
                    ticks += sum(map(int, fields[11:15]))
                elif int(fields[1]) == self.server.pid:
                    ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def count(self, table: str) -> int:
        return self.query(f"SELECT count(*) FROM {self.schema}.{table}")[0][0]

    @property
    def description(self) -> str:
        """The server, its storage and its cores, for a note."""
        version = self.query("SHOW server_version")[0][0]
        source = (
            f"started for this, data in {_file_system()}" if self.server else f"given by ${postgres.SERVER_VARIABLE}"
        )
        description = (
            f"PostgreSQL {version}, {source}, fsync and synchronous_commit on; {os.cpu_count()} cores for all of it."
        )
        return f"{description} Small sizes: no result." if QUICK else description


@contextmanager
def start_server() -> Generator[BenchServer]:
    if admin_url := os.environ.get(postgres.SERVER_VARIABLE):
        with closing(postgres.Tenants(admin_url)) as tenants, tenants.fresh() as tenant_url:
            yield BenchServer(admin_url, tenant_url, None)
        return
    run = postgres.Run.begin(on_disk=True)
    run.segment = WAL_SEGMENT_MEGABYTES
    try:
        with run.server(**SETTINGS) as server:
            server.start()
            yield BenchServer(server.url(), _create_tenant(server), server)
    finally:
        run.end()


def _create_tenant(server: postgres.Server) -> str:
    """Create a tenant that is never removed, so that the server can be restarted."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE bench LOGIN PASSWORD '{postgres.PASSWORD}'".encode())
        connection.execute("GRANT CREATE ON DATABASE postgres TO bench")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return server.url("bench")


def _file_system() -> str:
    folder = Path(os.environ.get("TMPDIR") or "/tmp").resolve()  # noqa: S108 -- only inspected
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()] if sys.platform == "linux" else []
    on = [(len(place), kind) for _, place, kind, *_ in mounts if folder.is_relative_to(place)]
    return max(on)[1] if on else "a temporary folder"


_SIZES = """
SELECT relname, pg_relation_size(pg_class.oid) + coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0),
    pg_indexes_size(pg_class.oid), greatest(reltuples, 0)::bigint
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND nspname = %s ORDER BY relname
"""
