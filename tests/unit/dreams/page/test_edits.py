"""Proposed edits are equal after a round trip through the journal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.events.dreams import DreamProposed, ProposedEdit
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite, edit_from_row, edit_to_row
from inmind.dreams.page.sections import Section

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MANY = st.lists(TEXTS, max_size=3).map(tuple)
WEIGHTS = st.floats(0, 1)
SECTIONS = st.sampled_from(Section)

EDITS = st.one_of(
    st.builds(
        Add,
        section=SECTIONS,
        text=TEXTS,
        sources=MANY,
        importance=WEIGHTS,
        kind=TEXTS,
        at=TEXTS,
        trust=st.sampled_from(Trust),
    ),
    st.builds(Rewrite, lines=MANY, section=SECTIONS, text=TEXTS, sources=MANY, importance=WEIGHTS, at=TEXTS),
    st.builds(Retire, line=TEXTS, topic=TEXTS, keywords=TEXTS),
)


@pytest.mark.spec("A1", "J9")
@given(st.lists(EDITS, max_size=4))
def test_edits_are_equal_after_a_round_trip_through_the_journal(edits: list[Edit]) -> None:
    proposed = DreamProposed(dream=1, lease_until="2026-03-12T12:00:00+00:00", edits=tuple(map(edit_to_row, edits)))
    decoded = decode_payload(proposed.kind, encode_payload(proposed))
    assert isinstance(decoded, DreamProposed)
    assert decoded == proposed
    assert [edit_from_row(row) for row in decoded.edits] == edits


@each_row(
    "row",
    [
        ProposedEdit(op="burn"),
        ProposedEdit(op="add", section="Nowhere", text="x"),
        ProposedEdit(op="add", section="The Bond", text="x", trust=9),
        ProposedEdit(op="retire", lines=("one", "another")),
        ProposedEdit(op="retire"),
    ],
)
def test_an_invalid_row_is_rejected(row: ProposedEdit) -> None:
    with pytest.raises(ValueError, match=r"."):
        edit_from_row(row)
