"""When a dream comes by itself: never oftener than it may, whatever clocks, processes and models do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.dreams.schedule import FAILURES_BEFORE_BACKOFF, DreamSchedule, due_trigger, may_ask_model, next_due_at
from inmind.dreams.state import LEASE_DURATION, MAX_RESUME_AGE, ActiveDream, DreamingState

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
RHYTHM = DreamSchedule(interval=120 * MINUTES, first_delay=5 * MINUTES, spike_interval=10 * MINUTES, min_crystals=5)


def why(
    dreaming: DreamingState | None = None,
    *,
    now: datetime = NOON,
    awake: timedelta = timedelta(days=1),
    strong: bool = False,
    fresh: int = 5,
) -> str:
    return due_trigger(
        dreaming or DreamingState(),
        RHYTHM,
        now=now,
        uptime=awake,
        strong_affect=strong,
        count_new=lambda most: min(most, fresh),
    )


def begun(ago: timedelta, *, failures: int = 0) -> DreamingState:
    return DreamingState(last_started_at=NOON - ago, failures=failures)


@pytest.mark.spec("G3")
def test_the_first_dream_comes_five_minutes_after_the_start() -> None:
    assert why(awake=4 * MINUTES) == ""
    assert why(awake=5 * MINUTES) == "schedule"


@pytest.mark.spec("G3")
def test_the_next_comes_two_hours_after_the_last_whichever_process_had_it() -> None:
    assert why(begun(119 * MINUTES)) == ""
    assert why(begun(120 * MINUTES)) == "schedule"


@pytest.mark.spec("G3")
def test_without_five_new_crystals_there_is_nothing_to_dream_of() -> None:
    assert why(fresh=4) == ""
    assert why(fresh=5) == "schedule"


@pytest.mark.spec("G3")
def test_strong_affect_causes_an_early_dream_but_not_within_ten_minutes() -> None:
    assert why(begun(9 * MINUTES), strong=True, fresh=1) == ""
    assert why(begun(10 * MINUTES), strong=True, fresh=1) == "spike"
    assert why(begun(10 * MINUTES), strong=True, fresh=0) == ""


def running(ago: timedelta, *, held: timedelta) -> ActiveDream:
    """A dream that has gathered a while ago, and was held until then."""
    return ActiveDream(dream=7, started_at=NOON - ago, lease_until=NOON + held, gathered_at=NOON - ago, trigger="spike")


def test_none_is_due_while_one_is_running() -> None:
    assert why(replace(begun(121 * MINUTES), running=running(MINUTES / 2, held=LEASE_DURATION))) == ""


@pytest.mark.spec("G3", "K22")
def test_an_unfinished_dream_is_due_at_once_with_its_trigger() -> None:
    left = replace(begun(MINUTES), running=running(MINUTES, held=timedelta(0)))
    assert why(left, fresh=0) == "spike"
    assert why(left, fresh=0, awake=4 * MINUTES) == "", "as every dream it waits until a process has started"


@pytest.mark.spec("B47", "K22")
def test_a_repeatedly_abandoned_dream_waits_like_a_failing_one() -> None:
    left = replace(
        begun(119 * MINUTES, failures=FAILURES_BEFORE_BACKOFF), running=running(119 * MINUTES, held=timedelta(0))
    )
    assert why(left) == ""
    assert why(left, now=NOON + 121 * MINUTES) == "schedule"
    assert why(replace(left, failures=FAILURES_BEFORE_BACKOFF - 1)) == "spike"
    old = replace(begun(MINUTES), running=running(MAX_RESUME_AGE, held=timedelta(0)))
    assert why(old) == "", "nobody will go on with that one"


@pytest.mark.spec("B47")
def test_a_clock_that_was_set_back_brings_one_dream_and_not_none_for_a_year() -> None:
    ahead = DreamingState(last_started_at=NOON + timedelta(days=365))
    assert why(ahead) == "schedule"
    assert why(replace(ahead, last_started_at=NOON)) == ""


@pytest.mark.spec("B47")
def test_failures_in_a_row_make_the_wait_longer_up_to_a_day() -> None:
    assert why(begun(120 * MINUTES, failures=FAILURES_BEFORE_BACKOFF - 1)) == "schedule"
    assert why(begun(120 * MINUTES, failures=FAILURES_BEFORE_BACKOFF)) == ""
    assert why(begun(240 * MINUTES, failures=FAILURES_BEFORE_BACKOFF)) == "schedule"
    assert why(begun(timedelta(days=1), failures=1_000)) == "schedule"


@pytest.mark.spec("B47")
def test_a_model_that_fails_repeatedly_is_not_asked_for_a_while() -> None:
    failed = DreamingState(
        last_started_at=NOON - 2 * timedelta(hours=1),
        model_asked_at=NOON - timedelta(hours=2),
        model_failures=FAILURES_BEFORE_BACKOFF,
    )
    assert not may_ask_model(failed, RHYTHM, NOON)
    assert may_ask_model(failed, RHYTHM, NOON + timedelta(hours=2))
    assert may_ask_model(replace(failed, model_failures=FAILURES_BEFORE_BACKOFF - 1), RHYTHM, NOON)


@pytest.mark.spec("B47")
@given(
    steps=st.lists(st.timedeltas(timedelta(0), timedelta(hours=3)), max_size=60),
    strong=st.lists(st.booleans(), min_size=60, max_size=60),
    fails=st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_however_often_it_is_asked_dreams_keep_their_distance(
    steps: list[timedelta], strong: list[bool], fails: list[bool]
) -> None:
    now, dreaming, came = NOON, DreamingState(), list[tuple[datetime, str]]()
    for step, is_strong, bad in zip(steps, strong, fails, strict=False):
        now += step
        if due := why(dreaming, now=now, strong=is_strong):
            came.append((now, due))
            dreaming = replace(dreaming, last_started_at=now, failures=dreaming.failures + 1 if bad else 0)
    for (before, _), (after, due) in pairwise(came):
        assert after - before >= (RHYTHM.spike_interval if due == "spike" else RHYTHM.interval)


# -- when to look again ------------------------------------------------------------------------------------


def looked_again(dreaming: DreamingState | None = None, *, strong: bool = False, fresh: int = 5) -> datetime | None:
    return next_due_at(
        dreaming or DreamingState(), RHYTHM, now=NOON, strong_affect=strong, count_new=lambda most: min(most, fresh)
    )


@pytest.mark.spec("G3", "J9")
def test_without_material_no_next_time_is_set() -> None:
    assert looked_again(fresh=4) is None
    assert looked_again(fresh=0, strong=True) is None


@pytest.mark.spec("G3", "J9")
def test_a_waiting_dream_is_checked_when_it_is_due() -> None:
    assert looked_again(begun(30 * MINUTES)) == NOON + 90 * MINUTES
    assert looked_again(begun(300 * MINUTES)) == NOON
    assert looked_again(begun(4 * MINUTES), strong=True, fresh=1) == NOON + 6 * MINUTES


@pytest.mark.spec("K20", "K22")
def test_a_dream_of_another_process_is_checked_when_its_lease_ends() -> None:
    held = ActiveDream(dream=1, started_at=NOON, lease_until=NOON + LEASE_DURATION, gathered_at=NOON)
    assert looked_again(DreamingState(running=held, last_started_at=NOON)) == NOON + LEASE_DURATION
    assert looked_again(DreamingState(running=replace(held, lease_until=NOON), last_started_at=NOON)) == NOON


@given(
    ago=st.none() | st.timedeltas(timedelta(), timedelta(days=3)),
    failures=st.integers(0, 8),
    strong=st.booleans(),
    fresh=st.integers(0, 6),
    later=st.timedeltas(timedelta(), timedelta(days=2)),
)
def test_no_dream_is_due_before_the_next_check(
    ago: timedelta | None, failures: int, strong: bool, fresh: int, later: timedelta
) -> None:
    dreaming = DreamingState(last_started_at=None if ago is None else NOON - ago, failures=failures)
    again = looked_again(dreaming, strong=strong, fresh=fresh)
    due = why(dreaming, now=NOON + later, strong=strong, fresh=fresh)
    assert bool(due) == (again is not None and NOON + later >= again)
