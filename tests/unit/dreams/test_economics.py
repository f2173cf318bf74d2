"""The figures of the books, and how they are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from builders import an_event

from inmind.core.events.base import Event
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.dreams import TradeRecorded
from inmind.dreams.economics import CurrencyTotals, economics_lines, summarize_trades

pytestmark = pytest.mark.spec("G14")

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)


def traded(what: str, amount: str = "0", *, days_ago: float = 0, **known: str) -> Event:
    return an_event(TradeRecorded(what, amount, date=(NOW - timedelta(days=days_ago)).isoformat(), **known))


def earned(amount: str, *, days_ago: float = 0, **known: str) -> Event:
    return traded("earning", amount, days_ago=days_ago, **known)


def of(*trades: Event) -> CurrencyTotals:
    (economics,) = summarize_trades(trades, NOW)
    return economics


def test_without_trades_there_are_no_totals() -> None:
    assert summarize_trades([an_event(NoteAdded("tea"))], NOW) == ()


def test_amounts_are_summed_exactly_and_counted() -> None:
    trades = [
        earned("0.1"),
        earned("0.2"),
        traded("spending", "1000000000000000"),
        traded("spending", "0." + "0" * 17 + "1"),
    ]
    economics = of(*trades)
    assert (economics.earned, economics.earnings) == (Decimal("0.3"), 2)
    assert (economics.spent, economics.spendings) == (Decimal("1000000000000000.000000000000000001"), 2)


def test_each_currency_has_figures_of_its_own_and_the_busiest_comes_first() -> None:
    found = summarize_trades([earned("1", currency="EUR"), earned("2"), earned("3")], NOW)
    assert [(one.currency, one.earned) for one in found] == [("USD", Decimal(5)), ("EUR", Decimal(1))]


def test_a_skill_is_listed_once_however_often_it_is_offered() -> None:
    assert of(*(traded("listing", "5", skill=skill) for skill in ("tests", "docs", "tests"))).listed == (
        "docs",
        "tests",
    )


def test_a_listing_is_no_earning() -> None:
    economics = of(traded("listing", "5", skill="docs"))
    assert (economics.earned, economics.spent, economics.top) == (0, 0, ())


def test_buyers_are_counted_once_and_sellers_and_strangers_are_none() -> None:
    trades = [
        earned("1", counterparty="bob"),
        earned("1", counterparty="bob"),
        earned("1"),
        traded("spending", "1", counterparty="eve"),
    ]
    assert of(*trades).buyers == 1


def test_the_three_skills_that_earned_the_most_are_named_with_how_much() -> None:
    trades = [earned("2", skill="docs"), earned("3", skill="docs"), earned("4", skill="tests"), earned("9")]
    more = [earned("1", skill="naming"), earned("4", skill="reviews")]
    assert of(*trades, *more).top == (("docs", 5), ("reviews", 4), ("tests", 4))


def test_the_week_is_today_and_the_six_days_before_it() -> None:
    economics = of(
        earned("1"),
        earned("2", days_ago=6),
        earned("4", days_ago=7),
        earned("8", days_ago=13),
        earned("16", days_ago=14),
    )
    assert (economics.week, economics.week_before, economics.earned) == (3, 12, 31)
    assert economics.days == (2, 0, 0, 0, 0, 0, 1)


def test_a_day_is_one_of_utc_whatever_zone_it_was_told_in() -> None:
    late = an_event(TradeRecorded("earning", "1", date="2026-01-20T01:00:00+05:00"))
    assert of(late).days == (0, 0, 0, 0, 0, 1, 0)


def test_a_trade_without_a_date_has_the_date_of_its_event() -> None:
    event = an_event(TradeRecorded("earning", "1"))
    (then,) = summarize_trades([event], event.at)
    (later,) = summarize_trades([event], event.at + timedelta(days=7))
    assert (then.week, later.week, later.week_before) == (1, 0, 1)


def test_future_trades_count_but_not_for_the_week() -> None:
    economics = of(earned("1", days_ago=-2))
    assert (economics.earned, economics.week) == (1, 0)


def test_the_line_for_the_niche_says_it_all() -> None:
    economics = CurrencyTotals(
        currency="USD",
        earned=Decimal("12.50"),
        earnings=4,
        spent=Decimal("1.2"),
        spendings=1,
        listed=("docs", "refactoring", "tests"),
        buyers=2,
        top=(("refactoring", Decimal(7)), ("docs", Decimal("5.5"))),
        week=Decimal("8.00"),
        week_before=Decimal("4.500"),
    )
    assert economics_lines(economics) == [
        "Earned 12.50 USD in 4 sales (this week 8.00, up from 4.50); spent 1.20 USD; 3 skills listed; 2 buyers; "
        "best: refactoring 7, docs 5.50"
    ]


@pytest.mark.parametrize(
    ("week", "before", "trend"),
    [("3", "4", "this week 3, down from 4"), ("4", "4.0", "this week 4, as the week before")],
)
def test_the_trend_says_which_way_it_goes(week: str, before: str, trend: str) -> None:
    sold = CurrencyTotals(
        currency="USD", earned=Decimal(7), earnings=1, week=Decimal(week), week_before=Decimal(before)
    )
    assert economics_lines(sold) == [f"Earned 7 USD in 1 sale ({trend})"]


def test_a_line_without_events_is_omitted() -> None:
    assert economics_lines(CurrencyTotals(currency="USD")) == []
    assert economics_lines(CurrencyTotals(currency="USD", listed=("docs",))) == ["1 skill listed"]
    assert economics_lines(CurrencyTotals(currency="EUR", spent=Decimal(20), spendings=2)) == ["Spent 20 EUR"]


def test_the_smallest_coin_is_told_to_its_last_place() -> None:
    assert economics_lines(CurrencyTotals(currency="ETH", spent=Decimal("0.000000000000000001"), spendings=1)) == [
        "Spent 0.000000000000000001 ETH"
    ]
