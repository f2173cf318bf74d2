"""Which of many texts say nearly the same, without holding each against each.

Texts are sets of words, and two are alike by the words they share of all they have (Jaccard). Whatever two sets share,
they share it somewhere, and if it is much, some of it is rare: of two sets of fifteen that are alike, at least three
shared words are among the nine rarest of either. So each is held only against those that it meets so often under its
rarest words, and of these only against the first of every group.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from itertools import chain
from math import ceil
from typing import Final

MIN_SIMILARITY: Final = 0.6

MIN_SHARED_RARE_WORDS: Final = 3
"""How often two sets have to meet before they are compared. More would mean to look under more words."""

MAX_GROUPS_PER_WORD: Final = 16
"""Groups that are looked at under one word, the last ones: a rare word of so many groups is not rare."""


def group_similar(sets: Sequence[frozenset[str]]) -> list[list[int]]:
    """The places of those that are alike, in their order; each group is of what its first one is like."""
    rarity = Counter(chain.from_iterable(sets))
    found: list[list[int]] = []
    wanted: list[int] = []
    """For each group, how often one meets what is like its first."""
    exactly: dict[frozenset[str], int] = {}
    under: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=MAX_GROUPS_PER_WORD))
    for place, words in enumerate(sets):
        group = exactly.get(words)
        if group is None and words:
            rare, often = _index_words(words, rarity), _min_shared_rare_words(words)
            met = Counter(chain.from_iterable(under[word] for word in rare if word in under))
            near = (one for one, times in met.items() if times >= often or times >= wanted[one])
            best, nearest = max(((jaccard(words, sets[found[one][0]]), -one) for one in near), default=(0.0, 0))
            group = -nearest if best >= MIN_SIMILARITY else len(found)
            if group == len(found):
                found.append([])
                wanted.append(often)
                for word in rare:
                    under[word].append(group)
            exactly[words] = group
        if group is not None:
            found[group].append(place)
    return found


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def _min_shared_words(words: frozenset[str]) -> int:
    """How many words at least it has in common with everything that it is like."""
    return ceil(MIN_SIMILARITY * len(words))


def _min_shared_rare_words(words: frozenset[str]) -> int:
    return min(MIN_SHARED_RARE_WORDS, _min_shared_words(words))


def _index_words(words: frozenset[str], frequencies: Counter[str]) -> list[str]:
    """The words under which it is kept and looked for: behind the last of them, too few are left to be alike without
    having met often enough before. A word that nobody else has is not worth keeping."""
    often = sorted((frequencies[word], word) for word in words)
    return [
        word
        for times, word in often[: len(words) - _min_shared_words(words) + _min_shared_rare_words(words)]
        if times > 1
    ]
