"""Whatever happens, and whenever somebody looks: an index that has followed and one made anew know the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from builders import assistant, user
from hypothesis import given, settings
from hypothesis import strategies as st

from inmind import Memory, Session
from inmind.errors import NotFound
from inmind.journal import Crystallised, Draft, Dreamt, DreamUndone, Origin
from inmind.testing import ManualClock

WORDS = ["anchor", "barge", "canoe", "dinghy"]
SAID = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)

Step = Callable[[Memory, Session], object]


def says(text: str) -> Step:
    return lambda _, session: session.add([user(text), assistant(f"so, {text}")])


def notes(text: str) -> Step:
    return lambda _, session: session.note(text)


def writes(text: str) -> Step:
    return lambda _, session: session.write("detail/page.md", f"# Page\n\n{text}\n\n# More\n\nmore {text}\n")


def empties(_: Memory, session: Session) -> None:
    session.write("detail/page.md", "")


def undoes(_: Memory, session: Session) -> None:
    with contextlib.suppress(NotFound):
        session.undo()


def goes_to(back: int) -> Step:
    def step(_: Memory, session: Session) -> None:
        ends = [event.seq - 1 for event in session.journal() if event.opens and event.seq - 1 > session.mind.begun]
        if ends:
            session.undo(to=ends[-1 - back % len(ends)])

    return step


def edits(text: str, kept: int) -> Step:
    """The host hands in its own list: the end regenerated, or the front dropped."""

    def step(_: Memory, session: Session) -> None:
        said = [dict(entry.wire) for entry in session.mind.line]
        session.prepare([*said[: kept % (len(said) + 1)], user(text)] if kept % 2 else [*said[2:], user(text)])

    return step


def finds(text: str) -> Step:
    return lambda _, session: session.search(text)


def consolidates(memory: Memory, _: Session) -> None:
    memory.consolidate("ada")


def dreams(text: str, undone: bool) -> Step:
    """Goes over what was found again, makes something of it, and is undone or not."""

    def step(memory: Memory, _: Session) -> None:
        stream = memory._belongings("ada")  # pyright: ignore[reportPrivateUsage] -- a dream that does just this
        replayed = tuple(hit.crystal.id for hit in memory.search(text, resource="ada"))
        dreamt = (Dreamt(stream.version + 1, "rules", 0, 0, replayed=replayed), Crystallised(f"more {text}"))
        made = stream.append(*(Draft(what=what, origin=Origin.DREAM) for what in dreamt)).last
        if undone:
            taken_back = DreamUndone(dream=made, last=0, upto=0, position=0, crystals=(f"{stream.name}#{made}",))
            stream.append(Draft(what=taken_back, origin=Origin.OPERATOR))

    return step


STEPS = st.one_of(
    st.builds(dreams, SAID, st.booleans()),
    SAID.map(says),
    SAID.map(notes),
    SAID.map(writes),
    SAID.map(finds),
    st.builds(edits, SAID, st.integers(0, 9)),
    st.builds(goes_to, st.integers(0, 9)),
    st.sampled_from([empties, undoes, consolidates]),
)


def known(memory: Memory) -> dict[str, list[tuple[str, float]]]:
    """All that can be found, and what is known of each."""
    return {
        word: [(repr(hit.crystal), hit.score) for hit in memory.search(word, limit=200)] for word in [*WORDS, "more"]
    }


@pytest.mark.spec("H3", "M39")
@settings(max_examples=max(25, settings().max_examples // 4))
@given(steps=st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=12), private=st.booleans())
def test_an_index_that_followed_and_one_made_anew_know_the_same(steps: list[tuple[Step, bool]], private: bool) -> None:
    clock = ManualClock()
    with TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(home, clock=clock, embedder=None) as memory:
            session = memory.session("s", resource=None if private else "ada", cwd="/w")
            for step, looks in steps:
                clock.advance(seconds=3_600)
                step(memory, session)
                if looks:
                    memory.search("anchor")
            followed = known(memory)
        (home / "index.db").unlink()
        with Memory.open(home, clock=clock, embedder=None) as memory:
            assert known(memory) == followed
