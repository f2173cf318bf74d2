"""Search queries and hits, validated once at the boundary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, cast

from inmind.core.frozen import frozen
from inmind.core.settings import SOURCES
from inmind.core.text import shorten
from inmind.errors import InvalidInput
from inmind.search.crystal import HIDDEN_LIFECYCLES, KINDS, Crystal

LINE_LENGTH = 200
"""Characters of the text in `str(hit)`."""

MAX_QUERY_CHARS = 10_000
"""Maximum length of a query: every word is looked up."""

MAX_HITS = 200

FILTERS = ("limit", "kinds", "sources", "since", "until", "session", "as_of")


@frozen(kw_only=True)
class Query:
    """A search text and its filters."""

    text: str
    limit: int = 10
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    as_of: datetime | None = None
    """Search what was known and valid at this time."""
    excluded_events: frozenset[str] = frozenset()
    """Events that are neither returned nor quoted, such as the message that asks."""

    @property
    def has_filters(self) -> bool:
        """True if it filters the results."""
        return bool(self.kinds or self.sources or self.since or self.until or self.session or self.as_of)

    def allows(self, crystal: Crystal) -> bool:
        return (
            (not self.kinds or crystal.kind in self.kinds)
            and (not self.sources or crystal.source in self.sources)
            and (self.since is None or crystal.at >= self.since)
            and (self.until is None or crystal.at < self.until)
            and (not self.session or crystal.session == self.session)
            and (self.was_valid_as_of(crystal) if self.as_of else crystal.lifecycle not in HIDDEN_LIFECYCLES)
        )

    def was_valid_as_of(self, crystal: Crystal) -> bool:
        """Return True if the crystal existed and was valid at `as_of`."""
        day = self.as_of
        return day is None or (
            crystal.at <= day
            and (crystal.valid_from is None or crystal.valid_from <= day)
            and (crystal.valid_to is None or crystal.valid_to > day)
        )


@frozen(kw_only=True)
class Hit:
    """A crystal that matches a query, with the parts of its score."""

    crystal: Crystal
    score: float
    parts: Mapping[str, float]
    """Components of the score."""
    passage: str
    """Best matching passage of its text; all of it if it is short."""
    before: str = ""
    after: str = ""
    """Lines before and after it in its conversation."""

    @property
    def text(self) -> str:
        """The whole text of the crystal."""
        return self.crystal.text

    @property
    def source(self) -> str:
        """`memory` for notes, pages and dreams, `sessions` for messages."""
        return self.crystal.source

    @property
    def date(self) -> datetime:
        """When it was said or written."""
        return self.crystal.at

    def __str__(self) -> str:
        return f"{self.date:%Y-%m-%d} {self.source}: {shorten(self.passage, LINE_LENGTH)}"


def validate_query(
    text: object,
    limit: object = 10,
    kinds: object = None,
    sources: object = None,
    since: object = None,
    until: object = None,
    session: object = None,
    as_of: object = None,
) -> Query:
    """Validate a query from a host or model.

    InvalidInput names the field, the value and what was expected.
    """
    if not isinstance(text, str):
        raise InvalidInput(field="query", value=text, expected="a text")
    if len(text) > MAX_QUERY_CHARS:
        expected = f"at most {MAX_QUERY_CHARS:,} characters"
        raise InvalidInput(field="query", value=f"{len(text):,} characters", expected=expected)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_HITS:
        raise InvalidInput(field="limit", value=limit, expected=f"a whole number from 1 to {MAX_HITS}")
    if session is not None and not isinstance(session, str):
        raise InvalidInput(field="session", value=session, expected="the id of a session")
    since_time, until_time = _parse_time(since, "since"), _parse_time(until, "until", end_of_day=True)
    if since_time and until_time and until_time <= since_time:
        raise InvalidInput(field="until", value=until, expected=f"a time after {since_time.isoformat()}")
    return Query(
        text=text.encode("utf-8", "replace").decode("utf-8"),  # unpaired surrogates cannot be stored
        limit=limit,
        kinds=_validate_choices(kinds, "kinds", KINDS),
        sources=_validate_choices(sources, "sources", SOURCES),
        since=since_time,
        until=until_time,
        session=session or "",
        as_of=_parse_time(as_of, "as_of", end_of_day=True),
    )


def validate_filters(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Validate filter names.

    An unknown filter is an error, because the caller would take the hits for filtered.
    """
    for name in filters:
        if name not in FILTERS:
            raise InvalidInput(field=name, value=filters[name], expected=f"one of the filters {', '.join(FILTERS)}")
    return dict(filters)


def _validate_choices(value: object, field: str, allowed: Sequence[str]) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(field=field, value=value, expected=f"some of {', '.join(allowed)}")
    for choice in cast(Iterable[object], values):
        if choice not in allowed:
            raise InvalidInput(field=field, value=choice, expected=f"one of {', '.join(allowed)}")
    return tuple(sorted(set(cast(Iterable[str], values))))


def _parse_time(value: object, field: str, *, end_of_day: bool = False) -> datetime | None:
    """Parse a time or a day: the start of the day, or its end with `end_of_day`."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str):
            value = _day_or_time(value)
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        expected = "a valid day or time, such as 2026-01-31 or 2026-01-31T12:00"
        raise InvalidInput(field=field, value=value, expected=expected) from error
    if isinstance(value, date):
        return datetime.combine(value, time.max if end_of_day else time.min, UTC)
    raise InvalidInput(field=field, value=value, expected="a day or a time")


def _day_or_time(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
