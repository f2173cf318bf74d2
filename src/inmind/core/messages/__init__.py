"""The ways providers write a conversation, each behind one small interface, and the lists they accept.

Everything else in inmind sees `Message` and its parts; only this package knows what a provider calls them.
"""

from __future__ import annotations

from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.model import (
    Call,
    Format,
    Head,
    Image,
    Message,
    Opaque,
    Part,
    Result,
    Text,
    Wire,
)
from inmind.core.messages.openai import OpenAIChat
from inmind.core.messages.pairing import Arrangement, Said, arrange
from inmind.core.messages.responses import OpenAIResponses
from inmind.errors import InvalidInput

FORMATS: dict[str, Format] = {format.name: format for format in (OpenAIChat(), OpenAIResponses(), AnthropicMessages())}


def format_named(name: object, field: str = "format") -> Format:
    known = FORMATS.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidInput(field=field, value=name, expected=f"one of {', '.join(FORMATS)}")
    return known


__all__ = [
    "FORMATS",
    "AnthropicMessages",
    "Arrangement",
    "Call",
    "Format",
    "Head",
    "Image",
    "Message",
    "Opaque",
    "OpenAIChat",
    "OpenAIResponses",
    "Part",
    "Result",
    "Said",
    "Text",
    "Wire",
    "arrange",
    "format_named",
]
