"""Kills at any moment: acknowledged changes are stored, others are complete or absent.

The tables of faults call this C02. The next start repairs the home.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from torture import session_steps
from torture.harness import (
    CallPoint,
    ask,
    need_strace,
    points_of,
    run,
    sample_points,
    seeded_random,
    traced,
    two_at_a_time,
)
from torture.kills import kill_at_random


def kill_at_calls(folder: Path, *, existing: bool, number: int, rng: random.Random) -> None:
    """Kill a session at system calls, one after another, and check the result."""
    start = folder / "start"
    start.mkdir()
    if existing:
        ask(session_steps.run_and_report, home=str(start), name="before")

    def fresh(name: str) -> str:
        return shutil.copytree(start, folder / name, dirs_exist_ok=True).as_posix()

    states = ask(session_steps.run_and_report, home=fresh("reference"), name="main")
    whole = traced(session_steps.run_steps, home=fresh("counted"), name="main", trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 200, f"only {len(points)} calls were traced: does the actor write?"

    def kill(point: CallPoint) -> int:
        home = fresh(f"home-{point}")
        outcome = traced(
            session_steps.run_steps,
            f"{point.call}:signal=SIGKILL:when={point.number}",
            home=home,
            name="main",
            trace=folder / f"{point}.trace",
        )
        assert outcome.killed, f"at {point} no fault was injected: {outcome.code} {outcome.output}"
        done = max((number for (number,) in outcome.all("done")), default=0)
        begun = max((number for (number,) in outcome.all("begin")), default=0)
        checked = run(session_steps.check, home=home, name="main", states=states, done=done, begun=begun)
        assert checked.code == 0, f"killed at {point}, in step {begun}:\n{checked.output}"
        shutil.rmtree(home)
        return begun

    chosen = sample_points(points, number, rng)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    steps = two_at_a_time(kill, chosen)
    assert len(set(steps)) > 3, f"all kills happened in the steps {sorted(set(steps))}"


def test_a_session_killed_at_a_system_call_is_in_the_state_before_or_after(tmp_path: Path) -> None:
    """C02, J1: a new home and a used one, at calls from the whole run."""
    need_strace()
    seeded = seeded_random()
    for existing in (False, True):
        folder = tmp_path / str(existing)
        folder.mkdir()
        kill_at_calls(folder, existing=existing, number=8, rng=seeded)


@pytest.mark.exhaustive
def test_a_session_killed_at_more_system_calls_is_in_the_state_before_or_after(tmp_path: Path) -> None:
    """C02, J1: more calls of a used home."""
    need_strace()
    kill_at_calls(tmp_path, existing=True, number=16, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.parametrize("existing", [False, True], ids=["new", "used"])
def test_a_session_killed_at_every_system_call_is_in_the_state_before_or_after(tmp_path: Path, existing: bool) -> None:
    """C02, J1: every writing call of every step."""
    need_strace()
    kill_at_calls(tmp_path, existing=existing, number=1_000_000, rng=seeded_random())


def test_a_writer_killed_at_random_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """C02, J1: also between system calls, when only memory is written."""
    kill_at_random(tmp_path / "home", kills=25, rng=seeded_random())


@pytest.mark.torture
def test_writers_killed_at_random_for_long_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """C02, J1: many kills of one home."""
    kill_at_random(tmp_path / "home", kills=400, rng=seeded_random())
