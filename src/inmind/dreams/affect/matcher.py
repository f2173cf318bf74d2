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

Said = Literal["thanks", "praise", "anger", "urgency"]
"""What a person says to whom they talk to."""

MOST_BEFORE = 20
"""Sentences, and clauses, to look back for what somebody asks for or who is speaking."""


@cache
def compiled(form: str) -> re.Pattern[str]:
    """Patterns are compiled when a message first needs them: all of them at once take as long as all of the import."""
    return re.compile(form)


def one_of(*forms: str) -> str:
    return f"(?:{'|'.join(forms)})"


@frozen(kw_only=True)
class Forms:
    """The words of a language, as patterns for small letters and single spaces."""

    cued: Callable[[str], Sequence[Said]]
    """What a text could say, by the words that it has."""
    sayings: Mapping[Said, str]
    """How a clause begins that says so."""
    clause_end: str
    condition: str
    """Begins a clause that is not so, and makes the one behind it none either."""
    reports: str
    """Anywhere in a clause: what comes behind it was said by others."""
    denies: str
    """Anywhere in a clause: it says the opposite."""
    turns: str
    """Begins a clause that takes back the one before it."""
    refuses: str
    """A clause which is a no."""
    formula: str
    """Thanks that may be a mere formula; they are, where `requests` is found in the clauses before them."""
    requests: str


def said_in(sentences: Sequence[str], forms: Forms) -> Iterator[Said]:
    """What the sentences of one message say to whom it is for, each once."""
    found: set[Said] = set()
    for place, sentence in enumerate(sentences):
        if not forms.cued(sentence):
            continue
        clauses, above = _clauses(sentence, forms), sentences[max(0, place - MOST_BEFORE) : place]
        for number, clause in enumerate(clauses):
            for said in forms.cued(clause):
                begins = said not in found and compiled(forms.sayings[said]).match(clause) is not None
                if begins and _Place(sentence, clauses, number, above, forms).allows(said):
                    found.add(said)
                    yield said


@frozen
class _Place:
    """Where a clause stands: in its sentence, and below other sentences of the message."""

    sentence: str
    clauses: Sequence[str]
    number: int
    above: Sequence[str]
    forms: Forms

    def allows(self, said: Said) -> bool:
        """Is it meant where it stands? Whoever is angry may well ask, and who asks if something is good or urgent does
        not say that it is."""
        if self._is_reported():
            return False
        if said == "thanks":
            return not self._is_declined() and not self._is_formula()
        if said == "anger":
            return not self._is_supposed()
        taken_back = said == "praise" and bool(compiled(self.forms.turns).match(self._behind))
        denied = bool(compiled(self.forms.denies).search(self._clause))
        return not (taken_back or denied or self._is_asked() or self._is_supposed())

    @property
    def _clause(self) -> str:
        return self.clauses[self.number]

    @property
    def _before(self) -> Sequence[str]:
        return self.clauses[max(0, self.number - MOST_BEFORE) : self.number]

    @property
    def _behind(self) -> str:
        return next(iter(self.clauses[self.number + 1 :]), "")

    def _is_reported(self) -> bool:
        return any(map(compiled(self.forms.reports).search, self._before))

    def _is_supposed(self) -> bool:
        return any(map(compiled(self.forms.condition).match, self.clauses[max(0, self.number - 1) : self.number + 1]))

    def _is_asked(self) -> bool:
        return not self._behind and self.sentence.rstrip().endswith(("?", "？"))

    def _is_declined(self) -> bool:
        """No, thanks; thanks, but …"""
        before = self.clauses[self.number - 1] if self.number else ""
        return bool(compiled(self.forms.refuses).match(before) or compiled(self.forms.turns).match(self._behind))

    def _is_formula(self) -> bool:
        if not compiled(self.forms.formula).fullmatch(self._clause):
            return False
        above = [clause for sentence in self.above for clause in _clauses(sentence, self.forms)]
        before = [*above, *self._before]
        return bool(before) and compiled(self.forms.requests).search("\n".join(before)) is not None


def _clauses(sentence: str, forms: Forms) -> list[str]:
    parts = compiled(forms.clause_end).split(sentence.lower().replace("’", "'"))
    return [clause for part in parts if (clause := " ".join(part.split()).strip(_AROUND))]


_AROUND = " \t*_~-–—>•\"'()[]（）【】"
