"""The Entity value: something with an id that tools accept and users refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from inmind.core.events.entities import EntityPart, EntitySighting
from inmind.core.frozen import frozen
from inmind.entities.nouns import canonical_type

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
