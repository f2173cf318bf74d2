"""All languages, and filters of sentences by their words.

The filters tell statements from negations, hedges, hypotheses, reports and questions. Each matches the union of one
word list over all languages. The patterns are compiled on first use.
"""

from __future__ import annotations

import re
from functools import cache

from inmind.core.language.chinese import CHINESE
from inmind.core.language.english import ENGLISH
from inmind.core.language.german import GERMAN
from inmind.core.language.spans import WORD, any_of, compile_cached, has_han
from inmind.core.language.tables import Language

LANGUAGES: tuple[Language, ...] = (ENGLISH, CHINESE, GERMAN)


def languages_of(text: str) -> tuple[Language, ...]:
    """Return the languages whose words may be in a text.

    Of the languages with spaces it is the one with most function words in the text, or English. Chinese messages
    often have words in another script, so those without spaces are returned too.
    """
    words = compile_cached(WORD).findall(text.lower())
    spaced = (language for language in LANGUAGES if language.spaced)
    likely = max(spaced, key=lambda language: sum(word in language.common_words for word in words))
    return (likely, *(one for one in LANGUAGES if not one.spaced)) if has_han(text) else (likely,)


@cache
def any_word(*kinds: str) -> re.Pattern[str]:
    """Return the pattern of word lists, named by fields of `Language`, for lower-case text."""
    return compile_cached(word_pattern(*kinds))


@cache
def word_pattern(*kinds: str) -> str:
    """Return the same as a string, to be part of a longer pattern."""
    return any_of(
        *(
            rf"\b(?:{words})\b" if language.spaced else words
            for language in LANGUAGES
            if (words := "|".join(filter(None, (getattr(language, kind) for kind in kinds))).replace("'", "['’]"))
        )
    )


@cache
def result_words(kind: str) -> str:
    """Return the pattern of the words of tool results, named by a field of `ResultWords`."""
    tables = (language.results for language in LANGUAGES if language.results)
    return any_of(*filter(None, (getattr(table, kind) for table in tables)))


def is_negated(text: str) -> bool:
    """True if the text says that something is not so, or forbids it."""
    return any_word("negations").search(text.lower()) is not None


def is_question(text: str) -> bool:
    """True if the text has the form of a question."""
    low = text.lower().strip()
    ends = rf"[?？][\"'”’)]*$|{word_pattern('question_ends')}\W*$"
    return bool(compile_cached(ends).search(low) or compile_cached(rf"\W*{word_pattern('question_starts')}").match(low))
