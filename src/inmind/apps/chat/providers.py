"""How the two protocols differ that a chat is held in: where to ask, what to send, what of it is shown as it comes.

Everything else about them is in the formats and the replies, which read a stream as they read a whole reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.http import Json, bearer
from inmind.dreams.models.anthropic import auth_headers as by_anthropic
from inmind.dreams.models.response import object_field, object_list
from inmind.prompt.report import Prompt


@frozen
class Piece:
    """What one event adds to what a person sees."""

    text: str = ""
    thought: str = ""
    """What the model says to itself, where it lets others hear."""


@frozen(kw_only=True)
class Provider:
    """`body` is made of the model's name, the prompt, and the tokens that are kept free for its answer."""

    format: str
    replies: str
    """Where a reply is asked for, below the endpoint's address."""
    models: str
    """Where it lists its models."""
    headers: Callable[[str], Mapping[str, str]]
    body: Callable[[str, Prompt, int], Json]
    piece: Callable[[Json], Piece]
    ends: Callable[[Json], bool]
    """Does an event say why the answer ends here?"""
    tool: Callable[[str, str, Json], Json]
    """A tool as it is declared, out of its name, its description and the schema of its arguments."""


def _to_openai(model: str, prompt: Prompt, _: int) -> Json:
    return {"model": model, **prompt.request, "stream": True, "stream_options": {"include_usage": True}}


def _of_openai(event: Json) -> Piece:
    [choice, *_] = [*object_list(event, "choices"), Json()]
    delta = object_field(choice, "delta")
    said = _text(delta, "content") or _text(delta, "refusal")
    return Piece(said, _text(delta, "reasoning_content") or _text(delta, "reasoning"))


def _ends_openai(event: Json) -> bool:
    return any(choice.get("finish_reason") for choice in object_list(event, "choices"))


def _to_anthropic(model: str, prompt: Prompt, reserve: int) -> Json:
    return {"model": model, "max_tokens": reserve, **prompt.request, "stream": True}


def _of_anthropic(event: Json) -> Piece:
    if event.get("type") != "content_block_delta":
        return Piece()
    delta = object_field(event, "delta")
    return Piece(_text(delta, "text"), _text(delta, "thinking"))


def _ends_anthropic(event: Json) -> bool:
    return bool(object_field(event, "delta").get("stop_reason"))


def _function(name: str, description: str, parameters: Json) -> Json:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _tool(name: str, description: str, parameters: Json) -> Json:
    return {"name": name, "description": description, "input_schema": parameters}


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        format="openai",
        replies="chat/completions",
        models="models",
        headers=bearer,
        body=_to_openai,
        piece=_of_openai,
        ends=_ends_openai,
        tool=_function,
    ),
    "anthropic": Provider(
        format="anthropic",
        replies="v1/messages",
        models="v1/models",
        headers=by_anthropic,
        body=_to_anthropic,
        piece=_of_anthropic,
        ends=_ends_anthropic,
        tool=_tool,
    ),
}
