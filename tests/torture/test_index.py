"""The index with full disks, kills, forks and damage while several processes use it.

The tables of faults call the damage M39. Whatever happens, acknowledged content is found again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from torture import disks, searching
from torture.harness import RunningActor, ask, seeded_random
from torture.test_disks import on_a_small_disk


def search_when_full(folder: Path, room: list[int], *, size: str) -> None:
    rounds = on_a_small_disk(folder, disks.search_when_full, room, size=size)
    print(*rounds, sep="\n")
    codes = {code for _, code in rounds}
    assert codes == {"", "STORAGE_FULL"}, "the disk was never full, never large enough, or something else was said"


@pytest.mark.exhaustive
@pytest.mark.spec("M39", "J1", "D09")
def test_a_disk_too_full_for_the_index_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    search_when_full(tmp_path, [0, 4_096, 20_480, 65_536, 0, 131_072, 400_000, 0, 4_000_000], size="24m")


@pytest.mark.torture
@pytest.mark.spec("M39", "J1", "D09")
def test_a_disk_too_full_by_any_page_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    search_when_full(tmp_path, [*range(0, 400_000, 12_288), 4_000_000], size="96m")


def kill_those_who_search(home: str, *, kills: int, seeded: random.Random) -> None:
    acknowledged: list[str] = []
    amid = 0
    for number in range(kills):
        writer = RunningActor(searching.note_and_search_on, home=home, name=f"k{number}")
        for _ in range(seeded.randrange(1, 12)):
            writer.receive_until("noted")
        writer.kill()
        ended = writer.finish()
        assert ended.killed, f"it ended before it could be killed: {ended.output}"
        acknowledged += [id for (id,) in ended.all("noted")]
        amid += len(ended.all("noted")) > len(ended.all("found"))
    assert ask(searching.known, home=home, ids=acknowledged) == acknowledged
    print(f"{kills} kills, {amid} of them amid a search, {len(acknowledged)} notes")
    assert amid, "no kill fell into a search"


@pytest.mark.spec("J1", "M39")
def test_a_process_killed_during_a_search_damages_nothing(tmp_path: Path) -> None:
    kill_those_who_search(str(tmp_path / "home"), kills=6, seeded=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J1", "M39")
def test_many_processes_killed_during_searches_damage_nothing(tmp_path: Path) -> None:
    kill_those_who_search(str(tmp_path / "home"), kills=150, seeded=seeded_random())


def hurt_what_others_use(home: Path, *, times: int, seeded: random.Random) -> None:
    users = [RunningActor(searching.note_and_search_on, home=str(home), name=f"u{n}") for n in range(3)]
    try:
        for _ in range(times):
            for one in users:
                one.receive_until("noted")
            hurt(home / "index.db", seeded)
        for one in users:
            for _ in range(2):  # everything that was running at the last damage, and one more
                one.receive_until("found")
    finally:
        for one in users:
            one.kill()
    ended = [one.finish() for one in users]
    assert all(one.killed for one in ended), "\n".join(one.output for one in ended if not one.killed)
    acknowledged = [id for one in ended for (id,) in one.all("noted")]
    assert ask(searching.known, home=str(home), ids=acknowledged) == acknowledged


def hurt(index: Path, seeded: random.Random) -> None:
    match seeded.randrange(4):
        case 0:
            index.unlink(missing_ok=True)
        case 1:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{index}{suffix}").unlink(missing_ok=True)
        case 2 if index.exists():
            index.write_bytes(seeded.randbytes(20_000))
        case _ if index.exists():
            os.truncate(index, index.stat().st_size // 2)
        case _:
            pass


@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_while_several_processes_use_it_recovers_for_all(tmp_path: Path) -> None:
    hurt_what_others_use(tmp_path / "home", times=6, seeded=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J2", "M39")
def test_an_index_damaged_repeatedly_recovers(tmp_path: Path) -> None:
    hurt_what_others_use(tmp_path / "home", times=150, seeded=seeded_random())


@pytest.mark.spec("J2", "K23")
def test_forks_during_the_searches_of_other_threads(tmp_path: Path) -> None:
    ended = RunningActor(searching.fork_amid_searches, fresh=True, home=str(tmp_path / "home"), forks=15).finish()
    assert ended.code == 0, ended.output
    assert len(ended.all("forked")) == 15


@pytest.mark.torture
@pytest.mark.spec("J2", "K23")
def test_many_forks_during_the_searches_of_other_threads(tmp_path: Path) -> None:
    ended = RunningActor(searching.fork_amid_searches, fresh=True, home=str(tmp_path / "home"), forks=400).finish()
    assert ended.code == 0, ended.output
