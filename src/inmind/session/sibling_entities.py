"""What other sessions of the same resource have seen: ids that are new here and not new to whom they belong.

Read from the resource's events when somebody asks, and from there on only what came since: one question to the store,
however many sessions there are, and none about anybody else's. It is an index and no state: it can be thrown away at
any time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field

from inmind.core.events.entities import EntitiesEvicted, EntitiesRestored, EntitiesSeen
from inmind.core.fork import register_after_fork
from inmind.core.frozen import frozen
from inmind.core.streams import ANONYMOUS, SESSION_PREFIX
from inmind.entities.window import Entities
from inmind.store.protocol import Store

MAX_CACHED_RESOURCES = 100
"""Resources that are remembered, those that were last asked about: a process may meet any number of them."""

_BATCH_SIZE = 2_000


@frozen
class _CachedEntities:
    """What the sessions of a resource have seen, up to a position of the journal."""

    position: int = 0
    seen: Mapping[str, Entities] = field(default_factory=dict[str, Entities])


class SiblingEntities:
    """The things of the sessions of a store, by resource."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._cache: dict[str, _CachedEntities] = {}
        register_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def entities_of(self, resource: str, *, excluding: str) -> list[Entities]:
        """What each other session of the resource has seen, as values: looking something up in them copies nothing."""
        if resource == ANONYMOUS:
            return []
        with self._lock:
            known = self._cache.get(resource, _CachedEntities())
        known = self._load_new(resource, known)  # without the lock: whoever is slower has read as much, or less
        with self._lock:
            there = self._cache.pop(resource, known)
            self._cache[resource] = max(there, known, key=lambda one: one.position)
            while len(self._cache) > MAX_CACHED_RESOURCES:
                del self._cache[next(iter(self._cache))]
        return [seen for stream, seen in sorted(known.seen.items()) if stream != excluding]

    def _load_new(self, resource: str, known: _CachedEntities) -> _CachedEntities:
        position, seen = known.position, dict(known.seen)
        while True:
            news = self._store.events_since(position, kinds=_KINDS, limit=_BATCH_SIZE, owner=resource)
            for place, event in news:
                position = place
                if event is not None and event.stream.startswith(SESSION_PREFIX):
                    seen[event.stream] = seen.get(event.stream, Entities()).apply(event)
            if len(news) < _BATCH_SIZE:
                return _CachedEntities(position, seen)


# An undo is not among them: what was seen has been seen.
_KINDS = tuple(kind.kind for kind in (EntitiesSeen, EntitiesEvicted, EntitiesRestored))
