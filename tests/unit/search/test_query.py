"""Validation of queries and filters."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from builders import WHEN
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.encoding import to_microseconds
from inmind.errors import InvalidInput
from inmind.search.crystal import Crystal
from inmind.search.query import FILTERS, MAX_HITS, MAX_QUERY_CHARS, Query, validate_filters, validate_query

pytestmark = pytest.mark.spec("H3", "J3")


def test_a_query_with_defaults() -> None:
    assert validate_query("when did we fix CORS") == Query(text="when did we fix CORS", limit=10)


def test_a_query_with_all_filters() -> None:
    assert validate_query(
        "CORS",
        limit=MAX_HITS,
        kinds=["fact", "episode", "fact"],
        sources="memory",
        since=date(2026, 1, 1),
        until="2026-01-31",
        session="deploy-42",
        as_of="2026-02-01T12:00+01:00",
    ) == Query(
        text="CORS",
        limit=MAX_HITS,
        kinds=("episode", "fact"),
        sources=("memory",),
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 1, 31, 23, 59, 59, 999999, tzinfo=UTC),
        session="deploy-42",
        as_of=datetime(2026, 2, 1, 11, tzinfo=UTC),
    )


@each_row(
    ("fields", "field", "expected"),
    [
        ({"text": None}, "query", "a text"),
        ({"text": 3}, "query", "a text"),
        ({"text": b"cors"}, "query", "a text"),
        ({"text": "x" * (MAX_QUERY_CHARS + 1)}, "query", "at most 10,000 characters"),
        ({"text": "词" * 100_000}, "query", "at most 10,000 characters"),
        ({"limit": 0}, "limit", "from 1 to"),
        ({"limit": -1}, "limit", "from 1 to"),
        ({"limit": MAX_HITS + 1}, "limit", "from 1 to"),
        ({"limit": 10**400}, "limit", "from 1 to"),
        ({"limit": True}, "limit", "from 1 to"),
        ({"limit": 2.5}, "limit", "from 1 to"),
        ({"limit": "10"}, "limit", "from 1 to"),
        ({"limit": None}, "limit", "from 1 to"),
        ({"kinds": "opinion"}, "kinds", "one of fact, preference"),
        ({"kinds": ["fact", "opinion"]}, "kinds", "one of fact, preference"),
        ({"kinds": ["fact", None]}, "kinds", "one of fact, preference"),
        ({"kinds": [["fact"]]}, "kinds", "one of fact, preference"),
        ({"kinds": 3}, "kinds", "some of fact, preference"),
        ({"kinds": {"fact": 1}}, "kinds", "some of fact, preference"),
        ({"sources": "web"}, "sources", "one of memory, sessions"),
        ({"since": "last week"}, "since", "a date or time in ISO 8601"),
        ({"since": "2026-02-30"}, "since", "a date or time in ISO 8601"),
        ({"since": "2026-13-01T00:00"}, "since", "a date or time in ISO 8601"),
        ({"since": "0001-01-01T00:00+14:00"}, "since", "a date or time in ISO 8601"),
        ({"since": 1_700_000_000}, "since", "a date or time, or text"),
        ({"until": "9999-12-31T23:59:59-12:00"}, "until", "a date or time in ISO 8601"),
        ({"until": True}, "until", "a date or time, or text"),
        ({"as_of": "31.01.2026"}, "as_of", "a date or time in ISO 8601"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "until", "a time after 2026-02-01"),
        ({"since": WHEN, "until": WHEN}, "until", "a time after"),
        ({"session": 42}, "session", "the id of a session"),
    ],
)
def test_an_invalid_query_is_rejected_by_field(fields: dict[str, Any], field: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validate_query(**{"text": "CORS", **fields})
    assert refused.value.field == field
    assert expected in str(refused.value)


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_filter_filters_nothing(empty: object) -> None:
    filters = dict.fromkeys(("kinds", "sources", "since", "until", "session", "as_of"), empty)
    assert not validate_query("CORS", **filters).has_filters


@each_row(
    "filters",
    [
        {"kinds": ["fact"]},
        {"sources": ["memory"]},
        {"since": WHEN},
        {"until": WHEN},
        {"session": "s"},
        {"as_of": WHEN},
    ],
)
def test_each_filter_sets_has_filters(filters: dict[str, Any]) -> None:
    assert validate_query("CORS", **filters).has_filters


@each_row("unknown", ["kind", "resource", "k", "", "Limit"])
def test_an_unknown_filter_is_an_error_and_never_ignored(unknown: str) -> None:
    with pytest.raises(InvalidInput, match="limit, kinds, sources") as refused:
        validate_filters({"limit": 3, unknown: "x"})
    assert refused.value.field == unknown


def test_known_filters_are_accepted() -> None:
    assert tuple(validate_filters(dict.fromkeys(FILTERS, 1))) == FILTERS


@pytest.mark.parametrize("day", ["2026-01-31", "20260131", "2026-W05-6", date(2026, 1, 31)])
def test_an_end_day_is_included_in_every_notation(day: object) -> None:
    query = validate_query("CORS", since=day, until=day)
    assert query.allows(a_crystal(at=datetime(2026, 1, 31, tzinfo=UTC)))
    assert query.allows(a_crystal(at=datetime(2026, 1, 31, 23, 59, tzinfo=UTC)))
    assert not query.allows(a_crystal(at=datetime(2026, 2, 1, tzinfo=UTC)))
    assert not query.allows(a_crystal(at=datetime(2026, 1, 30, 23, 59, tzinfo=UTC)))


def a_crystal(*, at: datetime = WHEN, **known: Any) -> Crystal:
    return Crystal(id="session/s#1", text="x", at=at, **known)


@each_row(
    ("filters", "allowed", "excluded"),
    [
        ({}, {}, {"lifecycle": "expired"}),
        ({}, {"lifecycle": "frozen"}, {"lifecycle": "archived"}),
        ({"kinds": "fact"}, {"kind": "fact"}, {"kind": "episode"}),
        ({"sources": "sessions"}, {"source": "sessions"}, {"source": "memory"}),
        ({"session": "a"}, {"session": "a"}, {"session": "ab"}),
        ({"since": WHEN}, {"at": WHEN}, {"at": WHEN - timedelta(microseconds=1)}),
        ({"until": WHEN}, {"at": WHEN - timedelta(microseconds=1)}, {"at": WHEN}),
    ],
)
def test_a_filter_allows_only_matching_crystals(
    filters: dict[str, Any], allowed: dict[str, Any], excluded: dict[str, Any]
) -> None:
    query = validate_query("CORS", **filters)
    assert query.allows(a_crystal(**allowed))
    assert not query.allows(a_crystal(**excluded))


@pytest.mark.spec("H7")
@each_row(
    ("known", "expected"),
    [
        ({}, True),
        ({"at": WHEN + timedelta(days=1)}, False),
        ({"lifecycle": "expired"}, True),
        ({"lifecycle": "archived"}, True),
        ({"valid_from": WHEN + timedelta(days=1)}, False),
        ({"valid_from": WHEN}, True),
        ({"valid_to": WHEN}, False),
        ({"valid_to": WHEN + timedelta(days=1)}, True),
    ],
)
def test_as_of_selects_crystals_valid_then(known: dict[str, Any], expected: bool) -> None:
    assert validate_query("CORS", as_of=WHEN).allows(a_crystal(**known)) == expected


def test_times_of_different_zones_are_compared() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert validate_query("CORS", since=WHEN.astimezone(tokyo)) == validate_query("CORS", since=WHEN)


@given(
    text=st.text() | st.dates().map(str) | st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat),
    field=st.sampled_from(["since", "until", "as_of"]),
)
def test_any_text_is_a_valid_time_or_rejected(text: str, field: str) -> None:
    with contextlib.suppress(InvalidInput):
        time: datetime | None = getattr(validate_query("CORS", **{field: text}), field)
        assert time is None or isinstance(to_microseconds(time), int)
