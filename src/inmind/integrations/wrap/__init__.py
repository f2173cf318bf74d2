"""`wrap`: add working memory to a client of OpenAI or Anthropic."""

from inmind.integrations.wrap.wrap import wrap

__all__ = ["wrap"]
