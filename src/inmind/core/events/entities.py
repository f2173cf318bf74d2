"""Events of entities: seen, left the window, restored, pinned."""

from __future__ import annotations

from typing import NamedTuple

from inmind.core.events.base import EventPayload, nested_value
from inmind.core.frozen import frozen


class EntityPart(NamedTuple):
    """An id inside a thing: an order's item, a booking's flight. It takes no place of its own in the window.

    A tuple, since a result may hold hundreds and JSON knows tuples.
    """

    type: str
    id: str
    name: str = ""
    from_same_list: bool = False
    """It stood in the same list as the thing, not in it: it rides along, and is the first to go."""


@frozen
class EntitySighting:
    """A thing with an id, as somebody spoke of it: a tool's result, a call, a user, the host."""

    type: str
    id: str
    name: str = ""
    """What it is called there; empty where it was not named."""
    how: str = "seen"
    """`seen` alive, `listed` alive among others, `told` of by a result that is about it, `used` in a call or a message
    (both say nothing of its life), or `deleted`."""
    action: str = ""
    parent: tuple[str, str] | None = None
    parts: tuple[EntityPart, ...] = ()
    omitted_parts: int = 0
    """Ids that were inside of it, or beside it in its list, and are not among the parts."""
    aliases: tuple[str, ...] = ()
    pinned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", tuple(self.parent) if self.parent else None)
        object.__setattr__(self, "aliases", tuple(self.aliases))
        object.__setattr__(self, "parts", tuple(EntityPart(*part) for part in self.parts))


@frozen
class EntitySightings(EventPayload):
    """What an event says of things, in their order."""

    sightings: tuple[EntitySighting, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sightings", tuple(nested_value(EntitySighting, thing) for thing in self.sightings))


class EntitiesSeen(EntitySightings):
    """Things that were spoken of together, the best match first: they come to the front as one."""

    __slots__ = ()
    kind = "seen"


class EntitiesEvicted(EntitySightings):
    """Things for which the window had no place any more, with all that is known of them: deep memory takes them in."""

    __slots__ = ()
    kind = "left"


class EntitiesRestored(EntitySightings):
    """The window as a checkpoint had it, in front of whatever is there."""

    __slots__ = ()
    kind = "restored"


@frozen
class EntityPinned(EventPayload):
    """A thing that stays in the window, or no longer has to."""

    kind = "pinned"
    type: str
    id: str
    pinned: bool = True
