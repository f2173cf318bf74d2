"""Actors that record every statement that SQLite executes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw
from torture.harness import ActorChannel
from torture.session_steps import STEPS, SessionScript
from torture.writers import opened, session_of

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.errors import Conflict
from inmind.store.protocol import Batch
from inmind.store.sqlite.store import SqliteStore
from inmind.store.stream import Decision

CHANGING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "ALTER", "DROP")


def record_transactions(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Record the transactions, and changes outside of any."""
    begins: list[str] = []
    outside: list[str] = []
    seen: list[str] = []

    def watch(connection: Any) -> None:
        def trace(_: Any, statement: str, __: Any) -> bool:
            words = statement.split()
            seen.append(words[0].upper())
            if words[0].upper() == "BEGIN":
                begins.append(statement)
            elif words[0].upper() in CHANGING and not connection.in_transaction:
                outside.append(statement)
            return True

        connection.exec_trace = trace

    apsw.connection_hooks.append(watch)
    script = SessionScript(Path(home), "main")
    for step in STEPS:
        step(script)
    channel.report("done")
    return {"begins": begins, "outside": outside, "changes": sum(seen.count(word) for word in CHANGING)}


def read_then_write(channel: ActorChannel, *, home: str, name: str, number: int, library: str = "") -> dict[str, int]:
    """On the bare store: read everything, decide, append; retry on a conflict."""
    if library:
        apsw.sqlite_lib_version = lambda: library
    store = SqliteStore(Path(home) / "inmind.db")
    channel.wait()
    conflicts = 0
    for n in range(number):
        while True:
            events = store.read("s")
            text = f"{name}-{n} after {len(events)}"
            draft = Draft(payload=DocumentWritten(path="overview.md", text=text), origin=Origin.USER)
            try:
                store.append(Batch("s", [draft], len(events)), at=_now())
                break
            except Conflict:
                conflicts += 1
    store.close()
    return {"conflicts": conflicts}


def increase(channel: ActorChannel, *, home: str, number: int) -> None:
    """Increment a counter in a document with the commit loop."""
    memory = opened(home)
    session = session_of(memory)
    stream = session._stream  # pyright: ignore[reportPrivateUsage] -- the built-in operations all go through it
    channel.wait()
    for _ in range(number):

        def decide(state: Any, _: Any) -> Decision[Any, None]:
            count = int(state.documents.text("detail/count") or 0)
            what = DocumentWritten(path="detail/count", text=str(count + 1))
            return Decision([Draft(payload=what, origin=Origin.ASSISTANT)], None)

        stream.commit(decide)
    memory.close()


def count(channel: ActorChannel, *, home: str) -> int:
    memory = opened(home)
    counted = int(session_of(memory).read("detail/count"))
    memory.close()
    channel.report("counted")
    return counted


def read_all(channel: ActorChannel, *, home: str) -> list[str]:
    store = SqliteStore(Path(home) / "inmind.db")
    events = store.read("s")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    store.close()
    channel.report("read", os.getpid())
    return [event.payload.text for event in events if isinstance(event.payload, DocumentWritten)]


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)
