"""The window as a checkpoint that a host keeps, and every version of it that was ever given out.

Version 1 is the oldest: id, name and type of each, the most recent first. Version 2 has everything that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from inmind.entities.entity import Entity
from inmind.entities.window import Entities
from inmind.errors import InvalidInput
from inmind.journal import Part, ThingSeen

VERSION = 2


def serialize(entities: Entities) -> dict[str, Any]:
    return {"entities": [_written(entity) for entity in entities], "version": VERSION}


def deserialize(data: object) -> tuple[ThingSeen, ...]:
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


def thing_from(value: object, field: str) -> ThingSeen:
    """An entity as a host hands it in: one of ours, or an object with id, type and name."""
    return _read(_written(value) if isinstance(value, Entity) else value, field)


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
        "parts": [{"type": part.type, "id": part.id, "name": part.name} for part in entity.parts],
    }


def _read(item: object, field: str) -> ThingSeen:
    if not isinstance(item, Mapping):
        raise InvalidInput(field=field, value=item, expected="an object with id, type and name")
    given = cast(Mapping[str, Any], item)
    id, type = _text(given.get("id"), f"{field}.id"), _text(given.get("type"), f"{field}.type")
    name = _text(given.get("name") or "", f"{field}.name", empty=True)
    parent = given.get("parent")
    parts = _listed(given.get("parts"), f"{field}.parts")
    return ThingSeen(
        type=type,
        id=id,
        name="" if name == id else name,
        how="deleted" if given.get("deleted") is True else "seen",
        action=_text(given.get("action") or "", f"{field}.action", empty=True),
        parent=_pair(parent, f"{field}.parent") if parent else None,
        parts=tuple(_part(part, f"{field}.parts[{n}]") for n, part in enumerate(parts)),
        aliases=tuple(_text(alias, f"{field}.aliases") for alias in _listed(given.get("aliases"), f"{field}.aliases")),
        pinned=given.get("pinned") is True,
    )


def _part(value: object, field: str) -> Part:
    if not isinstance(value, Mapping):
        raise InvalidInput(field=field, value=value, expected="an object with type and id")
    given = cast(Mapping[str, Any], value)
    name = _text(given.get("name") or "", f"{field}.name", empty=True)
    return Part(_text(given.get("type"), f"{field}.type"), _text(given.get("id"), f"{field}.id"), name)


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


def _text(value: object, field: str, *, empty: bool = False) -> str:
    """An id may be a number where it comes from; here it is a text of one line."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
        value = str(value)
    if not isinstance(value, str) or not (value or empty) or len(value) > 500 or not _is_line(value):
        raise InvalidInput(field=field, value=value, expected="a text of one line, at most 500 characters")
    return value


def _is_line(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return value.splitlines() in ([], [value])
