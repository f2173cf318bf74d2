"""Tells statements from negations, hedges, hypotheses, reports and questions.

Each filter matches the union of one word list over all languages. The patterns are compiled on first use.
"""

from __future__ import annotations

import re
from functools import cache

from inmind.core.language.languages import LANGUAGES
from inmind.core.language.spans import any_of, compile_cached


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


def is_negated(text: str) -> bool:
    """True if the text says that something is not so, or forbids it."""
    return any_word("negations").search(text.lower()) is not None


def is_hedged(text: str) -> bool:
    """True if the speaker is not sure of it."""
    return any_word("hedges").search(text.lower()) is not None


def is_hypothetical(text: str) -> bool:
    """True for a condition, an assumption or an example."""
    return any_word("hypotheticals").search(text.lower()) is not None


def is_reported(text: str) -> bool:
    """True if the text repeats the words of another person."""
    return any_word("reports").search(text.lower()) is not None


def is_question(text: str) -> bool:
    """True if the text has the form of a question."""
    low = text.lower().strip()
    ends = rf"[?？][\"'”’)]*$|{word_pattern('question_ends')}\W*$"
    return bool(compile_cached(ends).search(low) or compile_cached(rf"\W*{word_pattern('question_starts')}").match(low))
