"""The schema of a scratchpad: a pydantic model or JSON Schema given by the host.

A scratchpad and its objects are filled in step by step. A field that was never set is not missing yet; a required field
that is set cannot be removed, except together with the object that contains it, which then starts empty like a new
scratchpad. A value that contradicts the schema is always refused. The merged values are stored, not the validator's
output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeGuard

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.documents.scratchpad.partial_schema import partial_schema
from inmind.documents.scratchpad.paths import Path, format_path, is_object
from inmind.documents.scratchpad.unknown_fields import find_unknown_fields
from inmind.documents.scratchpad.validators import (
    JsonSchemaValidator,
    ModelValidator,
    Problem,
    PydanticModel,
    Validator,
    compile_validator,
)
from inmind.errors import InvalidInput, SchemaViolation

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
        unknown = find_unknown_fields(values, self.fields) if self.fields is not None else ()
        problems = [Problem(one.path, f"unknown field, expected one of {', '.join(one.known)}") for one in unknown]
        if problems:
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
    try:
        fields: Mapping[str, Any] | None = None
        if _is_model(schema):
            partial = fields = partial_schema(_as_json(_json_schema(schema)))
            validator: Validator = ModelValidator(schema)
        elif is_object(schema):
            written = _as_json(schema)
            full = compile_validator(written)
            partial = partial_schema(written)
            validator = JsonSchemaValidator(full, compile_validator(partial))
        else:
            raise InvalidInput(field="schema", value=schema, expected="a pydantic model or JSON Schema")
    except RecursionError as error:
        raise InvalidInput(field="schema", value=schema, expected="a schema that is nested less deeply") from error
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


def _is_model(schema: object) -> TypeGuard[type[PydanticModel]]:
    return isinstance(schema, type) and hasattr(schema, "model_json_schema") and hasattr(schema, "model_validate_json")


def _json_schema(model: type[PydanticModel]) -> Mapping[str, Any]:
    try:
        return model.model_json_schema()
    except Exception as error:  # types of the host may raise anything
        expected = f"a model that can be written as JSON Schema ({type(error).__name__}: {error})"
        raise InvalidInput(field="schema", value=model, expected=expected) from error


def _as_json(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy that the host cannot modify."""
    try:
        return json.loads(to_json(schema).encode(), parse_constant=_refuse_constant)
    except (TypeError, ValueError) as error:
        raise InvalidInput(field="schema", value=schema, expected=f"JSON ({error})") from error


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not valid JSON")


def _violation(problems: Sequence[Problem]) -> SchemaViolation:
    """Return an error with the first problem and the number of others."""
    first, *others = problems
    reason = (
        first.reason if len(first.reason) <= _MAX_REASON_CHARACTERS else f"{first.reason[:_MAX_REASON_CHARACTERS]}…"
    )
    return SchemaViolation(
        path=format_path(first.path), reason=f"{reason} (and {len(others)} more)" if others else reason
    )
