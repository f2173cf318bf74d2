"""The Entity value, and the host's configuration: types, id keys, extractors, window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from inmind.core.events.session import EntityPart, EntitySighting, ToolObserved
from inmind.core.frozen import frozen
from inmind.entities.nouns import canonical_type
from inmind.errors import InvalidInput

MAX_PARTS = 64
"""Maximum number of parts per entity. More than a block can show; a list of thousands must not fill the state."""

EntityKey = tuple[str, str]
"""Canonical type and id. Two entities with the same key are the same entity."""


@frozen
class Entity:
    """A page, an order, a file: something with an id that tools accept and users call "it"."""

    id: str
    type: str
    name: str = ""
    """Most recent name; the id if no name is known."""
    aliases: tuple[str, ...] = ()
    """Earlier names, newest first."""
    parent: EntityKey | None = None
    action: str = ""
    """Verb of the last tool call on it."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    source: str = ""
    """Id of the EntitiesSeen event that last updated it."""
    observed_in: str = ""
    """Id of the event that the sighting was extracted from: a message or a tool result."""
    deleted: bool = False
    pinned: bool = False
    listed: bool = False
    """True while it was only seen as one entry of a list, never opened, created or used."""
    parts: tuple[EntityPart, ...] = ()
    """Most recently seen first; parts of one result keep the order of that result."""
    parts_left_out: int = 0
    """Number of parts that were seen but not kept, because of MAX_PARTS."""
    record: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Fields that tell it apart, and those of its parts, nested as they were; the newest value of each."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.id)

    @property
    def key(self) -> EntityKey:
        return canonical_type(self.type), self.id

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it had, newest first, without the id."""
        return tuple(name for name in (self.name, *self.aliases) if name != self.id)

    def __str__(self) -> str:
        return f'{self.id}, "{self.name}"'

    def to_sighting(self) -> EntitySighting:
        """Return a sighting with all its data, for an event."""
        return EntitySighting(
            type=self.type,
            id=self.id,
            name="" if self.name == self.id else self.name,
            how="deleted" if self.deleted else "seen",
            action=self.action,
            parent=self.parent,
            parts=self.parts,
            aliases=self.aliases,
            pinned=self.pinned,
            record=self.record,
        )


Extractor = Callable[[ToolObserved], Sequence[Entity]]
"""Maps a tool outcome to the entities it is about, best match first."""

DEFAULT_WINDOW = 10
DEFAULT_MAX_PER_LIST = 3

T = TypeVar("T")


@frozen(kw_only=True)
class EntityRules:
    """Rules for finding entities in tool results. The defaults fit any application."""

    window: int = DEFAULT_WINDOW
    """Number of entities in the window."""
    max_per_list: int = DEFAULT_MAX_PER_LIST
    """Number of entities that one list adds to the window. The ids of the others become parts of the first."""
    types: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Types of the host, each with its synonyms: {"customer": ["client", "account holder"]}."""
    id_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys whose values are ids, with the type of the entity: {"matricule": "employee"}."""
    extractors: Mapping[str, Extractor] = field(default_factory=dict[str, Extractor])
    """Extractors by tool name pattern ("crm_*"). The first match replaces the built-in extraction."""

    def __post_init__(self) -> None:
        for name, value in (("window", self.window), ("max_per_list", self.max_per_list)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may not use type checking
                raise InvalidInput(field=f"entities.{name}", value=value, expected="1 or more")
        for type, nouns in _require_mapping(self.types, "types", str).items():
            noun_list = [nouns] if isinstance(nouns, str) else nouns
            if not isinstance(noun_list, Sequence) or not all(isinstance(noun, str) and noun for noun in noun_list):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(field=f"entities.types.{type}", value=nouns, expected="a list of nouns")
        for key, type in _require_mapping(self.id_keys, "id_keys", str).items():
            if not isinstance(type, str) or not type:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(field=f"entities.id_keys.{key}", value=type, expected="a type")
        for pattern, extractor in _require_mapping(self.extractors, "extractors", str).items():
            if not callable(extractor):
                raise InvalidInput(field=f"entities.extractors.{pattern}", value=extractor, expected="a function")

    def type_for(self, noun: str) -> str:
        """Return the host's type for a noun, or the noun itself if no type has it."""
        return next((type for other, type in self.nouns() if noun in (type, other.replace(" ", "_"))), noun)

    def nouns(self) -> Iterator[tuple[str, str]]:
        """Yield the synonyms of the host's types, each with its type."""
        for type, nouns in self.types.items():
            yield from ((noun, type) for noun in ([nouns] if isinstance(nouns, str) else nouns))

    def extractor_for(self, tool: str) -> tuple[str, Extractor] | None:
        return next((item for item in self.extractors.items() if fnmatchcase(tool, item[0])), None)


def _require_mapping(mapping: Mapping[str, T], field: str, kind: type) -> Mapping[str, T]:
    if not isinstance(mapping, Mapping) or not all(isinstance(key, kind) and key for key in mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(field=f"entities.{field}", value=mapping, expected="a mapping with non-empty text keys")
    return mapping


DEFAULT_RULES = EntityRules()
