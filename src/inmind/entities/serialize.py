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

from inmind.core.events.session import EntityPart, EntitySighting
from inmind.core.json import is_count, to_plain
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
    checkpoint = _Fields(data, "data", expected="an export of Session.export_entities()")
    version = checkpoint.values.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InvalidInput(field="data.version", value=version, expected=f"1 to {VERSION}")
    if checkpoint.values.get("entities") is None:
        raise InvalidInput(field="data.entities", value=None, expected="a list")
    sightings = [_parse_entity(item, field) for item, field in checkpoint.items("entities")]
    return tuple({(sighting.type, sighting.id): sighting for sighting in reversed(sightings)}.values())[::-1]


def sighting_from(value: object, field: str) -> EntitySighting:
    """Parse an entity given by a host: an Entity, or a mapping with id, type and name.

    It does not count as listed. A mapping may have its name under any usual key.
    """
    if isinstance(value, Entity):
        return _parse_entity({**_entity_to_dict(value), "listed": False}, field)
    sighting = _parse_entity(value, field)
    name = sighting.name or name_of({**cast(Mapping[str, Any], value)}, sighting.type)
    return replace(sighting, name=name)


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
    fields = _Fields(item, field, expected="an object with id, type and name")
    type, id, name = fields.exact_line("type"), fields.exact_line("id"), fields.line("name")
    parent = [_parse_exact_line(value, f"{field}.parent") for value, _ in fields.items("parent")]
    if parent and len(parent) != 2:
        raise InvalidInput(field=f"{field}.parent", value=parent, expected="a type and an id")
    aliases = [_parse_line(value, f"{field}.aliases") for value, _ in fields.items("aliases")]
    omitted_parts = fields.values.get("parts_left_out") or 0
    if not is_count(omitted_parts):
        raise InvalidInput(field=f"{field}.parts_left_out", value=omitted_parts, expected="a count, 0 or more")
    record = fields.values.get("record")
    record = _Fields({} if record is None else record, f"{field}.record", expected="an object").values
    return EntitySighting(
        type=type,
        id=id,
        name="" if name == id else name,
        how="deleted" if fields.is_true("deleted") else "listed" if fields.is_true("listed") else "seen",
        action=fields.line("action"),
        parent=(parent[0], parent[1]) if parent else None,
        parts=tuple(_parse_part(value, place) for value, place in fields.items("parts")),
        aliases=tuple(filter(None, aliases)),
        pinned=fields.is_true("pinned"),
        omitted_parts=omitted_parts,
        record=bounded_record(to_plain(dict(record), f"{field}.record")),
    )


def _parse_part(item: object, field: str) -> EntityPart:
    fields = _Fields(item, field, expected="an object with type and id")
    type, id = fields.exact_line("type"), fields.exact_line("id")
    return EntityPart(type, id, fields.line("name"), from_same_list=fields.is_true("beside"))


class _Fields:
    """The fields of an object, checked as they are read."""

    def __init__(self, value: object, field: str, *, expected: str) -> None:
        if not isinstance(value, Mapping):
            raise InvalidInput(field=field, value=value, expected=expected)
        self.values, self._field = cast(Mapping[str, Any], value), field

    def line(self, key: str) -> str:
        return _parse_line(self.values.get(key), f"{self._field}.{key}")

    def exact_line(self, key: str) -> str:
        return _parse_exact_line(self.values.get(key), f"{self._field}.{key}")

    def is_true(self, key: str) -> bool:
        return self.values.get(key) is True

    def items(self, key: str) -> list[tuple[Any, str]]:
        """The items of a list, each with its path; none if there is no list."""
        value = self.values.get(key)
        if not isinstance(value, list | tuple | None):
            raise InvalidInput(field=f"{self._field}.{key}", value=value, expected="a list")
        return [(item, f"{self._field}.{key}[{n}]") for n, item in enumerate(cast(list[Any], value or ()))]


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
