"""Earnings, spending and offers of a resource, and the report about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from inmind import Memory
from inmind.core.encoding import digest
from inmind.core.events.base import Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import AffectSpiked, TradeRecorded
from inmind.core.settings import parse_settings
from inmind.errors import InvalidInput, KeyReused
from inmind.memory.backends import PostgresBackend
from inmind.memory.resource_ledger import Economics
from inmind.store.protocol import Key, Store
from inmind.store.sqlite.store import SqliteStore
from inmind.testing import InMemoryStore, ManualClock

pytestmark = pytest.mark.spec("G14")


@pytest.fixture(params=["in_memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return InMemoryStore() if request.param == "in_memory" else SqliteStore(tmp_path / "journal.db")


def economics_of(store: Store, clock: ManualClock, resource: str = "ada", *, affect_enabled: bool = True) -> Economics:
    place = PostgresBackend(store, location="in memory", index=lambda _: pytest.fail("no search"), clock=clock)
    settings = parse_settings("", {"affect": {"enabled": affect_enabled}})
    return Memory(place, clock=clock, embedder=None, settings=settings).resource(resource).economics


@pytest.fixture
def economics(store: Store, clock: ManualClock) -> Economics:
    return economics_of(store, clock)


def stored_payloads(store: Store, resource: str = "ada") -> list[Any]:
    return [event.payload for event in store.read(f"resource/{resource}")]


def test_recorded_entries_are_reported(economics: Economics, clock: ManualClock) -> None:
    economics.record("listing", skill="refactoring", amount=5)
    economics.record("earning", amount="4.50", skill="refactoring", buyer="bob")
    clock.advance(seconds=7 * 86_400)
    economics.record("earning", amount=Decimal("8.00"), skill="docs", buyer="eve")
    economics.record("spending", amount=1.2, seller="a model", note="tokens")
    (totals,) = economics.report()
    assert (totals.earned, totals.spent) == (Decimal("12.50"), Decimal("1.2"))
    assert (totals.earnings, totals.spendings, totals.buyers) == (2, 1, 2)
    assert (totals.listed, totals.top) == (("refactoring",), (("docs", 8), ("refactoring", Decimal("4.5"))))
    assert (totals.week, totals.week_before) == (8, Decimal("4.5"))


def test_the_report_of_one_resource_has_no_entry_of_another(store: Store, clock: ManualClock) -> None:
    economics_of(store, clock, "ada").record("earning", amount=1)
    assert economics_of(store, clock, "bob").report() == ()


def test_an_entry_has_the_origin_operator_and_all_fields(economics: Economics, store: Store) -> None:
    economics.record("spending", amount="3", currency="eur", skill="maps", seller="eve", note="a\nb")
    (event,) = store.read("resource/ada")
    assert event.payload == TradeRecorded("spending", "3", "EUR", "maps", "eve", "a\nb")
    assert event.origin is Origin.OPERATOR


@pytest.mark.spec("G9")
def test_an_earning_adds_a_spike_in_the_same_commit(economics: Economics, store: Store) -> None:
    assert economics.record("earning", amount=8, skill="docs") == "resource/ada#1"
    assert [event.starts_batch for event in store.read("resource/ada")] == [True, False]
    assert stored_payloads(store)[1] == AffectSpiked("sale", reason="earned 8 USD with docs")


@pytest.mark.spec("G9")
def test_earnings_that_raise_a_level_above_its_threshold_add_a_note(economics: Economics, store: Store) -> None:
    for _ in range(4):
        economics.record("earning", amount=8)
    notes = [payload.text for payload in stored_payloads(store) if isinstance(payload, NoteAdded)]
    assert len(notes) == 1
    assert "earned 8 USD" in notes[0]


@pytest.mark.spec("G9")
def test_only_earnings_add_a_spike_and_none_if_affect_is_disabled(store: Store, clock: ManualClock) -> None:
    economics_of(store, clock).record("spending", amount=8)
    economics_of(store, clock).record("listing", skill="docs")
    economics_of(store, clock, affect_enabled=False).record("earning", amount=8)
    assert [type(payload) for payload in stored_payloads(store)] == [TradeRecorded] * 3


def test_a_float_counts_with_its_printed_digits(economics: Economics) -> None:
    for _ in range(10):
        economics.record("earning", amount=0.1)
    assert economics.report()[0].earned == 1


def test_an_entry_repeated_with_its_key_is_stored_once(economics: Economics, store: Store) -> None:
    first = economics.record("earning", amount=8, key="order 7")
    again = economics.record("earning", amount=8, key="order 7")
    assert again == first
    assert economics.report()[0].earned == 8
    with pytest.raises(KeyReused):
        economics.record("earning", amount=9, key="order 7")
    assert len(stored_payloads(store)) == 2


def test_a_key_that_version_0_1_has_stored_is_recognised(store: Store, clock: ManualClock) -> None:
    economics_of(store, clock).record("earning", amount=8, skill="docs", key="order 7")
    request = "Traded(what='earning', amount='8', currency='USD', skill='docs', with_whom='', note='', on='')"
    assert store.receipt("resource/ada", Key("record order 7", digest("record", json.dumps([request])))) is not None


@pytest.mark.parametrize(
    "on", ["2025-12-30", date(2025, 12, 30), datetime(2025, 12, 30, tzinfo=UTC), datetime(2025, 12, 30, 23)]
)
def test_an_entry_with_a_date_counts_on_that_day(economics: Economics, on: Any) -> None:
    economics.record("earning", amount=1, on=on)
    assert economics.report()[0].days == (0, 0, 0, 0, 1, 0, 0)


def test_names_are_put_on_one_line(economics: Economics) -> None:
    economics.record("listing", skill=" unit\n tests ")
    assert economics.report()[0].listed == ("unit tests",)


class BrokenRepr:
    def __repr__(self) -> str:
        raise RuntimeError


Bad = Callable[[Economics], Any]
BAD: list[tuple[str, Bad]] = [
    ("what", lambda b: b.record("gift", amount=1)),  # type: ignore[arg-type] -- a host's mistake
    ("what", lambda b: b.record([], amount=1)),  # type: ignore[arg-type] -- likewise
    ("amount", lambda b: b.record("earning")),
    ("amount", lambda b: b.record("earning", amount=0)),
    ("amount", lambda b: b.record("earning", amount="-0.00")),
    ("amount", lambda b: b.record("spending", amount=-1)),
    ("amount", lambda b: b.record("earning", amount="12 dollars")),
    ("amount", lambda b: b.record("earning", amount="")),
    ("amount", lambda b: b.record("earning", amount="1,000")),
    ("amount", lambda b: b.record("earning", amount=float("nan"))),
    ("amount", lambda b: b.record("earning", amount=float("inf"))),
    ("amount", lambda b: b.record("earning", amount=Decimal("sNaN"))),
    ("amount", lambda b: b.record("earning", amount=Decimal("-Infinity"))),
    ("amount", lambda b: b.record("earning", amount=10**15 + 1)),
    ("amount", lambda b: b.record("earning", amount="1e999999999")),
    ("amount", lambda b: b.record("earning", amount="1e-19")),
    ("amount", lambda b: b.record("earning", amount=True)),
    ("amount", lambda b: b.record("earning", amount=BrokenRepr())),  # type: ignore[arg-type] -- likewise
    ("currency", lambda b: b.record("earning", amount=1, currency="$")),
    ("currency", lambda b: b.record("earning", amount=1, currency="US DOLLARS")),
    ("currency", lambda b: b.record("earning", amount=1, currency=None)),  # type: ignore[arg-type] -- likewise
    ("skill", lambda b: b.record("listing", skill=" \n")),
    ("skill", lambda b: b.record("listing", skill="x" * 201)),
    ("skill", lambda b: b.record("listing", skill="lone \ud800")),
    ("buyer", lambda b: b.record("spending", amount=1, buyer="bob")),
    ("seller", lambda b: b.record("earning", amount=1, seller="bob")),
    ("note", lambda b: b.record("earning", amount=1, note="nul \x00")),
    ("note", lambda b: b.record("earning", amount=1, note="x" * 2_001)),
    ("on", lambda b: b.record("earning", amount=1, on="yesterday")),
    ("on", lambda b: b.record("earning", amount=1, on=timedelta(days=1))),  # type: ignore[arg-type] -- likewise
    ("key", lambda b: b.record("earning", amount=1, key="")),
]


@pytest.mark.spec("J3")
@pytest.mark.parametrize(("field", "call"), BAD, ids=[f"{n}-{field}" for n, (field, _) in enumerate(BAD)])
def test_an_invalid_field_is_named_and_nothing_is_stored(
    economics: Economics, store: Store, field: str, call: Bad
) -> None:
    with pytest.raises(InvalidInput) as error:
        call(economics)
    assert error.value.field == field
    assert stored_payloads(store) == []
