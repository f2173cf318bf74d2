"""A session with a full window, the prompt that compacts it, and checks after a kill.

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
from inmind.core.events import encode_payload
from inmind.core.events.session import Compacted
from inmind.history.compaction.stubs import parse_location
from inmind.testing import ManualClock

WINDOW = 8_000
GOAL = "Count all boxes of the move."
BEFORE = 4
"""Turns of the session at the start."""
TURNS = 16


def fill(channel: ActorChannel, *, home: str) -> None:
    with Memory.open(home, clock=ManualClock()) as memory:
        _session(memory).prepare(_talk(BEFORE))
    channel.report("filled")


def overflow(channel: ActorChannel, *, home: str) -> None:
    with Memory.open(home, clock=ManualClock()) as memory:
        _session(memory).prepare(_talk(TURNS))
        channel.report("done")


def overflow_and_report(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Run undisturbed; report the events and where each commit ended."""
    with Memory.open(home, clock=ManualClock()) as memory:
        session = _session(memory)
        start = session.state.seq
        assert session.prepare(_talk(TURNS)).report.compacted
        channel.report("done")
        began = [event.seq for event in session.events() if event.starts_batch and event.seq > start + 1]
        ends = [start, *(seq - 1 for seq in began), session.state.seq]
        return {"ends": ends, "journal": _journal(session), "state": _final_state(session)}


def check(channel: ActorChannel, *, home: str, expected: dict[str, Any], done: bool) -> int:
    """Return how many commits were made; then prepare again and check the result."""
    with Memory.open(home, clock=ManualClock()) as memory:
        session = _session(memory)
        version = session.state.seq
        assert version in (expected["ends"][-1:] if done else expected["ends"]), (
            f"{version} is inside of {expected['ends']}"
        )
        assert _journal(session) == expected["journal"][:version]
        _agree(session, Path(home))
        prompt = session.prepare(_talk(TURNS))
        assert faults("openai", prompt.messages) == []
        assert _final_state(session) == expected["state"]
        _agree(session, Path(home))
    channel.report("continued")
    sound(Path(home))
    return expected["ends"].index(version)


def _session(memory: Memory) -> Session:
    return memory.session("move", cwd="/w", window=WINDOW)


def _talk(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": GOAL}]
    for turn in range(turns):
        call = {"id": f"call-{turn}", "type": "function", "function": {"name": "count_boxes", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"room {turn}: " + "a box, " * 120},
            {"role": "assistant", "content": f"Room {turn} is counted."},
            {"role": "user", "content": f"Now room {turn + 1}."},
        ]
    return messages


def _journal(session: Session) -> list[list[str]]:
    return [[event.kind, encode_payload(event.payload)] for event in session.events()]


def _final_state(session: Session) -> dict[str, Any]:
    """Messages, view and documents."""
    return {
        "messages": list(session.state.conversation.wires),
        "view": list(session.state.history.sent.wires),
        "documents": {path: session.read(path) for path in session.documents()},
    }


def _agree(session: Session, home: Path) -> None:
    """Check that pages, index, stubs and files describe the same compactions."""
    compactions = [event.payload for event in session.events() if isinstance(event.payload, Compacted)]
    pages = {path for one in compactions for path in one.archives}
    folder = home / "sessions" / "--w--" / "move" / "working-memory"
    files = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    assert set(session.documents()) == {"overview.md", *pages} == files
    for path in session.documents():
        assert (folder / path).read_text("utf-8") == session.read(path), path
    listed = set(re.findall(r"archive/\S+\.md", session.overview))
    (more,) = re.findall(r"and (\d+) more in these folders", session.overview) or ["0"]
    assert listed <= pages
    assert len(listed) + int(more) == len(pages)
    stubs = [entry for entry in session.state.history.sent if entry.is_stub]
    locations = [
        (entry, place) for entry in stubs for place in re.findall(r"archive/\d+:[\d-]+", str(entry.wire["content"]))
    ]
    assert {parse_location(place, pages)[0] for _, place in locations} == pages
    for entry, place in locations:
        path, lines = parse_location(place, pages)
        assert lines is not None
        heading = session.read(path).split("\n")[lines[0] - 1]
        assert heading.startswith("## ")
        assert entry.is_block or heading == f"## {entry.seq}: tool"
