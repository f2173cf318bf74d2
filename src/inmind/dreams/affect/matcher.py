"""Recognize thanks, praise, anger and urgency that users address to the agent.

These words are used about other things far more often, so their position counts: a clause that begins with "thanks" and
does not continue with "to the cache" is addressed to the agent; a clause that only contains the word is not. The words
do not count after "if", "she said" or "no", and "thanks" at the end of a request is a formula. They are in
patterns_en.py and patterns_zh.py.

Every message is checked, and most contain none of this. So each saying lists cue words without which no pattern can
match, and a clause is only matched with the sayings whose cues it has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from inmind.core.frozen import frozen

Saying = Literal["thanks", "praise", "anger", "urgency"]
"""A kind of remark that users address to the agent."""

MAX_LOOKBACK = 20
"""Sentences and clauses before a clause that are checked for requests and reported speech."""


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: compiling all of them takes as long as the whole import."""
    return re.compile(pattern)


def one_of(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


@frozen(kw_only=True)
class LanguagePatterns:
    """The patterns of a language, for lower-case text with single spaces."""

    find_cues: Callable[[str], Sequence[Saying]]
    """Sayings that a text may contain, by its words."""
    sayings: Mapping[Saying, str]
    """Matches the beginning of a clause."""
    clause_end: str
    condition: str
    """Begins a conditional clause. The next clause does not count either."""
    reported: str
    """Anywhere in a clause: the following words are reported speech."""
    denial: str
    """Anywhere in a clause: it means the opposite."""
    retraction: str
    """Begins a clause that retracts the previous one."""
    refusal: str
    """A clause that is a refusal."""
    thanks_formula: str
    """Thanks that are a formula if `request` matches a previous clause."""
    request: str


def find_sayings(sentences: Sequence[str], patterns: LanguagePatterns) -> Iterator[Saying]:
    """The sayings in the sentences of one message, each once."""
    sayings: set[Saying] = set()
    for index, sentence in enumerate(sentences):
        if not patterns.find_cues(sentence):
            continue
        clauses, previous = _split_clauses(sentence, patterns), sentences[max(0, index - MAX_LOOKBACK) : index]
        for number, clause in enumerate(clauses):
            for saying in patterns.find_cues(clause):
                matches = saying not in sayings and compiled(patterns.sayings[saying]).match(clause) is not None
                if matches and _ClausePosition(sentence, clauses, number, previous, patterns).is_meant(saying):
                    sayings.add(saying)
                    yield saying


@frozen
class _ClausePosition:
    """A clause with its sentence and the previous sentences of the message."""

    sentence: str
    clauses: Sequence[str]
    number: int
    previous_sentences: Sequence[str]
    patterns: LanguagePatterns

    def is_meant(self, saying: Saying) -> bool:
        """True if the saying is meant in this position.

        Anger may be a question. A question whether something is good or urgent is not a statement that it is.
        """
        if self._is_reported():
            return False
        if saying == "thanks":
            return not self._is_declined() and not self._is_formula()
        if saying == "anger":
            return not self._is_conditional()
        is_retracted = saying == "praise" and bool(compiled(self.patterns.retraction).match(self._next_clause))
        is_denied = bool(compiled(self.patterns.denial).search(self._clause))
        return not (is_retracted or is_denied or self._is_question() or self._is_conditional())

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
        """ "No, thanks", or "thanks, but …"."""
        previous = self.clauses[self.number - 1] if self.number else ""
        return bool(
            compiled(self.patterns.refusal).match(previous)
            or compiled(self.patterns.retraction).match(self._next_clause)
        )

    def _is_formula(self) -> bool:
        if not compiled(self.patterns.thanks_formula).fullmatch(self._clause):
            return False
        earlier = [clause for sentence in self.previous_sentences for clause in _split_clauses(sentence, self.patterns)]
        context = [*earlier, *self._previous_clauses]
        return bool(context) and compiled(self.patterns.request).search("\n".join(context)) is not None


def _split_clauses(sentence: str, patterns: LanguagePatterns) -> list[str]:
    parts = compiled(patterns.clause_end).split(sentence.lower().replace("’", "'"))
    return [clause for part in parts if (clause := " ".join(part.split()).strip(_TRIMMED_CHARACTERS))]


_TRIMMED_CHARACTERS = " \t*_~-–—>•\"'()[]（）【】"
