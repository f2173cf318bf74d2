"""Actors with stores of older and newer schemas, and with unsafe SQLite libraries."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
from torture.harness import ActorChannel
from torture.session_steps import connected, sound
from torture.writers import opened, session_of

import inmind.store.sqlite.connection as sqlite
from inmind import Memory
from inmind.core.encoding import to_microseconds
from inmind.core.events import encode_payload
from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.errors import InmindError
from inmind.store.protocol import Batch, Key, PublishedVersion, Snapshot
from inmind.store.sqlite.connection import MIGRATIONS
from inmind.store.sqlite.store import SqliteStore

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def create_old(channel: ActorChannel, *, home: str, steps: int) -> None:
    """Create a store as it was after this many migrations, with some content."""
    Path(home).mkdir(parents=True, exist_ok=True)
    sqlite.MIGRATIONS = MIGRATIONS[:steps]
    if steps == 0:
        (Path(home) / "inmind.db").touch()  # killed before the first one
        return
    SqliteStore(Path(home) / "inmind.db").close()
    connection = connected(Path(home) / "inmind.db")  # like an inmind with this schema
    connection.execute("INSERT INTO streams (id, name) VALUES (1, 's')")
    for seq, text in enumerate(("old one", "old two"), start=1):
        row = (seq, to_microseconds(WHEN), seq == 1, encode_payload(DocumentWritten(path="overview.md", text=text)))
        connection.execute(
            "INSERT INTO events (stream, seq, at, kind, origin, trust, opens, body)"
            " VALUES (1, ?1, ?2, 'document', 'user', 2, ?3, ?4)",
            row,
        )
    connection.execute("INSERT INTO keys VALUES (1, 'k', 'r', 1, 2, ?1)", (to_microseconds(WHEN),))
    if steps > 1:
        connection.execute("INSERT INTO snapshots VALUES (1, 2, 1, 'state')")
    connection.close()
    channel.report("made", steps)


def migrate(channel: ActorChannel, *, home: str) -> None:
    """Open the store, which migrates it."""
    SqliteStore(Path(home) / "inmind.db").close()
    channel.report("migrated")


def migrate_together(channel: ActorChannel, *, home: str, name: str) -> None:
    channel.wait()
    store = SqliteStore(Path(home) / "inmind.db")
    while True:
        try:
            _append(store, name)
            break
        except InmindError as error:
            if error.code != "CONFLICT":
                raise
    store.close()


def migrate_and_die(channel: ActorChannel, *, home: str, steps: int) -> list[int]:
    """Kill a child before each statement of a migration.

    Each child gets an old store. From the oldest store all migrations are covered, from any other the first one: a kill
    in a later one leaves a store of that version.
    """
    died: list[int] = []
    old, new = Path(home, "old"), Path(home, "new.db")
    assert run_child(lambda: create_old(channel, home=str(old), steps=steps)) == 0
    assert run_child(lambda: SqliteStore(new).close()) == 0
    for number in range(1, 1_000):
        place = shutil.copytree(old, Path(home, str(number)))
        code = run_child(lambda place=place, number=number: _die_at_statement(channel, place, number))
        if code == 0:
            break
        assert code == 9, f"statement {number}: {code}"
        if steps and _schema_version(place) > steps:
            break
        died.append(number)
        code = run_child(lambda place=place: look(channel, home=str(place), steps=steps, new=new))
        assert code == 0, f"died before statement {number}; the check failed: {code}"
    return died


def _schema_version(place: Path) -> int:
    """The schema version, read from a copy: the next process must find the store unchanged."""
    with TemporaryDirectory() as folder:
        return describe(shutil.copytree(place, Path(folder, "copy")) / "inmind.db")[1]


def _die_at_statement(channel: ActorChannel, place: Path, number: int) -> None:
    remaining = [number]

    def watch(connection: Any) -> None:
        def trace(*_: Any) -> bool:
            remaining[0] -= 1
            if remaining[0] == 0:
                os._exit(9)
            return True

        connection.exec_trace = trace

    apsw.connection_hooks.append(watch)
    migrate(channel, home=str(place))


def run_child(act: Any) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def look(channel: ActorChannel, *, home: str, steps: int, new: Path | None = None) -> list[str]:
    """Check that the store opens, has the current schema, and has its content."""
    path = Path(home) / "inmind.db"
    store = SqliteStore(path)
    texts = [event.payload.text for event in store.read("s") if isinstance(event.payload, DocumentWritten)]
    if steps:
        assert texts[:2] == ["old one", "old two"]
        assert store.append(Batch("s", [], 0), at=WHEN, key=Key("k", "r")).repeated
    if steps > 1:
        assert store.snapshot("s", fold_version=1) == Snapshot(seq=2, fold_version=1, body="state")
    _append(store, "new")
    store.mark_published("s", "overview.md", PublishedVersion("aaaa", seq=1))
    assert store.published_versions("s") == {"overview.md": PublishedVersion("aaaa", 1)}
    store.close()
    schema, version = describe(path)
    fresh = new or Path(home) / "fresh.db"
    if not new:
        SqliteStore(fresh).close()
    assert (schema, version) == describe(fresh)
    assert version == len(MIGRATIONS)
    if not new:
        fresh.unlink()
    sound(Path(home))
    channel.report("looked")
    return texts


def describe(path: Path) -> tuple[list[Any], int]:
    connection = connected(path)
    schema = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
    version = connection.pragma("user_version")
    connection.close()
    return [list(row) for row in schema], version


# -- a newer schema ----------------------------------------------------------------------------------------


def create_newer(channel: ActorChannel, *, home: str) -> None:
    """Create a store of a newer inmind with one more table."""
    with Memory.open(home) as memory:
        session = session_of(memory)
        session.write("overview.md", "from tomorrow\n")
        session.write("MEMORY.md", "kept\n")
        session.add([{"role": "user", "content": "hello"}])
        session.prepare()
    connection = connected(Path(home) / "inmind.db")
    connection.execute("CREATE TABLE tomorrow (what TEXT)")
    connection.pragma("user_version", len(MIGRATIONS) + 1)
    connection.close()
    channel.report("made")


def dump(channel: ActorChannel, *, home: str) -> list[Any]:
    """Every row of every table, and every live file."""
    connection = connected(Path(home) / "inmind.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
    rows = {table: [list(map(str, row)) for row in connection.execute(f'SELECT * FROM "{table}"')] for table in tables}
    version = connection.pragma("user_version")
    connection.close()
    files = {str(f): f.read_text() for f in sorted(Path(home).rglob("*")) if f.suffix in {".md", ".jsonl", ".json"}}
    channel.report("dumped")
    return [version, rows, files]


def use_newer(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Open the store with this inmind: every read, then every write."""
    memory = opened(home)
    session = session_of(memory)
    reads = {
        "overview": session.overview,
        "memory": session.read("MEMORY.md"),
        "documents": sorted(session.documents()),
        "sessions": [info.id for info in memory.sessions()],
        "messages": [dict(wire) for wire in session.state.conversation.wires],
        "prompt": session.prompt(1).request["messages"][-1]["role"],
        "past": session.state_at(2).seq,
    }
    writes = {
        "add": lambda: session.add([{"role": "user", "content": "more"}]),
        "write": lambda: session.write("overview.md", "from today\n"),
        "write memory": lambda: session.write("MEMORY.md", "from today\n"),
        "observe": lambda: session.observe("tool", {}, "x"),
        "prepare": lambda: session.prepare(),
        "report_usage": lambda: session.report_usage(prompt_tokens=1),
        "undo": lambda: session.undo(),
        "session": lambda: session_of(memory, "another"),
    }
    refused: dict[str, list[str]] = {}
    for name, write in writes.items():
        try:
            write()
            refused[name] = ["", ""]
        except InmindError as error:
            refused[name] = [error.code, str(error)]
    memory.close()
    channel.report("met")
    return {"reads": reads, "refused": refused}


# -- an unsafe library -------------------------------------------------------------------------------------


def open_with(channel: ActorChannel, *, home: str, library: str) -> dict[str, Any]:
    memory = opened(home, library=library)
    session = session_of(memory)
    session.add([{"role": "user", "content": library}])
    connection = connected(Path(home) / "inmind.db")
    mode = connection.pragma("journal_mode")
    connection.close()
    files = sorted(file.name for file in Path(home).glob("inmind.db*"))
    texts = [wire["content"] for wire in session.state.conversation.wires]
    memory.close()
    channel.report("opened")
    return {"mode": mode, "files": files, "texts": texts}


def _append(store: SqliteStore, *texts: str, key: Key | None = None) -> None:
    drafts = [Draft(payload=DocumentWritten(path="overview.md", text=text), origin=Origin.USER) for text in texts]
    store.append(Batch("s", drafts, store.version("s")), at=WHEN, key=key)
