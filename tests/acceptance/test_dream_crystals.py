"""Effects of dreams on crystals: a replay counts as an access, and an undo hides what the dream created."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from builders import Home

from inmind import Memory, Session
from inmind.core.events.base import Draft, EventPayload, Origin
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamCommitted, DreamUndone
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("G13", "H1"), pytest.mark.both_stores]


@pytest.fixture
def memory(home: Home, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock, embedder=None) as opened:
        yield opened


def dream(memory: Memory, *payloads: EventPayload) -> list[str]:
    """Append payloads to the resource's stream as a dream would, and return the event ids."""
    stream = memory._context.resource_stream("ada")  # pyright: ignore[reportPrivateUsage] -- as a dream would commit
    appended = stream.append(*(Draft(payload=payload, origin=Origin.DREAM) for payload in payloads))
    return [f"{stream.name}#{seq}" for seq in range(appended.first, appended.last + 1)]


def search_ids(session: Session, words: str) -> list[str]:
    return [hit.crystal.id for hit in session.search(words)]


def test_a_replayed_crystal_counts_as_accessed(memory: Memory, session: Session, clock: ManualClock) -> None:
    note = session.note("The ferry leaves at nine")
    other = session.note("The bakery is closed")
    clock.advance(seconds=3_600)
    dream(memory, DreamCommitted(1, "rules", 2, 0, replayed=(note.id, "resource/ada#999", "nonsense")))
    replayed = memory.get(note.id)
    assert (replayed.accesses, replayed.accessed, replayed.lifecycle) == (1, clock(), "activated")
    assert memory.get(other.id).accesses == 0


def test_only_crystals_of_an_undone_dream_are_not_found(memory: Memory, session: Session) -> None:
    ferry, harbour = dream(memory, CrystalCreated("The ferry is blue"), CrystalCreated("The ferry is in the harbour"))
    note = session.note("The ferry leaves at nine")
    assert sorted(search_ids(session, "ferry")) == sorted([ferry, harbour, note.id])
    dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry, harbour)))
    assert search_ids(session, "ferry") == [note.id]


@pytest.mark.embedded
def test_undone_crystals_stay_hidden_after_the_index_is_rebuilt(home: Path, clock: ManualClock) -> None:
    with Memory.open(home, clock=clock, embedder=None) as memory:
        (ferry,) = dream(memory, CrystalCreated("The ferry is blue"))
        memory.search("ferry")
        dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry,)))
        assert memory.resource("ada").search("ferry") == []
    (home / "index.db").unlink()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        assert memory.resource("ada").search("ferry") == []


@pytest.mark.spec("H7")
def test_as_of_an_earlier_day_an_undone_crystal_is_found(memory: Memory, session: Session, clock: ManualClock) -> None:
    (ferry,) = dream(memory, CrystalCreated("The ferry is blue"))
    clock.advance(seconds=86_400)
    day = clock()
    clock.advance(seconds=86_400)
    dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry,)))
    assert search_ids(session, "ferry") == []
    assert [hit.crystal.id for hit in session.search("ferry", as_of=day)] == [ferry]
