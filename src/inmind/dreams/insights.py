"""Derive insights from crystals and activity: repeated statements, open loops.

Each insight lists its sources, has the lowest trust among them, and is derived once: an insight whose `key` is known is
skipped.

Tool results are not used. A tool returns the same result for the same call, so repetition means nothing; and a web page
about a person must not become a fact about the user.

Similar texts are grouped without comparing every pair. A text is a set of words; similarity is the Jaccard index.
Similar sets share many words, and some of these are rare: of two similar sets of fifteen words, at least three shared
words are among the nine rarest of each. So each set is compared only with groups that share enough of its rarest words,
and only with the first member of each group.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from math import ceil
from typing import Final

from inmind.core.encoding import digest
from inmind.core.events.base import Trust
from inmind.core.fair_turns import giving_way
from inmind.core.language.spans import has_han
from inmind.core.text import shorten
from inmind.dreams.material import Activity, LineSource
from inmind.dreams.open_loops import OpenLoop, find_open_loops, loop_text, loop_words
from inmind.search.crystal import Crystal, is_searchable
from inmind.search.query import keywords
from inmind.search.tokenize import index_words, query_words

MAX_INSIGHTS_PER_KIND: Final = 10
"""Insights of each kind in one dream. The next dream finds the others again."""

MIN_REPEATS: Final = 3
MIN_OCCASIONS: Final = 2
"""Sessions or days with the statement. Repetitions within one session do not count."""

MIN_KEY_WORDS: Final = 3
"""Meaningful words of a statement; "thanks, go on" has too few."""

MAX_CRYSTAL_CHARACTERS: Final = 400
"""Longer crystals contain several statements and are skipped."""

MAX_INSIGHT_CHARACTERS: Final = 240


def find_insights(
    crystals: Iterable[Crystal],
    activity: Activity,
    known_keys: frozenset[str],
    now: datetime,
    *,
    loop_lines: Collection[str] = (),
) -> list[LineSource]:
    """New insights. `loop_lines`: lines of open loops that are on the page already."""
    usable = sorted(filter(_is_usable, crystals), key=lambda crystal: (crystal.at, crystal.id))
    return [
        *islice(_open_loop_insights(activity, known_keys, now, loop_lines), MAX_INSIGHTS_PER_KIND),
        *islice(_repeated_statements(usable, known_keys, now), MAX_INSIGHTS_PER_KIND),
    ]


def _is_usable(crystal: Crystal) -> bool:
    """True for words of a user and written notes. Pages and other insights are excluded."""
    is_stated = crystal.source == "memory" or crystal.trust >= Trust.PERSON
    is_short = crystal.kind != "insight" and not crystal.path and 0 < len(crystal.text) <= MAX_CRYSTAL_CHARACTERS
    return is_stated and is_short and crystal.trust > Trust.DATA and is_searchable(crystal)


# -- repeated statements -----------------------------------------------------------------------------------


def _repeated_statements(
    crystals: Sequence[Crystal], known_keys: frozenset[str], now: datetime
) -> Iterator[LineSource]:
    word_sets = [frozenset(index_words(crystal.text)) for crystal in giving_way(crystals)]
    groups = (
        group
        for similar in group_similar(word_sets)
        if len(similar) >= MIN_REPEATS
        for group in _split_by_facts(similar, word_sets)
    )
    for indexes in sorted((group for group in groups if len(group) >= MIN_REPEATS), key=len, reverse=True):
        same_crystals = [crystals[index] for index in indexes]
        longest = crystals[max(indexes, key=lambda index: (len(word_sets[index]), index))]
        is_new = known_keys.isdisjoint(f"same {crystal.id}" for crystal in same_crystals)
        topic_words = keywords(longest.text) - _PLEASANTRIES
        if is_new and len({*map(_occasion, same_crystals)}) >= MIN_OCCASIONS and len(topic_words) >= MIN_KEY_WORDS:
            text = shorten(longest.text, MAX_INSIGHT_CHARACTERS)
            yield LineSource(
                text=f"{text} {_repeat_suffix(longest.text, len(same_crystals), same_crystals[0].at)}",
                key=f"same {same_crystals[0].id}",
                ids=tuple(crystal.id for crystal in same_crystals),
                kind="insight",
                at=now.isoformat(),
                importance=min(0.8, max(0.5, *(crystal.importance for crystal in same_crystals))),
                trust=min(crystal.trust for crystal in same_crystals),
            )


def _split_by_facts(similar: Sequence[int], word_sets: Sequence[frozenset[str]]) -> Iterable[list[int]]:
    """Split similar statements by numbers and negations, so that each group says the same."""
    groups: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for index in similar:
        groups[frozenset(word for word in word_sets[index] if word in _NEGATIONS or not word.isalpha())].append(index)
    return groups.values()


def _repeat_suffix(text: str, times: int, since: datetime) -> str:
    if has_han(text):
        return f"（自 {since:%Y-%m-%d} 起提到 {times} 次）"
    return f"(came up {times} times since {since:%Y-%m-%d})"


# -- open loops --------------------------------------------------------------------------------------------


def _open_loop_insights(
    activity: Activity, known_keys: frozenset[str], now: datetime, loop_lines: Collection[str]
) -> Iterator[LineSource]:
    """Open loops that are not on the page. The same request on another day is another loop."""
    known_loops = {loop_words(loop_text(line)) for line in loop_lines}
    new_loops: dict[str, OpenLoop] = {}
    for loop in find_open_loops(activity.utterances, now):
        new_loops.setdefault(f"open {digest(*sorted(loop.words))} {loop.utterance.at:%Y-%m-%d}", loop)
    for key, loop in new_loops.items():
        if key not in known_keys and loop.words not in known_loops:
            yield LineSource(
                text=loop.line,
                key=key,
                ids=(loop.utterance.id,),
                kind="insight",
                at=now.isoformat(),
                importance=0.6,
                trust=loop.utterance.trust,
            )


def _occasion(crystal: Crystal) -> str:
    """The session, or the day of a written note."""
    return crystal.session or f"{crystal.at:%Y-%m-%d}"


_NEGATIONS = frozenset("not never no none without t 不 没 無 无 未 别".split())
"""As the tokenizer splits words: "t" is from "don't"."""

_PLEASANTRIES = frozenset(
    query_words(
        """
        thanks thank thankful bye goodbye take care worry worries support supportive appreciate glad happy great nice
        good awesome amazing cool sound lot mean luck congratulations congrats welcome sorry soon later chat catch wait
        hear excited fun enjoy day week weekend night morning evening really always keep updated posted let know
        anything else yes yeah ok okay sure perfect next step continue go on best wish hope hi hello hey 谢谢 好的 再见
        """
    )
)
"""Polite words without a topic."""


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
    for index, words in enumerate(giving_way(sets)):
        group = group_by_words.get(words)
        if group is None and words:
            rare_words, required = _index_words(words, frequencies)
            match_counts = Counter(
                chain.from_iterable(groups_by_word[word] for word in rare_words if word in groups_by_word)
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
                for word in rare_words:
                    groups_by_word[word].append(group)
            group_by_words[words] = group
        if group is not None:
            groups[group].append(index)
    return groups


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def _index_words(words: frozenset[str], frequencies: Counter[str]) -> tuple[list[str], int]:
    """The rarest words of a set, and how many of them a similar set shares at least.

    A set is indexed and looked up by them. The remaining words are too few for a similar set that does not share enough
    of these. Words of a single set are left out.
    """
    min_shared = ceil(MIN_SIMILARITY * len(words))
    min_shared_rare = min(MIN_SHARED_RARE_WORDS, min_shared)
    by_frequency = sorted((frequencies[word], word) for word in words)
    rarest = by_frequency[: len(words) - min_shared + min_shared_rare]
    return [word for count, word in rarest if count > 1], min_shared_rare
