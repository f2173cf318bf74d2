"""What `record` costs a turn, beside one bare commit of the same bytes; and what a call of memory adds to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep

from bench.conversations import Message, conversation, prose, questions
from bench.prepare import COMMIT_SIZES, MOST_AGAINST_COMMIT, SETTLING, WINDOW, BareJournal, courses, strides
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
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
    races = {size: _raced(size) for size in COMMIT_SIZES}
    return [
        Table(
            "record, by messages in history, against a bare SQLite commit of the same bytes",
            [_against_commit(race, what, size) for size, race in races.items() for what in _CASES],
            (
                "Measured is the end of a turn whose beginning, a message and prepare, is not. Bare: as for prepare, "
                "with the events that this record has just stored, in both streams where it changed both. There is no "
                f"bar; prepare, which is one commit as well, has {MOST_AGAINST_COMMIT:g}x. Medians, taking turns.",
            ),
        )
    ]


def _against_commit(race: Race, what: str, size: int) -> Row:
    bare = _bare(what)
    ratio = race.ratio(what, bare)
    return Row(
        what=f"{size:>5,}: {what}",
        measured=f"{ratio:.2f}x ({spoken(race.median(what))} / {spoken(race.median(bare))})",
        figures={"ratio": ratio, "seconds": race.median(what), "p95": race.p95(what), "bare": race.median(bare)},
    )


def _raced(size: int) -> Race:
    race = Race()
    with TemporaryDirectory() as folder:
        home, bare = Path(folder), BareJournal(Path(folder) / "bare.db")
        store = SqliteStore(home / DATABASE)
        with Memory(FolderBackend(home, store)) as memory:
            for number in range(courses(size)):  # in one database: its log is warm from the second course on
                course = dict[str, Contender]()
                for what in _CASES:
                    course |= _recording(memory, store, bare, what, number, size)
                sleep(SETTLING)
                race.run(course, repetitions=strides(size))
        bare.close()
    return race


def _recording(
    memory: Memory, store: SqliteStore, bare: BareJournal, what: str, number: int, size: int
) -> dict[str, Contender]:
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

    def note_what_was_stored() -> None:
        events = [event.payload for name in streams for event in store.read(name, after=seen[name])]
        assert any(isinstance(event, ScratchpadWritten) for event in events) is (scope is not None)
        stored[:] = map(encode_payload, events)

    return {
        what: Contender(lambda: session.record(reply), before=ask),
        _bare(what): Contender(lambda: bare.commit(stored), before=note_what_was_stored),
    }


def _bare(what: str) -> str:
    return f"bare: {what}"


def _replies(*, calls: bool) -> Iterator[Message]:
    """Replies of OpenAI chat, without end: words, and where asked for a call that rewrites the scratchpad."""
    random = Random(19)
    for number in count(1):
        said: Message = {"role": "assistant", "content": prose(random, random.randint(120, 600))}
        if calls:
            function = {
                "name": "working_memory_update",
                "arguments": json.dumps({"text": prose(random, 300)}),
            }
            said["tool_calls"] = [{"id": f"call_memory_{number}", "type": "function", "function": function}]
        yield {
            "id": f"chatcmpl-{random.randbytes(12).hex()}",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls" if calls else "stop"}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100},
        }
