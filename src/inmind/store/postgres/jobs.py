"""Whom workers look after in a tenant's schema, and the queue of what they have to do.

The queue is procrastinate's; its tables are made here, by the first worker, as steps of our own. What is asked here
goes through the same connections as everything else: as safe behind a pooler, and with the same deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import psycopg

from inmind.core.frozen import frozen
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.errors import ReadOnly
from inmind.store.job_status import QueueStatus
from inmind.store.named_sql import load_script
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import Database

MIGRATIONS = ("jobs_0001",)
"""Appended and never edited, like those of the journal."""

_PACKAGE = "inmind.store.postgres"

_STEP_PLACEHOLDER = "-- ---- the step ----"

MAX_QUEUED = 20_000
"""Jobs that a look leaves in the queue at most, more than workers do in a minute: what is more the next one finds."""

ANALYZE_THRESHOLD = 100
"""Jobs that change what is known of the table."""

FAILED_JOB_DAYS = 7
"""For which a job that was given up can be looked at."""


@frozen
class OwnerStatus:
    """An owner as it was when somebody began to look after it."""

    position: int
    """Of its last event."""
    maintained_position: int
    """Up to where it was looked after; below 0 where it never was."""
    maintained_at: datetime

    @property
    def has_new_events(self) -> bool:
        return self.position > self.maintained_position


@frozen
class StalledJob:
    """A job that nobody does any more."""

    id: int
    task: str
    owner: str
    attempts: int
    is_worker_dead: bool
    """Of its worker, for so long that it must be dead."""


class Jobs:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("jobs")
        self.identity = ""
        """Tells these jobs from those of every other database."""

    @property
    def schema(self) -> str:
        return self._database.schema

    @property
    def tables_exist(self) -> bool:
        """Has a worker ever been here?"""
        return self._table_exists("tenant.procrastinate_jobs")

    def create_tables(self) -> None:
        """The tables, where they are not there yet; of several processes, each step has one winner."""
        while (have := self._schema_version()) < len(MIGRATIONS):
            with self._database.transaction() as connection:
                connection.execute(self._sql("one_steps"))
                if self._schema_version() == have:
                    self._run_script(connection, load_script(MIGRATIONS[have], package=_PACKAGE))
                    connection.execute(self._sql("add_step"), (have + 1, MIGRATIONS[have]))
        self._create_procrastinate_tables()
        self.identity = self._fetch_row("steps")[1]

    def _create_procrastinate_tables(self) -> None:
        """The tables of procrastinate, up to what the one that is installed wants."""
        import procrastinate

        steps, version = procrastinate_migrations(), procrastinate.__version__
        while (have := self._procrastinate_version()) != steps[-1]:
            if have and have not in steps:
                made = self._fetch_row("engine")[1]
                reason = f"its queue is of procrastinate {made}, and {version} is installed: install that one"
                raise ReadOnly(place=self._database.place, reason=reason)
            with self._database.transaction() as connection:
                connection.execute(self._sql("one_steps"))
                if self._procrastinate_version() == have:
                    step = steps[steps.index(have) + 1] if have else steps[-1]
                    around = load_script("engine", package=_PACKAGE)
                    self._run_script(
                        connection,
                        around.replace(
                            _STEP_PLACEHOLDER, procrastinate_migration(step) if have else procrastinate_schema()
                        ),
                    )
                    connection.execute(self._sql("engine_is"), (step, version))

    def _procrastinate_version(self) -> str:
        """The last of its steps; empty before the first."""
        return (self._fetch_row("engine") or ("",))[0]

    def _run_script(self, connection: Connection, statements: str) -> None:
        """Many of them, with nothing put in: the server takes them as one text."""
        text = self._database.in_schema(statements).encode()
        psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(text)

    def claim_scan(self, interval: float) -> bool:
        """Has nobody done so for nearly so many seconds? Of all who ask at once, one is told yes."""
        asked = (0.9 * interval,)
        return self._database.write(lambda connection: connection.execute(self._sql("may_look"), asked).get or False)

    def enqueue_due(self, now: datetime, max_dreams: int = MAX_QUEUED) -> int:
        """Make a job for everybody who has news or is due; how many there were.

        One at a time looks. `dreams`: so many of those whose dreams wait for room.
        """
        with self._database.transaction() as connection:
            connection.execute(self._sql("one_looks"))
            room = MAX_QUEUED - connection.execute(self._sql("todo")).get
            made = (
                connection.execute(self._sql("look"), (to_microseconds(now), room, max_dreams)).get if room > 0 else 0
            )
            if made >= ANALYZE_THRESHOLD:
                connection.execute(self._sql("analyze"))
            return made

    def enqueue(self, task: str, *, concurrency: int = 1) -> None:
        """Jobs of a task that is nobody's in particular, so many of which may run beside each other."""
        with self._database.transaction() as connection:
            connection.execute(self._sql("one_looks"))
            connection.execute(self._sql("defer"), (task, concurrency))

    def owner_status(self, owner: str) -> OwnerStatus:
        position, seen, tended = self._fetch_row("standing", owner) or (0, -1, 0)
        return OwnerStatus(position, seen, from_microseconds(tended))

    def mark_maintained(
        self, owner: str, *, position: int, at: datetime, due: datetime, reason: str = "", waits_for_dream: bool = False
    ) -> None:
        """`waits`: for room for its dream."""
        values = (owner, position, to_microseconds(at), to_microseconds(due), reason, waits_for_dream)
        self._database.write(lambda connection: connection.execute(self._sql("tended"), values), retryable=True)

    def dreams_ahead(self, owner: str, limit: int) -> int:
        """How many have waited for room for a dream for longer, of so many at most."""
        return self._fetch_row("ahead", owner, limit)[0]

    def jobs_of_worker(self, worker: int) -> list[int]:
        """Jobs that it has, as far as the queue knows."""
        return [job for (job,) in self._fetch_rows("of_worker", worker)]

    def recover_stalled(
        self, *, dead_after: float, max_seconds: float, max_attempts: int, lost: Sequence[int] = ()
    ) -> tuple[list[StalledJob], list[StalledJob]]:
        """Give jobs of dead workers to others, and these that nobody has; answers with those, and with those that have
        had enough tries."""
        retried: list[StalledJob] = []
        failed: list[StalledJob] = []
        with self._database.transaction() as connection:
            rows = connection.execute(self._sql("stalled"), (dead_after, max_seconds, list(lost))).fetchall()
            for job in (StalledJob(*row) for row in rows):
                enough = job.attempts + 1 >= max_attempts
                connection.execute(self._sql("fail" if enough else "retry"), (job.id,))
                (failed if enough else retried).append(job)
            connection.execute(self._sql("forget"), (FAILED_JOB_DAYS,))
        return retried, failed

    # -- looking -------------------------------------------------------------------------------------------

    def queue_status(self, *, dead_after: float) -> QueueStatus:
        waiting, later, running, failed, stalled = self._fetch_row("queue", dead_after)
        workers, seconds = self._fetch_row("workers", dead_after)[0], self._fetch_row("waiting_since")[0]
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
        """Of everybody there is, so many; also before the first worker."""
        return [name for (name,) in self._fetch_rows("some_owners", limit)]

    def count_due(self, now: datetime, limit: int = MAX_QUEUED) -> tuple[int, datetime | None]:
        """How many owners there is something to do for, of so many at most, and since when for the first."""
        count, since = self._fetch_row("due", to_microseconds(now), limit)
        return count, None if since is None else from_microseconds(since)

    def count_waiting_dreams(self, limit: int) -> int:
        """How many dreams wait for room, of so many at most."""
        return self._fetch_row("waiting", limit)[0]

    def failing_owners(self, limit: int) -> list[tuple[str, str, datetime]]:
        """Owners that were given up for a while, why, and until when."""
        return [(name, reason, from_microseconds(due)) for name, reason, due in self._fetch_rows("failing", limit)]

    def active_owners(self, limit: int) -> list[str]:
        """Owners for whom something is being done, or has just happened."""
        found = [*self._fetch_rows("in_hand", limit), *self._fetch_rows("latest", limit)]
        return list(dict.fromkeys(name for (name,) in found))

    def _schema_version(self) -> int:
        return self._fetch_row("steps")[0] if self._table_exists("tenant.job_steps") else 0

    def _table_exists(self, table: str) -> bool:
        found, name = "SELECT to_regclass($1) IS NOT NULL", self._database.in_schema(table)
        return self._database.read(lambda connection: connection.execute(found, (name,)).get)

    def _fetch_row(self, statement: str, *values: object) -> Any:
        rows = self._fetch_rows(statement, *values)
        return rows[0] if rows else None

    def _fetch_rows(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._database.read(lambda connection: connection.execute(self._sql(statement), values).fetchall())


def procrastinate_schema() -> str:
    """All tables and functions of the procrastinate that is installed."""
    from procrastinate.schema import SchemaManager

    return SchemaManager.get_schema()


def procrastinate_migrations() -> list[str]:
    """By their names, in order: those that lead there from any earlier version."""
    from procrastinate.schema import migrations_path

    return sorted(path.stem for path in migrations_path.glob("*.sql"))


def procrastinate_migration(name: str) -> str:
    from procrastinate.schema import migrations_path

    return (migrations_path / f"{name}.sql").read_text(encoding="utf-8")
