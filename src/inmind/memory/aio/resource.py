"""The async counterparts of `Resource`, `Affect` and `Economics`."""

from __future__ import annotations

from inmind.memory.aio.threads import CallThreads
from inmind.memory.aio.wrapper import AsyncWrapper, awaited, awaited_property, cancellable
from inmind.memory.resource import Resource
from inmind.session.affect import Affect
from inmind.session.economics import Economics


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
