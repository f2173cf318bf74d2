"""Which crystals answer a query best, by everything that is known of them.

What a message is worth by itself is the words it shares with the query and, where there are vectors, how close it is in
meaning. But people answer in half sentences: "Fixed by tweaking the peer scoring thresholds" says what was fixed only
together with the line before it. So a short message is worth something of what its neighbours and its conversation are
worth, and a long one, which speaks for itself, little. Weights were chosen on three sets of recorded conversations at
once; `docs/decisions/0042-ranking.md` has what was tried.

It is pure: what was found in the index comes in as numbers, and goes out in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from math import log

from inmind.core.frozen import frozen
from inmind.search.query_parse import Asked

MEANING = 0.3
"""The share of meaning in what a passage is worth by itself, beside its words."""

NEXT_TO_IT, FARTHER = 0.5, 0.2
"""What the best neighbour adds, and the best of those beyond."""
ANSWERS = 1.2
"""How much more the line before counts when it asked something: this one is the answer."""
CONVERSATION = 0.25
"""What the best line of the same conversation adds."""
SHORT = 90
"""Words up to which a message is taken to need its neighbours; twice as many need them half as much."""

FAINT = 0.25
"""The share of the best one's score, below which nothing is an answer: in a small memory the rest would come along."""

THEIR_OWN, NAMED = 1.4, 1.3
"""For messages of whom the query means by "I" or "you", or by name."""
IN_SPAN, IN_SPAN_ALONE = 2.0, 0.3
"""For what was said in the days that the query speaks of, and for having been said then, whatever it says."""
TOLD_LATE, LATE = timedelta(days=3), 0.6
"""What happened on a day is often told a little later; that counts so much of the same."""
WORTH = 0.2
SUPERSEDED = 0.5


@frozen
class Placed:
    """A crystal as ranking sees it."""

    number: int
    words: int
    role: str
    speaker: str
    at: datetime
    answers: bool = False
    """The line before it asked something."""
    worth: float = 0.0
    superseded: bool = False


@frozen
class Ranked:
    """A crystal's place among the answers, and what brought it there."""

    number: int
    score: float
    parts: Mapping[str, float]


def rarity(holding: int, among: int) -> float:
    """What a word tells that so many of all passages hold; of those that came in since they were counted, too."""
    return log(1 + (max(among - holding, 0) + 0.5) / (holding + 0.5)) ** 1.1


def brevity(words: float) -> float:
    """What a shared word is worth in a passage of this length: as in BM25, for a word that stands there once."""
    return 2.2 / (1.6 + 0.01 * words)


def gathered(words: Iterable[tuple[float, Sequence[int]]], *, most: int) -> dict[int, float]:
    """What passages gain by the words that they hold: of each word what it tells, and which passages hold it.

    The rarest words come first. Once they have found `most` passages, the others only add to those: what holds none of
    the rare ones comes nowhere near. And only the `most` that have gained the most are looked at any further.
    """
    gained: dict[int, float] = {}
    for tells, held in sorted(words, key=lambda one: len(one[1])):
        if len(gained) >= most:
            for passage in held:
                if passage in gained:
                    gained[passage] += tells
        else:
            for passage in held:
                gained[passage] = gained.get(passage, 0.0) + tells
    if len(gained) <= most:
        return gained
    least = sorted(gained.values())[-most]
    return {passage: gain for passage, gain in gained.items() if gain >= least}


def by_words(gained: Mapping[int, float], *, alone: bool) -> dict[int, float]:
    """What crystals are worth by their words. `alone`: there is no meaning beside them, so that the best is worth 1."""
    most, share = max(gained.values(), default=0.0) or 1.0, 1.0 if alone else 1 - MEANING
    return {number: gain / most * share for number, gain in gained.items()}


def by_meaning(cosines: Mapping[int, float], *, floor: float) -> dict[int, float]:
    """What they are worth by their meaning.

    `floor`: how close to the query anything is. Cosines of texts never come near 0, and what is no closer than all the
    others is not close.
    """
    reach = max(max(cosines.values(), default=0.0) - floor, 1e-9)
    return {number: (cosine - floor) / reach * MEANING for number, cosine in cosines.items() if cosine > floor}


class Field:
    """What crystals are worth by themselves, and so what those around them are.

    Lines of one conversation have consecutive numbers. `conversation` says which one a number belongs to, and None for
    what stands in none.
    """

    def __init__(self, own: Mapping[int, float], conversation: Callable[[int], int | None]) -> None:
        self._own, self._conversation = own, conversation
        self._best: dict[int | None, float] = {}
        for number, worth in own.items():
            where = conversation(number)
            if worth > self._best.get(where, 0.0):
                self._best[where] = worth

    def promising(self, most: int) -> list[int]:
        """The numbers that can come out on top, whatever else is known of them: the best, and what stands by them."""
        seeds = nlargest(most, self._own, key=self._own.__getitem__)
        near = (number + step for number in seeds for step in (-1, 1) if self._conversation(number) is not None)
        return nlargest(most, dict.fromkeys((*seeds, *near)), key=lambda number: sum(self.worth(number)))

    def worth(self, number: int, *, answers: bool = False) -> tuple[float, float, float]:
        """By itself, by its neighbours, and by its conversation."""
        own = self._own.get
        where = self._conversation(number)
        if where is None:
            return own(number, 0.0), 0.0, 0.0
        before, behind = own(number - 1, 0.0), own(number + 1, 0.0)
        if answers:
            before *= ANSWERS
        farther = max(own(number - 2, 0.0), own(number + 2, 0.0))
        around = NEXT_TO_IT * max(before, behind) + FARTHER * farther
        return own(number, 0.0), around, CONVERSATION * self._best.get(where, 0.0)


def ranked(candidates: Iterable[Placed], field: Field, query: Asked, most: int) -> list[Ranked]:
    """The best of the candidates, the best first; of two that are worth the same, the one said later."""
    order = nlargest(most, ((_score(one, field, query), one.number, one) for one in candidates))
    least = FAINT * order[0][0] if order else 0.0
    return [Ranked(number, score, _parts(one, field, query)) for score, number, one in order if 0 < least <= score]


def _score(one: Placed, field: Field, query: Asked) -> float:
    itself, around, talk = field.worth(one.number, answers=one.answers)
    return (itself + _needs(one) * (around + talk)) * _factor(one, query) + _alone(one, query)


def _parts(one: Placed, field: Field, query: Asked) -> dict[str, float]:
    _, around, talk = field.worth(one.number, answers=one.answers)
    needs = _needs(one)
    return {
        "neighbours": needs * around,
        "conversation": needs * talk,
        "time": _alone(one, query),
        "factor": _factor(one, query),
    }


def _needs(one: Placed) -> float:
    """How much a message needs those around it to be understood."""
    return min(1.0, SHORT / max(one.words, 1))


def _alone(one: Placed, query: Asked) -> float:
    return IN_SPAN_ALONE * _in_span(one, query)


def _factor(one: Placed, query: Asked) -> float:
    factor = (1 + WORTH * one.worth) * (1 + (IN_SPAN - 1) * _in_span(one, query))
    if one.speaker in query.names:
        factor *= NAMED
    elif query.role and one.role == query.role:
        factor *= THEIR_OWN
    return factor * SUPERSEDED if one.superseded else factor


def _in_span(one: Placed, query: Asked) -> float:
    """How far it was said in the days that the query speaks of, if in any."""
    if query.span is None or not query.span.holds(one.at, late=TOLD_LATE):
        return 0.0
    return 1.0 if query.span.holds(one.at) else LATE
