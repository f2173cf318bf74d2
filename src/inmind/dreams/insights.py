"""What no single crystal says: the same thing said over and over, topics that go together, loops that are still open.

Each insight names all that it is made of, is trusted no more than the least of it, and is made once: `about` says what
it is about, and whatever is known by that already is not made again.

What tools have answered makes none. They answer the same to the same call, so that says nothing; and whether a page on
the web speaks of a person cannot be told, so it must not become something that is known of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import combinations, islice
from typing import Final

from inmind.core.encoding import digest
from inmind.core.events.base import Trust
from inmind.core.language.prose import compiled
from inmind.core.text import shortened
from inmind.dreams.activity import Activity, SearchUse
from inmind.dreams.material import Insight
from inmind.dreams.names import names_in
from inmind.dreams.open_loops import OpenLoop, find_open_loops, loop_text, loop_words
from inmind.dreams.similarity import group_similar
from inmind.search.crystal import Crystal
from inmind.search.lifecycle import is_searchable
from inmind.search.query_parse import keywords
from inmind.search.tokenize import index_words, query_words

MAX_INSIGHTS_PER_KIND: Final = 10
"""Insights of each kind in one dream; what is left is found again by the next."""

MIN_REPEATS: Final = 3
MIN_OCCASIONS: Final = 2
"""Who says something three times in one breath insists, and has not said anything new."""

MIN_LINK_SESSIONS: Final = 3
"""In which two topics come up together."""

MIN_KEY_WORDS: Final = 3
"""That tell something: "thanks, go on" is said all the time, and says nothing."""

MAX_CRYSTAL_CHARACTERS: Final = 400
"""What is longer is a text, which says many things."""

MAX_INSIGHT_CHARACTERS: Final = 240


def accessed_crystals(searches: Iterable[SearchUse]) -> tuple[str, ...]:
    """Crystals that somebody has looked up, in the order in which that was first done."""
    return tuple(dict.fromkeys(crystal for lookup in searches for crystal in lookup.hits))


def find_insights(
    crystals: Iterable[Crystal],
    activity: Activity,
    known_keys: frozenset[str],
    now: datetime,
    *,
    loop_lines: Collection[str] = (),
) -> list[Insight]:
    """What can be seen now and is not known yet. `loops`: lines of those that are open already."""
    usable = sorted(filter(_is_usable, crystals), key=lambda crystal: (crystal.at, crystal.id))
    return [
        *islice(_open_loop_insights(activity, known_keys, now, loop_lines), MAX_INSIGHTS_PER_KIND),
        *islice(_repeated(usable, known_keys), MAX_INSIGHTS_PER_KIND),
        *islice(_linked_names(usable, known_keys), MAX_INSIGHTS_PER_KIND),
    ]


def _is_usable(crystal: Crystal) -> bool:
    """Is it a person's word, or what somebody wrote down? Pages have versions, and insights are made of others."""
    spoken = crystal.source == "memory" or crystal.trust >= Trust.PERSON
    plain = crystal.kind != "insight" and not crystal.path and 0 < len(crystal.text) <= MAX_CRYSTAL_CHARACTERS
    return spoken and plain and crystal.trust > Trust.DATA and is_searchable(crystal)


# -- the same, over and over -------------------------------------------------------------------------------


def _repeated(crystals: Sequence[Crystal], known_keys: frozenset[str]) -> Iterator[Insight]:
    word_sets = [frozenset(index_words(crystal.text)) for crystal in crystals]
    alike = (
        group
        for nearly in group_similar(word_sets)
        if len(nearly) >= MIN_REPEATS
        for group in _split_by_facts(nearly, word_sets)
    )
    for members in sorted((group for group in alike if len(group) >= MIN_REPEATS), key=len, reverse=True):
        same = [crystals[place] for place in members]
        fullest = crystals[max(members, key=lambda place: (len(word_sets[place]), place))]
        new = known_keys.isdisjoint(f"same {crystal.id}" for crystal in same)
        telling = keywords(fullest.text) - _PLEASANTRIES
        if new and len({*map(_occasion, same)}) >= MIN_OCCASIONS and len(telling) >= MIN_KEY_WORDS:
            yield Insight(
                text=f"{shortened(fullest.text, MAX_INSIGHT_CHARACTERS)} {_repeat_suffix(fullest.text, len(same), same[0].at)}",
                method="compression",
                key=f"same {same[0].id}",
                sources=tuple(crystal.id for crystal in same),
                importance=min(0.8, max(0.5, *(crystal.importance for crystal in same))),
                trust=min(crystal.trust for crystal in same),
            )


def _split_by_facts(similar: Sequence[int], word_sets: Sequence[frozenset[str]]) -> Iterable[list[int]]:
    """Of what is said in nearly the same words, that which says the same: in its numbers, and in its yes or no."""
    found: defaultdict[frozenset[str], list[int]] = defaultdict(list)
    for place in similar:
        found[frozenset(word for word in word_sets[place] if word in _NEGATIONS or not word.isalpha())].append(place)
    return found.values()


def _repeat_suffix(text: str, times: int, since: datetime) -> str:
    if compiled(_HAN).search(text):
        return f"（自 {since:%Y-%m-%d} 起提到 {times} 次）"
    return f"(came up {times} times since {since:%Y-%m-%d})"


# -- what goes together ------------------------------------------------------------------------------------


def _linked_names(crystals: Sequence[Crystal], known_keys: frozenset[str]) -> Iterator[Insight]:
    """Names that stand together in what was said on several occasions."""
    together: defaultdict[tuple[str, str], list[Crystal]] = defaultdict(list)
    spelt: dict[str, str] = {}
    for crystal in crystals:
        names = {name.casefold(): name for name in names_in(crystal.text)[:MAX_INSIGHTS_PER_KIND]}
        spelt |= names
        for pair in combinations(sorted(names), 2):
            together[pair].append(crystal)
    for (one, other), of_both in sorted(together.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        occasions = len({*map(_occasion, of_both)})
        about = f"link {one} + {other}"
        if (
            occasions >= MIN_LINK_SESSIONS
            and about not in known_keys
            and {*query_words(one)}.isdisjoint(query_words(other))
        ):
            yield Insight(
                text=_link_text(spelt[one], spelt[other], occasions, of_both[0].at),
                method="link",
                key=about,
                sources=tuple(crystal.id for crystal in of_both),
                importance=0.4,
                trust=min(crystal.trust for crystal in of_both),
            )


def _link_text(one: str, other: str, occasions: int, since: datetime) -> str:
    if compiled(_HAN).search(one + other):
        return f"{one}与{other}常被一起提到（{occasions} 次会话，自 {since:%Y-%m-%d} 起）"
    return f"{one} and {other} come up together (in {occasions} sessions since {since:%Y-%m-%d})"


# -- what is still open ------------------------------------------------------------------------------------


def _open_loop_insights(
    activity: Activity, known_keys: frozenset[str], now: datetime, loop_lines: Collection[str]
) -> Iterator[Insight]:
    """Told once while it is open. What was done and is asked for again on another day is another loop."""
    standing = {loop_words(loop_text(line)) for line in loop_lines}
    found: dict[str, OpenLoop] = {}
    for loop in find_open_loops(activity.utterances, now):
        found.setdefault(f"open {digest(*sorted(loop.words))} {loop.utterance.at:%Y-%m-%d}", loop)
    for about, loop in found.items():
        if about not in known_keys and loop.words not in standing:
            yield Insight(
                text=loop.line,
                method="open_loop",
                key=about,
                sources=(loop.utterance.id,),
                importance=0.6,
                trust=loop.utterance.trust,
            )


def _occasion(crystal: Crystal) -> str:
    """The session, or the day on which it was written down."""
    return crystal.session or f"{crystal.at:%Y-%m-%d}"


_HAN = "[一-鿿]"
_NEGATIONS = frozenset("not never no none without t 不 没 無 无 未 别".split())
"""As words are cut: the "t" is that of "don't"."""

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
"""What people say to be kind, whatever it is about."""
