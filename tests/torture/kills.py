"""Kills at each system call of an actor, and at random moments between them."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from torture import writers
from torture.harness import Actor, CallPoint, RunningActor, ask, points_of, run, sample_points, traced, two_at_a_time


def kill_at_random(home: Path, *, kills: int, dice: random.Random, library: str = "") -> None:
    """Run writers on one home one after another; each first checks everything reported before."""
    told: list[str] = []
    for _ in range(kills):
        writer = RunningActor(writers.write_on, home=str(home), seed=dice.randrange(1 << 32), library=library)
        (seen,) = writer.receive_until("seen")
        missing, unheard = set(told) - set(seen), set(seen) - set(told)
        assert not missing, f"told and lost: {sorted(missing)}"
        assert len(unheard) <= 1, f"one call can have been on its way, not {sorted(unheard)}"
        told = list(seen)
        time.sleep(dice.random() * 0.08)
        writer.kill()
        ended = writer.finish()
        assert ended.killed, f"the writer ended before it was killed: {ended.output}"
        told += [text for (text,) in ended.all("wrote")]
    there = ask(writers.look, home=str(home), library=library)
    print(f"{kills} kills, {len(told)} told, {len(there)} there")
    assert set(told) <= set(there)
    assert len(told) > kills


def kill_at_calls(start: Path, *, tell: Actor, act: Actor, check: Actor, number: int, dice: random.Random) -> None:
    """Kill an actor at system calls, one after another, each on a copy of a home, and check it.

    `tell` runs the same undisturbed and reports what to expect; `check` returns how many of its commits were made.
    """
    folder = start.parent

    def fresh(name: str) -> str:
        return shutil.copytree(start, folder / name).as_posix()

    told = ask(tell, home=fresh("reference"))
    whole = traced(act, home=fresh("counted"), trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 40, f"only {len(points)} calls were seen: is anything written at all?"

    def kill(point: CallPoint) -> int:
        home = fresh(f"home-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        ended = traced(act, inject, home=home, trace=folder / f"{point}.trace")
        assert ended.killed, f"at {point} nothing fired: {ended.code} {ended.output}"
        looked = run(check, home=home, told=told, done=bool(ended.all("done")))
        assert looked.code == 0, f"killed at {point}:\n{looked.output}"
        shutil.rmtree(home)
        return looked.answer

    chosen = sample_points(points, number, dice)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    commits = two_at_a_time(kill, chosen)
    assert {0, len(told["ends"]) - 1} < set(commits), f"all kills fell behind the commits {sorted(set(commits))}"
