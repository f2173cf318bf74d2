"""A memory that was open when the process forked: parent and child both continue.

The tables of faults call this K23. SQLite forbids using or closing a connection in a child. It also keeps a list of
the locks of the process in memory, which is wrong in the child.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from torture import forks, writers
from torture.harness import RunningActor, ask


def ids(name: str, number: int) -> list[str]:
    return [f"{name}-{n}" for n in range(number)]


@pytest.mark.parametrize(
    "exit", [*(pytest.param(exit, marks=pytest.mark.exhaustive) for exit in ("sys.exit", "closed")), "killed"]
)
def test_parent_and_child_continue_to_write(tmp_path: Path, exit: str) -> None:
    """K23, J2: however the child ends, also with the destructors of everything inherited."""
    home, number = str(tmp_path / "home"), 20
    outcome = RunningActor(forks.both_write, fresh=True, home=home, number=number, exit=exit).finish()
    assert outcome.code == 0, outcome.output
    census = ask(writers.census, home=home)
    assert sorted(census["messages"]) == sorted(["before-0", "after-0", *ids("parent", number), *ids("child", number)])
    assert sorted(census["observed"]) == sorted(f"{name}-o{n}" for name in ("parent", "child") for n in range(number))
    assert census["documents"]["detail/child.md"] == census["documents"]["detail/parent.md"].replace("parent", "child")
    assert census["lines"] == census["messages"]


def test_children_of_multiprocessing_continue_to_write(tmp_path: Path) -> None:
    """K23, J2: the most common way to fork."""
    home, number = str(tmp_path / "home"), 8
    outcome = RunningActor(forks.pool_writes, fresh=True, home=home, number=number).finish()
    assert outcome.code == 0, outcome.output
    census = ask(writers.census, home=home)
    names = ("parent", "child0", "child1", "child2")
    wanted = ["before-0", "after-0", *(id for name in names for id in ids(name, number))]
    assert sorted(census["messages"]) == sorted(wanted)


def check_forks(home: str, *, times: int) -> None:
    outcome = RunningActor(forks.fork_during_writes, home=home, forks=times).finish()
    written = outcome.answer
    assert len(outcome.all("forked")) == times
    census = ask(writers.census, home=home)
    children = [id for n in range(times) for id in ids(f"child{n}", 2)]
    assert sorted(id for id in census["messages"] if id.startswith("child")) == sorted(children)
    threads = [id for id in census["messages"] if id.startswith("thread")]
    assert len(threads) == len(set(threads))
    assert 0 < written <= len(threads) <= written + 2
    assert census["lines"] == census["messages"]
    assert census["leftovers"] == []
    print(f"{times} forks during {len(threads)} writes")


def test_forks_during_the_writes_of_other_threads(tmp_path: Path) -> None:
    """K23, J2: whichever lock a thread held, no child waits for it forever."""
    check_forks(str(tmp_path / "home"), times=25)


@pytest.mark.torture
def test_many_forks_during_the_writes_of_other_threads(tmp_path: Path) -> None:
    """K23, J2: a lock that is held for a microsecond is rarely hit."""
    check_forks(str(tmp_path / "home"), times=300)


def test_a_child_loses_nothing_after_its_parent_ends(tmp_path: Path) -> None:
    """K23, J1: a third process would delete the log of a child that holds no lock."""
    home = str(tmp_path / "home")
    actor = RunningActor(forks.exit_parent, fresh=True, home=home)
    actor.receive_until("waiting")
    for _ in range(2):  # opens and closes, as the last process as far as the system knows
        assert ask(writers.census, home=home)["messages"] == ["parent-0", "child-0"]
    actor.resume()
    reports = [actor.receive_until("wrote")[0] for _ in range(3)]
    assert reports == ["child-1", "child-2", "child-3"]
    census = ask(writers.census, home=home)
    assert census["messages"] == ["parent-0", "child-0", *reports]
    actor.receive_until("waiting")
    actor.resume()
    actor.finish()
    assert ask(writers.census, home=home)["messages"] == ["parent-0", "child-0", *reports]


def test_a_child_has_its_own_locks(tmp_path: Path) -> None:
    """K23: SQLite's view of its locks must be right after a fork."""
    if not Path("/proc/locks").exists():
        pytest.skip("this system has no /proc/locks")
    locks = ask(forks.report_locks, home=str(tmp_path / "home"))
    assert locks == {"parent": True, "child": True}
