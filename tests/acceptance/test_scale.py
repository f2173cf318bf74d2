"""The cost of a call does not depend on the number of other resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from builders import assistant, user
from postgres import Tenants
from psycopg import sql

from inmind import Memory, Session
from inmind.memory import listing
from inmind.store.postgres.connection import Connection, Cursor
from inmind.testing import ManualClock

pytestmark = pytest.mark.both_stores

FEW, MANY = 5, 100

Call = Callable[[Memory, Session, Path], object]

CALLS: dict[str, Call] = {
    "prepare": lambda _, ada, __: ada.prepare([user("Where is the ferry?")]),
    "record": lambda _, ada, __: ada.record(assistant("At the pier.")),
    "note": lambda _, ada, __: ada.note("The ferry is blue"),
    "search": lambda _, ada, __: ada.search("ferry"),
    "search of a resource": lambda memory, _, __: memory.resource("ada").search("ferry"),
    "resolve": lambda _, ada, __: ada.resolve("open the order #W1234567 again"),
    "check_call": lambda _, ada, __: ada.check_call("get_page", {"page_id": "page-unknown"}),
    "has_resource": lambda memory, _, __: memory.has_resource("ada"),
    "has_resource of an unknown name": lambda memory, _, __: memory.has_resource("eve"),
    "sessions": lambda memory, _, __: memory.sessions(resource="ada"),
    "sessions with a limit": lambda memory, _, __: memory.sessions(resource="ada", limit=2),
    "latest": lambda memory, _, __: memory.latest(resource="ada", cwd="/website"),
    "latest of an unknown folder": lambda memory, _, __: memory.latest(resource="ada", cwd="/nowhere"),
    "dream": lambda memory, _, __: memory.dream("ada"),
    "dreams": lambda memory, _, __: memory.resource("ada").dreams(),
    "consolidate": lambda memory, _, __: memory.resource("ada").consolidate(),
    "export": lambda memory, _, folder: memory.export(folder / "ada.inmind", resource="ada"),
    "another session": lambda memory, _, __: memory.session("new", resource="ada", cwd="/website"),
    "close": lambda memory, _, __: memory.close(),
}


class QueryCounter:
    """Counts statements and returned rows."""

    def __init__(self) -> None:
        self.statements = 0
        self.rows = 0

    @contextmanager
    def counting(self) -> Generator[None]:
        execute = Connection.execute

        def execute_and_count(connection: Connection, query: Any, params: Any = None, **options: Any) -> Cursor:
            cursor = execute(connection, query, params, **options)
            self.statements += 1
            self.rows += cursor.rowcount if cursor.description else 0
            return cursor

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "execute", execute_and_count)
            yield


def add_session(memory: Memory, name: str, resource: str) -> Session:
    session = memory.session(name, resource=resource, cwd="/website")
    session.add([user("The ferry leaves at nine"), assistant("So it does.")])
    session.observe("get_page", {"page_id": f"page-{name}"}, {"id": f"page-{name}", "title": "Ferries"})
    session.note(f"{resource} takes the ferry")
    return session


def measure_calls(url: str, folder: Path, *, other_resources: int) -> dict[str, tuple[int, int]]:
    """The cost of each call in a memory with this number of other resources."""
    with Memory.open(url, clock=ManualClock(), embedder=None) as others:
        for number in range(other_resources):
            add_session(others, f"of {number}", f"stranger {number}")
            others.session(f"anonymous {number}").add([user("Is there a ferry?")])
        for name in ("monday", "tuesday"):
            add_session(others, name, "ada")
    measured: dict[str, tuple[int, int]] = {}
    with Memory.open(url, clock=ManualClock(), embedder=None) as memory:
        ada = memory.session("monday")
        for name, call in CALLS.items():
            counter = QueryCounter()
            with counter.counting():
                call(memory, ada, folder)
                if name != "close":
                    memory.flush()
            measured[name] = counter.statements, counter.rows
    return measured


@pytest.mark.spec("J8")
def test_the_number_of_queries_does_not_grow_with_other_resources(tenants: Tenants, tmp_path: Path) -> None:
    measured: list[dict[str, tuple[int, int]]] = []
    for other_resources in (FEW, MANY):
        (folder := tmp_path / str(other_resources)).mkdir()
        with tenants.fresh() as url:
            measured.append(measure_calls(url, folder, other_resources=other_resources))
    few, many = measured
    assert [name for name, (statements, _) in few.items() if not statements] == ["close"]
    assert {name: few[name] for name in few if few[name] != many[name]} == {}, many


OTHER_RESOURCES = 5_000
MAX_ROWS_READ = 300


class RowReads:
    """Rows that PostgreSQL reads for each query, according to its plans."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    @contextmanager
    def counting(self) -> Generator[None]:
        execute = Connection.execute

        def execute_and_count(connection: Connection, query: Any, params: Any = None, **options: Any) -> Cursor:
            if isinstance(query, str) and _is_read_only(query):
                plan = execute(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params).get
                self.rows[query] = max(self.rows.get(query, 0), _rows_read(plan[0]["Plan"]))
            return execute(connection, query, params, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "execute", execute_and_count)
            yield


def _is_read_only(query: str) -> bool:
    """True for a statement that changes nothing. It is run twice here."""
    words = re.sub(r"^\s*--.*$", "", query, flags=re.MULTILINE).split()
    changing = ("append", "nextval", "insert", "update", "delete", "pg_advisory", "for no key")
    return bool(words) and words[0].upper() in ("SELECT", "WITH") and not any(w in query.lower() for w in changing)


def _rows_read(node: dict[str, Any]) -> int:
    children = sum(map(_rows_read, node.get("Plans", ())))
    if "Relation Name" not in node:
        return children
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return children + round((node["Actual Rows"] + removed) * node["Actual Loops"])


FILL = """
INSERT INTO {0}.owners (name, position) SELECT 'stranger ' || n, 4 * n FROM generate_series(1, {1}) AS n;
INSERT INTO {0}.streams (name, owner, version, written)
    SELECT 'session/of ' || n, (SELECT id FROM {0}.owners WHERE name = 'stranger ' || n), 4, n
    FROM generate_series(1, {1}) AS n;
INSERT INTO {0}.events
    SELECT owner, nextval('{0}.positions'), id, seq, written, CASE seq WHEN 1 THEN 'opened' ELSE 'seen' END, 'tool', 0,
        seq = 1, NULL, CASE seq WHEN 1 THEN '{{"resource": "stranger", "cwd": "/", "language": "en"}}' ELSE '{{}}' END
    FROM {0}.streams, generate_series(1, 4) AS seq WHERE streams.name LIKE 'session/of %';
INSERT INTO {0}.keys SELECT id, 'k', 'r', 1, 4, 0 FROM {0}.streams;
ANALYZE {0}.owners, {0}.streams, {0}.events, {0}.keys;
"""


def test_no_query_reads_rows_of_other_resources(tenant_url: str, tmp_path: Path) -> None:
    with Memory.open(tenant_url, clock=ManualClock(), embedder=None) as memory:
        for name in ("monday", "tuesday"):
            add_session(memory, name, "ada")
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        schema = sql.Identifier(connection.info.user).as_string(None)
        psycopg.ClientCursor(connection).execute(FILL.format(schema, OTHER_RESOURCES).encode())
    reads = RowReads()
    with Memory.open(tenant_url, clock=ManualClock(), embedder=None) as memory:
        ada = memory.session("monday")
        with reads.counting():
            for call in CALLS.values():
                call(memory, ada, tmp_path)
    assert len(reads.rows) > 20
    assert {query: rows for query, rows in reads.rows.items() if rows > MAX_ROWS_READ} == {}


def test_latest_of_a_folder_scans_a_bounded_number_and_of_a_resource_all_its_sessions(
    memory: Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "RECENT_SESSIONS", 1)
    monkeypatch.setattr(listing, "MAX_SCANNED_SESSIONS", 3)
    for number, cwd in enumerate(["/old", "/new", "/new", "/new"]):
        clock.advance(seconds=60)
        memory.session(f"s{number}", resource="ada", cwd=cwd)
    assert memory.latest(cwd="/old") is None
    assert memory.sessions(cwd="/old", limit=1) == []
    assert [one.id for one in memory.sessions(cwd="/new", limit=9)] == ["s3", "s2", "s1"]
    for info in (memory.latest(cwd="/old", resource="ada"), *memory.sessions(cwd="/old")):
        assert info is not None
        assert info.id == "s0"


def test_the_last_sessions_are_listed_without_reading_all_others(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        add_session(memory, "mine", "ada")
        with psycopg.connect(tenant_url, autocommit=True) as connection:
            schema = sql.Identifier(connection.info.user).as_string(None)
            psycopg.ClientCursor(connection).execute(FILL.format(schema, OTHER_RESOURCES).encode())
            statement = f"UPDATE {schema}.streams SET written = written * 1000000000 WHERE name LIKE 'session/of %'"
            connection.execute(statement.encode())
            connection.execute(f"ANALYZE {schema}.streams".encode())
        reads = RowReads()
        with reads.counting():
            assert [info.id for info in memory.sessions(limit=2)] == ["mine", f"of {OTHER_RESOURCES}"]
    assert max(reads.rows.values()) < 3 * listing.RECENT_SESSIONS
