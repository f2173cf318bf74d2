"""Detects unknown fields in an update: typos and extra wrapper objects.

Pydantic ignores unknown fields. Merged into a scratchpad they would stay in every prompt, and the caller would see a
success. So only the fields of a model are accepted, unless it allows extra ones. JSON Schema states this itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inmind.core.frozen import frozen
from inmind.documents.scratchpad.paths import is_list, is_object, parse_pointer

_UNIONS = ("anyOf", "oneOf", "allOf")
_ADDITIONAL = "additionalProperties"
_PATTERN_FIELDS = "patternProperties"
_OBJECT_KEYWORDS = frozenset({"properties", _ADDITIONAL, _PATTERN_FIELDS})


@frozen
class UnknownField:
    path: tuple[str | int, ...]
    known: tuple[str, ...]
    """The fields that exist at this place."""


def find_unknown_fields(values: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[UnknownField]:
    """Yield unknown fields, by the JSON Schema of a model with self-contained references."""
    return _SchemaWalk(schema).find(values, [schema], ())


@frozen
class _SchemaWalk:
    root: Mapping[str, Any]

    def find(self, value: Any, schemas: Sequence[Any], path: tuple[str | int, ...]) -> Iterator[UnknownField]:
        """`schemas`: alternatives for the value. A field known to one of them is known."""
        # Each alternative once: nested unions would otherwise multiply.
        alternatives = list({id(one): one for schema in schemas for one in self._alternatives(schema)}.values())
        if is_list(value):
            for place, item in enumerate(value):
                yield from self.find(item, [_item_schema(one, place) for one in alternatives], (*path, place))
        elif is_object(value) and alternatives and not any(map(_accepts_any_object, alternatives)):
            objects = [one for one in alternatives if not _OBJECT_KEYWORDS.isdisjoint(one)]
            known = {name: None for one in objects for name in one.get("properties", ())}
            others = [one[_ADDITIONAL] for one in objects if one.get(_ADDITIONAL, False) is not False]
            others += [other for one in objects for other in one.get(_PATTERN_FIELDS, {}).values()]
            for key, inner in value.items():
                fields = [one["properties"][key] for one in objects if key in one.get("properties", ())]
                if fields or others:
                    yield from self.find(inner, [*fields, *filter(is_object, others)], (*path, key))
                else:
                    yield UnknownField((*path, key), tuple(known))

    def _alternatives(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        if not is_object(schema):
            return
        if "$ref" in schema:
            yield from self._alternatives(self._target(schema["$ref"]))
        elif union := [one for key in _UNIONS for one in schema.get(key, ())]:
            for one in union:
                yield from self._alternatives(one)
        else:
            yield schema

    def _target(self, reference: str) -> Any:
        target: Any = self.root
        for key in parse_pointer(reference.removeprefix("#")) or ():
            target = target[key]
        return target


def _accepts_any_object(schema: Mapping[str, Any]) -> bool:
    """True if the schema does not restrict the keys."""
    return schema.get("type", "object") == "object" and _OBJECT_KEYWORDS.isdisjoint(schema)


def _item_schema(schema: Mapping[str, Any], place: int) -> Any:
    """Schema of the list item at this index."""
    first = schema.get("prefixItems", ())
    return first[place] if place < len(first) else schema.get("items")
