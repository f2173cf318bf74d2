"""Parses the dates a query asks about.

"What did we do last week", "on 7 May 2023", "上个月", "先週の金曜日": the days from `start` up to `end`, relative to
`now`. A message may report an event days later, so ranking adds a tolerance. Future dates are ignored.

The languages have the words and forms of dates. A form is a pattern; its named groups (year, month, weekday, ...) say
what the span is, and a few of them have a function of their own. Texts are normalised first (lower case, one width,
numbers in digits), which keeps the number of forms small.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from inmind.core.frozen import frozen
from inmind.core.language.languages import LANGUAGES
from inmind.core.language.spans import compile_cached
from inmind.core.language.tables import numbered


@frozen
class DateSpan:
    """A time span; `end` is exclusive."""

    start: datetime
    end: datetime

    def contains(self, at: datetime, *, tolerance: timedelta = timedelta()) -> bool:
        """Return True if the time is in the span, or after it by less than `tolerance`."""
        return self.start <= at and at - self.end < tolerance


def find_date_span(text: str, now: datetime) -> DateSpan | None:
    """Return the dates that a text asks about, or None if it has none or invalid ones."""
    return _match_forms(_normalise(text), now, _ALL_FORMS)


_SATURDAY = 5
_LENGTHS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(1),
    "week": timedelta(7),
    "month": timedelta(31),
    "year": timedelta(366),
}
_SpanBuilder = Callable[[re.Match[str], datetime], DateSpan | None]


def _match_forms(
    text: str, now: datetime, forms: Iterable[str], *, at_start: bool = False, at_end: bool = False
) -> DateSpan | None:
    """Build a span from the first form that matches.

    `at_start`, `at_end`: the match must be at that end of the text.
    """
    for form in forms:
        match = compile_cached(form).search(text)
        if match is None or (at_start and match.start() > 0) or (at_end and match.end() < len(text)):
            continue
        with suppress(ValueError, OverflowError):  # 31 June, or a date before year 1
            build = next((_BUILDERS[name] for name in match.groupdict() if name in _BUILDERS), _named_span)
            span = build(match, now)
            if span and span.start < span.end and span.start.year > 1 and span.end.year < 9999:
                return span
    return None


def _normalise(text: str) -> str:
    return _NUMERAL.sub(_in_digits, unicodedata.normalize("NFKC", text).lower())


def _in_digits(numeral: re.Match[str]) -> str:
    """Convert Chinese numerals: 二〇二三 digit by digit, 二十三 as a number."""
    before, ten, after = numeral[0].partition("十")
    if not ten:
        return "".join(str(_DIGITS[digit]) for digit in before)
    return str(10 * _DIGITS.get(before, 1) + _DIGITS.get(after, 0))


# -- spans of named groups ---------------------------------------------------------------------------------


def _named_span(match: re.Match[str], now: datetime) -> DateSpan | None:
    """Return the span that the named groups describe.

    Without a year it is the latest one that has begun. `finished`: the latest that is over. `back_year`, `back_month`
    and so on count back from now.
    """
    groups = {name: text for name, text in match.groupdict().items() if text}
    back = {name: _number("back", text) for name, text in groups.items() if name.startswith("back_")}
    if "back_day" in back:
        return _days_ago(back["back_day"], now)
    if "back_week" in back or "weekday" in groups:
        return _weekday_or_week(groups.get("weekday"), back.get("back_week"), now)
    if "back_month" in back:
        span = _months(now.year, now.month - back["back_month"], 1, now)
        return _days(span.start + timedelta(days=int(groups["day"]) - 1), 1) if "day" in groups else _part(span, groups)
    if "back_quarter" in back:
        return _quarter(now.year, (now.month + 2) // 3 - back["back_quarter"], now)
    if "year" in groups or "back_year" in back:
        return _span_in_year(int(groups["year"]) if "year" in groups else now.year - back["back_year"], groups, now)
    for year in range(now.year, now.year - 9, -1):
        with suppress(ValueError):  # the 29th of February
            span = _span_in_year(year, groups, now)
            if (span.end if "finished" in groups else span.start) <= now:
                return _week(0, span.start) if "week_of" in groups else span
    return None


def _span_in_year(year: int, groups: Mapping[str, str], now: datetime) -> DateSpan:
    """Return a day, month, quarter or season of a year, or the year, or a part of it."""
    if "month" in groups:
        month = _number("month", groups["month"])
        first = datetime(year, month, int(groups.get("day", 1)), tzinfo=now.tzinfo or UTC)
        return _days(first, 1) if "day" in groups else _part(_months(year, month, 1, now), groups)
    if "quarter" in groups:
        return _quarter(year, _number("quarter", groups["quarter"]), now)
    if "season" in groups:  # of the northern hemisphere; a winter belongs to the year it begins in
        return _months(year, 3 + 3 * _number("season", groups["season"]), 3, now)
    return _part(_months(year, 1, 12, now), groups)


def _weekday_or_week(name: str | None, back: int | None, now: datetime) -> DateSpan:
    """Return a week, a day of it, or without a week the latest such weekday before today."""
    day = 0 if name is None else _number("weekday", name)
    if back is None:
        return _days_ago((now.weekday() - day - 1) % 7 + 1, now)
    week = _week(back, now)
    return week if name is None else _days(week.start + timedelta(days=day), 1)


def _part(span: DateSpan, groups: Mapping[str, str]) -> DateSpan:
    """Return the first, middle or last third of a span if a part is named, else the span."""
    if "part" not in groups:
        return span
    third = timedelta(days=round((span.end - span.start).days / 3))
    ends = (span.start, span.start + third, span.start + 2 * third, span.end)
    part = _number("part", groups["part"])
    return DateSpan(ends[part], ends[part + 1])


def _days(first: datetime, count: int) -> DateSpan:
    return DateSpan(first, first + timedelta(days=count))


def _months(year: int, month: int, count: int, now: datetime) -> DateSpan:
    """Return whole months. `month` may be out of range: month 0 is December before."""

    def first_of(number: int) -> datetime:
        return datetime(number // 12, number % 12 + 1, 1, tzinfo=now.tzinfo or UTC)

    number = 12 * year + month - 1
    return DateSpan(first_of(number), first_of(number + count))


def _quarter(year: int, number: int, now: datetime) -> DateSpan:
    return _months(year, 3 * number - 2, 3, now)


def _days_ago(days: int, now: datetime, *, margin: int = 0) -> DateSpan:
    """Return a day, with `margin` days on both sides, because long times are estimates."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return _days(midnight - timedelta(days=days + margin), 1 + 2 * margin)


def _week(back: int, now: datetime) -> DateSpan:
    return _days(_days_ago(now.weekday() + 7 * back, now).start, 7)


# -- named groups with a function of their own --------------------------------------------------------------------


def _weekend(now: datetime) -> DateSpan:
    """Return the latest weekend that has begun."""
    return _days(_days_ago((now.weekday() - _SATURDAY) % 7, now).start, 2)


def _latest_part_of_month(match: re.Match[str], now: datetime) -> DateSpan:
    current, previous = (_part(_months(now.year, now.month - back, 1, now), match.groupdict()) for back in (0, 1))
    return current if current.start <= now else previous


def _units_ago(match: re.Match[str], now: datetime) -> DateSpan:
    """Return the time N days, weeks, months or years ago; larger units are less exact."""
    number = _count_in(match)
    match _UNITS[match["unit"]]:
        case "minute" | "hour" as unit:
            return _days_ago(0, now - number * _LENGTHS[unit])
        case "day":
            return _days_ago(number, now, margin=number // 7)
        case "week":
            return _days_ago(7 * number, now, margin=3)
        case "month":
            return _months(now.year, now.month - number, 1, now)
        case _:
            return _months(now.year - number, 1, 12, now)


def _last_units(match: re.Match[str], now: datetime) -> DateSpan:
    """Return the last N days, weeks, months or years, up to the end of today."""
    return _until_today(now - _count_in(match) * _LENGTHS[_UNITS[match["unit"]]], now)


def _count_in(match: re.Match[str]) -> int:
    return _number("count", match.groupdict().get("count") or "1")


def _until_today(start: datetime, now: datetime) -> DateSpan:
    return DateSpan(_days_ago(0, start).start, _days_ago(0, now).end)


def _since_date(match: re.Match[str], now: datetime) -> DateSpan | None:
    """Return the time since a date: at the start of `after`, or at the end of `before`."""
    text = match.groupdict()
    if text.get("after"):
        span = _match_forms(match["after"], now, _RANGE_END_FORMS, at_start=True)
    else:
        span = _match_forms(match["before"], now, _RANGE_END_FORMS, at_end=True)
    return _until_today(span.start, now) if span else None


def _from_to(match: re.Match[str], now: datetime) -> DateSpan | None:
    """Return a range.

    The start is parsed relative to the end: in "May to July 2023" both are in 2023.
    """
    if not (end := _match_forms(match["last"], now, _RANGE_END_FORMS, at_start=True)):
        return None
    last = end.end - timedelta(microseconds=1)
    begin = _match_forms(match["first"], last, _RANGE_END_FORMS, at_start=True, at_end=True)
    return DateSpan(begin.start, end.end) if begin else None


_BUILDERS: Mapping[str, _SpanBuilder] = {
    "first": _from_to,
    "after": _since_date,
    "before": _since_date,
    "ago": _units_ago,
    "recent": _last_units,
    "half_year": lambda _, now: _months(now.year, now.month - 6, 1, now),
    "some_days": lambda _, now: _until_today(now - timedelta(14), now),
    "last_weekend": lambda _, now: _weekend(_week(0, now).start),
    "this_weekend": lambda _, now: _weekend(now) if _weekend(now).contains(now) else None,
    "weekend": lambda _, now: _weekend(now),
    "latest_part": _latest_part_of_month,
}
"""Functions of the named groups that need one."""


# -- words and forms of all languages ----------------------------------------------------------------------

_NUMERAL = re.compile(r"(?<![周期拜])[〇零一二两三四五六七八九十]+(?=个?[年月日号天周週星礼小分時季]|[ヶか箇カヵケ]月)")
_DIGITS = numbered("〇 零", "一", "二 两", "三", "四", "五", "六", "七", "八", "九", start=0)

_DATE_WORDS = tuple(language.dates for language in LANGUAGES if language.dates)
_UNITS = {word: unit for dates in _DATE_WORDS for word, unit in dates.units.items()}
_EXACT_FORMS = (
    *(form for dates in _DATE_WORDS for form in dates.days),
    *(form for dates in _DATE_WORDS for form in dates.longer),
)
_RANGE_END_FORMS = (*_EXACT_FORMS, *(form for dates in _DATE_WORDS for form in dates.range_ends))
_ALL_FORMS = (*(form for dates in _DATE_WORDS for form in dates.ranges), *_EXACT_FORMS)


def _number(group: str, text: str) -> int:
    """Return the number of a word in a named group; digits are their own."""
    for dates in _DATE_WORDS:
        if (number := dates.numbers.get(group, {}).get(text)) is not None:
            return number
    return int(text)
