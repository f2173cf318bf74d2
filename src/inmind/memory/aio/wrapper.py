"""How a synchronous name becomes one that is awaited.

A twin holds the object that it stands for, and each of its names is made of one of that object's: type checkers take
the arguments from there, and so does `help`. So there is no second signature to keep up, and nothing to decide.
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
H = TypeVar("H")
T = TypeVar("T", bound="AsyncWrapper[Any]")

Awaited = Coroutine[Any, Any, R]


class AsyncWrapper(Generic[S]):
    """An object of the synchronous side, awaited."""

    def __init__(self, sync: S, threads: CallThreads | None = None, lane: object = None) -> None:
        self.sync = sync
        """What it stands for: for whoever is in a thread already, as a layer or a summarizer is."""
        self._threads = CallThreads() if threads is None else threads
        self._lane = lane

    def carry_out(self, work: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaited[R]:
        """Something of the host's own, in one of the threads; in its turn, where calls of this object have an order."""
        return self._threads.carry_out(partial(work, *args, **kwargs), self._lane)

    def __repr__(self) -> str:
        return repr(self.sync).replace("<", "<aio.", 1)


def awaited(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[AsyncWrapper[S], P], Awaited[R]]:
    """A method, carried out in a thread."""

    @wraps(method)
    async def call(twin: AsyncWrapper[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await twin.carry_out(getattr(twin.sync, method.__name__), *args, **kwargs)

    return call


def wrapped_result(
    method: Callable[Concatenate[S, P], R], twin_of: Callable[[T, R], H]
) -> Callable[Concatenate[T, P], Awaited[H]]:
    """A method that hands out an object: its twin comes back."""

    @wraps(method)
    async def call(twin: T, /, *args: P.args, **kwargs: P.kwargs) -> H:
        return twin_of(twin, await twin.carry_out(getattr(twin.sync, method.__name__), *args, **kwargs))

    return call


def cancellable(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[AsyncWrapper[S], P], Awaited[R]]:
    """A method that asks its argument `cancelled` now and then: whoever stops waiting for it calls it off."""

    @wraps(method)
    async def call(twin: AsyncWrapper[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        left = threading.Event()
        theirs: Any = kwargs.get("cancelled") or left.is_set
        told = {**kwargs, "cancelled": lambda: left.is_set() or theirs()}
        work = partial(getattr(twin.sync, method.__name__), *args, **told)
        return await twin._threads.carry_out(work, twin._lane, left=left.set)  # pyright: ignore[reportPrivateUsage] -- this is a method of twins

    return call


class awaited_property(Generic[S, R]):  # noqa: N801 -- it stands where `property` would
    """A property that looks into the store, of the same name: `await session.entities`."""

    def __init__(self, of: type[S], look: Callable[[S], R]) -> None:
        self._of, self._look = of, look
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"{owner.__name__}.{name}"
        self.__doc__ = getattr(self._of, name).__doc__

    @overload
    def __get__(self, twin: None, owner: type) -> Self: ...
    @overload
    def __get__(self, twin: AsyncWrapper[S], owner: type) -> PendingValue[R]: ...
    def __get__(self, twin: AsyncWrapper[S] | None, owner: type) -> Self | PendingValue[R]:
        return self if twin is None else PendingValue(self._name, lambda: twin.carry_out(self._look, twin.sync))


class PendingValue(Generic[R]):
    """What such a property answers with, which looks when it is awaited.

    Not a coroutine: `hasattr`, `inspect` and debuggers ask for attributes that they never await.
    """

    def __init__(self, name: str, look: Callable[[], Awaited[R]]) -> None:
        self._name, self._look = name, look

    def __await__(self) -> Generator[Any, Any, R]:
        return self._look().__await__()

    def __bool__(self) -> bool:
        """Refused, since nothing else would tell of an `await` that was forgotten in a condition."""
        raise TypeError(f"{self._name} is awaited: what is there is not known yet")

    def __repr__(self) -> str:
        return f"<to be awaited: {self._name}>"
