"""Reading a database that others write, without a trace: what belongs together is read at one moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inmind.apps.doctor.sqlite_readonly import MAX_ATTEMPTS, ReadMode, ReadOnlyStore, read_undisturbed
from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.store.sqlite.store import SqliteStore

STREAM = "resource/ada"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inmind.db"


def noted(store: SqliteStore) -> None:
    draft = Draft(payload=NoteAdded(text="news"), origin=Origin.USER)
    store.append(STREAM, [draft], expected=store.version(STREAM), at=datetime.now(UTC))


@pytest.mark.spec("J2")
def test_what_is_read_in_a_moment_is_of_that_moment_whatever_is_written_meanwhile(path: Path) -> None:
    store = SqliteStore(path)
    noted(store)
    looked_at = ReadOnlyStore(ReadMode.choose(path))
    with looked_at.read_transaction():
        assert looked_at.version(STREAM) == 1
        noted(store)
        assert (looked_at.version(STREAM), len(looked_at.read(STREAM))) == (1, 1)
    assert looked_at.version(STREAM) == 2
    looked_at.close()
    store.close()


@pytest.mark.spec("J2")
def test_a_reading_during_an_open_or_close_is_repeated(path: Path) -> None:
    SqliteStore(path).close()
    looks: list[ReadMode] = []

    def looking(disturbed: Callable[[int], bool]) -> Callable[[ReadMode], int]:
        def look(way: ReadMode) -> int:
            looks.append(way)
            if disturbed(len(looks)):
                store = SqliteStore(path)
                noted(store)
                store.close()
            return len(looks)

        return look

    assert read_undisturbed(path, looking(lambda look: look == 1)) == 2
    looks.clear()
    assert read_undisturbed(path, looking(lambda _: True)) is None
    assert len(looks) == MAX_ATTEMPTS
