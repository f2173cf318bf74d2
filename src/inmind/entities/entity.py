"""A thing that is being talked about, and the ids that ride with it."""

from __future__ import annotations

from datetime import datetime

from inmind.core.events.entities import EntityPart, EntitySighting
from inmind.core.frozen import frozen
from inmind.entities.nouns import canonical_type

MAX_PARTS = 64
"""Ids that one thing carries. More than a block could ever show; a listing of thousands must not fill the state."""

EntityKey = tuple[str, str]
"""What makes two entities the same: type and id."""


@frozen
class Entity:
    """A page, an order, a file: something with an id that tools take and people call "it"."""

    id: str
    type: str
    name: str = ""
    """The newest; the id where none was ever seen."""
    aliases: tuple[str, ...] = ()
    """Earlier names, the newest first."""
    parent: EntityKey | None = None
    action: str = ""
    """What a tool last did with it: the verb of the call."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    source: str = ""
    """The sighting that last brought it."""
    observed_in: str = ""
    """The event that the sighting was made of: a message, or what a tool did."""
    deleted: bool = False
    pinned: bool = False
    listed: bool = False
    """So far it was only one of a list: nobody has opened, made or used it."""
    parts: tuple[EntityPart, ...] = ()
    """The most recently seen first, and those of one result in the order of that result."""
    parts_left_out: int = 0
    """Parts that were seen and are not kept here: a thing holds so many."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.id)

    @property
    def key(self) -> EntityKey:
        return canonical_type(self.type), self.id

    @property
    def names(self) -> tuple[str, ...]:
        """Everything it was ever called, newest first; not its id."""
        return tuple(name for name in (self.name, *self.aliases) if name != self.id)

    def __str__(self) -> str:
        return f'{self.id}, "{self.name}"'

    def to_sighting(self) -> EntitySighting:
        """All that is known of it, as an event carries it."""
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
        )
