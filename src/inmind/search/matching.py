"""Matches passages of one resource with a query, by words and by meaning.

The index finds the passages of each word and the nearest vectors; both have identical results in all databases.
"""

from __future__ import annotations

from collections.abc import Iterable

from inmind.core.frozen import frozen
from inmind.search.embedding import CrystalEmbedder
from inmind.search.index.base import MAX_PASSAGES_PER_WORD, Scope, SearchIndex, WordMatches
from inmind.search.index.record import best_passages, crystal_of, passage_position, series_of
from inmind.search.query import ParsedQuery, Query
from inmind.search.rank import (
    RankedRecord,
    length_factor,
    score_by_meaning,
    score_by_words,
    sum_word_scores,
    word_rarity,
)

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
