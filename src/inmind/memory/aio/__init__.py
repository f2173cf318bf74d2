"""`AsyncMemory` and its sessions: the sync names, awaited, for asyncio programs.

    from inmind import AsyncMemory

    async with AsyncMemory.open() as memory:
        session = await memory.session("deploy-42", resource="ada")
        prompt = await session.prepare([{"role": "user", "content": "Add a hero section to it"}])
        for entity in await session.entities:
            print(entity)

Every method is awaited, and so is every property that reads the store. Properties that read nothing are not
(`session.id`, `memory.home`). `id in memory` becomes `await memory.contains(id)`. Calls return the same values as the
sync names, and wrappers if those return objects. `wrapper.sync` is the sync object: all behaviour is implemented
there. An AsyncMemory belongs to no particular event loop: several loops may use it, each in its own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from inmind.memory.aio.wrapper import AsyncWrapper, CallThreads, awaited, cancellable, wrapped_result
from inmind.memory.memory import Memory

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.memory.aio.session import AsyncResource, AsyncSession
    from inmind.session.session import Session

P = ParamSpec("P")


class AsyncMemoryOpener:
    """The result of `AsyncMemory.open`.

    `async with` closes the memory at the end; `await` leaves that to the caller.
    """

    def __init__(self, open: Callable[[], Memory]) -> None:
        self._open, self._entered = open, AsyncExitStack()

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open_in_thread().__await__()

    async def __aenter__(self) -> AsyncMemory:
        return await self._entered.enter_async_context(await self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.aclose()

    async def _open_in_thread(self) -> AsyncMemory:
        threads, opened = CallThreads(), list[Memory]()
        try:
            await threads.run(lambda: opened.append(self._open()))
        except asyncio.CancelledError:
            for memory in opened:  # the caller never gets it, so it is closed here
                await threads.close(memory.close)
            raise
        return AsyncMemory(opened[0], threads)


def _opener(open: Callable[P, Memory]) -> Callable[P, AsyncMemoryOpener]:
    @wraps(open)
    def start(*args: P.args, **kwargs: P.kwargs) -> AsyncMemoryOpener:
        return AsyncMemoryOpener(partial(open, *args, **kwargs))

    return start


class AsyncMemory(AsyncWrapper[Memory]):
    """`Memory` for asyncio: the same names, awaited. Use it as an async context manager.

    Calls run concurrently; those of one session run in the order in which they were made.
    """

    def _wrap_session(self, session: Session) -> AsyncSession:
        from inmind.memory.aio.session import AsyncSession  # loaded with the first session

        return AsyncSession(session, self._threads)

    open = staticmethod(_opener(Memory.open))

    @property
    def home(self) -> Path | None:
        return self.sync.home

    @property
    def location(self) -> str:
        return self.sync.location

    @property
    def settings(self) -> Settings:
        return self.sync.settings

    def resource(self, name: str) -> AsyncResource:
        """The resource with this name. It is not awaited: nothing is read or stored."""
        from inmind.memory.aio.session import AsyncResource

        return AsyncResource(self.sync.resource(name), self._threads)

    session = wrapped_result(Memory.session, _wrap_session)
    import_entities = wrapped_result(Memory.import_entities, _wrap_session)
    sessions = awaited(Memory.sessions)
    latest = awaited(Memory.latest)
    contains = awaited(Memory.__contains__)
    resources = awaited(Memory.resources)
    has_resource = awaited(Memory.has_resource)
    page = awaited(Memory.page)
    edit = awaited(Memory.edit)

    search = awaited(Memory.search)
    get = awaited(Memory.get)
    pin = awaited(Memory.pin)
    unpin = awaited(Memory.unpin)
    dream = cancellable(Memory.dream)
    run_upkeep = awaited(Memory.run_upkeep)
    start_upkeep = awaited(Memory.start_upkeep)
    flush = awaited(Memory.flush)
    export = awaited(Memory.export)
    import_bundle = awaited(Memory.import_bundle)

    async def close(self) -> None:
        """Close the memory after all calls in progress are done. Later calls raise Closed."""
        await self._threads.close(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
