"""What happened elsewhere, on its way into a PostgreSQL store: one transaction, many events at a time.

Each owner whose events are met is held to the end, and positions are taken while it is: so what others store in its
streams comes before all of this, or after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inmind.core.events.base import Event
from inmind.core.streams import owner_from_first_event
from inmind.core.timestamps import to_microseconds
from inmind.errors import Conflict
from inmind.store.postgres.connection import Connection, Cursor
from inmind.store.postgres.database import Database
from inmind.store.protocol import Adopted, Receipt
from inmind.store.rows import as_row, event_of, receipt_of

AT_A_TIME = 500
"""Events that are sent together."""


class _Met:
    """A stream that is held."""

    def __init__(self, id: int, owner: int, version: int) -> None:
        self.id, self.owner, self.version = id, owner, version


class Adopting:
    """An Adoption. It keeps a few numbers for each stream that it met, and of their events those not sent yet."""

    def __init__(self, database: Database, connection: Connection, statement: Callable[[str], str]) -> None:
        self._database, self.connection, self._sql = database, connection, statement
        self._met: dict[str, _Met] = {}
        self._owners: dict[int, int] = {}
        """Owners that are held, and the last position of each."""
        self._numbers: dict[str, int] = {}
        self._reserved: list[int] = []
        self._waiting: list[tuple[object, ...]] = []
        self._grown: dict[int, _Met] = {}
        """Streams that these are of."""

    def add(self, event: Event) -> Adopted:
        met, row = self._stream(event.stream), as_row(event)
        if event.seq == met.version + 1:
            if event.seq == 1:
                met.owner = self._owner(owner_from_first_event(event.stream, event.payload))
            position = self._next(met.owner)
            self._waiting.append((met.owner, position, met.id, *row))
            met.version = event.seq
            self._grown[met.id] = met
            if len(self._waiting) >= AT_A_TIME:
                self.flush()
            return Adopted(position, new=True)
        self.flush()
        place = (met.owner, met.id, min(event.seq, 2**63 - 1))
        position, *there = self._told("event_at", place).fetchone() or (0,)
        if not there or as_row(event_of(event.stream, there)) != row:
            raise Conflict(stream=event.stream, expected=event.seq - 1, actual=met.version)
        return Adopted(position, new=False)

    def keep(self, receipt: Receipt) -> bool:
        met, key, appended = self._stream(receipt.stream), receipt.key, receipt.appended
        row = self._told("key_at", (met.id, key.value)).fetchone()
        if row is None:
            stood = (key.request, appended.first, appended.last, to_microseconds(appended.at))
            self._told("add_key", (met.id, key.value, *stood))
        elif receipt_of(receipt.stream, key.value, row) != receipt:
            raise Conflict(stream=receipt.stream, expected=appended.last, actual=met.version)
        return row is None

    def flush(self) -> None:
        """Send what waits. What is read after this sees it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._database.go_on()
        with self.connection.cursor().copy(self._sql("add_events").encode()) as copy:
            for row in waiting:
                copy.write_row(row)
        grown, self._grown = self._grown, {}
        streams = [(met.id, met.owner, met.version) for met in grown.values()]
        self._told("grow_streams", [*map(list, zip(*streams, strict=True))])
        owners = [(owner, self._owners[owner]) for owner in {met.owner for met in grown.values()}]
        self._told("grow_owners", [*map(list, zip(*owners, strict=True))])

    def _stream(self, name: str) -> _Met:
        if (met := self._met.get(name)) is None:
            id, owner, version = self._row("meet_stream", name)
            met = self._met[name] = _Met(id, owner, version)
            if owner and owner not in self._owners:
                self._owners[owner] = self._row("hold_owner", owner)[1]
        return met

    def _owner(self, name: str) -> int:
        if name not in self._numbers:
            id, position = self._row("meet_owner", name)
            self._numbers[name] = id
            self._owners.setdefault(id, position)
        return self._numbers[name]

    def _next(self, owner: int) -> int:
        """A position behind all that this owner has: those that were reserved before it was held may not be."""
        while not self._reserved or self._reserved[-1] <= self._owners[owner]:
            rows = self._told("reserve", (AT_A_TIME,)).fetchall()
            self._reserved = [number for (number,) in reversed(rows)]
        self._owners[owner] = position = self._reserved.pop()
        return position

    def _told(self, statement: str, values: Sequence[object]) -> Cursor:
        self._database.go_on()
        return self.connection.execute(self._sql(statement), values)

    def _row(self, statement: str, *values: object) -> tuple[Any, ...]:
        row = self._told(statement, values).fetchone()
        if row is None:
            raise LookupError(f"{statement} has no answer")
        return row
