"""What `prepare` costs a turn: beside writing the prompt as JSON, and beside one commit of the same bytes."""

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
from bench.timing import Contender, Race, spoken
from inmind import Memory, Session
from inmind.core.events.codec import encode_payload
from inmind.memory.folder_backend import FolderBackend
from inmind.store.file_operations import MIN_SIGNATURE_AGE_NANOSECONDS
from inmind.store.in_memory import InMemoryStore

MOST_AGAINST_JSON = 2.0
MOST_AGAINST_COMMIT = 1.5
BAR_AT = 500
SIZES = (10, 100, 500, 2_000)
COMMIT_SIZES = (10, 100, 500)

WINDOW = 4_000_000
"""Large enough that 2,000 messages leave it nearly empty."""

SETTLING = 2 * MIN_SIGNATURE_AGE_NANOSECONDS / 1e9
"""Seconds after which a live file is past doubt. Any model takes longer to answer; a younger one is read each time."""

_SAMPLES = 240
_JSON = "json.dumps"
_CASES = {
    "one more, borrowed": "host's list, a message more",
    "same, borrowed": "host's list, unchanged",
    "one more, owned": "our history, a message more",
    "same, owned": "our history, unchanged",
}
_EXTRAS = {
    "turn, borrowed": "host's list, a reply and a message more",
    "loaded, borrowed": "host's list, a message more, loaded anew",
    "half full, borrowed": "host's list, a message more, window half full",
    "open call, borrowed": "host's list, a message more, an open call",
}


def run() -> list[Table]:
    return [_without_commit(), _with_commit()]


def _without_commit() -> Table:
    rows: list[Row] = []
    unchanged: dict[str, dict[int, float]] = {"same, borrowed": {}, "same, owned": {}}
    for size in SIZES:
        race = _raced(size)
        cases = _CASES if size != BAR_AT else {**_CASES, **_EXTRAS}
        rows += [_against_json(race, name, what, size, barred=name in _CASES) for name, what in cases.items()]
        for name, medians in unchanged.items():
            medians[size] = race.median(name)
    for name, medians in unchanged.items():
        flat = medians[SIZES[-1]] / medians[SIZES[0]]
        rows.append(
            Row(
                what=f"{_CASES[name]}: time at {SIZES[-1]:,} against {SIZES[0]}",
                measured=f"{flat:.2f}x",
                figures={"ratio": flat},
            )
        )
    return Table(
        "prepare, warm, by messages in history, without the commit, against json.dumps of the same prompt",
        rows,
        (
            "Without the commit: the journal is inmind.testing.InMemoryStore. The live files are on disk as always, so "
            "appending to messages.jsonl is included. Warm: the session has prepared the list before. Medians, "
            "taking turns. An open call: one at the beginning of the history was never answered.",
        ),
    )


def _against_json(race: Race, name: str, what: str, size: int, *, barred: bool) -> Row:
    ratio = race.ratio(name, _JSON)
    at_bar = barred and size == BAR_AT
    return Row(
        what=f"{size:>5,}: {what}",
        measured=f"{ratio:.2f}x ({spoken(race.median(name))} / {spoken(race.median(_JSON))})",
        bar=f"<= {MOST_AGAINST_JSON:g}x" if at_bar else "",
        met=ratio <= MOST_AGAINST_JSON if at_bar else None,
        figures={"ratio": ratio, "seconds": race.median(name), "p95": race.p95(name), "json": race.median(_JSON)},
    )


def _raced(size: int) -> Race:
    race = Race()
    for _ in range(courses(size)):
        with TemporaryDirectory() as folder:
            race.run(_course(Path(folder), size), repetitions=strides(size))
    return race


def _course(folder: Path, size: int) -> dict[str, Contender]:
    history = conversation(size)
    borrowed = _session(folder / "a").prepare(history).request
    course = {
        _JSON: Contender(lambda: json.dumps(borrowed)),
        "one more, borrowed": _borrowed(_session(folder / "b"), history),
        "same, borrowed": _unchanged(_session(folder / "c"), history),
        "one more, owned": _owned(_session(folder / "d"), history, grows=True),
        "same, owned": _owned(_session(folder / "e"), history, grows=False),
    }
    if size == BAR_AT:
        used = _session(folder / "f").prepare(history).report.tokens_used
        course["turn, borrowed"] = _borrowed(_session(folder / "g"), history, answered=True)
        course["loaded, borrowed"] = _loaded(_session(folder / "h"), history)
        course["half full, borrowed"] = _borrowed(_session(folder / "i", window=int(used * 1.6)), history)
        course["open call, borrowed"] = _borrowed(_session(folder / "j"), [*history[:2], *history[3:]])
    return course


def _session(home: Path, *, window: int = WINDOW) -> Session:
    return Memory(FolderBackend(home, InMemoryStore())).session("bench", window=window, cwd="/bench")


def _borrowed(session: Session, history: Sequence[Message], *, answered: bool = False) -> Contender:
    """The host keeps the list, and hands in the same one every time, longer."""
    host, new = list(history), questions()

    def grow() -> None:
        if answered:
            host.append({"role": "assistant", "content": next(new)["content"]})
        host.append(next(new))

    session.prepare(host)
    session.prepare(host)
    return Contender(lambda: session.prepare(host), before=grow)


def _unchanged(session: Session, history: Sequence[Message]) -> Contender:
    host = list(history)
    session.prepare(host)
    session.prepare(host)
    return Contender(lambda: session.prepare(host))


def _loaded(session: Session, history: Sequence[Message]) -> Contender:
    """The host keeps its list in a database: equal messages every time, and never the same objects."""
    host, new = list(history), questions()
    fresh: list[Message] = []

    def load() -> None:
        host.append(next(new))
        fresh[:] = json.loads(json.dumps(host))

    session.prepare(host)
    session.prepare(host)
    return Contender(lambda: session.prepare(list(fresh)), before=load)


def _owned(session: Session, history: Sequence[Message], *, grows: bool) -> Contender:
    new = questions()
    session.add(history)
    session.prepare()
    session.prepare()
    return Contender(session.prepare, before=lambda: session.add([next(new)]) if grows else None)


def _with_commit() -> Table:
    rows: list[Row] = []
    for size in COMMIT_SIZES:
        race = Race()
        with TemporaryDirectory() as folder, Memory.open(Path(folder) / "home") as memory:
            bare = BareJournal(Path(folder) / "bare.db")
            for course in range(courses(size)):  # in one database: its log is warm from the second course on
                race.run(_committing(memory, f"bench-{course}", bare, size), repetitions=strides(size))
            bare.close()
        ratio = race.ratio("prepare", "bare")
        medians = f"{spoken(race.median('prepare'))} / {spoken(race.median('bare'))}"
        rows.append(
            Row(
                what=f"{size:>5,}: host's list, a message more",
                measured=f"{ratio:.2f}x ({medians})",
                bar=f"<= {MOST_AGAINST_COMMIT:g}x",
                met=ratio <= MOST_AGAINST_COMMIT,
                figures={
                    "ratio": ratio,
                    "seconds": race.median("prepare"),
                    "p95": race.p95("prepare"),
                    "bare": race.median("bare"),
                    "bare_p95": race.p95("bare"),
                },
            )
        )
    return Table(
        "prepare, by messages in history, with the commit, against a bare SQLite commit of the same bytes",
        rows,
        (
            "Bare: WAL, synchronous=FULL, BEGIN IMMEDIATE, the events that this prepare has just stored inserted as "
            "text into a table without an index, COMMIT; same library, same file system. The live files are past "
            "doubt, as they are when a model has taken a moment to answer. Medians, taking turns.",
        ),
    )


class BareJournal:
    """The least that SQLite can be asked to do to keep the same bytes as safe."""

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


def _committing(memory: Memory, id: str, bare: BareJournal, size: int) -> dict[str, Contender]:
    session = memory.session(id, window=WINDOW, cwd="/bench")
    host, new = conversation(size), questions()
    session.prepare(host)
    sleep(SETTLING)
    session.prepare(host)
    seen = session.state.seq
    stored: list[str] = []

    def note_what_was_stored() -> None:
        nonlocal seen
        events = session.events(after=seen)
        seen = events[-1].seq
        stored[:] = [encode_payload(event.payload) for event in events]

    return {
        "prepare": Contender(lambda: session.prepare(host), before=lambda: host.append(next(new))),
        "bare": Contender(lambda: bare.commit(stored), before=note_what_was_stored),
    }


def strides(size: int) -> int:
    """Each course is run for a few messages only and then laid out anew, so that the history keeps its size."""
    return min(30, max(4, size // 20))


def courses(size: int) -> int:
    return -(-_SAMPLES // strides(size))
