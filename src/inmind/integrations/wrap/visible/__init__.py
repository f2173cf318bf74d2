"""What a host is shown of the replies to one of its calls, by the words of each provider."""

from inmind.integrations.wrap.visible.anthropic import AnthropicShowing
from inmind.integrations.wrap.visible.base import Showing
from inmind.integrations.wrap.visible.openai import ChatShowing
from inmind.integrations.wrap.visible.responses import ResponsesShowing

__all__ = ["AnthropicShowing", "ChatShowing", "ResponsesShowing", "Showing"]
