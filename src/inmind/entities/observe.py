"""From what happened to what it brings to mind: the events that keep the window current."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.entities import EntitiesLeft, EntitiesSeen
from inmind.core.events.session import ToolObserved
from inmind.core.frozen import frozen
from inmind.entities.config import EntityRules
from inmind.entities.extract.from_message import mentioned
from inmind.entities.extract.from_result import things_of
from inmind.entities.window import Entities


@frozen
class Happening:
    """Something that may speak of things: what a person said, or what a tool did."""

    said: str | ToolObserved
    origin: Origin
    source: str
    """The event that tells of it."""


def sighted(
    entities: Entities, happenings: Iterable[Happening], rules: EntityRules, *, now: datetime, stream: str, version: int
) -> list[Draft]:
    """The sightings in order, each with what has no place any more for it, as if each had come by itself.

    They will stand in the stream right after `version`.
    """
    drafts: list[Draft] = []
    for happening in happenings:
        said = happening.said
        things = mentioned(said, entities, rules) if isinstance(said, str) else things_of(said, rules)
        if things:
            drafts.append(Draft(payload=EntitiesSeen(things), origin=happening.origin, sources=(happening.source,)))
            source = f"{stream}#{version + len(drafts)}"
            entities = entities.seen(things, at=now, source=source, told_in=happening.source)
            drafts += leaving(entities, rules)
            entities = entities.without(entities.overflow(rules.window))
    return drafts


def leaving(entities: Entities, rules: EntityRules) -> list[Draft]:
    """Things for which there is no place any more: an event, so that deep memory can take them in."""
    out = entities.overflow(rules.window)
    if not out:
        return []
    what = EntitiesLeft(tuple(entity.as_seen() for entity in out))
    sources = tuple(dict.fromkeys(entity.source for entity in out))
    return [Draft(payload=what, origin=Origin.OPERATOR, sources=sources, trust=Trust.DATA)]
