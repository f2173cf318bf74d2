"""Client for OpenAI-compatible chat completions: OpenAI, llama.cpp, Ollama, vLLM."""

from __future__ import annotations

import time
from collections.abc import Callable

from inmind.core.http import HttpEndpoint, Json, RequestRefused, bearer, object_field, object_list, usage_tokens
from inmind.dreams.model import ModelReply, Question
from inmind.errors import ModelFailed, short_repr

KEY_ENV = "OPENAI_API_KEY"

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
        key_env: str = KEY_ENV,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = HttpEndpoint(url=url, key=key, key_env=key_env or KEY_ENV, sleep=pause)
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
                "messages": _messages(question),
                limit_field: question.max_tokens,
                **formats[0],
            }
            try:
                return _parse_reply(self._post(body, deadline - time.monotonic()))
            except RequestRefused as error:
                if error.status not in (400, 422):
                    raise
                if limit_field != _MAX_COMPLETION_TOKENS and _MAX_COMPLETION_TOKENS in error.body:
                    limit_field = _MAX_COMPLETION_TOKENS
                elif len(formats) > 1:
                    formats = formats[1:]
                else:
                    raise

    def _post(self, body: Json, seconds: float) -> Json:
        return self._server.request("chat/completions", body, headers=bearer, seconds=seconds)


def _messages(question: Question) -> list[Json]:
    return [{"role": "system", "content": question.system}, {"role": "user", "content": question.prompt}]


def _response_formats(question: Question) -> list[Json]:
    """Response formats, strictest first. Servers differ in what they support."""
    if question.schema is None:
        return [{}]
    strict = {"name": "answer", "strict": True, "schema": question.schema}
    kinds: list[Json] = [{"type": "json_schema", "json_schema": strict}, {"type": "json_object"}]
    return [*({"response_format": kind} for kind in kinds), {}]


def _parse_reply(answer: Json) -> ModelReply:
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
