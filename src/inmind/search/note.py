"""Validates a new note and defines the result returned to the caller.

Notes come from hosts, models and the command line and are stored permanently, so they are validated once, here.
Stored notes are not validated again.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

from inmind.core.events.base import Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.search.crystal import KINDS

DEFAULT_IMPORTANCE: Final = 0.7
"""Importance of a note without a declared one."""

NOTE_ORIGINS: Final = (Origin.OPERATOR, Origin.USER, Origin.ASSISTANT, Origin.TOOL, Origin.WEB)
"""Allowed origins of a note. Files and dreams create crystals in other ways."""


@frozen(kw_only=True)
class Note:
    """A stored note: its time and the id of its crystal."""

    id: str
    """The id of its crystal, for `Memory.get`."""
    text: str
    date: datetime
    """When it was saved."""
    importance: float = DEFAULT_IMPORTANCE
    kind: str = "general"
    repeated: bool = False
    """True if an earlier call with the same key had stored it."""

    def __str__(self) -> str:
        return f"{self.date:%Y-%m-%d} {shorten(self.text, 200)}"


def validate_note(
    text: object,
    importance: object = DEFAULT_IMPORTANCE,
    kind: object = "general",
    valence: object = 0.0,
    valid_from: object = None,
    valid_to: object = None,
    field: str = "text",
) -> NoteAdded:
    """Validate a note and return its payload. `field` names the text in error messages.

    Dates may be Python dates or ISO 8601. A date without a time zone is UTC, and a day starts at midnight.
    """
    note_text = validate_text(text, field=field)
    if not note_text.strip():
        raise InvalidInput(field=field, value=text, expected="a non-empty note")
    if kind not in KINDS:
        raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(KINDS)}")
    valid_from_time = None if valid_from is None else validate_time(valid_from, "valid_from")
    valid_to_time = None if valid_to is None else validate_time(valid_to, "valid_to")
    if valid_from_time and valid_to_time and valid_to_time < valid_from_time:
        raise InvalidInput(
            field="valid_to", value=valid_to, expected=f"no earlier than {_to_stored_time(valid_from_time)}"
        )
    return NoteAdded(
        text=note_text,
        importance=_validate_number(importance, 0, 1, "importance"),
        category=str(kind),
        valence=_validate_number(valence, -1, 1, "valence"),
        valid_from=_to_stored_time(valid_from_time),
        valid_to=_to_stored_time(valid_to_time),
    )


def validate_note_origin(origin: object) -> Origin:
    """Validate the origin of a note; plain text is accepted for an enum value."""
    if origin not in NOTE_ORIGINS:
        raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(NOTE_ORIGINS)}")
    return Origin(origin)


def _validate_number(value: object, minimum: int, maximum: int, field: str) -> float:
    """Validate a number in a range. NaN is rejected."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise InvalidInput(field=field, value=value, expected=f"a number from {minimum} to {maximum}")
    return float(value)


def validate_time(value: object, field: str, *, end_of_day: bool = False) -> datetime:
    """Return a date, a time or ISO 8601 text as UTC.

    A day is its start, or its end with `end_of_day`.
    """
    try:
        if isinstance(value, str):
            value = _parse_day_or_time(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time.max if end_of_day else time.min)
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        expected = f"a date or time in ISO 8601, like 2026-03-20 or 2026-03-20T12:00 ({error})"
        raise InvalidInput(field=field, value=value, expected=expected) from error
    raise InvalidInput(field=field, value=value, expected="a date or time, or text in ISO 8601")


def _parse_day_or_time(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)


def _to_stored_time(at: datetime | None) -> str:
    return at.isoformat().replace("+00:00", "Z") if at else ""
