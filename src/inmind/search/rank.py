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
from inmind.search.query_parse import ParsedQuery

MEANING_SHARE = 0.3
"""The share of meaning in what a passage is worth by itself, beside its words."""

NEIGHBOUR_SHARE, SECOND_NEIGHBOUR_SHARE = 0.5, 0.2
"""What the best neighbour adds, and the best of those beyond."""
ANSWER_FACTOR = 1.2
"""How much more the line before counts when it asked something: this one is the answer."""
CONVERSATION_SHARE = 0.25
"""What the best line of the same conversation adds."""
SHORT_MESSAGE_WORDS = 90
"""Words up to which a message is taken to need its neighbours; twice as many need them half as much."""

MIN_SCORE_SHARE = 0.25
"""The share of the best one's score, below which nothing is an answer: in a small memory the rest would come along."""

ROLE_FACTOR, SPEAKER_FACTOR = 1.4, 1.3
"""For messages of whom the query means by "I" or "you", or by name."""
SPAN_FACTOR, SPAN_BONUS = 2.0, 0.3
"""For what was said in the days that the query speaks of, and for having been said then, whatever it says."""
LATE_PERIOD, LATE_SHARE = timedelta(days=3), 0.6
"""What happened on a day is often told a little later; that counts so much of the same."""
VALUE_SHARE = 0.2
SUPERSEDED_FACTOR = 0.5


@frozen
class RankCandidate:
    """A crystal as ranking sees it."""

    number: int
    words: int
    role: str
    speaker: str
    at: datetime
    answers_question: bool = False
    """The line before it asked something."""
    value: float = 0.0
    superseded: bool = False


@frozen
class RankedCrystal:
    """A crystal's place among the answers, and what brought it there."""

    number: int
    score: float
    parts: Mapping[str, float]


def word_rarity(matching: int, total: int) -> float:
    """What a word tells that so many of all passages hold; of those that came in since they were counted, too."""
    return log(1 + (max(total - matching, 0) + 0.5) / (matching + 0.5)) ** 1.1


def length_factor(words: float) -> float:
    """What a shared word is worth in a passage of this length: as in BM25, for a word that stands there once."""
    return 2.2 / (1.6 + 0.01 * words)


def sum_word_scores(words: Iterable[tuple[float, Sequence[int]]], *, limit: int) -> dict[int, float]:
    """What passages gain by the words that they hold: of each word what it tells, and which passages hold it.

    The rarest words come first. Once they have found `most` passages, the others only add to those: what holds none of
    the rare ones comes nowhere near. And only the `most` that have gained the most are looked at any further.
    """
    scores: dict[int, float] = {}
    for score, matching in sorted(words, key=lambda one: len(one[1])):
        if len(scores) >= limit:
            for passage in matching:
                if passage in scores:
                    scores[passage] += score
        else:
            for passage in matching:
                scores[passage] = scores.get(passage, 0.0) + score
    if len(scores) <= limit:
        return scores
    min_score = sorted(scores.values())[-limit]
    return {passage: score_ for passage, score_ in scores.items() if score_ >= min_score}


def score_by_words(scores: Mapping[int, float], *, words_only: bool) -> dict[int, float]:
    """What crystals are worth by their words. `alone`: there is no meaning beside them, so that the best is worth 1."""
    best, share = max(scores.values(), default=0.0) or 1.0, 1.0 if words_only else 1 - MEANING_SHARE
    return {number: gain / best * share for number, gain in scores.items()}


def score_by_meaning(cosines: Mapping[int, float], *, floor: float) -> dict[int, float]:
    """What they are worth by their meaning.

    `floor`: how close to the query anything is. Cosines of texts never come near 0, and what is no closer than all the
    others is not close.
    """
    range_above_floor = max(max(cosines.values(), default=0.0) - floor, 1e-9)
    return {
        number: (cosine - floor) / range_above_floor * MEANING_SHARE
        for number, cosine in cosines.items()
        if cosine > floor
    }


class ScoreField:
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

    def most_promising(self, limit: int) -> list[int]:
        """The numbers that can come out on top, whatever else is known of them: the best, and what stands by them."""
        seeds = nlargest(limit, self._own, key=self._own.__getitem__)
        near = (number + step for number in seeds for step in (-1, 1) if self._conversation(number) is not None)
        return nlargest(limit, dict.fromkeys((*seeds, *near)), key=lambda number: sum(self.scores(number)))

    def scores(self, number: int, *, answers_question: bool = False) -> tuple[float, float, float]:
        """By itself, by its neighbours, and by its conversation."""
        own = self._own.get
        conversation = self._conversation(number)
        if conversation is None:
            return own(number, 0.0), 0.0, 0.0
        before, after = own(number - 1, 0.0), own(number + 1, 0.0)
        if answers_question:
            before *= ANSWER_FACTOR
        farther = max(own(number - 2, 0.0), own(number + 2, 0.0))
        neighbours = NEIGHBOUR_SHARE * max(before, after) + SECOND_NEIGHBOUR_SHARE * farther
        return own(number, 0.0), neighbours, CONVERSATION_SHARE * self._best.get(conversation, 0.0)


def rank_candidates(
    candidates: Iterable[RankCandidate], field: ScoreField, query: ParsedQuery, limit: int
) -> list[RankedCrystal]:
    """The best of the candidates, the best first; of two that are worth the same, the one said later."""
    order = nlargest(limit, ((_score(one, field, query), one.number, one) for one in candidates))
    min_score = MIN_SCORE_SHARE * order[0][0] if order else 0.0
    return [
        RankedCrystal(number, score, _parts(one, field, query))
        for score, number, one in order
        if 0 < min_score <= score
    ]


def _score(candidate: RankCandidate, field: ScoreField, query: ParsedQuery) -> float:
    own, neighbours, conversation = field.scores(candidate.number, answers_question=candidate.answers_question)
    return (own + _context_need(candidate) * (neighbours + conversation)) * _factor(candidate, query) + _span_bonus(
        candidate, query
    )


def _parts(candidate: RankCandidate, field: ScoreField, query: ParsedQuery) -> dict[str, float]:
    _, neighbours, conversation = field.scores(candidate.number, answers_question=candidate.answers_question)
    context_need = _context_need(candidate)
    return {
        "neighbours": context_need * neighbours,
        "conversation": context_need * conversation,
        "time": _span_bonus(candidate, query),
        "factor": _factor(candidate, query),
    }


def _context_need(candidate: RankCandidate) -> float:
    """How much a message needs those around it to be understood."""
    return min(1.0, SHORT_MESSAGE_WORDS / max(candidate.words, 1))


def _span_bonus(candidate: RankCandidate, query: ParsedQuery) -> float:
    return SPAN_BONUS * _span_match(candidate, query)


def _factor(candidate: RankCandidate, query: ParsedQuery) -> float:
    factor = (1 + VALUE_SHARE * candidate.value) * (1 + (SPAN_FACTOR - 1) * _span_match(candidate, query))
    if candidate.speaker in query.names:
        factor *= SPEAKER_FACTOR
    elif query.role and candidate.role == query.role:
        factor *= ROLE_FACTOR
    return factor * SUPERSEDED_FACTOR if candidate.superseded else factor


def _span_match(candidate: RankCandidate, query: ParsedQuery) -> float:
    """How far it was said in the days that the query speaks of, if in any."""
    if query.span is None or not query.span.contains(candidate.at, tolerance=LATE_PERIOD):
        return 0.0
    return 1.0 if query.span.contains(candidate.at) else LATE_SHARE
