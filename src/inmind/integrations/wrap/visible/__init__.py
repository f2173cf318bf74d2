"""The part of replies that a host sees, for each provider."""

from inmind.integrations.wrap.visible.anthropic import AnthropicVisibleReply
from inmind.integrations.wrap.visible.base import VisibleReply
from inmind.integrations.wrap.visible.openai import OpenAIVisibleReply
from inmind.integrations.wrap.visible.responses import ResponsesVisibleReply

__all__ = ["AnthropicVisibleReply", "OpenAIVisibleReply", "ResponsesVisibleReply", "VisibleReply"]
