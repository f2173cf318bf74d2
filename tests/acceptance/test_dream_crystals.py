"""What dreams do to crystals: what was used is gone over again, and what an undone dream made is found no more."""

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


def dream(memory: Memory, *happened: EventPayload) -> list[str]:
    """As a dream would commit it: the ids of what it left in the stream of the resource."""
    stream = memory._context.resource_stream("ada")  # pyright: ignore[reportPrivateUsage] -- a dream that does just this
    appended = stream.append(*(Draft(payload=what, origin=Origin.DREAM) for what in happened))
    return [f"{stream.name}#{seq}" for seq in range(appended.first, appended.last + 1)]


def found(session: Session, words: str) -> list[str]:
    return [hit.crystal.id for hit in session.search(words)]


def test_what_a_dream_goes_over_again_was_wanted_once_more(
    memory: Memory, session: Session, clock: ManualClock
) -> None:
    note = session.note("The ferry leaves at nine")
    other = session.note("The bakery is closed")
    clock.advance(seconds=3_600)
    dream(memory, DreamCommitted(1, "rules", 2, 0, replayed=(note.id, "resource/ada#999", "nonsense")))
    replayed = memory.get(note.id)
    assert (replayed.accesses, replayed.accessed, replayed.lifecycle) == (1, clock(), "activated")
    assert memory.get(other.id).accesses == 0


def test_what_an_undone_dream_made_is_found_no_more_and_all_else_is(memory: Memory, session: Session) -> None:
    ferry, harbour = dream(memory, CrystalCreated("The ferry is blue"), CrystalCreated("The ferry is in the harbour"))
    note = session.note("The ferry leaves at nine")
    assert sorted(found(session, "ferry")) == sorted([ferry, harbour, note.id])
    dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry, harbour)))
    assert found(session, "ferry") == [note.id]


@pytest.mark.embedded
def test_it_is_the_same_after_the_index_is_rebuilt(home: Path, clock: ManualClock) -> None:
    with Memory.open(home, clock=clock, embedder=None) as memory:
        (ferry,) = dream(memory, CrystalCreated("The ferry is blue"))
        memory.search("ferry")
        dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry,)))
        assert memory.resource("ada").search("ferry") == []
    (home / "index.db").unlink()
    with Memory.open(home, clock=clock, embedder=None) as memory:
        assert memory.resource("ada").search("ferry") == []


@pytest.mark.spec("H7")
def test_as_of_a_day_before_it_was_undone_it_is_found(memory: Memory, session: Session, clock: ManualClock) -> None:
    (ferry,) = dream(memory, CrystalCreated("The ferry is blue"))
    clock.advance(seconds=86_400)
    day = clock()
    clock.advance(seconds=86_400)
    dream(memory, DreamUndone(dream=1, previous_dream=0, last_seq=0, journal_position=0, crystals=(ferry,)))
    assert found(session, "ferry") == []
    assert [hit.crystal.id for hit in session.search("ferry", as_of=day)] == [ferry]
