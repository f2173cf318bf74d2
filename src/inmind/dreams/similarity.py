"""Group similar texts without comparing every pair.

A text is a set of words; similarity is the Jaccard index. Similar sets share many words, and some of these are rare: of
two similar sets of fifteen words, at least three shared words are among the nine rarest of each. So each set is
compared only with groups that share enough of its rarest words, and only with the first member of each group.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import chain
from math import ceil
from typing import Final

MIN_SIMILARITY: Final = 0.6

MIN_SHARED_RARE_WORDS: Final = 3
"""Shared rare words from which two sets are compared. A higher number would require indexing more words."""

MAX_GROUPS_PER_WORD: Final = 16
"""Groups kept for each word, the latest ones. A word of more groups is not rare."""


def group_similar(sets: Sequence[frozenset[str]]) -> list[list[int]]:
    """Indexes of similar sets, grouped, in order.

    All members are similar to the first of their group.
    """
    frequencies = Counter(chain.from_iterable(sets))
    groups: list[list[int]] = []
    min_matches: list[int] = []
    """For each group, the rare words that a set similar to its first member shares at least."""
    group_by_words: dict[frozenset[str], int] = {}
    groups_by_word: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=MAX_GROUPS_PER_WORD))
    for index, words in enumerate(sets):
        group = group_by_words.get(words)
        if group is None and words:
            index_words, required = _index_words(words, frequencies), _min_shared_rare_words(words)
            match_counts = Counter(
                chain.from_iterable(groups_by_word[word] for word in index_words if word in groups_by_word)
            )
            candidates = (
                candidate
                for candidate, count in match_counts.items()
                if count >= required or count >= min_matches[candidate]
            )
            similarity, group_key = max(
                ((jaccard(words, sets[groups[candidate][0]]), -candidate) for candidate in candidates), default=(0.0, 0)
            )
            group = -group_key if similarity >= MIN_SIMILARITY else len(groups)
            if group == len(groups):
                groups.append([])
                min_matches.append(required)
                for word in index_words:
                    groups_by_word[word].append(group)
            group_by_words[words] = group
        if group is not None:
            groups[group].append(index)
    return groups


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def _min_shared_words(words: frozenset[str]) -> int:
    """The minimum number of words shared with any similar set."""
    return ceil(MIN_SIMILARITY * len(words))


def _min_shared_rare_words(words: frozenset[str]) -> int:
    return min(MIN_SHARED_RARE_WORDS, _min_shared_words(words))


def _index_words(words: frozenset[str], frequencies: Counter[str]) -> list[str]:
    """The rarest words, by which a set is indexed and looked up.

    The remaining words are too few for a similar set that does not share enough of these. Words of a single set are
    left out.
    """
    by_frequency = sorted((frequencies[word], word) for word in words)
    return [
        word
        for count, word in by_frequency[: len(words) - _min_shared_words(words) + _min_shared_rare_words(words)]
        if count > 1
    ]
