"""Timestamps as whole microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(at: datetime) -> int:
    """Exact at any date; a float of seconds is not, from 2106 on."""
    return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
