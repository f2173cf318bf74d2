"""The job queue of a tenant's schema, and the maintenance status of its resources.

The queue is procrastinate's; the first worker creates its tables with our migrations. All queries use the same
connections as the store: they work through a pooler and have the same deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.frozen import frozen
from inmind.errors import ReadOnly
from inmind.store.postgres.connection import run_script
from inmind.store.postgres.database import Database
from inmind.store.protocol import QueueStatus
from inmind.store.rows import load_script

MIGRATIONS = ("jobs_0001",)
"""Named migrations, appended and never edited."""

_STEP_PLACEHOLDER = "-- ---- the step ----"

MAX_QUEUED = 20_000
"""Jobs in the queue after a scan, more than workers do in a minute. The next scan adds the rest."""

ANALYZE_THRESHOLD = 100
"""New jobs after which the table's statistics are updated."""

FAILED_JOB_DAYS = 7
"""Days for which failed jobs are kept."""


@frozen
class OwnerStatus:
    """An owner's state when its maintenance started."""

    position: int
    """Position of its last event."""
    maintained_position: int
    """Position up to which it was maintained; negative if never."""
    maintained_at: datetime

    @property
    def has_new_events(self) -> bool:
        return self.position > self.maintained_position


@frozen
class StalledJob:
    """A job whose worker no longer works on it."""

    id: int
    task: str
    owner: str
    attempts: int
    is_worker_dead: bool
    """The worker has sent no heartbeat for too long."""


class Jobs:
    """The job queue of one tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("postgres/jobs")
        self.identity = ""
        """Unique id of this queue."""

    @property
    def schema(self) -> str:
        return self._database.schema

    @property
    def tables_exist(self) -> bool:
        """True if a worker has run here before."""
        return self._table_exists("tenant.procrastinate_jobs")

    def create_tables(self) -> None:
        """Create or migrate the tables. If several processes do so, one of them runs each step."""
        while (have := self._schema_version()) < len(MIGRATIONS):
            with self._database.transaction() as connection:
                connection.execute(self._sql("lock_migrations"))
                if self._schema_version() == have:
                    run_script(connection, self._database.in_schema(load_script(f"postgres/{MIGRATIONS[have]}")))
                    connection.execute(self._sql("add_migration"), (have + 1, MIGRATIONS[have]))
        self._create_procrastinate_tables()
        self.identity = self._fetch_row("schema_version")[1]

    def _create_procrastinate_tables(self) -> None:
        """Create or migrate the tables of the installed procrastinate."""
        import procrastinate
        from procrastinate.schema import SchemaManager, migrations_path

        steps, version = procrastinate_migrations(), procrastinate.__version__
        while (have := self._procrastinate_version()) != steps[-1]:
            if have and have not in steps:
                other = self._fetch_row("procrastinate_version")[1]
                reason = f"its queue belongs to procrastinate {other}, and {version} is installed: install {other}"
                raise ReadOnly(place=self._database.place, reason=reason)
            with self._database.transaction() as connection:
                connection.execute(self._sql("lock_migrations"))
                if self._procrastinate_version() == have:
                    step = steps[steps.index(have) + 1] if have else steps[-1]
                    migration = migrations_path / f"{step}.sql"
                    text = migration.read_text(encoding="utf-8") if have else SchemaManager.get_schema()
                    script = load_script("postgres/engine").replace(_STEP_PLACEHOLDER, text)
                    run_script(connection, self._database.in_schema(script))
                    connection.execute(self._sql("set_procrastinate_version"), (step, version))

    def _procrastinate_version(self) -> str:
        """The last applied migration of procrastinate; empty before the first."""
        return (self._fetch_row("procrastinate_version") or ("",))[0]

    def claim_scan(self, interval: float) -> bool:
        """Claim the periodic scan; True for one caller per interval."""
        values = (0.9 * interval,)
        return bool(self._database.write(lambda connection: connection.execute(self._sql("claim_scan"), values).get))

    def enqueue_due(self, now: datetime, max_dreams: int = MAX_QUEUED) -> int:
        """Enqueue a job for each owner with new events or a due timer; returns their number.

        One process scans at a time. `max_dreams`: limit for owners whose dreams wait for a free slot.
        """
        with self._database.transaction() as connection:
            connection.execute(self._sql("lock_queue"))
            room = MAX_QUEUED - connection.execute(self._sql("count_todo")).get
            if room <= 0:
                return 0
            enqueued = connection.execute(self._sql("enqueue_due"), (to_microseconds(now), room, max_dreams)).get
            if enqueued >= ANALYZE_THRESHOLD:
                connection.execute(self._sql("analyze"))
            return enqueued

    def enqueue(self, task: str, *, concurrency: int = 1) -> None:
        """Enqueue jobs of a task without an owner, of which `concurrency` may run at once."""
        with self._database.transaction() as connection:
            connection.execute(self._sql("lock_queue"))
            connection.execute(self._sql("enqueue"), (task, concurrency))

    def owner_status(self, owner: str) -> OwnerStatus:
        position, maintained_position, maintained_at = self._fetch_row("owner_status", owner) or (0, -1, 0)
        return OwnerStatus(position, maintained_position, from_microseconds(maintained_at))

    def mark_maintained(
        self, owner: str, *, position: int, at: datetime, due: datetime, reason: str = "", waits_for_dream: bool = False
    ) -> None:
        """Record that an owner was maintained. `waits_for_dream`: its dream waits for a free slot."""
        values = (owner, position, to_microseconds(at), to_microseconds(due), reason, waits_for_dream)
        self._database.write(
            lambda connection: connection.execute(self._sql("mark_maintained"), values), retryable=True
        )

    def dreams_ahead(self, owner: str, limit: int) -> int:
        """Number of owners that have waited longer for a dream, at most `limit`."""
        return self._fetch_row("dreams_ahead", owner, limit)[0]

    def jobs_of_worker(self, worker: int) -> list[int]:
        """Ids of the jobs that the queue has assigned to a worker."""
        return [job for (job,) in self._fetch_rows("jobs_of_worker", worker)]

    def recover_stalled(
        self, *, dead_after: float, max_seconds: float, max_attempts: int, lost: Sequence[int] = ()
    ) -> tuple[list[StalledJob], list[StalledJob]]:
        """Return jobs of dead workers, and the `lost` ones, to the queue.

        Returns the retried jobs, and those that failed because they reached `max_attempts`.
        """
        retried: list[StalledJob] = []
        failed: list[StalledJob] = []
        with self._database.transaction() as connection:
            rows = connection.execute(self._sql("stalled"), (dead_after, max_seconds, list(lost))).fetchall()
            for job in (StalledJob(*row) for row in rows):
                is_last_attempt = job.attempts + 1 >= max_attempts
                connection.execute(self._sql("fail" if is_last_attempt else "retry"), (job.id,))
                (failed if is_last_attempt else retried).append(job)
            connection.execute(self._sql("delete_old_jobs"), (FAILED_JOB_DAYS,))
        return retried, failed

    # -- status --------------------------------------------------------------------------------------------

    def queue_status(self, *, dead_after: float) -> QueueStatus:
        waiting, later, running, failed, stalled = self._fetch_row("queue_status", dead_after)
        workers, seconds = self._fetch_row("count_workers", dead_after)[0], self._fetch_row("oldest_wait_seconds")[0]
        return QueueStatus(
            waiting=waiting,
            waiting_seconds=round(max(0.0, seconds), 1),
            later=later,
            running=running,
            stalled=stalled,
            failed=failed,
            workers=workers,
        )

    def sample_owners(self, limit: int) -> list[str]:
        """Some owners, at most `limit`. Works before the first worker has run."""
        return [name for (name,) in self._fetch_rows("sample_owners", limit)]

    def count_due(self, now: datetime, limit: int = MAX_QUEUED) -> tuple[int, datetime | None]:
        """Number of owners with work to do, at most `limit`, and the earliest due time."""
        count, since = self._fetch_row("count_due", to_microseconds(now), limit)
        return count, None if since is None else from_microseconds(since)

    def count_waiting_dreams(self, limit: int) -> int:
        """Number of dreams that wait for a free slot, at most `limit`."""
        return self._fetch_row("count_waiting_dreams", limit)[0]

    def failing_owners(self, limit: int) -> list[tuple[str, str, datetime]]:
        """Owners whose maintenance is suspended after failures: name, reason, end of suspension."""
        return [
            (name, reason, from_microseconds(due)) for name, reason, due in self._fetch_rows("failing_owners", limit)
        ]

    def active_owners(self, limit: int) -> list[str]:
        """Owners with a running job or a recent event."""
        rows = [*self._fetch_rows("working_owners", limit), *self._fetch_rows("latest_owners", limit)]
        return list(dict.fromkeys(name for (name,) in rows))

    def _schema_version(self) -> int:
        return self._fetch_row("schema_version")[0] if self._table_exists("tenant.job_steps") else 0

    def _table_exists(self, table: str) -> bool:
        query, name = "SELECT to_regclass($1) IS NOT NULL", self._database.in_schema(table)
        return self._database.read(lambda connection: connection.execute(query, (name,)).get)

    def _fetch_row(self, statement: str, *values: object) -> Any:
        rows = self._fetch_rows(statement, *values)
        return rows[0] if rows else None

    def _fetch_rows(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._database.read(lambda connection: connection.execute(self._sql(statement), values).fetchall())


def procrastinate_migrations() -> list[str]:
    """Names of the migrations of the installed procrastinate, in order."""
    from procrastinate.schema import migrations_path

    return sorted(path.stem for path in migrations_path.glob("*.sql"))
