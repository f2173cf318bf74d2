"""A function as a model: a host's own, of any library, or a script in a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

from inmind.core.encoding import to_json
from inmind.dreams.model import ModelReply, Question
from inmind.errors import InmindError, ModelFailed


class FunctionModel:
    """Asked with all of the question as one text, or with the `Question` where its first parameter is annotated so.

    It may answer with a text, with the JSON itself as a mapping, or with a `Reply`, which also tells what it cost. How
    long it takes is its own affair: nothing can end a function from outside.
    """

    def __init__(self, function: Callable[..., Any], *, name: str = "") -> None:
        self._function = function
        self._takes_question = _takes_question(function)
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"Called({self.name!r})"

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- see above
        answer = self._call(question if self._takes_question else f"{question.system}\n\n{question.prompt}")
        match answer:
            case ModelReply():
                return answer
            case str():
                return ModelReply(text=answer)
            case Mapping():
                return ModelReply(text=self._to_json(cast("Mapping[str, Any]", answer)))
            case Coroutine():
                answer.close()  # or Python warns of one that nobody awaited
                raise self._failed("is asynchronous, and a function is needed that answers")
            case _:
                raise self._failed(f"answered with {type(answer).__name__}, and not with a text")

    def _call(self, asked: Question | str) -> object:
        try:
            return self._function(asked)
        except InmindError:
            raise
        except Exception as error:  # a foreign model may raise anything
            raise self._failed(f"raised {type(error).__name__}: {error}") from error

    def _to_json(self, answer: Mapping[str, Any]) -> str:
        try:
            return to_json(dict(answer))
        except (TypeError, ValueError, RecursionError) as error:
            raise self._failed(f"answered with something that JSON does not know ({error})") from error

    def _failed(self, what: str) -> ModelFailed:
        return ModelFailed(reason=f"{self.name} {what}")


def _takes_question(function: Callable[..., Any]) -> bool:
    """By its annotation alone: who says nothing gets a text, which every model takes."""
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):  # something built in, whose parameters nobody knows
        return False
    return first is not None and first.annotation in (
        Question,
        "Question",
        "models.Question",
        "inmind.dreams.models.Question",
    )
