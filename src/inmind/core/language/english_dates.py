"""English dates, and dates in digits."""

from __future__ import annotations

from inmind.core.language.tables import DAY, MONTH, MONTHS, YEAR, DateWords, group, numbered

_MONTHS = {spelling: number for number, name in enumerate(MONTHS, 1) for spelling in (name, name[:3])} | {"sept": 9}
_WEEKDAYS = numbered("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", start=0)
_SEASONS = numbered("spring", "summer", "autumn fall", "winter", start=0)
_PARTS = numbered("early beginning start", "mid middle", "late end", start=0)
_QUARTERS = numbered("first", "second", "third", "fourth")
_COUNTS = numbered(
    "a an one", "two couple", "three few", "four several", "five", "six", "seven", "eight", "nine", "ten"
)
_UNITS = "hour minute day week month year".split()

_NTH = rf"{DAY}(?:st|nd|rd|th)?"
_MONTH = rf"{group('month', _MONTHS)}\b\.?"
_WEEKDAY, _SEASON = group("weekday", _WEEKDAYS), group("season", _SEASONS)
_PART = rf"{group('part', _PARTS)}(?: of)?[ -]"
_COUNT = rf"\b{group('count', [*_COUNTS, '[0-9]{1,3}'])}(?: of)?"
_UNIT = rf"{group('unit', _UNITS)}s?\b"
_NOT_A_COUNT = (
    r"(?! (?:words|char|tokens|lines|people|users|steps|dollars|euros|miles|met|feet|pages|rows|items|files|ms\b))"
)
"""Nouns after a number that is not a year: "in 2000 words"."""

ENGLISH_DATES = DateWords(
    numbers={
        "month": _MONTHS,
        "weekday": _WEEKDAYS,
        "season": _SEASONS,
        "part": _PARTS,
        "quarter": _QUARTERS,
        "count": _COUNTS,
        "back": numbered("this", "last previous", start=0)
        | {"today": 0, "tonight": 0, "now": 0, "the present": 0, "yesterday": 1, "last night": 1}
        | {f"this {part}": 0 for part in ("morning", "afternoon", "evening")}
        | {"day before yesterday": 2},
    },
    units={unit: unit for unit in _UNITS},
    ranges=(
        r"\bbetween (?P<first>.{3,40}?) and (?P<last>.{3,40})",
        r"\bfrom (?P<first>.{3,40}?) (?:to|till|until|through) (?P<last>.{3,40})",
        r"\bsince (?:the )?(?P<after>.{3,40})",
    ),
    days=(
        rf"(?<![\w.-]){YEAR}[-/]{MONTH}[-/]{DAY}(?![\d-])",
        rf"\b(?P<month>0?\d|1[0-2])/{DAY}/{YEAR}\b",  # American order, unless the first number is above 12
        rf"\b{DAY}/{MONTH}/{YEAR}\b",
        rf"\b{_NTH}(?: of)? {_MONTH},? {YEAR}\b",
        rf"\b{_MONTH} {_NTH},? {YEAR}\b",
        rf"\b(?P<week_of>week of) (?:the )?{_MONTH} {_NTH}\b",
        rf"\b{_MONTH} {_NTH}\b",
        rf"\b{_NTH}(?: of)? {_MONTH}",
        r"\b(?P<back_day>day before yesterday)\b",
        r"\b(?P<back_day>yesterday|last night)\b",
        r"\b(?P<back_day>today|tonight|this (?:morning|afternoon|evening))\b",
        rf"\b{_WEEKDAY} (?:of )?(?P<back_week>last|this) week\b",
        rf"\b(?P<back_week>last|this) week,? (?:on )?{_WEEKDAY}\b",
        rf"\b(?:last|on|this(?: past)?) {_WEEKDAY}\b",
        r"\b(?P<half_year>half a year ago)\b",
        rf"{_COUNT} {_UNIT} (?P<ago>ago|back)\b",
        rf"\b(?P<recent>last|past|previous) {_COUNT} {_UNIT}",
        rf"\b(?P<recent>past) {_UNIT}",
        r"\b(?P<some_days>the other day)\b",
        r"\b(?P<last_weekend>last weekend)\b",
        r"\b(?P<this_weekend>this weekend)\b",
        r"\b(?:the|past) (?P<weekend>weekend)\b",
        r"\b(?P<back_week>last|previous|this) week\b",
    ),
    longer=(
        rf"\b{_PART}{_MONTH},? {YEAR}\b",
        rf"\b{_MONTH},? (?:of )?{YEAR}\b",
        rf"(?<![\w.-]){YEAR}-(?P<month>\d\d)(?![\w-])",
        rf"\b{_PART}{_MONTH}",
        r"\b(?P<back_month>last|previous|this) month\b",
        rf"\b(?P<finished>last) {_MONTH}",
        rf"\b(?:in|during|this) {_MONTH}",
        rf"\bq(?P<quarter>[1-4])(?: of)? ?{YEAR}\b",
        rf"\b{group('quarter', _QUARTERS)} quarter of {YEAR}\b",
        r"\b(?P<back_quarter>last|this) quarter\b",
        r"\bin q(?P<quarter>[1-4])\b",
        rf"\b{_SEASON},? (?:of )?{YEAR}\b",
        rf"\b(?P<finished>last) {_SEASON}\b",
        rf"\b(?:this|(?:in|over|during) the) {_SEASON}(?=[?.!,;]|$)",
        rf"\b{_PART}(?:in )?{YEAR}\b",
        r"\b(?P<back_year>last|previous|this) year\b",
        rf"\b(?:in|during) {YEAR}\b{_NOT_A_COUNT}",
    ),
    range_ends=(
        rf"\b{_MONTH}",
        rf"\b{_WEEKDAY}\b",
        rf"\b{YEAR}\b{_NOT_A_COUNT}",
        r"\b(?P<back_day>now|the present)\b",
    ),
)
