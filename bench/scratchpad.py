"""What a scratchpad costs: an update beside a copy of the state and one commit, and reopening after a thousand."""

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
from bench.timing import Contender, Race, spoken
from inmind import Memory, Session, default_layers
from inmind.core.events.codec import encode_payload
from inmind.core.events.documents import ScratchpadMerged
from inmind.layers import ScratchpadLayer
from inmind.memory.folder_backend import FolderBackend
from inmind.session.state import SessionFold
from inmind.store.in_memory import InMemoryStore

SIZE = 50_000
MOST_COPIES = 2.0
UPDATES = 1_000
MOST_REOPENING = 0.050

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


def _of_records() -> dict[str, Any]:
    """As an agent's notes are: steps, and facts by name."""
    state: dict[str, Any] = {
        "goal": "Move the shop to the new host.",
        "owner": {"name": "Mei", "mail": "m@example.com"},
    }
    steps: list[dict[str, Any]] = []
    facts: dict[str, str] = {}
    while len(json.dumps({**state, "steps": steps, "facts": facts})) < SIZE:
        steps.append({"title": f"step {len(steps)} of the move", "done": len(steps) % 3 == 0, "notes": "seen " * 6})
        facts[f"fact-{len(facts)}"] = "The staging database is restored from last night's copy."
    return {**state, "steps": steps, "facts": facts}


def _of_prose() -> dict[str, Any]:
    """A few long texts, which `deepcopy` does not copy at all."""
    return {"goal": "Move the shop.", "facts": {f"page-{n}": "word " * 500 for n in range(SIZE // 2_500)}}


def run() -> list[Table]:
    return [
        Table(
            f"an update of one field, {SIZE // 1000} KB of state",
            [
                _updated("no schema, records", {"type": "object"}, _of_records()),
                _updated("JSON Schema, records", _SCHEMA, _of_records()),
                _updated("pydantic, records", _Task, _of_records()),
                _updated("pydantic, long texts", _Task, _of_prose()),
                _updated("pydantic, records, no commit", _Task, _of_records(), durable=False),
            ],
            (
                f"The bar is {MOST_COPIES:g} x copy.deepcopy of the state plus one bare SQLite commit of the event's "
                "bytes (WAL, synchronous FULL), all three taking turns.",
            ),
        ),
        Table(f"opening a session after {UPDATES} updates", _reopened(), ("Medians of a home opened anew each time.",)),
    ]


def _updated(what: str, schema: Any, state: dict[str, Any], *, durable: bool = True) -> Row:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        with _memory(place / "home", durable=durable) as memory:
            session = _session(memory, schema)
            session.scratchpad.update(state)
            turn = count(1)
            body = encode_payload(ScratchpadMerged("working-memory", {"turn": 1_000}))
            bare = BareJournal(place / "bare.db")
            race = Race()
            contenders = {
                "update": Contender(lambda: session.scratchpad.update({"turn": next(turn)})),
                "deepcopy": Contender(lambda: deepcopy(state)),
            }
            if durable:
                contenders["commit"] = Contender(lambda: bare.commit([body]))
            race.run(contenders, repetitions=20)
            race.samples.clear()
            race.run(contenders, repetitions=_SAMPLES)
            bare.close()
    allowed = MOST_COPIES * race.median("deepcopy") + (race.median("commit") if durable else 0.0)
    parts = f"{spoken(race.median('deepcopy'))} copy" + (f", {spoken(race.median('commit'))} commit" if durable else "")
    return Row(
        what=what,
        measured=f"{spoken(race.median('update'))} ({parts})",
        bar=f"<= {spoken(allowed)}",
        met=race.median("update") <= allowed,
        figures={name: race.median(name) for name in race.samples},
    )


def _reopened() -> list[Row]:
    rows: list[Row] = []
    for what, state in (("a small state", {"goal": "Ship"}), (f"{SIZE // 1000} KB of state", _of_records())):
        with TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            with Memory.open(home) as memory:
                session = _session(memory, _SCHEMA)
                session.scratchpad.update(state)
                for turn in range(UPDATES):
                    session.scratchpad.update({"turn": turn})
            race = Race()
            course = {"reopen": Contender(partial(_opened, home)), "snapshot": Contender(partial(_thawed, home))}
            race.run(course, repetitions=20)
            times = race.ratio("reopen", "snapshot")
            rows.append(
                Row(
                    what=what,
                    measured=f"{spoken(race.median('reopen'))}, {times:.1f} x reading the snapshot",
                    bar=f"<= {spoken(MOST_REOPENING)}",
                    met=race.median("reopen") <= MOST_REOPENING,
                    figures={name: race.median(name) for name in race.samples},
                )
            )
    return rows


def _opened(home: Path) -> None:
    with Memory.open(home) as memory:
        assert _session(memory, _SCHEMA).scratchpad.snapshot


def _thawed(home: Path) -> object:
    """The home opened, and its snapshot read, but nothing folded on top."""
    with Memory.open(home) as memory:
        snapshot = memory._context.store.snapshot("session/bench", fold_version=SessionFold.version)  # pyright: ignore[reportPrivateUsage]
        assert snapshot is not None
        return json.loads(snapshot.body.partition("\n")[2])


def _memory(home: Path, *, durable: bool) -> Memory:
    return Memory.open(home) if durable else Memory(FolderBackend(home, InMemoryStore()))


def _session(memory: Memory, schema: Any) -> Session:
    return memory.session("bench", cwd="/bench", layers=default_layers(ScratchpadLayer(schema=schema)))
