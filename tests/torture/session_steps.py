"""A short session in steps, and checks of the home after each step.

Every step is one action of a host or a user. An undisturbed run gives the allowed states: a killed session must be in
the state before or after the interrupted step, also if the step changes the resource.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from torture.harness import ActorChannel

import inmind.store.stream
from inmind import Memory, default_layers
from inmind.core.events.session import HistorySpliced, MessageAdded, Reverted
from inmind.core.paths import DATABASE
from inmind.errors import NotFound
from inmind.layers import ScratchpadLayer
from inmind.session.session import Session
from inmind.testing import ManualClock

State = dict[str, Any]


class SessionScript:
    """A session of an actor process, which writes snapshots more often than usual."""

    def __init__(self, home: Path, name: str) -> None:
        inmind.store.stream.SNAPSHOT_INTERVAL_EVENTS = 5
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
        tool_calls = [
            {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in calls
        ]
        message = {"role": "assistant", "content": "Noted.", "tool_calls": tool_calls}
        id = f"chatcmpl-{self.name}-{len(calls)}-{'x' * 16}"
        return {"id": id, "choices": [{"message": message, "finish_reason": "tool_calls"}]}

    def close(self) -> None:
        self.memory.close()
        self._memory = self._session = None

    def user_saves(self, file: Path, text: str) -> None:
        """Save like most editors: write a new file, then rename it over the old one."""
        temporary = file.with_name(file.name + "~")
        temporary.write_text(text, "utf-8")
        os.replace(temporary, file)


def begin(script: SessionScript) -> None:
    assert script.session.id == script.name


def ask_first(script: SessionScript) -> None:
    script.session.prepare([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Plan the move."}])


def write_overview(script: SessionScript) -> None:
    script.session.write("overview.md", f"# {script.name}\n- boxes: 12\n")


def user_edits_overview(script: SessionScript) -> None:
    script.user_saves(script.folder / "working-memory" / "overview.md", f"# {script.name}\n- boxes: 13, says Ada\n")


def answer(script: SessionScript) -> None:
    script.session.add([{"role": "assistant", "content": "Thirteen boxes.", "id": "m1"}], key="answer")


def observe(script: SessionScript) -> None:
    script.session.observe("movers_book", {"day": "Friday"}, {"id": "van-7"}, id="call-1")


def write_memory(script: SessionScript) -> None:
    script.session.write("MEMORY.md", f"# Ada\nlast: {script.name}\n")


def write_detail(script: SessionScript) -> None:
    script.session.write("detail/boxes.md", "kitchen 4\nbooks 9\n")


def undo_detail(script: SessionScript) -> None:
    script.session.undo()


def user_edits_memory(script: SessionScript) -> None:
    script.user_saves(script.home / "resources" / "ada" / "MEMORY.md", f"# Ada\nlikes: tea\nlast: {script.name}\n")


def ask_again(script: SessionScript) -> None:
    script.session.prepare()


def report(script: SessionScript) -> None:
    script.session.report_usage(prompt_tokens=400, cached_tokens=100, completion_tokens=20)


def rewrite_overview(script: SessionScript) -> None:
    script.session.write("overview.md", f"# {script.name}\n- done\n")


def undo(script: SessionScript) -> None:
    script.session.undo()


def note(script: SessionScript) -> None:
    script.session.scratchpad.update(f"{script.name}: thirteen boxes")


def model_notes(script: SessionScript) -> None:
    """In one reply: a change of the resource, one of the session, and an unknown tool."""
    recorded = script.session.record(
        script.reply(
            ("working_memory_update", {"text": f"{script.name}: a van on Friday", "append": True}),
            ("memory_write", {"path": "detail/van.md", "text": "van-7\n"}),
            ("memory_read", {"path": "overview.md"}),
        )
    )
    assert [result["content"][:5] for result in recorded.results].count("Error") == 0


def spawn(script: SessionScript) -> None:
    assert script.child.id


def child_notes(script: SessionScript) -> None:
    script.child.scratchpad.update(f"{script.name}: keys are with Mei", append=True)


def child_model_notes(script: SessionScript) -> None:
    script.child.record(
        script.reply(
            ("working_memory_update", {"text": f"{script.name}: lift is out of order", "append": True}),
            ("memory_write", {"path": "detail/keys.md", "text": "with Mei\n"}),
        )
    )


def merge_child(script: SessionScript) -> None:
    script.session.merge_back(script.child)


def close(script: SessionScript) -> None:
    script.close()


STEPS: list[Callable[[SessionScript], None]] = [
    begin,
    ask_first,
    write_overview,
    user_edits_overview,
    answer,
    observe,
    write_memory,
    write_detail,
    undo_detail,
    user_edits_memory,
    ask_again,
    report,
    rewrite_overview,
    undo,
    note,
    spawn,
    child_notes,
    child_model_notes,
    model_notes,
    merge_child,
    close,
]


# -- actors ------------------------------------------------------------------------------------------------


def run_steps(channel: ActorChannel, *, home: str, name: str) -> None:
    script = SessionScript(Path(home), name)
    for number, step in enumerate(STEPS, start=1):
        channel.report("begin", number)
        step(script)
        channel.report("done", number)


def run_and_report(channel: ActorChannel, *, home: str, name: str) -> list[State | None]:
    """Run undisturbed and report the state before and after each step."""
    script = SessionScript(Path(home), name)
    states = [state_of(script)]
    for step in STEPS:
        step(script)
        states.append(state_of(script))
    script.close()
    channel.report("states", len(states))
    return states


def check(channel: ActorChannel, *, home: str, name: str, states: list[State | None], done: int, begun: int) -> int:
    """Check that the state is that before or after the interrupted step; then run to the end."""
    script = SessionScript(Path(home), name)
    state = state_of(script)
    last = max(done, begun)
    allowed = [number for number in range(done, last + 1) if state == states[number]]
    assert allowed, f"after step {done} (begun {begun}) it is {state}, and neither {states[done]} nor the next"
    consistent(script)
    for step in STEPS[allowed[0] :]:
        step(script)
    channel.report("continued")
    end = state_of(script)
    assert end == states[-1], f"the final state is {end} instead of {states[-1]}"
    consistent(script)
    script.close()
    sound(Path(home))
    return allowed[0]


# -- checks -----------------------------------------------------------------------------------------------


def state_of(script: SessionScript) -> State | None:
    """Everything that a host can see; None for a session that does not exist."""
    ids = [info.id for info in script.memory.sessions()]
    if script.name not in ids:
        return None
    session = script.session
    return {
        **state_of_session(session),
        "shared": session.scratchpad.snapshot,
        "child": state_of_session(child) if f"{script.name}-child" in ids and (child := script.child) else None,
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


def consistent(script: SessionScript) -> None:
    """Check that files match the journal and no leftovers exist."""
    session = script.session
    for path in session.documents():
        file = script.home / "resources" / "ada" / path
        if path not in ("MEMORY.md", "memory/scratch.md"):
            file = script.folder / "working-memory" / path
        assert file.read_text("utf-8") == session.read(path), path
    lines = [json.loads(line) for line in (script.folder / "messages.jsonl").read_text("utf-8").splitlines()]
    assert [line["seq"] for line in lines] == [
        event.seq for event in session.events() if isinstance(event.payload, MessageAdded | HistorySpliced | Reverted)
    ]
    assert [line["message"] for line in lines if "message" in line] == [
        event.payload.wire for event in session.events() if isinstance(event.payload, MessageAdded)
    ]
    meta = script.folder / "meta.json"
    assert not meta.exists() or json.loads(meta.read_text("utf-8"))["id"] == script.name
    for file in script.home.rglob("*"):
        assert not file.name.startswith(".inmind-"), f"{file} is a leftover"
        assert ".damaged-" not in file.name, f"{file} was treated as damaged"
    try:
        listed = session.read("detail/boxes.md")
    except NotFound:
        listed = None
    assert (script.folder / "working-memory" / "detail" / "boxes.md").exists() == (listed is not None)


def sound(home: Path) -> None:
    connection = connected(home / DATABASE)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def connected(path: Path) -> Any:
    """A connection without the store; apsw's annotations need a newer Python."""
    return apsw.Connection(str(path))
