"""Parses the dates a query asks about.

"What did we do last week", "on 7 May 2023", "上个月", "先週の金曜日": the days from `start` up to `end`, relative to
`now`. A message may report an event days later, so ranking adds a tolerance. Future dates are ignored.

A form is a pattern and a function that builds the span. Texts are normalised first (lower case, one width, numbers
in digits), which keeps the number of forms small.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from inmind.core.frozen import frozen
from inmind.core.language.tables import MONTHS, numbered


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


_SpanBuilder = Callable[[re.Match[str], datetime], DateSpan | None]
_DateForm = tuple[re.Pattern[str], _SpanBuilder]


def _match_forms(
    text: str, now: datetime, forms: Iterable[_DateForm], *, at_start: bool = False, at_end: bool = False
) -> DateSpan | None:
    """Build a span from the first form that matches.

    `at_start`, `at_end`: the match must be at that end of the text.
    """
    for form, build in forms:
        match = form.search(text)
        if match is None or (at_start and match.start() > 0) or (at_end and match.end() < len(text)):
            continue
        with suppress(ValueError, OverflowError):  # 31 June, or a date before year 1
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


# -- days, months and years --------------------------------------------------------------------------------


def _days(first: datetime, count: int) -> DateSpan:
    return DateSpan(first, first + timedelta(days=count))


def _day(year: int, month: int, day: int, now: datetime) -> DateSpan:
    return _days(datetime(year, month, day, tzinfo=now.tzinfo or UTC), 1)


def _months(year: int, month: int, count: int, now: datetime) -> DateSpan:
    """Return whole months. `month` may be out of range: month 0 is December before."""

    def first_of(number: int) -> datetime:
        return datetime(number // 12, number % 12 + 1, 1, tzinfo=now.tzinfo or UTC)

    number = 12 * year + month - 1
    return DateSpan(first_of(number), first_of(number + count))


def _month(year: int, month: int, now: datetime) -> DateSpan:
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _months(year, month, 1, now)


def _quarter(year: int, number: int, now: datetime) -> DateSpan:
    return _months(year, 3 * number - 2, 3, now)


def _season(year: int, name: str, now: datetime) -> DateSpan:
    """Return a season of the northern hemisphere; a winter belongs to the year it begins in."""
    return _months(year, 3 + 3 * _SEASONS[name], 3, now)


def _year(year: int, now: datetime) -> DateSpan:
    return _months(year, 1, 12, now)


def _part(span: DateSpan, name: str) -> DateSpan:
    """Return the first, middle or last third of a span."""
    third = timedelta(days=round((span.end - span.start).days / 3))
    ends = (span.start, span.start + third, span.start + 2 * third, span.end)
    return DateSpan(ends[_PARTS[name]], ends[_PARTS[name] + 1])


def _latest_yearly(of_year: Callable[[int], DateSpan], now: datetime, *, finished: bool = False) -> DateSpan | None:
    """Return the latest yearly span that has begun, or with `finished` the latest that is over."""
    for year in range(now.year, now.year - 9, -1):
        with suppress(ValueError):  # the 29th of February
            span = of_year(year)
            if (span.end if finished else span.start) <= now:
                return span
    return None


def _latest_month(month: int, now: datetime, *, finished: bool = False) -> DateSpan | None:
    return _latest_yearly(lambda year: _month(year, month, now), now, finished=finished)


def _latest_day(month: int, day: int, now: datetime) -> DateSpan | None:
    return _latest_yearly(lambda year: _day(year, month, day, now), now)


# -- relative to today -------------------------------------------------------------------------------------


def _days_ago(days: int, now: datetime, *, margin: int = 0) -> DateSpan:
    """Return a day, with `margin` days on both sides, because long times are estimates."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return _days(midnight - timedelta(days=days + margin), 1 + 2 * margin)


def _week(back: int, now: datetime) -> DateSpan:
    return _days(_days_ago(now.weekday() + 7 * back, now).start, 7)


def _week_of(day: DateSpan | None) -> DateSpan | None:
    return _week(0, day.start) if day else None


def _day_of(week: DateSpan, name: str) -> DateSpan:
    return _days(week.start + timedelta(days=_WEEKDAYS[name]), 1)


def _weekend(now: datetime) -> DateSpan:
    """Return the latest weekend that has begun."""
    saturday = now.weekday() - _WEEKDAYS["saturday"]
    return _days(_days_ago(saturday % 7, now).start, 2)


def _weekday(name: str, now: datetime) -> DateSpan:
    """Return the latest such weekday before today."""
    return _days_ago((now.weekday() - _WEEKDAYS[name] - 1) % 7 + 1, now)


def _months_ago(back: int, now: datetime) -> DateSpan:
    return _months(now.year, now.month - back, 1, now)


def _quarters_ago(back: int, now: datetime) -> DateSpan:
    return _quarter(now.year, (now.month + 2) // 3 - back, now)


def _units_ago(count: str, unit: str, now: datetime) -> DateSpan:
    """Return the time N days, weeks, months or years ago; larger units are less exact."""
    number = _number(count)
    match _UNITS[unit]:
        case "hour":
            return _days_ago(0, now - timedelta(hours=number))
        case "day":
            return _days_ago(number, now, margin=number // 7)
        case "week":
            return _days_ago(7 * number, now, margin=3)
        case "month":
            return _months_ago(number, now)
        case _:
            return _year(now.year - number, now)


def _last_units(count: str, unit: str, now: datetime) -> DateSpan:
    """Return the last N days, weeks, months or years, up to the end of today."""
    lengths = {"hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7), "month": timedelta(31)}
    return _until_today(_days_ago(0, now - _number(count) * lengths.get(_UNITS[unit], timedelta(366))), now)


def _until_today(span: DateSpan, now: datetime) -> DateSpan:
    return DateSpan(span.start, _days_ago(0, now).end)


def _since_date(text: str, now: datetime, *, at_start: bool = False, at_end: bool = False) -> DateSpan | None:
    span = _match_forms(text, now, _RANGE_END_FORMS, at_start=at_start, at_end=at_end)
    return _until_today(span, now) if span else None


def _from_to(first: str, last: str, now: datetime) -> DateSpan | None:
    """Return a range.

    The start is parsed relative to the end: in "May to July 2023" both are in 2023.
    """
    if not (end := _match_forms(last, now, _RANGE_END_FORMS, at_start=True)):
        return None
    begin = _match_forms(first, end.end - timedelta(microseconds=1), _RANGE_END_FORMS, at_start=True, at_end=True)
    return DateSpan(begin.start, end.end) if begin else None


# -- word tables -------------------------------------------------------------------------------------------


_DIGITS = numbered("〇 零", "一", "二 两", "三", "四", "五", "六", "七", "八", "九", start=0)
_MONTHS = {spelling: number for number, name in enumerate(MONTHS, 1) for spelling in (name, name[:3])} | {"sept": 9}
_WEEKDAYS = numbered(
    "monday 一 月",
    "tuesday 二 火",
    "wednesday 三 水",
    "thursday 四 木",
    "friday 五 金",
    "saturday 六 土",
    "sunday 日 天",
    start=0,
)
_SEASONS = numbered("spring 春", "summer 夏", "autumn fall 秋", "winter 冬", start=0)
_PARTS = numbered("early beginning start 初 上旬", "mid middle 中旬", "late end 底 末 下旬", start=0)
_QUARTERS = numbered("first 1", "second 2", "third 3", "fourth 4")
_COUNTS = numbered(
    "a an one", "two couple", "three few 几 数", "four several", "five", "six", "seven", "eight", "nine", "ten"
)
_BACK = numbered("this 这 本 今", "last previous 上 先 去 昨", "上上 先々 前 一昨", "大前", start=0)
_UNITS = {
    word: unit
    for unit, words in {
        "hour": "hour minute 小时 時間 分钟 分",
        "day": "day 天 日",
        "week": "week 周 週 週間 星期 礼拜",
        "month": "month 月",
        "year": "year 年",
    }.items()
    for word in words.split()
}


def _number(count: str) -> int:
    return _COUNTS.get(count) or int(count)


def _one_of(words: Iterable[str], *, latin: bool = True) -> str:
    return "|".join(sorted((word for word in words if word.isascii() == latin), key=len, reverse=True))


_NUMERAL = re.compile(r"(?<![周期拜])[〇零一二两三四五六七八九十]+(?=个?[年月日号天周週星礼小分時季]|[ヶか箇カヵケ]月)")
_YYYY = r"((?:19|20)\d\d)"
_NTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"({_one_of(_MONTHS)})\b\.?"
_WEEKDAY = rf"({_one_of(_WEEKDAYS)})"
_SEASON = rf"({_one_of(_SEASONS)})"
_PART = rf"({_one_of(_PARTS)})(?: of)?[ -]"
_COUNT = rf"\b(\d{{1,3}}|{_one_of(_COUNTS)})(?: of)?"
_UNIT = rf"({_one_of(_UNITS)})s?\b"
_COUNTED = rf"(\d{{1,3}}|[几数])[个ヶか箇カヵケ]?({_one_of(_UNITS, latin=False)})"
_LAST = r"(?<![晚早马以])(上上|上|这|本|先々|先|今)个?"
"""For weeks and months. 晚上, 早上, 马上 and 以上 end with the same character."""
_WEEK = r"(?:周|星期|礼拜|週)の?"
_DAY_OF_WEEK = r"(一(?![起直共些次个样定])|[二三四五六]|日(?![本语常程])|天(?!气)|[月火水木金土日](?=曜))"
_PART_OF = rf"の?({_one_of(_PARTS, latin=False)})"
_NOT_A_COUNT = (
    r"(?! (?:words|char|tokens|lines|people|users|steps|dollars|euros|miles|met|feet|pages|rows|items|files|ms\b))"
)
"""Nouns after a number that is not a year: "in 2000 words"."""


def _exact_forms() -> Iterator[tuple[str, _SpanBuilder]]:
    """Yield forms that name a day, week, month or year, most exact first."""
    # A day.
    yield (
        rf"(?<![\w.-]){_YYYY}[-/](\d\d?)[-/](\d\d?)(?![\d-])",
        lambda m, now: _day(int(m[1]), int(m[2]), int(m[3]), now),
    )
    yield rf"{_YYYY}年(\d\d?)月(\d\d?)[日号]", lambda m, now: _day(int(m[1]), int(m[2]), int(m[3]), now)
    yield rf"\b(\d\d?)/(\d\d?)/{_YYYY}\b", lambda m, now: _day(int(m[3]), *_month_and_day(int(m[1]), int(m[2])), now)
    yield (
        rf"\b{_NTH}(?: of)? {_MONTH},? {_YYYY}\b",
        lambda m, now: _day(int(m[3]), _MONTHS[m[2]], int(m[1]), now),
    )
    yield rf"\b{_MONTH} {_NTH},? {_YYYY}\b", lambda m, now: _day(int(m[3]), _MONTHS[m[1]], int(m[2]), now)
    yield (
        r"(今|去|昨|前)年[的の]?(\d\d?)月(\d\d?)[日号]",
        lambda m, now: _day(now.year - _BACK[m[1]], int(m[2]), int(m[3]), now),
    )
    yield (
        rf"{_LAST}月[的の]?(\d\d?)[日号]",
        lambda m, now: _days(_months_ago(_BACK[m[1]], now).start + timedelta(days=int(m[2]) - 1), 1),
    )
    yield (
        rf"\bweek of (?:the )?{_MONTH} {_NTH}\b",
        lambda m, now: _week_of(_latest_day(_MONTHS[m[1]], int(m[2]), now)),
    )
    yield rf"\b{_MONTH} {_NTH}\b", lambda m, now: _latest_day(_MONTHS[m[1]], int(m[2]), now)
    yield rf"\b{_NTH}(?: of)? {_MONTH}", lambda m, now: _latest_day(_MONTHS[m[2]], int(m[1]), now)
    yield r"(?<!\d)(\d\d?)月(\d\d?)[日号]", lambda m, now: _latest_day(int(m[1]), int(m[2]), now)
    yield r"大前天|さきおととい", lambda _, now: _days_ago(3, now)
    yield r"\bday before yesterday\b|(?<!以)前天(?!天)|一昨日|おととい", lambda _, now: _days_ago(2, now)
    yield r"\byesterday\b|\blast night\b|昨[天日晚夜]|きのう|ゆうべ", lambda _, now: _days_ago(1, now)
    yield (
        r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b|今[天日晚早朝夜]|けさ",
        lambda _, now: _days_ago(0, now),
    )
    yield rf"{_LAST}{_WEEK}{_DAY_OF_WEEK}", lambda m, now: _day_of(_week(_BACK[m[1]], now), m[2])
    yield rf"\b{_WEEKDAY} (?:of )?(last|this) week\b", lambda m, now: _day_of(_week(_BACK[m[2]], now), m[1])
    yield rf"\b(last|this) week,? (?:on )?{_WEEKDAY}\b", lambda m, now: _day_of(_week(_BACK[m[1]], now), m[2])
    yield rf"\b(?:last|on|this(?: past)?) {_WEEKDAY}\b", lambda m, now: _weekday(m[1], now)
    yield (
        rf"(?<![\d每毎下几])(?:周|星期|礼拜){_DAY_OF_WEEK}|(?<![毎下])([月火水木金土日])曜",
        lambda m, now: _weekday(m[1] or m[2], now),
    )
    # A time ago, or a recent period.
    yield r"\bhalf a year ago\b|半年(?:之|以)?前", lambda _, now: _months_ago(6, now)
    yield rf"{_COUNT} {_UNIT} (?:ago|back)\b", lambda m, now: _units_ago(m[1], m[2], now)
    yield rf"{_COUNTED}(?:之|以)?前", lambda m, now: _units_ago(m[1], m[2], now)
    yield rf"\b(?:last|past|previous) {_COUNT} {_UNIT}", lambda m, now: _last_units(m[1], m[2], now)
    yield rf"\bpast {_UNIT}", lambda m, now: _last_units("a", m[1], now)
    yield rf"(?:最近|过去|過去|近|这|前|ここ)的?{_COUNTED}", lambda m, now: _last_units(m[1], m[2], now)
    yield r"\bthe other day\b|前些天|前些日子|先日", lambda _, now: _last_units("two", "week", now)
    # A week.
    yield r"\blast weekend\b|上个?周末|先週末", lambda _, now: _weekend(_week(0, now).start)
    yield r"\bthis weekend\b", lambda _, now: _weekend(now) if _weekend(now).contains(now) else None
    yield r"\b(?:the|past) weekend\b|[周週]末", lambda _, now: _weekend(now)
    yield r"\b(last|previous|this) week\b", lambda m, now: _week(_BACK[m[1]], now)
    yield rf"{_LAST}(?:周|星期|礼拜|週)", lambda m, now: _week(_BACK[m[1]], now)
    # A month, or a part of it.
    yield rf"\b{_PART}{_MONTH},? {_YYYY}\b", lambda m, now: _part(_month(int(m[3]), _MONTHS[m[2]], now), m[1])
    yield rf"{_YYYY}年(\d\d?)月{_PART_OF}", lambda m, now: _part(_month(int(m[1]), int(m[2]), now), m[3])
    yield rf"\b{_MONTH},? (?:of )?{_YYYY}\b", lambda m, now: _month(int(m[2]), _MONTHS[m[1]], now)
    yield rf"{_YYYY}年(\d\d?)月", lambda m, now: _month(int(m[1]), int(m[2]), now)
    yield rf"(?<![\w.-]){_YYYY}-(\d\d)(?![\w-])", lambda m, now: _month(int(m[1]), int(m[2]), now)
    yield r"(今|去|昨|前)年[的の]?(\d\d?)月", lambda m, now: _month(now.year - _BACK[m[1]], int(m[2]), now)
    yield (
        rf"\b{_PART}{_MONTH}",
        lambda m, now: _latest_yearly(lambda year: _part(_month(year, _MONTHS[m[2]], now), m[1]), now),
    )
    yield (
        rf"(?<!\d)(\d\d?)月{_PART_OF}",
        lambda m, now: _latest_yearly(lambda year: _part(_month(year, int(m[1]), now), m[2]), now),
    )
    yield rf"{_LAST}月{_PART_OF}", lambda m, now: _part(_months_ago(_BACK[m[1]], now), m[2])
    yield rf"(?<![每毎\d])月{_PART_OF}", lambda m, now: _latest_month_part(m[1], now)
    yield r"\b(last|previous|this) month\b", lambda m, now: _months_ago(_BACK[m[1]], now)
    yield rf"{_LAST}月", lambda m, now: _months_ago(_BACK[m[1]], now)
    yield rf"\blast {_MONTH}", lambda m, now: _latest_month(_MONTHS[m[1]], now, finished=True)
    yield rf"\b(?:in|during|this) {_MONTH}", lambda m, now: _latest_month(_MONTHS[m[1]], now)
    yield r"(?<!\d)(\d\d?)月", lambda m, now: _latest_month(int(m[1]), now)
    # A quarter or a season.
    yield rf"\bq([1-4])(?: of)? ?{_YYYY}\b", lambda m, now: _quarter(int(m[2]), int(m[1]), now)
    yield rf"{_YYYY}(?:年第?| ?q)([1-4])(?:季度|\b)", lambda m, now: _quarter(int(m[1]), int(m[2]), now)
    yield (
        rf"\b({_one_of(_QUARTERS)}) quarter of {_YYYY}\b",
        lambda m, now: _quarter(int(m[2]), _QUARTERS[m[1]], now),
    )
    yield r"\b(last|this) quarter\b", lambda m, now: _quarters_ago(_BACK[m[1]], now)
    yield rf"{_LAST}季度", lambda m, now: _quarters_ago(_BACK[m[1]], now)
    yield (
        r"\bin q([1-4])\b|第([1-4])季度",
        lambda m, now: _latest_yearly(lambda year: _quarter(year, int(m[1] or m[2]), now), now),
    )
    yield rf"\b{_SEASON},? (?:of )?{_YYYY}\b", lambda m, now: _season(int(m[2]), m[1], now)
    yield rf"{_YYYY}年[的の]?([春夏秋冬])", lambda m, now: _season(int(m[1]), m[2], now)
    yield r"(今|去|昨|前)年[的の]?([春夏秋冬])", lambda m, now: _season(now.year - _BACK[m[1]], m[2], now)
    yield (
        rf"\blast {_SEASON}\b",
        lambda m, now: _latest_yearly(lambda year: _season(year, m[1], now), now, finished=True),
    )
    yield (
        rf"\b(?:this|(?:in|over|during) the) {_SEASON}(?=[?.!,;]|$)",
        lambda m, now: _latest_yearly(lambda year: _season(year, m[1], now), now),
    )
    # A year, or a part of it.
    yield rf"\b{_PART}(?:in )?{_YYYY}\b", lambda m, now: _part(_year(int(m[2]), now), m[1])
    yield rf"{_YYYY}年{_PART_OF}", lambda m, now: _part(_year(int(m[1]), now), m[2])
    yield rf"(今|去|昨|前)年{_PART_OF}", lambda m, now: _part(_year(now.year - _BACK[m[1]], now), m[2])
    yield r"\b(last|previous|this) year\b", lambda m, now: _year(now.year - _BACK[m[1]], now)
    yield r"おととし", lambda _, now: _year(now.year - 2, now)
    yield r"(大前|一昨|(?<![年以之])前|今|去|昨)年", lambda m, now: _year(now.year - _BACK[m[1]], now)
    yield rf"\b(?:in|during) {_YYYY}\b{_NOT_A_COUNT}|{_YYYY}年", lambda m, now: _year(int(m[1] or m[2]), now)


def _bare_forms() -> Iterator[tuple[str, _SpanBuilder]]:
    """Yield forms that are dates only in a range: "may" is usually another word."""
    yield rf"\b{_MONTH}", lambda m, now: _latest_month(_MONTHS[m[1]], now)
    yield rf"\b{_WEEKDAY}\b", lambda m, now: _weekday(m[1], now)
    yield rf"\b{_YYYY}\b{_NOT_A_COUNT}", lambda m, now: _year(int(m[1]), now)
    yield r"\b(?:now|the present)\b|现在|今", lambda _, now: _days_ago(0, now)


def _range_forms() -> Iterator[tuple[str, _SpanBuilder]]:
    yield r"\bbetween (.{3,40}?) and (.{3,40})", lambda m, now: _from_to(m[1], m[2], now)
    yield r"\bfrom (.{3,40}?) (?:to|till|until|through) (.{3,40})", lambda m, now: _from_to(m[1], m[2], now)
    yield r"(?:从|自)(.{2,12}?)[到至](.{1,12})", lambda m, now: _from_to(m[1], m[2], now)
    yield r"(\d{1,4}[年月][\d月日号]{0,6})(?:到|至|から|[-~])(.{2,12})", lambda m, now: _from_to(m[1], m[2], now)
    yield r"\bsince (?:the )?(.{3,40})", lambda m, now: _since_date(m[1], now, at_start=True)
    yield r"(?:自从?|从)(.{2,12})", lambda m, now: _since_date(m[1], now, at_start=True)
    yield r"(.{2,12}?)(?:以来|から|以降)", lambda m, now: _since_date(m[1], now, at_end=True)


def _month_and_day(first: int, second: int) -> tuple[int, int]:
    """Read as month and day (American order), unless the first is above 12."""
    return (second, first) if first > 12 else (first, second)


def _latest_month_part(name: str, now: datetime) -> DateSpan:
    current = _part(_months_ago(0, now), name)
    return current if current.start <= now else _part(_months_ago(1, now), name)


def _compile(forms: Iterable[tuple[str, _SpanBuilder]]) -> tuple[_DateForm, ...]:
    return tuple((re.compile(pattern), build) for pattern, build in forms)


_EXACT_FORMS = _compile(_exact_forms())
_RANGE_END_FORMS = (*_EXACT_FORMS, *_compile(_bare_forms()))
_ALL_FORMS = (*_compile(_range_forms()), *_EXACT_FORMS)
