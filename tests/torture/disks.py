"""Actors on disks that fail or fill up."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.harness import ActorChannel
from torture.session_steps import sound
from torture.writers import opened, session_of

from inmind import Memory
from inmind.core.events.session import MessageAdded
from inmind.errors import InmindError, NotFound
from inmind.session.session import Session

# -- a disk that does not confirm --------------------------------------------------------------------------


def run_all_steps(channel: ActorChannel, *, home: str) -> None:
    """Run all steps and report the result of each; a failed step is not retried."""
    try:
        memory = opened(home)
        session = session_of(memory)
    except InmindError as error:
        channel.report("step", "open", error.code)
        return
    channel.report("step", "open", "")
    steps: list[tuple[str, Callable[[], object]]] = [
        ("say one", lambda: session.add([{"role": "user", "content": "one"}])),
        ("write", lambda: session.write("overview.md", "written\n", base=session.documents()["overview.md"])),
        ("say two", lambda: session.add([{"role": "user", "content": "two"}])),
        ("observe", lambda: session.observe("tool", {}, "seen", id="o1")),
        ("write memory", lambda: session.write("MEMORY.md", "kept\n")),
        ("prepare", lambda: session.prepare()),
        ("say three", lambda: session.add([{"role": "user", "content": "three"}])),
    ]
    for name, step in steps:
        try:
            step()
            channel.report("step", name, "")
        except InmindError as error:
            channel.report("step", name, error.code)
        channel.report("read", session.overview, message_texts(session))
    memory.close()


def check_after(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Check from a new process what is stored, and whether it can be written again."""
    memory = opened(home)
    session = session_of(memory)
    before = message_texts(session)
    try:
        memory_text = session.read("MEMORY.md")
    except NotFound:
        memory_text = ""
    stored = {
        "messages": before,
        "overview": session.overview,
        "memory": memory_text,
        "observed": [event.kind for event in session.events()].count("observed"),
        "calls": session.state.prompt.calls,
    }
    session.add([{"role": "user", "content": "again"}])
    assert message_texts(session) == [*before, "again"]
    overview = Path(home, "sessions/--w--/s/working-memory/overview.md")
    assert overview.read_text() == session.overview
    memory.close()
    sound(Path(home))
    channel.report("sound")
    return stored


def message_texts(session: Session) -> list[str]:
    return [event.payload.wire["content"] for event in session.events() if isinstance(event.payload, MessageAdded)]


# -- a read-only disk --------------------------------------------------------------------------


def count_sessions(channel: ActorChannel, *, home: str) -> list[str]:  # noqa: ARG001 -- every actor gets a channel
    """Open a home for reading; return the code and message of the error."""
    try:
        with opened(home) as memory:
            return [str(len(memory.sessions())), ""]
    except InmindError as error:
        return [error.code, str(error)]


# -- a disk that is full -----------------------------------------------------------------------------------

BIG = 40_000


def fill_up(channel: ActorChannel, *, home: str, room: list[int]) -> list[list[Any]]:
    """On a small disk: leave little space, run everything, free space, run everything again.

    Nothing is reopened in between, and after each round another process checks the whole home.
    """
    ballast = Path(home).parent / "ballast"
    memory = opened(home)
    session = session_of(memory)
    session.write("overview.md", "first\n")
    rounds: list[list[Any]] = []
    for number, free in enumerate(room):
        _fill(ballast, free)
        refused = _try_all(session, f"{number} full ", home)
        ballast.unlink()
        again = _try_all(session, f"{number} free ", home)
        assert again == [], f"with free space, {again} were refused"
        _agree(session, home)
        _check_from_outside(home)
        rounds.append([free, refused])
        channel.report("round", free, refused)
    memory.close()
    return rounds


def limit_size(channel: ActorChannel, *, home: str, room: list[int]) -> list[list[Any]]:
    """The same with a file size limit: a write is cut in the middle before it is refused."""
    memory = opened(home)
    session = session_of(memory)
    session.write("overview.md", "first\n")
    rounds: list[list[Any]] = []
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for number, free in enumerate(room):
        resource.setrlimit(resource.RLIMIT_FSIZE, (_largest(home) + free, hard))
        refused = _try_all(session, f"{number} full ", home)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        again = _try_all(session, f"{number} free ", home)
        assert again == [], f"with free space, {again} were refused"
        _agree(session, home)
        rounds.append([free, refused])
        channel.report("round", free, refused)
    memory.close()
    sound(Path(home))
    return rounds


def search_when_full(channel: ActorChannel, *, home: str, room: list[int]) -> list[list[Any]]:
    """On a small disk: write much, leave little space, search, free space, search again.

    The journal is complete by then; only the index has to grow. Without any space it is rebuilt.
    """
    ballast = Path(home).parent / "ballast"
    memory = Memory.open(home, embedder=None)
    session = session_of(memory)
    rounds: list[list[Any]] = []
    for number, free in enumerate(room):
        words = " ".join(f"w{number}x{n}" for n in range(4_000))
        session.add([{"role": "user", "content": f"The ferry of round {number}: {words}"}])
        _fill(ballast, free)
        refused = ""
        try:
            memory.search(f"ferry round w{number}x77")
        except InmindError as error:
            refused = error.code
        ballast.unlink()
        hits = [hit.crystal.text for hit in memory.search("ferry", limit=200)]
        assert len(hits) == number + 1, f"with free space, {len(hits)} of {number + 1} are found"
        assert f"w{number}x77 " in memory.search(f"w{number}x77")[0].passage
        rounds.append([free, refused])
        channel.report("round", free, refused)
        if number % 4 == 3:
            memory.close()
            Path(home, "index.db").unlink()
            memory = Memory.open(home, embedder=None)
            session = session_of(memory)
    memory.close()
    sound(Path(home))
    return rounds


def check_home(home: str) -> None:
    memory = Memory.open(home)
    _agree(session_of(memory), home)
    memory.close()
    sound(Path(home))


def _try_all(session: Session, name: str, home: str) -> list[str]:
    """Every kind of write. A refused one raises STORAGE_FULL and has changed nothing."""
    steps: dict[str, Callable[[], object]] = {
        "add": lambda: session.add([{"role": "user", "content": name + "x" * BIG}]),
        "write": lambda: session.write("overview.md", name + "y" * BIG),
        "write memory": lambda: session.write("MEMORY.md", name + "z" * BIG),
        "write detail": lambda: session.write("detail/d.md", name + "w" * BIG),
        "observe": lambda: session.observe("tool", {}, name + "v" * BIG),
        "prepare": lambda: session.prepare(),
    }
    refused: list[str] = []
    for step, call in steps.items():
        before = _everything(session)
        try:
            call()
        except InmindError as error:
            _assert_full(error, step)
            _assert_unchanged(before, session, step)
            refused.append(step)
        overview = Path(home, "sessions/--w--/s/working-memory/overview.md").read_text()
        assert overview, "a full disk has emptied a file"
        leftovers = [file.name for file in Path(home).rglob(".inmind-*")]
        assert leftovers == [], f"after {step}: {leftovers}"
    return refused


def _assert_full(error: InmindError, step: str) -> None:
    assert error.code == "STORAGE_FULL", f"{step}: {error.code} {error}"


def _assert_unchanged(before: list[Any], session: Session, step: str) -> None:
    assert _everything(session) == before, f"{step} was refused and yet changed something"


def _everything(session: Session) -> list[Any]:
    documents = session.documents()
    return [len(session.events()), documents, {path: len(session.read(path)) for path in documents}]


def _agree(session: Session, home: str) -> None:
    """Check files against the journal after the next call has synchronised them."""
    folder = Path(home, "sessions/--w--/s")
    for path in session.documents():
        file = Path(home, "resources/ada", path) if path == "MEMORY.md" else folder / "working-memory" / path
        assert file.read_text() == session.read(path), path
    lines = (folder / "messages.jsonl").read_text().splitlines()
    assert len([line for line in lines if '"message"' in line]) == len(message_texts(session))
    assert list(Path(home).rglob("*.damaged*")) == []


def _fill(ballast: Path, free: int) -> None:
    """Use all space except this much."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
        file.truncate(max(0, file.tell() - free))


def _largest(home: str) -> int:
    return max(os.stat(file).st_size for file in Path(home).rglob("*") if file.is_file())


def _check_from_outside(home: str) -> None:
    code = f"from torture.disks import check_home; check_home({home!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
