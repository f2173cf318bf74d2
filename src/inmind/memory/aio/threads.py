"""Where awaited calls are carried out: in a few threads of their own, and in lanes.

A commit holds its thread for the time of an fsync, or until another process has let go of the store. No event loop may
be made to wait for that, and neither may whatever else the host runs in its own executor: so a memory has its own.

A lane is an order: its calls are carried out one after the other, as they were begun. Lanes do not wait for each other.

A call is carried out whole or not at all, whoever stops waiting for it. Cancelled before a thread has begun with it, it
never happens. Cancelled later, it is finished first, and only then the caller is let go: what comes next, a retry or a
`close`, finds nothing under way. So a timeout does not cut a call short; it can only come before one.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from inmind.core.fork import tell_after_fork
from inmind.errors import Closed

MAX_THREADS = 16
"""At once, for one memory. They wait more than they work: for the disk, for models that dreams and summaries ask."""

R = TypeVar("R")


class CallThreads:
    """Those of one memory. They begin when they are needed, and end with it."""

    def __init__(self) -> None:
        self._begin_anew()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """The threads are the parent's, and so are the calls that they were given."""
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="inmind-aio")
        self._lanes: dict[object, deque[_Call[Any]]] = {}
        """Calls that are not done, by their lane: the first of each is under way, or waits for a thread."""
        self._last: _Call[None] | None = None

    async def carry_out(
        self, work: Callable[[], R], lane: object = None, *, left: Callable[[], object] = lambda: None
    ) -> R:
        """What comes of it, in the caller's context. Without a lane it waits for no other call.

        `left` is told when the caller does not want it any more, which need not be the end of it.
        """
        call = _Call(work)
        with self._lock:
            if self._last is not None:
                raise Closed
            waiting = self._lanes.setdefault(call if lane is None else lane, deque())
            waiting.append(call)
            if len(waiting) == 1:
                self._pool.submit(self._go_on, call if lane is None else lane)
        return await call.outcome(left)

    async def end(self, last: Callable[[], None]) -> None:
        """Take no more calls, carry out those that there are, and then this one, even if nobody waits for it.

        Whoever else asks for the end waits for the same one.
        """
        with self._lock:
            if self._last is None:
                self._last = _Call(last)
                self._last.begin()  # from now on nobody can take it back
                self._end_if_idle()
        await self._last.outcome()

    def _go_on(self, lane: object) -> None:
        """The first call of a lane. Its next one queues up behind other lanes': who asks much keeps out nobody."""
        waiting = self._lanes[lane]
        if waiting[0].begin():
            waiting[0].carry_out()
        with self._lock:
            waiting.popleft()
            if waiting:
                self._pool.submit(self._go_on, lane)
            else:
                del self._lanes[lane]
                self._end_if_idle()

    def _end_if_idle(self) -> None:
        """With the lock in hand."""
        if self._last is not None and not self._lanes:
            self._pool.submit(self._last.carry_out)
            self._pool.shutdown(wait=False)


class _Call(Generic[R]):
    """One call, on its way between a loop and a thread."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work, self._context = work, copy_context()
        self._future: Future[R] = Future()

    def begin(self) -> bool:
        """False if it was taken back."""
        return self._future.set_running_or_notify_cancel()

    def carry_out(self) -> None:
        try:
            answer = self._context.run(self._work)
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(answer)

    async def outcome(self, left: Callable[[], object] = lambda: None) -> R:
        """Its answer, when it is over. A caller that is cancelled takes it back, or stays until it is over as well.

        What went wrong with a call that nobody wants any more is the cause of the CancelledError.
        """
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._future.add_done_callback(lambda _: loop.call_soon_threadsafe(over.set))
        gone: asyncio.CancelledError | None = None
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError as error:
                gone = gone or error
                left()
                self._future.cancel()
        if gone is not None:
            raise gone from (None if self._future.cancelled() else self._future.exception())
        return self._future.result()
