"""Time of `record`, with and without a memory tool call, and of `observe`, against a bare commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
from bench.table import Table
from bench.timing import TimedCall, Timings
from inmind import Memory, Session, default_layers
from inmind.core.events import encode_payload
from inmind.core.events.documents import ScratchpadWritten
from inmind.core.paths import DATABASE
from inmind.documents.document import Scope
from inmind.layers import ScratchpadLayer
from inmind.memory.backends import FolderBackend
from inmind.store.sqlite.store import SqliteStore

_CASES: dict[str, Scope | None] = {
    "a plain reply": None,
    "one call, on the session's scratchpad": "thread",
    "one call, on the resource's scratchpad": "resource",
}

MAX_OBSERVE_RATIO = 3.0
_OBSERVATIONS = 120


def run() -> list[Table]:
    races = {size: _time_size(size) for size in COMMIT_SIZES}
    return [
        Table(
            "record, by messages in history, against a bare SQLite commit of the same bytes",
            [
                timings.ratio_row(f"{size:>5,}: {what}", what, _bare_name(what))
                for size, timings in races.items()
                for what in _CASES
            ],
            (
                "Only record is measured, not the message and prepare before it. Bare: as for prepare, with the events "
                "that this record has just stored, of both streams if it changed both. There is no bar; prepare, which "
                f"is also one commit, has {MAX_COMMIT_RATIO:g}x. Medians, interleaved.",
            ),
        ),
        _observe(),
    ]


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


def _observe() -> Table:
    timings = Timings()
    with TemporaryDirectory() as folder, Memory.open(Path(folder) / "home") as memory:
        bare = BareJournal(Path(folder) / "bare.db")
        timed_calls = dict[str, TimedCall]()
        for what, results in _RESULTS.items():
            timed_calls |= _observe_calls(memory.session(f"observe-{len(timed_calls)}"), bare, what, results())
        sleep(SETTLE_SECONDS)
        timings.run(timed_calls, repetitions=_OBSERVATIONS)
        bare.close()
    return Table(
        "observe of a result of 20 KB, against a bare SQLite commit of the same bytes",
        [timings.ratio_row(what, what, _bare_name(what), MAX_OBSERVE_RATIO) for what in _RESULTS],
        ("Each result differs from the ones before. Bare: as for record. Medians, interleaved.",),
    )


def _observe_calls(session: Session, bare: BareJournal, what: str, results: Iterator[str]) -> dict[str, TimedCall]:
    result, before = "", 0

    def make_result() -> None:
        nonlocal result, before
        result, before = next(results), len(session.events())

    stored: list[str] = []

    def collect_stored_events() -> None:
        stored[:] = [encode_payload(event.payload) for event in session.events()[before:]]

    return {
        what: TimedCall(lambda: session.observe("list_orders", {"page": 1}, result), before=make_result),
        _bare_name(what): TimedCall(lambda: bare.commit(stored), before=collect_stored_events),
    }


def _json_results() -> Iterator[str]:
    """A list of orders with items, as most tools answer."""
    for page in count(1):
        items = [
            {"product_id": f"P{n}", "name": f"Kettle {n}", "price": 20.5, "options": {"color": "blue"}}
            for n in range(3)
        ]
        orders = [
            {"id": f"W{page:03}{n:03}", "status": "pending", "user_id": f"user_{n}", "items": items, "total": 61.5}
            for n in range(58)
        ]
        yield json.dumps({"orders": orders})


def _text_results() -> Iterator[str]:
    """Output of a command."""
    for page in count(1):
        yield "\n".join(f"{page:03}:{n:04} INFO worker {n % 7} finished job {n} in {n % 90} ms" for n in range(430))


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


_RESULTS: dict[str, Callable[[], Iterator[str]]] = {"JSON": _json_results, "text": _text_results}
