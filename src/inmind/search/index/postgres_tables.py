"""The tables of an index in PostgreSQL."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg

from inmind.errors import Damaged
from inmind.search.index.record import PassageWords, RowMissing, Tables, expand_columns, round_to_half
from inmind.store.postgres.connection import Connection
from inmind.store.postgres.database import Database
from inmind.store.postgres.errors import first_line

VECTOR_HEADER_BYTES = 4
"""Bytes that pgvector sends before the numbers of a vector."""


class PostgresTables(Tables):
    """The index tables in PostgreSQL."""

    def __init__(self, database: Database, connection: Connection, statement: Callable[[str], str], place: str) -> None:
        self._database, self._connection, self._statement, self._place = database, connection, statement, place
        self.last_passage = 0
        """The last passage whose words were stored."""

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.execute(self._statement(statement), values)

    def execute_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for all rows, with an array for each column."""
        if rows:
            self.rows(statement, *(list(column) for column in zip(*rows, strict=True)))

    def list_parameter(self, values: Iterable[object]) -> object:
        return list(values)

    def add_words(self, passages: Sequence[PassageWords]) -> None:
        if passages:
            lines = [
                "\n".join(f"{passage_words.resource} {word}" for word in passage_words.words)
                for passage_words in passages
            ]
            self.last_passage = self.value("add_words", [passage_words.passage for passage_words in passages], lines)

    def vector_parameter(self, numbers: Sequence[float]) -> object:
        return format_vector(round_to_half(numbers))

    def value(self, statement: str, *values: object) -> Any:
        try:
            return super().value(statement, *values)
        except RowMissing as error:
            raise Damaged(place=self._place, reason=str(error)) from error

    @contextmanager
    def savepoint(self) -> Generator[None]:
        last = self.last_passage
        try:
            with self._connection.transaction():
                yield
        except BaseException:
            self.last_passage = last
            raise

    def run_script(self, statement: str, *, pgvector: str = "") -> None:
        """Run a script without parameters."""
        self.execute(expand_statement(self._statement(statement), pgvector))

    def execute(self, text: str, values: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        self._database.extend_deadline()
        try:
            cursor = self._connection.execute(text, values)
        except psycopg.Error as error:
            if _is_damage(error):
                raise Damaged(place=self._place, reason=first_line(error)) from error
            raise
        return cursor.fetchall() if cursor.description else []


@cache
def expand_statement(statement: str, pgvector: str) -> str:
    """Insert the columns of records and the schema of pgvector."""
    statement = expand_columns(statement)
    return statement.replace("pgvector.", f"{pgvector}.") if pgvector else statement


def _is_damage(error: psycopg.Error) -> bool:
    """Return True for errors about missing or invalid tables and values."""
    state = error.sqlstate or ""
    return (state[:2] in ("22", "23", "3F", "42") and state != "42501") or state.startswith("XX")


def quote_lexeme(lexeme: str) -> str:
    """Quote a lexeme as a full-text query for exactly this lexeme."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def parse_passages(passages: bytes) -> Sequence[int]:
    numbers = array("q", bytes(passages))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def parse_halves(sent: bytes) -> bytes:
    numbers = array("H", bytes(sent)[VECTOR_HEADER_BYTES:])
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def format_vector(numbers: Sequence[float]) -> str:
    return f"[{','.join(map(repr, map(float, numbers)))}]"
