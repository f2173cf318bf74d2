"""One conversation, awaited. Its calls are carried out in the order in which they were begun, its scratchpad's too."""

from __future__ import annotations

from inmind.memory.aio.threads import CallThreads
from inmind.memory.aio.wrapper import AsyncWrapper, awaited, awaited_property, wrapped_result
from inmind.session.children.merge_back import MergeReport
from inmind.session.scratchpad import Scratchpad as SyncScratchpad
from inmind.session.session import Session as SyncSession


class AsyncScratchpad(AsyncWrapper[SyncScratchpad]):
    snapshot = awaited_property(SyncScratchpad, lambda pad: pad.snapshot)
    misfit = awaited_property(SyncScratchpad, lambda pad: pad.misfit)
    set_aside = awaited_property(SyncScratchpad, lambda pad: pad.set_aside)
    update = awaited(SyncScratchpad.update)


class AsyncSession(AsyncWrapper[SyncSession]):
    def __init__(self, sync: SyncSession, threads: CallThreads | None = None) -> None:
        super().__init__(sync, threads, lane=object())

    def _twin(self, child: SyncSession) -> AsyncSession:
        return AsyncSession(child, self._threads)

    # -- known without looking -----------------------------------------------------------------------------

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

    # -- talking to the model ------------------------------------------------------------------------------

    prepare = awaited(SyncSession.prepare)
    preview = awaited(SyncSession.preview)
    record = awaited(SyncSession.record)
    tools = awaited(SyncSession.tools)
    call = awaited(SyncSession.call_tool)
    add = awaited(SyncSession.add)
    observe = awaited(SyncSession.observe)
    report_usage = awaited(SyncSession.report_usage)

    # -- children ------------------------------------------------------------------------------------------

    spawn = wrapped_result(SyncSession.spawn, _twin)

    async def merge_back(self, child: AsyncSession | str, *, key: str | None = None) -> MergeReport:
        """The same for a child on this side: the one signature that is spelt out, since it takes another type."""
        return await self.carry_out(
            self.sync.merge_back, child.sync if isinstance(child, AsyncSession) else child, key=key
        )

    # -- things --------------------------------------------------------------------------------------------

    entities = awaited_property(SyncSession, lambda session: session.entities)
    resolve = awaited(SyncSession.resolve)
    check_call = awaited(SyncSession.check_call)
    track = awaited(SyncSession.track)
    pin = awaited(SyncSession.pin)
    unpin = awaited(SyncSession.unpin)
    serialize = awaited(SyncSession.export_entities)
    restore = awaited(SyncSession.import_entities)

    # -- notes and documents -------------------------------------------------------------------------------

    note = awaited(SyncSession.note)
    search = awaited(SyncSession.search)
    overview = awaited_property(SyncSession, lambda session: session.overview)
    front_matter = awaited_property(SyncSession, lambda session: session.front_matter)
    update_front_matter = awaited(SyncSession.update_front_matter)
    event = awaited(SyncSession.event)
    read = awaited(SyncSession.read)
    write = awaited(SyncSession.write)
    documents = awaited(SyncSession.documents)
    rename = awaited(SyncSession.rename)

    # -- the history ---------------------------------------------------------------------------------------

    compact = awaited(SyncSession.compact)
    undo_compaction = awaited(SyncSession.undo_compaction)
    retained = awaited_property(SyncSession, lambda session: session.retained)
    retain = awaited(SyncSession.retain)
    release = awaited(SyncSession.release)

    # -- looking back --------------------------------------------------------------------------------------

    mind = awaited_property(SyncSession, lambda session: session.state)
    belongings = awaited_property(SyncSession, lambda session: session.resource_state)
    ledger = awaited_property(SyncSession, lambda session: session.usage)
    at = awaited(SyncSession.state_at)
    journal = awaited(SyncSession.events)
    undo = awaited(SyncSession.undo)
    take_back = awaited(SyncSession.remove_last_messages)
    prompt = awaited(SyncSession.prompt)
    explain = awaited(SyncSession.explain)
    close = awaited(SyncSession.close)
