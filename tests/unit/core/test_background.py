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

TIMEOUT_SECONDS = 20.0
"""Timeout of every wait; work that takes longer counts as hung."""


@pytest.fixture
def queue() -> Generator[BackgroundQueue]:
    created = BackgroundQueue()
    yield created
    created.close()


@pytest.fixture
def _without_delay_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the batching delay so long that only a flush or a close ends it."""
    monkeypatch.setattr(background, "BATCH_SECONDS", TIMEOUT_SECONDS)


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


def test_submitted_work_runs_soon(queue: BackgroundQueue) -> None:
    work = Work()
    queue.submit("embed", work)
    assert work.done.wait(TIMEOUT_SECONDS)


@pytest.mark.usefixtures("_without_delay_limit")
def test_a_flush_returns_when_all_work_is_done(queue: BackgroundQueue) -> None:
    first, second = Work(), Work()
    queue.submit("embed", first)
    queue.submit("publish", second)
    queue.flush()
    assert (first.times, second.times) == (1, 1)


@pytest.mark.usefixtures("_without_delay_limit")
def test_work_submitted_twice_runs_once_in_its_last_form(queue: BackgroundQueue) -> None:
    first, last = Work(), Work()
    queue.submit("embed", first)
    queue.submit("embed", last)
    queue.flush()
    assert (first.times, last.times) == (0, 1)


@pytest.mark.usefixtures("_without_delay_limit")
def test_work_submitted_while_it_runs_is_run_again(queue: BackgroundQueue) -> None:
    again = Work()
    queue.submit("embed", Work(lambda: queue.submit("embed", again)))
    queue.flush()
    queue.flush()
    assert again.times == 1


def test_after_a_flush_later_work_is_batched_again(queue: BackgroundQueue) -> None:
    queue.submit("embed", Work())
    queue.flush()
    work = Work()
    queue.submit("embed", work)
    assert work.done.wait(TIMEOUT_SECONDS)


def test_a_flush_without_work_returns_at_once(queue: BackgroundQueue) -> None:
    queue.flush()
    queue.close()
    queue.close()


@pytest.mark.usefixtures("_without_delay_limit")
def test_close_finishes_pending_work_and_accepts_no_more() -> None:
    queue = BackgroundQueue()
    before, after = Work(), Work()
    queue.submit("embed", before)
    queue.close()
    queue.submit("embed", after)
    queue.flush()
    assert (before.times, after.times) == (1, 0)


def test_close_ends_the_thread() -> None:
    queue, names = BackgroundQueue(), list[str]()
    queue.submit("embed", lambda: names.append(threading.current_thread().name))
    queue.close()
    assert names == ["inmind-background"]
    assert "inmind-background" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(
    ("error", "level", "message"),
    [
        (StorageFull(place="/home"), "WARNING", "background task failed, will be retried"),
        (ZeroDivisionError("by zero"), "ERROR", "by zero"),
        (SystemExit("and out"), "ERROR", "and out"),
    ],
)
def test_a_failure_is_logged_and_does_not_stop_other_work(
    queue: BackgroundQueue, caplog: pytest.LogCaptureFixture, error: BaseException, level: str, message: str
) -> None:
    other_work = Work()
    with caplog.at_level(logging.WARNING, logger="inmind"):
        queue.submit("embed", fail(error))
        queue.submit("publish", other_work)
        queue.flush()
    assert other_work.times == 1
    assert [record.levelname for record in caplog.records] == [level]
    assert message in caplog.text
    queue.submit("embed", other_work)
    queue.flush()
    assert other_work.times == 2


def test_work_that_closes_the_queue_does_not_wait_for_itself() -> None:
    queue = BackgroundQueue()
    work = Work(queue.close)
    queue.submit("embed", work)
    assert work.done.wait(TIMEOUT_SECONDS / 2)


def test_many_threads_may_submit_and_flush_at_once(queue: BackgroundQueue) -> None:
    works = [Work() for _ in range(50)]

    def submit_and_flush(number: int) -> None:
        queue.submit(f"work {number}", works[number])
        queue.flush()

    threads = [threading.Thread(target=submit_and_flush, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
    assert [work.times for work in works] == [1] * len(works)


@pytest.mark.usefixtures("_without_delay_limit")
def test_a_flush_does_not_wait_for_later_work(queue: BackgroundQueue) -> None:
    """Otherwise a flush would never return while other threads keep submitting."""
    started, may_continue = threading.Event(), threading.Event()

    def resubmit() -> None:
        started.set()
        may_continue.wait(TIMEOUT_SECONDS)
        queue.submit("embed", Work())

    queue.submit("embed", resubmit)
    flushing = threading.Thread(target=queue.flush, daemon=True)
    flushing.start()
    assert started.wait(TIMEOUT_SECONDS)
    may_continue.set()
    flushing.join(TIMEOUT_SECONDS / 2)
    assert not flushing.is_alive()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_runs_only_its_own_work(queue: BackgroundQueue) -> None:
    started, may_end = threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        may_end.wait(TIMEOUT_SECONDS)

    parent_work = Work(slow)
    queue.submit("embed", parent_work)
    assert started.wait(TIMEOUT_SECONDS)
    inherited = Work()
    queue.submit("publish", inherited)
    child = os.fork()
    if not child:
        child_work = Work()
        queue.flush()
        queue.submit("embed", child_work)
        queue.close()
        os._exit(0 if (child_work.times, inherited.times) == (1, 0) else 1)
    _, status = os.waitpid(child, 0)
    may_end.set()
    queue.flush()
    assert os.waitstatus_to_exitcode(status) == 0
    assert (parent_work.times, inherited.times) == (1, 1)
