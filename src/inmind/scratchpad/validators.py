"""What a validator says of a state: pydantic's, or one of JSON Schema, asked the same two questions.

Both judge finished states. A pad is filled in step by step, so what they find is told apart here into what is wrong and
what is only lacking so far. A validator is foreign code: it is handed objects of its own, or reads ours without keeping
them, and whatever it raises is an answer too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from inmind.errors import InvalidInput
from inmind.scratchpad.paths import is_list, is_object, spelt

if TYPE_CHECKING:
    import jsonschema_rs
    from pydantic_core import ErrorDetails

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    path: Steps
    reason: str


Demanded = Callable[[Sequence[Problem]], bool]
"""Does what is lacking count too? Asked only if something is, and nothing is wrong."""


class Validator(Protocol):
    def is_complete(self, state: Mapping[str, Any]) -> bool:
        """Does it have all that the schema asks for, and nothing wrong?"""
        ...

    def problems(self, state: Mapping[str, Any], demanded: Demanded) -> Sequence[Problem]:
        """What is wrong; where nothing is, what is lacking, if that is demanded."""
        ...


class Model(Protocol):
    """What a pydantic model offers, as far as it is asked."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate_json(cls, json_data: bytes) -> object: ...


# -- pydantic ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByModel:
    """Asks a pydantic model. It reads JSON, so a validator that keeps or changes what it is given has its own."""

    model: type[Model]

    def is_complete(self, state: Mapping[str, Any]) -> bool:
        wrong, lacking = self._found(state)
        return not wrong and not lacking

    def problems(self, state: Mapping[str, Any], demanded: Demanded) -> Sequence[Problem]:
        wrong, lacking = self._found(state)
        return lacking if lacking and not wrong and demanded(lacking) else wrong

    def _found(self, state: Mapping[str, Any]) -> tuple[Sequence[Problem], Sequence[Problem]]:
        from pydantic_core import ValidationError, to_json

        try:
            self.model.model_validate_json(to_json(state, fallback=dict))
        except ValidationError as error:
            return _told_apart(error.errors(include_url=False, include_context=False, include_input=False), state)
        except Exception as error:  # a host's validator may raise anything
            return [Problem((), f"a validator raised {type(error).__name__}: {error}")], []
        return [], []


def _told_apart(errors: Iterable[ErrorDetails], state: Mapping[str, Any]) -> tuple[list[Problem], list[Problem]]:
    """What is wrong, and what is lacking: a missing field of an object that stands in no list, and so is merged into.

    Of a union, pydantic says why each of its alternatives fails. It is enough that one of them only lacks something.
    """
    wrong: list[Problem] = []
    lacking: list[Problem] = []
    unions: dict[Steps, dict[str | int, list[ErrorDetails]]] = {}
    for error in errors:
        path, beyond = _parted(error["loc"], state)
        if len(beyond) > _is_missing(error):
            unions.setdefault(path, {}).setdefault(beyond[0], []).append(error)
        else:
            (lacking if _is_lacking(error) else wrong).append(Problem(error["loc"], error["msg"]))
    for path, alternatives in unions.items():
        begun = [errors for errors in alternatives.values() if all(map(_is_lacking, errors))]
        reasons = (_alternative(errors[0], path) for errors in begun or alternatives.values())
        (lacking if begun else wrong).append(Problem(path, " or ".join(reasons)))
    return wrong, lacking


def _parted(loc: Steps, state: Any) -> tuple[Steps, Steps]:
    """How far a location leads in the state, and what of it names something else: an alternative, a missing field."""
    for place, step in enumerate(loc):
        if is_object(state) and step in state:
            state = state[str(step)]
        elif is_list(state) and isinstance(step, int) and step < len(state):
            state = state[step]
        else:
            return loc[:place], loc[place:]
    return loc, ()


def _is_missing(error: ErrorDetails) -> bool:
    return error["type"] == "missing"


def _is_lacking(error: ErrorDetails) -> bool:
    return _is_missing(error) and not any(isinstance(step, int) for step in error["loc"])


def _alternative(error: ErrorDetails, path: Steps) -> str:
    return f"{spelt(error['loc'][len(path) :])}: {error['msg']}"


# -- JSON Schema -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BySchema:
    """Asks validators of JSON Schema, which read the state where it is, keep nothing of it and run nobody's code."""

    finished: jsonschema_rs.Validator
    begun: jsonschema_rs.Validator
    """Of the same schema while a pad is being filled in."""

    def is_complete(self, state: Mapping[str, Any]) -> bool:
        return self.finished.is_valid(state)

    def problems(self, state: Mapping[str, Any], demanded: Demanded) -> Sequence[Problem]:
        if self.finished.is_valid(state):
            return []
        wrong = [_problem(error) for error in self.begun.iter_errors(state)]
        if wrong or not demanded([]):
            return wrong
        return [_problem(error) for error in self.finished.iter_errors(state)]


def compiled(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """A validator that fetches nothing. InvalidInput says what is wrong with a schema that is none."""
    try:
        from jsonschema_rs import ValidationError, validator_for
    except ImportError as error:
        expected = 'a pydantic model, or JSON Schema after `pip install "inmind[schema]"`'
        raise InvalidInput(field="schema", value=schema, expected=expected) from error
    try:
        return validator_for(dict(schema), offline=True, mask="it")
    except ValidationError as error:
        problem = _problem(error)
        place = f"{spelt(problem.path)}: " if problem.path else ""
        expected = f"valid JSON Schema without references to elsewhere ({place}{problem.reason})"
        raise InvalidInput(field="schema", value=schema, expected=expected) from error


def _problem(error: jsonschema_rs.ValidationError) -> Problem:
    """The path leads to the very field that is missing, or that nobody expects."""
    from jsonschema_rs import ValidationErrorKind as Kind

    path = tuple(error.instance_path)
    match error.kind:
        case Kind.Required(property=field):
            return Problem((*path, field), "it is required")
        case Kind.AdditionalProperties(unexpected=[field, *_]) | Kind.UnevaluatedProperties(unexpected=[field, *_]):
            return Problem((*path, field), "the schema has no such field")
        case Kind.AnyOf(context=alternatives) | Kind.OneOfNotValid(context=alternatives) if all(alternatives):
            return _of_all(path, [_problem(errors[0]) for errors in alternatives])
        case _:
            return Problem(path, error.message)


def _of_all(path: Steps, problems: Sequence[Problem]) -> Problem:
    """Why no alternative fits. One that fails further inside than all the others is the one that was meant."""
    inside = [problem for problem in problems if len(problem.path) > len(path)]
    if len(inside) == 1:
        return inside[0]
    reasons = (f"{spelt(one.path)}: {one.reason}" if one in inside else one.reason for one in problems)
    return Problem(path, " or ".join(dict.fromkeys(reasons)))
