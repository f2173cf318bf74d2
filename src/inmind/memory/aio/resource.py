"""What belongs to a resource, awaited: how it has been going, and its books."""

from __future__ import annotations

from inmind.memory.aio.threads import CallThreads
from inmind.memory.aio.wrapper import AsyncWrapper, awaited, awaited_property
from inmind.session.affect import Affect as SyncAffect
from inmind.session.economics import Economics as SyncBooks


class AsyncAffect(AsyncWrapper[SyncAffect]):
    """Its calls are carried out in the order in which they were begun."""

    def __init__(self, sync: SyncAffect, threads: CallThreads | None = None) -> None:
        super().__init__(sync, threads, lane=object())

    @property
    def enabled(self) -> bool:
        return self.sync.enabled

    levels = awaited_property(SyncAffect, lambda affect: affect.levels)
    mood = awaited_property(SyncAffect, lambda affect: affect.mood)
    raise_ = awaited(SyncAffect.spike)
    history = awaited(SyncAffect.history)


class AsyncEconomics(AsyncWrapper[SyncBooks]):
    """What `memory.ledger` is. Entries do not wait for each other."""

    record = awaited(SyncBooks.record)
    report = awaited(SyncBooks.report)
