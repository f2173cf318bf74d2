"""References, and the conversation state that ranks the entities they may mean.

The window has the order of use. The context adds entities that the previous message named, lists in the order they were
shown, the last deletion, and parts as entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Literal

from inmind.core.events.base import EventId
from inmind.core.events.session import EntityPart
from inmind.core.frozen import frozen
from inmind.entities.entity import Entity, EntityKey, EntityRules
from inmind.entities.nouns import SYNONYMS, canonical_type, head_nouns, singular, type_matches
from inmind.entities.references.name_match import NameIndex
from inmind.entities.window import Entities

Pick = Literal["recent", "place", "other", "previous", "oldest", "newest"]

Kind = Literal["id", "name", "ordinal", "other", "plural", "typed", "pronoun"]
"""How the reference names its entity; "them" is a pronoun, "both" a plural."""


@dataclass(kw_only=True)
class Phrase:
    """One reference: "it", "the second image", "those two", "the deleted page", "第二张图片"."""

    span: tuple[int, int]
    """Start and end in the text."""
    nouns: tuple[str, ...] = ()
    """Types it may be about; empty for "it" and "the other one"."""
    noun: str = ""
    """The type in the user's words, for a question to the user."""
    words: tuple[str, ...] = ()
    """Descriptive words in lower case: "the *red* one". Mostly part of a name."""
    pick: Pick = "recent"
    position: int = 0
    """Counted from 1; from the end if negative."""
    numbered: bool = False
    """The position was a number, "image 3", which may also be an id."""
    plural: bool = False
    count: int = 0
    """Expected number of entities: 2 for "both"; 0 if not stated."""
    exhaustive: bool = False
    """There are no others: "both pages", "all three"."""
    maybe_singular: bool = False
    """A plural that can also mean one entity: "they" for a shop, "those" for trousers."""
    qualified: bool = False
    """Followed by words that select one and cannot be evaluated: "the one on the left"."""
    possessor: Phrase | None = None
    """The pronoun it begins with: the "it" of "its price", which is meant if the noun is no known type."""
    demonstrative: bool = False
    """True for "this page" and "it", false for a plain "the page"."""
    deleted: bool = False
    indefinite: bool = False
    """"a page" is yet to be created: it refers to nothing, and its words name nothing."""

    @property
    def is_bare(self) -> bool:
        """True for a noun without determiner, count or description."""
        plain = self.pick == "recent" and not (self.words or self.demonstrative or self.count or self.deleted)
        return bool(self.nouns) and plain

    @property
    def kind(self) -> Kind:
        if self.words:
            return "name"
        if self.pick in {"place", "oldest", "newest"}:
            return "ordinal"
        if self.pick != "recent":
            return "other"
        if not self.nouns and not self.count:
            return "pronoun"
        return "plural" if self.plural else "typed"


Verdict = Literal["resolved", "ambiguous", "none"]


@frozen(kw_only=True)
class Candidate:
    """An entity that may be meant."""

    entity: Entity
    confidence: float
    why: str


@frozen(kw_only=True)
class _Conclusion:
    """The entities that words refer to."""

    text: str
    verdict: Verdict
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    """Best first, including the chosen ones."""
    confidence: float = 0.0
    question: str = ""
    """Question to ask the user, in the language of the text; empty unless ambiguous."""
    why: str = ""

    @property
    def entity(self) -> Entity | None:
        """The entity that is meant; None for several or none."""
        return self.entities[0] if len(self.entities) == 1 else None


@frozen(kw_only=True)
class Reference(_Conclusion):
    """One reference in a text and the entities it refers to."""

    span: tuple[int, int]
    kind: Kind


@frozen(kw_only=True)
class Resolution(_Conclusion):
    """The resolution of a text: its main reference, and all references."""

    references: tuple[Reference, ...] = ()

    def __str__(self) -> str:
        match self.verdict:
            case "resolved":
                return f"{'; '.join(map(str, self.entities))} ({self.confidence:.0%}: {self.why})"
            case "ambiguous":
                return f"{self.question} ({self.why})"
            case _:
                return f"nothing ({self.why})"


MAX_PARTS = 5_000
"""Total number of parts that are considered."""

# Types recognised even if no such entity exists, so that the answer can be "no page is known".
_DEFAULT_NOUNS = frozenset("page section collection entry image media post task order user file email message".split())


class ReferenceContext:
    def __init__(
        self, entities: Entities, *, rules: EntityRules, previous_text: str = "", from_search: bool = False
    ) -> None:
        self.rules = rules
        self.from_search = from_search
        """These entities come from a search; none of them is in the window."""
        self.window = tuple(entities)
        self._entities = entities
        mentions = self.name_index.mentions(previous_text) if previous_text else []
        named = [m.entities[0] for m in mentions if m.match_kind in {"id", "name"} and len(m.entities) == 1]
        self.named_before = tuple({entity.key: entity for entity in named if not entity.deleted}.values())
        """Entities named in the previous message, in order."""

    @cached_property
    def alive(self) -> tuple[Entity, ...]:
        """Entities that are not deleted: named in the previous message first, then by last use."""
        named = {entity.key for entity in self.named_before}
        rest = (entity for entity in self.window if not entity.deleted and entity.key not in named)
        return (*self.named_before, *rest)

    @cached_property
    def deleted(self) -> tuple[Entity, ...]:
        """Deleted entities, last deleted first."""
        return tuple(sorted((e for e in self.window if e.deleted), key=_last_seen, reverse=True))

    @cached_property
    def just_deleted(self) -> Entity | None:
        """The entity whose deletion is the latest change, if any."""
        deleted = next(iter(self.deleted), None)
        if deleted is None or self.named_before or any(_last_seen(e) > _last_seen(deleted) for e in self.alive):
            return None
        return deleted

    @cached_property
    def parts(self) -> tuple[Entity, ...]:
        """Each part as an entity whose parent is its owner."""
        parts = (_part_as_entity(part, entity) for entity in self.window if not entity.deleted for part in entity.parts)
        return tuple(islice(parts, MAX_PARTS))

    @cached_property
    def nouns(self) -> frozenset[str]:
        """Nouns that users may say for the types of these entities, in singular."""
        types = {entity.type for entity in (*self.window, *self.parts)}
        known = {head for type in types for head in head_nouns(type)}
        synonyms = {other for noun in known for other in SYNONYMS.get(noun, ())}
        host_nouns = {singular(noun) for noun, _ in self.rules.nouns()}
        return frozenset(known | synonyms | host_nouns | _DEFAULT_NOUNS)

    @cached_property
    def name_index(self) -> NameIndex:
        return NameIndex((*self.window, *self.parts), nouns=self.nouns)

    def candidates_for(self, phrase: Phrase) -> tuple[Entity, ...]:
        """Return the entities that the noun of a phrase allows.

        Entities come before parts, and exact types before synonyms.
        """
        candidates = self.alive
        if phrase.deleted:
            candidates = self.deleted or (() if self.from_search else self.alive)
        if not phrase.nouns:
            return candidates
        types = {self.rules.type_for(noun) for noun in phrase.nouns} | set(phrase.nouns)
        synonyms = {other for noun in types for other in SYNONYMS.get(noun, ())}
        for nouns in (types, synonyms):
            if matches := tuple(entity for entity in candidates if type_matches(entity.type, nouns)):
                return matches
            parts = () if phrase.deleted else tuple(part for part in self.parts if type_matches(part.type, nouns))
            if parts:
                return tuple(part for part in parts if part.parent == parts[0].parent)
        return ()

    def listing_for(self, phrase: Phrase, candidates: Sequence[Entity]) -> tuple[Entity, ...]:
        """Return the last list with one of the candidates, as it was shown.

        Entities that were used, evicted or deleted since keep their position. If the phrase has descriptive words,
        only the candidates are counted; deleted entities are counted in the order of their deletion.
        """
        keys = {entity.key for entity in candidates}
        if phrase.deleted or not candidates or sum(entity.key in keys for entity in self.named_before) > 1:
            return self.shown_together(candidates)
        parent = candidates[0].parent if candidates[0] in self.parts else None
        known = (candidate for candidate in self._entities.listings if parent is None or candidate.parent == parent)
        listing = next((candidate for candidate in known if not keys.isdisjoint(candidate.keys)), None)
        if listing is None:
            return self.shown_together(candidates) if parent else ()
        return tuple(self._entity_for(key) for key in listing.keys if key in keys or not phrase.words)

    def holds(self, entity: Entity) -> bool:
        """Return True if it is in the window, as an entity or a part."""
        return entity.key in self._window_by_key or entity.key in self._parts_by_key

    def is_untouched(self, listing: Sequence[Entity]) -> bool:
        """Return True if no entry of a list was used since it was shown."""
        sources = {entity.source for entity in listing if not entity.deleted}
        return len(sources) == 1 or all(entity in self.named_before for entity in listing)

    def shown_together(self, candidates: Sequence[Entity]) -> tuple[Entity, ...]:
        """Return the candidates that one event showed together and that were not used since."""
        keys = {entity.key for entity in candidates}
        named = tuple(entity for entity in self.named_before if entity.key in keys)
        if len(named) > 1:
            return named
        groups: dict[tuple[str, str], list[Entity]] = {}
        for entity in self.window:
            if entity.key in keys and entity.source:
                groups.setdefault((entity.source, canonical_type(entity.type)), []).append(entity)
        if candidates and candidates[0].parent and not groups:
            return tuple(candidates)
        group = next((tuple(group) for group in groups.values() if len(group) > 1), ())
        return group + tuple(entity for entity in _rest_of_list(group) if entity.key not in self._window_by_key)

    def with_listed_rest(self, candidates: Sequence[Entity]) -> tuple[Entity, ...]:
        """Return the candidates and the other entries of their lists."""
        by_key: dict[EntityKey, Entity] = {}
        for entity in (*candidates, *(rest for first in candidates for rest in _rest_of_list([first]))):
            by_key.setdefault(entity.key, entity)
        return tuple(by_key.values())

    def is_truncated(self, candidates: Sequence[Entity]) -> bool:
        """Return True if their list had more entries than are stored."""
        ids = {entity.id for entity in candidates}
        holders = {entity.key for entity in candidates} | {entity.parent for entity in candidates}
        truncated = (entity for entity in self.window if entity.parts_left_out and entity.key in holders)
        return any(part.from_same_list or part.id in ids for entity in truncated for part in entity.parts)

    def by_age(self, candidates: Sequence[Entity]) -> tuple[Entity, ...]:
        """Return the candidates, first seen first."""
        return tuple(sorted(candidates, key=lambda entity: _seen_order(entity, entity.first_seen)))

    def listed_with(self, entity: Entity, candidates: Sequence[Entity]) -> tuple[Entity, ...]:
        """Return the other entries of its list, or nothing if only this entity was named since."""
        if [named.key for named in self.named_before] == [entity.key]:
            return ()
        listed = self.shown_together(candidates)
        others = tuple(other for other in listed if other.key != entity.key)
        return others if len(others) < len(listed) else ()

    def _entity_for(self, key: EntityKey) -> Entity:
        """Return the entity for a list entry: from the window, evicted, or a part."""
        if entity := self._window_by_key.get(key) or self._entities.evicted.get(key) or self._parts_by_key.get(key):
            return entity
        type, id = key
        known = self._entities.ids.get(id)
        return Entity(id, type, known.name if known and canonical_type(known.type) == type else "")

    @cached_property
    def _window_by_key(self) -> dict[EntityKey, Entity]:
        return {entity.key: entity for entity in self.window}

    @cached_property
    def _parts_by_key(self) -> dict[EntityKey, Entity]:
        return {part.key: part for part in reversed(self.parts)}


def _rest_of_list(group: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return the entries of a long list that are stored as parts of its first entity."""
    if not group:
        return ()
    first, ids = group[0], {entity.id for entity in group}
    rest = (part for part in first.parts if part.from_same_list and part.type == first.type and part.id not in ids)
    return tuple(_part_as_entity(part, first) for part in rest)


def _part_as_entity(part: EntityPart, owner: Entity) -> Entity:
    parent = None if part.from_same_list else owner.key
    return Entity(part.id, part.type, part.name, parent=parent, last_seen=owner.last_seen, source=owner.source)


def _seen_order(entity: Entity, seen: datetime | None) -> tuple[float, int]:
    """Return a sort key for a time; events of the same time are ordered by their number."""
    source = EventId.parse(entity.source)
    return seen.timestamp() if seen else 0.0, source.seq if source else 0


def _last_seen(entity: Entity) -> tuple[float, int]:
    return _seen_order(entity, entity.last_seen)
