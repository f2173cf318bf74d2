"""A host's own client of OpenAI or Anthropic, with working memory."""

from inmind.clients.wrap import wrap

__all__ = ["wrap"]
