"""The entity window as a checkpoint that a host stores; reads every released version.

Version 1 has id, name and type of each entity, most recent first. Version 2 adds aliases, parent, parts, whether the
entity is pinned, deleted or was only listed, and its record, if it has one. Timestamps and source events are
informational: restored entities count as seen when they are restored. Evicted entities are not included.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from inmind.core.events.entities import EntityPart, EntitySighting
from inmind.core.json import to_plain
from inmind.entities.entity import Entity
from inmind.entities.extract.identity import name_of
from inmind.entities.record import bounded_record
from inmind.entities.window import Entities
from inmind.errors import InvalidInput

VERSION = 2


def serialize(entities: Entities) -> dict[str, Any]:
    return {"entities": [_entity_to_dict(entity) for entity in entities], "version": VERSION}


def deserialize(data: object) -> tuple[EntitySighting, ...]:
    """Parse a checkpoint, most recent first. Raises InvalidInput if any part of it is invalid."""
    if not isinstance(data, Mapping):
        raise InvalidInput(field="data", value=data, expected="an export of Session.export_entities()")
    mapping = cast(Mapping[str, Any], data)
    version = mapping.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InvalidInput(field="data.version", value=version, expected=f"1 to {VERSION}")
    entities = mapping.get("entities")
    if not isinstance(entities, list | tuple):
        raise InvalidInput(field="data.entities", value=entities, expected="a list")
    sightings = [_parse_entity(item, f"data.entities[{n}]") for n, item in enumerate(cast(list[Any], entities))]
    return tuple({(sighting.type, sighting.id): sighting for sighting in reversed(sightings)}.values())[::-1]


def sighting_from(value: object, field: str) -> EntitySighting:
    """Parse an entity given by a host: an Entity, or a mapping with id, type and name.

    It does not count as listed. A mapping may have its name under any usual key.
    """
    if isinstance(value, Entity):
        return _parse_entity({**_entity_to_dict(value), "listed": False}, field)
    sighting = _parse_entity(value, field)
    return (
        sighting
        if sighting.name
        else replace(sighting, name=name_of({**cast(Mapping[str, Any], value)}, sighting.type))
    )


def _entity_to_dict(entity: Entity) -> dict[str, Any]:
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "aliases": list(entity.aliases),
        "parent": list(entity.parent) if entity.parent else None,
        "action": entity.action,
        "first_seen": entity.first_seen.isoformat() if entity.first_seen else None,
        "last_seen": entity.last_seen.isoformat() if entity.last_seen else None,
        "source": entity.source,
        "deleted": entity.deleted,
        "pinned": entity.pinned,
        "listed": entity.listed,
        # `beside` is part of the checkpoint format.
        "parts": [{"type": p.type, "id": p.id, "name": p.name, "beside": p.from_same_list} for p in entity.parts],
        "parts_left_out": entity.parts_left_out,
        **({"record": dict(entity.record)} if entity.record else {}),
    }


def _parse_entity(item: object, field: str) -> EntitySighting:
    if not isinstance(item, Mapping):
        raise InvalidInput(field=field, value=item, expected="an object with id, type and name")
    mapping = cast(Mapping[str, Any], item)
    id, type = (
        _parse_exact_line(mapping.get("id"), f"{field}.id"),
        _parse_exact_line(mapping.get("type"), f"{field}.type"),
    )
    name = _parse_line(mapping.get("name"), f"{field}.name")
    parent = mapping.get("parent")
    parts = _parse_list(mapping.get("parts"), f"{field}.parts")
    aliases = [
        _parse_line(alias, f"{field}.aliases") for alias in _parse_list(mapping.get("aliases"), f"{field}.aliases")
    ]
    return EntitySighting(
        type=type,
        id=id,
        name="" if name == id else name,
        how="deleted" if mapping.get("deleted") is True else "listed" if mapping.get("listed") is True else "seen",
        action=_parse_line(mapping.get("action"), f"{field}.action"),
        parent=_parse_key(parent, f"{field}.parent") if parent else None,
        parts=tuple(_parse_part(part, f"{field}.parts[{n}]") for n, part in enumerate(parts)),
        aliases=tuple(filter(None, aliases)),
        pinned=mapping.get("pinned") is True,
        omitted_parts=_parse_count(mapping.get("parts_left_out"), f"{field}.parts_left_out"),
        record=_parse_record(mapping.get("record"), f"{field}.record"),
    )


def _parse_record(value: object, field: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidInput(field=field, value=value, expected="an object")
    return bounded_record(to_plain(dict(cast(Mapping[str, Any], value)), field))


def _parse_part(value: object, field: str) -> EntityPart:
    if not isinstance(value, Mapping):
        raise InvalidInput(field=field, value=value, expected="an object with type and id")
    mapping = cast(Mapping[str, Any], value)
    type, id = (
        _parse_exact_line(mapping.get("type"), f"{field}.type"),
        _parse_exact_line(mapping.get("id"), f"{field}.id"),
    )
    return EntityPart(
        type, id, _parse_line(mapping.get("name"), f"{field}.name"), from_same_list=mapping.get("beside") is True
    )


def _parse_key(value: object, field: str) -> tuple[str, str]:
    pair = _parse_list(value, field)
    if len(pair) != 2:
        raise InvalidInput(field=field, value=pair, expected="a type and an id")
    return _parse_exact_line(pair[0], field), _parse_exact_line(pair[1], field)


def _parse_list(value: object, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise InvalidInput(field=field, value=value, expected="a list")
    return list(cast(list[Any], value))


def _parse_count(value: object, field: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise InvalidInput(field=field, value=value, expected="a count, 0 or more")
    return value


def _parse_exact_line(value: object, field: str) -> str:
    """Parse an id or type, unchanged. A number is accepted."""
    text = _parse_line(value, field)
    if not text or (isinstance(value, str) and text != value):
        raise InvalidInput(field=field, value=value, expected="one line of text, without control characters")
    return text


def _parse_line(value: object, field: str) -> str:
    """Parse one line of text, possibly empty. Control characters are removed."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    value = value or ""
    if not isinstance(value, str) or len(value) > 500 or not _is_single_line(value):
        raise InvalidInput(field=field, value=value, expected="one line of text, at most 500 characters")
    return value if value.isprintable() else "".join(c for c in value if unicodedata.category(c) != "Cc")


def _is_single_line(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return value.splitlines() in ([], [value])
