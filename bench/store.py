"""Disk usage per byte of text, growth of turn times, and a note against a bare insert."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.conversations import Message, exchanges
from bench.prepare import BareJournal
from bench.table import Row, Table
from bench.timing import TimedCall, Timings
from inmind import Memory
from inmind.memory.backends import FolderBackend
from inmind.testing import InMemoryStore

TURNS = 500
MAX_BYTES_RATIO = 4.0
MAX_GROWTH = 1.3
EARLY, LATE = 50, 500
MAX_NOTE_RATIO = 1.3
NOTE = "The deadline of the API migration moved to March 20, and Douglas prefers tabs over spaces."

WINDOW = 1_000_000
_SAMPLES = 120
_NOTES = 500


def run() -> list[Table]:
    sizes = [
        _size_rows("75 KB in 500 turns, as peers were measured", question_length=50, answer_length=100),
        _size_rows("turns of 1 KB", question_length=200, answer_length=824),
    ]
    growth = [
        _growth_row("append and prepare, our history", owned=True),
        _growth_row("prepare, the host's list", owned=False),
        _growth_row("append and prepare, our history, no commit", owned=True, durable=False),
        _growth_row("prepare, the host's list, no commit", owned=False, durable=False),
    ]
    return [
        Table(
            f"bytes under the home folder after {TURNS} turns, for each byte of text",
            [row for rows in sizes for row in rows],
            ("All files of the closed home count: the journal and the live files.",),
        ),
        Table(
            f"a turn at turn {LATE} against one at turn {EARLY}",
            growth,
            ("Two sessions of those lengths, interleaved. Without the commit: inmind.testing.InMemoryStore.",),
        ),
        Table(
            "a durable note against a bare insert",
            [_note_row()],
            (
                "Bare: the same text into one table of a separate file, WAL, synchronous=FULL, same library. "
                "Interleaved.",
            ),
        ),
    ]


def _size_rows(what: str, *, question_length: int, answer_length: int) -> list[Row]:
    text_bytes = 0
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            session = memory.session("bench", window=WINDOW, cwd="/bench")
            messages: list[Message] = []
            for question, answer in islice(
                exchanges(question_length=question_length, answer_length=answer_length), TURNS
            ):
                messages.append(question)
                session.prepare(messages)
                messages.append(answer)
                text_bytes += len(question["content"]) + len(answer["content"])
            session.prepare(messages)  # the last answer is part of the conversation too
        sizes = {path.name: path.stat().st_size for path in sorted(home.rglob("*")) if path.is_file()}
    stored_bytes = sum(sizes.values())
    ratio = stored_bytes / text_bytes
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:2]
    parts = ", ".join(f"{name} {size / text_bytes:.2f}" for name, size in largest)
    figures: dict[str, float | str] = {"ratio": ratio, "text": text_bytes, "kept": stored_bytes}
    return [
        Row(
            what=what,
            measured=f"{ratio:.2f} ({stored_bytes / 1000:,.0f} KB / {text_bytes / 1000:,.0f} KB)",
            bar=f"<= {MAX_BYTES_RATIO:g}",
            met=ratio <= MAX_BYTES_RATIO,
            figures=figures,
        ),
        Row(what="  of which", measured=parts, figures=dict[str, float | str](sizes)),
    ]


def _growth_row(what: str, *, owned: bool, durable: bool = True) -> Row:
    timings = Timings()
    with TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in ("early", "late")}
        memories = {
            name: Memory.open(home) if durable else Memory(FolderBackend(home, InMemoryStore()))
            for name, home in homes.items()
        }
        turns = {"early": EARLY, "late": LATE}
        timed_calls = {name: _turn_call(memory, turns[name], owned=owned) for name, memory in memories.items()}
        timings.run(timed_calls, repetitions=_SAMPLES)
        for memory in memories.values():
            memory.close()
    return timings.ratio_row(what, "late", "early", MAX_GROWTH if durable else None)


def _note_row() -> Row:
    timings = Timings()
    with TemporaryDirectory() as folder:
        bare = BareJournal(Path(folder) / "bare.db")
        with Memory.open(Path(folder) / "home") as memory:
            session = memory.session("bench", resource="ada", cwd="/bench")
            timed_calls = {
                "note": TimedCall(lambda: session.note(NOTE)),
                "insert": TimedCall(lambda: bare.commit([NOTE])),
            }
            timings.run(timed_calls, repetitions=_NOTES)
        bare.close()
    return timings.ratio_row("session.note", "note", "insert", MAX_NOTE_RATIO)


def _turn_call(memory: Memory, turns: int, *, owned: bool) -> TimedCall:
    """One more turn after this many: the model's answer and the next question."""
    session = memory.session("bench", window=WINDOW, cwd="/bench")
    dialogue = exchanges(question_length=200, answer_length=824)
    messages = [message for exchange in islice(dialogue, turns) for message in exchange]
    new: list[Message] = []

    def add_exchange() -> None:
        new[:] = next(dialogue)
        messages.extend(new)

    def append_and_prepare() -> object:
        session.add(new)
        return session.prepare()

    session.prepare(messages)
    session.prepare(messages)
    return TimedCall(append_and_prepare if owned else lambda: session.prepare(messages), before=add_exchange)
