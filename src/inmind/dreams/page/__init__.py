"""MEMORY.md: what an agent knows of itself, of whom it works for and of what is going on, on one page.

Dreams write it and people do. The page is a text, so that everybody can; what a dream may do to it is a few kinds of
edits, each checked by itself, so that no rewrite can lose what it does not speak of.
"""
