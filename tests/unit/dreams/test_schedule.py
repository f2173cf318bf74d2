"""Due times of dreams: never more often than allowed, whatever clocks and models do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.settings import DreamSettings
from inmind.dreams.state import (
    FAILURES_BEFORE_BACKOFF,
    LEASE_DURATION,
    MAX_RESUME_AGE,
    ActiveDream,
    DreamingState,
    may_ask_model,
    next_dream,
)

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
SETTINGS = DreamSettings()


def find_trigger(
    dreaming: DreamingState | None = None,
    *,
    now: datetime = NOON,
    uptime: timedelta = timedelta(days=1),
    strong: bool = False,
    fresh: int = 5,
) -> str:
    due = next_due(dreaming, now=now, uptime=uptime, strong=strong, fresh=fresh)
    return due[1] if due and due[0] <= now else ""


def next_due(
    dreaming: DreamingState | None = None,
    *,
    now: datetime = NOON,
    uptime: timedelta = timedelta(days=1),
    strong: bool = False,
    fresh: int = 5,
    settings: DreamSettings = SETTINGS,
) -> tuple[datetime, str] | None:
    return next_dream(
        dreaming or DreamingState(),
        settings,
        now=now,
        uptime=uptime,
        strong_affect=strong,
        count_new=lambda most: min(most, fresh),
    )


def last_started(ago: timedelta, *, failures: int = 0) -> DreamingState:
    return DreamingState(last_started_at=NOON - ago, failures=failures)


@pytest.mark.spec("G3")
def test_the_first_dream_is_due_five_minutes_after_the_start() -> None:
    assert find_trigger(uptime=4 * MINUTES) == ""
    assert find_trigger(uptime=5 * MINUTES) == "schedule"


@pytest.mark.spec("G3")
def test_the_next_dream_is_due_two_hours_after_the_last_one_of_any_process() -> None:
    assert find_trigger(last_started(119 * MINUTES)) == ""
    assert find_trigger(last_started(120 * MINUTES)) == "schedule"


@pytest.mark.spec("G3")
def test_without_five_new_crystals_no_dream_is_due() -> None:
    assert find_trigger(fresh=4) == ""
    assert find_trigger(fresh=5) == "schedule"


@pytest.mark.spec("G3")
def test_strong_affect_causes_an_early_dream_but_not_within_ten_minutes() -> None:
    assert find_trigger(last_started(9 * MINUTES), strong=True, fresh=1) == ""
    assert find_trigger(last_started(10 * MINUTES), strong=True, fresh=1) == "spike"
    assert find_trigger(last_started(10 * MINUTES), strong=True, fresh=0) == ""


@pytest.mark.spec("G3")
def test_strong_affect_does_not_delay_a_scheduled_dream() -> None:
    settings = DreamSettings(interval_minutes=30, spike_minutes=60)
    for fresh, due in ((5, (NOON, "schedule")), (1, (NOON + 20 * MINUTES, "spike"))):
        assert next_due(last_started(40 * MINUTES), strong=True, fresh=fresh, settings=settings) == due


def running(ago: timedelta, *, held: timedelta) -> ActiveDream:
    """A running dream that gathered `ago`, and whose lease lasts for `held`."""
    return ActiveDream(dream=7, started_at=NOON - ago, lease_until=NOON + held, gathered_at=NOON - ago, trigger="spike")


def test_no_dream_is_due_while_one_is_running() -> None:
    assert find_trigger(replace(last_started(121 * MINUTES), running=running(MINUTES / 2, held=LEASE_DURATION))) == ""


@pytest.mark.spec("G3", "K22")
def test_an_unfinished_dream_is_due_at_once_with_its_trigger() -> None:
    abandoned = replace(last_started(MINUTES), running=running(MINUTES, held=timedelta(0)))
    assert find_trigger(abandoned, fresh=0) == "spike"
    assert find_trigger(abandoned, fresh=0, uptime=4 * MINUTES) == "", "a resumed dream also waits for the first delay"


@pytest.mark.spec("B47", "K22")
def test_a_repeatedly_abandoned_dream_waits_like_a_failing_one() -> None:
    abandoned = replace(
        last_started(119 * MINUTES, failures=FAILURES_BEFORE_BACKOFF), running=running(119 * MINUTES, held=timedelta(0))
    )
    assert find_trigger(abandoned) == ""
    assert find_trigger(abandoned, now=NOON + 121 * MINUTES) == "schedule"
    assert find_trigger(replace(abandoned, failures=FAILURES_BEFORE_BACKOFF - 1)) == "spike"
    old = replace(last_started(MINUTES), running=running(MAX_RESUME_AGE, held=timedelta(0)))
    assert find_trigger(old) == "", "that dream is too old to resume"


@pytest.mark.spec("B47")
def test_after_the_clock_was_set_back_one_dream_is_due_at_once() -> None:
    ahead = DreamingState(last_started_at=NOON + timedelta(days=365))
    assert find_trigger(ahead) == "schedule"
    assert find_trigger(replace(ahead, last_started_at=NOON)) == ""


@pytest.mark.spec("B47")
def test_failures_in_a_row_make_the_wait_longer_up_to_a_day() -> None:
    assert find_trigger(last_started(120 * MINUTES, failures=FAILURES_BEFORE_BACKOFF - 1)) == "schedule"
    assert find_trigger(last_started(120 * MINUTES, failures=FAILURES_BEFORE_BACKOFF)) == ""
    assert find_trigger(last_started(240 * MINUTES, failures=FAILURES_BEFORE_BACKOFF)) == "schedule"
    assert find_trigger(last_started(timedelta(days=1), failures=1_000)) == "schedule"


@pytest.mark.spec("B47")
def test_a_model_that_fails_repeatedly_is_not_called_for_a_while() -> None:
    failed = DreamingState(
        last_started_at=NOON - 2 * timedelta(hours=1),
        model_asked_at=NOON - timedelta(hours=2),
        model_failures=FAILURES_BEFORE_BACKOFF,
    )
    assert not may_ask_model(failed, SETTINGS, NOON)
    assert may_ask_model(failed, SETTINGS, NOON + timedelta(hours=2))
    assert may_ask_model(replace(failed, model_failures=FAILURES_BEFORE_BACKOFF - 1), SETTINGS, NOON)


@pytest.mark.spec("B47")
@given(
    steps=st.lists(st.timedeltas(timedelta(0), timedelta(hours=3)), max_size=60),
    strong=st.lists(st.booleans(), min_size=60, max_size=60),
    fails=st.lists(st.booleans(), min_size=60, max_size=60),
)
def test_dreams_keep_their_interval_for_any_times_of_checks(
    steps: list[timedelta], strong: list[bool], fails: list[bool]
) -> None:
    now, dreaming, dreams = NOON, DreamingState(), list[tuple[datetime, str]]()
    for step, is_strong, bad in zip(steps, strong, fails, strict=False):
        now += step
        if due := find_trigger(dreaming, now=now, strong=is_strong):
            dreams.append((now, due))
            dreaming = replace(dreaming, last_started_at=now, failures=dreaming.failures + 1 if bad else 0)
    for (before, _), (after, due) in pairwise(dreams):
        assert after - before >= ((SETTINGS.spike_minutes if due == "spike" else SETTINGS.interval_minutes) * MINUTES)


# -- time of the next check --------------------------------------------------------------------------------


def next_check(dreaming: DreamingState | None = None, *, strong: bool = False, fresh: int = 5) -> datetime | None:
    due = next_due(dreaming, strong=strong, fresh=fresh)
    return due and due[0]


@pytest.mark.spec("G3", "J9")
def test_without_material_no_next_time_is_set() -> None:
    assert next_check(fresh=4) is None
    assert next_check(fresh=0, strong=True) is None


@pytest.mark.spec("G3", "J9")
def test_a_waiting_dream_is_checked_when_it_is_due() -> None:
    assert next_check(last_started(30 * MINUTES)) == NOON + 90 * MINUTES
    assert next_check(last_started(300 * MINUTES)) == NOON
    assert next_check(last_started(4 * MINUTES), strong=True, fresh=1) == NOON + 6 * MINUTES


@pytest.mark.spec("K20", "K22")
def test_a_dream_of_another_process_is_checked_when_its_lease_ends() -> None:
    held = ActiveDream(dream=1, started_at=NOON, lease_until=NOON + LEASE_DURATION, gathered_at=NOON)
    assert next_check(DreamingState(running=held, last_started_at=NOON)) == NOON + LEASE_DURATION
    assert next_check(DreamingState(running=replace(held, lease_until=NOON), last_started_at=NOON)) == NOON


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
    again = next_check(dreaming, strong=strong, fresh=fresh)
    due = find_trigger(dreaming, now=NOON + later, strong=strong, fresh=fresh)
    assert bool(due) == (again is not None and NOON + later >= again)
