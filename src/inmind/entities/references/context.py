"""What a reference may mean: the things in mind, as a listener has them before the inner eye.

The window knows what was used last. A listener knows a little more: what the other one just spoke of, what was shown
in one list and in which order, what died last, and that an order's items are things too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice

from inmind.core.events.entities import EntityPart
from inmind.entities.config import EntityRules
from inmind.entities.entity import Entity, EntityKey
from inmind.entities.nouns import SYNONYMS, canonical_type, head_nouns, singular, type_matches
from inmind.entities.references.name_match import Names
from inmind.entities.references.phrase import Phrase
from inmind.entities.window import Entities

MOST_PARTS = 5_000
"""Parts of all things together that are looked at."""

# Types that a text may speak of though nothing of the kind is in mind: then we can say that none is known.
_EVERYDAY = frozenset("page section collection entry image media post task order user file email message".split())


class Scene:
    def __init__(self, entities: Entities, *, rules: EntityRules, after: str = "", deep: bool = False) -> None:
        self.rules = rules
        self.deep = deep
        """These things are from deep memory, and none of them is in mind."""
        self.things = tuple(entities)
        self._entities = entities
        self.spoken: tuple[Entity, ...] = ()
        """What was named in the words before, in their order."""
        if after:
            sure = (m.entities for m in self.names.mentions(after) if m.how in {"id", "name"} and len(m.entities) == 1)
            self.spoken = tuple({entity.key: entity for [entity] in sure if not entity.deleted}.values())

    @cached_property
    def living(self) -> tuple[Entity, ...]:
        """What was just spoken of first, then by when it was used."""
        first = {entity.key for entity in self.spoken}
        rest = (entity for entity in self.things if not entity.deleted and entity.key not in first)
        return (*self.spoken, *rest)

    @cached_property
    def dead(self) -> tuple[Entity, ...]:
        """The last to be deleted first."""
        return tuple(sorted((e for e in self.things if e.deleted), key=_last_seen, reverse=True))

    @cached_property
    def just_deleted(self) -> Entity | None:
        """The thing whose deletion is the last that happened, if it is."""
        if not self.dead or self.spoken or any(_last_seen(e) > _last_seen(self.dead[0]) for e in self.living):
            return None
        return self.dead[0]

    @cached_property
    def parts(self) -> tuple[Entity, ...]:
        """Each part as a thing of its own, whose parent is the thing that it is in."""
        parts = (_as_thing(part, thing) for thing in self.things if not thing.deleted for part in thing.parts)
        return tuple(islice(parts, MOST_PARTS))

    @cached_property
    def nouns(self) -> frozenset[str]:
        """What people may call the types of these things, in the singular."""
        types = {thing.type for thing in (*self.things, *self.parts)}
        known = {head for type in types for head in head_nouns(type)}
        also = {other for noun in known for other in SYNONYMS.get(noun, ())}
        told = (noun for nouns in self.rules.types.values() for noun in ([nouns] if isinstance(nouns, str) else nouns))
        return frozenset(known | also | set(map(singular, told)) | _EVERYDAY)

    @cached_property
    def names(self) -> Names:
        return Names((*self.things, *self.parts), nouns=self.nouns)

    def of(self, phrase: Phrase) -> tuple[Entity, ...]:
        """What the noun of a phrase lets it mean. Things come before parts, and its own type before its like."""
        things = self.living
        if phrase.deleted:
            things = self.dead or (() if self.deep else self.living)
        if not phrase.nouns:
            return things
        named = {self.rules.type_for(noun) for noun in phrase.nouns} | set(phrase.nouns)
        others = {other for noun in named for other in SYNONYMS.get(noun, ())}
        for nouns in (named, others):
            if found := tuple(thing for thing in things if type_matches(thing.type, nouns)):
                return found
            parts = () if phrase.deleted else tuple(part for part in self.parts if type_matches(part.type, nouns))
            if parts:
                return tuple(part for part in parts if part.parent == parts[0].parent)
        return ()

    def row(self, phrase: Phrase, among: Sequence[Entity]) -> tuple[Entity, ...]:
        """The last list that has any of these, as it was shown: what was used, left or died since has its place still.

        Of words that describe only what they fit is counted, and the dead are counted as they died.
        """
        keys = {entity.key for entity in among}
        spoken = tuple(entity for entity in self.spoken if entity.key in keys)
        if len(spoken) > 1:
            return spoken
        if phrase.deleted or not among:
            return self.listed(among)
        inside = among[0].parent if among[0] in self.parts else None
        known = (each for each in self._entities.listings if inside is None or each.parent == inside)
        listing = next((each for each in known if not keys.isdisjoint(each.keys)), None)
        if listing is None:
            return self.listed(among) if inside else ()
        return tuple(self._at(key) for key in listing.keys if key in keys or not phrase.words)

    def holds(self, entity: Entity) -> bool:
        """Is it in mind, as a thing or riding with one?"""
        return entity.key in self._placed or entity.key in self._riding

    def is_untouched(self, row: Sequence[Entity]) -> bool:
        """Was nothing of a list used since it was shown?"""
        brought = {entity.source for entity in row if not entity.deleted}
        return len(brought) == 1 or all(entity in self.spoken for entity in row)

    def listed(self, among: Sequence[Entity]) -> tuple[Entity, ...]:
        """What still stands together as one event brought it, as far as it is among these: none of it used since."""
        keys = {entity.key for entity in among}
        spoken = tuple(entity for entity in self.spoken if entity.key in keys)
        if len(spoken) > 1:
            return spoken
        groups: dict[tuple[str, str], list[Entity]] = {}
        for entity in self.things:
            if entity.key in keys and entity.source:
                groups.setdefault((entity.source, canonical_type(entity.type)), []).append(entity)
        if among and among[0].parent and not groups:
            return tuple(among)
        group = next((tuple(group) for group in groups.values() if len(group) > 1), ())
        return group + tuple(entity for entity in _rest_of(group) if entity.key not in self._placed)

    def everything(self, among: Sequence[Entity]) -> tuple[Entity, ...]:
        """These, and what rides beside them: the rest of the lists that brought them."""
        every = {entity.key: entity for entity in among}
        for entity in among:
            every |= {other.key: other for other in _rest_of([entity]) if other.key not in every}
        return tuple(every.values())

    def is_cut(self, among: Sequence[Entity]) -> bool:
        """Was there more in their list than is kept of it?"""
        ids = {entity.id for entity in among}
        holding = {entity.key for entity in among} | {entity.parent for entity in among}
        cut = (thing for thing in self.things if thing.parts_left_out and thing.key in holding)
        return any(part.from_same_list or part.id in ids for thing in cut for part in thing.parts)

    def by_age(self, among: Sequence[Entity]) -> tuple[Entity, ...]:
        """The first that was ever seen first."""
        return tuple(sorted(among, key=lambda entity: _when(entity, entity.first_seen)))

    def beside(self, entity: Entity, among: Sequence[Entity]) -> tuple[Entity, ...]:
        """What was shown in one list with it; nothing, if it alone was spoken of since."""
        if [spoken.key for spoken in self.spoken] == [entity.key]:
            return ()
        listed = self.listed(among)
        if entity.key not in {other.key for other in listed}:
            return ()
        return tuple(other for other in listed if other.key != entity.key)

    def _at(self, key: EntityKey) -> Entity:
        """What stands at a place of a list: in mind, gone from there, or riding with another."""
        if found := self._placed.get(key) or self._entities.evicted.get(key) or self._riding.get(key):
            return found
        type, id = key
        known = self._entities.ids.get(id)
        return Entity(id, type, known.name if known and canonical_type(known.type) == type else "")

    @cached_property
    def _placed(self) -> dict[EntityKey, Entity]:
        return {thing.key: thing for thing in self.things}

    @cached_property
    def _riding(self) -> dict[EntityKey, Entity]:
        return {part.key: part for part in reversed(self.parts)}


def _rest_of(group: Sequence[Entity]) -> tuple[Entity, ...]:
    """A long list brings few things in; the others ride with its first, and can still be counted."""
    if not group:
        return ()
    first, have = group[0], {entity.id for entity in group}
    beside = (part for part in first.parts if part.from_same_list and part.type == first.type and part.id not in have)
    return tuple(_as_thing(part, first) for part in beside)


def _as_thing(part: EntityPart, thing: Entity) -> Entity:
    parent = None if part.from_same_list else thing.key
    return Entity(part.id, part.type, part.name, parent=parent, last_seen=thing.last_seen, source=thing.source)


def _when(entity: Entity, seen: datetime | None) -> tuple[float, int]:
    """A moment at which it was seen. Events of one moment are told apart by their numbers."""
    number = entity.source.rpartition("#")[2]
    return seen.timestamp() if seen else 0.0, int(number) if number.isascii() and number.isdigit() else 0


def _last_seen(entity: Entity) -> tuple[float, int]:
    return _when(entity, entity.last_seen)
