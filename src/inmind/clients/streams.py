"""A reply on its way through, over all its rounds: what `stream=True` gives a host in the place of the client's stream.

It offers what the client's own offers, so that a host, or the client's helpers on top of a stream, can tell no
difference: iteration, a context, `close`, and the response of the round that is under way. A stream that is left early
or breaks is recorded as far as its rounds were whole, and no further.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Self

from inmind.clients.exchange import Exchange


class Streamed:
    def __init__(self, exchange: Exchange, first: Any, ask: Callable[[], Any]) -> None:
        self._exchange, self._round, self._ask = exchange, first, ask
        self._chunks = self._shown()

    @property
    def response(self) -> Any:
        return self._round.response

    def close(self) -> None:
        self._round.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _shown(self) -> Iterator[Any]:
        while True:
            for chunk in self._round:
                yield from self._exchange.take(chunk)
            if not self._exchange.streams_on():
                break
            self._round = self._ask()
        yield from self._exchange.end()


class AsyncStreamed:
    def __init__(self, exchange: Exchange, first: Any, ask: Callable[[], Awaitable[Any]]) -> None:
        self._exchange, self._round, self._ask = exchange, first, ask
        self._chunks = self._shown()

    @property
    def response(self) -> Any:
        return self._round.response

    async def close(self) -> None:
        await self._round.close()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _shown(self) -> AsyncIterator[Any]:
        while True:
            async for chunk in self._round:
                for shown in self._exchange.take(chunk):
                    yield shown
            if not await asyncio.to_thread(self._exchange.streams_on):
                break
            self._round = await self._ask()
        for shown in self._exchange.end():
            yield shown
