"""All languages, and those of a text."""

from __future__ import annotations

from inmind.core.language.chinese import CHINESE
from inmind.core.language.english import ENGLISH
from inmind.core.language.german import GERMAN
from inmind.core.language.spans import WORD, compile_cached, has_han
from inmind.core.language.tables import Language

LANGUAGES: tuple[Language, ...] = (ENGLISH, CHINESE, GERMAN)


def languages_of(text: str) -> tuple[Language, ...]:
    """Return the languages whose words may be in a text.

    Of the languages with spaces it is the one with most function words in the text, or English. Chinese messages
    often have words in another script, so both are returned.
    """
    words = compile_cached(WORD).findall(text.lower())
    spaced = (language for language in LANGUAGES if language.spaced)
    likely = max(spaced, key=lambda language: sum(word in language.common_words for word in words))
    return (likely, CHINESE) if has_han(text) else (likely,)
