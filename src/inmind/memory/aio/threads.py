"""The threads that run async calls, with an order of calls per lane.

A commit blocks its thread for an fsync, or until another process releases the store. The event loop must not wait for
that, and neither must other work in the host's default executor: so each memory has its own threads.

Calls of one lane run one after the other, in the order in which they were made. Lanes do not wait for each other.

A call runs completely or does not run, even if its caller is cancelled. If it is cancelled before a thread has started
it, it never runs. If it is cancelled later, it is finished first, and only then the caller gets CancelledError: a retry
or a `close` after that finds nothing in progress. So a timeout never interrupts a call; it can only prevent one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from inmind.core.fork import register_after_fork
from inmind.errors import Closed

MAX_THREADS = 16
"""Per memory. They mostly wait: for the disk, and for the models of dreams and summaries."""

R = TypeVar("R")


class CallThreads:
    """The threads of one memory. They start on demand and end with it."""

    def __init__(self) -> None:
        self._reset()
        register_after_fork(self)

    def after_fork(self) -> None:
        """Threads and calls of the parent process do not exist in the child."""
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="inmind-aio")
        self._lanes: dict[object, deque[_Call[Any]]] = {}
        """Unfinished calls by lane. The first of each lane is running, or waits for a thread."""
        self._last: _Call[None] | None = None

    async def run(
        self, work: Callable[[], R], lane: object = None, *, on_cancel: Callable[[], object] = lambda: None
    ) -> R:
        """Run `work` in a thread, in the context of the caller, and return its result.

        Without a lane it waits for no other call. `on_cancel` is called if the caller is cancelled; the work may
        continue.
        """
        call = _Call(work)
        with self._lock:
            if self._last is not None:
                raise Closed
            waiting = self._lanes.setdefault(call if lane is None else lane, deque())
            waiting.append(call)
            if len(waiting) == 1:
                self._pool.submit(self._run_next, call if lane is None else lane)
        return await call.result(on_cancel)

    async def close(self, last: Callable[[], None]) -> None:
        """Refuse new calls, finish those in progress, then run `last`.

        `last` runs even if the caller is cancelled. Further callers of `close` wait for the same end.
        """
        with self._lock:
            if self._last is None:
                self._last = _Call(last)
                self._last.start()  # from now on it cannot be cancelled
                self._close_if_idle()
        await self._last.result()

    def _run_next(self, lane: object) -> None:
        """Run the first call of a lane.

        Its next call queues after the calls of other lanes, so no lane starves the others.
        """
        waiting = self._lanes[lane]
        if waiting[0].start():
            waiting[0].run()
        with self._lock:
            waiting.popleft()
            if waiting:
                self._pool.submit(self._run_next, lane)
            else:
                del self._lanes[lane]
                self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Close the pool if no call is left. The caller holds the lock."""
        if self._last is not None and not self._lanes:
            self._pool.submit(self._last.run)
            self._pool.shutdown(wait=False)


class _Call(Generic[R]):
    """One call, made by an event loop and run by a thread."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work, self._context = work, copy_context()
        self._future: Future[R] = Future()

    def start(self) -> bool:
        """False if it was cancelled."""
        return self._future.set_running_or_notify_cancel()

    def run(self) -> None:
        try:
            result = self._context.run(self._work)
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    async def result(self, on_cancel: Callable[[], object] = lambda: None) -> R:
        """The result of the call. A cancelled caller cancels it, or waits until it is finished.

        An error of a call whose caller was cancelled is the cause of the CancelledError.
        """
        loop, finished = asyncio.get_running_loop(), asyncio.Event()
        self._future.add_done_callback(lambda _: loop.call_soon_threadsafe(finished.set))
        cancelled: asyncio.CancelledError | None = None
        while not finished.is_set():
            try:
                await finished.wait()
            except asyncio.CancelledError as error:
                cancelled = cancelled or error
                on_cancel()
                self._future.cancel()
        if cancelled is not None:
            raise cancelled from (None if self._future.cancelled() else self._future.exception())
        return self._future.result()
