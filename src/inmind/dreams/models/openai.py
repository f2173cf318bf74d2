"""Whatever speaks OpenAI's chat completions: a provider's server, or llama.cpp, Ollama, vLLM and their kin at home."""

from __future__ import annotations

import time
from collections.abc import Callable

from inmind.core.http import Json, Refused, Server, bearer
from inmind.dreams.model import ModelReply, Question
from inmind.dreams.models.response import count_tokens, object_field, object_list
from inmind.errors import ModelFailed, short_repr

KEY_ENV = "OPENAI_API_KEY"

# What bounds an answer has a newer name, and those who want it refuse the older one.
_MAX_COMPLETION_TOKENS = "max_completion_tokens"


class OpenAICompatible:
    """`url` ends where `/chat/completions` would follow. Without `key`, what the variable `key_env` holds is sent."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        key_env: str = KEY_ENV,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = Server(url=url, key=key, key_env=key_env or KEY_ENV, pause=pause)
        self._model = model
        self.name = f"openai:{model}"

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._server.url!r}, {self._model!r})"

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        until = time.monotonic() + seconds
        forms, bound = _response_formats(question), "max_tokens"
        while True:
            body = {"model": self._model, "messages": _messages(question), bound: question.max_tokens, **forms[0]}
            try:
                return _parse_reply(self._post(body, until - time.monotonic()))
            except Refused as error:
                if error.status not in (400, 422):
                    raise
                if bound != _MAX_COMPLETION_TOKENS and _MAX_COMPLETION_TOKENS in error.said:
                    bound = _MAX_COMPLETION_TOKENS
                elif len(forms) > 1:
                    forms = forms[1:]
                else:
                    raise

    def _post(self, body: Json, seconds: float) -> Json:
        return self._server.ask("chat/completions", body, headers=bearer, seconds=seconds)


def _messages(question: Question) -> list[Json]:
    return [{"role": "system", "content": question.system}, {"role": "user", "content": question.prompt}]


def _response_formats(question: Question) -> list[Json]:
    """How the answer is to be, the strictest first: servers differ in what they can hold a model to."""
    if question.schema is None:
        return [{}]
    strict = {"name": "answer", "strict": True, "schema": question.schema}
    kinds: list[Json] = [{"type": "json_schema", "json_schema": strict}, {"type": "json_object"}]
    return [*({"response_format": kind} for kind in kinds), {}]


def _parse_reply(answer: Json) -> ModelReply:
    [choice, *_] = [*object_list(answer, "choices"), Json()]
    message = object_field(choice, "message")
    ended = choice.get("finish_reason")
    if refusal := message.get("refusal"):
        raise ModelFailed(reason=f"it refused: {short_repr(refusal)}")
    if ended == "content_filter":
        raise ModelFailed(reason="its answer was filtered by its provider")
    return ModelReply(
        text=_text(message.get("content"), answer),
        tokens=count_tokens(answer, ("prompt_tokens",), ("completion_tokens",)),
        truncated=ended == "length",
    )


def _text(content: object, answer: Json) -> str:
    """A text, or parts of which some are."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in object_list({"content": content}, "content")]
    if not any(isinstance(part, str) for part in parts):
        raise ModelFailed(reason=f"it answered without a text, with {short_repr(sorted(answer))}")
    return "".join(part for part in parts if isinstance(part, str))
