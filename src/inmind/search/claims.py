"""Parses a note into claims: the questions it answers, and how.

Notes repeat facts or state a changed value. To detect this without a model, each note is parsed once: "the deadline
for the API moved to April 2" answers the question "deadline of the API" with April 2, and says that it changed. Two
notes are about the same fact if they answer the same question, which is a lookup and not a comparison, so a pass
over any number of notes is linear.

A wrong claim hides a true statement, a missed one leaves a duplicate. So statements that are hedged, reported or
about several things are not parsed, and a question includes every word that qualifies its subject.
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

# Longer texts are compared by wording only.
MAX_STATEMENT_CHARS: Final = 400


@frozen
class Statement:
    """A parsed note."""

    wording: str
    """Digest; statements with the same wording say the same."""
    answers: Mapping[str, Answer]
    """Answers by question."""
    overrules: frozenset[str]
    """Questions for which this statement replaces an earlier, different answer."""
    is_complete: bool
    """The answers cover the whole statement: if they are overruled, all of it is."""


@lru_cache(maxsize=16_384)
def parse_statement(text: str) -> Statement:
    """Parse a note. Cached, because every consolidation parses all notes again."""
    normalised = normalise(text)
    sentences = split_sentences(normalised)
    claims = (
        [claim for sentence in sentences for claim in find_claims(sentence)] if len(text) <= MAX_STATEMENT_CHARS else []
    )
    is_complete = len(sentences) == 1 and not SAYS_MORE.search(sentences[0])
    property_ = next((claim for claim in claims if claim.is_property), None) if is_complete else None
    wordings = [wording for sentence in sentences if (wording := sentence_wording(sentence))]
    return Statement(
        wording=digest(property_.question, *property_.answer) if property_ else digest(*(wordings or [text])),
        answers={claim.question: claim.answer for claim in claims},
        overrules=frozenset(claim.question for claim in claims if claim.single_valued or claim.changed),
        is_complete=is_complete,
    )


def answers_differ(first: Answer, second: Answer) -> bool:
    """Return True if only one can be right. "Munich" and "Munich in Germany" can both be."""
    first_words, second_words = {word.casefold() for word in first}, {word.casefold() for word in second}
    return not (first_words <= second_words or second_words <= first_words)
