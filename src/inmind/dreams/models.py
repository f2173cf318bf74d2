"""Models for dreams: OpenAI-compatible servers, Anthropic, or a function.

    OpenAICompatible("http://localhost:11434/v1", "qwen3")
    Anthropic("claude-sonnet-4-5")
    lambda prompt: my_model(prompt)

A model is optional; without one, nothing leaves the machine. It is called without holding a lock, so a slow model
blocks nothing else. Its answer is a proposal and is validated like any external input.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, runtime_checkable

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.http import HttpEndpoint, Json, RequestRefused, bearer, object_field, object_list, usage_tokens
from inmind.core.settings import ModelSettings
from inmind.errors import InvalidInput, ModelFailed, short_repr

__all__ = [
    "Anthropic",
    "FunctionModel",
    "Model",
    "ModelReply",
    "OpenAICompatible",
    "Question",
    "as_model",
    "model_from_settings",
]

ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_KEY_ENV, OPENAI_KEY_ENV = "ANTHROPIC_API_KEY", "OPENAI_API_KEY"


@frozen(kw_only=True)
class Question:
    """A single request to a model, without a conversation."""

    system: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer, for models that support one. The prompt describes the format too."""
    max_tokens: int = 4_096
    """Maximum tokens of the answer."""


@frozen(kw_only=True)
class ModelReply:
    """The answer of a model."""

    text: str
    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens, as reported by the model."""
    truncated: bool = False
    """True if the answer was cut at the token limit."""


@runtime_checkable
class Model(Protocol):
    """A language model that answers single questions.

    Implementations guarantee, with a test for each in tests/acceptance/test_models.py: an answer within `seconds` and
    of at most one megabyte, or ModelFailed; at most two retries of temporary errors; no API key in errors or `repr`.

    `inmind.dreams.models.as_model` wraps a function as a Model.
    """

    @property
    def name(self) -> str:
        """The name stored with a dream."""
        ...

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply: ...


@frozen
class ModelCost:
    """Tokens and price of calls."""

    tokens: tuple[int, int] = (0, 0)
    """Input and output tokens."""
    price: float = 0.0

    def __add__(self, other: ModelCost) -> ModelCost:
        read, written = (first + second for first, second in zip(self.tokens, other.tokens, strict=True))
        return ModelCost((read, written), self.price + other.price)


# The newer name of `max_tokens`. Servers that require it reject the older one.
_MAX_COMPLETION_TOKENS = "max_completion_tokens"


class OpenAICompatible:
    """A model of an OpenAI-compatible server.

    `url` is the part before `/chat/completions`. Without `key`, the environment variable `key_env` is used.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        key_env: str = OPENAI_KEY_ENV,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = HttpEndpoint(url=url, key=key, key_env=key_env or OPENAI_KEY_ENV, sleep=pause)
        self._model = model
        self.name = f"openai:{model}"

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._server.url!r}, {self._model!r})"

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        deadline = time.monotonic() + seconds
        formats, limit_field = _response_formats(question), "max_tokens"
        while True:
            body = {
                "model": self._model,
                "messages": [
                    {"role": "system", "content": question.system},
                    {"role": "user", "content": question.prompt},
                ],
                limit_field: question.max_tokens,
                **formats[0],
            }
            try:
                seconds = deadline - time.monotonic()
                answer = self._server.request("chat/completions", body, headers=bearer, seconds=seconds)
                return _parse_openai_reply(answer)
            except RequestRefused as error:
                if error.status not in (400, 422):
                    raise
                if limit_field != _MAX_COMPLETION_TOKENS and _MAX_COMPLETION_TOKENS in error.body:
                    limit_field = _MAX_COMPLETION_TOKENS
                elif len(formats) > 1:
                    formats = formats[1:]
                else:
                    raise


def _response_formats(question: Question) -> list[Json]:
    """Response formats, strictest first. Servers differ in what they support."""
    if question.schema is None:
        return [{}]
    strict = {"name": "answer", "strict": True, "schema": question.schema}
    kinds: list[Json] = [{"type": "json_schema", "json_schema": strict}, {"type": "json_object"}]
    return [*({"response_format": kind} for kind in kinds), {}]


def _parse_openai_reply(answer: Json) -> ModelReply:
    [choice, *_] = [*object_list(answer, "choices"), Json()]
    message = object_field(choice, "message")
    finish_reason = choice.get("finish_reason")
    if refusal := message.get("refusal"):
        raise ModelFailed(reason=f"the model refused: {short_repr(refusal)}")
    if finish_reason == "content_filter":
        raise ModelFailed(reason="the provider filtered the answer")
    return ModelReply(
        text=_text(message.get("content"), answer),
        tokens=usage_tokens(answer, ("prompt_tokens",), ("completion_tokens",)),
        truncated=finish_reason == "length",
    )


def _text(content: object, answer: Json) -> str:
    """The text of a message, which may be a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in object_list({"content": content}, "content")]
    if not any(isinstance(part, str) for part in parts):
        raise ModelFailed(reason=f"the response has no text, only {short_repr(sorted(answer))}")
    return "".join(part for part in parts if isinstance(part, str))


_ANSWER_TOOL: Final = "answer"


class Anthropic:
    """A model of the Anthropic API.

    `url` is the part before `/v1/messages`. Without `key`, the environment variable `key_env` is used.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = ANTHROPIC_URL,
        key: str | None = None,
        key_env: str = ANTHROPIC_KEY_ENV,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = HttpEndpoint(
            url=url or ANTHROPIC_URL, key=key, key_env=key_env or ANTHROPIC_KEY_ENV, sleep=pause
        )
        self._model = model
        self.name = f"anthropic:{model}"

    def __repr__(self) -> str:
        return f"Anthropic({self._model!r}, url={self._server.url!r})"

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        body: Json = {
            "model": self._model,
            "max_tokens": question.max_tokens,
            "system": question.system,
            "messages": [{"role": "user", "content": question.prompt}],
        }
        if question.schema is not None:
            tool = {"name": _ANSWER_TOOL, "description": "Gives the answer.", "input_schema": question.schema}
            body |= {"tools": [tool], "tool_choice": {"type": "tool", "name": _ANSWER_TOOL}}
        return _parse_anthropic_reply(
            self._server.request("v1/messages", body, headers=anthropic_headers, seconds=seconds)
        )


def anthropic_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


def _parse_anthropic_reply(answer: Json) -> ModelReply:
    stop_reason = answer.get("stop_reason")
    if stop_reason == "refusal":
        raise ModelFailed(reason="the model refused to answer")
    content = object_list(answer, "content")
    inputs = [to_json(part["input"]) for part in content if part.get("type") == "tool_use" and "input" in part]
    texts = [text for part in content if part.get("type") == "text" and isinstance(text := part.get("text"), str)]
    if not inputs and not texts:
        raise ModelFailed(reason=f"the response has no text, only {short_repr(sorted(answer))}")
    input_fields = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return ModelReply(
        text=inputs[0] if inputs else "".join(texts),
        tokens=usage_tokens(answer, input_fields, ("output_tokens",)),
        truncated=stop_reason == "max_tokens",
    )


class FunctionModel:
    """Calls a function with the question as one text.

    It returns a text, or a `ModelReply`, which also has the token counts. Its time is not limited: a function cannot be
    stopped from outside.
    """

    def __init__(self, function: Callable[[str], str | ModelReply], *, name: str = "") -> None:
        self._function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- see above
        answer: Any = self._function(f"{question.system}\n\n{question.prompt}")
        match answer:
            case ModelReply():
                return answer
            case str():
                return ModelReply(text=answer)
            case Coroutine():
                answer.close()  # otherwise Python warns that it was never awaited
                raise ModelFailed(reason=f"{self.name} is asynchronous: pass a synchronous function")
            case _:
                raise ModelFailed(reason=f"{self.name} returned {type(answer).__name__} instead of a text")


def as_model(model: Model | Callable[[str], str | ModelReply] | None) -> Model | None:
    """Return the Model for a host's argument: a Model, a function, or None."""
    if model is None or isinstance(model, Model):
        return model
    if callable(model) and not isinstance(model, type):
        return FunctionModel(model)
    expected = "OpenAICompatible(…), Anthropic(…), a function from a prompt to an answer, or None"
    raise InvalidInput(field="model", value=model, expected=expected)


def model_from_settings(settings: ModelSettings) -> Model | None:
    """The model named in the settings, or None."""
    if not settings.name:
        return None
    if settings.provider == "anthropic":
        return Anthropic(settings.name, url=settings.url, key_env=settings.key_env)
    if not settings.url:
        expected = 'the address of a server, like "http://localhost:11434/v1"'
        raise InvalidInput(field="settings.model.url", value=settings.url, expected=expected)
    return OpenAICompatible(settings.url, settings.name, key_env=settings.key_env)
