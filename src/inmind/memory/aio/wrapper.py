"""Wrappers that make the methods and properties of a sync object awaitable.

A wrapper holds the sync object. Each of its methods is derived from the sync method, so type checkers and `help` take
the signature from there: there is no second signature to maintain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from inmind.memory.aio.threads import CallThreads

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
W = TypeVar("W")
T = TypeVar("T", bound="AsyncWrapper[Any]")

Awaited = Coroutine[Any, Any, R]


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
