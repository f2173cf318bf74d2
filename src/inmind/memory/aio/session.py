"""The async counterparts of `Session`, `Scratchpad`, `Resource`, `Affect` and `Economics`."""

from __future__ import annotations

from inmind.memory.aio.wrapper import (
    AsyncWrapper,
    CallThreads,
    awaited,
    awaited_property,
    cancellable,
    wrapped_result,
)
from inmind.memory.resource import Resource
from inmind.session.affect import Affect
from inmind.session.economics import Economics
from inmind.session.merge_child import MergeReport
from inmind.session.scratchpad import Scratchpad
from inmind.session.session import Session


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
