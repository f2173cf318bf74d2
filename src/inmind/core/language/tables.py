"""The tables of one language: a field for each kind of words.

A list of words is a string with the words separated by `|`. A word may be a pattern; it is matched in lower case. In a
language with spaces the words match as whole words, and `'` also matches the curly apostrophe.
"""

from __future__ import annotations

from inmind.core.frozen import frozen


@frozen(kw_only=True)
class Language:
    """The words of one language."""

    code: str
    """ISO 639-1."""
    spaced: bool = True
    """Words are separated by spaces."""
    experimental: bool = False
    """Only some subjects know this language, and no recorded dialogues measure it."""
    common_words: frozenset[str] = frozenset()
    """Frequent function words, by which a text of this language is recognised."""

    negations: str = ""
    hedges: str = ""
    """The speaker is not sure: maybe, I think."""
    hypotheticals: str = ""
    """A case that is not said to be true: if, suppose, for example."""
    reports: str = ""
    """The words of another person: said, according to."""
    temporary: str = ""
    """True only for a short time: today, right now."""
    question_starts: str = ""
    """Words with which a question begins."""
    question_ends: str = ""
    """Particles with which a question ends, before its punctuation."""
    first_person: str = ""
    second_person: str = ""
