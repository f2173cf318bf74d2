"""Actors that note, say and search."""

from __future__ import annotations

import os
from typing import Any

from torture.harness import Voice
from torture.writers import session_of

from inmind import Memory
from inmind.testing import ManualClock


def write_and_wait(voice: Voice, *, home: str, how: str, text: str) -> None:
    """Tell what was written as soon as it is acknowledged, and go on until the end comes from outside."""
    session = session_of(Memory.open(home, embedder=None))
    if how == "note":
        id = session.note(text).id
    else:
        id = f"session/s#{session.add([{'role': 'user', 'content': text}]).last}"
    voice.tell("wrote", id)
    voice.wait()


def note(_: Voice, *, home: str, text: str) -> str:
    with Memory.open(home, embedder=None) as memory:
        return session_of(memory).note(text).id


def search(_: Voice, *, home: str, query: str, resource: str | None = None, limit: int = 10) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return [hit.crystal.id for hit in memory.search(query, resource=resource, limit=limit)]


def consolidate_once_and_wait(voice: Voice, *, home: str, days: int) -> None:
    """One batch, and then the end comes from outside."""
    memory = Memory.open(home, clock=_in(days), embedder=None)
    done = memory.consolidate("ada", seconds=0)
    assert not done.finished
    voice.tell("batch", done.expired)
    voice.wait()


def consolidate(_: Voice, *, home: str, days: int) -> dict[str, Any]:
    with Memory.open(home, clock=_in(days), embedder=None) as memory:
        done = memory.consolidate("ada")
    return {"expired": done.expired, "finished": done.finished}


def _in(days: int) -> ManualClock:
    clock = ManualClock()
    clock.advance(seconds=days * 86_400)
    return clock


def search_texts(_: Voice, *, home: str, query: str) -> list[str]:
    with Memory.open(home, embedder=None) as memory:
        return _texts(memory, query)


def search_again(voice: Voice, *, home: str) -> list[str]:
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


def note_and_search(voice: Voice, *, home: str, name: str, number: int) -> None:
    """Find each thing right after it was noted, whatever others do meanwhile."""
    memory = Memory.open(home, embedder=None)
    session = session_of(memory, name)
    voice.wait()
    for n in range(number):
        id = session.note(f"The ferry {name} has made trip {n}").id
        found = [hit.crystal.id for hit in session.search(f"ferry {name} trip {n}", limit=100)]
        assert id in found, f"{id} is not among {found}"
    memory.close()


def search_in_both(voice: Voice, *, home: str) -> None:
    """Parent and child go on with the index that was open when they were one."""
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
    return sorted(hit.crystal.text for hit in memory.search(query, resource="ada"))
