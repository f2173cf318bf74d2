"""Find knowledge gaps: topics that the agent does not know and might want to find out.

There are two sources: questions without an answer, and searches without a hit. A gap expires two days after it last
occurred. It is closed when a later search has hits, or a later reply answers it.

Signals are processed in the order of time, so that a signal can only close gaps that were opened before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap
from inmind.core.fair_turns import giving_way
from inmind.core.text import shorten
from inmind.dreams.material import Activity, ActivityTurn, SearchUse, Utterance, split_turns, unanswered_turns
from inmind.dreams.sentences import questions_in, split_unanswered
from inmind.search.query import keywords
from inmind.search.tokenize import query_words

GAP_LIFETIME: Final = timedelta(hours=48)
"""Time after the last occurrence of a gap until it expires."""

MAX_GAPS: Final = 10

MAX_OPEN_GAPS: Final = 100
"""Open gaps compared with each signal, the latest ones. Without a limit the time would grow with the square of the
number of messages."""

MAX_TOPIC_CHARACTERS: Final = 120
MAX_GAP_SOURCES: Final = 5

# The most specific reason first: of two gaps with the same topic, the text of the more specific one is kept. Only
# earlier versions found the last one.
_REASON_ORDER = ("unanswered", "not_found", "mentioned_once")


def update_gaps(activity: Activity, previous: Sequence[KnowledgeGap], now: datetime) -> tuple[KnowledgeGap, ...]:
    """All open gaps after this activity, newest first."""
    start = now - GAP_LIFETIME  # older activity could only open gaps that have expired
    utterances = [utterance for utterance in activity.utterances if utterance.at >= start]
    searches = [search for search in activity.searches if search.at >= start]
    signals = sorted(
        (*_signals_from_turns(utterances, now), *_signals_from_searches(searches)),
        key=lambda signal: signal.at,
    )
    open_gaps = [_OpenGap.of(gap) for gap in previous if not _is_expired(gap, now)]
    for signal in signals:
        open_gaps = [open_gap for open_gap in open_gaps if not signal.closes(open_gap)]
        for gap in signal.opened_gaps:
            open_gaps = _add_gap(open_gaps, _OpenGap.of(gap))
    gaps = sorted((gap for gap, _ in open_gaps if not _is_expired(gap, now)), key=lambda gap: gap.topic)
    return tuple(sorted(gaps, key=lambda gap: gap.last_seen, reverse=True)[:MAX_GAPS])


class _OpenGap(NamedTuple):
    gap: KnowledgeGap
    words: frozenset[str]

    @classmethod
    def of(cls, gap: KnowledgeGap) -> _OpenGap:
        return cls(gap, _topic_words(gap.topic))

    def is_same_topic(self, other: _OpenGap) -> bool:
        shared = len(self.words & other.words)
        return self.words == other.words or (shared > 1 and shared >= 0.6 * min(len(self.words), len(other.words)))

    def merged_with(self, newer: _OpenGap) -> _OpenGap:
        better, other = sorted((self, newer), key=lambda open_gap: _REASON_ORDER.index(open_gap.gap.reason))
        gap = better.gap._replace(
            since=min(self.gap.since, newer.gap.since),
            last_seen=max(self.gap.last_seen, newer.gap.last_seen),
            sources=tuple(dict.fromkeys((*self.gap.sources, *newer.gap.sources)))[-MAX_GAP_SOURCES:],
        )
        return better._replace(gap=gap) if better.words else other._replace(gap=gap)


class _Signal(NamedTuple):
    """Something that opens or closes gaps."""

    at: datetime
    opened_gaps: tuple[KnowledgeGap, ...] = ()
    known_words: frozenset[str] = frozenset()
    """Words of a statement that is known now, and of the question that it answers."""

    def closes(self, open_gap: _OpenGap) -> bool:
        return bool(self.known_words) and len(open_gap.words & self.known_words) >= 0.6 * len(open_gap.words)


def _add_gap(open_gaps: Sequence[_OpenGap], new: _OpenGap) -> list[_OpenGap]:
    """Add a gap or merge it with one of the same topic. The latest gaps are last."""
    same = next((open_gap for open_gap in open_gaps if open_gap.is_same_topic(new)), None)
    if same is None:
        return [*open_gaps, new][-MAX_OPEN_GAPS:]
    return [*(open_gap for open_gap in open_gaps if open_gap is not same), same.merged_with(new)]


def _signals_from_searches(searches: Iterable[SearchUse]) -> Iterator[_Signal]:
    for search in searches:
        words = _topic_words(search.query)
        if search.hits:
            yield _Signal(search.at, known_words=words)
        elif words:
            yield _Signal(search.at, opened_gaps=(_new_gap(search.query, "not_found", search.at, search.id),))


def _signals_from_turns(utterances: Sequence[Utterance], now: datetime) -> Iterator[_Signal]:
    turns = split_turns(utterances)
    for turn in giving_way(turns):
        if turn.final_reply:
            is_incomplete, answer = split_unanswered(turn.final_reply)
            known_words = frozenset(query_words(answer))
            open_questions = tuple(_unanswered_questions(turn, known_words)) if is_incomplete else ()
            if known_words and not is_incomplete:
                known_words |= {word for message in turn.user_messages for word in query_words(message.text)}
            yield _Signal(turn.responses[-1].at, open_questions, known_words)
    for turn in unanswered_turns(turns, now):
        yield _Signal(turn.user_messages[-1].at, tuple(_unanswered_questions(turn, frozenset())))


def _unanswered_questions(turn: ActivityTurn, known_words: frozenset[str]) -> Iterator[KnowledgeGap]:
    for utterance in turn.user_messages:
        for question in questions_in(utterance.sentences if utterance.trust >= Trust.PERSON else ()):
            words = _topic_words(question)
            if len(words & known_words) < 0.6 * len(words):
                yield _new_gap(question, "unanswered", utterance.at, utterance.id)


def _new_gap(topic: str, reason: str, at: datetime, source: str) -> KnowledgeGap:
    return KnowledgeGap(shorten(topic, MAX_TOPIC_CHARACTERS), reason, at.isoformat(), at.isoformat(), (source,))


def _topic_words(text: str) -> frozenset[str]:
    return keywords(text) or frozenset(query_words(text))


def _is_expired(gap: KnowledgeGap, now: datetime) -> bool:
    return now - datetime.fromisoformat(gap.last_seen) > GAP_LIFETIME
