"""Kills during a dream: page, notes and crystals are as before or as after.

The next dream resumes. The tables of faults call these C02, C04, C06, K20, K22 and D09.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from torture import dreaming
from torture.harness import (
    CallPoint,
    RunningActor,
    ask,
    need_strace,
    points_of,
    run,
    sample_points,
    seeded_random,
    start_all,
    traced,
    two_at_a_time,
)
from torture.kills import kill_at_calls

from inmind.jobs.dreaming import PHASES

KINDS = pytest.mark.parametrize(
    "first", [pytest.param(True, marks=pytest.mark.exhaustive), False], ids=["the first dream", "a later one"]
)


def kill_while_dreaming(folder: Path, *, first: bool, number: int, rng: random.Random) -> None:
    """Kill a dream at system calls, one after another, and check the result."""
    start = folder / "start"
    ask(dreaming.begin, home=str(start), first=first)
    actors = {"reference": dreaming.dream_and_report, "act": dreaming.dream, "check": dreaming.check}
    kill_at_calls(start, **actors, number=number, rng=rng)


@KINDS
@pytest.mark.spec("G7", "J1")
def test_a_dream_killed_at_a_system_call_loses_and_duplicates_no_note(tmp_path: Path, first: bool) -> None:
    """C02: at calls from the whole dream."""
    need_strace()
    kill_while_dreaming(tmp_path, first=first, number=16, rng=seeded_random())


@pytest.mark.torture
@KINDS
@pytest.mark.spec("G7", "J1")
def test_a_dream_killed_at_any_system_call_loses_and_duplicates_no_note(tmp_path: Path, first: bool) -> None:
    """C02: at every writing call."""
    need_strace()
    kill_while_dreaming(tmp_path, first=first, number=1_000_000, rng=seeded_random())


@KINDS
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.spec("G7", "K22")
def test_a_dream_killed_in_any_phase_is_resumed_after_its_lease(tmp_path: Path, first: bool, phase: str) -> None:
    """C04: also between the journal and the files."""
    start, home = tmp_path / "start", tmp_path / "home"
    ask(dreaming.begin, home=str(start), first=first)
    shutil.copytree(start, home)
    expected = ask(dreaming.dream_and_report, home=str(start))
    outcome = run(dreaming.die_in, home=str(home), phase=phase)
    assert (outcome.code, outcome.all("dying")) == (9, [[phase]]), outcome.output
    commits = ask(dreaming.check, home=str(home), expected=expected, done=False)
    assert commits == len(expected["ends"]) - (1 if phase == "index" else 2), "the start of the dream, or its end too"


@pytest.mark.spec("G7", "K20")
def test_one_of_five_processes_dreams_and_no_writer_waits(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    ask(dreaming.begin, home=home, first=False)
    actors = [RunningActor(dreaming.dream_at_once, home=home) for _ in range(5)]
    try:
        ahead = start_all(actors)
        late = ask(dreaming.note_many, home=home, number=20)
        ahead.resume()
    finally:
        outcomes = [actor.finish() for actor in actors]
    assert sorted(one.answer[0] for one in outcomes) == ["DREAM_RUNNING"] * 4 + ["done"]
    state = ask(dreaming.look, home=home)
    assert state["waiting"] == late
    assert state["dreams"] == ["done", "done"]


@pytest.mark.exhaustive
@pytest.mark.spec("G6", "G7", "J1")
def test_a_dream_with_one_disk_failure_has_changed_all_or_nothing(tmp_path: Path) -> None:
    """C06: writing stops until the memory is reopened, and then the next dream resumes."""
    need_strace()
    start = tmp_path / "start"
    ask(dreaming.begin, home=str(start), first=False)

    def fresh(name: str) -> str:
        return shutil.copytree(start, tmp_path / name).as_posix()

    expected = ask(dreaming.dream_and_report, home=fresh("reference"))
    whole = traced(dreaming.dream, home=fresh("counted"), trace=tmp_path / "counted.trace")
    points = [point for point in points_of(whole) if point.call in ("pwrite64", "fdatasync", "fsync")]

    def fail(point: CallPoint) -> str:
        home = fresh(f"home-{point}")
        inject = f"{point.call}:error=EIO:when={point.number}"
        outcome = traced(dreaming.dream_on_failing_disk, inject, home=home, trace=tmp_path / f"{point}.trace")
        assert outcome.code == 0, f"at {point}: {outcome.output}"
        assert any("(INJECTED)" in line for line in outcome.calls), f"at {point} no fault was injected"
        checked = run(dreaming.check, home=home, expected=expected, done=bool(outcome.all("done")))
        assert checked.code == 0, f"failed at {point} ({outcome.answer}):\n{checked.output}"
        return outcome.answer

    codes = two_at_a_time(fail, sample_points(points, 16, seeded_random()))
    print(Counter(codes))
    assert {"NOT_DURABLE", ""} <= {*codes}


ROOM = [0, 10_000, 14_000, 18_000, 22_000, 30_000, 120_000]


@pytest.mark.exhaustive
def test_a_dream_on_a_full_disk_changes_nothing_and_works_later(tmp_path: Path) -> None:
    """D09, G6, J1: in the middle of its commit, at several sizes."""
    start = tmp_path / "start"
    ask(dreaming.begin, home=str(start), first=False)

    def dream_in(room: int) -> list[str]:
        home = shutil.copytree(start, tmp_path / str(room)).as_posix()
        return ask(dreaming.dream_without_room, home=home, room=room)

    results = two_at_a_time(dream_in, ROOM)
    print(*zip(ROOM, results, strict=True), sep="\n")
    assert {code for code, *_ in results} == {"STORAGE_FULL", ""}
