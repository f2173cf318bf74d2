"""What a validator says of a state: pydantic's, or one of JSON Schema, with the same answer.

Both judge finished states. A pad is filled in step by step, so what they find is told apart here into what is wrong and
what is only lacking so far: whatever could still be added to an object, in no list, that updates are merged into. Of a
union it is enough that one alternative only lacks something. A validator is foreign code: it is handed objects of its
own, or reads ours without keeping them, and whatever it raises is an answer too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import getitem
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from inmind.core.frozen import frozen
from inmind.documents.scratchpad.paths import ABSENT, Path, format_path, is_list, is_object, value_at
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
    """A required field that is not there, or an object that has too few fields."""

    path: Path
    min_fields: int = 0
    """How many fields the object needs; 0 where it is the field itself that is not there."""

    def was_present(self, before: object) -> bool:
        """Was it there before? What never was is not missing yet."""
        held = value_at(before, self.path) if is_object(before) else ABSENT
        return is_object(held) and len(held) >= self.min_fields if self.min_fields else held is not ABSENT

    def parent_was_deleted(self, delete: Iterable[Path]) -> bool:
        """Is it lacking inside of something that was removed whole?"""
        outermost = len(self.path) + bool(
            self.min_fields
        )  # of too few fields, those that lack are inside of the object
        return any(len(gone) < outermost and self.path[: len(gone)] == gone for gone in delete)

    @property
    def reason(self) -> str:
        return (
            f"it needs {self.min_fields} fields or more" if self.min_fields else "it is required, and cannot be removed"
        )


@frozen
class ValidationResult:
    problems: Sequence[Problem] = ()
    missing: Sequence[MissingField] = ()
    """Known only where nothing is wrong. Of a union it is what all of those lack that only lack something."""


class Validator(Protocol):
    def validate(self, state: Mapping[str, Any]) -> ValidationResult: ...


class PydanticModel(Protocol):
    """What a pydantic model offers, as far as it is asked."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate_json(cls, json_data: bytes) -> object: ...


# -- pydantic ----------------------------------------------------------------------------------------------


@frozen
class ModelValidator:
    """Asks a pydantic model. It reads JSON, so a validator that keeps or changes what it is given has its own."""

    model: type[PydanticModel]

    def validate(self, state: Mapping[str, Any]) -> ValidationResult:
        from pydantic_core import ValidationError, to_json

        try:
            self.model.model_validate_json(to_json(state, fallback=dict))
        except ValidationError as error:
            return _classify_errors(
                [(one["loc"], one) for one in error.errors(include_url=False, include_input=False)], state
            )
        except Exception as error:  # a host's validator may raise anything
            return ValidationResult(problems=[Problem((), f"a validator raised {type(error).__name__}: {error}")])
        return ValidationResult()


def _classify_errors(
    errors: Iterable[tuple[ErrorPath, ErrorDetails]], held: Any, above: ErrorPath = ()
) -> ValidationResult:
    """What errors say of a value, by their locations from there on.

    Where there is a union, the location of an error goes on with a name for one of the alternatives.
    """
    wrong: list[Problem] = []
    lacking: list[MissingField] = []
    unions: dict[ErrorPath, dict[str | int, list[tuple[ErrorPath, ErrorDetails]]]] = {}
    for loc, error in errors:
        inside, beyond = _split_location(loc, held)
        is_missing = error["type"] == "missing"
        if len(beyond) > is_missing and beyond != _KEY_MARKER:
            unions.setdefault(inside, {}).setdefault(beyond[0], []).append((beyond[1:], error))
        elif (lack := _missing_field((*above, *loc), error)) is not None:
            lacking.append(lack)
        else:
            wrong.append(Problem((*above, *loc), error["msg"]))
    for inside, alternatives in unions.items():
        path = (*above, *inside)
        found = [_classify_errors(errors, reduce(getitem, inside, held), path) for errors in alternatives.values()]
        if begun := [one for one in found if not one.problems]:
            lacking += chain.from_iterable(one.missing for one in begun)
        else:
            wrong.append(_union_problem(path, [one.problems[0] for one in found]))
    return ValidationResult(wrong, lacking)


# What pydantic adds to the location of a value whose key it refuses, and we do for JSON Schema.
_KEY_MARKER = ("[key]",)


def _split_location(loc: ErrorPath, held: Any) -> tuple[ErrorPath, ErrorPath]:
    """How far a location leads in a value, and what of it names something else: an alternative, a missing field."""
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
    """Asks validators of JSON Schema, which read the state where it is, keep nothing of it and run nobody's code."""

    full: jsonschema_rs.Validator
    partial: jsonschema_rs.Validator
    """Of the same schema while a pad is being filled in."""

    def validate(self, state: Mapping[str, Any]) -> ValidationResult:
        if self.full.is_valid(state):
            return ValidationResult()
        wrong = [_problem(error, state) for error in self.partial.iter_errors(state)]
        if wrong:
            return ValidationResult(wrong)
        lacking = (_missing_fields(error, state) or () for error in self.full.iter_errors(state))
        return ValidationResult(missing=list(chain.from_iterable(lacking)))


def compile_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """A validator that fetches nothing. InvalidInput says what is wrong with a schema that is none."""
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
        expected = f"valid JSON Schema without references to elsewhere ({place}{problem.reason})"
        raise InvalidInput(field="schema", value=schema, expected=expected) from error


def _problem(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> Problem:
    """The path leads to the very field that is missing, or that nobody expects."""
    from jsonschema_rs import ValidationErrorKind as Kind

    path = _path(error, state)
    match error.kind:
        case Kind.Required(property=field):
            return Problem((*path, field), "it is required")
        case Kind.AdditionalProperties(unexpected=[field, *_]) | Kind.UnevaluatedProperties(unexpected=[field, *_]):
            return Problem((*path, field), "the schema has no such field")
        case Kind.AnyOf(context=alternatives) | Kind.OneOfNotValid(context=alternatives) if all(alternatives):
            return _union_problem(path, [_problem(errors[0], state) for errors in alternatives])
        case Kind.PropertyNames(error=refused):
            return Problem((*path, str(refused.instance), *_KEY_MARKER), refused.message)
        case _:
            return Problem(path, error.message)


def _missing_fields(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> list[MissingField] | None:
    """What would have to be added for an error to go away; None if adding is not enough."""
    from jsonschema_rs import ValidationErrorKind as Kind

    path = _path(error, state)
    match error.kind:
        case Kind.Required(property=field) if _is_mergeable(path):
            return [MissingField((*path, field))]
        case Kind.MinProperties(limit=fewest) if _is_mergeable(path):
            return [MissingField(path, fewest)]
        case Kind.AnyOf(context=alternatives) | Kind.OneOfNotValid(context=alternatives):
            found = ([_missing_fields(error, state) for error in errors] for errors in alternatives)
            begun = [lacks for each in found if None not in each for lacks in each if lacks]
            return list(chain.from_iterable(begun)) or None
        case _:
            return None


def _path(error: jsonschema_rs.ValidationError, state: Mapping[str, Any]) -> ErrorPath:
    """Where an error is. The library takes a key of digits for an index, and "007" for 7, so what is there decides."""
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


# -- either ------------------------------------------------------------------------------------------------


def _is_mergeable(path: ErrorPath) -> TypeGuard[Path]:
    """Lists are replaced whole: nobody adds anything to what is inside of one."""
    return all(isinstance(step, str) for step in path)


def _union_problem(path: ErrorPath, problems: Sequence[Problem]) -> Problem:
    """Why no alternative fits. One that fails further inside than all the others is the one that was meant."""
    inside = [problem for problem in problems if len(problem.path) > len(path)]
    if len(inside) == 1:
        return inside[0]
    reasons = (f"{format_path(one.path)}: {one.reason}" if one in inside else one.reason for one in problems)
    return Problem(path, " or ".join(dict.fromkeys(reasons)))
