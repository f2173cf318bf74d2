"""Parses the dates a query asks about.

"What did we do last week", "on 7 May 2023", "上个月", "先週の金曜日": the days from `start` up to `end`, relative to
`now`. A message may report an event days later, so ranking adds a tolerance. Future dates are ignored.

A form is a pattern. Its named groups (year, month, weekday, ...) say what the span is; a few forms have a function of
their own. Texts are normalised first (lower case, one width, numbers in digits), which keeps the number of forms small.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
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


# -- spans of named groups ---------------------------------------------------------------------------------


def _named_span(match: re.Match[str], now: datetime) -> DateSpan | None:
    """Return the span that the named groups describe.

    Without a year it is the latest one that has begun. `finished`: the latest that is over. `back_year`, `back_month`
    and so on count back from now.
    """
    groups = {name: text for name, text in match.groupdict().items() if text}
    back = {name: _BACK[text] for name, text in groups.items() if name.startswith("back_")}
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
        month = _MONTHS.get(groups["month"]) or int(groups["month"])
        first = datetime(year, month, int(groups.get("day", 1)), tzinfo=now.tzinfo or UTC)
        return _days(first, 1) if "day" in groups else _part(_months(year, month, 1, now), groups)
    if "quarter" in groups:
        return _quarter(year, _QUARTERS[groups["quarter"]], now)
    if "season" in groups:  # of the northern hemisphere; a winter belongs to the year it begins in
        return _months(year, 3 + 3 * _SEASONS[groups["season"]], 3, now)
    return _part(_months(year, 1, 12, now), groups)


def _weekday_or_week(name: str | None, back: int | None, now: datetime) -> DateSpan:
    """Return a week, a day of it, or without a week the latest such weekday before today."""
    if back is None:
        return _days_ago((now.weekday() - _WEEKDAYS[name or ""] - 1) % 7 + 1, now)
    week = _week(back, now)
    return week if name is None else _days(week.start + timedelta(days=_WEEKDAYS[name]), 1)


def _part(span: DateSpan, groups: Mapping[str, str]) -> DateSpan:
    """Return the first, middle or last third of a span if a part is named, else the span."""
    if "part" not in groups:
        return span
    third = timedelta(days=round((span.end - span.start).days / 3))
    ends = (span.start, span.start + third, span.start + 2 * third, span.end)
    part = _PARTS[groups["part"]]
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


# -- forms with a function of their own --------------------------------------------------------------------


def _weekend(now: datetime) -> DateSpan:
    """Return the latest weekend that has begun."""
    saturday = now.weekday() - _WEEKDAYS["saturday"]
    return _days(_days_ago(saturday % 7, now).start, 2)


def _latest_part_of_month(match: re.Match[str], now: datetime) -> DateSpan:
    current, previous = (_part(_months(now.year, now.month - back, 1, now), match.groupdict()) for back in (0, 1))
    return current if current.start <= now else previous


def _units_ago(match: re.Match[str], now: datetime) -> DateSpan:
    """Return the time N days, weeks, months or years ago; larger units are less exact."""
    number = _count_in(match)
    match _UNITS[match["unit"]]:
        case "hour":
            return _days_ago(0, now - timedelta(hours=number))
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
    lengths = {"hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7), "month": timedelta(31)}
    return _until_today(now - _count_in(match) * lengths.get(_UNITS[match["unit"]], timedelta(366)), now)


def _count_in(match: re.Match[str]) -> int:
    count = match.groupdict().get("count") or "a"
    return _COUNTS.get(count) or int(count)


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
    if not (end := _match_forms(match[2], now, _RANGE_END_FORMS, at_start=True)):
        return None
    last = end.end - timedelta(microseconds=1)
    begin = _match_forms(match[1], last, _RANGE_END_FORMS, at_start=True, at_end=True)
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


def _one_of(words: Iterable[str], *, latin: bool = True) -> str:
    return "|".join(sorted((word for word in words if word.isascii() == latin), key=len, reverse=True))


_NUMERAL = re.compile(r"(?<![周期拜])[〇零一二两三四五六七八九十]+(?=个?[年月日号天周週星礼小分時季]|[ヶか箇カヵケ]月)")
_YYYY = r"(?P<year>(?:19|20)\d\d)"
_MM, _DD = r"(?P<month>\d\d?)", r"(?P<day>\d\d?)"
_NTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"(?P<month>{_one_of(_MONTHS)})\b\.?"
_WEEKDAY = rf"(?P<weekday>{_one_of(_WEEKDAYS)})"
_SEASON = rf"(?P<season>{_one_of(_SEASONS)})"
_SEASON_CJK = r"[的の]?(?P<season>[春夏秋冬])"
_PART = rf"(?P<part>{_one_of(_PARTS)})(?: of)?[ -]"
_COUNT = rf"\b(?P<count>\d{{1,3}}|{_one_of(_COUNTS)})(?: of)?"
_UNIT = rf"(?P<unit>{_one_of(_UNITS)})s?\b"
_COUNTED = rf"(?P<count>\d{{1,3}}|[几数])[个ヶか箇カヵケ]?(?P<unit>{_one_of(_UNITS, latin=False)})"
_BACK_YEAR = r"(?P<back_year>今|去|昨|前)年"
_LAST = r"(?<![晚早马以])(?P<{}>上上|上|这|本|先々|先|今)个?"
"""For weeks and months. 晚上, 早上, 马上 and 以上 end with the same character."""
_LAST_WEEK, _LAST_MONTH, _LAST_QUARTER = (_LAST.format(f"back_{unit}") for unit in ("week", "month", "quarter"))
_WEEK = r"(?:周|星期|礼拜|週)の?"
_DAY_OF_WEEK = r"(?P<weekday>一(?![起直共些次个样定])|[二三四五六]|日(?![本语常程])|天(?!气)|[月火水木金土日](?=曜))"
_PART_OF = rf"の?(?P<part>{_one_of(_PARTS, latin=False)})"
_NOT_A_COUNT = (
    r"(?! (?:words|char|tokens|lines|people|users|steps|dollars|euros|miles|met|feet|pages|rows|items|files|ms\b))"
)
"""Nouns after a number that is not a year: "in 2000 words"."""


def _compile(*forms: str | tuple[str, _SpanBuilder]) -> tuple[_DateForm, ...]:
    """Compile forms; a form without a function is built from its named groups."""
    pairs = ((form, _named_span) if isinstance(form, str) else form for form in forms)
    return tuple((re.compile(pattern), build) for pattern, build in pairs)


_EXACT_FORMS = _compile(
    # A day.
    rf"(?<![\w.-]){_YYYY}[-/]{_MM}[-/]{_DD}(?![\d-])",
    rf"{_YYYY}年{_MM}月{_DD}[日号]",
    rf"\b(?P<month>0?\d|1[0-2])/{_DD}/{_YYYY}\b",  # American order, unless the first number is above 12
    rf"\b{_DD}/{_MM}/{_YYYY}\b",
    rf"\b{_NTH}(?: of)? {_MONTH},? {_YYYY}\b",
    rf"\b{_MONTH} {_NTH},? {_YYYY}\b",
    rf"{_BACK_YEAR}[的の]?{_MM}月{_DD}[日号]",
    rf"{_LAST_MONTH}月[的の]?{_DD}[日号]",
    rf"\b(?P<week_of>week of) (?:the )?{_MONTH} {_NTH}\b",
    rf"\b{_MONTH} {_NTH}\b",
    rf"\b{_NTH}(?: of)? {_MONTH}",
    rf"(?<!\d){_MM}月{_DD}[日号]",
    (r"大前天|さきおととい", lambda _, now: _days_ago(3, now)),
    (r"\bday before yesterday\b|(?<!以)前天(?!天)|一昨日|おととい", lambda _, now: _days_ago(2, now)),
    (r"\byesterday\b|\blast night\b|昨[天日晚夜]|きのう|ゆうべ", lambda _, now: _days_ago(1, now)),
    (
        r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b|今[天日晚早朝夜]|けさ",
        lambda _, now: _days_ago(0, now),
    ),
    rf"{_LAST_WEEK}{_WEEK}{_DAY_OF_WEEK}",
    rf"\b{_WEEKDAY} (?:of )?(?P<back_week>last|this) week\b",
    rf"\b(?P<back_week>last|this) week,? (?:on )?{_WEEKDAY}\b",
    rf"\b(?:last|on|this(?: past)?) {_WEEKDAY}\b",
    rf"(?<![\d每毎下几])(?:周|星期|礼拜){_DAY_OF_WEEK}",
    r"(?<![毎下])(?P<weekday>[月火水木金土日])曜",
    # A time ago, or a recent period.
    (r"\bhalf a year ago\b|半年(?:之|以)?前", lambda _, now: _months(now.year, now.month - 6, 1, now)),
    (rf"{_COUNT} {_UNIT} (?:ago|back)\b", _units_ago),
    (rf"{_COUNTED}(?:之|以)?前", _units_ago),
    (rf"\b(?:last|past|previous) {_COUNT} {_UNIT}", _last_units),
    (rf"\bpast {_UNIT}", _last_units),
    (rf"(?:最近|过去|過去|近|这|前|ここ)的?{_COUNTED}", _last_units),
    (r"\bthe other day\b|前些天|前些日子|先日", lambda _, now: _until_today(now - timedelta(14), now)),
    # A week.
    (r"\blast weekend\b|上个?周末|先週末", lambda _, now: _weekend(_week(0, now).start)),
    (r"\bthis weekend\b", lambda _, now: _weekend(now) if _weekend(now).contains(now) else None),
    (r"\b(?:the|past) weekend\b|[周週]末", lambda _, now: _weekend(now)),
    r"\b(?P<back_week>last|previous|this) week\b",
    rf"{_LAST_WEEK}(?:周|星期|礼拜|週)",
    # A month, or a part of it.
    rf"\b{_PART}{_MONTH},? {_YYYY}\b",
    rf"{_YYYY}年{_MM}月{_PART_OF}",
    rf"\b{_MONTH},? (?:of )?{_YYYY}\b",
    rf"{_YYYY}年{_MM}月",
    rf"(?<![\w.-]){_YYYY}-(?P<month>\d\d)(?![\w-])",
    rf"{_BACK_YEAR}[的の]?{_MM}月",
    rf"\b{_PART}{_MONTH}",
    rf"(?<!\d){_MM}月{_PART_OF}",
    rf"{_LAST_MONTH}月{_PART_OF}",
    (rf"(?<![每毎\d])月{_PART_OF}", _latest_part_of_month),
    r"\b(?P<back_month>last|previous|this) month\b",
    rf"{_LAST_MONTH}月",
    rf"\b(?P<finished>last) {_MONTH}",
    rf"\b(?:in|during|this) {_MONTH}",
    rf"(?<!\d){_MM}月",
    # A quarter or a season.
    rf"\bq(?P<quarter>[1-4])(?: of)? ?{_YYYY}\b",
    rf"{_YYYY}(?:年第?| ?q)(?P<quarter>[1-4])(?:季度|\b)",
    rf"\b(?P<quarter>{_one_of(_QUARTERS)}) quarter of {_YYYY}\b",
    r"\b(?P<back_quarter>last|this) quarter\b",
    rf"{_LAST_QUARTER}季度",
    r"\bin q(?P<quarter>[1-4])\b",
    r"第(?P<quarter>[1-4])季度",
    rf"\b{_SEASON},? (?:of )?{_YYYY}\b",
    rf"{_YYYY}年{_SEASON_CJK}",
    rf"{_BACK_YEAR}{_SEASON_CJK}",
    rf"\b(?P<finished>last) {_SEASON}\b",
    rf"\b(?:this|(?:in|over|during) the) {_SEASON}(?=[?.!,;]|$)",
    # A year, or a part of it.
    rf"\b{_PART}(?:in )?{_YYYY}\b",
    rf"{_YYYY}年{_PART_OF}",
    rf"{_BACK_YEAR}{_PART_OF}",
    r"\b(?P<back_year>last|previous|this) year\b",
    (r"おととし", lambda _, now: _months(now.year - 2, 1, 12, now)),
    r"(?P<back_year>大前|一昨|(?<![年以之])前|今|去|昨)年",
    rf"\b(?:in|during) {_YYYY}\b{_NOT_A_COUNT}",
    rf"{_YYYY}年",
)
"""Forms that name a day, week, month or year, most exact first."""

_RANGE_END_FORMS = _EXACT_FORMS + _compile(
    rf"\b{_MONTH}",
    rf"\b{_WEEKDAY}\b",
    rf"\b{_YYYY}\b{_NOT_A_COUNT}",
    (r"\b(?:now|the present)\b|现在|今", lambda _, now: _days_ago(0, now)),
)
"""With forms that are dates only in a range: "may" is usually another word."""

_ALL_FORMS = (
    *_compile(
        (r"\bbetween (.{3,40}?) and (.{3,40})", _from_to),
        (r"\bfrom (.{3,40}?) (?:to|till|until|through) (.{3,40})", _from_to),
        (r"(?:从|自)(.{2,12}?)[到至](.{1,12})", _from_to),
        (r"(\d{1,4}[年月][\d月日号]{0,6})(?:到|至|から|[-~])(.{2,12})", _from_to),
        (r"\bsince (?:the )?(?P<after>.{3,40})", _since_date),
        (r"(?:自从?|从)(?P<after>.{2,12})", _since_date),
        (r"(?P<before>.{2,12}?)(?:以来|から|以降)", _since_date),
    ),
    *_EXACT_FORMS,
)
