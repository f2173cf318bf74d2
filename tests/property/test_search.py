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
from inmind.core.paths import owner_of
from inmind.errors import NotFound
from inmind.testing import ManualClock

WORDS = ["anchor", "barge", "canoe", "dinghy"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


class Setup(NamedTuple):
    memory: Memory
    session: Session
    resource: str
    """Owner of the notes that are consolidated and dreamt of; the session may be anonymous."""

    def content(self) -> dict[str, list[tuple[str, float]]]:
        """All searchable crystals with their fields."""
        owner = owner_of(f"session/{self.session.id}", self.session.resource)
        return {
            word: [
                (repr(hit.crystal), hit.score)
                for name in sorted({owner, self.resource})
                for hit in _search(self.memory, word, name)
            ]
            for word in [*WORDS, "more"]
        }


def _search(memory: Memory, word: str, owner: str) -> Any:
    from inmind.search.query import validate_query

    return memory._context.search.run(validate_query(word, limit=200), [owner])  # pyright: ignore[reportPrivateUsage] -- also of anonymous sessions


Step = Callable[[Setup], object]


def add_messages(text: str) -> Step:
    return lambda setup: setup.session.add([user(text), assistant(f"so, {text}")])


def add_note(text: str) -> Step:
    return lambda setup: setup.session.note(text)


def write_page(text: str) -> Step:
    return lambda setup: setup.session.write("detail/page.md", f"# Page\n\n{text}\n\n# More\n\nmore {text}\n")


def empty_page(setup: Setup) -> None:
    setup.session.write("detail/page.md", "")


def undo_last(setup: Setup) -> None:
    with contextlib.suppress(NotFound):
        setup.session.undo()


def undo_to(steps_back: int) -> Step:
    def step(setup: Setup) -> None:
        session = setup.session
        ends = [
            event.seq - 1
            for event in session.events()
            if event.starts_batch and event.seq - 1 > session.state.opening_end
        ]
        if ends:
            session.undo(to=ends[-1 - steps_back % len(ends)])

    return step


def edit_list(text: str, kept: int) -> Step:
    """The host passes its list: the end regenerated, or the front dropped."""

    def step(setup: Setup) -> None:
        messages = [dict(entry.wire) for entry in setup.session.state.conversation]
        setup.session.prepare(
            [*messages[: kept % (len(messages) + 1)], user(text)] if kept % 2 else [*messages[2:], user(text)]
        )

    return step


def search_text(text: str) -> Step:
    return lambda setup: setup.session.search(text)


def pin_hit(text: str) -> Step:
    def step(setup: Setup) -> None:
        for hit in setup.session.search(text, limit=1):
            setup.memory.pin(hit.crystal.id)

    return step


def consolidate(setup: Setup) -> None:
    setup.memory.resource(setup.resource).consolidate()


def dream(text: str, undone: bool) -> Step:
    """Replays found crystals, creates one, and may be undone."""

    def step(setup: Setup) -> None:
        stream = setup.memory._context.resource_stream(setup.resource)  # pyright: ignore[reportPrivateUsage] -- a dream that does just this
        replayed = tuple(hit.crystal.id for hit in setup.memory.resource(setup.resource).search(text))
        payloads = (
            DreamCommitted(stream.version + 1, "rules", 0, 0, replayed=replayed),
            CrystalCreated(f"more {text}"),
        )
        seq = stream.append(*(Draft(payload=payload, origin=Origin.DREAM) for payload in payloads)).last
        if undone:
            undo = DreamUndone(
                dream=seq, previous_dream=0, last_seq=0, journal_position=0, crystals=(f"{stream.name}#{seq}",)
            )
            stream.append(Draft(payload=undo, origin=Origin.OPERATOR))

    return step


STEPS = st.one_of(
    st.builds(dream, TEXTS, st.booleans()),
    TEXTS.map(add_messages),
    TEXTS.map(add_note),
    TEXTS.map(write_page),
    TEXTS.map(search_text),
    TEXTS.map(pin_hit),
    st.builds(edit_list, TEXTS, st.integers(0, 9)),
    st.builds(undo_to, st.integers(0, 9)),
    st.sampled_from([empty_page, undo_last, consolidate]),
)
TRACES = st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=12)


def run_steps(place: Path | str, steps: list[tuple[Step, bool]], *, private: bool, number: int = 0) -> tuple[Any, Any]:
    """The index after these steps, and a rebuilt index."""
    clock = ManualClock()
    with Memory.open(place, clock=clock, embedder=None) as memory:
        resource = f"ada{number}"
        session = memory.session(f"s{number}", resource=None if private else resource, cwd="/w")
        setup = Setup(memory, session, resource)
        for step, searches in steps:
            clock.advance(seconds=3_600)
            step(setup)
            memory.flush()  # a search is recorded in the background
            if searches:
                memory.resource(resource).search("anchor")
        updated = setup.content()
    if isinstance(place, Path):
        (place / "index.db").unlink()
    with Memory.open(place, clock=clock, embedder=None) as memory:
        if not isinstance(place, Path):
            index = memory._context.search.engine._index  # pyright: ignore[reportPrivateUsage] -- as if it had been damaged
            before = index.identity()
            index.mark_damaged("a test")
            assert index.identity() != before
        return updated, Setup(memory, memory.session(f"s{number}"), resource).content()


@pytest.mark.spec("H3", "M39")
@settings(max_examples=examples(25))
@given(steps=TRACES, private=st.booleans())
def test_an_updated_and_a_rebuilt_index_are_equal(steps: list[tuple[Step, bool]], private: bool) -> None:
    with TemporaryDirectory() as folder:
        updated, rebuilt = run_steps(Path(folder) / "home", steps, private=private)
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
        updated, _ = run_steps(Path(folder) / "home", steps, private=private, number=number)
    assert run_steps(tenant_url, steps, private=private, number=number) == (updated, updated)


_NUMBERS = itertools.count()
