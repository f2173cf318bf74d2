"""Time of `record`, with and without a memory tool call, against a bare commit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep

from bench.conversations import Message, conversation, prose, questions
from bench.prepare import (
    COMMIT_SIZES,
    MAX_COMMIT_RATIO,
    SETTLE_SECONDS,
    WINDOW,
    BareJournal,
    samples_per_setup,
    setup_count,
)
from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration
from inmind import Memory, default_layers
from inmind.core.events.codec import encode_payload
from inmind.core.events.documents import ScratchpadWritten
from inmind.core.paths import DATABASE
from inmind.documents.document import Scope
from inmind.layers import ScratchpadLayer
from inmind.memory.folder_backend import FolderBackend
from inmind.store.sqlite.store import SqliteStore

_CASES: dict[str, Scope | None] = {
    "a plain reply": None,
    "one call, on the session's scratchpad": "thread",
    "one call, on the resource's scratchpad": "resource",
}


def run() -> list[Table]:
    races = {size: _time_size(size) for size in COMMIT_SIZES}
    return [
        Table(
            "record, by messages in history, against a bare SQLite commit of the same bytes",
            [_against_commit(timings, what, size) for size, timings in races.items() for what in _CASES],
            (
                "Only record is measured, not the message and prepare before it. Bare: as for prepare, with the events "
                "that this record has just stored, of both streams if it changed both. There is no bar; prepare, which "
                f"is also one commit, has {MAX_COMMIT_RATIO:g}x. Medians, interleaved.",
            ),
        )
    ]


def _against_commit(timings: Timings, what: str, size: int) -> Row:
    bare = _bare_name(what)
    ratio = timings.ratio(what, bare)
    return Row(
        what=f"{size:>5,}: {what}",
        measured=f"{ratio:.2f}x ({format_duration(timings.median(what))} / {format_duration(timings.median(bare))})",
        figures={
            "ratio": ratio,
            "seconds": timings.median(what),
            "p95": timings.p95(what),
            "bare": timings.median(bare),
        },
    )


def _time_size(size: int) -> Timings:
    timings = Timings()
    with TemporaryDirectory() as folder:
        home, bare = Path(folder), BareJournal(Path(folder) / "bare.db")
        store = SqliteStore(home / DATABASE)
        with Memory(FolderBackend(home, store)) as memory:
            for number in range(setup_count(size)):  # in one database: its log is warm after the first time
                timed_calls = dict[str, TimedCall]()
                for what in _CASES:
                    timed_calls |= _record_calls(memory, store, bare, what, number, size)
                sleep(SETTLE_SECONDS)
                timings.run(timed_calls, repetitions=samples_per_setup(size))
        bare.close()
    return timings


def _record_calls(
    memory: Memory, store: SqliteStore, bare: BareJournal, what: str, number: int, size: int
) -> dict[str, TimedCall]:
    scope = _CASES[what]
    layers = default_layers(ScratchpadLayer(scope=scope or "thread"))
    session = memory.session(f"{scope}-{number}", resource="bench", layers=layers, window=WINDOW, cwd="/bench")
    streams = (f"session/{session.id}", f"resource/{session.resource}")
    new, replies = questions(), _replies(calls=scope is not None)
    session.add(conversation(size))
    reply: Message = {}
    seen: dict[str, int] = {}
    stored: list[str] = []

    def ask() -> None:
        nonlocal reply
        session.add([next(new)])
        session.prepare()
        reply = next(replies)
        seen.update({name: store.version(name) for name in streams})

    def collect_stored_events() -> None:
        events = [event.payload for name in streams for event in store.read(name, after=seen[name])]
        assert any(isinstance(event, ScratchpadWritten) for event in events) is (scope is not None)
        stored[:] = map(encode_payload, events)

    return {
        what: TimedCall(lambda: session.record(reply), before=ask),
        _bare_name(what): TimedCall(lambda: bare.commit(stored), before=collect_stored_events),
    }


def _bare_name(what: str) -> str:
    return f"bare: {what}"


def _replies(*, calls: bool) -> Iterator[Message]:
    """Endless replies of OpenAI chat: text, and on request a call that rewrites the scratchpad."""
    random = Random(19)
    for number in count(1):
        message: Message = {"role": "assistant", "content": prose(random, random.randint(120, 600))}
        if calls:
            function = {
                "name": "working_memory_update",
                "arguments": json.dumps({"text": prose(random, 300)}),
            }
            message["tool_calls"] = [{"id": f"call_memory_{number}", "type": "function", "function": function}]
        yield {
            "id": f"chatcmpl-{random.randbytes(12).hex()}",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100},
        }
