"""What the agent does not know and might want to find out: gaps.

They come from three places: questions to which nobody had an answer, searches that found little, and names that
somebody mentioned once and nobody took up. A gap is over two days after it last came up; and it is closed when a later
search finds enough, or a later reply speaks of it and knows.

Everything is gone through in the order in which it happened, so that what closes a gap comes after what opened it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap
from inmind.core.text import shortened
from inmind.dreams.activity import Activity, ActivityTurn, SearchUse, Utterance, split_turns, unanswered_turns
from inmind.dreams.names import names_in_sentences
from inmind.dreams.questions import left_open, questions_in
from inmind.dreams.unknown_names import strangers_in
from inmind.search.query_parse import key_words
from inmind.search.tokenize import words_asked

LASTS: Final = timedelta(hours=48)
"""Since it last came up."""

MOST: Final = 10

MOST_NAMES: Final = 3
"""A talk is full of names; those of a dream must not push out what somebody has really asked."""

MOST_OPEN: Final = 100
"""Held against everything that comes up, those that came up last: a long talk must not take the square of its time."""

MOST_TOPIC: Final = 120
MOST_SOURCES: Final = 5

# What says most of what is not known comes first: whose words a gap keeps when two are the same.
_WHYS = ("unanswered", "not_found", "mentioned_once")


def gaps(lived: Activity, before: Sequence[KnowledgeGap], now: datetime) -> tuple[KnowledgeGap, ...]:
    """All that there are from now on, the newest first."""
    recent = _since(lived, now - LASTS)
    signals = sorted((*_from_talk(recent, before, now), *_from_lookups(recent.searches)), key=lambda signal: signal.at)
    open_gaps = [_Open.of(gap) for gap in before if not _is_over(gap, now)]
    for signal in signals:
        open_gaps = [one for one in open_gaps if not signal.closes(one)]
        for gap in signal.opens:
            open_gaps = _opened(open_gaps, _Open.of(gap))
    newest = sorted((one.gap for one in open_gaps if not _is_over(one.gap, now)), key=lambda gap: gap.topic)
    return tuple(sorted(newest, key=lambda gap: gap.last_seen, reverse=True)[:MOST])


class _Open(NamedTuple):
    gap: KnowledgeGap
    words: frozenset[str]

    @classmethod
    def of(cls, gap: KnowledgeGap) -> _Open:
        return cls(gap, _words(gap.topic))

    def is_same(self, other: _Open) -> bool:
        shared, least = len(self.words & other.words), min(len(self.words), len(other.words))
        if "mentioned_once" in (self.gap.reason, other.gap.reason):
            return shared == least
        return self.words == other.words or (shared > 1 and shared >= 0.6 * least)

    def renewed_by(self, newer: _Open) -> _Open:
        better, other = sorted((self, newer), key=lambda one: _WHYS.index(one.gap.reason))
        gap = better.gap._replace(
            since=min(self.gap.since, newer.gap.since),
            last_seen=max(self.gap.last_seen, newer.gap.last_seen),
            sources=tuple(dict.fromkeys((*self.gap.sources, *newer.gap.sources)))[-MOST_SOURCES:],
        )
        return better._replace(gap=gap) if better.words else other._replace(gap=gap)


class _Signal(NamedTuple):
    """Something that opens gaps, or closes them."""

    at: datetime
    opens: tuple[KnowledgeGap, ...] = ()
    told: frozenset[str] = frozenset()
    """Words of what is known from now on."""
    asked: frozenset[str] = frozenset()
    """Words of what it answers. A name is not taken up by being asked along with something else."""

    def closes(self, one: _Open) -> bool:
        known = self.told if one.gap.reason == "mentioned_once" else self.told | self.asked
        return bool(self.told) and len(one.words & known) >= 0.6 * len(one.words)


def _opened(open_gaps: Sequence[_Open], new: _Open) -> list[_Open]:
    """With those behind that came up last."""
    same = next((one for one in open_gaps if one.is_same(new)), None)
    if same is None:
        return [*open_gaps, new][-MOST_OPEN:]
    return [*(one for one in open_gaps if one is not same), same.renewed_by(new)]


def _from_lookups(lookups: Iterable[SearchUse]) -> Iterator[_Signal]:
    for lookup in lookups:
        words = _words(lookup.query)
        if lookup.hits:
            yield _Signal(lookup.at, told=words)
        elif words:
            yield _Signal(lookup.at, opens=(_gap(lookup.query, "not_found", lookup.at, lookup.id),))


def _from_talk(lived: Activity, before: Sequence[KnowledgeGap], now: datetime) -> Iterator[_Signal]:
    said = split_turns(lived.utterances)
    taken_up: set[str] = set()
    for turn in said:
        if turn.final_reply:
            lacking, known = left_open(turn.final_reply)
            told, asked = frozenset(words_asked(known)), frozenset(words_asked(_asked(turn)))
            open_questions = tuple(_unanswered(turn, told)) if lacking else ()
            yield _Signal(turn.responses[-1].at, open_questions, told, frozenset() if lacking else asked)
        taken_up.update(word for spoke in turn.responses for word in words_asked(_taken_up(spoke)))
    for turn in unanswered_turns(said, now):
        yield _Signal(turn.user_messages[-1].at, tuple(_unanswered(turn, frozenset())))
    yield from _names(lived, taken_up, {gap.topic for gap in before})


def _unanswered(turn: ActivityTurn, told: frozenset[str]) -> Iterator[KnowledgeGap]:
    for spoke in _people(turn.user_messages):
        for question in questions_in(spoke.sentences):
            words = _words(question)
            if len(words & told) < 0.6 * len(words):
                yield _gap(question, "unanswered", spoke.at, spoke.id)


def _names(lived: Activity, taken_up: set[str], known: set[str]) -> Iterator[_Signal]:
    """Names that stand in one message alone, those of the last messages; and those that are a gap already."""
    naming = [
        (spoke, names)
        for spoke in _people(lived.utterances)
        if spoke.role == "user" and (names := names_in_sentences(spoke.sentences))
    ]
    times = Counter(name for _, names in naming for name in names)
    said = ((spoke, strangers_in(spoke.sentences)) for spoke, _ in naming)
    new = [(name, spoke) for spoke, names in said for name in names if not taken_up.issuperset(words_asked(name))]
    again = [one for one in new if one[0] in known]
    once = [one for one in new if times[one[0]] == 1 and one not in again]
    for name, spoke in (*again, *once[-MOST_NAMES:]):
        yield _Signal(spoke.at, (_gap(name, "mentioned_once", spoke.at, spoke.id),))


def _taken_up(spoke: Utterance) -> str:
    """What the agent says, and asks of tools. What these answer is nobody's interest in anything."""
    return "\n".join((spoke.text, *(used.arguments for used in spoke.tool_uses))) if spoke.role == "assistant" else ""


def _gap(topic: str, why: str, at: datetime, source: str) -> KnowledgeGap:
    return KnowledgeGap(shortened(topic, MOST_TOPIC), why, at.isoformat(), at.isoformat(), (source,))


def _words(text: str) -> frozenset[str]:
    return key_words(text) or frozenset(words_asked(text))


def _is_over(gap: KnowledgeGap, now: datetime) -> bool:
    return now - datetime.fromisoformat(gap.last_seen) > LASTS


def _since(lived: Activity, start: datetime) -> Activity:
    """What is older can open nothing that would not be over, and what it closes was open before it."""
    return Activity(
        utterances=tuple(spoke for spoke in lived.utterances if spoke.at >= start),
        searches=tuple(lookup for lookup in lived.searches if lookup.at >= start),
    )


def _people(talk: Iterable[Utterance]) -> Iterator[Utterance]:
    return (spoke for spoke in talk if spoke.trust >= Trust.PERSON)


def _asked(turn: ActivityTurn) -> str:
    return "\n".join(spoke.text for spoke in turn.user_messages)
