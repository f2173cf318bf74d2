"""The schema of a scratchpad, as a host gives it: a pydantic model, or JSON Schema.

A pad is filled in step by step, and so is every object in it. What was never there is not missing yet; what is
required and there is not removed, unless what it stands in is: an object that was removed whole begins anew, and so
does an empty pad. What contradicts the schema is refused at any time. What is stored is what was merged, not what a
validator made of it.
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
    """A schema that can be asked."""

    parameters: Mapping[str, Any]
    """JSON Schema of a model's update: any of the fields, and the paths of those to remove."""
    delete_key: str
    """What these paths are called there, beside the schema's own fields."""
    validator: Validator
    fields: Mapping[str, Any] | None = None
    """JSON Schema of a model whose fields are all that there are; None where the schema itself says that."""

    def check_known_fields(self, values: Mapping[str, Any]) -> None:
        """Raise SchemaViolation if something is sent that has no place in a state."""
        unknown = find_unknown_fields(values, self.fields) if self.fields is not None else ()
        problems = [Problem(one.path, f"there is no such field, only {', '.join(one.known)}") for one in unknown]
        if problems:
            raise _violation(problems)

    def check(self, state: Mapping[str, Any], before: object, delete: Sequence[Path] = ()) -> None:
        """Raise SchemaViolation unless the state may take the place of the one before, less what was deleted of it."""
        found = self.validator.validate(state)
        gone = dict.fromkeys(
            lack for lack in found.missing if state and lack.was_present(before) and not lack.parent_was_deleted(delete)
        )
        if problems := found.problems or [Problem(lack.path, lack.reason) for lack in gone]:
            raise _violation(problems)

    def mismatch_reason(self, state: object) -> str:
        """Why nobody can go on from this state; empty if they can."""
        if not is_object(state):
            return "it is a text, and the schema describes an object"
        wrong = self.validator.validate(state).problems
        if not wrong:
            return ""
        violation = _violation(wrong)
        return f"{violation.path}: {violation.reason}" if violation.path else violation.reason


def compile_schema(schema: object) -> ScratchpadSchema:
    """The shape that a host's schema describes. InvalidInput says what is wrong, and where, if it describes none."""
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
        expected = f"fields that leave one name free for what to remove: {' or '.join(_DELETE_KEYS)}"
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
    except Exception as error:  # a host's own types may raise anything
        expected = f"a model that can be written as JSON Schema ({type(error).__name__}: {error})"
        raise InvalidInput(field="schema", value=model, expected=expected) from error


def _as_json(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy, so that nobody changes it later."""
    try:
        return json.loads(to_json(schema).encode(), parse_constant=_refuse_constant)
    except (TypeError, ValueError) as error:
        raise InvalidInput(field="schema", value=schema, expected=f"JSON ({error})") from error


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number there")


def _violation(problems: Sequence[Problem]) -> SchemaViolation:
    """The first problem, and how many there are besides."""
    first, *others = problems
    reason = (
        first.reason if len(first.reason) <= _MAX_REASON_CHARACTERS else f"{first.reason[:_MAX_REASON_CHARACTERS]}…"
    )
    return SchemaViolation(
        path=format_path(first.path), reason=f"{reason} (and {len(others)} more)" if others else reason
    )
