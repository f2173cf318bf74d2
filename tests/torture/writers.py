"""Actors that write: one until it is killed, or several concurrently."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from torture.harness import ActorChannel
from torture.session_steps import sound

from inmind import Memory, default_layers
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import MessageAdded, ToolObserved
from inmind.documents.document import Scope
from inmind.errors import Conflict, KeyReused
from inmind.layers import ScratchpadLayer
from inmind.session.session import Session

BATCH = 3
NOTED = "noted"


def opened(home: str, *, library: str = "") -> Memory:
    """`library`: the SQLite version to pretend."""
    if library:
        apsw.sqlite_lib_version = lambda: library
    return Memory.open(home)


def session_of(memory: Memory, id: str = "s", *, scratchpad: Scope = "thread") -> Session:
    layers = default_layers(ScratchpadLayer(scope=scratchpad))
    return memory.session(id, resource="ada", cwd="/w", window=100_000_000, layers=layers)


def a_reply(name: str, text: str) -> dict[str, Any]:
    """A reply with this name that appends the text to the scratchpad."""
    function = {"name": "working_memory_update", "arguments": json.dumps({"text": text, "append": True})}
    call = {"id": f"call-{name}", "type": "function", "function": function}
    message = {"role": "assistant", "content": name, "tool_calls": [call]}
    return {"id": f"chatcmpl-{'0' * 16}-{name}", "choices": [{"message": message, "finish_reason": "tool_calls"}]}


# -- until killed ------------------------------------------------------------------------------------


def write_forever(channel: ActorChannel, *, home: str, seed: int, library: str = "") -> None:
    """Report what is stored, then write forever and report each acknowledged write."""
    session = session_of(opened(home, library=library), scratchpad="resource")
    channel.report("seen", written(session))
    rng = random.Random(seed)
    for number in itertools.count():
        name = f"{seed}-{number}"
        match rng.randrange(6):
            case 0:
                session.add([{"role": "user", "content": f"{name} {part}"} for part in range(BATCH)])
            case 1:
                session.observe("tool", {}, name)
            case 2:
                session.write("overview.md", name)
            case 3:
                session.scratchpad.update(name, append=True)
            case 4:
                session.record(a_reply(name, f"{name} {NOTED}"))
            case _:
                session.write("MEMORY.md", name)
        channel.report("wrote", name)


def look(channel: ActorChannel, *, home: str, library: str = "") -> list[str]:
    memory = opened(home, library=library)
    session = session_of(memory, scratchpad="resource")
    names = written(session)
    check_replies(session)
    folder = Path(home) / "sessions" / "--w--" / "s"
    assert (folder / "working-memory" / "overview.md").read_text() == session.read("overview.md")
    lines = [json.loads(line) for line in (folder / "messages.jsonl").read_text().splitlines()]
    seqs = [event.seq for event in session.events() if isinstance(event.payload, MessageAdded)]
    assert [line["seq"] for line in lines if "message" in line] == seqs
    memory.close()
    sound(Path(home))
    channel.report("sound")
    return names


def written(session: Session) -> list[str]:
    """Names of all complete writes; for documents, including overwritten versions."""
    events = session.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    names: list[str] = []
    parts: list[str] = []
    for event in events:
        match event.payload:
            case MessageAdded(wire=wire) if wire["role"] == "user":
                parts.append(wire["content"])
            case MessageAdded(wire=wire) if wire["role"] == "assistant":
                names.append(wire["content"])
            case ToolObserved(result=result):
                names.append(result)
            case DocumentWritten(text=text) if not text.startswith("#"):
                names.append(text)
            case _:
                pass
    for first in range(0, len(parts), BATCH):
        name = parts[first].split()[0]
        assert parts[first : first + BATCH] == [f"{name} {part}" for part in range(BATCH)], "half a batch"
        names.append(name)
    names += [text for text in memory_versions(session) if text]
    names += [line for line in scratchpad_lines(session) if not line.endswith(NOTED)]
    assert len(names) == len(set(names)), "a write is stored twice"
    return names


def check_replies(session: Session) -> None:
    """A scratchpad line of a reply exists if, and only if, the reply is in the session."""
    noted = [line.removesuffix(f" {NOTED}") for line in scratchpad_lines(session) if line.endswith(NOTED)]
    messages = [event.payload.wire for event in session.events() if isinstance(event.payload, MessageAdded)]
    recorded = [wire["content"] for wire in messages if wire["role"] == "assistant"]
    assert len(noted) == len(set(noted)), "a reply was executed twice"
    assert set(recorded) == set(noted), "a reply was recorded and not executed, or executed and not recorded"


def scratchpad_lines(session: Session) -> list[str]:
    return str(session.scratchpad.snapshot).splitlines()


def memory_versions(session: Session) -> list[str]:
    store = session._store  # pyright: ignore[reportPrivateUsage] -- a resource's journal has no public API yet
    events = store.read("resource/ada", kind="document")
    return [event.payload.text for event in events if isinstance(event.payload, DocumentWritten)]


# -- concurrent writers ------------------------------------------------------------------------------------------


def add_many(channel: ActorChannel, *, home: str, name: str, number: int) -> None:
    """Add messages and observations alternately, each with an id and twice, as in a retry."""
    memory = opened(home)
    session = session_of(memory)
    channel.wait()
    for n in range(number):
        id = f"{name}-{n}"
        for _ in range(2):
            if n % 2:
                session.observe("tool", {"n": n}, id, id=id)
            else:
                session.add([{"role": "user", "content": id, "id": id}])
    memory.close()


def prepare_many(channel: ActorChannel, *, home: str, number: int) -> list[int]:
    memory = opened(home)
    session = session_of(memory)
    channel.wait()
    calls = [session.prepare().call for _ in range(number)]
    memory.close()
    return calls


def write_many(channel: ActorChannel, *, home: str, name: str, path: str, number: int) -> int:
    """Append lines: read, decide, write; start over on a conflict."""
    memory = opened(home)
    session = session_of(memory)
    channel.wait()
    conflicts = 0
    for n in range(number):
        while True:
            text = session.read(path)
            try:
                session.write(path, f"{text}{name}-{n}\n")
                break
            except Conflict:
                conflicts += 1
    memory.close()
    return conflicts


def write_once(channel: ActorChannel, *, home: str, path: str, text: str, base: int) -> dict[str, Any]:
    """Two of these start at the same version of a document."""
    memory = opened(home)
    session = session_of(memory)
    channel.wait()
    try:
        return {"version": session.write(path, text, base=base)}
    except Conflict as conflict:
        return {
            "conflict": conflict.code,
            "mine": conflict.mine,
            "theirs": conflict.theirs,
            "expected": conflict.expected,
            "actual": conflict.actual,
        }
    finally:
        memory.close()


def read_once(channel: ActorChannel, *, home: str, path: str) -> dict[str, Any]:
    memory = opened(home)
    session = session_of(memory)
    text, version = session.read(path), session.documents()[path]
    memory.close()
    channel.report("read", path)
    return {"text": text, "version": version}


def begin_document(channel: ActorChannel, *, home: str, path: str, text: str) -> int:
    memory = opened(home)
    version = session_of(memory).write(path, text)
    memory.close()
    channel.report("begun", path)
    return version


def census(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Everything that all writers have written."""
    memory = opened(home)
    session = session_of(memory)
    events = session.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    message_ids = [event.payload.wire["id"] for event in events if isinstance(event.payload, MessageAdded)]
    observed = [event.payload.call_id for event in events if isinstance(event.payload, ToolObserved)]
    folder = Path(home) / "sessions" / "--w--" / "s"
    lines = [json.loads(line) for line in (folder / "messages.jsonl").read_text().splitlines()]
    answer: dict[str, Any] = {
        "messages": message_ids,
        "observed": observed,
        "calls": session.state.prompt.calls,
        "lines": [line["message"]["id"] for line in lines if "message" in line],
        "documents": {path: session.read(path) for path in session.documents()},
        "leftovers": [str(file) for file in Path(home).rglob(".inmind-*")],
    }
    files = {
        "overview.md": folder / "working-memory" / "overview.md",
        "MEMORY.md": Path(home, "resources/ada/MEMORY.md"),
    }
    for path, file in files.items():
        if path in answer["documents"]:
            assert file.read_text() == answer["documents"][path], path
    memory.close()
    sound(Path(home))
    channel.report("sound")
    return answer


# -- a lost reply ------------------------------------------------------------------------------------------


def seq_after(session: Session, _: None) -> int:
    """The number of the last event after a call that returns nothing."""
    return session.state.seq


CALLS: dict[str, Callable[[Session, str], Any]] = {
    "add": lambda session, key: seq_after(session, session.add([{"role": "user", "content": "once"}], key=key)),
    "observe": lambda session, key: seq_after(session, session.observe("tool", {"a": 1}, "once", key=key)),
    "observe_id": lambda session, _: seq_after(session, session.observe("tool", {"a": 1}, "once", id="call-9")),
    "write": lambda session, key: session.write("overview.md", "once", key=key),
    "write_memory": lambda session, key: session.write("MEMORY.md", "once", key=key),
    "undo": lambda session, key: session.undo(key=key),
    "prepare": lambda session, key: session.prepare([{"role": "user", "content": "once"}], key=key).request,
    "report_usage": lambda session, key: seq_after(session, session.report_usage(prompt_tokens=7, key=key)),
    "update": lambda session, key: seq_after(session, session.scratchpad.update("once", append=True, key=key)),
    "record": lambda session, key: session.record(a_reply("once", "once"), key=key).results,
    "record_id": lambda session, _: session.record(a_reply("once", "once")).results,
    "spawn": lambda session, _: session.spawn("another").id,
    "merge_back": lambda session, key: session.merge_back("child", key=key).child,
}
OTHERS: dict[str, Callable[[Session, str], Any]] = {
    "add": lambda session, key: session.add([{"role": "user", "content": "other"}], key=key),
    "observe": lambda session, key: session.observe("tool", {}, "other", key=key),
    "write": lambda session, key: session.write("overview.md", "other", key=key),
    "write_memory": lambda session, key: session.write("MEMORY.md", "other", key=key),
    "undo": lambda session, key: session.undo(to=2, key=key),
    "prepare": lambda session, key: session.prepare([{"role": "user", "content": "other"}], key=key),
    "report_usage": lambda session, key: session.report_usage(prompt_tokens=8, key=key),
    "update": lambda session, key: session.scratchpad.update("other", append=True, key=key),
    "record": lambda session, key: session.record(a_reply("other", "other"), key=key),
}


def lose_reply(channel: ActorChannel, *, home: str, call: str, scratchpad: Scope = "thread") -> None:
    """Die right after the first commit of the call, before it returns."""
    memory = opened(home)
    session = create_session(memory, scratchpad)
    store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- the reply is lost between it and its caller
    append = store.append

    def append_and_die(*arguments: Any, **options: Any) -> Any:
        append(*arguments, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    store.append = append_and_die
    channel.report("calling", call)
    CALLS[call](session, "key-1")


def create_session(memory: Memory, scratchpad: Scope = "thread") -> Session:
    """A session with a prompt, a page, and a child with changes to merge back."""
    session = session_of(memory, scratchpad=scratchpad)
    session.prepare([{"role": "user", "content": "before"}])
    session.write("overview.md", "before")
    session.spawn("child", policy="fork").scratchpad.update("once", append=True)
    return session


def retry(channel: ActorChannel, *, home: str, call: str, scratchpad: Scope = "thread") -> dict[str, Any]:
    """The same call twice; then another one with the same key."""
    memory = opened(home)
    session = session_of(memory, scratchpad=scratchpad)
    before = counts(session)
    first = CALLS[call](session, "key-1")
    again = CALLS[call](session, "key-1")
    channel.report("retried", call)
    refused = ""
    if call in OTHERS:
        try:
            OTHERS[call](session, "key-1")
        except KeyReused as error:
            refused = error.code
    after = counts(session)
    notes = session.scratchpad.snapshot
    memory.close()
    return {"first": first, "again": again, "before": before, "after": after, "refused": refused, "notes": notes}


def counts(session: Session) -> dict[str, int]:
    """Number of events of each stream."""
    store = session._store  # pyright: ignore[reportPrivateUsage] -- a resource's journal has no public API yet
    return {stream: store.version(stream) for stream in store.stream_names("")}


def call_in(channel: ActorChannel, *, home: str, call: str) -> list[int]:
    """The same key in a home where it was not used."""
    memory = opened(home)
    session = create_session(memory)
    before = counts(session)
    CALLS[call](session, "key-1")
    after = counts(session)
    memory.close()
    channel.report("called", call)
    return [sum(before.values()), sum(after.values())]
