"""Background work runs once, soon, despite failures, and before close returns."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Generator

import pytest

from inmind.core import background
from inmind.core.background import BackgroundQueue
from inmind.errors import StorageFull

pytestmark = pytest.mark.spec("H4", "J2")

LONG = 20.0
"""Seconds after which something waits for ever."""


@pytest.fixture
def later() -> Generator[BackgroundQueue]:
    made = BackgroundQueue()
    yield made
    made.close()


@pytest.fixture
def _without_delay_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the batching delay endless, so that only a flush or a close ends it."""
    monkeypatch.setattr(background, "BATCH_SECONDS", LONG)


class Work:
    """Counts its runs and can be waited for."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.times = 0
        self.done = threading.Event()
        self._then = then

    def __call__(self) -> None:
        self.times += 1
        try:
            self._then()
        finally:
            self.done.set()


def fail(error: BaseException) -> Callable[[], object]:
    def raising() -> None:
        raise error

    return raising


def test_submitted_work_runs_soon(later: BackgroundQueue) -> None:
    work = Work()
    later.submit("embed", work)
    assert work.done.wait(LONG)


@pytest.mark.usefixtures("_without_delay_limit")
def test_a_flush_returns_when_all_work_is_done(later: BackgroundQueue) -> None:
    first, second = Work(), Work()
    later.submit("embed", first)
    later.submit("publish", second)
    later.flush()
    assert (first.times, second.times) == (1, 1)


@pytest.mark.usefixtures("_without_delay_limit")
def test_work_submitted_twice_runs_once_in_its_last_form(later: BackgroundQueue) -> None:
    first, last = Work(), Work()
    later.submit("embed", first)
    later.submit("embed", last)
    later.flush()
    assert (first.times, last.times) == (0, 1)


@pytest.mark.usefixtures("_without_delay_limit")
def test_work_submitted_while_it_runs_is_run_again(later: BackgroundQueue) -> None:
    again = Work()
    later.submit("embed", Work(lambda: later.submit("embed", again)))
    later.flush()
    later.flush()
    assert again.times == 1


def test_after_a_flush_later_work_is_batched_again(later: BackgroundQueue) -> None:
    later.submit("embed", Work())
    later.flush()
    work = Work()
    later.submit("embed", work)
    assert work.done.wait(LONG)


def test_a_flush_without_work_returns_at_once(later: BackgroundQueue) -> None:
    later.flush()
    later.close()
    later.close()


@pytest.mark.usefixtures("_without_delay_limit")
def test_close_finishes_pending_work_and_accepts_no_more() -> None:
    later = BackgroundQueue()
    before, after = Work(), Work()
    later.submit("embed", before)
    later.close()
    later.submit("embed", after)
    later.flush()
    assert (before.times, after.times) == (1, 0)


def test_close_ends_the_thread() -> None:
    later, names = BackgroundQueue(), list[str]()
    later.submit("embed", lambda: names.append(threading.current_thread().name))
    later.close()
    assert names == ["inmind-background"]
    assert "inmind-background" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("error", "level", "said"),
    [
        (StorageFull(place="/home"), "WARNING", "background task failed, will be retried"),
        (ZeroDivisionError("by zero"), "ERROR", "by zero"),
        (SystemExit("and out"), "ERROR", "and out"),
    ],
)
def test_a_failure_is_logged_and_stops_nothing(
    later: BackgroundQueue, caplog: pytest.LogCaptureFixture, error: BaseException, level: str, said: str
) -> None:
    others = Work()
    with caplog.at_level(logging.WARNING, logger="inmind"):
        later.submit("embed", fail(error))
        later.submit("publish", others)
        later.flush()
    assert others.times == 1
    assert [record.levelname for record in caplog.records] == [level]
    assert said in caplog.text
    later.submit("embed", others)
    later.flush()
    assert others.times == 2


def test_work_that_closes_the_queue_does_not_wait_for_itself() -> None:
    later = BackgroundQueue()
    work = Work(later.close)
    later.submit("embed", work)
    assert work.done.wait(LONG / 2)


def test_many_threads_may_submit_and_flush_at_once(later: BackgroundQueue) -> None:
    works = [Work() for _ in range(50)]

    def ask(number: int) -> None:
        later.submit(f"work {number}", works[number])
        later.flush()

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert [work.times for work in works] == [1] * len(works)


@pytest.mark.usefixtures("_without_delay_limit")
def test_a_flush_does_not_wait_for_later_work(later: BackgroundQueue) -> None:
    """Otherwise a flush would never return while other threads keep submitting."""
    begun, may_go_on = threading.Event(), threading.Event()

    def ask_again() -> None:
        begun.set()
        may_go_on.wait(LONG)
        later.submit("embed", Work())

    later.submit("embed", ask_again)
    flushing = threading.Thread(target=later.flush, daemon=True)
    flushing.start()
    assert begun.wait(LONG)
    may_go_on.set()
    flushing.join(LONG / 2)
    assert not flushing.is_alive()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_runs_only_its_own_work(later: BackgroundQueue) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        may_end.wait(LONG)

    parents = Work(slow)
    later.submit("embed", parents)
    assert begun.wait(LONG)
    inherited = Work()
    later.submit("publish", inherited)
    child = os.fork()
    if not child:
        mine = Work()
        later.flush()
        later.submit("embed", mine)
        later.close()
        os._exit(0 if (mine.times, inherited.times) == (1, 0) else 1)
    _, status = os.waitpid(child, 0)
    may_end.set()
    later.flush()
    assert os.waitstatus_to_exitcode(status) == 0
    assert (parents.times, inherited.times) == (1, 1)
