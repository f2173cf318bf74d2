"""Many processes on one home: nothing is lost or duplicated, and no "database is locked".

The tables of faults call these K14, K16 and K17.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from builders import Home
from torture import statements, writers
from torture.harness import RunningActor, ask, run_together

pytestmark = pytest.mark.both_stores

PROCESSES = 8


def write_together(home: str, *, each: int) -> None:
    """Write messages and observations, prepare, and write the same documents, concurrently."""
    ask(writers.begin_document, home=home, path="MEMORY.md", text="# many\n")
    ask(writers.begin_document, home=home, path="overview.md", text="# many\n")
    adding = [RunningActor(writers.add_many, home=home, name=f"w{n}", number=each) for n in range(PROCESSES)]
    preparing = RunningActor(writers.prepare_many, home=home, number=max(5, each // 5))
    writing = [
        RunningActor(writers.write_many, home=home, name=f"d{n}", path=path, number=max(5, each // 10))
        for path in ("overview.md", "MEMORY.md")
        for n in range(2)
    ]
    *_, prepared, d0, d1, d2, d3 = run_together([*adding, preparing, *writing])
    census = ask(writers.census, home=home)

    wanted = [f"w{name}-{n}" for name in range(PROCESSES) for n in range(each)]
    assert len(wanted) == PROCESSES * each
    assert sorted(census["messages"] + census["observed"]) == sorted(wanted)
    assert census["lines"] == census["messages"], "messages.jsonl differs from the journal"
    for name in range(PROCESSES):  # events of each writer are in order
        own = [id for id in census["messages"] if id.startswith(f"w{name}-")]
        assert own == sorted(own, key=lambda id: int(id.split("-")[1]))
    calls = prepared.answer
    assert calls == sorted(set(calls))
    assert census["calls"] == len(calls)
    for path in ("overview.md", "MEMORY.md"):
        lines = census["documents"][path].splitlines()
        assert Counter(lines[1:]) == Counter(f"d{n}-{k}" for n in range(2) for k in range(max(5, each // 10))), path
    assert census["leftovers"] == []
    print(f"{len(wanted)} by {PROCESSES}, {len(calls)} calls, conflicts {[d.answer for d in (d0, d1, d2, d3)]}")


def test_eight_processes_write_one_session(tmp_path: Path) -> None:
    """K14, J2: each event exactly once, though each was sent twice."""
    write_together(str(tmp_path / "home"), each=25)


@pytest.mark.torture
def test_eight_processes_write_one_session_for_long(tmp_path: Path) -> None:
    """K14, J2: 1,600 of them."""
    write_together(str(tmp_path / "home"), each=200)


def test_every_write_transaction_begins_immediate(tmp_path: Path) -> None:
    """K16: one that starts as a reader notices too late that another writer was first."""
    seen = ask(statements.record_transactions, home=str(tmp_path / "home"))
    assert set(seen["begins"]) == {"BEGIN IMMEDIATE"}
    assert len(seen["begins"]) > 10
    assert seen["changes"] > 30, "the trace saw nothing"
    assert seen["outside"] == []


def race(home: str, *, each: int, library: str = "") -> None:
    Path(home).mkdir()
    racing = [
        RunningActor(statements.read_then_write, home=home, name=f"w{n}", number=each, library=library)
        for n in range(PROCESSES)
    ]
    conflicts = sum(outcome.answer["conflicts"] for outcome in run_together(racing))
    texts = ask(statements.read_all, home=home)
    assert sorted(text.split()[0] for text in texts) == sorted(
        f"w{n}-{k}" for n in range(PROCESSES) for k in range(each)
    )
    assert [int(text.split()[-1]) for text in texts] == list(range(len(texts))), "a decision used a stale state"
    print(f"{len(texts)} appended, {conflicts} retried")
    assert conflicts > 0, "no conflict happened"


def test_read_then_write_in_eight_processes_is_never_refused_as_busy(tmp_path: Path) -> None:
    """K16, J2: a conflict is detected before anything is written, and never reported as busy."""
    race(str(tmp_path / "home"), each=12)


@pytest.mark.torture
@pytest.mark.parametrize("library", ["", "3.40.1"], ids=["log", "journal"])
def test_read_then_write_in_eight_processes_for_long(tmp_path: Path, library: str) -> None:
    """K16, M41, J2: with the write-ahead log, and with the journal of an unsafe library."""
    race(str(tmp_path / "home"), each=150, library=library)


def count_up(home: str, *, each: int) -> None:
    run_together([RunningActor(statements.increase, home=home, number=each) for _ in range(PROCESSES)])
    assert ask(statements.count, home=home) == PROCESSES * each


def test_a_decision_is_made_again_on_the_newest_state(tmp_path: Path) -> None:
    """A3, K16, J2: eight processes count in one document without lost updates."""
    count_up(str(tmp_path / "home"), each=10)


@pytest.mark.torture
def test_decisions_are_made_again_for_long(tmp_path: Path) -> None:
    """A3, K16, J2: the same for longer."""
    count_up(str(tmp_path / "home"), each=150)


@pytest.mark.spec("K17", "A3", "J2", "J8")
@pytest.mark.parametrize("path", ["overview.md", "MEMORY.md", "detail/plan.md"])
def test_one_of_two_concurrent_writers_wins_and_the_other_gets_both_texts(home: Home, path: str) -> None:
    """All processes then read the winner's text."""
    home = str(home)
    base = ask(writers.begin_document, home=home, path=path, text="base\n")
    for turn in range(4):
        texts = [f"{turn} left\n", f"{turn} right\n"]
        pair = [RunningActor(writers.write_once, home=home, path=path, text=text, base=base) for text in texts]
        answers = [outcome.answer for outcome in run_together(pair)]
        (won,) = [index for index, answer in enumerate(answers) if "version" in answer]
        lost = answers[1 - won]
        assert lost == {
            "conflict": "CONFLICT",
            "mine": texts[1 - won],
            "theirs": texts[won],
            "expected": base,
            "actual": answers[won]["version"],
        }
        assert ask(writers.read_once, home=home, path=path) == {"text": texts[won], "version": lost["actual"]}
        base = lost["actual"]
