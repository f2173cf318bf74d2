"""MEMORY.md: one page with an agent's knowledge of itself, its user and current work.

Dreams and users write it. It is plain text, so that users can edit it. A dream may only apply a few kinds of edits,
each checked separately, so that a rewrite cannot lose lines that it does not name.
"""
