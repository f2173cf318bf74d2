"""The cost of a call does not depend on the number of other resources: no call reads their rows."""

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
    "search from outside": lambda memory, _, __: memory.resource("ada").search("ferry"),
    "resolve": lambda _, ada, __: ada.resolve("open the order #W1234567 again"),
    "check_call": lambda _, ada, __: ada.check_call("get_page", {"page_id": "page-unheard-of"}),
    "knows": lambda memory, _, __: memory.has_resource("ada"),
    "has_resource of an unknown name": lambda memory, _, __: memory.has_resource("eve"),
    "sessions": lambda memory, _, __: memory.sessions(resource="ada"),
    "sessions, some of them": lambda memory, _, __: memory.sessions(resource="ada", limit=2),
    "latest": lambda memory, _, __: memory.latest(resource="ada", cwd="/website"),
    "latest that is not there": lambda memory, _, __: memory.latest(resource="ada", cwd="/nowhere"),
    "dream": lambda memory, _, __: memory.dream("ada"),
    "dreams": lambda memory, _, __: memory.resource("ada").dreams(),
    "consolidate": lambda memory, _, __: memory.resource("ada").consolidate(),
    "export": lambda memory, _, folder: memory.export(folder / "ada.inmind", resource="ada"),
    "a session more": lambda memory, _, __: memory.session("new", resource="ada", cwd="/website"),
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

        def counted(connection: Connection, query: Any, params: Any = None, **options: Any) -> Cursor:
            found = execute(connection, query, params, **options)
            self.statements += 1
            self.rows += found.rowcount if found.description else 0
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "execute", counted)
            yield


def lived(memory: Memory, name: str, resource: str) -> Session:
    session = memory.session(name, resource=resource, cwd="/website")
    session.add([user("The ferry leaves at nine"), assistant("So it does.")])
    session.observe("get_page", {"page_id": f"page-{name}"}, {"id": f"page-{name}", "title": "Ferries"})
    session.note(f"{resource} takes the ferry")
    return session


def costs(url: str, folder: Path, *, strangers: int) -> dict[str, tuple[int, int]]:
    """The cost of each call in a memory with this number of other resources."""
    with Memory.open(url, clock=ManualClock(), embedder=None) as others:
        for number in range(strangers):
            lived(others, f"of {number}", f"stranger {number}")
            others.session(f"nobody's {number}").add([user("Is there a ferry?")])
        for name in ("monday", "tuesday"):
            lived(others, name, "ada")
    taken: dict[str, tuple[int, int]] = {}
    with Memory.open(url, clock=ManualClock(), embedder=None) as memory:
        ada = memory.session("monday")
        for name, call in CALLS.items():
            asked = QueryCounter()
            with asked.counting():
                call(memory, ada, folder)
                if name != "close":
                    memory.flush()
            taken[name] = asked.statements, asked.rows
    return taken


@pytest.mark.spec("J8")
def test_the_number_of_queries_does_not_grow_with_other_resources(tenants: Tenants, tmp_path: Path) -> None:
    taken: list[dict[str, tuple[int, int]]] = []
    for strangers in (FEW, MANY):
        (folder := tmp_path / str(strangers)).mkdir()
        with tenants.fresh() as url:
            taken.append(costs(url, folder, strangers=strangers))
    few, many = taken
    assert [name for name, (statements, _) in few.items() if not statements] == ["close"]
    assert {name: few[name] for name in few if few[name] != many[name]} == {}, many


STRANGERS = 5_000
MAX_ROWS_READ = 300


class RowReads:
    """Rows that PostgreSQL had to read for each query, by its own statistics."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}

    @contextmanager
    def counting(self) -> Generator[None]:
        execute = Connection.execute

        def counted(connection: Connection, query: Any, params: Any = None, **options: Any) -> Cursor:
            if isinstance(query, str) and _is_question(query):
                plan = execute(connection, f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params).get
                self.rows[query] = max(self.rows.get(query, 0), _looked_at(plan[0]["Plan"]))
            return execute(connection, query, params, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "execute", counted)
            yield


def _is_question(query: str) -> bool:
    """True for a statement that changes nothing. It is run twice here."""
    told = re.sub(r"^\s*--.*$", "", query, flags=re.MULTILINE).split()
    changing = ("append", "nextval", "insert", "update", "delete", "pg_advisory", "for no key")
    return bool(told) and told[0].upper() in ("SELECT", "WITH") and not any(w in query.lower() for w in changing)


def _looked_at(node: dict[str, Any]) -> int:
    below = sum(map(_looked_at, node.get("Plans", ())))
    if "Relation Name" not in node:
        return below
    passed_over = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return below + round((node["Actual Rows"] + passed_over) * node["Actual Loops"])


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
            lived(memory, name, "ada")
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        schema = sql.Identifier(connection.info.user).as_string(None)
        psycopg.ClientCursor(connection).execute(FILL.format(schema, STRANGERS).encode())
    touched = RowReads()
    with Memory.open(tenant_url, clock=ManualClock(), embedder=None) as memory:
        ada = memory.session("monday")
        with touched.counting():
            for call in CALLS.values():
                call(memory, ada, tmp_path)
    assert len(touched.rows) > 20
    assert {query: rows for query, rows in touched.rows.items() if rows > MAX_ROWS_READ} == {}


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
    for found in (memory.latest(cwd="/old", resource="ada"), *memory.sessions(cwd="/old")):
        assert found is not None
        assert found.id == "s0"


def test_the_last_sessions_are_listed_without_reading_all_others(tenant_url: str) -> None:
    with Memory.open(tenant_url, embedder=None) as memory:
        lived(memory, "mine", "ada")
        with psycopg.connect(tenant_url, autocommit=True) as connection:
            schema = sql.Identifier(connection.info.user).as_string(None)
            psycopg.ClientCursor(connection).execute(FILL.format(schema, STRANGERS).encode())
            over_months = f"UPDATE {schema}.streams SET written = written * 1000000000 WHERE name LIKE 'session/of %'"
            connection.execute(over_months.encode())
            connection.execute(f"ANALYZE {schema}.streams".encode())
        touched = RowReads()
        with touched.counting():
            assert [info.id for info in memory.sessions(limit=2)] == ["mine", f"of {STRANGERS}"]
    assert max(touched.rows.values()) < 3 * listing.RECENT_SESSIONS
