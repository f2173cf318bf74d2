"""Reads, and writes of one statement, that are the same in SQLite and PostgreSQL.

Both databases answer the same named statements with the same columns (`sql/shared.sql`, `sql/queries.sql`,
`sql/postgres/queries.sql`). How a statement runs, and how events are appended, is up to the subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from inmind.core.encoding import from_microseconds
from inmind.core.events.base import Event
from inmind.errors import KeyReused
from inmind.store.protocol import (
    AppendResult,
    Key,
    PublishedVersion,
    RateWindow,
    Receipt,
    Snapshot,
    StreamInfo,
    StreamSummary,
)
from inmind.store.rows import event_from_row, event_or_none, receipt_from_row, stream_info_from_row

_MAX_INTEGER = 2**63 - 1


class SqlStore(ABC):
    @abstractmethod
    def _fetch_rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement that only reads."""

    @abstractmethod
    def _write(self, statement: str, *values: object, retryable: bool = True) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction.

        `retryable`: running it twice has the same effect as once.
        """

    @abstractmethod
    def _array(self, values: Sequence[str]) -> object:
        """Texts as one value of a statement."""

    def read(
        self, stream: str, *, after: int = 0, until: int | None = None, kind: str | None = None
    ) -> Sequence[Event]:
        rows = self._fetch_rows("events", stream, _bigint(after), _bigint(until), kind)
        return [event_from_row(stream, row) for row in rows]

    def events_since(
        self, position: int, *, kinds: Sequence[str], limit: int, owner: str | None = None
    ) -> Sequence[tuple[int, Event | None]]:
        values = _bigint(position), self._array(kinds), limit
        if owner is None:
            rows = self._fetch_rows("events_since", *values)
        else:
            rows = self._fetch_rows("events_since_of_owner", *values, owner)
        return [(row[0], event_or_none(row[1], row[2:])) for row in rows]

    def events_up_to(
        self, position: int, *, batch_size: int, owner: str | None = None
    ) -> Iterator[tuple[int, Event | None]]:
        last: tuple[int, int] = (0, 0)
        while True:
            rows = self._fetch_rows("all_events", *last, _bigint(position), owner, batch_size)
            yield from ((row[1], event_or_none(row[2], row[3:])) for row in rows)
            if len(rows) < batch_size:
                return
            last = rows[-1][0], rows[-1][1]

    def last_position(self, *, owner: str | None = None) -> int:
        return self._fetch_rows("last_position", owner)[0][0]

    def owners(self, *, after: str | None = None, limit: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._fetch_rows("owners", after, limit)]

    def version(self, stream: str) -> int:
        rows = self._fetch_rows("version", stream)
        return rows[0][0] if rows else 0

    def receipt(self, stream: str, key: Key) -> AppendResult | None:
        for request, first, last, at in self._fetch_rows("receipt", stream, key.value):
            if request != key.request:
                raise KeyReused(key=key.caller_key)
            return AppendResult(first=first, last=last, at=from_microseconds(at), repeated=True)
        return None

    def receipts(self, stream: str, *, after: str | None = None, limit: int) -> Sequence[Receipt]:
        rows = self._fetch_rows("receipts", stream, after, limit)
        return [receipt_from_row(stream, key, row) for key, *row in rows]

    def all_receipts(self, *, batch_size: int) -> Iterator[Receipt]:
        last: tuple[int, str] = (0, "")
        while True:
            rows = self._fetch_rows("all_receipts", *last, batch_size)
            yield from (receipt_from_row(stream, key, row) for _, stream, key, *row in rows)
            if len(rows) < batch_size:
                return
            last = rows[-1][0], rows[-1][2]

    def stream_names(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[str]:
        return [name for (name,) in self._fetch_rows("stream_names", prefix, f"{prefix}\U0010ffff", limit, owner)]

    def stream_infos(self, prefix: str, *, owner: str | None = None, limit: int | None = None) -> Sequence[StreamInfo]:
        rows = self._fetch_rows("stream_infos", prefix, f"{prefix}\U0010ffff", limit, owner)
        return [stream_info_from_row(row) for row in rows]

    def summary(self, stream: str) -> StreamSummary:
        rows = self._fetch_rows("summary", stream)
        return StreamSummary(
            kinds={kind: count for kind, count, _ in rows}, updated=from_microseconds(max(at for _, _, at in rows))
        )

    def save_snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self._write("save_snapshot", stream, snapshot.seq, snapshot.fold_version, snapshot.body)

    def snapshot(self, stream: str, *, fold_version: int, until: int | None = None) -> Snapshot | None:
        rows = self._fetch_rows("snapshot", stream, fold_version, _bigint(until))
        return Snapshot(*rows[0]) if rows else None

    def published_versions(self, stream: str) -> dict[str, PublishedVersion]:
        rows = self._fetch_rows("published_versions", stream)
        return {path: PublishedVersion(digest=digest, seq=seq) for path, digest, seq in rows}

    def mark_published(self, stream: str, path: str, version: PublishedVersion) -> None:
        self._write("mark_published", stream, path, version.digest, version.seq)

    def try_consume(self, window: RateWindow, amount: int, *, limit: int) -> bool:
        """See Store.

        Retried if the reply is lost: counting twice refuses too early, never too late.
        """
        self._write("delete_expired_usage", window.name, window.expired_before)
        return bool(self._write("try_consume", window.name, window.start_microseconds, amount, limit))

    def adjust_usage(self, window: RateWindow, amount: int) -> None:
        self._write("adjust_usage", window.name, window.start_microseconds, amount, retryable=False)

    def usage(self, window: RateWindow) -> int:
        rows = self._fetch_rows("usage", window.name, window.start_microseconds)
        return rows[0][0] if rows else 0


def _bigint(value: int | None) -> int:
    """Limit a number to the range of a column; None is the highest."""
    return _MAX_INTEGER if value is None else max(-_MAX_INTEGER, min(value, _MAX_INTEGER))
