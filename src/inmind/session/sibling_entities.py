"""Entities seen by other sessions of the same resource.

They are read from the store when they are needed; later calls read only new events of the resource. This is a cache and
can be discarded at any time. Opening a memory imports this module, and not the tracker of entities.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field

from inmind.core.events.entities import EntitiesEvicted, EntitiesRestored, EntitiesSeen
from inmind.core.fork import register_after_fork
from inmind.core.frozen import frozen
from inmind.core.stream_names import ANONYMOUS, SESSION_PREFIX
from inmind.entities.window import Entities
from inmind.store.protocol import Store

MAX_CACHED_RESOURCES = 100
"""The most recently used resources are kept."""

_BATCH_SIZE = 2_000


@frozen
class _CachedEntities:
    """Entities of the sessions of a resource, up to a position of the journal."""

    position: int = 0
    seen: Mapping[str, Entities] = field(default_factory=dict[str, Entities])


class SiblingEntities:
    """Entities of all sessions in a store, by resource."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._cache: dict[str, _CachedEntities] = {}
        register_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def entities_of(self, resource: str, *, excluding: str) -> list[Entities]:
        """The entities of each other session of the resource.

        They are immutable values, so nothing is copied.
        """
        if resource == ANONYMOUS:
            return []
        with self._lock:
            cached = self._cache.get(resource, _CachedEntities())
        loaded = self._load_new(resource, cached)  # without the lock: the newest result wins below
        with self._lock:
            current = self._cache.pop(resource, loaded)
            self._cache[resource] = max(current, loaded, key=lambda entry: entry.position)
            while len(self._cache) > MAX_CACHED_RESOURCES:
                del self._cache[next(iter(self._cache))]
        return [seen for stream, seen in sorted(loaded.seen.items()) if stream != excluding]

    def _load_new(self, resource: str, cached: _CachedEntities) -> _CachedEntities:
        position, seen = cached.position, dict(cached.seen)
        while True:
            batch = self._store.events_since(position, kinds=_KINDS, limit=_BATCH_SIZE, owner=resource)
            for event_position, event in batch:
                position = event_position
                if event is not None and event.stream.startswith(SESSION_PREFIX):
                    seen[event.stream] = seen.get(event.stream, Entities()).apply(event)
            if len(batch) < _BATCH_SIZE:
                return _CachedEntities(position, seen)


# Undo is not included: an id that was seen stays known.
_KINDS = tuple(kind.kind for kind in (EntitiesSeen, EntitiesEvicted, EntitiesRestored))
