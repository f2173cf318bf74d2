"""Compaction in a provider's words: messages read for it, the archive pages, and the stubs that stay."""
