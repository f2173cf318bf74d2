"""Client for the Anthropic Messages API. A required tool enforces the schema."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from inmind.core.encoding import to_json
from inmind.core.http import HttpEndpoint, Json, object_list, usage_tokens
from inmind.dreams.model import ModelReply, Question
from inmind.errors import ModelFailed, short_repr

KEY_ENV = "ANTHROPIC_API_KEY"
DEFAULT_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"

_ANSWER_TOOL: Final = "answer"


class Anthropic:
    """A model of the Anthropic API.

    `url` is the part before `/v1/messages`. Without `key`, the environment variable `key_env` is used.
    """

    def __init__(
        self,
        model: str,
        *,
        url: str = DEFAULT_URL,
        key: str | None = None,
        key_env: str = KEY_ENV,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = HttpEndpoint(url=url or DEFAULT_URL, key=key, key_env=key_env or KEY_ENV, sleep=pause)
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
        return _parse_reply(self._server.request("v1/messages", body, headers=auth_headers, seconds=seconds))


def auth_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}


def _parse_reply(answer: Json) -> ModelReply:
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
