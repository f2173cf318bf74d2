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
from inmind.store.job_status import Queue
from inmind.store.named_sql import script
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import Database

STEPS = ("jobs_0001",)
"""Appended and never edited, like those of the journal."""

_PACKAGE = "inmind.store.postgres"

_STEP = "-- ---- the step ----"

MOST_WAITING = 20_000
"""Jobs that a look leaves in the queue at most, more than workers do in a minute: what is more the next one finds."""

MANY = 100
"""Jobs that change what is known of the table."""

KEPT_DAYS = 7
"""For which a job that was given up can be looked at."""


@frozen
class Standing:
    """An owner as it was when somebody began to look after it."""

    position: int
    """Of its last event."""
    seen: int
    """Up to where it was looked after; below 0 where it never was."""
    tended: datetime

    @property
    def has_news(self) -> bool:
        return self.position > self.seen


@frozen
class Stalled:
    """A job that nobody does any more."""

    id: int
    task: str
    owner: str
    tries: int
    unheard: bool
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
    def are_there(self) -> bool:
        """Has a worker ever been here?"""
        return self._is_there("tenant.procrastinate_jobs")

    def make(self) -> None:
        """The tables, where they are not there yet; of several processes, each step has one winner."""
        while (have := self._steps()) < len(STEPS):
            with self._database.transaction() as connection:
                connection.execute(self._sql("one_steps"))
                if self._steps() == have:
                    self._run(connection, script(STEPS[have], package=_PACKAGE))
                    connection.execute(self._sql("add_step"), (have + 1, STEPS[have]))
        self._make_engine()
        self.identity = self._row("steps")[1]

    def _make_engine(self) -> None:
        """The tables of procrastinate, up to what the one that is installed wants."""
        import procrastinate

        steps, version = engine_steps(), procrastinate.__version__
        while (have := self._engine()) != steps[-1]:
            if have and have not in steps:
                made = self._row("engine")[1]
                reason = f"its queue is of procrastinate {made}, and {version} is installed: install that one"
                raise ReadOnly(place=self._database.place, reason=reason)
            with self._database.transaction() as connection:
                connection.execute(self._sql("one_steps"))
                if self._engine() == have:
                    step = steps[steps.index(have) + 1] if have else steps[-1]
                    around = script("engine", package=_PACKAGE)
                    self._run(connection, around.replace(_STEP, engine_step(step) if have else engine_schema()))
                    connection.execute(self._sql("engine_is"), (step, version))

    def _engine(self) -> str:
        """The last of its steps; empty before the first."""
        return (self._row("engine") or ("",))[0]

    def _run(self, connection: Connection, statements: str) -> None:
        """Many of them, with nothing put in: the server takes them as one text."""
        text = self._database.in_schema(statements).encode()
        psycopg.ClientCursor(cast("psycopg.Connection[Any]", connection)).execute(text)

    def may_look(self, every: float) -> bool:
        """Has nobody done so for nearly so many seconds? Of all who ask at once, one is told yes."""
        asked = (0.9 * every,)
        return self._database.write(lambda connection: connection.execute(self._sql("may_look"), asked).get or False)

    def look(self, now: datetime, dreams: int = MOST_WAITING) -> int:
        """Make a job for everybody who has news or is due; how many there were. One at a time looks. `dreams`: so many
        of those whose dreams wait for room."""
        with self._database.transaction() as connection:
            connection.execute(self._sql("one_looks"))
            room = MOST_WAITING - connection.execute(self._sql("todo")).get
            made = connection.execute(self._sql("look"), (to_microseconds(now), room, dreams)).get if room > 0 else 0
            if made >= MANY:
                connection.execute(self._sql("analyze"))
            return made

    def defer(self, task: str, *, beside: int = 1) -> None:
        """Jobs of a task that is nobody's in particular, so many of which may run beside each other."""
        with self._database.transaction() as connection:
            connection.execute(self._sql("one_looks"))
            connection.execute(self._sql("defer"), (task, beside))

    def standing(self, owner: str) -> Standing:
        position, seen, tended = self._row("standing", owner) or (0, -1, 0)
        return Standing(position, seen, from_microseconds(tended))

    def tended(
        self, owner: str, *, seen: int, at: datetime, due: datetime, reason: str = "", waits: bool = False
    ) -> None:
        """`waits`: for room for its dream."""
        values = (owner, seen, to_microseconds(at), to_microseconds(due), reason, waits)
        self._database.write(lambda connection: connection.execute(self._sql("tended"), values), safe=True)

    def ahead(self, owner: str, most: int) -> int:
        """How many have waited for room for a dream for longer, of so many at most."""
        return self._row("ahead", owner, most)[0]

    def of_worker(self, worker: int) -> list[int]:
        """Jobs that it has, as far as the queue knows."""
        return [job for (job,) in self._rows("of_worker", worker)]

    def sweep(
        self, *, unheard: float, longest: float, tries: int, lost: Sequence[int] = ()
    ) -> tuple[list[Stalled], list[Stalled]]:
        """Give jobs of dead workers to others, and these that nobody has; answers with those, and with those that have
        had enough tries."""
        again: list[Stalled] = []
        given_up: list[Stalled] = []
        with self._database.transaction() as connection:
            rows = connection.execute(self._sql("stalled"), (unheard, longest, list(lost))).fetchall()
            for job in (Stalled(*row) for row in rows):
                enough = job.tries + 1 >= tries
                connection.execute(self._sql("fail" if enough else "retry"), (job.id,))
                (given_up if enough else again).append(job)
            connection.execute(self._sql("forget"), (KEPT_DAYS,))
        return again, given_up

    # -- looking -------------------------------------------------------------------------------------------

    def queue(self, *, unheard: float) -> Queue:
        waiting, later, running, failed, stalled = self._row("queue", unheard)
        workers, seconds = self._row("workers", unheard)[0], self._row("waiting_since")[0]
        return Queue(
            waiting=waiting,
            waiting_seconds=round(max(0.0, seconds), 1),
            later=later,
            running=running,
            stalled=stalled,
            failed=failed,
            workers=workers,
        )

    def some_owners(self, most: int) -> list[str]:
        """Of everybody there is, so many; also before the first worker."""
        return [name for (name,) in self._rows("some_owners", most)]

    def due(self, now: datetime, most: int = MOST_WAITING) -> tuple[int, datetime | None]:
        """How many owners there is something to do for, of so many at most, and since when for the first."""
        count, since = self._row("due", to_microseconds(now), most)
        return count, None if since is None else from_microseconds(since)

    def waiting(self, most: int) -> int:
        """How many dreams wait for room, of so many at most."""
        return self._row("waiting", most)[0]

    def failing(self, most: int) -> list[tuple[str, str, datetime]]:
        """Owners that were given up for a while, why, and until when."""
        return [(name, reason, from_microseconds(due)) for name, reason, due in self._rows("failing", most)]

    def latest(self, most: int) -> list[str]:
        """Owners for whom something is being done, or has just happened."""
        found = [*self._rows("in_hand", most), *self._rows("latest", most)]
        return list(dict.fromkeys(name for (name,) in found))

    def _steps(self) -> int:
        return self._row("steps")[0] if self._is_there("tenant.job_steps") else 0

    def _is_there(self, table: str) -> bool:
        found, name = "SELECT to_regclass($1) IS NOT NULL", self._database.in_schema(table)
        return self._database.read(lambda connection: connection.execute(found, (name,)).get)

    def _row(self, statement: str, *values: object) -> Any:
        rows = self._rows(statement, *values)
        return rows[0] if rows else None

    def _rows(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        return self._database.read(lambda connection: connection.execute(self._sql(statement), values).fetchall())


def engine_schema() -> str:
    """All tables and functions of the procrastinate that is installed."""
    from procrastinate.schema import SchemaManager

    return SchemaManager.get_schema()


def engine_steps() -> list[str]:
    """By their names, in order: those that lead there from any earlier version."""
    from procrastinate.schema import migrations_path

    return sorted(path.stem for path in migrations_path.glob("*.sql"))


def engine_step(name: str) -> str:
    from procrastinate.schema import migrations_path

    return (migrations_path / f"{name}.sql").read_text(encoding="utf-8")
