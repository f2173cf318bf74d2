"""Stores of older and newer schemas, and SQLite libraries with unsafe write-ahead logs.

The tables of faults call these M35, M36 and M41.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest
from tables import each_row
from torture import schemas
from torture.harness import (
    CallPoint,
    RunningActor,
    ask,
    need_strace,
    points_of,
    run,
    run_together,
    sample_points,
    seeded_random,
    traced,
    two_at_a_time,
)
from torture.kills import kill_at_random
from torture.session_steps import connected

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.errors import ReadOnly
from inmind.store.protocol import Batch
from inmind.store.sqlite.connection import MIGRATIONS, journal_mode
from inmind.store.sqlite.store import SqliteStore

AGES = range(len(MIGRATIONS))
SOME_AGES = [age if age in (0, AGES[-1]) else pytest.param(age, marks=pytest.mark.exhaustive) for age in AGES]


# -- killed in a migration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", AGES)
def test_a_migration_killed_before_any_statement_is_run_again(tmp_path: Path, steps: int) -> None:
    """M35, J1: each migration is one commit with its version; the next process continues."""
    died = ask(schemas.migrate_and_die, home=str(tmp_path), steps=steps)
    print(f"{len(died)} statements from schema {steps}")
    assert len(died) > 10, "no migration was killed"


def kill_migrations(folder: Path, *, steps: int, number: int, rng: random.Random) -> None:
    old = folder / "old"
    ask(schemas.create_old, home=str(old), steps=steps)

    def fresh(name: str) -> str:
        return shutil.copytree(old, folder / name).as_posix()

    whole = traced(schemas.migrate, home=fresh("counted"), trace=folder / "counted.trace")
    assert whole.code == 0, whole.output
    points = points_of(whole)
    chosen = sample_points(points, number, rng)
    print(f"{len(chosen)} of {len(points)} points from schema {steps}")

    def kill(point: CallPoint) -> None:
        home = fresh(f"home-{point}")
        inject = f"{point.call}:signal=SIGKILL:when={point.number}"
        outcome = traced(schemas.migrate, inject, home=home, trace=folder / f"{point}.trace")
        assert outcome.killed, f"at {point} no fault was injected: {outcome.code} {outcome.output}"
        checked = run(schemas.look, home=home, steps=steps)
        assert checked.code == 0, f"killed at {point}:\n{checked.output}"
        shutil.rmtree(home)

    two_at_a_time(kill, chosen)


@pytest.mark.parametrize("steps", SOME_AGES)
def test_a_migration_killed_at_a_system_call_is_run_again(tmp_path: Path, steps: int) -> None:
    """M35, C02, J1: at calls from the whole migration."""
    need_strace()
    kill_migrations(tmp_path, steps=steps, number=4, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.parametrize("steps", AGES)
def test_a_migration_killed_at_every_system_call_is_run_again(tmp_path: Path, steps: int) -> None:
    """M35, C02, J1: at each of them."""
    need_strace()
    kill_migrations(tmp_path, steps=steps, number=1_000_000, rng=seeded_random())


# -- two at once, and too new ------------------------------------------------------------------------------


def migrate_at_once(folder: Path, *, steps: int, processes: int) -> None:
    home = str(folder)
    ask(schemas.create_old, home=home, steps=steps)
    names = [f"p{n}" for n in range(processes)]
    run_together([RunningActor(schemas.migrate_together, home=home, name=name) for name in names])
    texts = ask(schemas.look, home=home, steps=steps)
    assert sorted(text for text in texts if text.startswith("p")) == names


@pytest.mark.parametrize("steps", SOME_AGES)
def test_processes_that_open_an_old_store_at_once_migrate_it_once(tmp_path: Path, steps: int) -> None:
    """M36, J2: one of them migrates, all continue."""
    for turn in range(3):
        migrate_at_once(tmp_path / str(turn), steps=steps, processes=2)


@pytest.mark.torture
@pytest.mark.parametrize("steps", AGES)
def test_many_processes_that_open_an_old_store_at_once_migrate_it_once(tmp_path: Path, steps: int) -> None:
    """M36, J2: eight processes, 40 times."""
    for turn in range(40):
        migrate_at_once(tmp_path / str(turn), steps=steps, processes=8)


def test_a_store_of_a_newer_inmind_is_read_and_not_written(tmp_path: Path) -> None:
    """M36: every write is refused with the next step, and nothing has changed."""
    home = str(tmp_path / "home")
    ask(schemas.create_newer, home=home)
    before = ask(schemas.dump, home=home)
    result = ask(schemas.use_newer, home=home)
    assert result["reads"] == {
        "overview": "from tomorrow\n",
        "memory": "kept\n",
        "documents": ["MEMORY.md", "overview.md"],
        "sessions": ["s"],
        "messages": [{"role": "user", "content": "hello"}],
        "prompt": "user",
        "past": 2,
    }
    for name, (code, message) in result["refused"].items():
        assert code == "READ_ONLY", f"{name}: {code} {message}"
        assert f"schema {len(MIGRATIONS) + 1}" in message
        assert "upgrade inmind" in message
    assert ask(schemas.dump, home=home) == before


def test_an_open_home_refuses_writes_after_a_newer_inmind_migrated_it(tmp_path: Path) -> None:
    """M36: its next write is refused, and reads still work."""
    store = SqliteStore(tmp_path / "inmind.db")
    draft = Draft(payload=DocumentWritten(path="overview.md", text="of old"), origin=Origin.USER)
    store.append(Batch("session/s", [draft], 0), at=schemas.WHEN)
    newer = connected(tmp_path / "inmind.db")
    newer.pragma("user_version", len(MIGRATIONS) + 1)
    newer.close()
    for _ in range(2):
        with pytest.raises(ReadOnly, match=f"schema {len(MIGRATIONS) + 1}.*upgrade inmind"):
            store.append(Batch("session/s", [draft], 1), at=schemas.WHEN)
    assert [event.seq for event in store.read("session/s")] == [1]
    store.close()


# -- an unsafe library -------------------------------------------------------------------------------------


@each_row(
    ("library", "mode"),
    [
        ("3.7.0", "delete"),
        ("3.39.5", "delete"),
        ("3.40.1", "delete"),
        ("3.44.5", "delete"),
        ("3.44.6", "wal"),
        ("3.44.9", "wal"),
        ("3.45.0", "delete"),
        ("3.50.6", "delete"),
        ("3.50.7", "wal"),
        ("3.50.10", "wal"),
        ("3.51.0", "delete"),
        ("3.51.2", "delete"),
        ("3.51.3", "wal"),
        ("3.51.10", "wal"),
        ("3.52.0", "wal"),
        ("3.100.0", "wal"),
        ("4.0.0", "wal"),
    ],
)
def test_only_safe_sqlite_versions_use_a_write_ahead_log(library: str, mode: str) -> None:
    """M41: versions with the fix, including maintenance releases of older lines."""
    assert journal_mode(library) == mode


def test_the_sqlite_of_this_python_is_checked_too() -> None:
    """M41: inmind does not use it, because it may be unsafe."""
    version = sqlite3.sqlite_version_info
    fixed = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51, 0) or (3, 44, 6) <= version < (3, 45, 0)
    assert journal_mode(sqlite3.sqlite_version) == ("wal" if fixed else "delete")


def test_an_unsafe_library_uses_no_log_and_logs_a_warning(tmp_path: Path) -> None:
    """M41: once at start, with version and next step; and a home can switch between the modes."""
    home = str(tmp_path / "home")
    safe = run(schemas.open_with, home=home, library="3.51.3")
    assert (safe.answer["mode"], safe.output) == ("wal", "")
    for library in ("3.40.1", "3.50.6"):
        unsafe = run(schemas.open_with, home=home, library=library)
        assert unsafe.answer["mode"] == "delete"
        assert unsafe.answer["files"] == ["inmind.db"]
        assert unsafe.output.count(f"SQLite {library}") == 1
        assert "apsw 3.51.3" in unsafe.output
    back = ask(schemas.open_with, home=home, library="3.51.3")
    assert (back["mode"], back["texts"]) == ("wal", ["3.51.3", "3.40.1", "3.50.6", "3.51.3"])


def test_without_a_log_a_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """M41, C02, J1: the rollback journal has the same guarantees, but is slower."""
    kill_at_random(tmp_path / "home", kills=10, rng=seeded_random(), library="3.40.1")


@pytest.mark.torture
def test_without_a_log_writers_killed_for_long_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """M41, C02, J1: many kills of one home."""
    kill_at_random(tmp_path / "home", kills=200, rng=seeded_random(), library="3.40.1")
