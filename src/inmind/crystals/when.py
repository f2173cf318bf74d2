"""Time words: which days a question speaks of.

"What did we do last week", "on 7 May 2023", "上个月": the days between `first` and `before`, as the one who asks counts
them. A question may speak of a day on which something happened while it was told a few days later, so whoever ranks by
this gives it some room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from inmind.frozen import frozen


@frozen
class Span:
    """From one moment on, up to another, which is not in it."""

    first: datetime
    before: datetime

    def holds(self, at: datetime, *, early: timedelta = timedelta(), late: timedelta = timedelta()) -> bool:
        return self.first - early <= at < self.before + late


def span_in(text: str, now: datetime) -> Span | None:
    """The days that a text speaks of, or None where it names none or such as never were."""
    for form, made in _FORMS:
        if found := form.search(text):
            try:
                return made(found, now)
            except (ValueError, OverflowError):  # the 31st of June, the year 9999999
                continue
    return None


def _day(year: int, month: int, day: int, now: datetime) -> Span:
    first = datetime(year, month, day, tzinfo=now.tzinfo or UTC)
    return Span(first, first + timedelta(days=1))


def _month(year: int, month: int, now: datetime) -> Span:
    first = datetime(year, month, 1, tzinfo=now.tzinfo or UTC)
    return Span(first, first.replace(year=year + month // 12, month=month % 12 + 1))


def _year(year: int, now: datetime) -> Span:
    first = datetime(year, 1, 1, tzinfo=now.tzinfo or UTC)
    return Span(first, first.replace(year=year + 1))


def _days_ago(days: int, now: datetime, *, room: int = 0) -> Span:
    """`room`: days on both sides, since nobody counts far back exactly."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)
    return Span(midnight - timedelta(days=room), midnight + timedelta(days=1 + room))


def _week(back: int, now: datetime) -> Span:
    monday = _days_ago(now.weekday() + 7 * back, now).first
    return Span(monday, monday + timedelta(days=7))


def _months_ago(back: int, now: datetime) -> Span:
    months = now.year * 12 + now.month - 1 - back
    return _month(months // 12, months % 12 + 1, now)


def _named_month(name: str, now: datetime) -> Span:
    """A month without its year is the last one of that name that has begun."""
    month = _MONTHS[name[:3].lower()]
    return _month(now.year - (month > now.month), month, now)


def _named_day(name: str, day: int, now: datetime) -> Span:
    month = _MONTHS[name[:3].lower()]
    return _day(now.year - ((month, day) > (now.month, now.day)), month, day, now)


def _weekday(name: str, now: datetime) -> Span:
    """The last one before today."""
    return _days_ago((now.weekday() - _WEEKDAYS[name[:3].lower()] - 1) % 7 + 1, now)


def _some(count: str, unit: str, now: datetime) -> Span:
    """So many days, weeks, months or years ago: the larger the unit, the less exact."""
    number = _COUNTS.get(count.lower()) or int(count)
    match unit[:1].lower():
        case "d" | "天" | "日":
            return _days_ago(number, now, room=number // 7)
        case "w" | "周" | "星":
            return _days_ago(number * 7, now, room=3)
        case "m" | "月":
            return _months_ago(number, now)
        case _:
            return _year(now.year - number, now)


_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_WEEKDAYS = {name: number for number, name in enumerate("mon tue wed thu fri sat sun".split())}
_COUNTS = (
    {word: number for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)}
    | {"a": 1, "an": 1, "couple of": 2, "few": 3, "several": 4}
    | {word: number for number, word in enumerate("一二三四五六七八九十", 1)}
    | {"两": 2, "几": 3}
)

_MONTH = (
    r"(january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_NTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_COUNT = rf"(\d{{1,3}}|{'|'.join(word for word in _COUNTS if word.isascii())})"
_Form = Callable[[re.Match[str], datetime], Span]


def _forms() -> Iterator[tuple[re.Pattern[str], _Form]]:
    """The most exact first: of "7 May 2023" the month alone would be true, and less."""

    def form(pattern: str, made: _Form) -> tuple[re.Pattern[str], _Form]:
        return re.compile(pattern, re.IGNORECASE), made

    yield form(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b", lambda m, now: _day(int(m[1]), int(m[2]), int(m[3]), now))
    yield form(r"\b(\d{4})/(\d{1,2})/(\d{1,2})\b", lambda m, now: _day(int(m[1]), int(m[2]), int(m[3]), now))
    yield form(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号]", lambda m, now: _day(int(m[1]), int(m[2]), int(m[3]), now))
    yield form(
        rf"\b{_NTH}(?: of)? {_MONTH},? (\d{{4}})\b",
        lambda m, now: _day(int(m[3]), _MONTHS[m[2][:3].lower()], int(m[1]), now),
    )
    yield form(
        rf"\b{_MONTH} {_NTH},? (\d{{4}})\b",
        lambda m, now: _day(int(m[3]), _MONTHS[m[1][:3].lower()], int(m[2]), now),
    )
    yield form(rf"\b{_MONTH},? (?:of )?(\d{{4}})\b", lambda m, now: _month(int(m[2]), _MONTHS[m[1][:3].lower()], now))
    yield form(r"(\d{4})年(\d{1,2})月", lambda m, now: _month(int(m[1]), int(m[2]), now))
    yield form(r"\b(\d{4})-(\d{2})\b", lambda m, now: _month(int(m[1]), int(m[2]), now))
    yield form(rf"\b{_MONTH} {_NTH}\b", lambda m, now: _named_day(m[1], int(m[2]), now))
    yield form(rf"\b{_NTH}(?: of)? {_MONTH}", lambda m, now: _named_day(m[2], int(m[1]), now))
    yield form(r"\bday before yesterday\b|前天", lambda _, now: _days_ago(2, now))
    yield form(r"\byesterday\b|\blast night\b|昨[天日晚]", lambda _, now: _days_ago(1, now))
    yield form(
        r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b|今[天日]", lambda _, now: _days_ago(0, now)
    )
    yield form(rf"\b{_COUNT} (days?|weeks?|months?|years?) ago\b", lambda m, now: _some(m[1], m[2], now))
    yield form(
        r"(\d{1,3}|[一二两三四五六七八九十几])(天|日|周|个?星期|个?月|年)(?:之?前)",
        lambda m, now: _some(m[1], m[2].lstrip("个") or "月", now),
    )
    yield form(r"\bthis week\b|这[个]?(?:周|星期)|本周", lambda _, now: _week(0, now))
    yield form(r"\b(?:last|past|previous) (?:week|weekend)\b|上[个]?(?:周|星期)", lambda _, now: _week(1, now))
    yield form(r"\bthis month\b|这个月|本月", lambda _, now: _months_ago(0, now))
    yield form(r"\b(?:last|past|previous) month\b|上个月", lambda _, now: _months_ago(1, now))
    yield form(r"\bthis year\b|今年", lambda _, now: _year(now.year, now))
    yield form(r"\b(?:last|past|previous) year\b|去年", lambda _, now: _year(now.year - 1, now))
    yield form(
        r"\b(?:last|on) (monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b",
        lambda m, now: _weekday(m[1], now),
    )
    yield form(rf"\b(?:in|during|since|last|this) {_MONTH}", lambda m, now: _named_month(m[1], now))
    yield form(r"\b(?:in|during|since) (\d{4})\b|(\d{4})年", lambda m, now: _year(int(m[1] or m[2]), now))


_FORMS = tuple(_forms())
