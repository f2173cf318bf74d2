"""What keeping everything costs: bytes on disk for each byte of text, whether a turn gets dearer with time, and a note
beside the one durable write that it cannot do without."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.conversations import Message, exchanges
from bench.prepare import BareJournal
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind import Memory
from inmind.memory.folder_backend import FolderBackend
from inmind.store.in_memory import InMemoryStore

TURNS = 500
MOST_BYTES = 4.0
MOST_GROWTH = 1.3
EARLY, LATE = 50, 500
MOST_NOTE = 1.3
NOTE = "The deadline of the API migration moved to March 20, and Douglas prefers tabs over spaces."

WINDOW = 1_000_000
_SAMPLES = 120
_NOTES = 500


def run() -> list[Table]:
    sizes = [
        _stored("75 KB in 500 turns, as peers were measured", asked=50, answered=100),
        _stored("turns of 1 KB", asked=200, answered=824),
    ]
    growth = [
        _grown("append and prepare, our history", owned=True),
        _grown("prepare, the host's list", owned=False),
        _grown("append and prepare, our history, no commit", owned=True, durable=False),
        _grown("prepare, the host's list, no commit", owned=False, durable=False),
    ]
    return [
        Table(
            f"bytes under the home folder after {TURNS} turns, for each byte of text said",
            [row for rows in sizes for row in rows],
            ("The home is closed first: everything in it counts, the journal and the files beside it.",),
        ),
        Table(
            f"a turn at turn {LATE} against one at turn {EARLY}",
            growth,
            ("Two sessions of those lengths take turns. Without the commit: inmind.testing.InMemoryStore.",),
        ),
        Table(
            "a durable note against a bare insert",
            [_noted()],
            ("Bare: the same text into one table of its own file, WAL, synchronous=FULL, same library. Taking turns.",),
        ),
    ]


def _stored(what: str, *, asked: int, answered: int) -> list[Row]:
    said = 0
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            session = memory.session("bench", window=WINDOW, cwd="/bench")
            host: list[Message] = []
            for question, answer in islice(exchanges(asked=asked, answered=answered), TURNS):
                host.append(question)
                session.prepare(host)
                host.append(answer)
                said += len(question["content"]) + len(answer["content"])
            session.prepare(host)  # the last answer is part of the conversation too
        sizes = {path.name: path.stat().st_size for path in sorted(home.rglob("*")) if path.is_file()}
    kept = sum(sizes.values())
    ratio = kept / said
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:2]
    named = ", ".join(f"{name} {size / said:.2f}" for name, size in largest)
    figures: dict[str, float | str] = {"ratio": ratio, "text": said, "kept": kept}
    return [
        Row(
            what=what,
            measured=f"{ratio:.2f} ({kept / 1000:,.0f} KB / {said / 1000:,.0f} KB)",
            bar=f"<= {MOST_BYTES:g}",
            met=ratio <= MOST_BYTES,
            figures=figures,
        ),
        Row(what="  of which", measured=named, figures=dict[str, float | str](sizes)),
    ]


def _grown(what: str, *, owned: bool, durable: bool = True) -> Row:
    race = Race()
    with TemporaryDirectory() as folder:
        homes = {name: Path(folder) / name for name in ("early", "late")}
        memories = {
            name: Memory.open(home) if durable else Memory(FolderBackend(home, InMemoryStore()))
            for name, home in homes.items()
        }
        turns = {"early": EARLY, "late": LATE}
        course = {name: _turn(memory, turns[name], owned=owned) for name, memory in memories.items()}
        race.run(course, repetitions=_SAMPLES)
        for memory in memories.values():
            memory.close()
    ratio = race.ratio("late", "early")
    return Row(
        what=what,
        measured=f"{ratio:.2f}x ({spoken(race.median('late'))} / {spoken(race.median('early'))})",
        bar=f"<= {MOST_GROWTH:g}x" if durable else "",
        met=ratio <= MOST_GROWTH if durable else None,
        figures={"ratio": ratio, "early": race.median("early"), "late": race.median("late")},
    )


def _noted() -> Row:
    race = Race()
    with TemporaryDirectory() as folder:
        bare = BareJournal(Path(folder) / "bare.db")
        with Memory.open(Path(folder) / "home") as memory:
            session = memory.session("bench", resource="ada", cwd="/bench")
            course = {
                "note": Contender(lambda: session.note(NOTE)),
                "insert": Contender(lambda: bare.commit([NOTE])),
            }
            race.run(course, repetitions=_NOTES)
        bare.close()
    ratio = race.ratio("note", "insert")
    return Row(
        what="session.note",
        measured=f"{ratio:.2f}x ({spoken(race.median('note'))} / {spoken(race.median('insert'))})",
        bar=f"<= {MOST_NOTE:g}x",
        met=ratio <= MOST_NOTE,
        figures={"ratio": ratio, "note": race.median("note"), "insert": race.median("insert")},
    )


def _turn(memory: Memory, turns: int, *, owned: bool) -> Contender:
    """One more turn of a conversation that has had so many: what the model said and what it is asked next."""
    session = memory.session("bench", window=WINDOW, cwd="/bench")
    talk = exchanges(asked=200, answered=824)
    host = [message for exchange in islice(talk, turns) for message in exchange]
    new: list[Message] = []

    def go_on() -> None:
        new[:] = next(talk)
        host.extend(new)

    def append_and_prepare() -> object:
        session.add(new)
        return session.prepare()

    session.prepare(host)
    session.prepare(host)
    return Contender(append_and_prepare if owned else lambda: session.prepare(host), before=go_on)
