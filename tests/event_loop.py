"""Helpers for tests on an event loop: a loop with a deadline, and waiting for a condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from inmind import AsyncMemory, AsyncResource, AsyncSession, Memory, Resource, Session
from inmind.memory.aio.wrapper import AsyncWrapper
from inmind.types import Affect, AsyncAffect, AsyncEconomics, AsyncScratchpad, Economics, Scratchpad

DEADLINE = 20.0

ASYNC_CLASSES: dict[type, type[AsyncWrapper[Any]]] = {
    Memory: AsyncMemory,
    Resource: AsyncResource,
    Session: AsyncSession,
    Scratchpad: AsyncScratchpad,
    Affect: AsyncAffect,
    Economics: AsyncEconomics,
}


def run(main: Coroutine[Any, Any, object]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(3 * DEADLINE):
            await main

    asyncio.run(limited())


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true, without blocking the loop."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        await asyncio.sleep(0.001)
