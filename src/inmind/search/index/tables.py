"""The tables of an index, asked by the names of statements: each database has these in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


class PassageWords(NamedTuple):
    """The words of a passage, each once, under its number."""

    resource: int
    passage: int
    words: Sequence[str]


class RowMissing(Exception):
    """A row that every index has is not there: it is none."""


class Tables(Protocol):
    """Within reach for as long as somebody asks or tells."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]: ...

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """The same for each of these, in their order. None of them changes what another has changed."""
        ...

    def list_parameter(self, values: Iterable[object]) -> object:
        """Many values, as a statement takes them for one."""
        ...

    def add_words(self, passages: Sequence[PassageWords]) -> None:
        """Keep these under the words that they hold, behind those that are there."""
        ...

    def vector_parameter(self, numbers: Sequence[float]) -> object:
        """As it is kept: see `numbers.packed`."""
        ...

    def savepoint(self) -> AbstractContextManager[Any]:
        """What is told in this block, and nothing before it."""
        ...

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def value(self, statement: str, *values: object) -> Any:
        """The one value of the one row, which there is."""
        rows = self.rows(statement, *values)
        if not rows:
            raise RowMissing(f"there is no row of {statement!r}")
        return rows[0][0]
