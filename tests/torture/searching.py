"""Actors that note, say and search."""

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


def write_and_wait(voice: ActorChannel, *, home: str, how: str, text: str) -> None:
    """Report each acknowledged write, and continue until killed."""
    session = session_of(Memory.open(home, embedder=None))
    if how == "note":
        id = session.note(text).id
    else:
        session.add([{"role": "user", "content": text}])
        id = f"session/s#{session.state.seq}"
    voice.tell("wrote", id)
    voice.wait()


def note(_: ActorChannel, *, home: str, text: str) -> str:
    with Memory.open(home, embedder=None) as memory:
        return session_of(memory).note(text).id


def search(_: ActorChannel, *, home: str, query: str, resource: str, limit: int = 10) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return [hit.crystal.id for hit in memory.resource(resource).search(query, limit=limit)]


def consolidate_once_and_wait(voice: ActorChannel, *, home: str, days: int) -> None:
    """Run one batch, and wait to be killed."""
    memory = Memory.open(home, clock=_in(days), embedder=None)
    done = memory.resource("ada").consolidate(seconds=0)
    assert not done.finished
    voice.tell("batch", done.expired)
    voice.wait()


def consolidate(_: ActorChannel, *, home: str, days: int) -> dict[str, Any]:
    with Memory.open(home, clock=_in(days), embedder=None) as memory:
        done = memory.resource("ada").consolidate()
    return {"expired": done.expired, "finished": done.finished}


def _in(days: int) -> ManualClock:
    clock = ManualClock()
    clock.advance(seconds=days * 86_400)
    return clock


def search_texts(_: ActorChannel, *, home: str, query: str) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return _texts(memory, query)


def search_again(voice: ActorChannel, *, home: str) -> list[str]:
    """Search, let something happen, note and search; and once more."""
    memory = Memory.open(home, embedder=None)
    voice.tell("found", _texts(memory, "ferry"))
    voice.wait()
    session = session_of(memory)
    session.note("The ferry was late again")
    voice.tell("found", _texts(memory, "ferry"))
    voice.wait()
    session.note("and again the ferry")
    found = _texts(memory, "ferry")
    memory.close()
    return found


def note_and_search(voice: ActorChannel, *, home: str, name: str, number: int) -> None:
    """Find each note right after it was written, whatever other processes do."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory, name)
    voice.wait()
    for n in range(number):
        id = session.note(f"The ferry {name} has made trip {n}").id
        found = [hit.crystal.id for hit in session.search(f"ferry {name} trip {n}", limit=100)]
        assert id in found, f"{id} is not among {found}"
    memory.close()


def search_in_both(voice: ActorChannel, *, home: str) -> None:
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
    voice.tell("found", sorted(text.removeprefix("The ferry: ") for text in _texts(memory, "ferry")))
    memory.close()


def _texts(memory: Memory, query: str) -> list[str]:
    return sorted(hit.crystal.text for hit in memory.resource("ada").search(query))


def note_and_search_on(voice: ActorChannel, *, home: str, name: str) -> None:
    """Forever: note, report, search, report."""
    session = session_of(Memory.open(home, embedder=None), name)
    for number in itertools.count():
        id = session.note(f"The ferry {name} has made trip {number}").id
        voice.tell("noted", id)
        found = [hit.crystal.id for hit in session.search(f"ferry {name} trip {number}", limit=200)]
        assert id in found, f"{id} is not among {found}"
        voice.tell("found", id)


def known(_: ActorChannel, *, home: str, ids: list[str]) -> list[str]:
    """Those of them that search finds."""
    with Memory.open(home, embedder=None) as memory:
        return [id for id in ids if memory.get(id).lifecycle]


def fork_amid_searches(voice: ActorChannel, *, home: str, forks: int) -> None:
    """Fork while threads write and search; each child searches too, whatever lock was held."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory)
    session.note("The ferry leaves at nine")
    session.search("ferry")  # a module that another thread is importing for the first time can be imported by no child
    over = threading.Event()

    def work(name: str) -> None:
        own = session_of(memory, name)
        while not over.is_set():
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
            voice.tell("forked")
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=30)
    memory.close()
