"""Totals of earnings, spendings and listings for MEMORY.md.

Amounts are exact decimals, counted separately for each currency. Days are UTC days including today, so that the page
changes once a day and not with every dream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from functools import reduce
from typing import Final, TypeVar

from inmind.core.events.base import Event
from inmind.core.events.dreams import TradeRecorded
from inmind.core.frozen import frozen
from inmind.core.text import count_noun, shorten

MAX_TOP_SKILLS: Final = 3
"""Skills listed with the highest earnings."""

# Enough digits for exact sums of the largest and the smallest amounts that can be recorded.
_EXACT_CONTEXT = Context(prec=80)

_WEEK_DAYS = 7


@frozen(kw_only=True)
class CurrencyTotals:
    """Totals of one currency."""

    currency: str
    earned: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)
    earnings: int = 0
    """Number of earnings."""
    spendings: int = 0
    listed: tuple[str, ...] = ()
    """Skills that are offered."""
    buyers: int = 0
    top: tuple[tuple[str, Decimal], ...] = ()
    """Skills with the highest earnings, with their amounts."""
    week: Decimal = Decimal(0)
    """Earned in the last seven days."""
    week_before: Decimal = Decimal(0)
    """Earned in the seven days before these."""
    days: tuple[Decimal, ...] = ()
    """Earned on each of the last seven days, the oldest first."""

    def __str__(self) -> str:
        return f"earned {self.earned} {self.currency}, spent {self.spent}; {self.week} in the last seven days"


def summarize_trades(trades: Iterable[Event], now: datetime) -> tuple[CurrencyTotals, ...]:
    """Totals of each currency, the one with the most trades first."""
    by_currency: defaultdict[str, list[tuple[TradeRecorded, date]]] = defaultdict(list)
    for event in trades:
        if isinstance(event.payload, TradeRecorded):
            trade = event.payload
            at = datetime.fromisoformat(trade.date) if trade.date else event.at
            by_currency[trade.currency].append((trade, at.astimezone(UTC).date()))
    busiest = sorted(by_currency, key=lambda currency: (-len(by_currency[currency]), currency))
    return tuple(
        _summarize_currency(currency, by_currency[currency], now.astimezone(UTC).date()) for currency in busiest
    )


def economics_lines(economics: CurrencyTotals) -> list[str]:
    """Lines for the page; empty without trades."""
    line = "; ".join(_phrases(economics))
    return [f"{line[0].upper()}{line[1:]}"] if line else []


def format_amount(amount: Decimal) -> str:
    """The exact amount, with at least two decimal places if it has a fraction."""
    exact = format(amount, "f")
    integer, point, fraction = exact.partition(".")
    return f"{integer}.{fraction.rstrip('0').ljust(2, '0')}" if point else exact


def _summarize_currency(currency: str, trades: list[tuple[TradeRecorded, date]], today: date) -> CurrencyTotals:
    earnings = [(trade, day) for trade, day in trades if trade.trade_type == "earning"]
    spendings = [trade for trade, _ in trades if trade.trade_type == "spending"]
    by_skill = _sums_by_key((trade.skill, trade) for trade, _ in earnings if trade.skill)
    by_day = _sums_by_key(((today - day).days, trade) for trade, day in earnings)
    days = [by_day.get(days_ago, Decimal(0)) for days_ago in range(2 * _WEEK_DAYS)]
    return CurrencyTotals(
        currency=currency,
        earned=_sum(Decimal(trade.amount) for trade, _ in earnings),
        spent=_sum(Decimal(trade.amount) for trade in spendings),
        earnings=len(earnings),
        spendings=len(spendings),
        listed=tuple(sorted({trade.skill for trade, _ in trades if trade.trade_type == "listing"})),
        buyers=len({trade.counterparty for trade, _ in earnings} - {""}),
        top=tuple(sorted(by_skill.items(), key=lambda item: (-item[1], item[0]))[:MAX_TOP_SKILLS]),
        week=_sum(days[:_WEEK_DAYS]),
        week_before=_sum(days[_WEEK_DAYS:]),
        days=tuple(reversed(days[:_WEEK_DAYS])),
    )


K = TypeVar("K")


def _sums_by_key(trades: Iterable[tuple[K, TradeRecorded]]) -> dict[K, Decimal]:
    sums: dict[K, Decimal] = {}
    for key, trade in trades:
        sums[key] = _EXACT_CONTEXT.add(sums.get(key, Decimal(0)), Decimal(trade.amount))
    return sums


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return reduce(_EXACT_CONTEXT.add, amounts, Decimal(0))


def _phrases(economics: CurrencyTotals) -> Iterator[str]:
    if economics.earnings:
        sales = count_noun(economics.earnings, "sale")
        yield f"earned {format_amount(economics.earned)} {economics.currency} in {sales} ({_trend(economics)})"
    if economics.spendings:
        yield f"spent {format_amount(economics.spent)} {economics.currency}"
    if economics.listed:
        yield f"{count_noun(len(economics.listed), 'skill')} listed"
    if economics.buyers:
        yield count_noun(economics.buyers, "buyer")
    if economics.top:
        yield "best: " + ", ".join(f"{shorten(skill, 60)} {format_amount(earned)}" for skill, earned in economics.top)


def _trend(economics: CurrencyTotals) -> str:
    week, before = economics.week, economics.week_before
    if week == before:
        return f"this week {format_amount(week)}, as the week before"
    return f"this week {format_amount(week)}, {'up' if week > before else 'down'} from {format_amount(before)}"
