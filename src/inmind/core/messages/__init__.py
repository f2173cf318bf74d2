"""Message formats of the providers.

Everything else in inmind uses `Message` and its parts; only this package knows the providers' names for them. A new
format is a module here, an entry in `FORMATS`, and a joiner of its chunks in `replies.py`.
"""

from __future__ import annotations

from inmind.core.messages.anthropic import AnthropicMessages
from inmind.core.messages.format import Format
from inmind.core.messages.openai import OpenAIChat
from inmind.core.messages.responses import OpenAIResponses
from inmind.errors import InvalidInput

FORMATS: dict[str, Format] = {format.name: format for format in (OpenAIChat(), OpenAIResponses(), AnthropicMessages())}


def get_format(name: object, field: str = "format") -> Format:
    """Return the format with this name."""
    known = FORMATS.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidInput(field=field, value=name, expected=f"one of {', '.join(FORMATS)}")
    return known
