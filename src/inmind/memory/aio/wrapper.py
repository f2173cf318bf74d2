"""Wrappers that run the calls of a sync object in threads, with an order of calls per lane.

Each method of a wrapper is derived from the sync method, so type checkers and `help` take the signature from there:
there is no second signature to maintain.

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
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from inmind.core.fork import register_after_fork
from inmind.errors import Closed

MAX_THREADS = 16
"""Per memory. They mostly wait: for the disk, and for the models of dreams and summaries."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
W = TypeVar("W")
T = TypeVar("T", bound="AsyncWrapper[Any]")

Awaited = Coroutine[Any, Any, R]


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


class AsyncWrapper(Generic[S]):
    """A sync object whose calls are awaited."""

    def __init__(self, sync: S, threads: CallThreads | None = None, lane: object = None) -> None:
        self.sync = sync
        """The sync object, for code that already runs in a thread, such as a layer or a summarizer."""
        self._threads = CallThreads() if threads is None else threads
        self._lane = lane

    def run_in_thread(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaited[R]:
        """Run a function of the host in one of the threads.

        If calls of this object are ordered, it runs after the pending ones.
        """
        return self._threads.run(partial(work, *args, **kwargs), self._lane)

    def __repr__(self) -> str:
        return repr(self.sync).replace("<", "<Async", 1)


def awaited(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[AsyncWrapper[S], P], Awaited[R]]:
    """The method, run in a thread."""

    @wraps(method)
    async def call(wrapper: AsyncWrapper[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await wrapper.run_in_thread(getattr(wrapper.sync, method.__name__), *args, **kwargs)

    return call


def wrapped_result(
    method: Callable[Concatenate[S, P], R], wrap: Callable[[T, R], W]
) -> Callable[Concatenate[T, P], Awaited[W]]:
    """The method, run in a thread, with its result wrapped by `wrap`."""

    @wraps(method)
    async def call(wrapper: T, /, *args: P.args, **kwargs: P.kwargs) -> W:
        return wrap(wrapper, await wrapper.run_in_thread(getattr(wrapper.sync, method.__name__), *args, **kwargs))

    return call


def cancellable(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[AsyncWrapper[S], P], Awaited[R]]:
    """The method, run in a thread. If the caller is cancelled, `cancelled()` returns True."""

    @wraps(method)
    async def call(wrapper: AsyncWrapper[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        stop = threading.Event()
        caller_cancelled: Any = kwargs.get("cancelled") or stop.is_set
        options = {**kwargs, "cancelled": lambda: stop.is_set() or caller_cancelled()}
        work = partial(getattr(wrapper.sync, method.__name__), *args, **options)
        return await wrapper._threads.run(work, wrapper._lane, on_cancel=stop.set)  # pyright: ignore[reportPrivateUsage] -- this is a method of wrappers

    return call


class awaited_property(Generic[S, R]):  # noqa: N801 -- used like `property`
    """A property of the same name that reads the store: `await session.entities`."""

    def __init__(self, of: type[S], read: Callable[[S], R]) -> None:
        self._of, self._read = of, read
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"
        self.__doc__ = getattr(self._of, name).__doc__

    @overload
    def __get__(self, wrapper: None, owner: type) -> Self: ...
    @overload
    def __get__(self, wrapper: AsyncWrapper[S], owner: type) -> PendingValue[R]: ...
    def __get__(self, wrapper: AsyncWrapper[S] | None, owner: type) -> Self | PendingValue[R]:
        if wrapper is None:
            return self
        return PendingValue(self._name, lambda: wrapper.run_in_thread(self._read, wrapper.sync))


class PendingValue(Generic[R]):
    """The value of an awaited property: it is read when it is awaited.

    It is not a coroutine: `hasattr`, `inspect` and debuggers get attributes that they never await.
    """

    def __init__(self, name: str, read: Callable[[], Awaited[R]]) -> None:
        self._name, self._read = name, read

    def __await__(self) -> Generator[Any, Any, R]:
        return self._read().__await__()

    def __bool__(self) -> bool:
        """Raise TypeError: a condition without `await` would always be true."""
        raise TypeError(f"{self._name} has to be awaited: await …{self._name.partition('.')[2]}")

    def __repr__(self) -> str:
        return f"<{self._name}, not awaited yet>"
