"""Disks that fail to sync, are read-only, or are full: reported, and nothing is lost.

The tables of faults call these C06 and D09.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torture import disks
from torture.harness import (
    CallPoint,
    Outcome,
    RunningActor,
    ask,
    need_namespaces,
    need_strace,
    points_of,
    sample_points,
    seeded_random,
    traced,
    two_at_a_time,
)

SYNCS = ("fsync", "fdatasync")
WRITES = ("pwrite64", "write", "ftruncate")

# The message that each step writes, as `disks.check_after` returns it.
MESSAGES = {"say one": "one", "say two": "two", "say three": "three"}


def fail_at_calls(folder: Path, calls: tuple[str, ...], *, number: int, rng: random.Random) -> None:
    """One call fails with EIO and the next ones succeed, as on real disks."""
    whole = traced(disks.run_all_steps, home=str(folder / "counted"), trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = [point for point in points_of(whole) if point.call in calls]
    assert len(points) > 10
    chosen = sample_points(points, number, rng)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    codes = [code for codes in two_at_a_time(partial(fail_at, folder), chosen) for code in codes]
    print({code: codes.count(code) for code in sorted(set(codes))})
    assert "NOT_DURABLE" in codes, "no disk failure reached the caller"
    assert "READ_ONLY" in codes, "the store continued to write after a disk failure"


def fail_at(folder: Path, point: CallPoint) -> list[str]:
    home = folder / f"home-{point}"
    outcome = traced(
        disks.run_all_steps,
        f"{point.call}:error=EIO:when={point.number}",
        home=str(home),
        trace=folder / f"{point}.trace",
    )
    assert outcome.code == 0, f"at {point}: {outcome.output}"
    assert any("(INJECTED)" in line for line in outcome.calls), f"at {point} no fault was injected"
    steps: dict[str, str] = dict(outcome.all("step"))
    failed = [name for name, code in steps.items() if code]
    if failed:
        in_passing = steps[failed[0]] == "READ_ONLY" and "could not be made durable" in outcome.output
        assert steps[failed[0]] == "NOT_DURABLE" or in_passing, f"at {point}: {steps} {outcome.output}"
        later = list(steps)[list(steps).index(failed[0]) + 1 :]
        assert all(steps[name] == "READ_ONLY" for name in later), f"at {point}: {steps}"
    check_reads(outcome, steps, point)
    check_after(ask(disks.check_after, home=str(home)), steps, point)
    return list(steps.values())


def check_reads(outcome: Outcome, steps: dict[str, str], point: CallPoint) -> None:
    """Reads work, and return exactly the acknowledged writes."""
    reads = outcome.all("read")
    assert len(reads) == len(steps) - 1, f"at {point}"
    if reads:
        overview, texts = reads[-1]
        assert texts == [word for name, word in MESSAGES.items() if not steps[name]], f"at {point}"
        assert (overview == "written\n") == (not steps["write"]), f"at {point}"


def check_after(state: dict[str, Any], steps: dict[str, str], point: CallPoint) -> None:
    """Acknowledged writes are stored, failed ones may be, refused ones are not."""
    for name, word in MESSAGES.items():
        _check_stored(word in state["messages"], steps.get(name, "READ_ONLY"), f"{name} at {point}")
    _check_stored(state["overview"] == "written\n", steps.get("write", "READ_ONLY"), f"write at {point}")
    _check_stored(state["memory"] == "kept\n", steps.get("write memory", "READ_ONLY"), f"write memory at {point}")
    _check_stored(state["observed"] == 1, steps.get("observe", "READ_ONLY"), f"observe at {point}")
    _check_stored(state["calls"] == 1, steps.get("prepare", "READ_ONLY"), f"prepare at {point}")


def _check_stored(stored: bool, code: str, step: str) -> None:
    if code == "":
        assert stored, f"acknowledged and lost: {step}"
    if code == "READ_ONLY":
        assert not stored, f"refused and yet stored: {step}"


def test_a_sync_that_fails_once_stops_all_writing_until_reopened(tmp_path: Path) -> None:
    """C06, J1: and no retry reports a false success."""
    need_strace()
    fail_at_calls(tmp_path, SYNCS, number=24, rng=seeded_random())


@pytest.mark.exhaustive
def test_a_write_that_fails_once_stops_all_writing_until_reopened(tmp_path: Path) -> None:
    """C06, J1: the same for a failed write."""
    need_strace()
    fail_at_calls(tmp_path, WRITES, number=20, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.parametrize("calls", [SYNCS, WRITES], ids=["sync", "write"])
def test_every_call_may_fail_once(tmp_path: Path, calls: tuple[str, ...]) -> None:
    """C06, J1: each of them."""
    need_strace()
    fail_at_calls(tmp_path, calls, number=1_000_000, rng=seeded_random())


# -- read-only ---------------------------------------------------------------------------------------------


def on_a_read_only_disk(home: Path) -> list[str]:
    need_namespaces()
    script = f"mount --bind '{home}' '{home}' && mount -o remount,bind,ro '{home}' && exec \"$@\""
    return (
        RunningActor(disks.count_sessions, wrapped=["unshare", "-Urm", "sh", "-c", script, "sh"], home=str(home))
        .finish()
        .answer
    )


def without_the_right_to_write(home: Path) -> list[str]:
    if os.geteuid() == 0:
        pytest.skip("a file's mode does not keep root from writing it")
    (home / "inmind.db").chmod(0o400)
    home.chmod(0o500)
    try:
        return ask(disks.count_sessions, home=str(home))
    finally:
        home.chmod(0o700)
        (home / "inmind.db").chmod(0o600)


@pytest.mark.parametrize("look", [on_a_read_only_disk, without_the_right_to_write])
def test_a_read_only_home_is_not_reported_as_damaged(tmp_path: Path, look: Callable[[Path], list[str]]) -> None:
    """J1: opening a journal requires writing if no other process has it open."""
    home = tmp_path / "home"
    assert ask(disks.count_sessions, home=str(home)) == ["0", ""]
    code, message = look(home)
    assert code == "UNSAFE_STORAGE"
    assert "requires write permission" in message
    assert ask(disks.count_sessions, home=str(home)) == ["0", ""]


# -- full --------------------------------------------------------------------------------------------------


def fill(folder: Path, room: list[int], *, size: str) -> None:
    check_rounds(on_a_small_disk(folder, disks.fill_up, room, size=size))


def check_rounds(rounds: list[list[Any]]) -> None:
    print(*rounds, sep="\n")
    refusals = [len(refused) for _, refused in rounds]
    assert max(refusals) >= 5, "the disk was never full"
    assert len(set(refusals)) > 1, "it was never full in the middle of a call"


def on_a_small_disk(folder: Path, actor: Any, room: list[int], *, size: str) -> Any:
    need_namespaces()
    mount = folder / "small"
    mount.mkdir()
    script = f"mount -t tmpfs -o size={size} tmpfs '{mount}' && exec \"$@\""
    wrapped = ["unshare", "-Urm", "sh", "-c", script, "sh"]
    return RunningActor(actor, wrapped=wrapped, home=str(mount / "home"), room=room).finish().answer


ROOM = [0, 8_192, 45_056, 90_112, 200_000]


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    """D09, J1: everything is intact, reads work, and writes too once there is space."""
    fill(tmp_path, ROOM, size="24m")


@pytest.mark.torture
def test_a_disk_full_at_every_page_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    """D09, J1: with one more page of space each time."""
    fill(tmp_path, list(range(0, 262_144, 4_096)), size="96m")


def test_a_file_size_limit_is_reported_as_full(tmp_path: Path) -> None:
    """D09, J1: here a write is partly done before it fails."""
    rounds = ask(disks.limit_size, home=str(tmp_path / "home"), room=[0, 100, 5_000, 20_000, 39_000, 50_000, 120_000])
    check_rounds(rounds)


@pytest.mark.torture
def test_any_file_size_limit_is_reported_as_full(tmp_path: Path) -> None:
    """D09, J1: in steps that meet no page boundary."""
    check_rounds(ask(disks.limit_size, home=str(tmp_path / "home"), room=list(range(0, 160_000, 1_777))))
