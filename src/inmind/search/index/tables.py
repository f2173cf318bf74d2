"""Interface of the index tables: named statements, implemented for each database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol


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
