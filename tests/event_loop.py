"""What tests on an event loop share: a loop with an end in time, and waiting for something to be so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import inmind
from inmind.memory import aio
from inmind.memory.aio.wrapper import AsyncWrapper

DEADLINE = 20.0

TWINS: dict[type, type[AsyncWrapper[Any]]] = {
    inmind.Memory: aio.AsyncMemory,
    inmind.Session: aio.AsyncSession,
    inmind.Scratchpad: aio.AsyncScratchpad,
    inmind.Affect: aio.AsyncAffect,
    inmind.Economics: aio.AsyncEconomics,
}


def run(main: Coroutine[Any, Any, object]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(3 * DEADLINE):
            await main

    asyncio.run(limited())


async def until(condition: Callable[[], object]) -> None:
    """Come back when it is so; the loop goes on meanwhile."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.001)
