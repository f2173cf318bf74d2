"""Validation of a state by pydantic or JSON Schema, with one result type.

Validators judge finished states, but a scratchpad is filled in step by step. Their errors are split into problems and
missing fields: fields that a later update can still add to an object outside of lists. For a union it is enough if one
alternative only has missing fields. A validator is code of the host: it gets a copy, or reads without keeping, and any
exception it raises is a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import getitem
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from inmind.core.frozen import frozen
from inmind.documents.scratchpad.values import ABSENT, Path, format_path, is_list, is_object, value_at
from inmind.errors import InvalidInput

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic_core import ErrorDetails

ErrorPath = tuple[str | int, ...]


@frozen
class Problem:
    path: ErrorPath
    reason: str


@frozen
class MissingField:
    """A required field that is missing, or an object with too few fields."""

    path: Path
    min_fields: int = 0
    """Number of fields that the object needs; 0 if the field itself is missing."""

    def was_present(self, before: object) -> bool:
        """True if the previous state had it. A field that was never set is not missing yet."""
        held = value_at(before, self.path) if is_object(before) else ABSENT
        return is_object(held) and len(held) >= self.min_fields if self.min_fields else held is not ABSENT

    def parent_was_deleted(self, delete: Iterable[Path]) -> bool:
        """True if an object that contains it was deleted as a whole."""
        outermost = len(self.path) + bool(self.min_fields)  # with min_fields, the missing fields are inside the object
        return any(len(deleted) < outermost and self.path[: len(deleted)] == deleted for deleted in delete)

    @property
    def reason(self) -> str:
        return f"needs at least {self.min_fields} fields" if self.min_fields else "required, cannot be removed"


@frozen
class ValidationResult:
    problems: Sequence[Problem] = ()
    missing: Sequence[MissingField] = ()
    """Complete only without problems. For a union: the missing fields of all alternatives without problems."""


class Validator(Protocol):
    def validate(self, state: Mapping[str, Any]) -> ValidationResult: ...


class PydanticModel(Protocol):
    """The part of a pydantic model that is used."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate_json(cls, json_data: bytes) -> object: ...


# -- pydantic ----------------------------------------------------------------------------------------------


@frozen
class ModelValidator:
    """Validates with a pydantic model.

    It reads JSON, so a validator cannot keep or change the state.
    """

    model: type[PydanticModel]

    def validate(self, state: Mapping[str, Any]) -> ValidationResult:
        from pydantic_core import ValidationError, to_json

        try:
            self.model.model_validate_json(to_json(state, fallback=dict))
        except ValidationError as error:
            return _classify_errors(
                [(one["loc"], one) for one in error.errors(include_url=False, include_input=False)], state
            )
        except Exception as error:  # a validator of the host may raise anything
            return ValidationResult(problems=[Problem((), f"a validator raised {type(error).__name__}: {error}")])
        return ValidationResult()


def _classify_errors(
    errors: Iterable[tuple[ErrorPath, ErrorDetails]], held: Any, above: ErrorPath = ()
) -> ValidationResult:
    """Classify errors of a value by their locations relative to it.

    In a union, the location continues with the name of an alternative.
    """
    problems: list[Problem] = []
    missing_fields: list[MissingField] = []
    unions: dict[ErrorPath, dict[str | int, list[tuple[ErrorPath, ErrorDetails]]]] = {}
    for loc, error in errors:
        inside, beyond = _split_location(loc, held)
        is_missing = error["type"] == "missing"
        if len(beyond) > is_missing and beyond != _KEY_MARKER:
            unions.setdefault(inside, {}).setdefault(beyond[0], []).append((beyond[1:], error))
        elif (missing_field := _missing_field((*above, *loc), error)) is not None:
            missing_fields.append(missing_field)
        else:
            problems.append(Problem((*above, *loc), error["msg"]))
    for inside, alternatives in unions.items():
        path = (*above, *inside)
        results = [_classify_errors(errors, reduce(getitem, inside, held), path) for errors in alternatives.values()]
        if without_problems := [one for one in results if not one.problems]:
            missing_fields += chain.from_iterable(one.missing for one in without_problems)
        else:
            problems.append(_union_problem(path, [one.problems[0] for one in results]))
    return ValidationResult(problems, missing_fields)


# pydantic appends this to the location of a refused key; we do the same for JSON Schema.
_KEY_MARKER = ("[key]",)


def _split_location(loc: ErrorPath, held: Any) -> tuple[ErrorPath, ErrorPath]:
    """Split a location into the part that exists in the value, and the rest.

    The rest is an alternative of a union, or a missing field.
    """
    for place, step in enumerate(loc):
        if is_object(held) and step in held:
            held = held[str(step)]
        elif is_list(held) and isinstance(step, int) and step < len(held):
            held = held[step]
        else:
            return loc[:place], loc[place:]
    return loc, ()


def _missing_field(path: ErrorPath, error: ErrorDetails) -> MissingField | None:
    match error:
        case {"type": "missing"} if _is_mergeable(path):
            return MissingField(path)
        case {"type": "too_short", "ctx": {"field_type": "Dictionary", "min_length": fewest}} if _is_mergeable(path):
            return MissingField(path, fewest)
        case _:
            return None


# -- JSON Schema -------------------------------------------------------------------------------------------


@frozen
class JsonSchemaValidator:
    """Validates with JSON Schema.

    The library reads the state in place, keeps nothing and runs no host code.
    """

    full: jsonschema_rs.Validator
    partial: jsonschema_rs.Validator
    """Validator of the partial schema, for a state that is not finished."""

    def validate(self, state: Mapping[str, Any]) -> ValidationResult:
        if self.full.is_valid(state):
            return ValidationResult()
        problems = [_problem(error, state) for error in self.partial.iter_errors(state)]
        if problems:
            return ValidationResult(problems)
        fields = (_missing_fields(error, state) or () for error in self.full.iter_errors(state))
        return ValidationResult(missing=list(chain.from_iterable(fields)))


def compile_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return a validator that never fetches references.

    Raises InvalidInput for an invalid schema.
    """
    try:
        from jsonschema_rs import ValidationError, validator_for
    except ImportError as error:
        expected = 'a pydantic model, or JSON Schema after `pip install "inmind[schema]"`'
        raise InvalidInput(field="schema", value=schema, expected=expected) from error
    try:
        return validator_for(dict(schema), offline=True, mask="it")
    except ValidationError as error:
        problem = _problem(error, schema)
        place = f"{format_path(problem.path)}: " if problem.path else ""
        expected = f"valid JSON Schema without external references ({place}{problem.reason})"
        raise InvalidInput(field="schema", value=schema, expected=expected) from error


def _problem(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> Problem:
    """Return the problem with the path of the missing or unexpected field itself."""
    from jsonschema_rs import ValidationErrorKind as Kind

    path = _path(error, state)
    match error.kind:
        case Kind.Required(property=field):
            return Problem((*path, field), "required field is missing")
        case Kind.AdditionalProperties(unexpected=[field, *_]) | Kind.UnevaluatedProperties(unexpected=[field, *_]):
            return Problem((*path, field), "unknown field")
        case Kind.AnyOf(context=alternatives) | Kind.OneOfNotValid(context=alternatives) if all(alternatives):
            return _union_problem(path, [_problem(errors[0], state) for errors in alternatives])
        case Kind.PropertyNames(error=refused):
            return Problem((*path, str(refused.instance), *_KEY_MARKER), refused.message)
        case _:
            return Problem(path, error.message)


def _missing_fields(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> list[MissingField] | None:
    """Return the fields whose addition would fix the error; None if adding is not enough."""
    from jsonschema_rs import ValidationErrorKind as Kind

    path = _path(error, state)
    match error.kind:
        case Kind.Required(property=field) if _is_mergeable(path):
            return [MissingField((*path, field))]
        case Kind.MinProperties(limit=fewest) if _is_mergeable(path):
            return [MissingField(path, fewest)]
        case Kind.AnyOf(context=alternatives) | Kind.OneOfNotValid(context=alternatives):
            by_alternative = ([_missing_fields(error, state) for error in errors] for errors in alternatives)
            fixable = [fields for missing in by_alternative if None not in missing for fields in missing if fields]
            return list(chain.from_iterable(fixable)) or None
        case _:
            return None


def _path(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> ErrorPath:
    """Return the path of an error.

    The library reads a key of digits as an index ("007" as 7), so the state decides.
    """
    path: ErrorPath = ()
    held: Any = state
    for step in error.instance_path:
        if is_object(held):
            key = step if isinstance(step, str) else next((key for key in held if _is_number(key, step)), str(step))
            path, held = (*path, key), held.get(key)
        else:
            path, held = (*path, step), held[step] if is_list(held) and isinstance(step, int) else None
    return path


def _is_number(key: str, number: int) -> bool:
    return key.isdecimal() and key.lstrip("0") == str(number).lstrip("0")


# -- both --------------------------------------------------------------------------------------------------


def _is_mergeable(path: ErrorPath) -> TypeGuard[Path]:
    """True outside of lists, which are replaced as a whole."""
    return all(isinstance(step, str) for step in path)


def _union_problem(path: ErrorPath, problems: Sequence[Problem]) -> Problem:
    """Return why no alternative fits.

    An alternative that fails deeper than all others is the intended one.
    """
    inside = [problem for problem in problems if len(problem.path) > len(path)]
    if len(inside) == 1:
        return inside[0]
    reasons = (f"{format_path(one.path)}: {one.reason}" if one in inside else one.reason for one in problems)
    return Problem(path, " or ".join(dict.fromkeys(reasons)))
