"""Guarantees of every store.

Hosts can rely on what passes here for all stores; the rest is tested with each store. The state machine at the end
looks for a sequence of calls in which two stores differ.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from itertools import count, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from postgres import SERVER_VARIABLE, Tenants, missing_reason
from profiles import examples
from strategies import any_entity_sightings, json_values
from tables import each_row

from inmind import store as store_package
from inmind.core.events import KINDS
from inmind.core.events.base import TRUST_BY_ORIGIN, Draft, Event, EventPayload, Origin, Trust
from inmind.core.events.crystals import CrystalCreated
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import GuardVerdict, KnowledgeGap, LearnedSkill, PageLine
from inmind.core.events.session import AnchoredBlock, MessageAdded, RetainedItem, SessionOpened, Stub
from inmind.errors import Closed, Conflict, InmindError, KeyReused
from inmind.store.protocol import AppendResult, Batch, Key, PublishedVersion, RateWindow, Receipt, Snapshot, Store
from inmind.store.sqlite.connection import MIGRATIONS
from inmind.store.sqlite.store import SqliteStore
from inmind.testing import InMemoryStore

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LATER = WHEN + timedelta(days=40, microseconds=1)


def in_memory(_: Path) -> Store:
    return InMemoryStore()


def sqlite(folder: Path) -> Store:
    return SqliteStore(folder / "inmind.db")


class PostgresTenants:
    """One tenant of the shared server per folder, reused when a folder is opened again."""

    def __init__(self) -> None:
        self.tenants: Tenants | None = None
        self._stack, self._urls = ExitStack(), dict[Path, str]()

    def open(self, folder: Path) -> Store:
        from inmind.store.postgres import PostgresStore

        if folder not in self._urls:
            if self.tenants is None:
                pytest.skip("no PostgreSQL server")
            self._urls[folder] = self._stack.enter_context(self.tenants.fresh())
        return PostgresStore.open(self._urls[folder])

    def close(self) -> None:
        self._stack.close()
        self._urls.clear()


_postgres_tenants = PostgresTenants()
postgres = _postgres_tenants.open


@pytest.fixture(scope="module", autouse=True)
def _a_server(request: pytest.FixtureRequest) -> Iterator[None]:
    if missing_reason() is None or os.environ.get(SERVER_VARIABLE):
        _postgres_tenants.tenants = request.getfixturevalue("tenants")
    yield
    _postgres_tenants.close()


STORES: dict[str, Callable[[Path], Store]] = {"in_memory": in_memory, "sqlite": sqlite, "postgres": postgres}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store: Store = STORES[request.param](tmp_path)
    yield store
    store.close()


def a_draft(text: str = "text", *, path: str = "overview.md", origin: Origin = Origin.USER) -> Draft:
    return Draft(payload=DocumentWritten(path=path, text=text), origin=origin)


def a_message(text: str) -> Draft:
    return Draft(payload=MessageAdded(wire={"role": "user", "content": text}), origin=Origin.USER)


def append(store: Store, *texts: str, stream: str = "s", at: datetime = WHEN, key: Key | None = None) -> AppendResult:
    drafts = [a_draft(text) for text in texts]
    return store.append(Batch(stream, drafts, store.version(stream)), at=at, key=key)


def texts(events: Any) -> list[str]:
    return [event.payload.text for event in events]


# -- order and batches -------------------------------------------------------------------------------------


def test_events_are_read_in_order_without_gaps(store: Store) -> None:
    """A1, A3: for any sizes of batches, the numbers are 1, 2, 3, …"""
    append(store, "a")
    append(store, "b", "c", "d")
    append(store, "e")
    assert [event.seq for event in store.read("s")] == [1, 2, 3, 4, 5]
    assert texts(store.read("s")) == ["a", "b", "c", "d", "e"]
    assert store.version("s") == 5


def test_an_append_returns_the_numbers_of_its_events(store: Store) -> None:
    append(store, "a", "b")
    assert append(store, "c", "d", at=LATER) == AppendResult(first=3, last=4, at=LATER)


def test_only_the_first_event_of_a_batch_starts_it(store: Store) -> None:
    append(store, "a", "b", "c")
    append(store, "d")
    assert [event.starts_batch for event in store.read("s")] == [True, False, False, True]


def test_streams_are_numbered_independently(store: Store) -> None:
    append(store, "a", "b", stream="one")
    append(store, "c", stream="two")
    append(store, "d", stream="one")
    assert [event.id for event in store.read("one")] == ["one#1", "one#2", "one#3"]
    assert [event.id for event in store.read("two")] == ["two#1"]


def test_a_stream_that_does_not_exist_is_empty(store: Store) -> None:
    assert (store.version("none"), list(store.read("none"))) == (0, [])
    assert store.snapshot("none", fold_version=1) is None
    assert store.published_versions("none") == {}
    assert store.receipt("none", Key("k", "r")) is None


def test_a_batch_is_stored_completely_or_not_at_all(store: Store) -> None:
    """A3: Python accepts an unpaired surrogate, databases do not."""
    append(store, "a")
    with pytest.raises(ValueError, match="surrogate"):
        append(store, "b", "\ud800", "c", key=Key("k", "r"))
    assert texts(store.read("s")) == ["a"]
    assert store.receipt("s", Key("k", "r")) is None
    append(store, "d")
    assert texts(store.read("s")) == ["a", "d"]


def test_a_new_stream_whose_first_batch_failed_does_not_exist(store: Store) -> None:
    with pytest.raises(Conflict):
        store.append(Batch("new", [a_draft()], 3), at=WHEN)
    with pytest.raises(ValueError, match="surrogate"):
        append(store, "\ud800", stream="new")
    assert list(store.stream_names("")) == []
    append(store, "a", stream="new")
    assert list(store.stream_names("")) == ["new"]


# -- expectations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", [0, 1, 3, 99])
def test_a_stale_expectation_is_a_conflict_with_both_versions_and_stores_nothing(store: Store, expected: int) -> None:
    """A3: the error has the actual and the expected version."""
    append(store, "a", "b")
    with pytest.raises(Conflict) as caught:
        store.append(Batch("s", [a_draft("c")], expected), at=WHEN, key=Key("k", "r"))
    assert (caught.value.stream, caught.value.expected, caught.value.actual) == ("s", expected, 2)
    assert texts(store.read("s")) == ["a", "b"]
    assert store.receipt("s", Key("k", "r")) is None


# -- two streams at once -----------------------------------------------------------------------------------


def test_events_of_two_streams_are_stored_together(store: Store) -> None:
    """A3: each numbered in its own stream, both at the same time."""
    append(store, "a", stream="one")
    batch = Batch("two", [a_draft("c"), a_draft("d")], expected=0)
    appended = store.append(Batch("one", [a_draft("b")], 1), at=LATER, companion=batch)
    assert appended == AppendResult(first=2, last=2, at=LATER)
    assert (texts(store.read("one")), texts(store.read("two"))) == (["a", "b"], ["c", "d"])
    assert [(event.id, event.starts_batch, event.at) for event in store.read("two")] == [
        ("two#1", True, LATER),
        ("two#2", False, LATER),
    ]


@pytest.mark.parametrize(("expected", "companion_expected", "stream"), [(0, 1, "one"), (1, 0, "two"), (1, 2, "two")])
def test_a_stale_expectation_of_either_stream_stores_nothing_in_both(
    store: Store, expected: int, companion_expected: int, stream: str
) -> None:
    """A3: the conflict names the stream that has changed."""
    append(store, "a", stream="one")
    append(store, "b", stream="two")
    key, batch = Key("k", "r"), Batch("two", [a_draft("d")], expected=companion_expected)
    with pytest.raises(Conflict) as caught:
        store.append(Batch("one", [a_draft("c")], expected), at=WHEN, key=key, companion=batch)
    assert (caught.value.stream, caught.value.actual) == (stream, 1)
    assert (texts(store.read("one")), texts(store.read("two"))) == (["a"], ["b"])
    assert store.receipt("one", key) is None


def test_a_failure_in_one_stream_stores_nothing_in_the_other(store: Store) -> None:
    """A3: Python accepts an unpaired surrogate, databases do not."""
    with pytest.raises(ValueError, match="surrogate"):
        store.append(Batch("one", [a_draft("a")], 0), at=WHEN, companion=Batch("two", [a_draft("\ud800")], expected=0))
    assert list(store.stream_names("")) == []


def test_a_repeated_key_creates_no_companion_stream(store: Store) -> None:
    """A6: not even one without events."""
    key = Key("k", "r")
    append(store, "a", stream="one", key=key)
    store.append(Batch("one", [], 0), at=LATER, key=key, companion=Batch("two", [a_draft("b")], expected=0))
    assert list(store.stream_names("")) == ["one"]


def test_a_key_covers_the_companion_events(store: Store) -> None:
    """A6: the first result again, and no second effect in either stream."""
    key, batch = Key("k", "r"), Batch("two", [a_draft("b")], expected=0)
    first = store.append(Batch("one", [], 0), at=WHEN, key=key, companion=batch)
    again = store.append(Batch("one", [a_draft("a")], 0), at=LATER, key=key, companion=batch)
    assert again == dataclasses.replace(first, repeated=True)
    assert (store.version("one"), texts(store.read("two"))) == (0, ["b"])
    assert store.receipt("two", key) is None


# -- idempotency keys --------------------------------------------------------------------------------------


def test_the_same_key_stores_once_and_returns_the_same_result(store: Store) -> None:
    """A6: a retry gets the first result, although its expected version is stale by now."""
    key = Key("k", "request")
    first = append(store, "a", "b", key=key)
    append(store, "c")
    again = store.append(Batch("s", [a_draft("a"), a_draft("b")], 0), at=LATER, key=key)
    assert again == dataclasses.replace(first, repeated=True)
    assert store.receipt("s", key) == again
    assert texts(store.read("s")) == ["a", "b", "c"]


def test_the_same_key_for_another_request_is_refused_and_stores_nothing(store: Store) -> None:
    """A6: choosing one of the two requests would lose the other."""
    append(store, "a", key=Key("k", "one"))
    with pytest.raises(KeyReused) as caught:
        append(store, "b", key=Key("k", "other"))
    assert caught.value.key == "k"
    with pytest.raises(KeyReused):
        store.receipt("s", Key("k", "other"))
    assert texts(store.read("s")) == ["a"]


def test_a_key_belongs_to_its_stream(store: Store) -> None:
    key = Key("k", "r")
    append(store, "a", stream="one", key=key)
    assert store.receipt("two", key) is None
    assert append(store, "b", stream="two", key=key) == AppendResult(first=1, last=1, at=WHEN)
    assert texts(store.read("two")) == ["b"]


def test_an_empty_batch_keeps_its_key(store: Store) -> None:
    """A6: a request without events always returns the same result too, with its original time."""
    key = Key("k", "request")
    append(store, "a", "b")
    empty = store.append(Batch("s", [], 2), at=LATER, key=key)
    assert empty == AppendResult(first=3, last=2, at=LATER)
    append(store, "c")
    assert store.receipt("s", key) == dataclasses.replace(empty, repeated=True)
    assert store.append(Batch("s", [a_draft("d")], 0), at=WHEN, key=key) == store.receipt("s", key)
    with pytest.raises(KeyReused):
        append(store, "d", key=Key("k", "other"))
    with pytest.raises(Conflict):
        store.append(Batch("s", [], 2), at=WHEN, key=Key("k2", "request"))
    assert (store.version("s"), texts(store.read("s"))) == (3, ["a", "b", "c"])


@pytest.mark.parametrize("value", ["k", "%", "'", "键", "🔑", "a\x01b", "a" * 200])
def test_any_text_can_be_a_key(store: Store, value: str) -> None:
    append(store, "a", key=Key(value, "r"))
    assert append(store, "a", key=Key(value, "r")).repeated
    assert store.receipt("s", Key(value + "x", "r")) is None


# -- reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "until", "seqs"),
    [
        (0, None, [1, 2, 3, 4, 5]),
        (2, None, [3, 4, 5]),
        (5, None, []),
        (99, None, []),
        (0, 0, []),
        (0, 3, [1, 2, 3]),
        (1, 3, [2, 3]),
        (3, 3, []),
        (4, 2, []),
        (0, 99, [1, 2, 3, 4, 5]),
    ],
)
def test_reading_starts_after_one_event_and_ends_with_another(
    store: Store, after: int, until: int | None, seqs: list[int]
) -> None:
    append(store, *"abcde")
    assert [event.seq for event in store.read("s", after=after, until=until)] == seqs


def test_reading_one_kind_keeps_order_and_numbers(store: Store) -> None:
    batch = [a_message("1"), a_draft("2"), a_message("3"), a_draft("4"), a_message("5")]
    store.append(Batch("s", batch, 0), at=WHEN)
    assert [event.seq for event in store.read("s", kind="message")] == [1, 3, 5]
    assert [event.seq for event in store.read("s", kind="document", after=2)] == [4]
    assert [event.seq for event in store.read("s", kind="message", after=1, until=4)] == [3]
    assert list(store.read("s", kind="prompt")) == []


HOSTILE = [
    "a",
    "a%",
    "a%b",
    "a_b",
    "axb",
    "a'b",
    'a"b',
    "a;--",
    "a\\b",
    "a\x01b",
    "aä",
    "a文",
    "a🎉",
    "A",
    "",
    " ",
    "b",
]


def test_streams_are_found_by_prefix_without_wildcards(store: Store) -> None:
    """J3, N59: a wildcard in a name is an ordinary character."""
    for name in HOSTILE:
        append(store, name, stream=name)
    for prefix in [*HOSTILE, "a%%", "_", "%", "🎉"]:
        matching = sorted(name for name in HOSTILE if name.startswith(prefix))
        assert (list(store.stream_names(prefix)), list(store.stream_names(prefix, limit=1))) == (matching, matching[:1])
    for name in HOSTILE:
        assert texts(store.read(name)) == [name]


NAMES = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1, max_codepoint=0x10FFFE), max_size=4)


def test_all_stores_sort_and_find_streams_in_the_same_way(tmp_path: Path) -> None:
    stores, number = [make(tmp_path) for make in STORES.values()], count()

    @given(names=st.sets(NAMES, max_size=6), prefix=NAMES)
    def check_names(names: set[str], prefix: str) -> None:
        place = f"{next(number)}/"
        for store in stores:
            for name in names:
                append(store, "x", stream=place + name)
        matching = sorted(place + name for name in names if name.startswith(prefix))
        assert [list(store.stream_names(place + prefix)) for store in stores] == [matching] * len(stores)

    check_names()
    for store in stores:
        store.close()


def test_stream_infos_are_sorted_by_last_write(store: Store) -> None:
    opened = [Draft(payload=SessionOpened(resource=name, cwd="/"), origin=Origin.OPERATOR) for name in ("ada", "lin")]
    for stream, draft, at in (
        ("session/b", opened[0], WHEN),
        ("session/a", opened[0], WHEN),
        ("session/c", opened[1], LATER),
    ):
        store.append(Batch(stream, [draft], 0), at=at)
    append(store, "x", stream="session/b", at=LATER)
    append(store, stream="session/keys", key=Key("k", "r"))
    append(store, "y", stream="other", at=LATER)
    infos = [(one.first.stream, one.first.seq, one.version, one.updated) for one in store.stream_infos("session/")]
    assert infos == [("session/b", 1, 2, LATER), ("session/c", 1, 1, LATER), ("session/a", 1, 1, WHEN)]
    assert [one.first.payload for one in store.stream_infos("session/", owner="ada")] == [opened[0].payload] * 2
    assert [one.first.stream for one in store.stream_infos("session/", limit=2)] == ["session/b", "session/c"]
    assert [one.first.stream for one in store.stream_infos("session/", owner="ada", limit=1)] == ["session/b"]
    assert [*store.stream_infos("session/", owner="nobody"), *store.stream_infos("none")] == []


def test_a_summary_counts_kinds_and_knows_the_last_time(store: Store) -> None:
    store.append(Batch("s", [a_message("1"), a_draft("2"), a_message("3")], 0), at=WHEN)
    store.append(Batch("s", [a_message("4")], 3), at=LATER)
    append(store, "elsewhere", stream="t")
    summary = store.summary("s")
    assert (dict(summary.kinds), summary.updated) == ({"message": 3, "document": 1}, LATER)


# -- reading all streams -----------------------------------------------------------------------------------

WRITTEN = [DocumentWritten.kind]


def read_all(store: Store, *kinds: str, limit: int = 3) -> list[Event]:
    """All indexed events, read in batches."""
    events: list[Event] = []
    position = 0
    while news := store.events_since(position, kinds=kinds or list(KINDS), limit=limit):
        assert len(news) <= limit
        events += [event for _, event in news if event]
        position = news[-1][0]
    return events


@pytest.mark.spec("H3")
def test_events_of_all_streams_are_read_in_commit_order(store: Store) -> None:
    append(store, "a", "b", stream="two", at=LATER)
    append(store, "c", stream="one")
    companion = Batch("three", [a_draft("e")], 0)
    store.append(Batch("two", [a_draft("d")], 2), at=WHEN, companion=companion)
    append(store, "f", stream="one")
    assert [event.id for event in read_all(store)] == ["two#1", "two#2", "one#1", "two#3", "three#1", "one#2"]
    assert read_all(store) == read_all(store, limit=1) == read_all(store, limit=100)
    positions = [position for position, _ in store.events_since(0, kinds=WRITTEN, limit=100)]
    assert positions == sorted(set(positions))


@pytest.mark.spec("H3")
def test_only_the_requested_kinds_are_returned_and_counted(store: Store) -> None:
    store.append(Batch("s", [a_draft("a"), a_message("m"), a_message("n"), a_draft("b")], 0), at=WHEN)
    assert texts(read_all(store, *WRITTEN)) == ["a", "b"]
    assert [event.seq for event in read_all(store, MessageAdded.kind)] == [2, 3]
    assert texts(event for _, event in store.events_since(0, kinds=WRITTEN, limit=1)) == ["a"]
    assert (list(store.events_since(0, kinds=[], limit=9)), list(store.events_since(0, kinds=WRITTEN, limit=0))) == (
        [],
        [],
    )


@pytest.mark.spec("H3")
def test_there_are_no_events_after_the_last_position(store: Store) -> None:
    assert list(store.events_since(0, kinds=WRITTEN, limit=9)) == []
    append(store, "a", "b")
    last = store.events_since(0, kinds=WRITTEN, limit=9)[-1][0]
    assert list(store.events_since(last, kinds=WRITTEN, limit=9)) == []
    with pytest.raises(Conflict):
        store.append(Batch("s", [a_draft("no")], 7), at=WHEN)
    append(store, "again", stream="other", key=Key("k", "r"))
    append(store, "again", stream="other", key=Key("k", "r"))
    assert texts(event for _, event in store.events_since(last, kinds=WRITTEN, limit=9)) == ["again"]


@pytest.mark.spec("H3", "J2")
def test_a_reader_that_follows_writers_sees_each_event_once(store: Store, tmp_path: Path) -> None:
    """No event appears later before a position that was already read."""
    writers, each = 3, 40
    stores = [sqlite(tmp_path) if type(store) is SqliteStore else store for _ in range(writers)]

    def write(number: int) -> None:
        for n in range(each):
            append(stores[number], f"{number}.{n}", f"{number}.{n}+", stream=f"s{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    seen: list[Event] = []
    position = 0
    while True:
        finished = not any(thread.is_alive() for thread in threads)
        news = store.events_since(position, kinds=WRITTEN, limit=7)
        seen += [event for _, event in news if event]
        position = news[-1][0] if news else position
        if finished and not news:
            break
    for other in stores:
        if other is not store:
            other.close()
    assert seen == read_all(store)
    for number in range(writers):
        assert [event for event in seen if event.stream == f"s{number}"] == list(store.read(f"s{number}"))
    assert len(seen) == writers * each * 2


@pytest.mark.spec("M40")
def test_the_last_position_is_that_of_the_newest_event(store: Store) -> None:
    assert store.last_position() == 0
    append(store, "a", "b", stream="one")
    append(store, "c", stream="two")
    assert store.last_position() == store.events_since(0, kinds=WRITTEN, limit=9)[-1][0]
    append(store, key=Key("k", "r"))
    assert store.last_position() == store.events_since(0, kinds=WRITTEN, limit=9)[-1][0]


def test_owners_are_sorted_and_limited_after_a_name(store: Store) -> None:
    for name in ("b", "a", "d", "c"):
        append(store, "text", stream=f"resource/{name}")
    assert list(store.owners()) == ["a", "b", "c", "d"]
    assert list(store.owners(after="a", limit=2)) == ["b", "c"]
    assert list(store.owners(after="d")) == []


def test_the_position_of_an_owner_is_that_of_its_last_event(store: Store) -> None:
    for stream in ("resource/ada", "resource/ben", "resource/ada"):
        append(store, "a", stream=stream)
    ada, ben = (store.events_since(0, kinds=WRITTEN, limit=9, owner=owner)[-1][0] for owner in ("ada", "ben"))
    assert (
        (store.last_position(owner="ada"), store.last_position(owner="ben"))
        == (ada, ben)
        == (store.last_position(), ben)
    )
    assert store.last_position(owner="eve") == 0


@pytest.mark.spec("M40")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_all_events_up_to_a_position_are_in_order_for_each_owner(store: Store, limit: int) -> None:
    for text in ("a", "b"):
        for name in ("ada", "ben", "eve"):
            append(store, f"{name} {text}", stream=f"resource/{name}")
            append(store, f"{name} {text}+", stream=f"resource/{name}")
    position = store.last_position()
    append(store, "later", stream="resource/ben")
    listed = list(store.events_up_to(position, batch_size=limit))
    everything = store.events_since(0, kinds=list(KINDS), limit=99)
    assert sorted(listed, key=itemgetter(0)) == [one for one in everything if one[0] <= position]
    for name in ("ada", "ben"):
        of_owner = list(store.events_up_to(position, batch_size=limit, owner=name))
        assert of_owner == [one for one in listed if one[1] and one[1].stream == f"resource/{name}"]
        assert texts(event for _, event in of_owner) == [f"{name} a", f"{name} a+", f"{name} b", f"{name} b+"]
    assert (
        list(store.events_up_to(0, batch_size=limit)),
        list(store.events_up_to(position, batch_size=limit, owner="x")),
    ) == ([], [])


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_receipts_of_all_streams_are_grouped_by_stream(store: Store, limit: int) -> None:
    for number, stream in enumerate(("one", "two", "one", "one", "none")):
        key = Key(f"{9 - number}" if number else "", "r")
        append(store, *(["a"] if stream != "none" else []), stream=stream, key=key)
    listed = list(store.all_receipts(batch_size=limit))
    assert Counter(receipt.stream for receipt in listed) == {"one": 3, "two": 1, "none": 1}
    for stream in ("one", "two", "none"):
        assert [one for one in listed if one.stream == stream] == list(store.receipts(stream, limit=99))
    assert len([*groupby(listed, key=attrgetter("stream"))]) == 3


# -- bulk import -------------------------------------------------------------------------------------------


def an_event(text: str, seq: int, *, stream: str = "s", starts_batch: bool = True, number: float = 0.0) -> Event:
    return Event(
        stream=stream,
        seq=seq,
        at=LATER,
        payload=DocumentWritten(path="overview.md", text=text)
        if not number
        else CrystalCreated(text, importance=number),
        origin=Origin.FILE,
        trust=Trust.DATA,
        sources=("t#1",),
        starts_batch=starts_batch,
    )


def import_events(store: Store, *events: Event, receipts: Sequence[Receipt] = ()) -> list[bool]:
    """Import events; returns which of them were new."""
    with store.bulk_import() as bulk:
        return [*(bulk.add_event(event).is_new for event in events), *map(bulk.add_receipt, receipts)]


@pytest.mark.spec("M40")
def test_imported_events_are_unchanged(store: Store) -> None:
    """With their time, origin, trust, sources and batches; appends continue their numbers."""
    events = [an_event("a", 1), an_event("x", 1, stream="t"), an_event("b", 2, starts_batch=False)]
    assert import_events(store, *events) == [True, True, True]
    assert read_all(store) == events
    assert append(store, "c").first == 3


@pytest.mark.spec("M40")
def test_imported_streams_are_listed_by_their_times(store: Store) -> None:
    append(store, "b", stream="resource/b", at=LATER - timedelta(hours=1))
    import_events(store, an_event("a", 1, stream="resource/a"), an_event("b", 2, stream="resource/a"))
    infos = [(one.first.stream, one.version, one.updated) for one in store.stream_infos("resource/")]
    assert infos == [("resource/a", 2, LATER), ("resource/b", 1, LATER - timedelta(hours=1))]


def test_importing_an_existing_event_is_a_repeat_or_a_conflict(store: Store) -> None:
    import_events(store, an_event("a", 1), an_event("b", 2))
    assert import_events(store, an_event("a", 1), an_event("b", 2), an_event("c", 3)) == [False, False, True]
    for other in (
        an_event("B", 2),
        an_event("b", 2, starts_batch=False),
        dataclasses.replace(an_event("b", 2), at=WHEN),
    ):
        with pytest.raises(Conflict) as caught:
            import_events(store, an_event("d", 4), other)
        assert (caught.value.stream, caught.value.actual) == ("s", 4)
    assert texts(store.read("s")) == ["a", "b", "c"]


@pytest.mark.spec("M40")
def test_an_event_with_nan_equals_itself_on_import(store: Store) -> None:
    odd = an_event("a", 1, number=float("nan"))
    assert import_events(store, odd) == [True]
    assert import_events(store, odd) == [False]


@pytest.mark.spec("M40")
@pytest.mark.parametrize("seq", [0, 2, 99])
def test_an_import_with_a_gap_is_a_conflict(store: Store, seq: int) -> None:
    with pytest.raises(Conflict):
        import_events(store, an_event("x", 1, stream="t"), an_event("a", seq))
    assert (list(store.stream_names("")), store.last_position()) == ([], 0)


@pytest.mark.spec("M40")
def test_an_imported_event_has_the_position_that_readers_see(store: Store) -> None:
    append(store, "a", stream="t")
    with store.bulk_import() as bulk:
        positions = [bulk.add_event(event).position for event in (an_event("b", 1), an_event("c", 2), an_event("b", 1))]
    assert positions[2] == positions[0]
    assert positions[:2] == [position for position, _ in store.events_since(0, kinds=WRITTEN, limit=9)][1:]


@pytest.mark.spec("M40")
def test_an_import_is_visible_only_to_itself_before_its_end(store: Store, tmp_path: Path) -> None:
    with store.bulk_import() as bulk:
        bulk.add_event(an_event("a", 1))
        assert (texts(store.read("s")), store.version("s"), list(store.stream_names(""))) == (["a"], 1, ["s"])
        if isinstance(store, SqliteStore):
            other = sqlite(tmp_path)
            assert other.version("s") == 0
            other.close()
    assert store.version("s") == 1


@pytest.mark.spec("M40")
def test_a_failed_import_stores_nothing_not_even_a_stream_id(store: Store) -> None:
    """Ids read inside must not be cached: the next new stream gets the same id."""

    def read_and_fail() -> None:
        with store.bulk_import() as bulk:
            bulk.add_event(an_event("b", 1, stream="one"))
            bulk.add_receipt(Receipt("one", Key("k", "r"), AppendResult(first=1, last=1, at=WHEN)))
            assert (store.version("one"), store.read("one")[0].seq) == (1, 1)
            raise LookupError

    append(store, "a", stream="old")
    with pytest.raises(LookupError):
        read_and_fail()
    append(store, "c", "d", stream="two")
    assert (
        store.version("one"),
        store.receipts("one", limit=9),
        len(store.events_since(0, kinds=WRITTEN, limit=9)),
    ) == (
        0,
        [],
        3,
    )
    append(store, "e", stream="one")
    assert (texts(store.read("one")), texts(store.read("two"))) == (["e"], ["c", "d"])


@pytest.mark.spec("M40")
def test_keys_are_sorted_and_imported(store: Store) -> None:
    stored = {value: append(store, "a", key=Key(value, f"for {value}")) for value in ["b", "键", "", "a", "\U0001f511"]}
    append(store, "a", stream="t", key=Key("elsewhere", "r"))
    listed = [Receipt("s", Key(value, f"for {value}"), stored[value]) for value in sorted(stored)]
    assert list(store.receipts("s", limit=9)) == listed
    assert list(store.receipts("s", after="a", limit=2)) == listed[2:4]
    other = InMemoryStore()
    events = store.read("s")
    assert import_events(other, *events, receipts=listed) == [True] * 10
    assert import_events(other, *events, receipts=listed) == [False] * 10
    assert append(other, "a", key=Key("b", "for b")) == dataclasses.replace(stored["b"], repeated=True)
    for changed in (Key("b", "other"), Key("b", "for b")):
        with pytest.raises(Conflict):
            import_events(other, receipts=[Receipt("s", changed, AppendResult(first=2, last=2, at=WHEN))])


# -- snapshots and published versions ----------------------------------------------------------------------


def test_the_newest_snapshot_is_kept(store: Store) -> None:
    append(store, *"abcde")
    for seq in (2, 4, 3):
        store.save_snapshot("s", Snapshot(seq=seq, fold_version=1, body=f"state {seq}"))
    assert store.snapshot("s", fold_version=1) == Snapshot(seq=4, fold_version=1, body="state 4")


def test_a_snapshot_of_another_fold_version_replaces_the_old_one(store: Store) -> None:
    """A2: a new format makes old snapshots useless, even if the new one is less recent."""
    append(store, *"abcde")
    store.save_snapshot("s", Snapshot(seq=4, fold_version=1, body="old shape"))
    assert store.snapshot("s", fold_version=2) is None
    store.save_snapshot("s", Snapshot(seq=2, fold_version=2, body="new shape"))
    assert store.snapshot("s", fold_version=2) == Snapshot(seq=2, fold_version=2, body="new shape")
    assert store.snapshot("s", fold_version=1) is None


@pytest.mark.parametrize(("until", "returned"), [(None, True), (9, True), (4, True), (3, False), (0, False)])
def test_a_snapshot_newer_than_until_is_not_returned(store: Store, until: int | None, returned: bool) -> None:
    append(store, *"abcde")
    store.save_snapshot("s", Snapshot(seq=4, fold_version=1, body="state"))
    assert (store.snapshot("s", fold_version=1, until=until) is not None) is returned


def test_snapshots_belong_to_their_stream(store: Store) -> None:
    append(store, "a", stream="one")
    append(store, "b", stream="two")
    store.save_snapshot("one", Snapshot(seq=1, fold_version=1, body="one"))
    assert store.snapshot("two", fold_version=1) is None


def test_the_published_version_is_stored_for_each_file(store: Store) -> None:
    append(store, "a", stream="one")
    append(store, "b", stream="two")
    store.mark_published("one", "overview.md", PublishedVersion("aaaa", seq=1))
    store.mark_published("one", "detail/ä'%.md", PublishedVersion("bbbb", seq=2))
    store.mark_published("one", "overview.md", PublishedVersion("", seq=3))
    assert store.published_versions("one") == {
        "overview.md": PublishedVersion("", 3),
        "detail/ä'%.md": PublishedVersion("bbbb", 2),
    }
    assert store.published_versions("two") == {}


def test_published_versions_and_snapshots_are_not_events(store: Store) -> None:
    append(store, "a")
    store.mark_published("s", "overview.md", PublishedVersion("aaaa", seq=1))
    store.save_snapshot("s", Snapshot(seq=1, fold_version=1, body="state"))
    assert store.version("s") == 1


# -- closing -----------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append(Batch("s", [a_draft()], 1), at=WHEN),
    "read": lambda store: store.read("s"),
    "events_since": lambda store: store.events_since(0, kinds=WRITTEN, limit=1),
    "version": lambda store: store.version("s"),
    "receipt": lambda store: store.receipt("s", Key("k", "r")),
    "position": lambda store: store.last_position(),
    "events_up_to": lambda store: list(store.events_up_to(1, batch_size=1)),
    "all_receipts": lambda store: list(store.all_receipts(batch_size=1)),
    "receipts": lambda store: store.receipts("s", limit=1),
    "bulk_import": lambda store: import_events(store),
    "streams": lambda store: store.stream_names(""),
    "stream_infos": lambda store: store.stream_infos(""),
    "summary": lambda store: store.summary("s"),
    "save_snapshot": lambda store: store.save_snapshot("s", Snapshot(1, 1, "")),
    "snapshot": lambda store: store.snapshot("s", fold_version=1),
    "published": lambda store: store.published_versions("s"),
    "mark_published": lambda store: store.mark_published("s", "p", PublishedVersion("", 0)),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_to_a_closed_store_raises_closed(store: Store, call: str) -> None:
    append(store, "a")
    store.close()
    store.close()
    with pytest.raises(Closed):
        CALLS[call](store)


# -- round trips -------------------------------------------------------------------------------------------

JSON_OBJECTS = st.dictionaries(st.text(), json_values(), max_size=4)
# By annotation, so that a new payload is covered automatically, or fails here with its name.
SHOWN_VERSIONS = st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple)

ITEMS = st.builds(RetainedItem, kind=st.text(), text=st.text(), seq=st.integers())
IDS, FLOATS = st.lists(st.text(), max_size=3).map(tuple), st.floats(allow_nan=False, allow_infinity=False)
BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "int": st.integers(),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "int | None": st.none() | st.integers(),
    "bool": st.booleans(),
    "Any": json_values(),
    "Mapping[str, Any]": JSON_OBJECTS,
    "Mapping[str, str]": st.dictionaries(st.text(), st.text(), max_size=4),
    "Sequence[Mapping[str, Any]]": st.lists(JSON_OBJECTS, max_size=3),
    "Sequence[Mapping[str, Any]] | None": st.none() | st.lists(JSON_OBJECTS, max_size=3),
    "str | Sequence[Mapping[str, Any]] | None": st.none() | st.text() | st.lists(JSON_OBJECTS, max_size=3),
    "str | Mapping[str, Any]": st.text() | JSON_OBJECTS,
    "tuple[Mapping[str, Any], ...]": st.lists(st.dictionaries(st.text(), json_values(), max_size=3), max_size=3).map(
        tuple
    ),
    "tuple[str, ...]": st.lists(st.text(), max_size=3).map(tuple),
    "ShownVersions": SHOWN_VERSIONS,
    "ShownVersions | None": st.none() | SHOWN_VERSIONS,
    "tuple[tuple[str, str], ...]": st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple),
    "tuple[tuple[str, ...], ...]": st.lists(st.lists(st.text(), max_size=3).map(tuple), max_size=3).map(tuple),
    "tuple[tuple[int, int], ...]": st.lists(st.tuples(st.integers(), st.integers()), max_size=3).map(tuple),
    "tuple[tuple[int, tuple[int | str, ...], Any], ...]": st.lists(
        st.tuples(st.integers(), st.lists(st.integers() | st.text(), max_size=3).map(tuple), json_values()), max_size=3
    ).map(tuple),
    "tuple[AnchoredBlock, ...]": st.lists(
        st.builds(
            AnchoredBlock,
            layer=st.text(),
            text=st.text(),
            left_out=st.integers(min_value=0),
            sources=st.lists(st.text(), max_size=2).map(tuple),
            banner=st.text(),
            tag=st.sampled_from(["memory", "working_memory"]),
        ),
        max_size=3,
    ).map(tuple),
    "tuple[EntitySighting, ...]": st.lists(any_entity_sightings(), max_size=3).map(tuple),
    "tuple[int, int]": st.tuples(st.integers(), st.integers()),
    "tuple[PageLine, ...]": st.lists(
        st.builds(
            PageLine,
            section=st.text(),
            text=st.text(),
            sources=IDS,
            importance=FLOATS,
            kind=st.text(),
            at=st.text(),
            trust=st.integers(),
        ),
        max_size=3,
    ).map(tuple),
    "tuple[KnowledgeGap, ...]": st.lists(
        st.builds(KnowledgeGap, topic=st.text(), reason=st.text(), since=st.text(), last_seen=st.text(), sources=IDS),
        max_size=3,
    ).map(tuple),
    "tuple[LearnedSkill, ...]": st.lists(
        st.builds(
            LearnedSkill,
            name=st.text(),
            occurrences=st.integers(),
            succeeded=st.integers(),
            last_used=st.text(),
            sources=IDS,
        ),
        max_size=3,
    ).map(tuple),
    "tuple[Any, ...]": st.lists(st.lists(st.text() | st.integers(), max_size=3), max_size=3).map(tuple),
    "tuple[GuardVerdict, ...]": st.lists(
        st.builds(GuardVerdict, guard=st.text(), passed=st.booleans(), detail=st.text()), max_size=3
    ).map(tuple),
    "RetainedItem": ITEMS,
    "tuple[RetainedItem, ...]": st.lists(ITEMS, max_size=3).map(tuple),
    "tuple[Stub, ...]": st.lists(
        st.builds(
            Stub,
            message_ranges=st.lists(st.tuples(st.integers(), st.integers()), max_size=3).map(tuple),
            messages=st.lists(JSON_OBJECTS, max_size=2).map(tuple),
            format=st.text(),
        ),
        max_size=3,
    ).map(tuple),
}


def payloads(kind: type[EventPayload]) -> st.SearchStrategy[EventPayload]:
    return st.builds(kind, **{f.name: BY_ANNOTATION[str(f.type)] for f in dataclasses.fields(kind)})


@st.composite
def drafts(draw: st.DrawFn, kind: str | None = None) -> Draft:
    payload = draw(payloads(KINDS[kind or draw(st.sampled_from(sorted(KINDS)))]))
    return Draft(
        payload=payload,
        origin=draw(st.sampled_from(Origin)),
        trust=draw(st.none() | st.sampled_from(Trust)),
        sources=tuple(draw(st.lists(st.text(), max_size=3))),
    )


ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-11))])
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=ZONES)


@each_row("kind", sorted(KINDS))
def test_every_payload_is_unchanged_after_a_round_trip(store: Store, kind: str) -> None:
    """A1, A2: with origin, trust, sources and time to the microsecond."""

    @given(draft=drafts(kind), at=TIMES)
    @settings(max_examples=examples(15))
    def check_round_trip(draft: Draft, at: datetime) -> None:
        appended = store.append(Batch("s", [draft, draft], store.version("s")), at=at)
        assert list(store.read("s", after=appended.first - 1)) == [
            Event(
                stream="s",
                seq=appended.first + n,
                at=at,
                payload=draft.payload,
                origin=draft.origin,
                trust=draft.effective_trust,
                sources=draft.sources,
                starts_batch=n == 0,
            )
            for n in (0, 1)
        ]

    check_round_trip()


@given(draft=drafts())
def test_no_event_is_trusted_more_than_its_origin(draft: Draft) -> None:
    assert draft.effective_trust <= TRUST_BY_ORIGIN[draft.origin]


# -- threads -----------------------------------------------------------------------------------------------


def test_a_reader_in_another_thread_never_sees_part_of_a_batch(store: Store) -> None:
    """A3, J2: nor the events of a batch without its key."""
    batches, size = 60, 5
    partial_counts: list[int] = []
    done = threading.Event()

    def read_repeatedly() -> None:
        while not done.is_set():
            seen = len(store.read("s"))
            if seen % size:
                partial_counts.append(seen)
            number = seen // size
            if number and store.receipt("s", Key(f"k{number - 1}", "r")) is None:
                partial_counts.append(seen)

    readers = [threading.Thread(target=read_repeatedly) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for batch in range(batches):
            append(store, *(f"{batch}.{n}" for n in range(size)), key=Key(f"k{batch}", "r"))
    finally:
        done.set()
        for reader in readers:
            reader.join(timeout=30)
    assert not any(reader.is_alive() for reader in readers)
    assert partial_counts == []
    assert store.version("s") == batches * size


def test_many_threads_lose_no_update(store: Store) -> None:
    """J2: each thread decides on what it read, and retries on a conflict."""
    threads, each = 6, 15

    def write(name: int) -> None:
        for n in range(each):
            while True:
                try:
                    append(store, f"{name}.{n}")
                    break
                except Conflict:
                    continue

    writers = [threading.Thread(target=write, args=(name,)) for name in range(threads)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=60)
    events = store.read("s")
    assert [event.seq for event in events] == list(range(1, threads * each + 1))
    assert sorted(texts(events)) == sorted(f"{name}.{n}" for name in range(threads) for n in range(each))
    for name in range(threads):  # events of each thread are in order
        own = [int(text.split(".")[1]) for text in texts(events) if text.startswith(f"{name}.")]
        assert own == list(range(each))


# -- reopening (only stores on disk) ------------------------------------------------------------------------


def test_everything_survives_reopening(tmp_path: Path) -> None:
    """A2, A6, K25: including the keys by which a retry is recognised."""
    store = sqlite(tmp_path)
    first = append(store, "a", "b", key=Key("k", "r"), at=LATER)
    store.save_snapshot("s", Snapshot(seq=2, fold_version=1, body="state"))
    store.mark_published("s", "overview.md", PublishedVersion("aaaa", seq=2))
    empty = append(store, key=Key("empty", "r"), at=WHEN)
    before = list(store.read("s"))
    store.close()
    store = sqlite(tmp_path)
    assert list(store.read("s")) == before
    assert append(store, "a", "b", key=Key("k", "r")) == dataclasses.replace(first, repeated=True)
    with pytest.raises(KeyReused):
        append(store, "a", "b", key=Key("k", "other"))
    assert store.receipt("s", Key("empty", "r")) == dataclasses.replace(empty, repeated=True)
    assert store.snapshot("s", fold_version=1) == Snapshot(seq=2, fold_version=1, body="state")
    assert store.published_versions("s") == {"overview.md": PublishedVersion("aaaa", 2)}
    assert append(store, "c").first == 3
    store.close()


@pytest.mark.spec("K25")
def test_every_migration_file_is_listed() -> None:
    """With an unlisted migration, older versions would not notice that they miss kinds of events."""
    files = (Path(store_package.__file__).parent / "sql").glob("0*.sql")
    assert sorted(file.stem for file in files) == list(MIGRATIONS)


# -- rate limits -------------------------------------------------------------------------------------------

A_MINUTE = RateWindow("calls", WHEN.replace(second=0, microsecond=0), timedelta(minutes=1))


@pytest.mark.spec("B47")
def test_usage_never_exceeds_the_limit(store: Store) -> None:
    assert [store.try_consume(A_MINUTE, 2, limit=5) for _ in range(3)] == [True, True, False]
    assert store.usage(A_MINUTE) == 4
    assert store.try_consume(A_MINUTE, 1, limit=5)
    assert not store.try_consume(A_MINUTE, 1, limit=5)


@pytest.mark.spec("B47")
def test_an_amount_above_the_limit_is_refused(store: Store) -> None:
    assert not store.try_consume(A_MINUTE, 6, limit=5)
    assert store.usage(A_MINUTE) == 0


@pytest.mark.spec("B47")
def test_windows_and_names_are_counted_separately(store: Store) -> None:
    after = dataclasses.replace(A_MINUTE, start=A_MINUTE.end)
    other = dataclasses.replace(A_MINUTE, name="tokens")
    assert all(store.try_consume(one, 5, limit=5) for one in (A_MINUTE, after, other))
    assert [store.usage(one) for one in (A_MINUTE, after, other)] == [5, 5, 5]


@pytest.mark.spec("B47")
def test_an_adjustment_changes_the_usage(store: Store) -> None:
    store.try_consume(A_MINUTE, 5, limit=5)
    store.adjust_usage(A_MINUTE, -3)
    assert store.usage(A_MINUTE) == 2
    store.adjust_usage(A_MINUTE, 9)
    assert store.usage(A_MINUTE) == 11
    assert not store.try_consume(A_MINUTE, 0, limit=10)
    store.adjust_usage(A_MINUTE, -99)
    assert store.usage(A_MINUTE) == 0
    store.adjust_usage(dataclasses.replace(A_MINUTE, name="never consumed"), 1)


def test_expired_windows_are_deleted(store: Store) -> None:
    store.try_consume(A_MINUTE, 5, limit=5)
    later = dataclasses.replace(A_MINUTE, start=A_MINUTE.start + timedelta(minutes=4))
    store.try_consume(later, 1, limit=5)
    assert store.usage(A_MINUTE) == 0
    assert store.usage(later) == 1


def test_a_time_is_in_one_window_of_each_length() -> None:
    assert RateWindow.at(WHEN, "calls", timedelta(minutes=1)) == A_MINUTE
    day = RateWindow.at(WHEN, "tokens", timedelta(days=1))
    assert (day.start, day.end) == (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    assert RateWindow.at(WHEN.astimezone(timezone(timedelta(hours=5))), "tokens", timedelta(days=1)) == day


@pytest.mark.spec("B47")
def test_concurrent_calls_never_exceed_the_limit(store: Store) -> None:
    allowed: list[bool] = []
    together = threading.Barrier(8)

    def consume() -> None:
        together.wait()
        allowed.extend(store.try_consume(A_MINUTE, 1, limit=20) for _ in range(5))

    threads = [threading.Thread(target=consume) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(allowed), store.usage(A_MINUTE)) == (20, 20)


# -- state machine over two stores --------------------------------------------------------------------------

STREAMS = st.sampled_from(["session/a", "session/b", "resource/%"])
OFFSETS = st.sampled_from([0, 0, 0, -1, 1])
KEYS = st.none() | st.builds(Key, st.sampled_from(["k1", "k2"]), st.sampled_from(["one", "other"]))


OWNERS = st.sampled_from(["%", "", "nobody"])
STORED_TEXTS = st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1), max_size=3)


class TwoStores(RuleBasedStateMachine):
    """Every call is made on both stores, which have to return the same, including errors."""

    kind = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.now = WHEN
        self.model: Store = InMemoryStore()
        self.store: Store = STORES[self.kind](Path(self.folder.name))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def compare(self, call: Callable[[Store], object]) -> object:
        modelled, actual = outcome(call, self.model), outcome(call, self.store)
        assert actual == modelled
        return actual

    @rule(
        stream=STREAMS,
        batch=st.lists(drafts(), max_size=3),
        key=KEYS,
        off=OFFSETS,
        other=st.none() | st.tuples(STREAMS, st.lists(drafts(), max_size=2), OFFSETS),
    )
    def append(
        self, stream: str, batch: list[Draft], key: Key | None, off: int, other: tuple[str, list[Draft], int] | None
    ) -> None:
        self.now += timedelta(microseconds=1)
        expected = self.model.version(stream) + off
        with_batch = None
        if other is not None and other[0] != stream:
            with_batch = Batch(other[0], other[1], self.model.version(other[0]) + other[2])
        self.compare(
            lambda store: store.append(Batch(stream, batch, expected), at=self.now, key=key, companion=with_batch)
        )

    @rule(
        stream=STREAMS,
        after=st.integers(-1, 6),
        until=st.none() | st.integers(0, 6),
        kind=st.sampled_from([None, *KINDS]),
    )
    def read(self, stream: str, after: int, until: int | None, kind: str | None) -> None:
        self.compare(lambda store: list(store.read(stream, after=after, until=until, kind=kind)))

    @rule(number=st.integers(0, 12), kinds=st.lists(st.sampled_from([*KINDS]), max_size=3), limit=st.integers(0, 5))
    def since(self, number: int, kinds: list[str], limit: int) -> None:
        """Positions may differ between stores; the events after one may not."""

        def events_after(store: Store) -> list[Event | None]:
            before = store.events_since(0, kinds=list(KINDS), limit=number)
            return [event for _, event in store.events_since(before[-1][0] if before else 0, kinds=kinds, limit=limit)]

        self.compare(events_after)

    @rule(owner=OWNERS, number=st.integers(0, 6), kinds=st.lists(st.sampled_from([*KINDS]), max_size=3))
    def since_of(self, owner: str, number: int, kinds: list[str]) -> None:
        def events_after(store: Store) -> list[Event | None]:
            before = store.events_since(0, kinds=list(KINDS), limit=number, owner=owner)
            mark = before[-1][0] if before else 0
            return [event for _, event in store.events_since(mark, kinds=kinds, limit=5, owner=owner)]

        self.compare(events_after)

    @rule(owner=OWNERS)
    def owners(self, owner: str) -> None:
        self.compare(lambda store: list(store.owners()))
        self.compare(lambda store: list(store.stream_names("", owner=owner)))

    @rule(stream=STREAMS, off=OFFSETS, batch=st.lists(drafts(), min_size=1, max_size=3), breaks=st.booleans())
    def bulk_import(self, stream: str, off: int, batch: list[Draft], breaks: bool) -> None:
        """Import events before and after the end of the stream; all or none."""
        existing = [*self.model.read(stream, after=self.model.version(stream) - 1)]
        first = self.model.version(stream) + 1 + off
        events = [
            Event(
                stream=stream,
                seq=first + n,
                at=self.now,
                payload=draft.payload,
                origin=draft.origin,
                trust=draft.effective_trust,
            )
            for n, draft in enumerate(batch)
        ]

        def import_all(store: Store) -> object:
            with store.bulk_import() as bulk:
                new = [bulk.add_event(event).is_new for event in (*existing, *events)]
                if breaks:
                    raise Closed
            return new

        self.compare(import_all)

    @rule(stream=STREAMS, after=st.sampled_from([None, "k1"]), limit=st.integers(0, 2))
    def receipts(self, stream: str, after: str | None, limit: int) -> None:
        self.compare(lambda store: list(store.receipts(stream, after=after, limit=limit)))

    @rule(stream=STREAMS, key=KEYS.filter(bool))
    def receipt(self, stream: str, key: Key) -> None:
        self.compare(lambda store: store.receipt(stream, key))

    @rule(stream=STREAMS, fold=st.integers(1, 2), seq=st.integers(1, 5), body=STORED_TEXTS)
    def save_snapshot(self, stream: str, fold: int, seq: int, body: str) -> None:
        if self.model.version(stream):
            self.compare(lambda store: store.save_snapshot(stream, Snapshot(seq=seq, fold_version=fold, body=body)))

    @rule(stream=STREAMS, fold=st.integers(1, 2), until=st.none() | st.integers(0, 6))
    def snapshot(self, stream: str, fold: int, until: int | None) -> None:
        self.compare(lambda store: store.snapshot(stream, fold_version=fold, until=until))

    @rule(stream=STREAMS, path=st.sampled_from(["overview.md", "detail/é"]), mark=STORED_TEXTS, seq=st.integers(0))
    def mark_published(self, stream: str, path: str, mark: str, seq: int) -> None:
        if self.model.version(stream):
            self.compare(lambda store: store.mark_published(stream, path, PublishedVersion(mark, seq % 2**62)))

    @rule(prefix=st.sampled_from(["", "session/", "resource/%", "resource/_", "x"]))
    def streams(self, prefix: str) -> None:
        self.compare(lambda store: list(store.stream_names(prefix)))

    @precondition(lambda self: self.model.version("session/a") > 0)
    @rule()
    def summary(self) -> None:
        self.compare(lambda store: [dict(store.summary("session/a").kinds), store.summary("session/a").updated])

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = STORES[self.kind](Path(self.folder.name))

    @invariant()
    def versions_are_equal(self) -> None:
        for stream in ("session/a", "session/b", "resource/%"):
            self.compare(lambda store, stream=stream: store.version(stream))
            self.compare(lambda store, stream=stream: store.published_versions(stream))


def outcome(call: Callable[[Store], object], store: Store) -> object:
    try:
        return call(store)
    except InmindError as error:
        return type(error), str(error)


class WithPostgres(TwoStores):
    kind = "postgres"


class TestTwoStores(TwoStores.TestCase):
    """A3, A6, J2: no sequence of calls gives different results."""

    settings = settings(
        parent=settings(),
        max_examples=examples(25),
        stateful_step_count=30,
        suppress_health_check=[HealthCheck.too_slow],
    )


class TestWithPostgres(WithPostgres.TestCase):
    """A3, A6, J2, J9: the same with PostgreSQL."""

    settings = TestTwoStores.settings
