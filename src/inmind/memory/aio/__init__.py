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
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self

from inmind.memory.aio.wrapper import (
    AsyncWrapper,
    CallThreads,
    awaited,
    awaited_property,
    cancellable,
    wrapped_result,
)
from inmind.memory.memory import Memory
from inmind.memory.resource import Resource
from inmind.memory.resource_ledger import Affect, Economics
from inmind.session.children import MergeReport
from inmind.session.scratchpad import Scratchpad
from inmind.session.session import Session

if TYPE_CHECKING:
    from inmind.core.settings import Settings

P = ParamSpec("P")


class AsyncMemoryOpener:
    """The result of `AsyncMemory.open`.

    `async with` closes the memory at the end; `await` leaves that to the caller.
    """

    def __init__(self, open: Callable[[], Memory]) -> None:
        self._open = open
        self._memory: AsyncMemory | None = None

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self._open_in_thread().__await__()

    async def __aenter__(self) -> AsyncMemory:
        self._memory = await self
        return self._memory

    async def __aexit__(self, *_: object) -> None:
        if self._memory is not None:
            await self._memory.close()

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

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncScratchpad(AsyncWrapper[Scratchpad]):
    """`Scratchpad`, awaited. Its calls are ordered with those of its session."""

    snapshot = awaited_property(Scratchpad, lambda pad: pad.snapshot)
    misfit = awaited_property(Scratchpad, lambda pad: pad.misfit)
    set_aside = awaited_property(Scratchpad, lambda pad: pad.set_aside)
    update = awaited(Scratchpad.update)


class AsyncSession(AsyncWrapper[Session]):
    """`Session`, awaited. Calls run in the order in which they were made."""

    def __init__(self, sync: Session, threads: CallThreads | None = None) -> None:
        super().__init__(sync, threads, lane=object())

    def _wrap_child(self, child: Session) -> AsyncSession:
        return AsyncSession(child, self._threads)

    # -- not awaited -----------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.sync.id

    @property
    def resource(self) -> str:
        return self.sync.resource

    @property
    def memory_tools(self) -> bool:
        return self.sync.memory_tools

    @property
    def scratchpad(self) -> AsyncScratchpad:
        return AsyncScratchpad(self.sync.scratchpad, self._threads, self._lane)

    # -- model calls ------------------------------------------------------------------------------

    prepare = awaited(Session.prepare)
    preview = awaited(Session.preview)
    record = awaited(Session.record)
    tools = awaited(Session.tools)
    call_tool = awaited(Session.call_tool)
    add = awaited(Session.add)
    observe = awaited(Session.observe)
    report_usage = awaited(Session.report_usage)

    # -- children ------------------------------------------------------------------------------------------

    spawn = wrapped_result(Session.spawn, _wrap_child)

    async def merge_back(self, child: AsyncSession | str, *, key: str | None = None) -> MergeReport:
        """As `Session.merge_back`, for an AsyncSession or an id."""
        return await self.run_in_thread(
            self.sync.merge_back, child.sync if isinstance(child, AsyncSession) else child, key=key
        )

    # -- entities --------------------------------------------------------------------------------------------

    entities = awaited_property(Session, lambda session: session.entities)
    resolve = awaited(Session.resolve)
    check_call = awaited(Session.check_call)
    track = awaited(Session.track)
    pin = awaited(Session.pin)
    unpin = awaited(Session.unpin)
    export_entities = awaited(Session.export_entities)
    import_entities = awaited(Session.import_entities)

    # -- notes and documents -------------------------------------------------------------------------------

    note = awaited(Session.note)
    withdraw = awaited(Session.withdraw)
    search = awaited(Session.search)
    overview = awaited_property(Session, lambda session: session.overview)
    front_matter = awaited_property(Session, lambda session: session.front_matter)
    update_front_matter = awaited(Session.update_front_matter)
    event = awaited(Session.event)
    read = awaited(Session.read)
    write = awaited(Session.write)
    documents = awaited(Session.documents)
    rename = awaited(Session.rename)

    # -- the history ---------------------------------------------------------------------------------------

    compact = awaited(Session.compact)
    undo_compaction = awaited(Session.undo_compaction)
    retained = awaited_property(Session, lambda session: session.retained)
    retain = awaited(Session.retain)
    release = awaited(Session.release)

    # -- past and present state --------------------------------------------------------------------------------------

    messages = awaited_property(Session, lambda session: session.messages)
    state = awaited_property(Session, lambda session: session.state)
    resource_state = awaited_property(Session, lambda session: session.resource_state)
    usage = awaited_property(Session, lambda session: session.usage)
    state_at = awaited(Session.state_at)
    events = awaited(Session.events)
    undo = awaited(Session.undo)
    remove_last_messages = awaited(Session.remove_last_messages)
    prompt = awaited(Session.prompt)
    explain = awaited(Session.explain)
    close = awaited(Session.close)


class AsyncAffect(AsyncWrapper[Affect]):
    """`Affect`, awaited. Calls run in the order in which they were made."""

    @property
    def enabled(self) -> bool:
        return self.sync.enabled

    levels = awaited_property(Affect, lambda affect: affect.levels)
    mood = awaited_property(Affect, lambda affect: affect.mood)
    spike = awaited(Affect.spike)
    history = awaited(Affect.history)


class AsyncEconomics(AsyncWrapper[Economics]):
    """`Economics`, awaited. Calls run concurrently."""

    record = awaited(Economics.record)
    report = awaited(Economics.report)


class AsyncResource(AsyncWrapper[Resource]):
    """`Resource`, awaited. Calls run concurrently."""

    def __init__(self, sync: Resource, threads: CallThreads | None = None) -> None:
        super().__init__(sync, threads)
        self._affect_lane = object()

    @property
    def name(self) -> str:
        return self.sync.name

    @property
    def affect(self) -> AsyncAffect:
        return AsyncAffect(self.sync.affect, self._threads, self._affect_lane)

    @property
    def economics(self) -> AsyncEconomics:
        return AsyncEconomics(self.sync.economics, self._threads)

    state = awaited_property(Resource, lambda resource: resource.state)
    sessions = awaited(Resource.sessions)
    note = awaited(Resource.note)
    notes = awaited(Resource.notes)
    withdraw = awaited(Resource.withdraw)
    search = awaited(Resource.search)
    consolidate = awaited(Resource.consolidate)
    dream = cancellable(Resource.dream)
    dreams = awaited(Resource.dreams)
    get_dream = awaited(Resource.get_dream)
    undo_dream = awaited(Resource.undo_dream)
    cancel_dream = awaited(Resource.cancel_dream)
