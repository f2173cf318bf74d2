"""Kills at each system call of an actor, and at random moments."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from torture import writers
from torture.harness import Actor, CallPoint, RunningActor, ask, points_of, run, sample_points, traced, two_at_a_time


def kill_at_random(home: Path, *, kills: int, rng: random.Random, library: str = "") -> None:
    """Run writers on one home one after another; each first checks everything reported before."""
    reported: list[str] = []
    for _ in range(kills):
        writer = RunningActor(writers.write_forever, home=str(home), seed=rng.randrange(1 << 32), library=library)
        (seen,) = writer.receive_until("seen")
        missing, unreported = set(reported) - set(seen), set(seen) - set(reported)
        assert not missing, f"reported and lost: {sorted(missing)}"
        assert len(unreported) <= 1, f"at most one call can be unreported, not {sorted(unreported)}"
        reported = list(seen)
        time.sleep(rng.random() * 0.08)
        writer.kill()
        outcome = writer.finish()
        assert outcome.killed, f"the writer ended before it was killed: {outcome.output}"
        reported += [text for (text,) in outcome.all("wrote")]
    stored = ask(writers.look, home=str(home), library=library)
    print(f"{kills} kills, {len(reported)} reported, {len(stored)} stored")
    assert set(reported) <= set(stored)
    assert len(reported) > kills


def kill_at_calls(start: Path, *, reference: Actor, act: Actor, check: Actor, number: int, rng: random.Random) -> None:
    """Kill an actor at system calls, one after another, each on a copy of a home, and check it.

    `reference` runs the same undisturbed and reports the expected state; `check` returns how many commits were made.
    """
    folder = start.parent

    def fresh(name: str) -> str:
        return shutil.copytree(start, folder / name).as_posix()

    expected = ask(reference, home=fresh("reference"))
    whole = traced(act, home=fresh("counted"), trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 40, f"only {len(points)} calls were traced: does the actor write?"

    def kill(point: CallPoint) -> int:
        home = fresh(f"home-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        outcome = traced(act, inject, home=home, trace=folder / f"{point}.trace")
        assert outcome.killed, f"at {point} no fault was injected: {outcome.code} {outcome.output}"
        checked = run(check, home=home, expected=expected, done=bool(outcome.all("done")))
        assert checked.code == 0, f"killed at {point}:\n{checked.output}"
        shutil.rmtree(home)
        return checked.answer

    chosen = sample_points(points, number, rng)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    commits = two_at_a_time(kill, chosen)
    assert {0, len(expected["ends"]) - 1} < set(commits), f"all kills came after the commits {sorted(set(commits))}"
