"""Actors that write notes and messages, and search."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import Any

from torture.harness import ActorChannel
from torture.writers import session_of

from inmind import Memory
from inmind.testing import ManualClock


def write_and_wait(channel: ActorChannel, *, home: str, how: str, text: str) -> None:
    """Report each acknowledged write, and continue until killed."""
    session = session_of(Memory.open(home, embedder=None))
    if how == "note":
        id = session.note(text).id
    else:
        session.add([{"role": "user", "content": text}])
        id = f"session/s#{session.state.seq}"
    channel.report("wrote", id)
    channel.wait()


def note(_: ActorChannel, *, home: str, text: str) -> str:
    with Memory.open(home, embedder=None) as memory:
        return session_of(memory).note(text).id


def search(_: ActorChannel, *, home: str, query: str, resource: str, limit: int = 10) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return [hit.crystal.id for hit in memory.resource(resource).search(query, limit=limit)]


def consolidate_once_and_wait(channel: ActorChannel, *, home: str, days: int) -> None:
    """Run one batch, and wait to be killed."""
    memory = Memory.open(home, clock=_clock_in(days), embedder=None)
    done = memory.resource("ada").consolidate(seconds=0)
    assert not done.finished
    channel.report("batch", done.expired)
    channel.wait()


def consolidate(_: ActorChannel, *, home: str, days: int) -> dict[str, Any]:
    with Memory.open(home, clock=_clock_in(days), embedder=None) as memory:
        done = memory.resource("ada").consolidate()
    return {"expired": done.expired, "finished": done.finished}


def _clock_in(days: int) -> ManualClock:
    clock = ManualClock()
    clock.advance(seconds=days * 86_400)
    return clock


def search_texts(_: ActorChannel, *, home: str, query: str) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return _texts(memory, query)


def search_again(channel: ActorChannel, *, home: str) -> list[str]:
    """Search; then, twice, wait for the test, note and search."""
    memory = Memory.open(home, embedder=None)
    channel.report("found", _texts(memory, "ferry"))
    channel.wait()
    session = session_of(memory)
    session.note("The ferry was late again")
    channel.report("found", _texts(memory, "ferry"))
    channel.wait()
    session.note("and again the ferry")
    hits = _texts(memory, "ferry")
    memory.close()
    return hits


def note_and_search(channel: ActorChannel, *, home: str, name: str, number: int) -> None:
    """Find each note right after it was written, with concurrent writers."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory, name)
    channel.wait()
    for n in range(number):
        id = session.note(f"The ferry {name} has made trip {n}").id
        hits = [hit.crystal.id for hit in session.search(f"ferry {name} trip {n}", limit=100)]
        assert id in hits, f"{id} is not among {hits}"
    memory.close()


def search_in_both(channel: ActorChannel, *, home: str) -> None:
    """Parent and child continue with the index that was open before the fork."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory)
    session.note("The ferry: before")
    _texts(memory, "ferry")
    pid = os.fork()
    name = "by the parent" if pid else "by the child"
    note = session.note(f"The ferry: {name}")
    assert note.id in [hit.crystal.id for hit in session.search("ferry")]
    if pid == 0:
        memory.close()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the child ended with {status}"
    channel.report("found", sorted(text.removeprefix("The ferry: ") for text in _texts(memory, "ferry")))
    memory.close()


def _texts(memory: Memory, query: str) -> list[str]:
    return sorted(hit.crystal.text for hit in memory.resource("ada").search(query))


def note_and_search_forever(channel: ActorChannel, *, home: str, name: str) -> None:
    """Forever: note, report, search, report."""
    session = session_of(Memory.open(home, embedder=None), name)
    for number in itertools.count():
        id = session.note(f"The ferry {name} has made trip {number}").id
        channel.report("noted", id)
        hits = [hit.crystal.id for hit in session.search(f"ferry {name} trip {number}", limit=200)]
        assert id in hits, f"{id} is not among {hits}"
        channel.report("found", id)


def known_ids(_: ActorChannel, *, home: str, ids: list[str]) -> list[str]:
    """Return the ids of existing crystals."""
    with Memory.open(home, embedder=None) as memory:
        return [id for id in ids if memory.get(id).lifecycle]


def fork_during_searches(channel: ActorChannel, *, home: str, forks: int) -> None:
    """Fork while threads write and search; each child searches too, whichever lock was held."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory)
    session.note("The ferry leaves at nine")
    session.search("ferry")  # imports all modules: a child cannot import a module that another thread is importing
    stop = threading.Event()

    def work(name: str) -> None:
        own = session_of(memory, name)
        while not stop.is_set():
            own.note(f"The ferry {name}")
            own.search("ferry")

    threads = [threading.Thread(target=work, args=(f"thread{n}",)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(forks):
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)
                os._exit(0 if memory.search("ferry") else 1)
            _, status = os.waitpid(pid, 0)
            assert status == 0, f"a child ended with {status}"
            channel.report("forked")
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=30)
    memory.close()
