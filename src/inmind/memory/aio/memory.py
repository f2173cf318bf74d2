"""The home of all memory, awaited. Its calls do not wait for each other, nor sessions for one another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from inmind.memory.aio.threads import Threads
from inmind.memory.aio.wrapper import Twin, awaited, called_off, handed
from inmind.memory.memory import Memory as SyncMemory

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.memory.aio.resource import Affect, Books
    from inmind.memory.aio.session import Session
    from inmind.session.affect import Affect as SyncAffect
    from inmind.session.session import Session as SyncSession

P = ParamSpec("P")


class Opening:
    """What `open` answers with: entered, a memory that is closed behind you; awaited, one that is yours to close."""

    def __init__(self, open: Callable[[], SyncMemory]) -> None:
        self._open, self._entered = open, AsyncExitStack()

    def __await__(self) -> Generator[Any, None, Memory]:
        return self._opened().__await__()

    async def __aenter__(self) -> Memory:
        return await self._entered.enter_async_context(await self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.aclose()

    async def _opened(self) -> Memory:
        threads, opened = Threads(), list[SyncMemory]()
        try:
            await threads.carry_out(lambda: opened.append(self._open()))
        except asyncio.CancelledError:
            for memory in opened:  # nobody has got it, so nobody else will close it
                await threads.end(memory.close)
            raise
        return Memory(opened[0], threads)


def _opening(open: Callable[P, SyncMemory]) -> Callable[P, Opening]:
    @wraps(open)
    def begin(*args: P.args, **kwargs: P.kwargs) -> Opening:
        return Opening(partial(open, *args, **kwargs))

    return begin


class Memory(Twin[SyncMemory]):
    """All sessions and resources of one home, or of one database. Use it as an async context manager."""

    def _session(self, session: SyncSession) -> Session:
        from inmind.memory.aio.session import Session  # what sessions alone need comes with the first one

        return Session(session, self._threads)

    def _affect(self, affect: SyncAffect) -> Affect:
        from inmind.memory.aio.resource import Affect

        return Affect(affect, self._threads)

    open = staticmethod(_opening(SyncMemory.open))

    @property
    def home(self) -> Path | None:
        return self.sync.home

    @property
    def place(self) -> str:
        return self.sync.place

    @property
    def settings(self) -> Settings:
        return self.sync.settings

    @property
    def ledger(self) -> Books:
        from inmind.memory.aio.resource import Books

        return Books(self.sync.ledger, self._threads)

    session = handed(SyncMemory.session, _session)
    restore = handed(SyncMemory.restore, _session)
    sessions = awaited(SyncMemory.sessions)
    latest = awaited(SyncMemory.latest)
    contains = awaited(SyncMemory.__contains__)
    resources = awaited(SyncMemory.resources)
    knows = awaited(SyncMemory.knows)
    belongings = awaited(SyncMemory.belongings)
    page = awaited(SyncMemory.page)
    edit = awaited(SyncMemory.edit)

    note = awaited(SyncMemory.note)
    search = awaited(SyncMemory.search)
    crystal = awaited(SyncMemory.crystal)
    freeze = awaited(SyncMemory.freeze)
    thaw = awaited(SyncMemory.thaw)
    consolidate = awaited(SyncMemory.consolidate)
    upkeep = awaited(SyncMemory.upkeep)
    begin_upkeep = awaited(SyncMemory.begin_upkeep)
    flush = awaited(SyncMemory.flush)
    export = awaited(SyncMemory.export)
    import_ = awaited(SyncMemory.import_)

    dream = called_off(SyncMemory.dream)
    dreams = awaited(SyncMemory.dreams)
    undo_dream = awaited(SyncMemory.undo_dream)
    call_off_dream = awaited(SyncMemory.call_off_dream)
    affect = handed(SyncMemory.affect, _affect)

    async def close(self) -> None:
        """Let go when all calls that were made are done. From now on they are refused: Closed."""
        await self._threads.end(self.sync.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
