"""The stream that a host gets with `stream=True`, over all rounds of a call.

It has the interface of the client's stream: iteration, context manager, `close`, and other attributes of the stream of
the current round. A stream that is closed early or fails is recorded up to its last complete round.

The generators hold no reference to the object that the host has. So when the host drops that object, the connection is
released at once.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from inmind.integrations.wrap.call_loop import CallLoop


@dataclass(slots=True)
class CurrentStream:
    """The client's stream of the current round."""

    stream: Any


class ReplyStream:
    def __init__(self, loop: CallLoop, first: Any, send: Callable[[], Any]) -> None:
        self._round = CurrentStream(first)
        self._chunks = _visible_chunks(loop, self._round, send)

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


class AsyncReplyStream:
    """The async stream. `needs_next_round` runs in a worker thread."""

    def __init__(
        self,
        loop: CallLoop,
        first: Any,
        send: Callable[[], Awaitable[Any]],
        needs_next_round: Callable[[], Awaitable[bool]],
    ) -> None:
        self._round = CurrentStream(first)
        self._chunks = _visible_chunks_async(loop, self._round, send, needs_next_round)

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


def _visible_chunks(loop: CallLoop, current: CurrentStream, send: Callable[[], Any]) -> Iterator[Any]:
    try:
        while True:
            for chunk in current.stream:
                yield from loop.add_chunk(chunk)
            if not loop.stream_needs_next_round():
                break
            current.stream = send()
        yield from loop.end()
    finally:
        if not sys.is_finalizing():  # at interpreter exit the connection may be gone already
            current.stream.close()


async def _visible_chunks_async(
    loop: CallLoop,
    current: CurrentStream,
    send: Callable[[], Awaitable[Any]],
    needs_next_round: Callable[[], Awaitable[bool]],
) -> AsyncIterator[Any]:
    try:
        while True:
            async for chunk in current.stream:
                for visible in loop.add_chunk(chunk):
                    yield visible
            if not await needs_next_round():
                break
            current.stream = await send()
        for visible in loop.end():
            yield visible
    finally:
        await current.stream.close()
