"""Kills at any moment: acknowledged changes are stored, others completely or not at all.

The tables of faults call this C02. The next start repairs by itself.
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


def kill_at_calls(folder: Path, *, existing: bool, number: int, dice: random.Random) -> None:
    """Kill a session at system calls, one after another, and check the result."""
    start = folder / "start"
    start.mkdir()
    if existing:
        ask(session_steps.live_and_tell, home=str(start), name="before")

    def fresh(name: str) -> str:
        return shutil.copytree(start, folder / name, dirs_exist_ok=True).as_posix()

    states = ask(session_steps.live_and_tell, home=fresh("reference"), name="life")
    whole = traced(session_steps.live, home=fresh("counted"), name="life", trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = points_of(whole)
    assert len(points) > 200, f"only {len(points)} calls were seen: is anything written at all?"

    def kill(point: CallPoint) -> int:
        home = fresh(f"home-{point}")
        ended = traced(
            session_steps.live,
            f"{point.call}:signal=SIGKILL:when={point.number}",
            home=home,
            name="life",
            trace=folder / f"{point}.trace",
        )
        assert ended.killed, f"at {point} nothing fired: {ended.code} {ended.output}"
        done = max((number for (number,) in ended.all("done")), default=0)
        begun = max((number for (number,) in ended.all("begin")), default=0)
        looked = run(session_steps.check, home=home, name="life", states=states, done=done, begun=begun)
        assert looked.code == 0, f"killed at {point}, in step {begun}:\n{looked.output}"
        shutil.rmtree(home)
        return begun

    chosen = sample_points(points, number, dice)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    steps = two_at_a_time(kill, chosen)
    assert len(set(steps)) > 3, f"all kills fell into the steps {sorted(set(steps))}"


def test_a_session_killed_at_a_system_call_is_in_the_state_before_or_after(tmp_path: Path) -> None:
    """C02, J1: a new home and a used one, at calls from all over the run."""
    need_strace()
    seeded = seeded_random()
    for existing in (False, True):
        folder = tmp_path / str(existing)
        folder.mkdir()
        kill_at_calls(folder, existing=existing, number=8, dice=seeded)


@pytest.mark.exhaustive
def test_a_session_killed_at_more_system_calls_is_in_the_state_before_or_after(tmp_path: Path) -> None:
    """C02, J1: more calls of a used home."""
    need_strace()
    kill_at_calls(tmp_path, existing=True, number=16, dice=seeded_random())


@pytest.mark.torture
@pytest.mark.parametrize("existing", [False, True], ids=["new", "used"])
def test_a_session_killed_at_every_system_call_is_in_the_state_before_or_after(tmp_path: Path, existing: bool) -> None:
    """C02, J1: every writing call of every step."""
    need_strace()
    kill_at_calls(tmp_path, existing=existing, number=1_000_000, dice=seeded_random())


def test_a_writer_killed_at_random_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """C02, J1: also between calls, where only memory is written."""
    kill_at_random(tmp_path / "home", kills=25, dice=seeded_random())


@pytest.mark.torture
def test_writers_killed_at_random_for_long_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """C02, J1: many kills of one home."""
    kill_at_random(tmp_path / "home", kills=400, dice=seeded_random())
