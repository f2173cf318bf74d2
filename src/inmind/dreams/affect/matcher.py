"""How what people say to the agent is told from what they say of anything else, whichever language they speak.

All of these words are said of other things far more often. So what counts is where they stand: a clause that begins
with "thanks" and does not go on with "to the cache" is said to somebody; a clause in which they only occur is not.
Behind "if", behind "she said" and in answer to "no" they are not meant either, and a "thanks" at the end of a request
is no more than a please. The words themselves are in english.py and chinese.py.

Every message goes through here, and most say nothing of this. So each kind of saying names the words without which none
of its forms can match: a clause is held only against those that it could be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from inmind.core.frozen import frozen

Saying = Literal["thanks", "praise", "anger", "urgency"]
"""What a person says to whom they talk to."""

MAX_LOOKBACK = 20
"""Sentences, and clauses, to look back for what somebody asks for or who is speaking."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Patterns are compiled when a message first needs them: all of them at once take as long as all of the import."""
    return re.compile(pattern)


def one_of(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


@frozen(kw_only=True)
class LanguagePatterns:
    """The words of a language, as patterns for small letters and single spaces."""

    find_cues: Callable[[str], Sequence[Saying]]
    """What a text could say, by the words that it has."""
    sayings: Mapping[Saying, str]
    """How a clause begins that says so."""
    clause_end: str
    condition: str
    """Begins a clause that is not so, and makes the one behind it none either."""
    reported: str
    """Anywhere in a clause: what comes behind it was said by others."""
    denial: str
    """Anywhere in a clause: it says the opposite."""
    retraction: str
    """Begins a clause that takes back the one before it."""
    refusal: str
    """A clause which is a no."""
    thanks_formula: str
    """Thanks that may be a mere formula; they are, where `requests` is found in the clauses before them."""
    request: str


def find_sayings(sentences: Sequence[str], patterns: LanguagePatterns) -> Iterator[Saying]:
    """What the sentences of one message say to whom it is for, each once."""
    found: set[Saying] = set()
    for place, sentence in enumerate(sentences):
        if not patterns.find_cues(sentence):
            continue
        clauses, above = _split_clauses(sentence, patterns), sentences[max(0, place - MAX_LOOKBACK) : place]
        for number, clause in enumerate(clauses):
            for saying in patterns.find_cues(clause):
                begins = saying not in found and compiled(patterns.sayings[saying]).match(clause) is not None
                if begins and _ClausePosition(sentence, clauses, number, above, patterns).is_meant(saying):
                    found.add(saying)
                    yield saying


@frozen
class _ClausePosition:
    """Where a clause stands: in its sentence, and below other sentences of the message."""

    sentence: str
    clauses: Sequence[str]
    number: int
    above: Sequence[str]
    patterns: LanguagePatterns

    def is_meant(self, said: Saying) -> bool:
        """Is it meant where it stands?

        Whoever is angry may well ask, and who asks if something is good or urgent does
        not say that it is."""
        if self._is_reported():
            return False
        if said == "thanks":
            return not self._is_declined() and not self._is_formula()
        if said == "anger":
            return not self._is_conditional()
        taken_back = said == "praise" and bool(compiled(self.patterns.retraction).match(self._next_clause))
        denied = bool(compiled(self.patterns.denial).search(self._clause))
        return not (taken_back or denied or self._is_question() or self._is_conditional())

    @property
    def _clause(self) -> str:
        return self.clauses[self.number]

    @property
    def _previous_clauses(self) -> Sequence[str]:
        return self.clauses[max(0, self.number - MAX_LOOKBACK) : self.number]

    @property
    def _next_clause(self) -> str:
        return next(iter(self.clauses[self.number + 1 :]), "")

    def _is_reported(self) -> bool:
        return any(map(compiled(self.patterns.reported).search, self._previous_clauses))

    def _is_conditional(self) -> bool:
        return any(
            map(compiled(self.patterns.condition).match, self.clauses[max(0, self.number - 1) : self.number + 1])
        )

    def _is_question(self) -> bool:
        return not self._next_clause and self.sentence.rstrip().endswith(("?", "？"))

    def _is_declined(self) -> bool:
        """No, thanks; thanks, but …"""
        before = self.clauses[self.number - 1] if self.number else ""
        return bool(
            compiled(self.patterns.refusal).match(before) or compiled(self.patterns.retraction).match(self._next_clause)
        )

    def _is_formula(self) -> bool:
        if not compiled(self.patterns.thanks_formula).fullmatch(self._clause):
            return False
        above = [clause for sentence in self.above for clause in _split_clauses(sentence, self.patterns)]
        before = [*above, *self._previous_clauses]
        return bool(before) and compiled(self.patterns.request).search("\n".join(before)) is not None


def _split_clauses(sentence: str, patterns: LanguagePatterns) -> list[str]:
    parts = compiled(patterns.clause_end).split(sentence.lower().replace("’", "'"))
    return [clause for part in parts if (clause := " ".join(part.split()).strip(_TRIMMED_CHARACTERS))]


_TRIMMED_CHARACTERS = " \t*_~-–—>•\"'()[]（）【】"
