"""Totals of trades, and the lines that describe them."""

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


def a_trade(kind: str, amount: str = "0", *, days_ago: float = 0, **known: str) -> Event:
    return an_event(TradeRecorded(kind, amount, date=(NOW - timedelta(days=days_ago)).isoformat(), **known))


def an_earning(amount: str, *, days_ago: float = 0, **known: str) -> Event:
    return a_trade("earning", amount, days_ago=days_ago, **known)


def totals_of(*trades: Event) -> CurrencyTotals:
    (economics,) = summarize_trades(trades, NOW)
    return economics


def test_without_trades_there_are_no_totals() -> None:
    assert summarize_trades([an_event(NoteAdded("tea"))], NOW) == ()


def test_amounts_are_summed_exactly_and_counted() -> None:
    trades = [
        an_earning("0.1"),
        an_earning("0.2"),
        a_trade("spending", "1000000000000000"),
        a_trade("spending", "0." + "0" * 17 + "1"),
    ]
    economics = totals_of(*trades)
    assert (economics.earned, economics.earnings) == (Decimal("0.3"), 2)
    assert (economics.spent, economics.spendings) == (Decimal("1000000000000000.000000000000000001"), 2)


def test_each_currency_has_its_totals_and_the_most_used_comes_first() -> None:
    totals = summarize_trades([an_earning("1", currency="EUR"), an_earning("2"), an_earning("3")], NOW)
    assert [(one.currency, one.earned) for one in totals] == [("USD", Decimal(5)), ("EUR", Decimal(1))]


def test_a_skill_is_listed_once_however_often_it_is_offered() -> None:
    assert totals_of(*(a_trade("listing", "5", skill=skill) for skill in ("tests", "docs", "tests"))).listed == (
        "docs",
        "tests",
    )


def test_a_listing_is_no_earning() -> None:
    economics = totals_of(a_trade("listing", "5", skill="docs"))
    assert (economics.earned, economics.spent, economics.top) == (0, 0, ())


def test_named_buyers_are_counted_once_and_sellers_are_not() -> None:
    trades = [
        an_earning("1", counterparty="bob"),
        an_earning("1", counterparty="bob"),
        an_earning("1"),
        a_trade("spending", "1", counterparty="eve"),
    ]
    assert totals_of(*trades).buyers == 1


def test_the_three_skills_with_the_highest_earnings_are_listed_with_amounts() -> None:
    trades = [
        an_earning("2", skill="docs"),
        an_earning("3", skill="docs"),
        an_earning("4", skill="tests"),
        an_earning("9"),
    ]
    more = [an_earning("1", skill="naming"), an_earning("4", skill="reviews")]
    assert totals_of(*trades, *more).top == (("docs", 5), ("reviews", 4), ("tests", 4))


def test_the_week_is_today_and_the_six_days_before_it() -> None:
    economics = totals_of(
        an_earning("1"),
        an_earning("2", days_ago=6),
        an_earning("4", days_ago=7),
        an_earning("8", days_ago=13),
        an_earning("16", days_ago=14),
    )
    assert (economics.week, economics.week_before, economics.earned) == (3, 12, 31)
    assert economics.days == (2, 0, 0, 0, 0, 0, 1)


def test_days_are_utc_days_for_any_time_zone() -> None:
    late = an_event(TradeRecorded("earning", "1", date="2026-01-20T01:00:00+05:00"))
    assert totals_of(late).days == (0, 0, 0, 0, 0, 1, 0)


def test_a_trade_without_a_date_has_the_date_of_its_event() -> None:
    event = an_event(TradeRecorded("earning", "1"))
    (then,) = summarize_trades([event], event.at)
    (later,) = summarize_trades([event], event.at + timedelta(days=7))
    assert (then.week, later.week, later.week_before) == (1, 0, 1)


def test_future_trades_count_but_not_for_the_week() -> None:
    economics = totals_of(an_earning("1", days_ago=-2))
    assert (economics.earned, economics.week) == (1, 0)


def test_the_line_for_the_niche_contains_all_totals() -> None:
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
def test_the_trend_compares_the_week_with_the_week_before(week: str, before: str, trend: str) -> None:
    totals = CurrencyTotals(
        currency="USD", earned=Decimal(7), earnings=1, week=Decimal(week), week_before=Decimal(before)
    )
    assert economics_lines(totals) == [f"Earned 7 USD in 1 sale ({trend})"]


def test_a_line_without_events_is_omitted() -> None:
    assert economics_lines(CurrencyTotals(currency="USD")) == []
    assert economics_lines(CurrencyTotals(currency="USD", listed=("docs",))) == ["1 skill listed"]
    assert economics_lines(CurrencyTotals(currency="EUR", spent=Decimal(20), spendings=2)) == ["Spent 20 EUR"]


def test_the_smallest_amount_has_all_its_decimal_places() -> None:
    assert economics_lines(CurrencyTotals(currency="ETH", spent=Decimal("0.000000000000000001"), spendings=1)) == [
        "Spent 0.000000000000000001 ETH"
    ]
