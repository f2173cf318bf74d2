"""A function as a model, for any client library or for a test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

from inmind.core.encoding import to_json
from inmind.dreams.model import ModelReply, Question
from inmind.errors import InmindError, ModelFailed


class FunctionModel:
    """Calls a function with the question as one text.

    If the first parameter is annotated as `Question`, the function gets the Question instead. It may return a text, the
    JSON as a mapping, or a `ModelReply`, which also has the token counts. Its time is not limited: a function cannot be
    stopped from outside.
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
                answer.close()  # otherwise Python warns that it was never awaited
                raise self._error("is asynchronous: pass a synchronous function")
            case _:
                raise self._error(f"returned {type(answer).__name__} instead of a text")

    def _call(self, argument: Question | str) -> object:
        try:
            return self._function(argument)
        except InmindError:
            raise
        except Exception as error:  # a host's function may raise anything
            raise self._error(f"raised {type(error).__name__}: {error}") from error

    def _to_json(self, answer: Mapping[str, Any]) -> str:
        try:
            return to_json(dict(answer))
        except (TypeError, ValueError, RecursionError) as error:
            raise self._error(f"returned a value that cannot be encoded as JSON ({error})") from error

    def _error(self, problem: str) -> ModelFailed:
        return ModelFailed(reason=f"{self.name} {problem}")


def _takes_question(function: Callable[..., Any]) -> bool:
    """True if the first parameter is annotated as Question.

    Without an annotation a function gets a text.
    """
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):  # a builtin without a signature
        return False
    return first is not None and first.annotation in (
        Question,
        "Question",
        "models.Question",
        "inmind.dreams.models.Question",
    )
