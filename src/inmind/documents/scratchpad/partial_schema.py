"""Derives the JSON Schema of a scratchpad that is filled in step by step.

A schema describes a finished state. Before that, a field that was never set is not missing, so objects that updates are
merged into lose their required fields. Objects inside lists keep them, because a list is replaced as a whole and items
are never completed later. `oneOf`, `not` and `if` are kept as they are: with fewer required fields a wrong branch could
match. The exception is a `oneOf` with a discriminator, as pydantic writes tagged unions: only its tag is required.

The result is self-contained, as model providers require: every reference leads to its own `$defs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from inmind.documents.scratchpad.paths import Path, is_list, is_object, parse_pointer
from inmind.errors import InvalidInput

_REQUIREMENTS = frozenset({"required", "minProperties"})
_MERGED_KEYWORDS = frozenset({"properties", "patternProperties", "additionalProperties", "allOf", "anyOf", "$ref"})

# Keywords that hold schemas: a map by name, or one schema or a list. All other keywords hold data.
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
_SCHEMA_KEYWORDS = frozenset(
    "additionalItems additionalProperties allOf anyOf contains contentSchema else if items not oneOf prefixItems "
    "propertyNames then unevaluatedItems unevaluatedProperties".split()
)

# A title repeats the field name. A default would apply to a field left out of an update, which keeps its value instead.
# The others name the location of a schema, which changes in a copy.
_OMITTED_KEYWORDS = frozenset(
    {"title", "default", "discriminator", "$defs", "definitions", "$id", "$anchor", "$dynamicAnchor"}
)

# These change how references are resolved.
_UNSUPPORTED_KEYWORDS = ("$id", "$dynamicRef", "$recursiveRef")


def partial_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with nothing required in objects that updates are merged into."""
    return _SchemaRewriter(schema).rewrite()


class _SchemaRewriter:
    """Rewrites one schema; keeps the definitions referenced so far and their new names."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = {key: value for key, value in schema.items() if key != "$id"}
        self._names: dict[tuple[Path, bool], str] = {}
        self._definitions: dict[str, Any] = {}

    def rewrite(self) -> dict[str, Any]:
        root = self._schema
        if "type" not in root and "$ref" in root:
            # pydantic writes a self-referencing model like this; the provider needs the object itself.
            _, target = self._resolve(root["$ref"])
            root = {**(target if is_object(target) else {}), **{key: root[key] for key in root if key != "$ref"}}
        rewritten = self._rewrite(root, merged=True)
        return {**rewritten, "$defs": self._definitions} if self._definitions else rewritten

    def _rewrite(self, schema: Any, *, merged: bool) -> Any:
        if not is_object(schema):
            return schema
        for key in _UNSUPPORTED_KEYWORDS:
            if key in schema:
                raise _reference_error(f"{key}: {schema[key]}")
        kept = [key for key in schema if key not in _OMITTED_KEYWORDS and not (merged and key in _REQUIREMENTS)]
        tag = self._discriminator(schema) if merged else None
        into = _MERGED_KEYWORDS if tag is None else _MERGED_KEYWORDS | {"oneOf"}
        rewritten = {key: self._rewrite_keyword(key, schema[key], merged=merged and key in into) for key in kept}
        return rewritten if tag is None else {**rewritten, "required": [tag]}

    def _rewrite_keyword(self, key: str, value: Any, *, merged: bool) -> Any:
        if key == "$ref":
            return self._rewrite_reference(value, merged=merged)
        if key in _SCHEMA_MAPS and is_object(value):
            return {name: self._rewrite(one, merged=merged) for name, one in value.items()}
        if key in _SCHEMA_KEYWORDS and is_list(value):
            return [self._rewrite(one, merged=merged) for one in value]
        return self._rewrite(value, merged=merged) if key in _SCHEMA_KEYWORDS else value

    def _discriminator(self, schema: Mapping[str, Any]) -> str | None:
        """Return the field that selects a branch of `oneOf`; None if no field does."""
        match schema:
            case {"oneOf": branches, "discriminator": {"propertyName": str(tag)}} if is_list(branches):
                return tag if all(self._fixes_field(branch, tag) for branch in branches) else None
            case _:
                return None

    def _fixes_field(self, branch: Any, tag: str) -> bool:
        """True if the branch fixes the value of the field.

        Otherwise it could match together with another branch.
        """
        if is_object(branch) and "$ref" in branch:
            _, branch = self._resolve(branch["$ref"])
        match branch:
            case {"properties": {**fields}}:
                return is_object(fields.get(tag)) and not fields[tag].keys().isdisjoint({"const", "enum"})
            case _:
                return False

    def _rewrite_reference(self, reference: Any, *, merged: bool) -> str:
        path, target = self._resolve(reference)
        merged = merged and is_object(target) and "object" in target.get("type", "object")
        if (path, merged) not in self._names:
            self._names[path, merged] = name = self._new_name(path, merged=merged)
            self._definitions[name] = {}  # reserve the name first, because the target may refer to itself
            self._definitions[name] = self._rewrite(target, merged=merged)
        return f"#/$defs/{self._names[path, merged]}"

    def _resolve(self, reference: Any) -> tuple[Path, Any]:
        """Return path and value that a reference names."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _reference_error(reference)
        path = parse_pointer(unquote(reference[1:])) if reference != "#" else ()
        target: Any = self._schema if path is not None else None
        for key in path or ():
            if is_list(target) and key.isdecimal() and int(key) < len(target):
                target = target[int(key)]
            else:
                target = target.get(key) if is_object(target) else None
        if path is None or target is None:
            raise _reference_error(reference)
        return path, target

    def _new_name(self, path: Path, *, merged: bool) -> str:
        name = re.sub(r"\W+", "_", path[-1]) if path else "Root"
        name = f"Partial{name}" if merged else name
        while name in self._definitions:
            name += "_"
        return name


def _reference_error(reference: object) -> InvalidInput:
    return InvalidInput(
        field="schema", value=reference, expected="references into the schema itself, like #/$defs/Step"
    )
