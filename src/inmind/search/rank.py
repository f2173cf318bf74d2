"""Matches passages with a query, by words and by meaning, and ranks their crystals.

A message scores by the words it shares with the query and, if there are vectors, by meaning. People answer in half
sentences: "Fixed by tweaking the peer scoring thresholds" says what was fixed only together with the line before
it. So a short message gets part of the score of its neighbours and its conversation, a long one little. The weights
were chosen on three sets of recorded conversations at once; see `docs/decisions/0042-ranking.md`.

`PassageMatcher` reads the index, which finds the passages of each word and the nearest vectors, with the same results
in all databases. All functions are pure: they take records and numbers from the index and return an order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from math import log

from inmind.core.encoding import from_microseconds, to_microseconds
from inmind.core.frozen import frozen
from inmind.search.crystal import score_crystal
from inmind.search.dates import DateSpan
from inmind.search.embedding import CrystalEmbedder
from inmind.search.index.base import MAX_PASSAGES_PER_WORD, Scope, SearchIndex, WordMatches
from inmind.search.index.record import Record, best_passages, crystal_of, passage_position, series_of
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


MAX_WORD_PASSAGES, MAX_MEANING_PASSAGES = 600, 300
"""Maximum number of passages considered by words, and by meaning."""

MIN_PASSAGES_FOR_FLOOR = 20
"""With fewer passages no typical cosine can be estimated."""

UNRELATED_COSINE = 0.15
"""Cosine of texts that share nothing but their language."""

MAX_CACHED_RESOURCES = 1_000
"""Resources whose hidden crystals are cached."""


@frozen
class ResourceMatches:
    """Crystals of one resource that match a query."""

    resource: str
    words: dict[int, float]
    """Scores by shared words."""
    meaning: dict[int, float]
    """Scores by meaning."""
    passage: dict[int, int]
    """Best passage of each crystal."""
    best_match: float
    """Quality of the best match, comparable across resources."""

    @property
    def combined(self) -> dict[int, float]:
        """Sum of both scores."""
        scores = dict(self.words)
        for number, score in self.meaning.items():
            scores[number] = scores.get(number, 0.0) + score
        return scores

    def with_match_scores(self, ranked: RankedRecord) -> RankedRecord:
        """Return a ranked record with a score that is comparable across resources."""
        number = ranked.record.number
        own = {"words": self.words.get(number, 0.0), "meaning": self.meaning.get(number, 0.0)}
        return RankedRecord(ranked.record, ranked.score * self.best_match, {**own, **ranked.parts})


class PassageMatcher:
    """Finds the passages that match a query, with the scores of their crystals."""

    def __init__(self, index: SearchIndex, embedder: CrystalEmbedder | None) -> None:
        self._index, self._embedder = index, embedder
        self._hidden_by_scope: dict[int, tuple[tuple[bytes, int], frozenset[int]]] = {}

    def find(self, parsed: ParsedQuery, query: Query, scope: Scope) -> ResourceMatches:
        """Match passages by words and meaning, and score their crystals."""
        matches = self._word_matches(scope, query, parsed.words)
        words = [
            (parsed.words[word] * word_rarity(match.count, scope.passages), match.passages)
            for word, match in matches.items()
        ]
        passages = best_passages(sum_word_scores(words, limit=widen(MAX_WORD_PASSAGES, query)), length_factor)
        lexical = {crystal: score for crystal, (score, _) in passages.items()}
        best = {crystal: passage_position(passage) for crystal, (_, passage) in passages.items()}
        meaning, floor = self._find_by_meaning(query, scope, best)
        by_words, by_meaning = score_by_words(lexical, words_only=not meaning), score_by_meaning(meaning, floor=floor)
        full_score = sum(score for score, _ in words) * length_factor(1)
        coverage = max(lexical.values()) / full_score if lexical else 0.0
        best_match = max(coverage, max(meaning.values(), default=0.0), 1e-9)
        return ResourceMatches(scope.name, by_words, by_meaning, best, best_match)

    def _find_by_meaning(self, query: Query, scope: Scope, best: dict[int, int]) -> tuple[dict[int, float], float]:
        """Return the cosines of the nearest crystals, and the floor above which one counts as near."""
        if self._embedder is None or not self._embedder.covers(scope):
            return {}, 0.0
        vector = self._embedder.embed_query(query.text)
        if vector is None:
            return {}, 0.0
        nearest = self._index.nearest(self._embedder.name, scope, vector, widen(MAX_MEANING_PASSAGES, query))
        meaning: dict[int, float] = {}
        hidden = self._hidden_numbers(scope, query)
        for passage, cosine in nearest.passages:
            crystal = crystal_of(passage)
            if crystal not in meaning and crystal not in hidden:
                meaning[crystal] = cosine
                best.setdefault(crystal, passage_position(passage))
        typical = min(MAX_MEANING_PASSAGES, nearest.total // 2)
        return meaning, max(
            nearest.passages[typical - 1][1] if nearest.total >= MIN_PASSAGES_FOR_FLOOR else 0.0, UNRELATED_COSINE
        )

    def _word_matches(self, scope: Scope, query: Query, words: Iterable[str]) -> dict[str, WordMatches]:
        """Return the visible passages for each word.

        A very common word is used only if no other matches.
        """
        matches = self._index.word_matches(scope, words, all_passages=query.has_filters)
        if not query.has_filters:
            rare = {word: match for word, match in matches.items() if match.count < MAX_PASSAGES_PER_WORD}
            matches = rare or matches
        hidden = self._hidden_numbers(scope, query)
        session_series = self._index.series_of(scope, f"session/{query.session}") if query.session else None
        if not hidden and session_series is None:
            return matches

        def visible(passages: Iterable[int]) -> list[int]:
            return [
                passage
                for passage in passages
                if crystal_of(passage) not in hidden
                and (session_series is None or series_of(passage) in session_series)
            ]

        return {word: WordMatches(match.count, visible(match.passages)) for word, match in matches.items()}

    def _hidden_numbers(self, scope: Scope, query: Query) -> frozenset[int]:
        """Return the hidden crystals.

        With `as_of` each record is checked instead, because other crystals were hidden then.
        """
        if query.as_of is not None or not scope.hidden_version:
            return frozenset()
        mark = (scope.index_identity, scope.hidden_version)
        known = self._hidden_by_scope.get(scope.id)
        if known is None or known[0] != mark:
            if len(self._hidden_by_scope) >= MAX_CACHED_RESOURCES:
                self._hidden_by_scope.clear()
            known = self._hidden_by_scope[scope.id] = (mark, self._index.hidden_numbers(scope))
        return known[1]


def widen(limit: int, query: Query) -> int:
    """Return how many to read: more with filters, so that enough of them pass."""
    return 50 * limit if query.has_filters else limit
