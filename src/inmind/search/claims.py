"""What a statement claims: which questions it answers, and how.

Notes pile up that say one thing twice, or say anew what has changed. To tell these from notes that merely look alike
without asking a model, each is read by itself, once: "the deadline for the API moved to April 2" answers the question
when the API's deadline is, with April 2, and says that it has changed. Then two notes are about the same thing where
they answer the same question, which is a look-up and no comparison: a pass over any number of them stays linear.

A wrong answer hides something true, a missed one leaves two lines where one would do. So whatever is not plainly said
is not read: what may be, what is said to be, what is said of several things at once; and a question belongs to its
whole subject, with every word that narrows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from inmind.core.encoding import digest
from inmind.core.frozen import frozen
from inmind.search.claim_forms import SAYS_MORE, Answer, find_claims
from inmind.search.statement_text import (
    normalise,
    sentence_wording,
    split_sentences,
)

# What is longer is a text and not a statement: two of those are alike only word for word.
MAX_STATEMENT_CHARS: Final = 400


@frozen
class Statement:
    """A note, read."""

    wording: str
    """Two with the same wording say the same; a digest."""
    answers: Mapping[str, Answer]
    """By question."""
    overrules: frozenset[str]
    """Questions of which another answer, given earlier, holds no longer."""
    is_complete: bool
    """The answers are all that it says: where they are overruled, all of it is."""


@lru_cache(maxsize=16_384)
def parse_statement(text: str) -> Statement:
    """Every pass reads everything that there is, and little of it is new: hence the memory."""
    normalised = normalise(text)
    sentences = split_sentences(normalised)
    claims = (
        [claim for sentence in sentences for claim in find_claims(sentence)] if len(text) <= MAX_STATEMENT_CHARS else []
    )
    is_complete = len(sentences) == 1 and not SAYS_MORE.search(sentences[0])
    property_ = next((claim for claim in claims if claim.is_property), None) if is_complete else None
    wordings = [wording for one in sentences if (wording := sentence_wording(one))]
    return Statement(
        wording=digest(property_.question, *property_.answer) if property_ else digest(*(wordings or [text])),
        answers={claim.question: claim.answer for claim in claims},
        overrules=frozenset(claim.question for claim in claims if claim.single_valued or claim.changed),
        is_complete=is_complete,
    )


def answers_differ(first: Answer, second: Answer) -> bool:
    """Can only one of them be right? "Munich" and "Munich in Germany" can both."""
    first_words, second_words = {word.casefold() for word in first}, {word.casefold() for word in second}
    return not (first_words <= second_words or second_words <= first_words)


# -- the text ----------------------------------------------------------------------------------------------


# -- English -----------------------------------------------------------------------------------------------


# -- Chinese -----------------------------------------------------------------------------------------------
