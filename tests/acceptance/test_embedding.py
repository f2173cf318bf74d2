"""Search by meaning: with any embedder, while it changes, and while it fails."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from builders import Home, user

from inmind import Memory
from inmind.search.embedders import FunctionEmbedder
from inmind.testing import ManualClock

pytest.importorskip("numpy")

pytestmark = [pytest.mark.spec("H4"), pytest.mark.both_stores]

SUBJECTS = {
    "animals": ("cat", "kitten", "dog", "puppy", "feline"),
    "boats": ("boat", "ferry", "vessel", "kayak"),
    "money": ("coin", "cash", "salary", "wage"),
}


def subject_embedder(*subjects: str, name: str = "by subject") -> FunctionEmbedder:
    """An embedder that places texts of one subject together, with one dimension per subject."""

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[*(_mentions(text, subject) for subject in subjects), 0.01] for text in texts]

    return FunctionEmbedder(embed, name=name, dimensions=len(subjects) + 1)


def _mentions(text: str, subject: str) -> float:
    return float(any(word in text.lower() for word in SUBJECTS[subject]))


def stored_dimensions(home: Path) -> dict[str, set[int]]:
    """Lengths of the stored vectors by embedder."""
    connection: Any = apsw.Connection(str(home / "index.db"))
    rows = connection.execute(
        "SELECT embedders.name, length(numbers) / 2 FROM vectors JOIN embedders ON embedders.id = vectors.embedder"
    ).fetchall()
    connection.close()
    return {name: {length for other, length in rows if other == name} for name, _ in rows}


def search_texts(memory: Memory, query: str) -> list[str]:
    return [hit.crystal.text for hit in memory.resource("ada").search(query)]


def write_notes(home: Home) -> None:
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada")
        for text in ("The kitten sleeps on the sofa", "Our kayak leaks", "The wage is paid on Fridays"):
            session.note(text)


def test_a_text_without_shared_words_is_found_by_meaning(home: Home) -> None:
    write_notes(home)
    with Memory.open(home, embedder=None) as memory:
        assert search_texts(memory, "a feline") == []
    with Memory.open(home, embedder=subject_embedder(*SUBJECTS)) as memory:
        assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"
        assert search_texts(memory, "any vessel")[0] == "Our kayak leaks"


def test_a_note_is_found_by_meaning_after_background_embedding(home: Home) -> None:
    embedded: list[str] = []
    inner = subject_embedder(*SUBJECTS)

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        embedded.extend(texts)
        return inner.embed(texts).tolist()

    with Memory.open(home, embedder=FunctionEmbedder(embed, name="seen", dimensions=4)) as memory:
        session = memory.session("s", resource="ada")
        memory.search("warm up")
        session.note("The puppy chews shoes")
        session.add([user("Our kayak leaks")])
        memory.flush()
        assert any("puppy" in text for text in embedded)
        assert any("kayak" in text for text in embedded)
        embedded.clear()
        assert search_texts(memory, "feline")[0] == "The puppy chews shoes"
        assert embedded == ["feline"], "text embedded in the background is not embedded again"


@pytest.mark.embedded
def test_a_new_embedder_embeds_everything_again_and_vectors_never_mix(home: Path) -> None:
    write_notes(home)
    clock = ManualClock(datetime.now(UTC))
    first, second = subject_embedder("animals"), subject_embedder("boats", "money", name="another")
    with Memory.open(home, clock=clock, embedder=first) as memory:
        assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"
    with Memory.open(home, clock=clock, embedder=second) as memory:
        assert search_texts(memory, "some vessel")[0] == "Our kayak leaks"
        assert search_texts(memory, "the kitten")[0] == "The kitten sleeps on the sofa"
        assert stored_dimensions(home) == {first.name: {2}, second.name: {3}}
        memory.run_upkeep()
        assert stored_dimensions(home) == {first.name: {2}, second.name: {3}}, "another process may still use the first"
        clock.advance(seconds=86_401)
        memory.run_upkeep()
        assert stored_dimensions(home) == {second.name: {3}}
    with Memory.open(home, embedder=first) as memory:
        assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"


@pytest.mark.embedded
def test_an_embedder_of_the_same_name_and_other_dimensions_is_another(home: Path) -> None:
    write_notes(home)
    for embedder in (subject_embedder("animals", name="m"), subject_embedder("animals", "boats", name="m")):
        with Memory.open(home, embedder=embedder) as memory:
            assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"
    assert stored_dimensions(home) == {"m#2": {2}, "m#3": {3}}


def test_search_works_while_everything_is_embedded_again(home: Home) -> None:
    """A stuck embedder blocks no search, and partial vectors do not change the ranking."""
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("s", resource="ada")
        for number in range(300):
            session.note(f"The cat number {number} is called {number * 7}")
        session.note("The vessel for the flowers is green")
    reached, proceed = threading.Event(), threading.Event()
    inner = subject_embedder(*SUBJECTS)

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if threading.current_thread() is not threading.main_thread():
            reached.set()
            assert proceed.wait(timeout=60)
        elif texts not in (["vessel for"], ["some kayak"]):
            raise RuntimeError("busy with something else")
        return inner.embed(texts).tolist()

    with Memory.open(home, embedder=FunctionEmbedder(embed, name="slow", dimensions=4)) as memory:
        upkeep = threading.Thread(target=memory.run_upkeep)
        upkeep.start()
        assert reached.wait(timeout=60)
        memory.session("s").note("The vessel for tea is blue")
        interim_hits = search_texts(memory, "vessel for")
        proceed.set()
        upkeep.join(timeout=60)
        memory.flush()
        assert set(interim_hits) == {"The vessel for the flowers is green", "The vessel for tea is blue"}
        assert search_texts(memory, "some kayak")[:2].count("The vessel for tea is blue") == 1


def counting_embedder(*, before: Callable[[], object] = lambda: None) -> tuple[FunctionEmbedder, Counter[str]]:
    """An embedder, and its number of calls for each text."""
    inner, calls = subject_embedder(*SUBJECTS), Counter[str]()

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        before()
        calls.update(texts)
        return inner.embed(texts).tolist()

    return FunctionEmbedder(embed, name="counting", dimensions=4), calls


def test_a_claimed_text_is_embedded_once(home: Home) -> None:
    write_notes(home)
    reached, proceed = threading.Event(), threading.Event()

    def block() -> None:
        reached.set()
        assert proceed.wait(timeout=60)

    slow, slow_calls = counting_embedder(before=block)
    quick, quick_calls = counting_embedder()
    with Memory.open(home, embedder=slow) as one, Memory.open(home, embedder=quick) as other:
        upkeep = threading.Thread(target=one.run_upkeep)
        upkeep.start()
        assert reached.wait(timeout=60)
        other.run_upkeep()
        assert search_texts(other, "kitten") == ["The kitten sleeps on the sofa"], "by its words"
        proceed.set()
        upkeep.join(timeout=60)
        assert search_texts(other, "a feline")[0] == "The kitten sleeps on the sofa", "by its meaning"
    assert set(slow_calls.values()) == {1}
    assert not slow_calls.keys() & quick_calls.keys()


def test_a_claim_of_a_dead_process_expires_after_a_minute(home: Home) -> None:
    write_notes(home)
    clock = ManualClock()
    quick, calls = counting_embedder()
    with Memory.open(home, clock=clock, embedder=quick) as memory:
        engine = memory._context.search.engine  # pyright: ignore[reportPrivateUsage] -- as a killed process leaves it
        (scope,) = engine._index.catch_up_scopes(["ada"])  # pyright: ignore[reportPrivateUsage]
        assert engine._index.claim_unembedded(quick.name, scope.id, 64, now=clock())  # pyright: ignore[reportPrivateUsage]
        clock.advance(seconds=59)
        memory.run_upkeep()
        assert not calls
        clock.advance(seconds=1)
        memory.run_upkeep()
    assert set(calls.values()) == {1}


def test_taking_a_note_embeds_only_its_resource(home: Home) -> None:
    with Memory.open(home, embedder=None) as memory:
        for name in ("ben", "cy", "di"):
            memory.resource(name).note(f"A kitten of {name}")
    embedder, calls = counting_embedder()
    with Memory.open(home, embedder=embedder) as memory:
        memory.resource("ada").note("The kitten sleeps on the sofa")
        memory.flush()
        assert list(calls) == ["The kitten sleeps on the sofa"]
        memory.run_upkeep()
    assert len(calls) == 4


def failing_embedder(fails: Callable[[Sequence[str]], bool]) -> FunctionEmbedder:
    inner = subject_embedder(*SUBJECTS)

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if fails(texts):
            raise RuntimeError("the model is out to lunch")
        return inner.embed(texts).tolist()

    return FunctionEmbedder(embed, name="failing", dimensions=4)


def test_with_a_failing_embedder_search_uses_words_and_logs(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    write_notes(home)
    with (
        caplog.at_level(logging.WARNING, "inmind"),
        Memory.open(home, embedder=failing_embedder(lambda _: True)) as memory,
    ):
        assert search_texts(memory, "kitten") == ["The kitten sleeps on the sofa"]
        memory.session("s").note("The kitten is called Tom")
        memory.flush()
        assert len(search_texts(memory, "kitten")) == 2
    assert "out to lunch" in caplog.text


def test_a_recovered_embedder_embeds_missed_texts(home: Home) -> None:
    write_notes(home)
    broken = [True]
    with Memory.open(home, embedder=failing_embedder(lambda _: broken[0])) as memory:
        assert search_texts(memory, "a feline") == []
        broken[0] = False
        assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"


def test_an_embedder_that_fails_for_queries_falls_back_to_words(home: Home) -> None:
    write_notes(home)
    with Memory.open(home, embedder=failing_embedder(lambda texts: list(texts) == ["kitten"])) as memory:
        assert search_texts(memory, "kitten") == ["The kitten sleeps on the sofa"]
        assert search_texts(memory, "a feline")[0] == "The kitten sleeps on the sofa"


@pytest.mark.embedded
@pytest.mark.spec("J2")
def test_two_memories_embed_concurrently(home: Path) -> None:
    write_notes(home)
    start = threading.Barrier(4)
    wrong: list[object] = []

    def search() -> None:
        with Memory.open(home, embedder=subject_embedder(*SUBJECTS)) as memory:
            start.wait(timeout=30)
            try:
                if search_texts(memory, "a feline")[:1] != ["The kitten sleeps on the sofa"]:
                    wrong.append("not found")
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert wrong == []
    assert stored_dimensions(home) == {"by subject#4": {4}}


def test_search_by_meaning_stays_within_the_resource(home: Home) -> None:
    with Memory.open(home, embedder=subject_embedder(*SUBJECTS)) as memory:
        ada, bob = (memory.session(name, resource=name) for name in ("ada", "bob"))
        ada.note("The kitten sleeps on the sofa")
        bob.note("The puppy chews shoes")
        memory.session("anonymous").note("My cat is secret")
        assert [hit.crystal.text for hit in ada.search("feline")] == ["The kitten sleeps on the sofa"]
        assert [hit.crystal.text for hit in bob.search("feline")] == ["The puppy chews shoes"]


def test_undone_text_is_not_found_by_meaning(home: Home) -> None:
    with Memory.open(home, embedder=subject_embedder(*SUBJECTS)) as memory:
        session = memory.session("s", resource="ada")
        session.add([user("The kitten sleeps on the sofa")])
        seq = session.state.seq
        assert session.search("feline")
        session.undo()
        assert session.search("feline") == []
        session.undo(to=seq)
        assert session.search("feline")


def test_a_search_schedules_the_remaining_embedding(home: Home) -> None:
    """A search embeds only for a moment; the rest must not wait for the next write."""
    with Memory.open(home, embedder=None) as memory:
        memory.session("s", resource="ada").add([user(f"Boat number {number} is here") for number in range(100)])
    embedded: list[str] = []

    def embed_slowly(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        threading.Event().wait(0.03 * len(texts))
        return [[1.0] for _ in texts]

    with Memory.open(home, embedder=FunctionEmbedder(embed_slowly, name="slow", dimensions=1)) as memory:
        memory.search("boat")
        assert len(embedded) < 100
        memory.flush()
        assert len({text for text in embedded if "number" in text}) == 100


def test_a_refused_text_is_found_by_words_and_the_others_by_meaning(home: Home) -> None:
    """J3: at any position in a batch."""
    inner = subject_embedder("animals", "boats", "money")

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if any("unspeakable" in text for text in texts):
            raise ValueError("not for me")
        return [[float(number) for number in row] for row in inner.embed(texts)]

    write_notes(home)
    with Memory.open(home, embedder=FunctionEmbedder(embed, name="choosy", dimensions=4)) as memory:
        memory.session("s", resource="ada").note("something unspeakable")
        memory.flush()
        assert search_texts(memory, "feline")[0] == "The kitten sleeps on the sofa"
        assert search_texts(memory, "unspeakable")[0] == "something unspeakable"
