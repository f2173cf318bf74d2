"""Records of crystals in the index, their numbers and tables.

A record has all fields of a crystal except the text, which is in the journal. The tables are named statements,
implemented for each database.

The bit-packed numbers of crystals and passages are unique per resource. A crystal's number is its series and its
position there, so its neighbours have adjacent numbers; a passage's number is its crystal's number, its position
there and its length. So looking up a word reads one list of numbers and needs no join. Series of conversations are
odd.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from math import log2
from struct import pack
from typing import Any, NamedTuple, cast

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.events.base import EventId, Origin, Trust
from inmind.core.paths import ANONYMOUS, PRIVATE
from inmind.errors import Damaged
from inmind.search.crystal import HIDDEN_LIFECYCLES, Crystal
from inmind.search.extract import ENTITY_SERIES
from inmind.search.tokenize import index_words, split_passages

_POSITION_BITS, _PASSAGE_BITS, _LENGTH_BITS = 20, 12, 4
_PASSAGE_SHIFT, _LENGTH_MASK = _PASSAGE_BITS + _LENGTH_BITS, (1 << _LENGTH_BITS) - 1

MAX_PASSAGES = 1 << _PASSAGE_BITS
"""Maximum passages per crystal."""


def crystal_number(series: int, position: int) -> int:
    """Return the number of the crystal at a position of a series."""
    return (series << _POSITION_BITS) | position


def series_number(count: int, *, conversation: bool) -> int:
    """Return the number of a resource's n-th series. Those of conversations are odd."""
    return 2 * count + conversation


def is_series_full(length: int) -> bool:
    """Return True if a series of this length has no position left."""
    return length >> _POSITION_BITS > 0


def series_bounds(series: int) -> tuple[int, int]:
    """Return the first and last crystal number of a series."""
    return crystal_number(series, 0), crystal_number(series, (1 << _POSITION_BITS) - 1)


def passage_number(crystal: int, position: int, *, words: int) -> int:
    """Return the number of a passage by its position in the crystal and its length in words."""
    grade = min(_LENGTH_MASK, round(2 * log2(max(words, 1))))
    return (((crystal << _PASSAGE_BITS) | position) << _LENGTH_BITS) | grade


def crystal_of(passage: int) -> int:
    """Return the crystal number of a passage."""
    return passage >> _PASSAGE_SHIFT


def series_of(passage: int) -> int:
    """Return the series number of a passage."""
    return passage >> (_PASSAGE_SHIFT + _POSITION_BITS)


def passage_position(passage: int) -> int:
    """Return the position of a passage in its crystal."""
    return (passage >> _LENGTH_BITS) & (MAX_PASSAGES - 1)


def best_passages(scores: Mapping[int, float], length_factor: Callable[[float], float]) -> dict[int, tuple[float, int]]:
    """Return the best passage of each crystal with its score.

    `length_factor` weights a score by the length in words.
    """
    factors = [length_factor(2 ** (grade / 2)) for grade in range(1 << _LENGTH_BITS)]
    best: dict[int, tuple[float, int]] = {}
    for passage, score in scores.items():
        candidate = (score * factors[passage & _LENGTH_MASK], passage)
        crystal = passage >> _PASSAGE_SHIFT
        if crystal not in best or candidate > best[crystal]:
            best[crystal] = candidate
    return best


def conversation_of(crystal: int) -> int | None:
    """Return the conversation of a crystal, or None."""
    series = crystal >> _POSITION_BITS
    return series if series & 1 else None


def pack_vector(vector: Sequence[float]) -> bytes:
    """Pack a vector as half floats, the precision of an index."""
    return pack(f"<{len(vector)}e", *vector)


def format_vector(vector: Sequence[float]) -> str:
    """Format a vector as pgvector reads it."""
    return f"[{','.join(map(repr, map(float, vector)))}]"


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


PassageWords = tuple[int, int, Sequence[str]]
"""A resource, the number of a passage in it, and the distinct words of that passage."""


class Tables(ABC):
    """Access to the tables within one connection or transaction."""

    place: str
    """Location of the index."""

    @abstractmethod
    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement. A list is one value."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement for each row, in order. Rows must not depend on each other."""

    @abstractmethod
    def add_words(self, passages: Sequence[PassageWords]) -> None:
        """Append passages to the words they contain."""

    @abstractmethod
    def vector_parameter(self, numbers: Sequence[float]) -> object:
        """Convert a vector to its stored form: half floats."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[Any]:
        """Context manager that rolls back its block, and nothing before it, on an error."""

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def value(self, statement: str, *values: object) -> Any:
        """Return the single value of the single row. Raises Damaged for a row that every index has."""
        if (row := self.row(statement, *values)) is None:
            raise Damaged(place=self.place, reason=f"no row for statement {statement!r}")
        return row[0]
