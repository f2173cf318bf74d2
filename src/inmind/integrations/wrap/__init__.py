"""A host's own client of OpenAI or Anthropic, with working memory."""

from inmind.integrations.wrap.wrap import wrap

__all__ = ["wrap"]
