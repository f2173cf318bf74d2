"""One background thread per Memory, and fair turns for the threads of its host.

The thread does what a caller does not wait for: embedding, records of searches, updates of notes pages. It starts with
the first task. Tasks that arrive together run as one batch, and `close` returns after all of them ran. Every task can
also run later or in another process, so a failure is logged and stops nothing, and a forked child drops the queue.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from inmind.core.fork import register_after_fork
from inmind.errors import InmindError

log = logging.getLogger("inmind")

T = TypeVar("T")

BATCH_SECONDS = 0.1
"""How long the thread waits for more tasks before it runs a batch."""

SWITCH_SECONDS = 0.00001
"""How long the threads of a host wait for Python's lock while a dream computes. The default is 5 ms.

A call of the host waits that long each time it comes back from the disk, about 20 times in a `prepare`."""


class _SwitchInterval:
    """How often the threads of this process switch."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._host_seconds = threading.Lock(), 0, 0.0
        register_after_fork(self)

    @contextmanager
    def shorten(self) -> Generator[None]:
        """Let other threads of the process run soon while this one computes for long."""
        with self._lock:
            if not self._blocks:
                self._host_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(SWITCH_SECONDS, self._host_seconds))
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    sys.setswitchinterval(self._host_seconds)

    def after_fork(self) -> None:
        """End the blocks of the parent's threads, which the child does not have."""
        if self._blocks:
            sys.setswitchinterval(self._host_seconds)
        self._lock, self._blocks = threading.Lock(), 0


short_switch_interval = _SwitchInterval().shorten


SLICE_SECONDS = 0.001
"""How long a dream computes before it waits for calls of the host again."""
WAIT_SECONDS = 0.005
"""How long it waits, at most."""
SLEEP_SECONDS = 0.001


class _HostCalls:
    """Threads that are in a call of the host, or that hold a stream. A dream waits for them.

    Python runs one thread at a time: beside a dream that computes, a call would take twice as long or longer.
    """

    def __init__(self) -> None:
        self._threads: list[int] = []
        self._next_wait = 0.0
        register_after_fork(self)

    @contextmanager
    def running(self) -> Generator[None]:
        thread = threading.get_ident()
        self._threads.append(thread)
        try:
            yield
        finally:
            self._threads.remove(thread)

    def give_way(self) -> None:
        """Wait a moment if another thread is in a call, unless it may be waiting for this one."""
        if not self._threads or (now := time.monotonic()) < self._next_wait or threading.get_ident() in self._threads:
            return
        while self._threads and time.monotonic() < now + WAIT_SECONDS:
            time.sleep(SLEEP_SECONDS)
        self._next_wait = time.monotonic() + SLICE_SECONDS

    def after_fork(self) -> None:
        """Forget the calls of the parent's threads, which the child does not have."""
        own = threading.get_ident()
        self._threads = [thread for thread in self._threads if thread == own]


host_calls = _HostCalls()


def giving_way(items: Iterable[T]) -> Iterator[T]:
    """Return the items, and let calls of the host go first between them."""
    for item in items:
        host_calls.give_way()
        yield item


class BackgroundQueue:
    """Tasks by name; a task that is submitted twice before it runs is run once."""

    def __init__(self) -> None:
        self._reset()
        register_after_fork(self)

    def submit(self, name: str, work: Callable[[], object]) -> None:
        """Run the task soon. After `close` it is dropped."""
        with self._changed:
            if self._closing:
                return
            idle = not self._pending
            self._pending[name] = work
            self._submitted += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="inmind-background", daemon=True)
                self._thread.start()
            if idle:  # otherwise the thread is already collecting a batch
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until everything submitted so far has run.

        A task that calls this does not wait for itself.
        """
        with self._changed:
            last_submitted = self._flush_upto = self._submitted
            self._changed.notify_all()
            if self._thread is not threading.current_thread():
                self._changed.wait_for(lambda: self._completed >= last_submitted)

    def close(self) -> None:
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def after_fork(self) -> None:
        """Drop the queue: its thread and its tasks belong to the parent."""
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._pending: dict[str, Callable[[], object]] = {}
        self._thread: threading.Thread | None = None
        self._submitted = self._completed = self._flush_upto = 0
        """Number of submissions, how many of them have run, and up to which one a `flush` waits."""
        self._closing = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closing)
                if not self._pending:
                    return
                self._changed.wait_for(
                    lambda: self._flush_upto > self._completed or self._closing, timeout=BATCH_SECONDS
                )
                work, self._pending = list(self._pending.values()), {}
                last_submitted = self._submitted
            for one in work:
                _run_safely(one)
            with self._changed:
                self._completed = last_submitted
                self._changed.notify_all()


def _run_safely(work: Callable[[], object]) -> None:
    """Run a task; no error may end the thread."""
    try:
        work()
    except InmindError as error:
        log.warning("background task failed, will be retried: %s", error)
    except BaseException:
        log.exception("background task failed, will be retried with the next change")
