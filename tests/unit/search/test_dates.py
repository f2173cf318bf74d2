"""Dates in queries, in English, Chinese, Japanese and German."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.dates import DateSpan, find_date_span
from inmind.search.query import MAX_QUERY_CHARS

pytestmark = pytest.mark.spec("H3")

NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)
"""A Wednesday in May."""


def days(text: str, now: datetime = NOW) -> tuple[date, date] | None:
    """First and last day that a text means."""
    span = find_date_span(text, now)
    return None if span is None else (span.start.date(), (span.end - timedelta(microseconds=1)).date())


def day_of(text: str) -> date:
    return date.fromisoformat(text)


@each_row(
    ("text", "first", "last"),
    [
        ("am 7. Mai 2023", "2023-05-07", "2023-05-07"),
        ("am 7.5.2023", "2023-05-07", "2023-05-07"),
        ("am 3. Mai", "2026-05-03", "2026-05-03"),
        ("gestern", "2026-05-19", "2026-05-19"),
        ("vorgestern", "2026-05-18", "2026-05-18"),
        ("letzte Woche", "2026-05-11", "2026-05-17"),
        ("am Montag", "2026-05-18", "2026-05-18"),
        ("vor drei Tagen", "2026-05-17", "2026-05-17"),
        ("in den letzten 3 Tagen", "2026-05-17", "2026-05-20"),
        ("letztes Wochenende", "2026-05-16", "2026-05-17"),
        ("im Mai 2023", "2023-05-01", "2023-05-31"),
        ("Anfang Juni 2023", "2023-06-01", "2023-06-10"),
        ("letzten Monat", "2026-04-01", "2026-04-30"),
        ("im letzten Winter", "2025-12-01", "2026-02-28"),
        ("letztes Jahr", "2025-01-01", "2025-12-31"),
        ("vom 3.5.2023 bis 7.5.2023", "2023-05-03", "2023-05-07"),
        ("zwischen Mai und Juli 2023", "2023-05-01", "2023-07-31"),
        ("seit März", "2026-03-01", "2026-05-20"),
    ],
)
def test_german_dates_are_read_from_its_tables(text: str, first: str, last: str) -> None:
    assert days(text) == (day_of(first), day_of(last))


@each_row("text", ["version 1.2.2023", "release 12.10.2021", "the host 10.10.2010"])
def test_numbers_with_dots_are_no_dates(text: str) -> None:
    assert days(text) is None


@each_row(
    ("text", "first", "last"),
    [
        # Dates in full.
        ("what happened on 2023-05-07?", "2023-05-07", "2023-05-07"),
        ("the log of 2023-05-07T10:00", "2023-05-07", "2023-05-07"),
        ("on 2023/5/7", "2023-05-07", "2023-05-07"),
        ("on 5/7/2023", "2023-05-07", "2023-05-07"),
        ("on 17/5/2023", "2023-05-17", "2023-05-17"),
        ("on 7 May 2023", "2023-05-07", "2023-05-07"),
        ("the 7th of May, 2023", "2023-05-07", "2023-05-07"),
        ("on May 7, 2023", "2023-05-07", "2023-05-07"),
        ("Sept. 3rd, 2023", "2023-09-03", "2023-09-03"),
        ("on Feb 29, 2024", "2024-02-29", "2024-02-29"),
        # A day without a year is the most recent one.
        ("on May 3", "2026-05-03", "2026-05-03"),
        ("on the 20th of May", "2026-05-20", "2026-05-20"),
        ("on May 21", "2025-05-21", "2025-05-21"),
        ("December 31", "2025-12-31", "2025-12-31"),
        ("on February 29", "2024-02-29", "2024-02-29"),
        ("the week of May 3", "2026-04-27", "2026-05-03"),
        # Relative to today.
        ("what did we do today", "2026-05-20", "2026-05-20"),
        ("earlier today", "2026-05-20", "2026-05-20"),
        ("this morning", "2026-05-20", "2026-05-20"),
        ("Yesterday's call", "2026-05-19", "2026-05-19"),
        ("last night", "2026-05-19", "2026-05-19"),
        ("the day before yesterday", "2026-05-18", "2026-05-18"),
        ("2 hours ago", "2026-05-20", "2026-05-20"),
        ("30 minutes ago", "2026-05-20", "2026-05-20"),
        ("20 hours ago", "2026-05-19", "2026-05-19"),
        ("3 days ago", "2026-05-17", "2026-05-17"),
        ("a couple of days ago", "2026-05-18", "2026-05-18"),
        ("a couple days back", "2026-05-18", "2026-05-18"),
        ("two weeks ago", "2026-05-03", "2026-05-09"),
        ("five months ago", "2025-12-01", "2025-12-31"),
        ("half a year ago", "2025-11-01", "2025-11-30"),
        ("a year ago", "2025-01-01", "2025-12-31"),
        ("in the last 3 days", "2026-05-17", "2026-05-20"),
        ("over the past two weeks", "2026-05-06", "2026-05-20"),
        ("the past week", "2026-05-13", "2026-05-20"),
        ("in the last 24 hours", "2026-05-19", "2026-05-20"),
        ("the other day", "2026-05-06", "2026-05-20"),
        # Weeks begin on Mondays.
        ("last week", "2026-05-11", "2026-05-17"),
        ("this week", "2026-05-18", "2026-05-24"),
        ("last weekend", "2026-05-16", "2026-05-17"),
        ("over the weekend", "2026-05-16", "2026-05-17"),
        ("this past weekend", "2026-05-16", "2026-05-17"),
        ("last Tuesday", "2026-05-19", "2026-05-19"),
        ("on Wednesday", "2026-05-13", "2026-05-13"),
        ("on Thursday", "2026-05-14", "2026-05-14"),
        ("Tuesday last week", "2026-05-12", "2026-05-12"),
        ("last week on Friday", "2026-05-15", "2026-05-15"),
        ("since Monday", "2026-05-18", "2026-05-20"),
        # Months, quarters, seasons, years.
        ("in May 2023", "2023-05-01", "2023-05-31"),
        ("December 2023", "2023-12-01", "2023-12-31"),
        ("in 2023-02", "2023-02-01", "2023-02-28"),
        ("in May", "2026-05-01", "2026-05-31"),
        ("in June", "2025-06-01", "2025-06-30"),
        ("last May", "2025-05-01", "2025-05-31"),
        ("in early March", "2026-03-01", "2026-03-10"),
        ("late May 2023", "2023-05-21", "2023-05-31"),
        ("at the end of April", "2026-04-21", "2026-04-30"),
        ("earlier this month", "2026-05-01", "2026-05-31"),
        ("last month", "2026-04-01", "2026-04-30"),
        ("Q3 2024", "2024-07-01", "2024-09-30"),
        ("2024 Q4", "2024-10-01", "2024-12-31"),
        ("the third quarter of 2024", "2024-07-01", "2024-09-30"),
        ("in Q3", "2025-07-01", "2025-09-30"),
        ("last quarter", "2026-01-01", "2026-03-31"),
        ("spring 2023", "2023-03-01", "2023-05-31"),
        ("the winter of 2022", "2022-12-01", "2023-02-28"),
        ("last summer", "2025-06-01", "2025-08-31"),
        ("last spring", "2025-03-01", "2025-05-31"),
        ("in the fall", "2025-09-01", "2025-11-30"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("in early 2023", "2023-01-01", "2023-05-02"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        # Ranges.
        ("between May and July", "2025-05-01", "2025-07-31"),
        ("between November and January", "2025-11-01", "2026-01-31"),
        ("between March and June 2023", "2023-03-01", "2023-06-30"),
        ("from Monday to Tuesday", "2026-05-18", "2026-05-19"),
        ("from May 3 to May 10", "2026-05-03", "2026-05-10"),
        ("between 2021 and 2023", "2021-01-01", "2023-12-31"),
        ("from January until now", "2026-01-01", "2026-05-20"),
        ("since last week", "2026-05-11", "2026-05-20"),
        ("since March", "2026-03-01", "2026-05-20"),
        ("since 2024", "2024-01-01", "2026-05-20"),
        ("since yesterday", "2026-05-19", "2026-05-20"),
    ],
)
def test_english(text: str, first: str, last: str) -> None:
    assert days(text) == (day_of(first), day_of(last))


@each_row(
    ("text", "first", "last"),
    [
        ("2023年5月7日发生了什么", "2023-05-07", "2023-05-07"),
        ("２０２３年５月７号", "2023-05-07", "2023-05-07"),
        ("二〇二三年五月七日", "2023-05-07", "2023-05-07"),
        ("二零二三年十二月二十五日", "2023-12-25", "2023-12-25"),
        ("5月3日我们说了什么", "2026-05-03", "2026-05-03"),
        ("六月三号", "2025-06-03", "2025-06-03"),
        ("去年5月3日", "2025-05-03", "2025-05-03"),
        ("上个月5号", "2026-04-05", "2026-04-05"),
        ("今天聊了什么", "2026-05-20", "2026-05-20"),
        ("昨晚吃了什么", "2026-05-19", "2026-05-19"),
        ("前天", "2026-05-18", "2026-05-18"),
        ("大前天", "2026-05-17", "2026-05-17"),
        ("三天前", "2026-05-17", "2026-05-17"),
        ("两周以前", "2026-05-03", "2026-05-09"),
        ("五个月前", "2025-12-01", "2025-12-31"),
        ("半年前", "2025-11-01", "2025-11-30"),
        ("十年之前", "2016-01-01", "2016-12-31"),
        ("3小时前", "2026-05-20", "2026-05-20"),
        ("最近三天", "2026-05-17", "2026-05-20"),
        ("过去两周", "2026-05-06", "2026-05-20"),
        ("前几天", "2026-05-17", "2026-05-20"),
        ("上周", "2026-05-11", "2026-05-17"),
        ("上个星期", "2026-05-11", "2026-05-17"),
        ("上上周", "2026-05-04", "2026-05-10"),
        ("这周", "2026-05-18", "2026-05-24"),
        ("上周五", "2026-05-15", "2026-05-15"),
        ("上个星期天", "2026-05-17", "2026-05-17"),
        ("本周一", "2026-05-18", "2026-05-18"),
        ("周五说的那家店", "2026-05-15", "2026-05-15"),
        ("上周末", "2026-05-16", "2026-05-17"),
        ("上周一起去了哪里", "2026-05-11", "2026-05-17"),
        ("上周日本的新闻", "2026-05-11", "2026-05-17"),
        ("上个月", "2026-04-01", "2026-04-30"),
        ("上上个月", "2026-03-01", "2026-03-31"),
        ("本月", "2026-05-01", "2026-05-31"),
        ("月初", "2026-05-01", "2026-05-10"),
        ("月底", "2026-04-21", "2026-04-30"),
        ("上个月底", "2026-04-21", "2026-04-30"),
        ("三月中旬", "2026-03-11", "2026-03-20"),
        ("十二月", "2025-12-01", "2025-12-31"),
        ("2023年5月", "2023-05-01", "2023-05-31"),
        ("去年十月", "2025-10-01", "2025-10-31"),
        ("2024年第三季度", "2024-07-01", "2024-09-30"),
        ("上个季度", "2026-01-01", "2026-03-31"),
        ("去年夏天", "2025-06-01", "2025-08-31"),
        ("2023年", "2023-01-01", "2023-12-31"),
        ("今年", "2026-01-01", "2026-12-31"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("前年", "2024-01-01", "2024-12-31"),
        ("大前年", "2023-01-01", "2023-12-31"),
        ("从三月到五月", "2026-03-01", "2026-05-31"),
        ("2021年到2023年", "2021-01-01", "2023-12-31"),
        ("自从上周", "2026-05-11", "2026-05-20"),
        ("去年以来", "2025-01-01", "2026-05-20"),
    ],
)
def test_chinese(text: str, first: str, last: str) -> None:
    assert days(text) == (day_of(first), day_of(last))


@each_row(
    ("text", "first", "last"),
    [
        ("昨日の会議", "2026-05-19", "2026-05-19"),
        ("一昨日", "2026-05-18", "2026-05-18"),
        ("おととい", "2026-05-18", "2026-05-18"),
        ("今朝", "2026-05-20", "2026-05-20"),
        ("三日前", "2026-05-17", "2026-05-17"),
        ("２週間前", "2026-05-03", "2026-05-09"),
        ("3ヶ月前", "2026-02-01", "2026-02-28"),
        ("先週", "2026-05-11", "2026-05-17"),
        ("先週の金曜日", "2026-05-15", "2026-05-15"),
        ("先々週", "2026-05-04", "2026-05-10"),
        ("金曜日に", "2026-05-15", "2026-05-15"),
        ("週末", "2026-05-16", "2026-05-17"),
        ("先月", "2026-04-01", "2026-04-30"),
        ("先月末", "2026-04-21", "2026-04-30"),
        ("今月", "2026-05-01", "2026-05-31"),
        ("5月3日", "2026-05-03", "2026-05-03"),
        ("去年の夏", "2025-06-01", "2025-08-31"),
        ("昨年", "2025-01-01", "2025-12-31"),
        ("一昨年", "2024-01-01", "2024-12-31"),
        ("おととし", "2024-01-01", "2024-12-31"),
        ("過去2週間", "2026-05-06", "2026-05-20"),
        ("先週から", "2026-05-11", "2026-05-20"),
        ("3月から5月まで", "2026-03-01", "2026-05-31"),
    ],
)
def test_japanese(text: str, first: str, last: str) -> None:
    assert days(text) == (day_of(first), day_of(last))


@each_row(
    "text",
    [
        "",
        "may I ask something",
        "we march on",
        "it may 100% work",
        "in 2000 words",
        "the second image",
        "version 3.5",
        "upgrade to 2.0.2023",
        "the model gpt-4-2024-05-13",
        "call 2023-05-07-113",
        "a 3 month plan",
        "in 10 steps",
        "on 31 June",
        "on 2023-13-45",
        "in 1850",
        "in 9999",
        "year 99999999",
        "999 years from now",
        "every Monday",
        "spring boot",
        "I fall asleep",
        "the March of the Penguins",
        "next week",
        "what shall we cook this weekend",
        "I sold cakes in the Spring Fling Market",
        "tomorrow",
        "between you and me",
        "from A to B",
        "since you asked",
        "以前天天跑步",
        "每周五的例会",
        "一周五次",
        "几月几号去的",
        "住在五号楼",
        "马上就好",
        "从来没有",
        "毎月末の締め",
        "だからそうした",
    ],
)
def test_other_texts_have_no_date(text: str) -> None:
    assert days(text) is None


@each_row(
    ("text", "now", "first", "last"),
    [
        ("yesterday", "2024-03-01", "2024-02-29", "2024-02-29"),
        ("yesterday", "2026-01-01", "2025-12-31", "2025-12-31"),
        ("last month", "2026-01-31", "2025-12-01", "2025-12-31"),
        ("last week", "2026-01-01", "2025-12-22", "2025-12-28"),
        ("last week", "2026-05-18", "2026-05-11", "2026-05-17"),
        ("this week", "2026-05-24", "2026-05-18", "2026-05-24"),
        ("last quarter", "2026-02-10", "2025-10-01", "2025-12-31"),
        ("in December", "2026-12-01", "2026-12-01", "2026-12-31"),
        ("last winter", "2026-01-10", "2024-12-01", "2025-02-28"),
        ("12 months ago", "2024-02-29", "2023-02-01", "2023-02-28"),
        ("on Monday", "2026-05-18", "2026-05-11", "2026-05-11"),
        ("last weekend", "2026-05-17", "2026-05-09", "2026-05-10"),
        ("this weekend", "2026-05-17", "2026-05-16", "2026-05-17"),
    ],
)
def test_dates_near_the_ends_of_years_months_and_weeks(text: str, now: str, first: str, last: str) -> None:
    noon = datetime.fromisoformat(now).replace(hour=12, tzinfo=UTC)
    assert days(text, noon) == (day_of(first), day_of(last))


def test_an_invalid_day_of_a_month_means_the_month() -> None:
    assert days("on 31 June 2023") == (date(2023, 6, 1), date(2023, 6, 30))


def test_days_are_in_the_time_zone_of_the_query() -> None:
    tokyo = timezone(timedelta(hours=9))
    span = find_date_span("today", datetime(2026, 5, 20, 1, tzinfo=tokyo))
    assert span == DateSpan(datetime(2026, 5, 20, tzinfo=tokyo), datetime(2026, 5, 21, tzinfo=tokyo))


def test_a_span_contains_its_start_and_not_its_end() -> None:
    day = DateSpan(datetime(2026, 5, 20, tzinfo=UTC), datetime(2026, 5, 21, tzinfo=UTC))
    assert day.contains(day.start)
    assert not day.contains(day.end)
    assert day.contains(day.end, tolerance=timedelta(seconds=1))
    assert not day.contains(day.start - timedelta(seconds=1))


PHRASES = st.sampled_from(
    "last past this in on since from between and to early end of May March 29 31 February 2024 9999 999 week month "
    "years ago days weekend Tuesday q3 spring 上 个 月 周 五 年 初 从 到 去 前 天 三 日 先 週 から - /".split()
)
MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(words=st.lists(PHRASES | st.text(max_size=3), max_size=8), separator=st.sampled_from(["", " "]), now=MOMENTS)
@example(words=["yesterday"], separator=" ", now=datetime.min.replace(tzinfo=UTC))
@example(words=["999", "years", "ago"], separator=" ", now=datetime(500, 1, 1, tzinfo=UTC))
@example(words=["today"], separator=" ", now=datetime.max.replace(tzinfo=UTC))
def test_no_text_raises_and_every_span_is_in_range(words: list[str], separator: str, now: datetime) -> None:
    span = find_date_span(separator.join(words), now)
    if span is not None:
        assert span.start < span.end
        assert span.start - timedelta(days=30) < span.end + timedelta(days=30)


@given(now=MOMENTS)
def test_a_span_is_never_in_the_future(now: datetime) -> None:
    for text in ("in May", "on May 3", "in Q3", "in the winter", "月底", "the weekend", "on Monday"):
        span = find_date_span(text, now)
        assert span is None or span.start <= now


@each_row("piece", ["between ", "since the ", "from May to ", "从", "2023年", "1", "上", "先週から", "a "])
def test_the_longest_query_is_parsed_quickly(piece: str) -> None:
    start = time.process_time()
    find_date_span((piece * MAX_QUERY_CHARS)[:MAX_QUERY_CHARS], NOW)
    assert time.process_time() - start < 0.5
