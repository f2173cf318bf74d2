"""A short session in steps, and checks of the home after each step.

Every step is one action of a host or a person. Run undisturbed, it gives the allowed states: a session that was killed
between two steps must be in one or the other; also if a step changes the resource.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from torture.harness import ActorChannel

import inmind.session.meta_file
import inmind.store.stream
from inmind import Memory, default_layers
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted
from inmind.core.paths import DATABASE
from inmind.errors import NotFound
from inmind.layers import ScratchpadLayer
from inmind.session.session import Session
from inmind.testing import ManualClock

State = dict[str, Any]

# So that a life of a few steps meets snapshots and meta.json too.
inmind.store.stream.SNAPSHOT_INTERVAL_EVENTS = 5
inmind.session.meta_file.MIN_EVENTS_BETWEEN_WRITES = 4


class SessionScript:
    def __init__(self, home: Path, name: str) -> None:
        self.home, self.name = home, name
        self._memory: Memory | None = None
        self._session: Session | None = None

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            self._memory = Memory.open(self.home, clock=ManualClock())
        return self._memory

    @property
    def session(self) -> Session:
        if self._session is None:
            layers = default_layers(ScratchpadLayer(scope="resource"))
            self._session = self.memory.session(self.name, resource="ada", cwd="/w", layers=layers)
        return self._session

    @property
    def child(self) -> Session:
        """A child session with its own copy of the scratchpad."""
        return self.session.spawn(f"{self.name}-child")

    @property
    def folder(self) -> Path:
        return self.home / "sessions" / "--w--" / self.name

    def reply(self, *calls: tuple[str, dict[str, Any]]) -> State:
        """A model's reply, always with the same id."""
        made = [
            {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for name, given in calls
        ]
        message = {"role": "assistant", "content": "Noted.", "tool_calls": made}
        id = f"chatcmpl-{self.name}-{len(calls)}-{'x' * 16}"
        return {"id": id, "choices": [{"message": message, "finish_reason": "tool_calls"}]}

    def close(self) -> None:
        self.memory.close()
        self._memory = self._session = None

    def person_saves(self, file: Path, text: str) -> None:
        """Save like most editors: write a new file, then rename it over the old one."""
        beside = file.with_name(file.name + "~")
        beside.write_text(text, "utf-8")
        os.replace(beside, file)


def begin(life: SessionScript) -> None:
    assert life.session.id == life.name


def ask_first(life: SessionScript) -> None:
    life.session.prepare([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Plan the move."}])


def write_overview(life: SessionScript) -> None:
    life.session.write("overview.md", f"# {life.name}\n- boxes: 12\n")


def person_edits_overview(life: SessionScript) -> None:
    life.person_saves(life.folder / "working-memory" / "overview.md", f"# {life.name}\n- boxes: 13, says Ada\n")


def answer(life: SessionScript) -> None:
    life.session.add([{"role": "assistant", "content": "Thirteen boxes.", "id": "m1"}], key="answer")


def observe(life: SessionScript) -> None:
    life.session.observe("movers_book", {"day": "Friday"}, {"id": "van-7"}, id="call-1")


def write_memory(life: SessionScript) -> None:
    life.session.write("MEMORY.md", f"# Ada\nlast: {life.name}\n")


def write_detail(life: SessionScript) -> None:
    life.session.write("detail/boxes.md", "kitchen 4\nbooks 9\n")


def undo_detail(life: SessionScript) -> None:
    life.session.undo()


def person_edits_memory(life: SessionScript) -> None:
    life.person_saves(life.home / "resources" / "ada" / "MEMORY.md", f"# Ada\nlikes: tea\nlast: {life.name}\n")


def ask_again(life: SessionScript) -> None:
    life.session.prepare()


def report(life: SessionScript) -> None:
    life.session.report_usage(prompt_tokens=400, cached_tokens=100, completion_tokens=20)


def rewrite_overview(life: SessionScript) -> None:
    life.session.write("overview.md", f"# {life.name}\n- done\n")


def undo(life: SessionScript) -> None:
    life.session.undo()


def note(life: SessionScript) -> None:
    life.session.scratchpad.update(f"{life.name}: thirteen boxes")


def model_notes(life: SessionScript) -> None:
    """In one reply: a change of the resource, one of the session, and an unknown tool."""
    recorded = life.session.record(
        life.reply(
            ("working_memory_update", {"text": f"{life.name}: a van on Friday", "append": True}),
            ("memory_write", {"path": "detail/van.md", "text": "van-7\n"}),
            ("memory_read", {"path": "overview.md"}),
        )
    )
    assert [result["content"][:5] for result in recorded.results].count("Error") == 0


def spawn(life: SessionScript) -> None:
    assert life.child.id


def child_notes(life: SessionScript) -> None:
    life.child.scratchpad.update(f"{life.name}: keys are with Mei", append=True)


def child_model_notes(life: SessionScript) -> None:
    life.child.record(
        life.reply(
            ("working_memory_update", {"text": f"{life.name}: lift is out of order", "append": True}),
            ("memory_write", {"path": "detail/keys.md", "text": "with Mei\n"}),
        )
    )


def child_comes_home(life: SessionScript) -> None:
    life.session.merge_back(life.child)


def close(life: SessionScript) -> None:
    life.close()


STEPS: list[Callable[[SessionScript], None]] = [
    begin,
    ask_first,
    write_overview,
    person_edits_overview,
    answer,
    observe,
    write_memory,
    write_detail,
    undo_detail,
    person_edits_memory,
    ask_again,
    report,
    rewrite_overview,
    undo,
    note,
    spawn,
    child_notes,
    child_model_notes,
    model_notes,
    child_comes_home,
    close,
]


# -- actors ------------------------------------------------------------------------------------------------


def live(voice: ActorChannel, *, home: str, name: str) -> None:
    life = SessionScript(Path(home), name)
    for number, step in enumerate(STEPS, start=1):
        voice.tell("begin", number)
        step(life)
        voice.tell("done", number)


def live_and_tell(voice: ActorChannel, *, home: str, name: str) -> list[State | None]:
    """Run undisturbed and report the state before and after each step."""
    life = SessionScript(Path(home), name)
    states = [state_of(life)]
    for step in STEPS:
        step(life)
        states.append(state_of(life))
    life.close()
    voice.tell("states", len(states))
    return states


def check(voice: ActorChannel, *, home: str, name: str, states: list[State | None], done: int, begun: int) -> int:
    """Check that the home is in the state before or after the interrupted step; then run to the end."""
    life = SessionScript(Path(home), name)
    found = state_of(life)
    last = max(done, begun)
    allowed = [number for number in range(done, last + 1) if found == states[number]]
    assert allowed, f"after step {done} (begun {begun}) it is {found}, and neither {states[done]} nor the next"
    consistent(life)
    for step in STEPS[allowed[0] :]:
        step(life)
    voice.tell("lived on")
    end = state_of(life)
    assert end == states[-1], f"lived on to {end} instead of {states[-1]}"
    consistent(life)
    life.close()
    sound(Path(home))
    return allowed[0]


# -- looking -----------------------------------------------------------------------------------------------


def state_of(life: SessionScript) -> State | None:
    """Everything that a host can see; None for a session that does not exist."""
    begun = [info.id for info in life.memory.sessions()]
    if life.name not in begun:
        return None
    session = life.session
    return {
        **state_of_session(session),
        "shared": session.scratchpad.snapshot,
        "child": state_of_session(child) if f"{life.name}-child" in begun and (child := life.child) else None,
    }


def state_of_session(session: Session) -> State:
    documents = {path: session.read(path) for path in session.documents()}
    events = session.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    pads = {name: pad.state for name, pad in session.state.scratchpads.by_name.items()}
    return {
        "documents": documents,
        "messages": list(session.state.conversation.wires),
        "scratchpads": pads,
        "calls": session.state.prompt.calls,
        "journal": [[event.kind, event.origin.value] for event in events],
        "prompts": [session.prompt(call + 1).request for call in range(session.state.prompt.calls)],
    }


def consistent(life: SessionScript) -> None:
    """Check that files match the journal and no leftovers exist."""
    session = life.session
    for path in session.documents():
        file = life.home / "resources" / "ada" / path
        if path not in ("MEMORY.md", "memory/scratch.md"):
            file = life.folder / "working-memory" / path
        assert file.read_text("utf-8") == session.read(path), path
    shown = [json.loads(line) for line in (life.folder / "messages.jsonl").read_text("utf-8").splitlines()]
    assert [line["seq"] for line in shown] == [
        event.seq for event in session.events() if isinstance(event.payload, MessageAdded | HistorySpliced | Reverted)
    ]
    assert [line["message"] for line in shown if "message" in line] == [
        event.payload.wire for event in session.events() if isinstance(event.payload, MessageAdded)
    ]
    meta = life.folder / "meta.json"
    assert not meta.exists() or json.loads(meta.read_text("utf-8"))["id"] == life.name
    for file in life.home.rglob("*"):
        assert not file.name.startswith(".inmind-"), f"{file} lies about"
        assert ".damaged-" not in file.name, f"{file} was taken for damaged"
    try:
        listed = session.read("detail/boxes.md")
    except NotFound:
        listed = None
    assert (life.folder / "working-memory" / "detail" / "boxes.md").exists() == (listed is not None)


def sound(home: Path) -> None:
    connection = connected(home / DATABASE)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def connected(path: Path) -> Any:
    """A connection without the store; apsw's annotations need a newer Python."""
    return apsw.Connection(str(path))
