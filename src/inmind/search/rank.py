"""Ranks crystals for a query.

A message scores by the words it shares with the query and, if there are vectors, by meaning. People answer in half
sentences: "Fixed by tweaking the peer scoring thresholds" says what was fixed only together with the line before
it. So a short message gets part of the score of its neighbours and its conversation, a long one little. The weights
were chosen on three sets of recorded conversations at once; see `docs/decisions/0042-ranking.md`.

All functions are pure: they take records and numbers from the index and return an order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from math import log

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.frozen import frozen
from inmind.search.dates import DateSpan
from inmind.search.index.record import Record
from inmind.search.lifecycle import score_crystal
from inmind.search.query import ParsedQuery, Query

MEANING_SHARE = 0.3
"""Share of meaning in the score of a passage; the rest is words."""

NEIGHBOUR_SHARE, SECOND_NEIGHBOUR_SHARE = 0.5, 0.2
"""Share of the best neighbour's score, and of the best one two lines away."""
ANSWER_FACTOR = 1.2
"""Factor on the line before if it is a question."""
CONVERSATION_SHARE = 0.25
"""Share of the score of the best line in the same conversation."""
SHORT_MESSAGE_WORDS = 90
"""Messages up to this length get the full context score; twice as long, half of it."""

MIN_SCORE_SHARE = 0.25
"""Hits below this share of the best score are dropped; a small memory would return everything otherwise."""

ROLE_FACTOR, SPEAKER_FACTOR = 1.4, 1.3
"""Factors for messages of the role ("I", "you") and of the speaker that the query means."""
SPAN_FACTOR, SPAN_BONUS = 2.0, 0.3
"""Factor for messages in the dates of the query, and bonus for being in them regardless of content."""
LATE_PERIOD, LATE_SHARE = timedelta(days=3), 0.6
"""Messages often report events a few days later; such a message counts with this share."""
VALUE_SHARE = 0.2
SUPERSEDED_FACTOR = 0.5


@frozen
class RankedRecord:
    """A crystal's record with its score and the components of it."""

    record: Record
    score: float
    parts: Mapping[str, float]


def word_rarity(matching: int, total: int) -> float:
    """Return the weight of a word by how many passages have it.

    `total` may be older than the matches.
    """
    return log(1 + (max(total - matching, 0) + 0.5) / (matching + 0.5)) ** 1.1


def length_factor(words: float) -> float:
    """Return the weight of a word match by passage length, as in BM25 for one occurrence."""
    return 2.2 / (1.6 + 0.01 * words)


def sum_word_scores(words: Iterable[tuple[float, Sequence[int]]], *, limit: int) -> dict[int, float]:
    """Sum the scores of matching words for each passage: (word score, passages) pairs.

    The rarest words come first. Once `limit` passages are found, other words only add to those: a passage without
    any rare word cannot rank high. Only the best `limit` passages are returned.
    """
    scores: dict[int, float] = {}
    for score, matching in sorted(words, key=lambda item: len(item[1])):
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
    return {passage: total for passage, total in scores.items() if total >= min_score}


def score_by_words(scores: Mapping[int, float], *, words_only: bool) -> dict[int, float]:
    """Scale word scores; with `words_only` the best is 1, else it leaves room for meaning."""
    best, share = max(scores.values(), default=0.0) or 1.0, 1.0 if words_only else 1 - MEANING_SHARE
    return {number: score / best * share for number, score in scores.items()}


def score_by_meaning(cosines: Mapping[int, float], *, floor: float) -> dict[int, float]:
    """Scale cosines above `floor`.

    Cosines of texts are never near 0, and a passage that is no closer than average is not close.
    """
    range_above_floor = max(max(cosines.values(), default=0.0) - floor, 1e-9)
    return {
        number: (cosine - floor) / range_above_floor * MEANING_SHARE
        for number, cosine in cosines.items()
        if cosine > floor
    }


class ScoreField:
    """Scores of crystals, with those of their neighbours and conversations.

    Lines of one conversation have consecutive numbers. `conversation` maps a number to its conversation, or to
    None.
    """

    def __init__(self, own: Mapping[int, float], conversation: Callable[[int], int | None]) -> None:
        self._own, self._conversation = own, conversation
        self._best: dict[int | None, float] = {}
        for number, score in own.items():
            conversation_id = conversation(number)
            if score > self._best.get(conversation_id, 0.0):
                self._best[conversation_id] = score

    def most_promising(self, limit: int) -> list[int]:
        """Return the numbers that can rank highest: the best, and their neighbours."""
        seeds = nlargest(limit, self._own, key=self._own.__getitem__)
        near = (number + step for number in seeds for step in (-1, 1) if self._conversation(number) is not None)
        return nlargest(limit, dict.fromkeys((*seeds, *near)), key=lambda number: sum(self.scores(number)))

    def scores(self, number: int, *, answers_question: bool = False) -> tuple[float, float, float]:
        """Return its own score, and its scores by neighbours and by conversation."""
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


def rank_records(
    records: Iterable[Record], field: ScoreField, parsed: ParsedQuery, query: Query, now: datetime
) -> list[RankedRecord]:
    """Return the best records, best first; of equal scores, the later one first."""
    ranked = (_rank(record, field, parsed, query, now) for record in records)
    best = nlargest(query.limit, ranked, key=lambda ranked: (ranked.score, ranked.record.number))
    min_score = MIN_SCORE_SHARE * best[0].score if best else 0.0
    return [ranked for ranked in best if 0 < min_score <= ranked.score]


def _rank(record: Record, field: ScoreField, parsed: ParsedQuery, query: Query, now: datetime) -> RankedRecord:
    own, neighbours, conversation = field.scores(record.number, answers_question=bool(record.answers))
    context_need = min(1.0, SHORT_MESSAGE_WORDS / max(record.words, 1))
    span_match = _span_match(from_microseconds(record.at), parsed.span)
    factor = (1 + VALUE_SHARE * score_crystal(record, now)) * (1 + (SPAN_FACTOR - 1) * span_match)
    if record.speaker in parsed.names:
        factor *= SPEAKER_FACTOR
    elif parsed.role and record.role == parsed.role:
        factor *= ROLE_FACTOR
    has_ended = record.valid_to is not None and record.valid_to <= to_microseconds(now)
    if query.as_of is None and (has_ended or record.superseded_by):
        factor *= SUPERSEDED_FACTOR
    parts = {
        "neighbours": context_need * neighbours,
        "conversation": context_need * conversation,
        "time": SPAN_BONUS * span_match,
        "factor": factor,
    }
    score = (own + context_need * (neighbours + conversation)) * factor + parts["time"]
    return RankedRecord(record, score, parts)


def _span_match(at: datetime, span: DateSpan | None) -> float:
    """Return how well a time fits the dates of the query, 0 to 1."""
    if span is None or not span.contains(at, tolerance=LATE_PERIOD):
        return 0.0
    return 1.0 if span.contains(at) else LATE_SHARE
