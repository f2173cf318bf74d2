"""Exports and imports under load and with kills: each is complete or absent.

The tables of faults call these M40, N67 and C02.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from bundle_builders import import_into_home, read_events, read_keys
from torture import bundles
from torture.harness import (
    Actor,
    CallPoint,
    RunningActor,
    ask,
    need_strace,
    points_of,
    sample_points,
    seeded_random,
    traced,
    two_at_a_time,
)

KINDS = pytest.mark.parametrize(
    "act",
    [
        bundles.import_bundle,
        *(pytest.param(act, marks=pytest.mark.exhaustive) for act in (bundles.import_into_new, bundles.export)),
    ],
    ids=["into a used home", "into a new one", "out"],
)


def kill_at_calls(start: Path, act: Actor, *, number: int, rng: random.Random) -> None:
    """Kill the actor at system calls, one after another; the state is as before or as after.

    A retry completes it.
    """
    ask(bundles.begin, folder=str(start))
    before = ask(bundles.look, folder=str(start))

    def fresh(name: str) -> str:
        return shutil.copytree(start, start.parent / name).as_posix()

    whole = traced(act, folder=fresh("counted"), trace=start.parent / "counted.trace")
    assert whole.code == 0, whole.output
    after = ask(bundles.look, folder=str(start.parent / "counted"))
    assert after != before
    points = points_of(whole)
    assert len(points) > 10, f"only {len(points)} calls were traced: does the actor write?"

    def kill(point: CallPoint) -> bool:
        folder = fresh(f"at-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        outcome = traced(act, inject, folder=folder, trace=start.parent / f"{point}.trace")
        assert outcome.killed, f"at {point} no fault was injected: {outcome.code} {outcome.output}"
        contents: dict[str, Any] = ask(bundles.look, folder=folder)
        if contents != before:
            assert _without_files(contents) == _without_files(after), f"killed at {point}: in between"
        if outcome.all("done"):
            assert contents == after, f"killed at {point}: a file is missing"
        if act is not bundles.export:
            again = traced(act, folder=folder, trace=start.parent / f"{point}.again")
            assert again.code == 0, again.output
            assert ask(bundles.look, folder=folder) == after
            assert not list(Path(folder).rglob(".inmind-arriving-*"))
            assert not list(Path(folder).glob(".inmind-bundle-*"))
        shutil.rmtree(folder)
        return contents == after

    chosen = sample_points(points, number, rng)
    print(f"{len(chosen)} of {len(points)} points", *(chosen if len(chosen) < len(points) else ()))
    assert set(two_at_a_time(kill, chosen)) == {False, True}


def _without_files(contents: dict[str, Any]) -> dict[str, Any]:
    """Files get their names after the journal has their events, never before."""
    return {name: parts if name == "out" else parts[:2] for name, parts in contents.items()}


@KINDS
@pytest.mark.parametrize("number", [5, pytest.param(1_000_000, marks=pytest.mark.torture)], ids=["some", "all"])
@pytest.mark.spec("M40", "N67", "C02")
def test_an_import_killed_at_a_system_call_is_complete_or_absent(tmp_path: Path, act: Actor, number: int) -> None:
    need_strace()
    start = tmp_path / "start"
    start.mkdir()
    kill_at_calls(start, act, number=number, rng=seeded_random())


@pytest.mark.spec("M40")
def test_an_export_during_writes_of_four_processes_is_consistent(tmp_path: Path) -> None:
    """No batch is split, no key is without its events, and it can be imported."""
    home, times = tmp_path / "home", 3
    writing = [RunningActor(bundles.write_forever, home=str(home), name=f"writer {number}") for number in range(4)]
    try:
        for writer in writing:
            writer.receive_until("wrote")
        exporting = RunningActor(bundles.export_often, home=str(home), to=str(tmp_path), times=times)
        sizes: list[int] = []
        for number in range(times):
            exporting.receive_until("exported")
            for writer in writing:
                writer.receive_until("wrote")
            import_into_home(tmp_path / str(number), tmp_path / f"copy-{number}")
            sizes.append(len(read_events(tmp_path / f"copy-{number}")))
        assert exporting.finish().code == 0
    finally:
        for writer in writing:
            writer.abandon()
    everything, keys = read_events(home), read_keys(home)
    assert sizes == sorted(set(sizes))
    for number, size in enumerate(sizes):
        copy = tmp_path / f"copy-{number}"
        assert read_events(copy) == everything[:size]
        assert everything[size].starts_batch, "a batch was cut in two"
        upto = {event.stream: event.seq for event in everything[:size]}
        assert read_keys(copy) == [key for key in keys if key.appended.last <= upto.get(key.stream, 0)]
