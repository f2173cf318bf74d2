"""What belongs to a resource, awaited: how it has been going, and its books."""

from __future__ import annotations

from inmind.memory.aio.threads import Threads
from inmind.memory.aio.wrapper import Twin, attribute, awaited
from inmind.session.affect import Affect as SyncAffect
from inmind.session.economics import Books as SyncBooks


class Affect(Twin[SyncAffect]):
    """Its calls are carried out in the order in which they were begun."""

    def __init__(self, sync: SyncAffect, threads: Threads | None = None) -> None:
        super().__init__(sync, threads, lane=object())

    @property
    def enabled(self) -> bool:
        return self.sync.enabled

    levels = attribute(SyncAffect, lambda affect: affect.levels)
    mood = attribute(SyncAffect, lambda affect: affect.mood)
    raise_ = awaited(SyncAffect.raise_)
    history = awaited(SyncAffect.history)


class Books(Twin[SyncBooks]):
    """What `memory.ledger` is. Entries do not wait for each other."""

    record = awaited(SyncBooks.record)
    report = awaited(SyncBooks.report)
