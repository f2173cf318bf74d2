"""Which things the agent is holding in mind: the window, most recently used first.

It is a fold. What was seen comes in as events, and so does what has to leave: how many things a window holds is
the session's choice of that day, so it must not be worked out again from a later one. Nothing that was ever seen
is forgotten here. What left the window is still known, and comes back as it was when somebody speaks of it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from inmind.core.events.base import Event
from inmind.core.events.entities import (
    EntitiesLeft,
    EntitiesRestored,
    EntitiesSeen,
    EntityPart,
    EntityPinned,
    EntitySighting,
)
from inmind.core.frozen import frozen
from inmind.core.persistent_map import Known
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.entities.entity import MOST_PARTS, Entity, Key
from inmind.entities.nouns import UNTYPED, same_type, singular
from inmind.entities.recent_lists import Listing, after

MOST_ALIASES = 5

SMALL = 6
"""Numbers of fewer digits are counted up from one for each type anew: page 7 is not order 7."""


@frozen
class Entities:
    """What is in mind, and what is known beyond it."""

    window: tuple[Entity, ...] = ()
    left: Known[Key, Entity | None] = field(default_factory=Known[Key, "Entity | None"])
    """Things that had a place and lost it, as they were then; None for one that has come back."""
    ids: Known[str, EntityPart] = field(default_factory=Known[str, EntityPart])
    """Every id that was ever seen, in whatever role."""
    listings: tuple[Listing, ...] = ()
    """What was shown together: lists of things first, then of parts, and the newest of each first."""

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.window)

    def __len__(self) -> int:
        return len(self.window)

    def __getitem__(self, place: int) -> Entity:
        return self.window[place]

    def of(self, type: str) -> tuple[Entity, ...]:
        """Those of a type, under any of its names, in singular or plural."""
        wanted = {same_type(type), same_type(singular(type))}
        return tuple(entity for entity in self.window if same_type(entity.type) in wanted)

    def latest(self, type: str | None = None) -> Entity | None:
        """The most recent that is alive, of any type or of one."""
        those = self.window if type is None else self.of(type)
        return next((entity for entity in those if not entity.deleted), None)

    def get(self, id: str, type: str | None = None) -> Entity | None:
        """The thing with this id, in the window or beyond it."""
        if type is not None:
            key = (same_type(type), id)
            return next((entity for entity in self.window if entity.key == key), None) or self.left.get(key)
        return next((e for known in (self.window, self.beyond) for e in known if e.id == id), None)

    @property
    def ids_by_recency(self) -> list[str]:
        """Every id that was ever seen: those in mind first, the things most recently spoken of before all others."""
        things = (entity.id for entity in self.window)
        parts = (part.id for entity in self.window for part in entity.parts)
        return list(dict.fromkeys([*things, *parts, *(id for id, _ in self.ids)]))

    @property
    def beyond(self) -> Iterator[Entity]:
        """Things that are known and not in the window, the last to leave first."""
        return (entity for _, entity in self.left if entity)

    def owner(self, id: str) -> Entity | None:
        """The thing in the window that this id is, or is a part of; the most recent one, if there are several."""
        for entity in self.window:
            if entity.id == id:
                return entity
        return next((entity for entity in self.window if any(part.id == id for part in entity.parts)), None)

    def holds(self, id: str) -> bool:
        """Is this id in mind, as a thing or as a part of one?"""
        return self.owner(id) is not None

    def apply(self, event: Event) -> Entities:
        match event.payload:
            case EntitiesSeen(things=things):
                told_in = event.sources[0] if event.sources else event.id
                return self.seen(things, at=event.at, source=event.id, told_in=told_in)
            case EntitiesLeft(things=things):
                return self._left({(same_type(thing.type), thing.id) for thing in things})
            case EntitiesRestored(things=things):
                return self._restored(things, event.at, event.id)
            case EntityPinned(type=type, id=id, pinned=pinned):
                window = (replace(e, pinned=pinned) if e.key == (same_type(type), id) else e for e in self.window)
                return replace(self, window=tuple(window))
            case _:
                return self

    def overflow(self, most: int) -> tuple[Entity, ...]:
        """Those that have to leave a window of this size, oldest first; a pinned one never has to.

        What was only listed leaves before what was opened or used, or a few searches would clear the desk; but for
        the newest list, which is what is being looked at.
        """
        excess = len(self.window) - most
        if excess <= 0:
            return ()
        loose = [entity for entity in reversed(self.window) if not entity.pinned]
        glimpsed = [entity for entity in loose if entity.listed and entity.source != self.window[0].source]
        order = dict.fromkeys([*(entity.key for entity in glimpsed), *(entity.key for entity in loose)])
        leaving = set(list(order)[:excess])
        return tuple(entity for entity in loose if entity.key in leaving)

    def without(self, entities: Sequence[Entity]) -> Entities:
        """They lose their places and stay known."""
        return self._left({entity.key for entity in entities}) if entities else self

    def freeze(self) -> dict[str, Any]:
        return {
            "window": [_freeze(entity) for entity in self.window],
            "left": [_freeze(entity) for entity in reversed(list(self.beyond))],
            "ids": [part for _, part in reversed(list(self.ids))],
            "listings": self.listings,
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> Entities:
        left = [_thaw(entity) for entity in frozen["left"]]
        ids = [EntityPart(*part) for part in frozen["ids"]]
        return cls(
            window=tuple(_thaw(entity) for entity in frozen["window"]),
            left=Known((entity.key, entity) for entity in left),
            ids=Known((part.id, part) for part in ids),
            listings=tuple(
                Listing(tuple(inside) if inside else None, tuple((type, id) for type, id in keys))
                for inside, keys in frozen["listings"]
            ),
        )

    def seen(self, things: Sequence[EntitySighting], *, at: datetime, source: str, told_in: str) -> Entities:
        """All of them at the front, in their order; the dead stay where they are."""
        window = {entity.key: entity for entity in self.window}
        left, ids = self.left, self.ids
        listings: tuple[Listing, ...] = self.listings
        front: dict[Key, None] = {}
        alive: list[tuple[EntitySighting, Key]] = []
        for thing in things:
            before = self._before(thing, window)
            entity = _grown(before or self._new(thing, at), thing, at, source)
            if thing.how != "used" or before is None:  # what only names it does not show what is inside
                entity = replace(entity, told_in=told_in)
            if before is not None and before.key != entity.key:
                window.pop(before.key, None)
                front.pop(before.key, None)
                left = left.put(before.key, None)
                listings = tuple(listing.renamed(before.key, entity.key) for listing in listings)
            if thing.how == "deleted":
                window = {key: _without(thing, other, source) for key, other in window.items()}
            if not entity.deleted:
                front.setdefault(entity.key)
                alive.append((thing, entity.key))
                window[entity.key] = entity
                if left.get(entity.key) is not None:
                    left = left.put(entity.key, None)
            elif entity.key in window:
                window[entity.key] = entity
            else:
                left = left.put(entity.key, entity)
            for part in (EntityPart(entity.type, entity.id, entity.name), *entity.parts[: len(thing.parts)]):
                ids = ids.put(part.id, part)
        ahead = {key: window[key] for key in front if not window[key].deleted}
        window = tuple({**ahead, **window}.values())
        return Entities(window=window, left=left, ids=ids, listings=after(listings, alive))

    def _before(self, thing: EntitySighting, window: Mapping[Key, Entity]) -> Entity | None:
        """The entity that this sighting is of.

        A mere mention of an id is of whatever has that id, or carries it as a part; and an id that nothing was
        known about is no second thing when its type becomes known, or the other way round.
        """
        for key in ((same_type(thing.type), thing.id), (UNTYPED, thing.id)):
            if found := window.get(key) or self.left.get(key):
                return found
        if thing.how in ("seen", "listed", "told") and thing.type != UNTYPED:
            return None
        if thing.how == "deleted" and thing.type != UNTYPED:  # another type is another thing: it must not die
            return None
        alike = (e for e in window.values() if e.id == thing.id and _may_be(thing, e.type))
        found = next(alike, None)
        if found is None and thing.how == "used":
            carries = (e for e in window.values() if any(p.id == thing.id and _may_be(thing, p.type) for p in e.parts))
            found = next(carries, None)
        known = self.ids.get(thing.id) if found is None else None
        if known is not None and _may_be(thing, known.type):
            found = self.left.get((same_type(known.type), thing.id))
        return found

    def _new(self, thing: EntitySighting, at: datetime) -> Entity:
        """It may have been a part of something before, and then it has a name and a type."""
        known = self.ids.get(thing.id)
        if known is not None and not _may_be(thing, known.type):
            known = None
        same = known is not None and UNTYPED not in (thing.type, known.type) and known.type == thing.type
        name = thing.name or (known.name if known and (same or thing.type == UNTYPED) else "")
        type = known.type if known and thing.type == UNTYPED else thing.type
        return Entity(thing.id, type, name, first_seen=at, listed=thing.how == "listed")

    def _left(self, keys: set[Key]) -> Entities:
        left = self.left
        for entity in reversed(self.window):
            if entity.key in keys:
                left = left.put(entity.key, entity)
        return replace(self, window=tuple(e for e in self.window if e.key not in keys), left=left)

    def _restored(self, things: Sequence[EntitySighting], at: datetime, source: str) -> Entities:
        """As a checkpoint had them: dead ones have their places too."""
        restored = [
            replace(
                _grown(Entity(thing.id, thing.type, thing.name, first_seen=at), thing, at, source),
                deleted=thing.how == "deleted",
                pinned=thing.pinned,
                listed=thing.how == "listed",
            )
            for thing in things
        ]
        first = {entity.key: entity for entity in reversed(restored)}
        restored = [entity for entity in restored if first[entity.key] is entity]
        left, ids = self.left, self.ids
        for entity in restored:
            if left.get(entity.key) is not None:
                left = left.put(entity.key, None)
            for part in (*reversed(entity.parts), EntityPart(entity.type, entity.id, entity.name)):
                ids = ids.put(part.id, part)
        window = (*restored, *(entity for entity in self.window if entity.key not in first))
        return Entities(window=window, left=left, ids=ids, listings=self.listings)


def _grown(entity: Entity, thing: EntitySighting, at: datetime, source: str) -> Entity:
    """An entity with what one sighting adds to it."""
    mentioned = thing.how == "used" and thing.id != entity.id
    if mentioned:  # one of its parts was
        used = next(part for part in entity.parts if part.id == thing.id)
        parts = (used, *(part for part in entity.parts if part.id != thing.id))
        return replace(entity, parts=parts, last_seen=at, source=source, listed=False)
    older = {part.id: part for part in entity.parts}
    parts = {part.id: part if part.name else _named(part, older.get(part.id)) for part in thing.parts}
    parts |= {id: part for id, part in older.items() if id not in parts}
    name = thing.name or entity.name
    before = [entity.name] if entity.name not in (name, entity.id) else []
    aliases = tuple(dict.fromkeys([*before, *thing.aliases, *entity.aliases]))[:MOST_ALIASES]
    return replace(
        entity,
        type=thing.type if entity.type == UNTYPED else entity.type,
        name=name,
        aliases=tuple(alias for alias in aliases if alias != name),
        parent=thing.parent or entity.parent,
        action=thing.action or entity.action,
        last_seen=at,
        source=source,
        deleted=thing.how == "deleted" or (entity.deleted and thing.how in ("used", "told")),
        listed=entity.listed and thing.how == "listed",
        parts=tuple(parts.values())[:MOST_PARTS],
        parts_left_out=max(entity.parts_left_out, thing.more + max(0, len(parts) - MOST_PARTS)),
    )


def _may_be(thing: EntitySighting, type: str) -> bool:
    """Can something of this type be what has this id? A small number is the id of many things; other ids of one."""
    if UNTYPED in (type, thing.type) or same_type(type) == same_type(thing.type):
        return True
    return not (thing.id.isdigit() and len(thing.id) < SMALL)


def _without(gone: EntitySighting, entity: Entity, source: str) -> Entity:
    """An entity that no longer carries what was deleted; no message shows it like that."""
    parts = tuple(part for part in entity.parts if part.id != gone.id or not _may_be(gone, part.type))
    return entity if len(parts) == len(entity.parts) else replace(entity, parts=parts, source=source, told_in="")


def _named(part: EntityPart, older: EntityPart | None) -> EntityPart:
    return part._replace(name=older.name) if older and older.name else part


def _freeze(entity: Entity) -> list[Any]:
    return [
        entity.id,
        entity.type,
        entity.name,
        list(entity.aliases),
        entity.parent,
        entity.action,
        to_microseconds(entity.first_seen) if entity.first_seen else None,
        to_microseconds(entity.last_seen) if entity.last_seen else None,
        entity.source,
        entity.told_in,
        entity.deleted,
        entity.pinned,
        entity.listed,
        entity.parts,
        entity.parts_left_out,
    ]


def _thaw(frozen: Sequence[Any]) -> Entity:
    id, type, name, aliases, parent, action, first, last, source, told_in, *rest = frozen
    deleted, pinned, listed, parts, left_out = rest
    return Entity(
        id=id,
        type=type,
        name=name,
        aliases=tuple(aliases),
        parent=tuple(parent) if parent else None,
        action=action,
        first_seen=from_microseconds(first) if first is not None else None,
        last_seen=from_microseconds(last) if last is not None else None,
        source=source,
        told_in=told_in,
        deleted=deleted,
        pinned=pinned,
        listed=listed,
        parts=tuple(EntityPart(*part) for part in parts),
        parts_left_out=left_out,
    )
