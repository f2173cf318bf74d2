"""Time of a scratchpad update, and of reopening after 1,000 updates.

An update is compared with a copy of the state and one commit.
"""

from __future__ import annotations

import json
from copy import deepcopy
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import BaseModel

from bench.prepare import BareJournal
from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory, Session, default_layers
from inmind.core.events import encode_payload
from inmind.core.events.documents import ScratchpadMerged
from inmind.layers import ScratchpadLayer
from inmind.memory.backends import FolderBackend
from inmind.session.state import SessionFold
from inmind.testing import InMemoryStore

STATE_BYTES = 50_000
MAX_COPIES = 2.0
UPDATES = 1_000
MAX_REOPEN_SECONDS = 0.050

_SAMPLES = 200


class _Step(BaseModel):
    title: str
    done: bool = False
    notes: str = ""


class _Task(BaseModel):
    goal: str = ""
    turn: int = 0
    owner: dict[str, str] = {}
    steps: list[_Step] = []
    facts: dict[str, str] = {}


_SCHEMA = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "turn": {"type": "integer"},
        "owner": {"type": "object", "additionalProperties": {"type": "string"}},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "done": {"type": "boolean"},
                    "notes": {"type": "string"},
                },
                "required": ["title"],
            },
        },
        "facts": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def _record_state() -> dict[str, Any]:
    """State like an agent's notes: steps, and facts by name."""
    state: dict[str, Any] = {
        "goal": "Move the shop to the new host.",
        "owner": {"name": "Mei", "mail": "m@example.com"},
    }
    steps: list[dict[str, Any]] = []
    facts: dict[str, str] = {}
    while len(json.dumps({**state, "steps": steps, "facts": facts})) < STATE_BYTES:
        steps.append({"title": f"step {len(steps)} of the move", "done": len(steps) % 3 == 0, "notes": "seen " * 6})
        facts[f"fact-{len(facts)}"] = "The staging database is restored from last night's copy."
    return {**state, "steps": steps, "facts": facts}


def _text_state() -> dict[str, Any]:
    """A few long texts, which `deepcopy` does not copy."""
    return {"goal": "Move the shop.", "facts": {f"page-{n}": "word " * 500 for n in range(STATE_BYTES // 2_500)}}


def run() -> list[Table]:
    return [
        Table(
            f"an update of one field, {STATE_BYTES // 1000} KB of state",
            [
                _update_row("no schema, records", {"type": "object"}, _record_state()),
                _update_row("JSON Schema, records", _SCHEMA, _record_state()),
                _update_row("pydantic, records", _Task, _record_state()),
                _update_row("pydantic, long texts", _Task, _text_state()),
                _update_row("pydantic, records, no commit", _Task, _record_state(), durable=False),
            ],
            (
                f"The bar is {MAX_COPIES:g} x copy.deepcopy of the state plus one bare SQLite commit of the event's "
                "bytes (WAL, synchronous FULL), all three interleaved.",
            ),
        ),
        Table(
            f"opening a session after {UPDATES} updates",
            _reopen_rows(),
            ("Medians. The home is opened again each time.",),
        ),
    ]


def _update_row(what: str, schema: Any, state: dict[str, Any], *, durable: bool = True) -> Row:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        with _memory(place / "home", durable=durable) as memory:
            session = _session(memory, schema)
            session.scratchpad.update(state)
            turn = count(1)
            body = encode_payload(ScratchpadMerged("working-memory", {"turn": 1_000}))
            bare = BareJournal(place / "bare.db")
            timings = Timings()
            timed_calls = {
                "update": TimedCall(lambda: session.scratchpad.update({"turn": next(turn)})),
                "deepcopy": TimedCall(lambda: deepcopy(state)),
            }
            if durable:
                timed_calls["commit"] = TimedCall(lambda: bare.commit([body]))
            timings.run(timed_calls, repetitions=20)
            timings.samples.clear()
            timings.run(timed_calls, repetitions=_SAMPLES)
            bare.close()
    allowed = MAX_COPIES * timings.median("deepcopy") + (timings.median("commit") if durable else 0.0)
    parts = f"{format_duration(timings.median('deepcopy'))} copy" + (
        f", {format_duration(timings.median('commit'))} commit" if durable else ""
    )
    return Row(
        what=what,
        measured=f"{format_duration(timings.median('update'))} ({parts})",
        bar=f"<= {format_duration(allowed)}",
        met=timings.median("update") <= allowed,
        figures={name: timings.median(name) for name in timings.samples},
    )


def _reopen_rows() -> list[Row]:
    rows: list[Row] = []
    for what, state in (("a small state", {"goal": "Ship"}), (f"{STATE_BYTES // 1000} KB of state", _record_state())):
        with TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            with Memory.open(home) as memory:
                session = _session(memory, _SCHEMA)
                session.scratchpad.update(state)
                for turn in range(UPDATES):
                    session.scratchpad.update({"turn": turn})
            timings = Timings()
            timed_calls = {
                "reopen": TimedCall(partial(_open_session, home)),
                "snapshot": TimedCall(partial(_read_snapshot, home)),
            }
            timings.run(timed_calls, repetitions=20)
            times = timings.ratio("reopen", "snapshot")
            rows.append(
                Row(
                    what=what,
                    measured=f"{format_duration(timings.median('reopen'))}, {times:.1f} x reading the snapshot",
                    bar=f"<= {format_duration(MAX_REOPEN_SECONDS)}",
                    met=timings.median("reopen") <= MAX_REOPEN_SECONDS,
                    figures={name: timings.median(name) for name in timings.samples},
                )
            )
    return rows


def _open_session(home: Path) -> None:
    with Memory.open(home) as memory:
        assert _session(memory, _SCHEMA).scratchpad.snapshot


def _read_snapshot(home: Path) -> object:
    """Open the home and read its snapshot without folding events."""
    with Memory.open(home) as memory:
        snapshot = memory._context.store.snapshot("session/bench", fold_version=SessionFold.version)  # pyright: ignore[reportPrivateUsage]
        assert snapshot is not None
        return json.loads(snapshot.body.partition("\n")[2])


def _memory(home: Path, *, durable: bool) -> Memory:
    return Memory.open(home) if durable else Memory(FolderBackend(home, InMemoryStore()))


def _session(memory: Memory, schema: Any) -> Session:
    return memory.session("bench", cwd="/bench", layers=default_layers(ScratchpadLayer(schema=schema)))
