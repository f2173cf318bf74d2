"""Levels: the change by each spike, and the decay to the baselines."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import WHEN
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.dreams.affect import BASELINES, SPIKES, Levels, describe_mood

pytestmark = pytest.mark.spec("G9")

RESTING = tuple(BASELINES.values())


def above_baseline(levels: Levels) -> tuple[float, ...]:
    """Distance of each level above its baseline."""
    return tuple(level - base for level, base in zip(levels.by_name.values(), RESTING, strict=True))


@each_row(
    ("spike", "dopamine", "cortisol", "oxytocin"),
    [
        ("reward", 0.3, 0, 0),
        ("error", 0, 0.3, 0),
        ("social", 0, 0, 0.3),
        ("achievement", 0.4, 0, 0.2),
        ("urgency", 0, 0.4, 0),
        ("sale", 0.15, 0, 0.05),
        ("recall", 0.05, 0, 0),
        ("missed", -0.05, 0, 0),
    ],
)
def test_a_spike_adds_its_amounts(spike: str, dopamine: float, cortisol: float, oxytocin: float) -> None:
    assert above_baseline(Levels().after_spike(spike, WHEN)) == pytest.approx((dopamine, cortisol, oxytocin))


def test_there_are_no_other_spikes() -> None:
    assert len(SPIKES) == 8


def test_initial_levels_are_the_baselines() -> None:
    assert tuple(Levels().by_name.values()) == RESTING == (0.15, 0.02, 0.20)


@pytest.mark.parametrize(("level", "spike", "minutes"), [("dopamine", "reward", 30), ("cortisol", "error", 60)])
def test_a_level_decays_by_half_in_its_half_life(level: str, spike: str, minutes: int) -> None:
    levels = Levels().after_spike(spike, WHEN)
    place = list(levels.by_name).index(level)
    for halves in (1, 2, 5):
        then = levels.decayed_to(WHEN + timedelta(minutes=halves * minutes))
        assert above_baseline(then)[place] == pytest.approx(0.3 / 2**halves)


def test_oxytocin_has_a_half_life_of_45_minutes() -> None:
    then = Levels().after_spike("social", WHEN).decayed_to(WHEN + timedelta(minutes=45))
    assert then.oxytocin == pytest.approx(0.35)


def test_a_clock_set_back_raises_no_level_and_decay_continues_from_the_next_spike() -> None:
    levels = Levels().after_spike("reward", WHEN)
    earlier = WHEN - timedelta(days=365)
    assert levels.decayed_to(earlier) == levels
    again = levels.after_spike("error", earlier)
    assert again.decayed_to(earlier + timedelta(minutes=30)).dopamine == pytest.approx(0.30)


spikes = st.lists(st.tuples(st.sampled_from(sorted(SPIKES)), st.integers(-90, 600)), max_size=30)


@given(spikes)
def test_every_level_stays_between_0_and_1(steps: list[tuple[str, int]]) -> None:
    levels, now = Levels(), WHEN
    for spike, minutes in steps:
        now += timedelta(minutes=minutes)
        levels = levels.after_spike(spike, now)
        assert all(0 <= level <= 1 for level in levels.by_name.values())


@given(spikes, st.integers(0, 10_000), st.integers(0, 10_000))
def test_decay_does_not_depend_on_the_number_of_reads(steps: list[tuple[str, int]], one: int, two: int) -> None:
    levels = Levels()
    for place, (spike, _) in enumerate(steps):
        levels = levels.after_spike(spike, WHEN + timedelta(minutes=place))
    start = WHEN + timedelta(minutes=len(steps))
    there = start + timedelta(seconds=one + two)
    stopped = levels.decayed_to(start + timedelta(seconds=one)).decayed_to(there)
    assert tuple(stopped.by_name.values()) == pytest.approx(tuple(levels.decayed_to(there).by_name.values()))


# -- mood in words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spike", "words"),
    [("reward", "motivated"), ("error", "tense"), ("social", "socially engaged"), ("urgency", "tense")],
)
def test_one_spike_changes_the_mood(spike: str, words: str) -> None:
    assert describe_mood(Levels().after_spike(spike, WHEN)) == words
