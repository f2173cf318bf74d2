"""An updated index and a rebuilt one are equal, and so are SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from builders import assistant, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples

from inmind import Memory, Session
from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.dreams import DreamCommitted, DreamUndone
from inmind.core.stream_names import owner_of
from inmind.errors import NotFound
from inmind.testing import ManualClock

WORDS = ["anchor", "barge", "canoe", "dinghy"]
SAID = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


class Life(NamedTuple):
    memory: Memory
    session: Session
    resource: str
    """Owner of the notes that are consolidated and dreamt of; the session may be anonymous."""

    def known(self) -> dict[str, list[tuple[str, float]]]:
        """All searchable crystals with their fields."""
        owner = owner_of(f"session/{self.session.id}", self.session.resource)
        return {
            word: [
                (repr(hit.crystal), hit.score)
                for whose in sorted({owner, self.resource})
                for hit in _found(self.memory, word, whose)
            ]
            for word in [*WORDS, "more"]
        }


def _found(memory: Memory, word: str, owner: str) -> Any:
    from inmind.search.query import validate_query

    return memory._context.search(validate_query(word, limit=200), [owner])  # pyright: ignore[reportPrivateUsage] -- also of anonymous sessions


Step = Callable[[Life], object]


def says(text: str) -> Step:
    return lambda life: life.session.add([user(text), assistant(f"so, {text}")])


def notes(text: str) -> Step:
    return lambda life: life.session.note(text)


def writes(text: str) -> Step:
    return lambda life: life.session.write("detail/page.md", f"# Page\n\n{text}\n\n# More\n\nmore {text}\n")


def empties(life: Life) -> None:
    life.session.write("detail/page.md", "")


def undoes(life: Life) -> None:
    with contextlib.suppress(NotFound):
        life.session.undo()


def goes_to(back: int) -> Step:
    def step(life: Life) -> None:
        session = life.session
        ends = [
            event.seq - 1
            for event in session.events()
            if event.starts_batch and event.seq - 1 > session.state.opening_end
        ]
        if ends:
            session.undo(to=ends[-1 - back % len(ends)])

    return step


def edits(text: str, kept: int) -> Step:
    """The host passes its list: the end regenerated, or the front dropped."""

    def step(life: Life) -> None:
        said = [dict(entry.wire) for entry in life.session.state.conversation]
        life.session.prepare([*said[: kept % (len(said) + 1)], user(text)] if kept % 2 else [*said[2:], user(text)])

    return step


def finds(text: str) -> Step:
    return lambda life: life.session.search(text)


def freezes(text: str) -> Step:
    def step(life: Life) -> None:
        for hit in life.session.search(text, limit=1):
            life.memory.pin(hit.crystal.id)

    return step


def consolidates(life: Life) -> None:
    life.memory.resource(life.resource).consolidate()


def dreams(text: str, undone: bool) -> Step:
    """Replays found crystals, creates one, and may be undone."""

    def step(life: Life) -> None:
        stream = life.memory._context.resource_stream(life.resource)  # pyright: ignore[reportPrivateUsage] -- a dream that does just this
        replayed = tuple(hit.crystal.id for hit in life.memory.resource(life.resource).search(text))
        dreamt = (DreamCommitted(stream.version + 1, "rules", 0, 0, replayed=replayed), CrystalCreated(f"more {text}"))
        made = stream.append(*(Draft(payload=what, origin=Origin.DREAM) for what in dreamt)).last
        if undone:
            taken_back = DreamUndone(
                dream=made, previous_dream=0, last_seq=0, journal_position=0, crystals=(f"{stream.name}#{made}",)
            )
            stream.append(Draft(payload=taken_back, origin=Origin.OPERATOR))

    return step


STEPS = st.one_of(
    st.builds(dreams, SAID, st.booleans()),
    SAID.map(says),
    SAID.map(notes),
    SAID.map(writes),
    SAID.map(finds),
    SAID.map(freezes),
    st.builds(edits, SAID, st.integers(0, 9)),
    st.builds(goes_to, st.integers(0, 9)),
    st.sampled_from([empties, undoes, consolidates]),
)
TRACES = st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=12)


def live(place: Path | str, steps: list[tuple[Step, bool]], *, private: bool, number: int = 0) -> tuple[Any, Any]:
    """The index after these steps, and a rebuilt index."""
    clock = ManualClock()
    with Memory.open(place, clock=clock, embedder=None) as memory:
        resource = f"ada{number}"
        session = memory.session(f"s{number}", resource=None if private else resource, cwd="/w")
        life = Life(memory, session, resource)
        for step, looks in steps:
            clock.advance(seconds=3_600)
            step(life)
            if looks:
                memory.resource(resource).search("anchor")
        followed = life.known()
    if isinstance(place, Path):
        (place / "index.db").unlink()
    with Memory.open(place, clock=clock, embedder=None) as memory:
        if not isinstance(place, Path):
            index = memory._context.search_engine()._index  # pyright: ignore[reportPrivateUsage] -- as if it had been damaged
            before = index.identity()
            index.mark_damaged("a test")
            assert index.identity() != before
        return followed, Life(memory, memory.session(f"s{number}"), resource).known()


@pytest.mark.spec("H3", "M39")
@settings(max_examples=examples(25))
@given(steps=TRACES, private=st.booleans())
def test_an_updated_and_a_rebuilt_index_are_equal(steps: list[tuple[Step, bool]], private: bool) -> None:
    with TemporaryDirectory() as folder:
        updated, rebuilt = live(Path(folder) / "home", steps, private=private)
        assert rebuilt == updated


@pytest.mark.spec("H3", "M39")
@settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(steps=TRACES, private=st.booleans())
def test_a_database_and_a_home_have_the_same_index(
    tenant_url: str, steps: list[tuple[Step, bool]], private: bool
) -> None:
    """All runs share the tenant and use different resources."""
    number = next(_NUMBERS)
    with TemporaryDirectory() as folder:
        followed, _ = live(Path(folder) / "home", steps, private=private, number=number)
    assert live(tenant_url, steps, private=private, number=number) == (followed, followed)


_NUMBERS = itertools.count()
