"""The window as a checkpoint that a host keeps, and every version of it that was ever given out.

Version 1 is the oldest: id, name and type of each, the most recent first. Version 2 has what a thing is and how it
behaves in a window: its earlier names, its parent, its parts, whether it is pinned, deleted, or was only listed. When
it was seen, and by which event, is written for whoever reads a checkpoint; in the session that takes it, things are
seen when they are restored. What left the window before is not among it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from inmind.core.events.entities import EntityPart, EntitySighting
from inmind.entities.entity import Entity
from inmind.entities.extract.names import name_of
from inmind.entities.window import Entities
from inmind.errors import InvalidInput

VERSION = 2


def serialize(entities: Entities) -> dict[str, Any]:
    return {"entities": [_written(entity) for entity in entities], "version": VERSION}


def deserialize(data: object) -> tuple[EntitySighting, ...]:
    """The things of a checkpoint, the most recent first. Refused whole if any of it does not fit."""
    if not isinstance(data, Mapping):
        raise InvalidInput(field="data", value=data, expected="a checkpoint, as serialize() gives it")
    given = cast(Mapping[str, Any], data)
    version = given.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InvalidInput(field="data.version", value=version, expected=f"1 to {VERSION}")
    entities = given.get("entities")
    if not isinstance(entities, list | tuple):
        raise InvalidInput(field="data.entities", value=entities, expected="a list")
    things = [_read(item, f"data.entities[{n}]") for n, item in enumerate(cast(list[Any], entities))]
    return tuple({(thing.type, thing.id): thing for thing in reversed(things)}.values())[::-1]


def thing_from(value: object, field: str) -> EntitySighting:
    """An entity as a host hands it in: one of ours, or an object with id, type and name.

    A host speaks of it by itself, so it is not one of a list; and an object may have its name under any usual key.
    """
    if isinstance(value, Entity):
        return _read({**_written(value), "listed": False}, field)
    thing = _read(value, field)
    return thing if thing.name else replace(thing, name=name_of({**cast(Mapping[str, Any], value)}, thing.type))


def _written(entity: Entity) -> dict[str, Any]:
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
        "parts": [part._asdict() for part in entity.parts],
        "parts_left_out": entity.parts_left_out,
    }


def _read(item: object, field: str) -> EntitySighting:
    if not isinstance(item, Mapping):
        raise InvalidInput(field=field, value=item, expected="an object with id, type and name")
    given = cast(Mapping[str, Any], item)
    id, type = _text(given.get("id"), f"{field}.id"), _text(given.get("type"), f"{field}.type")
    name = _line(given.get("name"), f"{field}.name")
    parent = given.get("parent")
    parts = _listed(given.get("parts"), f"{field}.parts")
    aliases = [_line(alias, f"{field}.aliases") for alias in _listed(given.get("aliases"), f"{field}.aliases")]
    return EntitySighting(
        type=type,
        id=id,
        name="" if name == id else name,
        how="deleted" if given.get("deleted") is True else "listed" if given.get("listed") is True else "seen",
        action=_line(given.get("action"), f"{field}.action"),
        parent=_pair(parent, f"{field}.parent") if parent else None,
        parts=tuple(_part(part, f"{field}.parts[{n}]") for n, part in enumerate(parts)),
        aliases=tuple(filter(None, aliases)),
        pinned=given.get("pinned") is True,
        more=_number(given.get("parts_left_out"), f"{field}.parts_left_out"),
    )


def _part(value: object, field: str) -> EntityPart:
    if not isinstance(value, Mapping):
        raise InvalidInput(field=field, value=value, expected="an object with type and id")
    given = cast(Mapping[str, Any], value)
    type, id = _text(given.get("type"), f"{field}.type"), _text(given.get("id"), f"{field}.id")
    return EntityPart(type, id, _line(given.get("name"), f"{field}.name"), beside=given.get("beside") is True)


def _pair(value: object, field: str) -> tuple[str, str]:
    pair = _listed(value, field)
    if len(pair) != 2:
        raise InvalidInput(field=field, value=pair, expected="a type and an id")
    return _text(pair[0], field), _text(pair[1], field)


def _listed(value: object, field: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise InvalidInput(field=field, value=value, expected="a list")
    return list(cast(list[Any], value))


def _number(value: object, field: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise InvalidInput(field=field, value=value, expected="how many, 0 or more")
    return value


def _text(value: object, field: str) -> str:
    """What something goes by, exactly as it is. An id may be a number where it comes from."""
    text = _line(value, field)
    if not text or (isinstance(value, str) and text != value):
        raise InvalidInput(field=field, value=value, expected="a text of one line, without control characters")
    return text


def _line(value: object, field: str) -> str:
    """What something is called: a text of one line, or none. What nobody can see is left out of it."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    value = value or ""
    if not isinstance(value, str) or len(value) > 500 or not _is_line(value):
        raise InvalidInput(field=field, value=value, expected="a text of one line, at most 500 characters")
    return value if value.isprintable() else "".join(c for c in value if unicodedata.category(c) != "Cc")


def _is_line(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return value.splitlines() in ([], [value])
