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
from inmind.dreams.questions import questions_in, split_unanswered
from inmind.dreams.unknown_names import find_unknown_names
from inmind.search.query_parse import keywords
from inmind.search.tokenize import query_words

GAP_LIFETIME: Final = timedelta(hours=48)
"""Since it last came up."""

MAX_GAPS: Final = 10

MAX_NEW_NAMES: Final = 3
"""A talk is full of names; those of a dream must not push out what somebody has really asked."""

MAX_OPEN_GAPS: Final = 100
"""Held against everything that comes up, those that came up last: a long talk must not take the square of its time."""

MAX_TOPIC_CHARACTERS: Final = 120
MAX_GAP_SOURCES: Final = 5

# What says most of what is not known comes first: whose words a gap keeps when two are the same.
_REASON_ORDER = ("unanswered", "not_found", "mentioned_once")


def update_gaps(activity: Activity, previous: Sequence[KnowledgeGap], now: datetime) -> tuple[KnowledgeGap, ...]:
    """All that there are from now on, the newest first."""
    recent = _recent(activity, now - GAP_LIFETIME)
    signals = sorted(
        (*_signals_from_turns(recent, previous, now), *_signals_from_searches(recent.searches)),
        key=lambda signal: signal.at,
    )
    open_gaps = [_OpenGap.of(gap) for gap in previous if not _is_expired(gap, now)]
    for signal in signals:
        open_gaps = [one for one in open_gaps if not signal.closes(one)]
        for gap in signal.opened_gaps:
            open_gaps = _add_gap(open_gaps, _OpenGap.of(gap))
    newest = sorted((one.gap for one in open_gaps if not _is_expired(one.gap, now)), key=lambda gap: gap.topic)
    return tuple(sorted(newest, key=lambda gap: gap.last_seen, reverse=True)[:MAX_GAPS])


class _OpenGap(NamedTuple):
    gap: KnowledgeGap
    words: frozenset[str]

    @classmethod
    def of(cls, gap: KnowledgeGap) -> _OpenGap:
        return cls(gap, _topic_words(gap.topic))

    def is_same_topic(self, other: _OpenGap) -> bool:
        shared, least = len(self.words & other.words), min(len(self.words), len(other.words))
        if "mentioned_once" in (self.gap.reason, other.gap.reason):
            return shared == least
        return self.words == other.words or (shared > 1 and shared >= 0.6 * least)

    def merged_with(self, newer: _OpenGap) -> _OpenGap:
        better, other = sorted((self, newer), key=lambda one: _REASON_ORDER.index(one.gap.reason))
        gap = better.gap._replace(
            since=min(self.gap.since, newer.gap.since),
            last_seen=max(self.gap.last_seen, newer.gap.last_seen),
            sources=tuple(dict.fromkeys((*self.gap.sources, *newer.gap.sources)))[-MAX_GAP_SOURCES:],
        )
        return better._replace(gap=gap) if better.words else other._replace(gap=gap)


class _Signal(NamedTuple):
    """Something that opens gaps, or closes them."""

    at: datetime
    opened_gaps: tuple[KnowledgeGap, ...] = ()
    known_words: frozenset[str] = frozenset()
    """Words of what is known from now on."""
    question_words: frozenset[str] = frozenset()
    """Words of what it answers. A name is not taken up by being asked along with something else."""

    def closes(self, open_gap: _OpenGap) -> bool:
        known = self.known_words if open_gap.gap.reason == "mentioned_once" else self.known_words | self.question_words
        return bool(self.known_words) and len(open_gap.words & known) >= 0.6 * len(open_gap.words)


def _add_gap(open_gaps: Sequence[_OpenGap], new: _OpenGap) -> list[_OpenGap]:
    """With those behind that came up last."""
    same = next((one for one in open_gaps if one.is_same_topic(new)), None)
    if same is None:
        return [*open_gaps, new][-MAX_OPEN_GAPS:]
    return [*(one for one in open_gaps if one is not same), same.merged_with(new)]


def _signals_from_searches(searches: Iterable[SearchUse]) -> Iterator[_Signal]:
    for lookup in searches:
        words = _topic_words(lookup.query)
        if lookup.hits:
            yield _Signal(lookup.at, known_words=words)
        elif words:
            yield _Signal(lookup.at, opened_gaps=(_new_gap(lookup.query, "not_found", lookup.at, lookup.id),))


def _signals_from_turns(activity: Activity, previous: Sequence[KnowledgeGap], now: datetime) -> Iterator[_Signal]:
    said = split_turns(activity.utterances)
    agent_words: set[str] = set()
    for turn in said:
        if turn.final_reply:
            lacking, known = split_unanswered(turn.final_reply)
            told, asked = frozenset(query_words(known)), frozenset(query_words(_user_text(turn)))
            open_questions = tuple(_unanswered_questions(turn, told)) if lacking else ()
            yield _Signal(turn.responses[-1].at, open_questions, told, frozenset() if lacking else asked)
        agent_words.update(word for spoke in turn.responses for word in query_words(_agent_text(spoke)))
    for turn in unanswered_turns(said, now):
        yield _Signal(turn.user_messages[-1].at, tuple(_unanswered_questions(turn, frozenset())))
    yield from _signals_from_names(activity, agent_words, {gap.topic for gap in previous})


def _unanswered_questions(turn: ActivityTurn, known_words: frozenset[str]) -> Iterator[KnowledgeGap]:
    for spoke in _from_people(turn.user_messages):
        for question in questions_in(spoke.sentences):
            words = _topic_words(question)
            if len(words & known_words) < 0.6 * len(words):
                yield _new_gap(question, "unanswered", spoke.at, spoke.id)


def _signals_from_names(activity: Activity, agent_words: set[str], gap_topics: set[str]) -> Iterator[_Signal]:
    """Names that stand in one message alone, those of the last messages; and those that are a gap already."""
    naming = [
        (spoke, names)
        for spoke in _from_people(activity.utterances)
        if spoke.role == "user" and (names := names_in_sentences(spoke.sentences))
    ]
    times = Counter(name for _, names in naming for name in names)
    said = ((spoke, find_unknown_names(spoke.sentences)) for spoke, _ in naming)
    new = [(name, spoke) for spoke, names in said for name in names if not agent_words.issuperset(query_words(name))]
    again = [one for one in new if one[0] in gap_topics]
    once = [one for one in new if times[one[0]] == 1 and one not in again]
    for name, spoke in (*again, *once[-MAX_NEW_NAMES:]):
        yield _Signal(spoke.at, (_new_gap(name, "mentioned_once", spoke.at, spoke.id),))


def _agent_text(spoke: Utterance) -> str:
    """What the agent says, and asks of tools. What these answer is nobody's interest in anything."""
    return "\n".join((spoke.text, *(used.arguments for used in spoke.tool_uses))) if spoke.role == "assistant" else ""


def _new_gap(topic: str, why: str, at: datetime, source: str) -> KnowledgeGap:
    return KnowledgeGap(shortened(topic, MAX_TOPIC_CHARACTERS), why, at.isoformat(), at.isoformat(), (source,))


def _topic_words(text: str) -> frozenset[str]:
    return keywords(text) or frozenset(query_words(text))


def _is_expired(gap: KnowledgeGap, now: datetime) -> bool:
    return now - datetime.fromisoformat(gap.last_seen) > GAP_LIFETIME


def _recent(activity: Activity, start: datetime) -> Activity:
    """What is older can open nothing that would not be over, and what it closes was open before it."""
    return Activity(
        utterances=tuple(spoke for spoke in activity.utterances if spoke.at >= start),
        searches=tuple(lookup for lookup in activity.searches if lookup.at >= start),
    )


def _from_people(utterances: Iterable[Utterance]) -> Iterator[Utterance]:
    return (spoke for spoke in utterances if spoke.trust >= Trust.PERSON)


def _user_text(turn: ActivityTurn) -> str:
    return "\n".join(spoke.text for spoke in turn.user_messages)
