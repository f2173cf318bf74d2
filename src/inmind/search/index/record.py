"""Records of crystals in the index, and the tables that they are in.

A record has all fields of a crystal except the text, which is in the journal. The tables are named statements,
implemented for each database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import EventId, Origin, Trust
from inmind.core.stream_names import ANONYMOUS, PRIVATE
from inmind.search.crystal import HIDDEN_LIFECYCLES, Crystal
from inmind.search.extract import ENTITY_SERIES
from inmind.search.index.numbers import MAX_PASSAGES, passage_number
from inmind.search.tokenize import index_words, split_passages


class Record(NamedTuple):
    """A crystal in the index, without its text. Fields are the columns of the `crystals` table."""

    made: int
    number: int
    event: str
    part: int
    resource: int
    kind: str
    source: str
    origin: str
    trust: int
    at: int
    role: str
    speaker: str
    named: int
    words: int
    answers: int
    importance: float
    valence: float
    about: str
    echoes: str | None
    gone: int | None
    accesses: int
    accessed: int | None
    valid_from: int | None
    ends: int | None
    valid_to: int | None
    superseded_by: str
    merged_into: str
    lineage: str | None
    lifecycle: str

    @property
    def id(self) -> str:
        return f"{self.event}.{self.part}" if self.part else self.event

    @property
    def is_searchable(self) -> bool:
        """True if a search as of now may return it. A merged crystal is found as its target."""
        return self.was_live() and self.lifecycle not in HIDDEN_LIFECYCLES

    def was_live(self, day: datetime | None = None) -> bool:
        """Return True if it is neither retracted nor replaced, now or on the given day."""
        return self.gone is None or (day is not None and self.gone > to_microseconds(day))

    @property
    def last_used(self) -> datetime:
        """Time of the last access, else when it was said."""
        return from_microseconds(self.at if self.accessed is None else self.accessed)

    @property
    def path(self) -> str:
        """Page it is a section of; "" for other subjects, such as entities."""
        return "" if self.about.startswith(f"{ENTITY_SERIES}/") else self.about

    def as_of(self, day: datetime, newer: Record | None) -> Record:
        """Return the record as it was on that day.

        An end that came with a later statement was not known then; a declared end was.
        """
        if newer is not None and newer.at <= to_microseconds(day):
            return self
        return self._replace(valid_to=self.ends, superseded_by="")

    def crystal(self, text: str, resource: str) -> Crystal:
        stream = EventId.of(self.event).stream
        return Crystal(
            id=self.id,
            text=text,
            kind=self.kind,
            source=self.source,
            resource=ANONYMOUS if resource.startswith(PRIVATE) else resource,
            session=stream.removeprefix("session/") if stream.startswith("session/") else "",
            sources=(self.event, *(json.loads(self.lineage) if self.lineage else ())),
            origin=Origin(self.origin),
            trust=Trust(self.trust),
            at=from_microseconds(self.at),
            speaker=self.speaker if self.named else self.role,
            path=self.path,
            importance=self.importance,
            valence=self.valence,
            accesses=self.accesses,
            accessed=_to_datetime(self.accessed),
            valid_from=_to_datetime(self.valid_from),
            valid_to=_to_datetime(self.valid_to),
            superseded_by=self.superseded_by,
            merged_into=self.merged_into,
            lifecycle=cast(Any, self.lifecycle),
        )


def passages_of(record: Record, text: str) -> list[tuple[int, str]]:
    """Return the indexed passages of a crystal by number, each as the embedder reads it."""
    echoes: list[int] = json.loads(record.echoes) if record.echoes else []
    speaker = record.speaker or record.role
    return [
        (
            passage_number(record.number, position, words=len(index_words(passage))),
            f"{speaker}: {passage}" if speaker else passage,
        )
        for position, passage in enumerate(split_passages(text)[:MAX_PASSAGES])
        if position not in echoes
    ]


def expand_columns(statement: str) -> str:
    """Replace `crystals.*` by column names, so that a table with other columns raises an error."""
    return statement.replace("crystals.*", ", ".join(f"crystals.{column}" for column in Record._fields))


def parse_crystal_id(id: str) -> tuple[str, int] | None:
    """Return the event and the part number of a crystal id, or None."""
    match = _ID.fullmatch(id)
    return (match[1], int(match[2] or 0)) if match else None


_ID = re.compile(r"([^\0\ud800-\udfff]*#[0-9]{1,18})(?:\.([1-9][0-9]{0,8}))?")


def _to_datetime(stamp: int | None) -> datetime | None:
    return None if stamp is None else from_microseconds(stamp)


class PassageWords(NamedTuple):
    """The distinct words of a passage."""

    resource: int
    passage: int
    words: Sequence[str]


class RowMissing(Exception):
    """A row that every index has is missing: the file is not a valid index."""


class Tables(Protocol):
    """Access to the tables within one connection or transaction."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]: ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each row, in order. Rows must not depend on each other."""
        ...

    def list_parameter(self, values: Iterable[object]) -> object:
        """Convert many values to one parameter."""
        ...

    def add_words(self, passages: Sequence[PassageWords]) -> None:
        """Append passages to the words they contain."""
        ...

    def vector_parameter(self, numbers: Sequence[float]) -> object:
        """Convert a vector to its stored form: see `numbers.pack_vector`."""
        ...

    def savepoint(self) -> AbstractContextManager[Any]:
        """Context manager that rolls back its block, and nothing before it, on an error."""
        ...

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def value(self, statement: str, *values: object) -> Any:
        """Return the single value of the single row; raises RowMissing."""
        rows = self.rows(statement, *values)
        if not rows:
            raise RowMissing(f"no row for statement {statement!r}")
        return rows[0][0]
