"""Values that cannot be stored are refused, without other effects.

A value that is too large, or a violated constraint, is not a disk failure: the store continues to write. A name cannot
lead out of its folder. An event that cannot be folded is not stored. A key belongs to one request, even if the request
changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import apsw
import pytest
from torture import harness

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import Reverted, TailChanged
from inmind.errors import KeyReused, NotDurable, NotFound, StoreError, UnsafeStorage
from inmind.store.atomic_files import Folder
from inmind.store.file_operations import FileState
from inmind.store.protocol import Batch, Key, PublishedVersion, Snapshot, Store
from inmind.store.sqlite.store import SqliteStore
from inmind.store.stream import Decision, Stream
from inmind.testing import InMemoryStore, ManualClock

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def page_draft(text: str) -> Draft:
    return Draft(payload=DocumentWritten(path="overview.md", text=text), origin=Origin.USER)


# -- by the database ---------------------------------------------------------------------------------------


def refuses_the_number(store: SqliteStore) -> None:
    store.save_snapshot("s", Snapshot(seq=cast(int, "one"), fold_version=1, body=""))


def refuses_the_mark(store: SqliteStore) -> None:
    store.mark_published("s", "overview.md", PublishedVersion(cast(str, None), seq=1))


def refuses_the_size(store: SqliteStore) -> None:
    store.append(Batch("s", [page_draft("fits"), page_draft("x" * 200_000)], 1), at=WHEN, key=Key("k", "r"))


def misses_a_table(store: SqliteStore) -> None:
    other: Any = apsw.Connection(str(store.path))
    other.execute("DROP TABLE snapshots")
    other.close()
    store.save_snapshot("s", Snapshot(seq=1, fold_version=1, body=""))


@pytest.fixture
def small_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """A store that accepts no large values, since the real limit is a gigabyte."""

    def shrink(connection: Any) -> None:
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, 100_000)

    monkeypatch.setattr(apsw, "connection_hooks", [shrink])
    store = SqliteStore(tmp_path / "inmind.db")
    store.append(Batch("s", [page_draft("one")], 0), at=WHEN)
    yield store
    store.close()


@pytest.mark.parametrize("refuses", [refuses_the_number, refuses_the_mark, refuses_the_size, misses_a_table])
def test_a_value_refused_by_the_database_is_not_a_disk_failure(
    small_store: SqliteStore, refuses: Callable[[SqliteStore], None]
) -> None:
    """C06, A3: nothing is stored, and the next write succeeds."""
    with pytest.raises(StoreError, match="nothing was stored") as caught:
        refuses(small_store)
    assert not isinstance(caught.value, NotDurable)
    assert small_store.read_only_reason == ""
    assert small_store.receipt("s", Key("k", "r")) is None
    small_store.append(Batch("s", [page_draft("two")], 1), at=WHEN)
    assert [event.payload for event in small_store.read("s")] == [page_draft("one").payload, page_draft("two").payload]


# -- by the folder -----------------------------------------------------------------------------------------

LEADING_OUT = ["", ".", "..", "../x", "a/../../x", "a/..", "a/.", "a//b", "/x", "a/", "./x", "a\x00b"]

WRITES: dict[str, Callable[[Folder, str], object]] = {
    "replace": lambda folder, name: folder.replace(name, b"x"),
    "exchange": lambda folder, name: folder.exchange(name, b"x", expected=FileState()),
    "remove": lambda folder, name: folder.remove(name, expected=FileState(data=b"x")),
    "grow": lambda folder, name: grow(folder, name),
}


def grow(folder: Folder, name: str) -> None:
    with folder.open_append(name) as file:
        file.append(b"x")


@pytest.mark.spec("J3")
@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.parametrize("write", WRITES)
def test_no_name_leads_out_of_its_folder(tmp_path: Path, write: str, name: str) -> None:
    (tmp_path / "outside" / "inner" / "a").mkdir(parents=True)
    folder = Folder(tmp_path / "outside" / "inner")
    with pytest.raises(UnsafeStorage):
        WRITES[write](folder, name)
    assert folder.read(name, max_bytes=10).read_error
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != ".lock"]
    assert files == []


# -- by the fold -------------------------------------------------------------------------------------------


class Texts:
    """Folds the texts of documents; it fails on a TailChanged."""

    version = 1

    def initial(self) -> tuple[str, ...]:
        return ()

    def apply(self, state: tuple[str, ...], event: Event) -> tuple[str, ...]:
        if isinstance(event.payload, TailChanged):
            raise ZeroDivisionError("a tail")
        return (*state, event.payload.text) if isinstance(event.payload, DocumentWritten) else state

    def revert(self, past: tuple[str, ...], present: tuple[str, ...], event: Event) -> tuple[str, ...]:
        return (*past, f"after {len(present)}, at {event.seq}")

    def freeze(self, state: tuple[str, ...]) -> dict[str, Any]:
        return {"texts": list(state)}

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(frozen["texts"])


@pytest.fixture(params=["in_memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = InMemoryStore() if request.param == "in_memory" else SqliteStore(tmp_path / "inmind.db")
    yield store
    store.close()


@pytest.fixture
def stream(store: Store) -> Stream[tuple[str, ...]]:
    stream = Stream(store, "s", Texts(), ManualClock())
    stream.append(page_draft("one"), page_draft("two"))
    stream.append(page_draft("three"))
    return stream


def tail_draft() -> Draft:
    return Draft(payload=TailChanged(text="unbearable"), origin=Origin.OPERATOR)


def revert_draft(to: int) -> Draft:
    return Draft(payload=Reverted(to=to), origin=Origin.USER)


def test_an_event_that_cannot_be_folded_is_never_stored(store: Store, stream: Stream[tuple[str, ...]]) -> None:
    """A2, A3: it would make the stream unreadable."""
    with pytest.raises(ZeroDivisionError):
        stream.append(page_draft("four"), tail_draft(), page_draft("five"), key=Key("k", "r"))
    assert (store.version("s"), stream.version, stream.state) == (3, 3, ("one", "two", "three"))
    assert store.receipt("s", Key("k", "r")) is None
    assert stream.append(page_draft("four"), key=Key("k", "r")).last == 4
    assert Stream(store, "s", Texts(), ManualClock()).state == stream.state == ("one", "two", "three", "four")


@pytest.mark.parametrize("to", [-1, 4, 99])
def test_a_revert_to_a_future_event_is_refused(store: Store, stream: Stream[tuple[str, ...]], to: int) -> None:
    """A4: such an event could not be folded."""
    with pytest.raises(NotFound):
        stream.append(revert_draft(to))
    assert (store.version("s"), stream.state) == (3, ("one", "two", "three"))


@pytest.mark.parametrize("to", [0, 1, 2, 3, 4, 5])
def test_a_revert_folds_equally_before_and_after_it_is_stored(
    store: Store, stream: Stream[tuple[str, ...]], to: int
) -> None:
    """A4: also to a state in the middle of the same batch."""
    stream.append(page_draft("four"), page_draft("five"), revert_draft(to), page_draft("six"))
    other = Stream(store, "s", Texts(), ManualClock())
    assert (other.state, other.version) == (stream.state, stream.version)
    assert stream.state == (*("one", "two", "three", "four", "five")[:to], "after 5, at 6", "six")


# -- by a key ----------------------------------------------------------------------------------------------


def commit_nothing(stream: Stream[tuple[str, ...]], request: str) -> Any:
    return stream.commit(lambda _, __: Decision((), "nothing to do"), key=Key("k", request))


def test_a_request_without_changes_consumes_its_key(store: Store, stream: Stream[tuple[str, ...]]) -> None:
    """A6, K25: the same request gets the same result later, and another one is refused."""
    first = commit_nothing(stream, "one")
    assert (first.appended.first, first.appended.last, first.result) == (4, 3, "nothing to do")
    stream.append(page_draft("four"))
    again = commit_nothing(stream, "one")
    assert (again.appended.first, again.appended.last, again.appended.repeated) == (4, 3, True)
    assert again.appended.at == first.appended.at
    with pytest.raises(KeyReused):
        stream.append(page_draft("five"), key=Key("k", "other"))
    assert store.version("s") == 4


def test_a_decision_without_changes_uses_the_newest_state(store: Store, stream: Stream[tuple[str, ...]]) -> None:
    """A3, A6: no key is stored for a decision on a stale state."""
    Stream(store, "s", Texts(), ManualClock()).append(page_draft("four"))
    seen: list[int] = []

    def decide(state: tuple[str, ...], _: datetime) -> Decision[tuple[str, ...], int]:
        seen.append(len(state))
        return Decision((), len(state))

    done = stream.commit(decide, key=Key("k", "r"))
    assert (seen, done.result, done.appended.last) == ([3, 4], 4, 4)


# -- by the harness ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("built", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_without_strace_ci_fails_and_a_local_run_skips(
    monkeypatch: pytest.MonkeyPatch, built: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", built)
    monkeypatch.setattr(harness, "_strace_problem", lambda: "strace is not installed")
    with pytest.raises(outcome, match="strace is not installed"):
        harness.need_strace()
