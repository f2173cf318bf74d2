"""Scores of crystals, and when they expire."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from builders import WHEN
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.search.crystal import KINDS, MIN_SCORE, Crystal, is_expired, score_crystal

pytestmark = pytest.mark.spec("H2")

IMPORTANCE = st.floats(min_value=0, max_value=1)
AGES = st.timedeltas(min_value=timedelta(), max_value=timedelta(days=3_650))


def a_crystal(**known: Any) -> Crystal:
    return Crystal(id="resource/ada#1", text="likes tea", at=WHEN, **known)


@st.composite
def crystals(draw: st.DrawFn) -> Crystal:
    return a_crystal(
        kind=draw(st.sampled_from(KINDS)),
        importance=draw(IMPORTANCE),
        valence=draw(st.floats(min_value=-1, max_value=1)),
        accesses=draw(st.integers(min_value=0, max_value=200)),
        accessed=draw(st.none() | AGES.map(lambda age: WHEN + age)),
        lifecycle=draw(st.sampled_from(["generated", "activated", "consolidated", "frozen"])),
    )


def days_until_it_expires(crystal: Crystal) -> int | None:
    return next((day for day in range(2_000) if is_expired(crystal, WHEN + timedelta(days=day))), None)


# The table in the module's docstring.
@each_row(
    ("importance", "general", "episode", "fact"),
    [(0.0, 24, 22, 61), (0.1, 30, 28, 68), (0.15, 43, 41, 80), (0.2, None, None, None), (0.9, None, None, None)],
)
def test_days_until_expiry_by_importance(
    importance: float, general: int | None, episode: int | None, fact: int | None
) -> None:
    assert days_until_it_expires(a_crystal(importance=importance)) == general
    assert days_until_it_expires(a_crystal(importance=importance, kind="episode")) == episode
    assert days_until_it_expires(a_crystal(importance=importance, kind="fact", accesses=5)) == fact


def test_after_a_half_life_the_dynamic_half_is_halved() -> None:
    declared = 0.5 * 0.6**2
    new, old = (score_crystal(a_crystal(importance=0.6), WHEN + timedelta(days=days)) for days in (0, 16))
    assert old - declared == pytest.approx((new - declared) / 2)


@pytest.mark.parametrize("valence", [1.0, -1.0])
def test_a_strong_valence_doubles_the_half_life(valence: float) -> None:
    with_valence = score_crystal(a_crystal(valence=valence), WHEN + timedelta(days=32))
    assert with_valence == pytest.approx(score_crystal(a_crystal(), WHEN + timedelta(days=16)))


def test_an_access_resets_the_age() -> None:
    late = WHEN + timedelta(days=100)
    assert score_crystal(a_crystal(accessed=late), late) == score_crystal(a_crystal(), WHEN)


@given(crystals(), AGES)
def test_scores_are_between_0_and_1(crystal: Crystal, age: timedelta) -> None:
    assert 0 <= score_crystal(crystal, WHEN + age) <= 1


@given(crystals(), AGES, AGES)
def test_a_score_never_rises_over_time(crystal: Crystal, age: timedelta, longer: timedelta) -> None:
    assert score_crystal(crystal, WHEN + age + longer) <= score_crystal(crystal, WHEN + age)


@given(crystals(), AGES)
def test_an_access_never_lowers_a_score(crystal: Crystal, age: timedelta) -> None:
    now = WHEN + age
    assert score_crystal(replace(crystal, accesses=crystal.accesses + 1), now) >= score_crystal(crystal, now)


@given(crystals(), IMPORTANCE, AGES)
def test_more_importance_never_lowers_a_score(crystal: Crystal, importance: float, age: timedelta) -> None:
    less, more = sorted([crystal.importance, importance])
    scores = [score_crystal(replace(crystal, importance=each), WHEN + age) for each in (less, more)]
    assert scores == sorted(scores)


@given(crystals(), AGES)
def test_the_score_of_a_pinned_crystal_is_constant(crystal: Crystal, age: timedelta) -> None:
    frozen = replace(crystal, lifecycle="frozen", importance=0.0, accessed=None)
    assert score_crystal(frozen, WHEN + age) == score_crystal(frozen, WHEN)
    assert not is_expired(frozen, WHEN + age)


@given(crystals(), st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2025, 1, 1)))
def test_a_clock_that_was_set_back_counts_as_no_time(crystal: Crystal, past: datetime) -> None:
    assert score_crystal(crystal, past.replace(tzinfo=WHEN.tzinfo)) == score_crystal(
        crystal, crystal.accessed or crystal.at
    )


@given(crystals().filter(lambda crystal: crystal.lifecycle != "frozen"), AGES)
def test_a_crystal_expires_exactly_below_the_minimum_score(crystal: Crystal, age: timedelta) -> None:
    now = WHEN + age
    assert is_expired(crystal, now) == (score_crystal(crystal, now) < MIN_SCORE)
