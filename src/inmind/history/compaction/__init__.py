"""Compaction: selecting messages, archive pages, stubs, retained items and summaries."""
