"""The levels in words."""

from __future__ import annotations

import pytest
from builders import WHEN
from tables import each_row

from inmind.dreams.affect.levels import Levels, describe_mood

pytestmark = pytest.mark.spec("G9")


@each_row(
    ("dopamine", "cortisol", "oxytocin", "words"),
    [
        (0.15, 0.02, 0.20, "calm"),
        (0.40, 0.30, 0.45, "calm"),
        (0.45, 0.02, 0.20, "motivated"),
        (0.45, 0.02, 0.50, "motivated, socially engaged"),
        (0.15, 0.32, 0.20, "tense"),
        (0.15, 0.72, 0.20, "under strain"),
        (0.75, 0.02, 0.20, "elated"),
        (0.15, 0.02, 0.80, "warmly attached"),
        (0.85, 0.75, 0.75, "elated, under strain, warmly attached"),
        (0.05, 0.02, 0.20, "listless"),
        (0.00, 0.80, 0.20, "listless, under strain"),
    ],
)
def test_each_level_that_stands_out_has_its_word(dopamine: float, cortisol: float, oxytocin: float, words: str) -> None:
    assert describe_mood(Levels(dopamine=dopamine, cortisol=cortisol, oxytocin=oxytocin)) == words


@pytest.mark.parametrize(
    ("spike", "words"),
    [("reward", "motivated"), ("error", "tense"), ("social", "socially engaged"), ("urgency", "tense")],
)
def test_one_spike_is_already_seen(spike: str, words: str) -> None:
    assert describe_mood(Levels().spiked(spike, WHEN)) == words
