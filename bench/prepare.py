"""Time of `prepare`, against JSON encoding of the prompt and one commit of the same bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import apsw

from bench.conversations import Message, conversation, questions
from bench.table import Row, Table
from bench.timing import TimedCall, Timings
from inmind import Memory, Session
from inmind.core.events import encode_payload
from inmind.memory.backends import FolderBackend
from inmind.store.file_operations import MIN_SIGNATURE_AGE_NANOSECONDS
from inmind.testing import InMemoryStore

MAX_JSON_RATIO = 2.0
MAX_COMMIT_RATIO = 1.5
BAR_SIZE = 500
SIZES = (10, 100, 500, 2_000)
COMMIT_SIZES = (10, 100, 500)

WINDOW = 4_000_000
"""Large enough that 2,000 messages leave it nearly empty."""

SETTLE_SECONDS = 2 * MIN_SIGNATURE_AGE_NANOSECONDS / 1e9
"""Seconds after which the signature of a live file is trusted; a younger file is read each time.

Models take longer to answer."""

_SAMPLES = 240
_JSON = "json.dumps"
_CASES = {
    "one more, borrowed": "host's list, one more message",
    "same, borrowed": "host's list, unchanged",
    "one more, owned": "our history, one more message",
    "same, owned": "our history, unchanged",
}
_EXTRAS = {
    "turn, borrowed": "host's list, one more reply and message",
    "loaded, borrowed": "host's list, one more message, reloaded",
    "half full, borrowed": "host's list, one more message, window half full",
    "open call, borrowed": "host's list, one more message, an open call",
}


def run() -> list[Table]:
    return [_without_commit(), _with_commit()]


def _without_commit() -> Table:
    rows: list[Row] = []
    unchanged: dict[str, dict[int, float]] = {"same, borrowed": {}, "same, owned": {}}
    for size in SIZES:
        timings = _time_size(size)
        cases = _CASES if size != BAR_SIZE else {**_CASES, **_EXTRAS}
        for name, what in cases.items():
            limit = MAX_JSON_RATIO if size == BAR_SIZE and name in _CASES else None
            rows.append(timings.ratio_row(f"{size:>5,}: {what}", name, _JSON, limit))
        for name, medians in unchanged.items():
            medians[size] = timings.median(name)
    for name, medians in unchanged.items():
        growth = medians[SIZES[-1]] / medians[SIZES[0]]
        rows.append(
            Row(
                what=f"{_CASES[name]}: time at {SIZES[-1]:,} against {SIZES[0]}",
                measured=f"{growth:.2f}x",
                figures={"ratio": growth},
            )
        )
    return Table(
        "prepare, warm, by messages in history, without the commit, against json.dumps of the same prompt",
        rows,
        (
            "Without the commit: the journal is inmind.testing.InMemoryStore. The live files are on disk as always, so "
            "appending to messages.jsonl is included. Warm: the session has prepared the list before. Medians, "
            "interleaved. An open call: one at the beginning of the history was never answered.",
        ),
    )


def _time_size(size: int) -> Timings:
    timings = Timings()
    for _ in range(setup_count(size)):
        with TemporaryDirectory() as folder:
            timings.run(_build_calls(Path(folder), size), repetitions=samples_per_setup(size))
    return timings


def _build_calls(folder: Path, size: int) -> dict[str, TimedCall]:
    history = conversation(size)
    borrowed = _session(folder / "a").prepare(history).request
    timed_calls = {
        _JSON: TimedCall(lambda: json.dumps(borrowed)),
        "one more, borrowed": _prepare_growing(_session(folder / "b"), history),
        "same, borrowed": _prepare_unchanged(_session(folder / "c"), history),
        "one more, owned": _prepare_stored(_session(folder / "d"), history, grows=True),
        "same, owned": _prepare_stored(_session(folder / "e"), history, grows=False),
    }
    if size == BAR_SIZE:
        used = _session(folder / "f").prepare(history).report.tokens_used
        timed_calls["turn, borrowed"] = _prepare_growing(_session(folder / "g"), history, with_reply=True)
        timed_calls["loaded, borrowed"] = _prepare_reloaded(_session(folder / "h"), history)
        timed_calls["half full, borrowed"] = _prepare_growing(_session(folder / "i", window=int(used * 1.6)), history)
        timed_calls["open call, borrowed"] = _prepare_growing(_session(folder / "j"), [*history[:2], *history[3:]])
    return timed_calls


def _session(home: Path, *, window: int = WINDOW) -> Session:
    return Memory(FolderBackend(home, InMemoryStore())).session("bench", window=window, cwd="/bench")


def _prepare_growing(session: Session, history: Sequence[Message], *, with_reply: bool = False) -> TimedCall:
    """The host keeps the list and passes the same object each time, longer."""
    messages, new = list(history), questions()

    def grow() -> None:
        if with_reply:
            messages.append({"role": "assistant", "content": next(new)["content"]})
        messages.append(next(new))

    session.prepare(messages)
    session.prepare(messages)
    return TimedCall(lambda: session.prepare(messages), before=grow)


def _prepare_unchanged(session: Session, history: Sequence[Message]) -> TimedCall:
    messages = list(history)
    session.prepare(messages)
    session.prepare(messages)
    return TimedCall(lambda: session.prepare(messages))


def _prepare_reloaded(session: Session, history: Sequence[Message]) -> TimedCall:
    """The host keeps its list in a database: equal messages each time, but new objects."""
    messages, new = list(history), questions()
    reloaded: list[Message] = []

    def load() -> None:
        messages.append(next(new))
        reloaded[:] = json.loads(json.dumps(messages))

    session.prepare(messages)
    session.prepare(messages)
    return TimedCall(lambda: session.prepare(list(reloaded)), before=load)


def _prepare_stored(session: Session, history: Sequence[Message], *, grows: bool) -> TimedCall:
    new = questions()
    session.add(history)
    session.prepare()
    session.prepare()
    return TimedCall(session.prepare, before=lambda: session.add([next(new)]) if grows else None)


def _with_commit() -> Table:
    rows: list[Row] = []
    for size in COMMIT_SIZES:
        timings = Timings()
        with TemporaryDirectory() as folder, Memory.open(Path(folder) / "home") as memory:
            bare = BareJournal(Path(folder) / "bare.db")
            for number in range(setup_count(size)):  # in one database: its log is warm after the first time
                timings.run(_commit_calls(memory, f"bench-{number}", bare, size), repetitions=samples_per_setup(size))
            bare.close()
        what = f"{size:>5,}: host's list, one more message"
        rows.append(timings.ratio_row(what, "prepare", "bare", MAX_COMMIT_RATIO))
    return Table(
        "prepare, by messages in history, with the commit, against a bare SQLite commit of the same bytes",
        rows,
        (
            "Bare: WAL, synchronous=FULL, BEGIN IMMEDIATE, the events that this prepare has just stored inserted as "
            "text into a table without an index, COMMIT; same library, same file system. The signatures of the live "
            "files are trusted, as they are after the reply of a model. Medians, interleaved.",
        ),
    )


class BareJournal:
    """The minimum of SQLite work that stores the same bytes equally safely."""

    def __init__(self, path: Path) -> None:
        self._connection: Any = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    def commit(self, bodies: Sequence[str]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for body in bodies:
            self._connection.execute("INSERT INTO events (body) VALUES (?)", (body,))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def _commit_calls(memory: Memory, id: str, bare: BareJournal, size: int) -> dict[str, TimedCall]:
    session = memory.session(id, window=WINDOW, cwd="/bench")
    messages, new = conversation(size), questions()
    session.prepare(messages)
    sleep(SETTLE_SECONDS)
    session.prepare(messages)
    seen = session.state.seq
    stored: list[str] = []

    def collect_stored_events() -> None:
        nonlocal seen
        events = session.events(after=seen)
        seen = events[-1].seq
        stored[:] = [encode_payload(event.payload) for event in events]

    return {
        "prepare": TimedCall(lambda: session.prepare(messages), before=lambda: messages.append(next(new))),
        "bare": TimedCall(lambda: bare.commit(stored), before=collect_stored_events),
    }


def samples_per_setup(size: int) -> int:
    """Return the samples per setup: few, so that the history keeps its size."""
    return min(30, max(4, size // 20))


def setup_count(size: int) -> int:
    return -(-_SAMPLES // samples_per_setup(size))
