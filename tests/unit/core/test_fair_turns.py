"""A dream in a thread of its host hands over soon, and waits for calls."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from inmind.core.fair_turns import (
    SLICE_SECONDS,
    SWITCH_SECONDS,
    WAIT_SECONDS,
    dreams_wait,
    giving_way,
    short_switch_interval,
)


def test_a_long_computation_lets_other_threads_run_soon() -> None:
    before = sys.getswitchinterval()
    with short_switch_interval():
        with pytest.raises(ZeroDivisionError), short_switch_interval():
            raise ZeroDivisionError
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    assert sys.getswitchinterval() == before


def test_a_switch_interval_of_the_host_that_is_shorter_stays() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS / 10)
    try:
        with short_switch_interval():
            assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS / 10)
    finally:
        sys.setswitchinterval(before)


def seconds_to_give_way() -> float:
    time.sleep(SLICE_SECONDS)
    started = time.monotonic()
    assert list(giving_way(["a step"])) == ["a step"]
    return time.monotonic() - started


def test_a_long_computation_waits_a_moment_for_a_call_of_another_thread() -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def call() -> None:
        with dreams_wait():
            is_running.set()
            may_end.wait()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    is_running.wait()
    assert seconds_to_give_way() >= WAIT_SECONDS
    with dreams_wait():  # the other one may be waiting for this one
        assert seconds_to_give_way() < WAIT_SECONDS
    may_end.set()
    thread.join()
    assert seconds_to_give_way() < WAIT_SECONDS
