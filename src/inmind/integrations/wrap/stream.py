"""A reply on its way through, over all its rounds: what `stream=True` gives a host in the place of the client's stream.

It offers what the client's own offers, so that a host, or the client's helpers on top of a stream, can tell no
difference: iteration, a context, `close`, and whatever else the stream of the round that is under way has. A stream
that is left early or breaks is recorded as far as its rounds were whole, and no further.

The generators know nothing of the object that a host holds: a host that drops it without closing it has then dropped
the last of it, and the connection is free at once.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from inmind.integrations.wrap.call_loop import Exchange


@dataclass(slots=True)
class UnderWay:
    """The client's own stream of the round that is being told."""

    stream: Any


class Streamed:
    def __init__(self, exchange: Exchange, first: Any, ask: Callable[[], Any]) -> None:
        self._round = UnderWay(first)
        self._chunks = _shown(exchange, self._round, ask)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._round.stream, name)

    def close(self) -> None:
        self._round.stream.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStreamed:
    """`streams_on`: the exchange's own, which keeps a reply and is not to be waited for in the loop."""

    def __init__(
        self,
        exchange: Exchange,
        first: Any,
        ask: Callable[[], Awaitable[Any]],
        streams_on: Callable[[], Awaitable[bool]],
    ) -> None:
        self._round = UnderWay(first)
        self._chunks = _shown_async(exchange, self._round, ask, streams_on)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._round.stream, name)

    async def close(self) -> None:
        await self._round.stream.close()

    aclose = close

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _shown(exchange: Exchange, under_way: UnderWay, ask: Callable[[], Any]) -> Iterator[Any]:
    try:
        while True:
            for chunk in under_way.stream:
                yield from exchange.take(chunk)
            if not exchange.streams_on():
                break
            under_way.stream = ask()
        yield from exchange.end()
    finally:
        if not sys.is_finalizing():  # then there may be nothing left to close a connection with
            under_way.stream.close()


async def _shown_async(
    exchange: Exchange,
    under_way: UnderWay,
    ask: Callable[[], Awaitable[Any]],
    streams_on: Callable[[], Awaitable[bool]],
) -> AsyncIterator[Any]:
    try:
        while True:
            async for chunk in under_way.stream:
                for shown in exchange.take(chunk):
                    yield shown
            if not await streams_on():
                break
            under_way.stream = await ask()
        for shown in exchange.end():
            yield shown
    finally:
        await under_way.stream.close()
