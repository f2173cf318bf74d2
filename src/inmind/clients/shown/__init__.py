"""What a host is shown of the replies to one of its calls, by the words of each provider."""

from inmind.clients.shown.anthropic import AnthropicShowing
from inmind.clients.shown.chat import ChatShowing
from inmind.clients.shown.responses import ResponsesShowing
from inmind.clients.shown.showing import Showing

__all__ = ["AnthropicShowing", "ChatShowing", "ResponsesShowing", "Showing"]
