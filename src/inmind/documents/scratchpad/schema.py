"""The schema of a scratchpad: a pydantic model or JSON Schema given by the host.

A scratchpad and its objects are filled in step by step. A field that was never set is not missing yet; a required field
that is set cannot be removed, except together with the object that contains it, which then starts empty like a new
scratchpad. A value that contradicts the schema is always refused. The merged values are stored, not the validator's
output.

So objects that updates are merged into lose their required fields in the schema of an update. Objects inside lists keep
them, because a list is replaced as a whole and items are never completed later. `oneOf`, `not` and `if` are kept as
they are: with fewer required fields a wrong branch could match. The exception is a `oneOf` with a discriminator, as
pydantic writes tagged unions: only its tag is required. The result is self-contained, as model providers require: every
reference leads to its own `$defs`.

Pydantic ignores unknown fields. Merged into a scratchpad they would stay in every prompt, and the caller would see a
success. So only the fields of a model are accepted, unless it allows extra ones. JSON Schema states this itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from inmind.core.frozen import frozen
from inmind.core.json import copy_json_value
from inmind.documents.scratchpad.validators import (
    ErrorPath,
    JsonSchemaValidator,
    ModelValidator,
    Problem,
    PydanticModel,
    Validator,
    compile_validator,
)
from inmind.documents.scratchpad.values import Path, format_path, is_list, is_object, parse_pointer, value_at
from inmind.errors import InvalidInput, SchemaViolation

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


_UNIONS = ("anyOf", "oneOf", "allOf")
_ADDITIONAL = "additionalProperties"
_PATTERN_FIELDS = "patternProperties"
_OBJECT_KEYWORDS = frozenset({"properties", _ADDITIONAL, _PATTERN_FIELDS})


def find_unknown_fields(values: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield unknown fields, by the JSON Schema of a model with self-contained references."""
    return _find_unknown(values, [schema], schema, ())


def _find_unknown(value: Any, schemas: Sequence[Any], root: Mapping[str, Any], path: ErrorPath) -> Iterator[Problem]:
    """`schemas`: alternatives for the value. A field known to one of them is known."""
    # Each alternative once: nested unions would otherwise multiply.
    alternatives = list({id(one): one for schema in schemas for one in _alternatives(schema, root)}.values())
    if is_list(value):
        for place, item in enumerate(value):
            yield from _find_unknown(item, [_item_schema(one, place) for one in alternatives], root, (*path, place))
    elif is_object(value) and alternatives:
        objects = [one for one in alternatives if not _OBJECT_KEYWORDS.isdisjoint(one)]
        if any(one.get("type", "object") == "object" for one in alternatives if one not in objects):
            return  # one of them does not restrict the keys
        known = {name: None for one in objects for name in one.get("properties", ())}
        others = [one[_ADDITIONAL] for one in objects if one.get(_ADDITIONAL, False) is not False]
        others += [other for one in objects for other in one.get(_PATTERN_FIELDS, {}).values()]
        for key, inner in value.items():
            fields = [one["properties"][key] for one in objects if key in one.get("properties", ())]
            if fields or others:
                yield from _find_unknown(inner, [*fields, *filter(is_object, others)], root, (*path, key))
            else:
                yield Problem((*path, key), f"unknown field, expected one of {', '.join(known)}")


def _alternatives(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if not is_object(schema):
        return
    if "$ref" in schema:
        yield from _alternatives(value_at(root, parse_pointer(schema["$ref"].removeprefix("#")) or ()), root)
    elif union := [one for key in _UNIONS for one in schema.get(key, ())]:
        for one in union:
            yield from _alternatives(one, root)
    else:
        yield schema


def _item_schema(schema: Mapping[str, Any], place: int) -> Any:
    """Schema of the list item at this index."""
    first = schema.get("prefixItems", ())
    return first[place] if place < len(first) else schema.get("items")


_MAX_REASON_CHARACTERS = 300


@frozen
class ScratchpadSchema:
    """A compiled schema."""

    parameters: Mapping[str, Any]
    """JSON Schema of a model's update: any of the fields, and the paths to remove."""
    delete_key: str
    """Name of the parameter with the paths to remove."""
    validator: Validator
    fields: Mapping[str, Any] | None = None
    """JSON Schema of a pydantic model, whose fields are the only ones allowed; None if the host passed JSON Schema."""

    def check_known_fields(self, values: Mapping[str, Any]) -> None:
        """Raise SchemaViolation if a field is unknown."""
        if self.fields is not None and (problems := list(find_unknown_fields(values, self.fields))):
            raise _violation(problems)

    def check(self, state: Mapping[str, Any], before: object, delete: Sequence[Path] = ()) -> None:
        """Raise SchemaViolation unless the state may follow the previous one after these deletions."""
        validation = self.validator.validate(state)
        removed = dict.fromkeys(
            field
            for field in validation.missing
            if state and field.was_present(before) and not field.parent_was_deleted(delete)
        )
        if problems := validation.problems or [Problem(field.path, field.reason) for field in removed]:
            raise _violation(problems)

    def mismatch_reason(self, state: object) -> str:
        """Return why a saved state does not match the schema; empty if it does."""
        if not is_object(state):
            return "it is a text, and the schema describes an object"
        problems = self.validator.validate(state).problems
        if not problems:
            return ""
        violation = _violation(problems)
        return f"{violation.path}: {violation.reason}" if violation.path else violation.reason


def compile_schema(schema: object) -> ScratchpadSchema:
    """Compile a host's schema; raises InvalidInput with the reason if it is not usable."""
    fields: Mapping[str, Any] | None = None
    if isinstance(schema, type) and hasattr(schema, "model_json_schema") and hasattr(schema, "model_validate_json"):
        model = cast(type[PydanticModel], schema)
        partial = fields = partial_schema(copy_json_value(_json_schema(model), "schema"))
        validator: Validator = ModelValidator(model)
    elif is_object(schema):
        written = copy_json_value(schema, "schema")  # the host cannot modify a copy
        full = compile_validator(written)
        partial = partial_schema(written)
        validator = JsonSchemaValidator(full, compile_validator(partial))
    else:
        raise InvalidInput(field="schema", value=schema, expected="a pydantic model or JSON Schema")
    if partial.get("type") != "object":
        raise InvalidInput(field="schema", value=schema, expected="a schema with type: object at its root")
    names = partial.get("properties", {})
    delete_key = next((key for key in _DELETE_KEYS if key not in names), None)
    if delete_key is None:
        expected = f"a schema without a field named {' or '.join(_DELETE_KEYS)}"
        raise InvalidInput(field="schema", value=list(names), expected=expected)
    parameters = {key: value for key, value in partial.items() if key != "$schema"}
    parameters["properties"] = {**names, delete_key: _DELETE}
    return ScratchpadSchema(parameters, delete_key, validator, fields)


_DELETE_KEYS = ("delete", "delete_paths")
_DELETE = {"type": "array", "items": {"type": "string"}, "description": "Paths of fields to remove, like owner.name."}


def _json_schema(model: type[PydanticModel]) -> Mapping[str, Any]:
    try:
        return model.model_json_schema()
    except Exception as error:  # types of the host may raise anything
        expected = f"a model that can be written as JSON Schema ({type(error).__name__}: {error})"
        raise InvalidInput(field="schema", value=model, expected=expected) from error


def _violation(problems: Sequence[Problem]) -> SchemaViolation:
    """Return an error with the first problem and the number of others."""
    first, *others = problems
    reason = first.reason[:_MAX_REASON_CHARACTERS] + ("…" if len(first.reason) > _MAX_REASON_CHARACTERS else "")
    return SchemaViolation(
        path=format_path(first.path), reason=f"{reason} (and {len(others)} more)" if others else reason
    )
