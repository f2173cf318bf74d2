"""Weights of the sections by affect levels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.dreams.affect import Levels
from inmind.dreams.page.page import Section, section_weights

pytestmark = pytest.mark.spec("G5")


def test_at_the_baseline_all_sections_weigh_the_same() -> None:
    assert section_weights(Levels()) == dict.fromkeys(Section, 1.0)


@pytest.mark.parametrize(
    ("levels", "section"),
    [
        (Levels(oxytocin=1.0), Section.BOND),
        (Levels(dopamine=1.0), Section.ACTIVE),
        (Levels(cortisol=1.0), Section.ACTIVE),
    ],
)
def test_each_level_raises_the_weight_of_one_section(levels: Levels, section: Section) -> None:
    assert section_weights(levels) == dict.fromkeys(Section, 1.0) | {section: 2.0}


@given(dopamine=st.floats(0, 1), cortisol=st.floats(0, 1), oxytocin=st.floats(0, 1))
def test_no_level_removes_a_section(dopamine: float, cortisol: float, oxytocin: float) -> None:
    by_section = section_weights(Levels(dopamine=dopamine, cortisol=cortisol, oxytocin=oxytocin))
    assert by_section.keys() == {*Section}
    assert all(1 <= weight <= 2 for weight in by_section.values())
