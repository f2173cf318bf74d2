"""Turns messages and tool outcomes into the events that update the entity window.

A user message has ids in its text, and names of known entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import lru_cache
from itertools import islice
from operator import itemgetter

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.session import EntitiesEvicted, EntitiesSeen, EntitySighting
from inmind.core.frozen import frozen
from inmind.core.tool_outcome import ToolOutcome
from inmind.entities.entity import DEFAULT_RULES, Entity, EntityRules
from inmind.entities.extract.from_result import sightings_from_result
from inmind.entities.find_ids import find_ids_in_text
from inmind.entities.ids import spellings
from inmind.entities.nouns import singular
from inmind.entities.window import Entities

MAX_TEXT_CHARS = 4_000
"""Length of a message that is searched for names."""
MAX_EVICTED = 50
"""Number of evicted entities whose names are looked for, most recently evicted first."""
_WORD = re.compile(r"[a-z0-9]+|[^\W_]")
_HASH_NUMBER = re.compile(r"(?<![\w#&])#(\d{1,9})(?![\w-])")
_MIN_NAME_CHARS = 3


def sightings_from_message(
    text: str, entities: Entities, rules: EntityRules = DEFAULT_RULES
) -> tuple[EntitySighting, ...]:
    """Return the entities that a message mentions, in the order of the text."""
    sightings_by_id: dict[str, tuple[int, EntitySighting]] = {}
    for one in find_ids_in_text(text, rules=rules):
        id = next((spelling for spelling in spellings(one.id) if spelling in entities.ids), one.id)
        sightings_by_id[id] = (text.find(one.id), EntitySighting(one.type, id, how="used"))
    head = text[:MAX_TEXT_CHARS]
    for match in _HASH_NUMBER.finditer(head):  # too short to be recognised by its shape: only known ids count
        if known := entities.ids.get(match[1]):
            sightings_by_id.setdefault(known.id, (match.start(), EntitySighting(known.type, known.id, how="used")))
    folded = head.casefold()
    words = frozenset(_WORD.findall(folded))
    for type, id, names in _iter_names(entities):
        if id in sightings_by_id:
            continue
        positions = [
            start
            for name in names
            if _first_word(name) in words and (start := _find_name(name, type, head, folded)) >= 0
        ]
        if positions:
            sightings_by_id[id] = (min(positions), EntitySighting(type, id, how="used"))
    return tuple(sighting for _, sighting in sorted(sightings_by_id.values(), key=itemgetter(0)))


@lru_cache(maxsize=4096)
def _first_word(name: str) -> str:
    """Return the first word of a name: a text without it does not contain the name."""
    match = _WORD.search(name.casefold())
    return match[0] if match else ""


def _iter_names(entities: Entities) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for entity in entities.window:
        yield _entity_names(entity)
        for part in entity.parts:
            if part.name:
                yield part.type, part.id, (part.name,)
    yield from map(_entity_names, islice(entities.evicted_entities, MAX_EVICTED))


def _entity_names(entity: Entity) -> tuple[str, str, tuple[str, ...]]:
    return entity.type, entity.id, (*entity.names, entity.id)


def _find_name(name: str, type: str, text: str, folded: str) -> int:
    """Return the position of a name in the text, or -1.

    A name of one word may be an ordinary word. It counts if it is spelt like the name inside a sentence ("go to
    Contact"), is quoted, or is next to its type ("the contact page"); not in "Please contact me".
    """
    if not name.isascii():
        return folded.find(name.casefold()) if len(name) > 1 else -1
    folded_name = name.casefold()
    if len(name) < _MIN_NAME_CHARS or folded_name not in folded:
        return -1
    for match in re.finditer(rf"(?<!\w){re.escape(folded_name)}(?!\w)", folded):
        start, end = match.span()
        if not name.isalpha() or _is_deliberate(text[start:end] == name, text[:start], text[end:], type):
            return start
    return -1


def _is_deliberate(as_spelt: bool, before: str, after: str, type: str) -> bool:
    if before[-1:] in _QUOTES and after[:1] in _QUOTES and before and after:
        return True
    neighbours = (*_ASCII_WORD.findall(before[-30:].casefold())[-1:], *_ASCII_WORD.findall(after[:30].casefold())[:1])
    if any(singular(word) == type for word in neighbours):
        return True
    starts_sentence = not before.strip() or before.rstrip()[-1] in ".!?:;\n"
    return as_spelt and not starts_sentence


_ASCII_WORD = re.compile(r"[a-z]+")
_QUOTES = "\"'“”‘’«»`"


@frozen
class Observation:
    """A user message or a tool outcome to extract entities from."""

    content: str | ToolOutcome
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
