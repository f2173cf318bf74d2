"""Validation of notes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.base import Origin
from inmind.core.events.crystals import NoteAdded
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.errors import InvalidInput
from inmind.search.crystal import KINDS
from inmind.search.note import validate_note, validate_note_origin

pytestmark = pytest.mark.spec("G2", "H1", "J3")


def test_a_note_with_defaults() -> None:
    assert validate_note("Douglas prefers tabs") == NoteAdded(
        "Douglas prefers tabs", importance=0.7, category="general"
    )


def test_a_note_with_all_fields() -> None:
    assert validate_note(
        "The deadline is March 20",
        importance=1,
        kind="goal",
        valence=-0.5,
        valid_from=date(2026, 3, 1),
        valid_to="2026-03-20T17:00+01:00",
    ) == NoteAdded(
        "The deadline is March 20",
        importance=1.0,
        category="goal",
        valence=-0.5,
        valid_from="2026-03-01T00:00:00Z",
        valid_to="2026-03-20T16:00:00Z",
    )


@each_row(
    ("fields", "field", "expected"),
    [
        ({"text": ""}, "text", "a non-empty note"),
        ({"text": " \n\t　"}, "text", "a non-empty note"),
        ({"text": None}, "text", "a text"),
        ({"text": "a\x00b"}, "text", "without NUL"),
        ({"text": "\ud800"}, "text", "lone surrogates"),
        ({"text": "é" * (MAX_DOCUMENT_BYTES // 2 + 1)}, "text", f"at most {MAX_DOCUMENT_BYTES} bytes"),
        ({"importance": -0.01}, "importance", "from 0 to 1"),
        ({"importance": 1.01}, "importance", "from 0 to 1"),
        ({"importance": float("nan")}, "importance", "from 0 to 1"),
        ({"importance": float("inf")}, "importance", "from 0 to 1"),
        ({"importance": 10**400}, "importance", "from 0 to 1"),
        ({"importance": True}, "importance", "from 0 to 1"),
        ({"importance": "0.7"}, "importance", "from 0 to 1"),
        ({"importance": None}, "importance", "from 0 to 1"),
        ({"kind": "opinion"}, "kind", "fact, preference, goal"),
        ({"kind": ["fact"]}, "kind", "fact, preference, goal"),
        ({"valence": -1.5}, "valence", "from -1 to 1"),
        ({"valence": float("nan")}, "valence", "from -1 to 1"),
        ({"valid_from": "2026-02-30"}, "valid_from", "day is out of range"),
        ({"valid_from": "tomorrow"}, "valid_from", "ISO 8601"),
        ({"valid_from": ""}, "valid_from", "ISO 8601"),
        ({"valid_from": 20260301}, "valid_from", "ISO 8601"),
        ({"valid_to": "9999-12-31T23:59:59-12:00"}, "valid_to", "ISO 8601"),
        ({"valid_to": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))}, "valid_to", "ISO 8601"),
        ({"valid_from": "2026-03-02", "valid_to": "2026-03-01"}, "valid_to", "no earlier than 2026-03-02T00:00:00Z"),
    ],
)
def test_an_invalid_note_is_rejected_by_field(fields: dict[str, Any], field: str, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected) as refused:
        validate_note(**{"text": "a note", **fields})
    assert refused.value.field == field
    assert len(str(refused.value)) < 1_000


def test_the_error_uses_the_callers_field_name() -> None:
    with pytest.raises(InvalidInput, match=r"^note: "):
        validate_note(" ", field="note")


def test_a_megabyte_is_accepted_and_validity_may_be_an_instant() -> None:
    assert len(validate_note("x" * MAX_DOCUMENT_BYTES).text) == MAX_DOCUMENT_BYTES
    note = validate_note("now", valid_from="2026-03-01", valid_to=datetime(2026, 3, 1, tzinfo=UTC))
    assert note.valid_from == note.valid_to == "2026-03-01T00:00:00Z"


@each_row("kind", KINDS)
def test_every_kind_is_accepted(kind: str) -> None:
    assert validate_note("a note", kind=kind).category == kind


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.none() | st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
)
def test_dates_are_stored_as_utc_times(at: datetime, zone: timezone | None) -> None:
    stored = validate_note("a note", valid_from=at.replace(tzinfo=zone)).valid_from
    assert stored.endswith("Z")
    assert datetime.fromisoformat(stored) == at.replace(tzinfo=zone or UTC)
    assert validate_note("a note", valid_from=stored).valid_from == stored


def test_files_and_dreams_are_no_note_origins() -> None:
    assert validate_note_origin("user") is Origin.USER
    for origin in (Origin.FILE, Origin.DREAM, "nobody", None):
        with pytest.raises(InvalidInput, match="operator, user, assistant, tool, web"):
            validate_note_origin(origin)
