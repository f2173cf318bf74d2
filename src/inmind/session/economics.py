"""Earnings, spending and offers of a resource, as the host reports them.

Nothing is paid or charged here. Each entry is an event of the resource's stream, checked before it is appended, so the
report can be computed again from the events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Final, Literal, get_args

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.dreams import AffectSpiked, TradeRecorded
from inmind.documents.document import validate_text
from inmind.dreams.affect import add_auto_notes
from inmind.dreams.economics import CurrencyTotals, format_amount, summarize_trades
from inmind.errors import InvalidInput
from inmind.search.extract import parse_time
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Decision, Stream, key_for

TradeKind = Literal["earning", "spending", "listing"]

MAX_AMOUNT: Final = Decimal(10) ** 15
MAX_DECIMAL_PLACES: Final = 18
"""As many as the smallest unit of any currency needs."""
MAX_NAME_LENGTH: Final = 200
"""Characters of a skill or a trading partner: they are shown on MEMORY.md."""
MAX_NOTE_LENGTH: Final = 2_000


class Economics:
    """Earnings, spending and offers of one resource: `memory.resource("ada").economics`."""

    def __init__(
        self,
        open_stream: Callable[[], Stream[ResourceState]],
        store: Store,
        clock: Clock,
        affect_enabled: Callable[[], bool],
    ) -> None:
        """`open_stream` reads the store and is called on first use.

        `affect_enabled` returns whether an earning changes affect.
        """
        self._open_stream, self._store, self._clock, self._affect_enabled = open_stream, store, clock, affect_enabled

    @cached_property
    def _stream(self) -> Stream[ResourceState]:
        return self._open_stream()

    def record(
        self,
        what: TradeKind,
        *,
        amount: Decimal | float | str = 0,
        currency: str = "USD",
        skill: str = "",
        buyer: str = "",
        seller: str = "",
        note: str = "",
        on: date | str | None = None,
        key: str | None = None,
    ) -> str:
        """Record an earning, a spending, or a skill offered (listing) with its price.

        Returns the id of the entry.

        Amounts are exact: a Decimal, an integer or a string; a float counts as it is printed. `on`: date, if not now.
        If affect is enabled, an earning raises a spike.
        """
        if what not in get_args(TradeKind):
            raise InvalidInput(field="what", value=what, expected=f"one of {', '.join(get_args(TradeKind))}")
        if not isinstance(currency, str) or not _CODE.fullmatch(currency):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            expected = "a code of 2 to 12 letters and digits, like USD"
            raise InvalidInput(field="currency", value=currency, expected=expected)
        trade = TradeRecorded(
            trade_type=what,
            amount=format(_amount(amount), "f"),
            currency=currency.upper(),
            skill=_one_line(skill, "skill"),
            counterparty=_one_line(buyer, "buyer") or _one_line(seller, "seller"),
            note=_limited_text(note, "note", MAX_NOTE_LENGTH),
            date=_entry_date(on),
        )
        _check_consistency(trade, buyer=buyer, seller=seller)
        drafts = [Draft(payload=trade, origin=Origin.OPERATOR)]
        if what == "earning" and self._affect_enabled():
            with_skill = f" with {trade.skill}" if trade.skill else ""
            reason = f"earned {format_amount(Decimal(trade.amount))} {trade.currency}{with_skill}"
            drafts.append(Draft(payload=AffectSpiked("sale", reason=reason), origin=Origin.OPERATOR))

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            return Decision(add_auto_notes(owned.affect, drafts, now), None)

        appended = self._stream.commit(decide, key=key_for(key, "record", _request(trade))).appended
        return f"{self._stream.name}#{appended.first}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.report())) or "no earnings or spending"

    def report(self) -> tuple[CurrencyTotals, ...]:
        """Totals for each currency, the most used first."""
        return summarize_trades(trades(self._store, self._stream.name), self._clock())


def trades(store: Store, stream: str) -> Sequence[Event]:
    """All entries of a resource's stream, in order."""
    return store.read(stream, kind=TradeRecorded.kind)


def _check_consistency(trade: TradeRecorded, *, buyer: str, seller: str) -> None:
    """Check that the fields fit each other."""
    kind = trade.trade_type
    if kind == "listing" and not trade.skill:
        raise InvalidInput(field="skill", value=trade.skill, expected="the skill offered")
    if kind != "listing" and not Decimal(trade.amount):
        raise InvalidInput(field="amount", value=trade.amount, expected=f"more than 0 for an entry of {kind}")
    if kind != "earning" and buyer:
        raise InvalidInput(field="buyer", value=buyer, expected=f"no buyer for a {kind}")
    if kind != "spending" and seller:
        raise InvalidInput(field="seller", value=seller, expected=f"no seller for a {kind}")


def _amount(amount: object) -> Decimal:
    exact = Decimal("NaN")
    if isinstance(amount, Decimal | int | float | str) and not isinstance(amount, bool):
        with suppress(InvalidOperation):
            exact = Decimal(repr(amount) if isinstance(amount, float) else amount)
    exponent = exact.as_tuple().exponent
    # The exponent of NaN and infinity is a letter.
    if not isinstance(exponent, int) or exponent < -MAX_DECIMAL_PLACES or not 0 <= exact <= MAX_AMOUNT:
        expected = f"an amount from 0 to {MAX_AMOUNT:f} with at most {MAX_DECIMAL_PLACES} decimal places"
        raise InvalidInput(field="amount", value=amount, expected=expected)
    return exact.copy_abs()


def _request(trade: TradeRecorded) -> str:
    """The request of a key, in the form of version 0.1.

    A retry after an upgrade must have the same digest.
    """
    names = ("what", "amount", "currency", "skill", "with_whom", "note", "on")
    values = (getattr(trade, field.name) for field in fields(trade))
    return f"Traded({', '.join(f'{name}={value!r}' for name, value in zip(names, values, strict=True))})"


def _one_line(text: object, field: str) -> str:
    return " ".join(_limited_text(text, field, MAX_NAME_LENGTH).split())


def _limited_text(text: object, field: str, most: int) -> str:
    checked = validate_text(text, field=field)
    if len(checked) > most:
        raise InvalidInput(field=field, value=checked, expected=f"at most {most} characters")
    return checked.strip()


def _entry_date(on: object) -> str:
    if on is None:
        return ""
    moment = parse_time(on.isoformat() if isinstance(on, date) else on) if isinstance(on, date | str) else None
    if moment is None:
        raise InvalidInput(field="on", value=on, expected="a date or time, or a string in ISO 8601, like 2026-03-20")
    return moment.isoformat()


_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]{1,11}")
