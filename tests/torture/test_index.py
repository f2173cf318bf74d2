"""The index with full disks, kills, forks and damage during use by several processes.

The tables of faults call the damage M39. Acknowledged content is always found again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from torture import disks, searching
from torture.harness import RunningActor, ask, seeded_random
from torture.test_disks import on_a_small_disk


def search_when_full(folder: Path, room: list[int], *, size: str) -> None:
    rounds = on_a_small_disk(folder, disks.search_when_full, room, size=size)
    print(*rounds, sep="\n")
    codes = {code for _, code in rounds}
    assert codes == {"", "STORAGE_FULL"}, "the disk was never full, never large enough, or another error was raised"


@pytest.mark.exhaustive
@pytest.mark.spec("M39", "J1", "D09")
def test_a_disk_too_full_for_the_index_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    search_when_full(tmp_path, [0, 4_096, 20_480, 65_536, 0, 131_072, 400_000, 0, 4_000_000], size="24m")


@pytest.mark.torture
@pytest.mark.spec("M39", "J1", "D09")
def test_a_disk_too_full_by_any_page_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    search_when_full(tmp_path, [*range(0, 400_000, 12_288), 4_000_000], size="96m")


def kill_searching_processes(home: str, *, kills: int, rng: random.Random) -> None:
    acknowledged: list[str] = []
    during_search = 0
    for number in range(kills):
        writer = RunningActor(searching.note_and_search_forever, home=home, name=f"k{number}")
        for _ in range(rng.randrange(1, 12)):
            writer.receive_until("noted")
        writer.kill()
        outcome = writer.finish()
        assert outcome.killed, f"it ended before it could be killed: {outcome.output}"
        acknowledged += [id for (id,) in outcome.all("noted")]
        during_search += len(outcome.all("noted")) > len(outcome.all("found"))
    assert ask(searching.known_ids, home=home, ids=acknowledged) == acknowledged
    print(f"{kills} kills, {during_search} of them during a search, {len(acknowledged)} notes")
    assert during_search, "no kill happened during a search"


@pytest.mark.spec("J1", "M39")
def test_a_process_killed_during_a_search_damages_nothing(tmp_path: Path) -> None:
    kill_searching_processes(str(tmp_path / "home"), kills=6, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J1", "M39")
def test_many_processes_killed_during_searches_damage_nothing(tmp_path: Path) -> None:
    kill_searching_processes(str(tmp_path / "home"), kills=150, rng=seeded_random())


def damage_used_index(home: str, damage: Callable[[], None], *, processes: int, times: int) -> None:
    """Damage the index while several processes use it; everything they acknowledged is found afterwards."""
    actors = [RunningActor(searching.note_and_search_forever, home=home, name=f"u{n}") for n in range(processes)]
    try:
        for _ in range(times):
            for one in actors:
                one.receive_until("noted")
            damage()
        for one in actors:
            for _ in range(2):  # everything that was running at the last damage, and one more
                one.receive_until("found")
    finally:
        for one in actors:
            one.kill()
    outcomes = [one.finish() for one in actors]
    assert all(one.killed for one in outcomes), "\n".join(one.output for one in outcomes if not one.killed)
    acknowledged = [id for one in outcomes for (id,) in one.all("noted")]
    assert ask(searching.known_ids, home=home, ids=acknowledged) == acknowledged


def damage_index(home: Path, *, times: int) -> None:
    rng = seeded_random()
    damage_used_index(str(home), lambda: damage_files(home / "index.db", rng), processes=3, times=times)


def damage_files(index: Path, rng: random.Random) -> None:
    match rng.randrange(4):
        case 0:
            index.unlink(missing_ok=True)
        case 1:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{index}{suffix}").unlink(missing_ok=True)
        case 2 if index.exists():
            index.write_bytes(rng.randbytes(20_000))
        case _ if index.exists():
            os.truncate(index, index.stat().st_size // 2)
        case _:
            pass


@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_while_several_processes_use_it_recovers_for_all(tmp_path: Path) -> None:
    damage_index(tmp_path / "home", times=6)


@pytest.mark.torture
@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_repeatedly_recovers(tmp_path: Path) -> None:
    damage_index(tmp_path / "home", times=150)


@pytest.mark.spec("J2", "K23")
def test_forks_during_the_searches_of_other_threads(tmp_path: Path) -> None:
    outcome = RunningActor(searching.fork_during_searches, fresh=True, home=str(tmp_path / "home"), forks=15).finish()
    assert outcome.code == 0, outcome.output
    assert len(outcome.all("forked")) == 15


@pytest.mark.torture
@pytest.mark.spec("J2", "K23")
def test_many_forks_during_the_searches_of_other_threads(tmp_path: Path) -> None:
    outcome = RunningActor(searching.fork_during_searches, fresh=True, home=str(tmp_path / "home"), forks=400).finish()
    assert outcome.code == 0, outcome.output
