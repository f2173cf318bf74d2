"""Events of entities: seen, evicted from the window, restored, pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen


class EntityPart(NamedTuple):
    """An id inside an entity: an order's item, a booking's flight.

    It takes no slot in the window.

    A tuple, because a result may hold hundreds and JSON stores tuples directly.
    """

    type: str
    id: str
    name: str = ""
    from_same_list: bool = False
    """True if it was in the same list as the entity, not inside it. Such parts are dropped first."""


@frozen
class EntitySighting:
    """An entity as one tool result, tool call, user message or host call described it."""

    stored_names = (("omitted_parts", "more"),)
    type: str
    id: str
    name: str = ""
    """Its name in that source. Empty if it had none."""
    how: str = "seen"
    """`seen` (exists), `listed` (exists, one of several), `told` (a result is about it), `used` (in a call or a
    message) or `deleted`. `told` and `used` do not say whether it exists."""
    action: str = ""
    parent: tuple[str, str] | None = None
    parts: tuple[EntityPart, ...] = ()
    omitted_parts: int = 0
    """The number of further ids inside it, or in its list, that are not among the parts."""
    aliases: tuple[str, ...] = ()
    pinned: bool = False
    record: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Its own fields that tell it apart, and those of its parts, nested as they were; without id and name."""


@frozen
class EntitySightings(EventPayload):
    """The entities of one event, in order."""

    stored_names = (("sightings", "things"),)
    sightings: tuple[EntitySighting, ...]


class EntitiesSeen(EntitySightings):
    """Entities that were mentioned together, best match first.

    They move to the front of the window together.
    """

    __slots__ = ()
    kind = "seen"


class EntitiesEvicted(EntitySightings):
    """Entities evicted from the window, with everything known about them. They stay searchable."""

    __slots__ = ()
    kind = "left"


class EntitiesRestored(EntitySightings):
    """The entities of a checkpoint, inserted at the front of the window."""

    __slots__ = ()
    kind = "restored"


@frozen
class EntityPinned(EventPayload):
    """An entity was pinned, so that it stays in the window, or unpinned."""

    kind = "pinned"
    type: str
    id: str
    pinned: bool = True
