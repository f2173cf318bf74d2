"""Killed while a prompt compacts the history: it is compacted whole or not at all, and nobody has to repair anything.

The tables of faults call this C02.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from torture import compacting
from torture.harness import Point, ask, dice, need_strace, points_of, run, some, traced, two_at_a_time


def kill_while_compacting(folder: Path, *, number: int, dice: random.Random) -> None:
    """End a compacting prompt at system calls, one after another, and look at what it left."""
    start = folder / "start"
    ask(compacting.fill, home=str(start))

    def fresh(name: str) -> str:
        return shutil.copytree(start, folder / name).as_posix()

    told = ask(compacting.overflow_and_tell, home=fresh("reference"))
    whole = traced(compacting.overflow, home=fresh("counted"), trace=folder / "counted.trace")
    assert whole.code == 0, whole.said
    points = points_of(whole)
    assert len(points) > 40, f"only {len(points)} calls were seen: is anything written at all?"

    def kill(point: Point) -> int:
        home = fresh(f"home-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        ended = traced(compacting.overflow, inject, home=home, trace=folder / f"{point}.trace")
        assert ended.killed, f"at {point} nothing fired: {ended.code} {ended.said}"
        looked = run(compacting.check, home=home, told=told, done=bool(ended.all("done")))
        assert looked.code == 0, f"killed at {point}:\n{looked.said}"
        shutil.rmtree(home)
        return looked.answer

    chosen = some(points, number, dice)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    commits = two_at_a_time(kill, chosen)
    assert {0, len(told["ends"]) - 1} < set(commits), f"all kills fell behind the commits {sorted(set(commits))}"


@pytest.mark.spec("J1", "E5")
def test_a_prompt_killed_while_it_compacts_has_compacted_whole_or_not_at_all(tmp_path: Path) -> None:
    """C02: at calls from all over the prompt."""
    need_strace()
    kill_while_compacting(tmp_path, number=40, dice=dice())


@pytest.mark.torture
@pytest.mark.spec("J1", "E5")
def test_a_prompt_killed_anywhere_while_it_compacts_has_compacted_whole_or_not_at_all(tmp_path: Path) -> None:
    """C02: at every writing call."""
    need_strace()
    kill_while_compacting(tmp_path, number=1_000_000, dice=dice())
