"""Timestamps as whole microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(at: datetime) -> int:
    """Microseconds since 1970, exact at any date. A float of seconds is not exact after 2106."""
    return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
