"""A session with a full window, the prompt that compacts it, and checks after it was killed.

Such a prompt makes three commits: the host's messages, the compaction, the prompt. Each is stored completely or not at
all; for the compaction that means pages, index and stubs, in the journal and in the files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from provider_rules import faults
from torture.harness import ActorChannel
from torture.session_steps import sound

from inmind import Memory, Session
from inmind.core.events.codec import encode_payload
from inmind.core.events.session import Compacted
from inmind.testing import ManualClock

WINDOW = 8_000
GOAL = "Count all boxes of the move."
BEFORE = 4
"""Turns that the session has when it is found."""
TURNS = 16


def fill(voice: ActorChannel, *, home: str) -> None:
    with Memory.open(home, clock=ManualClock()) as memory:
        _session(memory).prepare(_talk(BEFORE))
    voice.tell("filled")


def overflow(voice: ActorChannel, *, home: str) -> None:
    with Memory.open(home, clock=ManualClock()) as memory:
        _session(memory).prepare(_talk(TURNS))
        voice.tell("done")


def overflow_and_tell(voice: ActorChannel, *, home: str) -> dict[str, Any]:
    """Run undisturbed; report the events and where each commit ended."""
    with Memory.open(home, clock=ManualClock()) as memory:
        session = _session(memory)
        found = session.state.seq
        assert session.prepare(_talk(TURNS)).report.compacted
        voice.tell("done")
        began = [event.seq for event in session.events() if event.starts_batch and event.seq > found + 1]
        ends = [found, *(seq - 1 for seq in began), session.state.seq]
        return {"ends": ends, "journal": _journal(session), "left": _left(session)}


def check(voice: ActorChannel, *, home: str, told: dict[str, Any], done: bool) -> int:
    """Return how many commits were made; then prepare again and check that the result is complete."""
    with Memory.open(home, clock=ManualClock()) as memory:
        session = _session(memory)
        version = session.state.seq
        assert version in (told["ends"][-1:] if done else told["ends"]), f"{version} is inside of {told['ends']}"
        assert _journal(session) == told["journal"][:version]
        _agree(session, Path(home))
        prompt = session.prepare(_talk(TURNS))
        assert faults("openai", prompt.messages) == []
        assert _left(session) == told["left"]
        _agree(session, Path(home))
    voice.tell("went on")
    sound(Path(home))
    return told["ends"].index(version)


def _session(memory: Memory) -> Session:
    return memory.session("move", cwd="/w", window=WINDOW)


def _talk(turns: int) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": GOAL}]
    for turn in range(turns):
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": "count_boxes", "arguments": "{}"}}
        said += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"room {turn}: " + "a box, " * 120},
            {"role": "assistant", "content": f"Room {turn} is counted."},
            {"role": "user", "content": f"Now room {turn + 1}."},
        ]
    return said


def _journal(session: Session) -> list[list[str]]:
    return [[event.kind, encode_payload(event.payload)] for event in session.events()]


def _left(session: Session) -> dict[str, Any]:
    """The state after such a prompt."""
    return {
        "messages": list(session.state.conversation.wires),
        "view": list(session.state.history.sent.wires),
        "documents": {path: session.read(path) for path in session.documents()},
    }


def _agree(session: Session, home: Path) -> None:
    """Check that pages, index, stubs and files describe the same compactions."""
    made = [event.payload for event in session.events() if isinstance(event.payload, Compacted)]
    pages = {path for one in made for path in one.archives}
    folder = home / "sessions" / "--w--" / "move" / "working-memory"
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert set(session.documents()) == {"overview.md", *pages} == files
    for path in session.documents():
        assert (folder / path).read_text("utf-8") == session.read(path), path
    assert set(re.findall(r"archive/\S+\.md", session.overview)) == pages
    stubs = [str(entry.wire["content"]) for entry in session.state.history.sent if entry.is_stub]
    assert {path for stub in stubs for path in re.findall(r"archive/\S+\.md", stub)} == pages
    for entry in (entry for entry in session.state.history.sent if not entry.is_block):
        for path, line in re.findall(r"(archive/\S+\.md) from_line (\d+)", str(entry.wire["content"])):
            assert session.read(path).split("\n")[int(line) - 1] == f"## {entry.seq}: tool"
