"""Message formats of the providers.

Everything else in inmind uses `Message` and its parts; only this package knows the providers' names for them.
"""

from __future__ import annotations

from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.format import Format
from inmind.core.messages.model import (
    Call,
    Image,
    Message,
    Opaque,
    ParsedMessage,
    Part,
    PromptHead,
    Result,
    Text,
    Wire,
)
from inmind.core.messages.openai import OpenAIChat
from inmind.core.messages.pairing import ProviderList, to_provider_list
from inmind.core.messages.responses import OpenAIResponses
from inmind.errors import InvalidInput

FORMATS: dict[str, Format] = {format.name: format for format in (OpenAIChat(), OpenAIResponses(), AnthropicMessages())}


def get_format(name: object, field: str = "format") -> Format:
    """Return the format with this name."""
    known = FORMATS.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidInput(field=field, value=name, expected=f"one of {', '.join(FORMATS)}")
    return known


__all__ = [
    "FORMATS",
    "AnthropicMessages",
    "Call",
    "Format",
    "Image",
    "Message",
    "Opaque",
    "OpenAIChat",
    "OpenAIResponses",
    "ParsedMessage",
    "Part",
    "PromptHead",
    "ProviderList",
    "Result",
    "Text",
    "Wire",
    "get_format",
    "to_provider_list",
]
