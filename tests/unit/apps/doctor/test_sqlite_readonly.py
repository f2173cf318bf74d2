"""Consistent read-only access to a database that other processes write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inmind.apps.doctor.sqlite_readonly import MAX_ATTEMPTS, ReadMode, ReadOnlyStore, read_undisturbed
from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.store.protocol import Batch
from inmind.store.sqlite.store import SqliteStore

STREAM = "resource/ada"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "inmind.db"


def append_note(store: SqliteStore) -> None:
    draft = Draft(payload=NoteAdded(text="news"), origin=Origin.USER)
    store.append(Batch(STREAM, [draft], store.version(STREAM)), at=datetime.now(UTC))


@pytest.mark.spec("J2")
def test_a_read_transaction_does_not_see_later_writes(path: Path) -> None:
    store = SqliteStore(path)
    append_note(store)
    readonly = ReadOnlyStore(ReadMode.choose(path))
    with readonly.read_transaction():
        assert readonly.version(STREAM) == 1
        append_note(store)
        assert (readonly.version(STREAM), len(readonly.read(STREAM))) == (1, 1)
    assert readonly.version(STREAM) == 2
    readonly.close()
    store.close()


@pytest.mark.spec("J2")
def test_a_read_during_an_open_or_close_is_repeated(path: Path) -> None:
    SqliteStore(path).close()
    attempts: list[ReadMode] = []

    def reader(is_disturbed: Callable[[int], bool]) -> Callable[[ReadMode], int]:
        def read(mode: ReadMode) -> int:
            attempts.append(mode)
            if is_disturbed(len(attempts)):
                store = SqliteStore(path)
                append_note(store)
                store.close()
            return len(attempts)

        return read

    assert read_undisturbed(path, reader(lambda attempt: attempt == 1)) == 2
    attempts.clear()
    assert read_undisturbed(path, reader(lambda _: True)) is None
    assert len(attempts) == MAX_ATTEMPTS
