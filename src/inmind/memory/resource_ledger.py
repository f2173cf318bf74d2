"""Affect, earnings, spending and offers of a resource, as a host reads and reports them.

Nothing is paid or charged here. Each entry is an event of the resource's stream, checked before it is appended, so a
report can be computed again from the events. Spikes of affect caused in a session are derived in `session/derive.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Final, Literal, get_args

from inmind.core.events.base import Draft, Origin
from inmind.core.events.dreams import AffectSpiked, TradeRecorded
from inmind.core.text import shorten
from inmind.documents.document import validate_text
from inmind.dreams.affect import SPIKES, Levels, add_auto_notes, describe_mood, level_history
from inmind.dreams.economics import CurrencyTotals, format_amount, summarize_trades
from inmind.errors import InvalidInput
from inmind.memory.context import MemoryContext
from inmind.search.note import validate_time
from inmind.session.state import ResourceState
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import Decision, Stream, key_for

TradeKind = Literal["earning", "spending", "listing"]

MAX_AMOUNT: Final = Decimal(10) ** 15
MAX_DECIMAL_PLACES: Final = 18
"""As many as the smallest unit of any currency needs."""
MAX_NAME_LENGTH: Final = 200
"""Characters of a skill or a trading partner: they are shown on MEMORY.md."""
MAX_NOTE_LENGTH: Final = 2_000
MAX_REASON_LENGTH: Final = 200
MIN_MINUTES: Final = 1e-6
"""The smallest step that a timestamp can express is a microsecond."""
MAX_MINUTES: Final = 100 * 366 * 24 * 60
"""A hundred years."""
MAX_HISTORY_POINTS: Final = 10_000
"""Points of one history."""


class _OfResource:
    """Values in the stream of one resource, which is read on first use."""

    def __init__(self, context: MemoryContext, owner: str) -> None:
        self._context, self._owner = context, owner

    @cached_property
    def _stream(self) -> Stream[ResourceState]:
        return self._context.resource_stream(self._owner)

    def _commit(self, drafts: Sequence[Draft], key: Key | None) -> AppendResult:
        """Append drafts with the notes that a high level of affect writes."""

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            return Decision(add_auto_notes(owned.affect, drafts, now), None)

        return self._stream.commit(decide, key=key).appended


class Affect(_OfResource):
    """The affect of one resource, as a host sees it.

    If affect is disabled, the levels stay at their baselines and spikes are ignored; `history` still shows earlier
    spikes.
    """

    @property
    def enabled(self) -> bool:
        """False if the settings disable affect."""
        return self._context.settings.affect.enabled

    @property
    def levels(self) -> Levels:
        """The current levels."""
        return self._stream.refresh().affect.levels.decayed_to(self._context.clock()) if self.enabled else Levels()

    @property
    def mood(self) -> str:
        """The levels in words."""
        return describe_mood(self.levels)

    def __str__(self) -> str:
        levels = self.levels
        return f"{describe_mood(levels)}: {levels}"

    def spike(self, spike: str, why: str = "", *, key: str | None = None) -> bool:
        """Raise a level: reward, error, social, achievement, urgency, sale, recall or missed.

        `why` is the text of the note that a high level writes. Returns False if affect is disabled; nothing is stored
        then.
        """
        if spike not in SPIKES:
            raise InvalidInput(field="spike", value=spike, expected=f"one of {', '.join(SPIKES)}")
        payload = AffectSpiked(spike, reason=shorten(validate_text(why, field="why"), MAX_REASON_LENGTH))
        checked_key = key_for(key, "raise", spike, why)
        if not self.enabled:
            return False

        self._commit([Draft(payload=payload, origin=Origin.OPERATOR)], checked_key)
        self._context.resource_files(self._owner, self._stream).publish()
        return True

    def history(self, hours: float = 24, step_minutes: float = 10) -> list[Levels]:
        """Levels of the last hours, one point every `step_minutes`, each with its time.

        The last point is now.
        """
        span, step = _to_minutes(hours, 60, "hours"), _to_minutes(step_minutes, 1, "step_minutes")
        steps = int(span / step)
        if steps >= MAX_HISTORY_POINTS:
            raise InvalidInput(
                field="step_minutes", value=step_minutes, expected=f"at most {MAX_HISTORY_POINTS} points in all"
            )
        now, every = self._context.clock(), timedelta(minutes=step)
        events = self._context.store.read(self._stream.name, kind=AffectSpiked.kind)
        return level_history(events, since=now - steps * every, until=now, step=every)


class Economics(_OfResource):
    """Earnings, spending and offers of one resource: `memory.resource("ada").economics`."""

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
        if what == "earning" and self._context.settings.affect.enabled:
            with_skill = f" with {trade.skill}" if trade.skill else ""
            reason = f"earned {format_amount(Decimal(trade.amount))} {trade.currency}{with_skill}"
            drafts.append(Draft(payload=AffectSpiked("sale", reason=reason), origin=Origin.OPERATOR))

        appended = self._commit(drafts, key_for(key, "record", _request(trade)))
        return f"{self._stream.name}#{appended.first}"

    def __str__(self) -> str:
        return "\n".join(map(str, self.report())) or "no earnings or spending"

    def report(self) -> tuple[CurrencyTotals, ...]:
        """Totals for each currency, the most used first."""
        trades = self._context.store.read(self._stream.name, kind=TradeRecorded.kind)
        return summarize_trades(trades, self._context.clock())


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
    return "" if on is None else validate_time(on, "on").isoformat()


_CODE = re.compile(r"[A-Za-z][A-Za-z0-9]{1,11}")


def _to_minutes(value: object, each: int, field: str) -> float:
    """Check a duration and convert it to minutes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_MINUTES <= value * each <= MAX_MINUTES:
        most = MAX_MINUTES // each
        raise InvalidInput(field=field, value=value, expected=f"a number above 0, at most {most:,}")
    return float(value * each)
