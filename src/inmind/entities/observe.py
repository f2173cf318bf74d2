"""Turns messages and tool outcomes into the events that update the entity window."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.entities import EntitiesEvicted, EntitiesSeen
from inmind.core.events.session import ToolObserved
from inmind.core.frozen import frozen
from inmind.entities.config import EntityRules
from inmind.entities.extract.from_message import sightings_from_message
from inmind.entities.extract.from_result import sightings_from_result
from inmind.entities.window import Entities


@frozen
class Observation:
    """A user message or a tool outcome to extract entities from."""

    content: str | ToolObserved
    origin: Origin
    source: str
    """Id of the event that stores it."""


def draft_entity_events(
    entities: Entities,
    observations: Iterable[Observation],
    rules: EntityRules,
    *,
    now: datetime,
    stream: str,
    version: int,
) -> list[Draft]:
    """Return the sighting events in order, each followed by the evictions it causes.

    They will be appended to the stream directly after `version`.
    """
    drafts: list[Draft] = []
    for observation in observations:
        content = observation.content
        sightings = (
            sightings_from_message(content, entities, rules)
            if isinstance(content, str)
            else sightings_from_result(content, rules)
        )
        if sightings:
            drafts.append(
                Draft(payload=EntitiesSeen(sightings), origin=observation.origin, sources=(observation.source,))
            )
            source = f"{stream}#{version + len(drafts)}"
            entities = entities.add_sightings(sightings, at=now, source=source, observed_in=observation.source)
            drafts += draft_evictions(entities, rules)
            entities = entities.evict(entities.overflow(rules.window))
    return drafts


def draft_evictions(entities: Entities, rules: EntityRules) -> list[Draft]:
    """Return an event for entities that no longer fit; search indexes them from it."""
    evicted = entities.overflow(rules.window)
    if not evicted:
        return []
    payload = EntitiesEvicted(tuple(entity.to_sighting() for entity in evicted))
    sources = tuple(dict.fromkeys(entity.source for entity in evicted))
    return [Draft(payload=payload, origin=Origin.OPERATOR, sources=sources, trust=Trust.DATA)]
