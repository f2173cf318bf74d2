"""The home of all memory, awaited. Its calls do not wait for each other, nor sessions for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from inmind.memory.aio.threads import CallThreads
from inmind.memory.aio.wrapper import AsyncWrapper, awaited, cancellable, wrapped_result
from inmind.memory.memory import Memory as SyncMemory

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.memory.aio.resource import AsyncAffect, AsyncEconomics
    from inmind.memory.aio.session import AsyncSession
    from inmind.session.affect import Affect as SyncAffect
    from inmind.session.session import Session as SyncSession

P = ParamSpec("P")


class AsyncMemoryOpener:
    """What `open` answers with: entered, a memory that is closed behind you; awaited, one that is yours to close."""

    def __init__(self, open: Callable[[], SyncMemory]) -> None:
        self._open, self._entered = open, AsyncExitStack()

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._opened().__await__()

    async def __aenter__(self) -> AsyncMemory:
        return await self._entered.enter_async_context(await self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.aclose()

    async def _opened(self) -> AsyncMemory:
        threads, opened = CallThreads(), list[SyncMemory]()
        try:
            await threads.carry_out(lambda: opened.append(self._open()))
        except asyncio.CancelledError:
            for memory in opened:  # nobody has got it, so nobody else will close it
                await threads.end(memory.close)
            raise
        return AsyncMemory(opened[0], threads)


def _opening(open: Callable[P, SyncMemory]) -> Callable[P, AsyncMemoryOpener]:
    @wraps(open)
    def begin(*args: P.args, **kwargs: P.kwargs) -> AsyncMemoryOpener:
        return AsyncMemoryOpener(partial(open, *args, **kwargs))

    return begin


class AsyncMemory(AsyncWrapper[SyncMemory]):
    """All sessions and resources of one home, or of one database. Use it as an async context manager."""

    def _session(self, session: SyncSession) -> AsyncSession:
        from inmind.memory.aio.session import AsyncSession  # what sessions alone need comes with the first one

        return AsyncSession(session, self._threads)

    def _affect(self, affect: SyncAffect) -> AsyncAffect:
        from inmind.memory.aio.resource import AsyncAffect

        return AsyncAffect(affect, self._threads)

    open = staticmethod(_opening(SyncMemory.open))

    @property
    def home(self) -> Path | None:
        return self.sync.home

    @property
    def location(self) -> str:
        return self.sync.location

    @property
    def settings(self) -> Settings:
        return self.sync.settings

    @property
    def ledger__R(self) -> AsyncEconomics:
        from inmind.memory.aio.resource import AsyncEconomics

        return AsyncEconomics(self.sync.ledger__R, self._threads)

    session = wrapped_result(SyncMemory.session, _session)
    import_entities = wrapped_result(SyncMemory.import_entities, _session)
    sessions = awaited(SyncMemory.sessions)
    latest = awaited(SyncMemory.latest)
    contains = awaited(SyncMemory.__contains__)
    resources = awaited(SyncMemory.resources)
    has_resource = awaited(SyncMemory.has_resource)
    belongings__R = awaited(SyncMemory.belongings__R)
    page = awaited(SyncMemory.page)
    edit = awaited(SyncMemory.edit)

    note__R = awaited(SyncMemory.note__R)
    search__R = awaited(SyncMemory.search__R)
    get = awaited(SyncMemory.get)
    pin = awaited(SyncMemory.pin)
    unpin = awaited(SyncMemory.unpin)
    consolidate__R = awaited(SyncMemory.consolidate__R)
    run_upkeep = awaited(SyncMemory.run_upkeep)
    start_upkeep = awaited(SyncMemory.start_upkeep)
    flush = awaited(SyncMemory.flush)
    export = awaited(SyncMemory.export)
    import_bundle = awaited(SyncMemory.import_bundle)

    dream = cancellable(SyncMemory.dream)
    dreams__R = awaited(SyncMemory.dreams__R)
    undo_dream__R = awaited(SyncMemory.undo_dream__R)
    cancel_dream__R = awaited(SyncMemory.cancel_dream__R)
    affect__R = wrapped_result(SyncMemory.affect__R, _affect)

    async def close(self) -> None:
        """Let go when all calls that were made are done. From now on they are refused: Closed."""
        await self._threads.end(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
