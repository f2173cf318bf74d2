"""The journal in a PostgreSQL database, shared by any number of processes on any number of machines.

An append is one statement, so it is one transaction and one way there and back. It holds the row of the stream and that
of its owner, which is all that two writers of one resource can quarrel about; writers of different resources never wait
for each other. See `database` for whose database it is, and what becomes of lost connections.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

import psycopg

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Event
from inmind.core.streams import owner_from_first_event
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.errors import Conflict, KeyReused, ReadOnly
from inmind.store.postgres.bulk_import import Adopting
from inmind.store.postgres.clock import ServersClock
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import MIGRATIONS, Database
from inmind.store.protocol import Appended, Batch, Begun, Key, Published, Receipt, Snapshot, Summary, Window
from inmind.store.rows import begun_of, event_of, readable, receipt_of, rows_of

_FOREVER = 2**63 - 1
_OVERTAKEN, _OUTGROWN = "IM001", "IM002"


class PostgresStore:
    """A Store in one tenant's schema. See `Store` for what it promises."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._sql = database.statements("queries")
        self._bound = threading.local()
        self.clock = ServersClock(self._time)

    @classmethod
    def open(
        cls, url: str, *, seconds: float | None = None, most: int | None = None, make: bool = True
    ) -> PostgresStore:
        """`seconds`: that a call may take. `most`: connections of this process. `make`: a schema, where there is none;
        else that is NotFound."""
        return cls(Database(url, seconds=seconds, most=most, make=make))

    def _time(self) -> datetime:
        return self.database.read(lambda connection: connection.execute("SELECT clock_timestamp()").get)

    @property
    def refusal(self) -> str:
        """Why nothing is written here; empty where it is."""
        return self.database.refusal

    def append(
        self,
        stream: str,
        drafts: Sequence[Draft],
        *,
        expected: int,
        at: datetime,
        key: Key | None = None,
        beside: Batch | None = None,
    ) -> Appended:
        stamp = to_microseconds(at)
        if key is None and beside is None and expected > 0 and len(drafts) == 1:
            ((_, _, kind, origin, trust, _, sources, body),) = rows_of(Batch(stream, drafts, expected), stamp)
            values = [len(MIGRATIONS), stream, expected, stamp, kind, origin, trust, sources, body]
            if self.database.write(lambda connection: connection.execute(self._sql("append_one"), values).get):
                return Appended(first=expected + 1, last=expected + 1, at=from_microseconds(stamp), repeated=False)
        name, owner, version, events = _told(Batch(stream, drafts, expected), stamp)
        values = [len(MIGRATIONS), name, owner, version, stamp, key and key.value, key and key.request, events]
        if beside is None:
            row = self._appended("append", values, safe=key is not None)
        else:
            row = self._appended("append_beside", [*values, *_told(beside, stamp)], safe=key is not None)
        repeated, request, first, last, then = row
        if repeated and key is not None and request != key.request:
            raise KeyReused(key=key.named)
        return Appended(first=first, last=last, at=from_microseconds(then), repeated=repeated)

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        bounds = (stream, _number(after), _number(_FOREVER if until is None else until))
        rows = self._rows("events", bounds) if kind is None else self._rows("events_of_kind", (*bounds, kind))
        return [event_of(stream, row) for row in rows]

    def since(
        self, position: int, *, kinds: Sequence[str], most: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        rows = self._rows("events_since", (_number(position), list(kinds), most, owner))
        return [(row[0], readable(row[1], row[2:])) for row in rows]

    def all_up_to(self, position: int, *, most: int, owner: str | None = None) -> Iterator[tuple[int, Event | None]]:
        behind: tuple[int, int] = (0, 0)
        while True:
            rows = self._rows("all_events", (*behind, _number(position), owner, most))
            yield from ((row[1], readable(row[2], row[3:])) for row in rows)
            if len(rows) < most:
                return
            behind = rows[-1][0], rows[-1][1]

    def position(self, *, owner: str | None = None) -> int:
        return self._rows("position", (owner,))[0][0]

    @contextmanager
    def moment(self) -> Generator[None]:
        with self.database.transaction(snapshot=True):
            yield

    def owners(self, *, after: str | None = None, most: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._rows("owners", (after, most))]

    def version(self, stream: str) -> int:
        rows = self._rows("version", (stream,))
        return rows[0][0] if rows else 0

    def receipt(self, stream: str, key: Key) -> Appended | None:
        for request, first, last, at in self._rows("receipt", (stream, key.value)):
            if request != key.request:
                raise KeyReused(key=key.named)
            return Appended(first=first, last=last, at=from_microseconds(at), repeated=True)
        return None

    def receipts(self, stream: str, *, after: str | None = None, most: int) -> Sequence[Receipt]:
        return [receipt_of(stream, key, row) for key, *row in self._rows("receipts", (stream, after, most))]

    def all_receipts(self, *, most: int) -> Iterator[Receipt]:
        behind: tuple[int, str] = (0, "")
        while True:
            rows = self._rows("all_receipts", (*behind, most))
            yield from (receipt_of(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < most:
                return
            behind = rows[-1][0], rows[-1][2]

    @contextmanager
    def adopting(self) -> Generator[Adopting]:
        with self.database.transaction() as connection:
            try:
                connection.execute(self._sql("refuse_older"), (len(MIGRATIONS),))
            except psycopg.Error as error:
                self._refuse_if_outgrown(error)
                raise
            adoption = self._bound.adoption = Adopting(self.database, connection, self._sql)
            try:
                yield adoption
                adoption.flush()
            finally:
                self._bound.adoption = None

    def streams(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._rows("stream_names", (prefix, f"{prefix}\U0010ffff", most, owner))]

    def begun(self, prefix: str, *, owner: str | None = None, most: int | None = None) -> Sequence[Begun]:
        return [begun_of(row) for row in self._rows("begun", (prefix, f"{prefix}\U0010ffff", most, owner))]

    def summary(self, stream: str) -> Summary:
        rows = self._rows("summary", (stream,))
        return Summary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def keep_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self._put("keep_snapshot", (stream, snapshot.seq, snapshot.fold, snapshot.body))

    def snapshot(self, stream: str, *, fold: int, until: int | None = None) -> Snapshot | None:
        rows = self._rows("snapshot", (stream, fold, _number(_FOREVER if until is None else until)))
        return Snapshot(seq=rows[0][0], fold=rows[0][1], body=rows[0][2]) if rows else None

    def published(self, stream: str) -> dict[str, Published]:
        return {path: Published(digest=digest, seq=seq) for path, digest, seq in self._rows("published", (stream,))}

    def mark_published(self, stream: str, path: str, shown: Published) -> None:
        self._put("mark_published", (stream, path, shown.digest, shown.seq))

    def allow(self, window: Window, amount: int, *, most: int) -> bool:
        """Asked again where the answer got lost: what is counted twice is refused earlier, and never later."""
        values = (window.name, window.stamp, amount, most, window.stale)
        return self.database.write(
            lambda connection: connection.execute(self._sql("allow"), values).fetchone() is not None, safe=True
        )

    def settle(self, window: Window, amount: int) -> None:
        values = (window.name, window.stamp, amount)
        self.database.write(lambda connection: connection.execute(self._sql("settle"), values))

    def used(self, window: Window) -> int:
        rows = self._rows("used", (window.name, window.stamp))
        return rows[0][0] if rows else 0

    def close(self) -> None:
        self.database.close()

    def _rows(self, name: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        adoption: Adopting | None = getattr(self._bound, "adoption", None)
        if adoption is not None and adoption.connection is self.database.held:
            adoption.flush()
        return self.database.read(lambda connection: connection.execute(self._sql(name), values).fetchall())

    def _put(self, name: str, values: Sequence[object]) -> None:
        """What may be put twice, since the second time changes nothing."""
        self.database.write(lambda connection: connection.execute(self._sql(name), values), safe=True)

    def _appended(self, statement: str, values: Sequence[object], *, safe: bool) -> tuple[Any, ...]:
        """`safe`: it has a key, so that asking again is safe where the answer got lost."""

        def tell(connection: Connection) -> tuple[Any, ...]:
            try:
                return connection.execute(self._sql(statement), values).fetchall()[0]
            except psycopg.Error as error:
                self._refuse_if_outgrown(error)
                if error.sqlstate != _OVERTAKEN:
                    raise
                actual, _, stream = (error.diag.message_detail or "").partition(" ")
                expected = values[3] if stream == values[1] else values[10]
                raise Conflict(stream=stream, expected=cast(int, expected), actual=int(actual)) from error

        return self.database.write(tell, safe=safe)

    def _refuse_if_outgrown(self, error: psycopg.Error) -> None:
        """Whether a newer inmind has come meanwhile is told by the very statement that would write."""
        if error.sqlstate == _OUTGROWN:
            self.database.outgrown(int(error.diag.message_detail or 0))
            raise ReadOnly(place=self.database.place, reason=self.database.refusal) from error


def _told(batch: Batch, stamp: int) -> tuple[str, str, int, str]:
    """A batch as the database is told of it: stream, owner, version, events."""
    owner = owner_from_first_event(batch.stream, batch.drafts[0].payload) if batch.drafts and not batch.expected else ""
    return batch.stream, owner, batch.expected, to_json([(*row[2:5], *row[6:]) for row in rows_of(batch, stamp)])


def _number(value: int) -> int:
    """As far as a column goes: beyond that there is nothing, on either side."""
    return max(-_FOREVER, min(value, _FOREVER))
