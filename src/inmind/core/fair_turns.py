"""Turns of a dream and of its host in one process.

Python runs one thread at a time. A dream computes for seconds, and a call of the host waits for its turn each time that
it comes back from the disk: a `prepare` beside a dream would take 25 times as long. So a dream hands over sooner, and
between its steps it waits while a call is running.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from inmind.core.fork import register_after_fork

T = TypeVar("T")

SWITCH_SECONDS = 0.00001
"""How long a thread of the process waits for its turn while a dream computes. The default of Python is 5 ms."""
SLICE_SECONDS = 0.001
"""How long a dream computes before it waits for calls of the host again."""
WAIT_SECONDS = 0.005
"""How long a dream waits for them, at most."""
SLEEP_SECONDS = 0.001


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


class _BusyThreads:
    """Threads for which a dream waits."""

    def __init__(self) -> None:
        self._threads: list[int] = []
        self._next_wait = 0.0
        register_after_fork(self)

    @contextmanager
    def include(self) -> Generator[None]:
        """Let dreams of other threads wait while the block runs."""
        thread = threading.get_ident()
        self._threads.append(thread)
        try:
            yield
        finally:
            self._threads.remove(thread)

    def wait(self) -> None:
        """Wait a moment for other threads.

        Not if this thread is busy itself: they may be waiting for it.
        """
        if not self._threads or (now := time.monotonic()) < self._next_wait or threading.get_ident() in self._threads:
            return
        while self._threads and time.monotonic() < now + WAIT_SECONDS:
            time.sleep(SLEEP_SECONDS)
        self._next_wait = time.monotonic() + SLICE_SECONDS

    def after_fork(self) -> None:
        """Forget the threads of the parent, which the child does not have."""
        own = threading.get_ident()
        self._threads = [thread for thread in self._threads if thread == own]


_busy_threads = _BusyThreads()
dreams_wait = _busy_threads.include


def giving_way(items: Iterable[T]) -> Iterator[T]:
    """Return the items of a dream, and let other threads go first between them."""
    for item in items:
        _busy_threads.wait()
        yield item
