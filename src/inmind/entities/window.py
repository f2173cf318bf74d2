"""The entity window: entities that the conversation is about, most recently used first.

It is a fold over events. Sightings are events, and so are evictions: the window size is a setting of the session
and must not be re-applied with a later value. Evicted entities stay known and return with all their data when they
are mentioned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from inmind.core.events.base import Event
from inmind.core.events.session import (
    EntitiesEvicted,
    EntitiesRestored,
    EntitiesSeen,
    EntityPart,
    EntityPinned,
    EntitySighting,
)
from inmind.core.frozen import PersistentMap, frozen
from inmind.entities.entity import MAX_PARTS, Entity, EntityKey
from inmind.entities.nouns import UNTYPED, canonical_type, singular
from inmind.entities.record import merge_records, without_id

MAX_LISTINGS = 10
"""Number of lists of entities kept, newest first, and as many lists of parts."""

MAX_LISTING_ENTRIES = 1_000
"""Maximum entries per list. A list of thousands must not fill the state."""


class Listing(NamedTuple):
    """Several entities or parts of one type that were shown together."""

    parent: EntityKey | None
    """Entity that the entries are parts of; None for a list of entities."""
    keys: tuple[EntityKey, ...]

    @property
    def slot(self) -> tuple[EntityKey | None, str]:
        """A newer list with the same slot replaces this one."""
        return self.parent, self.keys[0][0]

    def replace_key(self, old: EntityKey, new: EntityKey) -> Listing:
        """Return the list with one key replaced, after the type of an entry became known."""
        keys = tuple(new if key == old else key for key in self.keys)
        return Listing(new if self.parent == old else self.parent, keys)


def update_listings(
    listings: Sequence[Listing], sightings: Sequence[tuple[EntitySighting, EntityKey]]
) -> tuple[Listing, ...]:
    """Return the lists after one more event, lists of entities first, newest first.

    Two or more entities of one type form a list, together with the parts that were in the same list. Entities that
    were only mentioned ("compare these two") form a list too, unless one of them is already in a list: then the
    mention is about that list.
    """
    of_results = [(sighting, key) for sighting, key in sightings if sighting.how in ("seen", "listed")]
    keys = [key for _, key in of_results]
    if len(of_results) > 1 or any(sighting.how == "listed" for sighting, _ in of_results):
        keys += [_part_key(part) for sighting, _ in of_results for part in sighting.parts if part.from_same_list]
    known = {key for listing in listings for key in listing.keys}
    mentioned = _listings_by_type(None, [key for _, key in sightings])
    new = [*_listings_by_type(None, keys), *(listing for listing in mentioned if known.isdisjoint(listing.keys))]
    for sighting, key in sightings:
        new += _listings_by_type(key, [_part_key(part) for part in sighting.parts if not part.from_same_list])
    newest: dict[tuple[EntityKey | None, str], Listing] = {}
    for listing in (*new, *listings):
        newest.setdefault(listing.slot, listing)
    of_entities = [listing for listing in newest.values() if listing.parent is None]
    of_parts = [listing for listing in newest.values() if listing.parent is not None]
    return (*of_entities[:MAX_LISTINGS], *of_parts[:MAX_LISTINGS])


def _part_key(part: EntityPart) -> EntityKey:
    return canonical_type(part.type), part.id


def _listings_by_type(parent: EntityKey | None, keys: Iterable[EntityKey]) -> list[Listing]:
    """Group keys by type and return a list for each type with at least two keys."""
    by_type: dict[str, dict[EntityKey, None]] = {}
    for key in keys:
        by_type.setdefault(key[0], {}).setdefault(key)
    return [Listing(parent, tuple(row)[:MAX_LISTING_ENTRIES]) for row in by_type.values() if len(row) > 1]


MAX_ALIASES = 5

MIN_UNIQUE_DIGITS = 6
"""Shorter numbers are counted per type: page 7 and order 7 are different entities."""


@frozen
class Entities:
    """The entity window, and the known entities outside it."""

    window: tuple[Entity, ...] = ()
    evicted: PersistentMap[EntityKey, Entity | None] = field(default_factory=PersistentMap[EntityKey, "Entity | None"])
    """Evicted entities as they were at that time; None for one that is in the window again."""
    ids: PersistentMap[str, EntityPart] = field(default_factory=PersistentMap[str, EntityPart])
    """Every seen id, of an entity or of a part."""
    listings: tuple[Listing, ...] = ()
    """Lists that were shown: lists of entities first, then lists of parts, each newest first."""

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.window)

    def __len__(self) -> int:
        return len(self.window)

    def __getitem__(self, index: int) -> Entity:
        return self.window[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self.window)) or "no entities"

    def serialize(self) -> dict[str, Any]:
        """Return the window as JSON, as `Session.export_entities` does."""
        from inmind.entities.serialize import serialize

        return serialize(self)

    @classmethod
    def restore(cls, data: object) -> Entities:
        """Return the entities that `serialize` wrote, in any released version.

        This is a value; `Session.import_entities` adds them to a session.
        """
        from inmind.entities.serialize import deserialize

        return cls()._restore(deserialize(data), datetime.now(UTC), "")

    def of(self, type: str) -> tuple[Entity, ...]:
        """Return the entities of a type, under any of its names, in singular or plural."""
        wanted = {canonical_type(type), canonical_type(singular(type))}
        return tuple(entity for entity in self.window if canonical_type(entity.type) in wanted)

    def latest(self, type: str | None = None) -> Entity | None:
        """Return the most recent entity that is not deleted, of any type or of one type."""
        candidates = self.window if type is None else self.of(type)
        return next((entity for entity in candidates if not entity.deleted), None)

    def get(self, id: str, type: str | None = None) -> Entity | None:
        """Return the entity with this id, in the window or evicted."""
        if type is not None:
            key = (canonical_type(type), id)
            return next((entity for entity in self.window if entity.key == key), None) or self.evicted.get(key)
        return next((e for known in (self.window, self.evicted_entities) for e in known if e.id == id), None)

    @property
    def parts_by_recency(self) -> list[EntityPart]:
        """Every seen id with type and name: of window entities, their parts, then all others."""
        entities = (EntityPart(entity.type, entity.id, entity.name) for entity in self.window)
        parts = (part for entity in self.window for part in entity.parts)
        by_id: dict[str, EntityPart] = {}
        for part in chain(entities, parts, (part for _, part in self.ids)):
            by_id.setdefault(part.id, part)
        return list(by_id.values())

    @property
    def evicted_entities(self) -> Iterator[Entity]:
        """Evicted entities, most recently evicted first."""
        return (entity for _, entity in self.evicted if entity)

    def holds(self, id: str) -> bool:
        """Return True if the id belongs to a window entity or one of its parts."""
        return any(one.id == id for entity in self.window for one in (entity, *entity.parts))

    def apply(self, event: Event) -> Entities:
        match event.payload:
            case EntitiesSeen(sightings=sightings):
                observed_in = event.sources[0] if event.sources else event.id
                return self.add_sightings(sightings, at=event.at, source=event.id, observed_in=observed_in)
            case EntitiesEvicted(sightings=sightings):
                return self.evict([Entity(sighting.id, sighting.type) for sighting in sightings])
            case EntitiesRestored(sightings=sightings):
                return self._restore(sightings, event.at, event.id)
            case EntityPinned(type=type, id=id, pinned=pinned):
                window = (replace(e, pinned=pinned) if e.key == (canonical_type(type), id) else e for e in self.window)
                return replace(self, window=tuple(window))
            case _:
                return self

    def overflow(self, size: int) -> tuple[Entity, ...]:
        """Return the entities to evict for a window of this size, oldest first. Pinned ones stay.

        Entities that were only listed are evicted before entities that were opened or used; otherwise a few
        searches would empty the window. The newest list is exempt, because the user is looking at it.
        """
        excess = len(self.window) - size
        if excess <= 0:
            return ()
        removable = [entity for entity in reversed(self.window) if not entity.pinned]
        only_listed = [entity for entity in removable if entity.listed and entity.source != self.window[0].source]
        order = dict.fromkeys([*(entity.key for entity in only_listed), *(entity.key for entity in removable)])
        removed = set(list(order)[:excess])
        return tuple(entity for entity in removable if entity.key in removed)

    def add_sightings(
        self, sightings: Sequence[EntitySighting], *, at: datetime, source: str, observed_in: str
    ) -> Entities:
        """Move the sighted entities to the front, in their order. Deleted entities do not move."""
        window = {entity.key: entity for entity in self.window}
        evicted, ids = self.evicted, self.ids
        listings: tuple[Listing, ...] = self.listings
        front: dict[EntityKey, None] = {}
        alive: list[tuple[EntitySighting, EntityKey]] = []
        for sighting in sightings:
            existing = self._find_existing(sighting, window)
            entity = _apply_sighting(existing or self._create(sighting, at), sighting, at, source)
            if sighting.how != "used" or existing is None:  # a mention does not show its parts
                entity = replace(entity, observed_in=observed_in)
            if existing is not None and existing.key != entity.key:
                window.pop(existing.key, None)
                front.pop(existing.key, None)
                evicted = evicted.put(existing.key, None)
                listings = tuple(listing.replace_key(existing.key, entity.key) for listing in listings)
            if sighting.how == "deleted":
                window = {key: _drop_part(sighting, other_entity, source) for key, other_entity in window.items()}
            if not entity.deleted:
                front.setdefault(entity.key)
                alive.append((sighting, entity.key))
                window[entity.key] = entity
                if evicted.get(entity.key) is not None:
                    evicted = evicted.put(entity.key, None)
            elif entity.key in window:
                window[entity.key] = entity
            else:
                evicted = evicted.put(entity.key, entity)
            for part in (EntityPart(entity.type, entity.id, entity.name), *entity.parts[: len(sighting.parts)]):
                ids = ids.put(part.id, part)
        moved_to_front = {key: window[key] for key in front if not window[key].deleted}
        window = tuple({**moved_to_front, **window}.values())
        return Entities(window=window, evicted=evicted, ids=ids, listings=update_listings(listings, alive))

    def _find_existing(self, sighting: EntitySighting, window: Mapping[EntityKey, Entity]) -> Entity | None:
        """Return the known entity that a sighting is about, or None.

        A mention matches any entity with that id, or with a part of that id. An untyped id and a typed one with the
        same id are the same entity, in either order.
        """
        for key in ((canonical_type(sighting.type), sighting.id), (UNTYPED, sighting.id)):
            if entity := window.get(key) or self.evicted.get(key):
                return entity
        if sighting.how != "used" and sighting.type != UNTYPED:
            return None
        same_id = (e for e in window.values() if e.id == sighting.id and _may_match(sighting, e.type))
        holders = (
            e for e in window.values() if any(p.id == sighting.id and _may_match(sighting, p.type) for p in e.parts)
        )
        if entity := next(chain(same_id, holders if sighting.how == "used" else ()), None):
            return entity
        known = self.ids.get(sighting.id)
        if known is None or not _may_match(sighting, known.type):
            return None
        return self.evicted.get((canonical_type(known.type), sighting.id))

    def _create(self, sighting: EntitySighting, at: datetime) -> Entity:
        """Create an entity. If its id was a part before, the name and type of the part are used."""
        type, name, known = sighting.type, sighting.name, self.ids.get(sighting.id)
        if known is not None and type in (UNTYPED, known.type):
            type, name = known.type, name or known.name
        return Entity(sighting.id, type, name, first_seen=at, listed=sighting.how == "listed")

    def evict(self, entities: Iterable[Entity]) -> Entities:
        """Remove entities from the window; they stay known."""
        keys, evicted = {entity.key for entity in entities}, self.evicted
        for entity in reversed(self.window):
            if entity.key in keys:
                evicted = evicted.put(entity.key, entity)
        return replace(self, window=tuple(e for e in self.window if e.key not in keys), evicted=evicted)

    def _restore(self, sightings: Sequence[EntitySighting], at: datetime, source: str) -> Entities:
        """Put the entities of a checkpoint in front, deleted ones included."""
        restored = [
            replace(
                _apply_sighting(Entity(sighting.id, sighting.type, sighting.name, first_seen=at), sighting, at, source),
                deleted=sighting.how == "deleted",
                pinned=sighting.pinned,
                listed=sighting.how == "listed",
            )
            for sighting in sightings
        ]
        first = {entity.key: entity for entity in reversed(restored)}
        restored = [entity for entity in restored if first[entity.key] is entity]
        evicted, ids = self.evicted, self.ids
        for entity in restored:
            if evicted.get(entity.key) is not None:
                evicted = evicted.put(entity.key, None)
            for part in (*reversed(entity.parts), EntityPart(entity.type, entity.id, entity.name)):
                ids = ids.put(part.id, part)
        window = (*restored, *(entity for entity in self.window if entity.key not in first))
        return Entities(window=window, evicted=evicted, ids=ids, listings=self.listings)


def _apply_sighting(entity: Entity, sighting: EntitySighting, at: datetime, source: str) -> Entity:
    """Return the entity updated by one sighting."""
    is_part = sighting.how == "used" and sighting.id != entity.id
    if is_part:  # the sighting is of one of its parts
        used = next(part for part in entity.parts if part.id == sighting.id)
        parts = (used, *(part for part in entity.parts if part.id != sighting.id))
        return replace(entity, parts=parts, last_seen=at, source=source, listed=False)
    older = {part.id: part for part in entity.parts}
    parts = {part.id: part if part.name else _with_known_name(part, older.get(part.id)) for part in sighting.parts}
    parts |= {id: part for id, part in older.items() if id not in parts}
    name = sighting.name or entity.name
    previous_name = [entity.name] if entity.name not in (name, entity.id) else []
    aliases = tuple(dict.fromkeys([*previous_name, *sighting.aliases, *entity.aliases]))[:MAX_ALIASES]
    return replace(
        entity,
        type=sighting.type if entity.type == UNTYPED else entity.type,
        name=name,
        aliases=tuple(alias for alias in aliases if alias != name),
        parent=sighting.parent or entity.parent,
        action=sighting.action or entity.action,
        last_seen=at,
        source=source,
        deleted=sighting.how == "deleted" or (entity.deleted and sighting.how in ("used", "told")),
        listed=entity.listed and sighting.how == "listed",
        parts=tuple(parts.values())[:MAX_PARTS],
        parts_left_out=max(entity.parts_left_out, sighting.omitted_parts + max(0, len(parts) - MAX_PARTS)),
        record=merge_records(entity.record, sighting.record) if sighting.record else entity.record,
    )


def _may_match(sighting: EntitySighting, type: str) -> bool:
    """Return True if an entity of this type can be the one sighted.

    A small number is the id of entities of several types. Any other id belongs to one entity.
    """
    if UNTYPED in (type, sighting.type) or canonical_type(type) == canonical_type(sighting.type):
        return True
    return not (sighting.id.isdigit() and len(sighting.id) < MIN_UNIQUE_DIGITS)


def _drop_part(deleted: EntitySighting, entity: Entity, source: str) -> Entity:
    """Return the entity without a deleted part.

    No message shows it in this form, so `observed_in` is cleared.
    """
    parts = tuple(part for part in entity.parts if part.id != deleted.id or not _may_match(deleted, part.type))
    if len(parts) == len(entity.parts):
        return entity
    record = without_id(entity.record, deleted.id)
    return replace(entity, parts=parts, source=source, observed_in="", record=record)


def _with_known_name(part: EntityPart, older: EntityPart | None) -> EntityPart:
    return part._replace(name=older.name) if older and older.name else part
