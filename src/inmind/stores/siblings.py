"""What other sessions of the same resource have seen: ids that are new here and not new to whom they belong.

Read from their events when somebody asks, and from there on only what came since. It is an index and no state: it
can be thrown away at any time.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from inmind.entities.window import Entities
from inmind.journal import NOBODY, EntitiesLeft, EntitiesRestored, EntitiesSeen, SessionOpened
from inmind.stores.base import Store
from inmind.stores.fork import tell_after_fork


@dataclass
class _Stream:
    resource: str
    version: int = 0
    seen: Entities = field(default_factory=Entities)


class Siblings:
    """The things of all sessions of a store, by resource."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._streams: dict[str, _Stream] = {}
        tell_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def of(self, resource: str, *, but: str) -> list[Entities]:
        """What each other session of the resource has seen, as values: looking something up in them copies nothing."""
        if resource == NOBODY:
            return []
        with self._lock:
            for name in self._store.streams("session/"):
                if name not in self._streams:
                    (opened,) = self._store.read(name, until=1)
                    owner = opened.what.resource if isinstance(opened.what, SessionOpened) else NOBODY
                    self._streams[name] = _Stream(owner)
            ours = [(name, s) for name, s in self._streams.items() if s.resource == resource and name != but]
            for name, stream in ours:
                self._follow(name, stream)
            return [stream.seen for _, stream in ours]

    def _follow(self, name: str, stream: _Stream) -> None:
        version = self._store.version(name)
        if version == stream.version:
            return
        read = partial(self._store.read, name, after=stream.version, until=version)
        told = [event for kind in _KINDS for event in read(kind=kind.kind)]
        for event in sorted(told, key=attrgetter("seq")):
            stream.seen = stream.seen.apply(event)
        stream.version = version


# An undo is not among them: what was seen has been seen.
_KINDS = (EntitiesSeen, EntitiesLeft, EntitiesRestored)
