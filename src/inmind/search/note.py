"""A note on its way in: what may be one, and what whoever took it is told.

It comes from hosts, models and command lines alike, and is kept for ever. So it is checked once, here, before anything
is stored; what is in the journal is taken as it is.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from inmind.core.events.base import Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.frozen import frozen
from inmind.core.text import shortened
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.search.crystal import KINDS

DEFAULT_IMPORTANCE: Final = 0.7
"""Of a note whose writer says nothing of it: whoever takes one finds it worth keeping."""

NOTE_ORIGINS: Final = (Origin.OPERATOR, Origin.USER, Origin.ASSISTANT, Origin.TOOL, Origin.WEB)
"""Whose words a note may be. What is in files and what dreams make come in by ways of their own."""


@frozen(kw_only=True)
class Note:
    """A stored note."""

    id: str
    """The id of its crystal, for `Memory.get`."""
    text: str
    date: datetime
    """When it was saved."""
    importance: float = DEFAULT_IMPORTANCE
    kind: str = "general"
    repeated: bool = False
    """Whether an earlier call with the same key had stored it."""

    def __str__(self) -> str:
        return f"{self.date:%Y-%m-%d} {shortened(self.text, 200)}"


def validate_note(
    text: object,
    *,
    importance: object = DEFAULT_IMPORTANCE,
    kind: object = "general",
    valence: object = 0.0,
    valid_from: object = None,
    valid_to: object = None,
    field: str = "text",
) -> NoteAdded:
    """A note that can be kept. `field`: what its text is called where it comes from.

    Dates may be of Python's or in ISO 8601; one without a zone is in UTC, and a day counts from its beginning.
    """
    note_text = validate_text(text, field=field)
    if not note_text.strip():
        raise InvalidInput(field=field, value=text, expected="a note that says something")
    if kind not in KINDS:
        raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(KINDS)}")
    valid_from_time, valid_to_time = _parse_time(valid_from, "valid_from"), _parse_time(valid_to, "valid_to")
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
    """Whose words a note is; a plain text will do, as everywhere that enums come from outside."""
    if origin not in NOTE_ORIGINS:
        raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(NOTE_ORIGINS)}")
    return Origin(origin)


def _validate_number(value: object, minimum: int, maximum: int, field: str) -> float:
    """NaN is between nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        raise InvalidInput(field=field, value=value, expected=f"a number from {minimum} to {maximum}")
    return float(value)


def _parse_time(value: object, field: str) -> datetime | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        expected = f"a date or time in ISO 8601, like 2026-03-20 ({error})"
        raise InvalidInput(field=field, value=value, expected=expected) from error
    raise InvalidInput(field=field, value=value, expected="a date or time, or one in ISO 8601")


def _to_stored_time(at: datetime | None) -> str:
    return at.isoformat().replace("+00:00", "Z") if at else ""
