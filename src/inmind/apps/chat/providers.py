"""Differences between the two chat protocols: paths, request body, and streamed text.

Everything else is in `core.messages`, which reads a stream like a whole reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.http import Json, bearer, object_field, object_list
from inmind.dreams.models.anthropic import auth_headers
from inmind.prompt.report import Prompt


@frozen
class StreamPiece:
    """Text that one event of a stream adds."""

    text: str = ""
    reasoning: str = ""
    """Visible reasoning of the model."""


@frozen(kw_only=True)
class ChatProtocol:
    """One protocol. `body` takes the model, the prompt and the reserved output tokens."""

    format: str
    reply_path: str
    """Path for replies, below the URL of the endpoint."""
    models_path: str
    """Path of the list of models."""
    headers: Callable[[str], Mapping[str, str]]
    body: Callable[[str, Prompt, int], Json]
    piece: Callable[[Json], StreamPiece]
    is_end: Callable[[Json], bool]
    """True for an event with the reason why the reply ends."""
    tool: Callable[[str, str, Json], Json]
    """Declaration of a tool from its name, description and parameter schema."""


def _openai_body(model: str, prompt: Prompt, _: int) -> Json:
    return {"model": model, **prompt.request, "stream": True, "stream_options": {"include_usage": True}}


def _openai_piece(event: Json) -> StreamPiece:
    [choice, *_] = [*object_list(event, "choices"), Json()]
    delta = object_field(choice, "delta")
    text = _text(delta, "content") or _text(delta, "refusal")
    return StreamPiece(text, _text(delta, "reasoning_content") or _text(delta, "reasoning"))


def _openai_is_end(event: Json) -> bool:
    return any(choice.get("finish_reason") for choice in object_list(event, "choices"))


def _anthropic_body(model: str, prompt: Prompt, reserve: int) -> Json:
    return {"model": model, "max_tokens": reserve, **prompt.request, "stream": True}


def _anthropic_piece(event: Json) -> StreamPiece:
    if event.get("type") != "content_block_delta":
        return StreamPiece()
    delta = object_field(event, "delta")
    return StreamPiece(_text(delta, "text"), _text(delta, "thinking"))


def _anthropic_is_end(event: Json) -> bool:
    return bool(object_field(event, "delta").get("stop_reason"))


def _openai_tool(name: str, description: str, parameters: Json) -> Json:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _anthropic_tool(name: str, description: str, parameters: Json) -> Json:
    return {"name": name, "description": description, "input_schema": parameters}


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


PROVIDERS: Mapping[str, ChatProtocol] = {
    "openai": ChatProtocol(
        format="openai",
        reply_path="chat/completions",
        models_path="models",
        headers=bearer,
        body=_openai_body,
        piece=_openai_piece,
        is_end=_openai_is_end,
        tool=_openai_tool,
    ),
    "anthropic": ChatProtocol(
        format="anthropic",
        reply_path="v1/messages",
        models_path="v1/models",
        headers=auth_headers,
        body=_anthropic_body,
        piece=_anthropic_piece,
        is_end=_anthropic_is_end,
        tool=_anthropic_tool,
    ),
}
