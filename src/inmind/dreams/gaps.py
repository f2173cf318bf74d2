"""Find knowledge gaps: topics that the agent does not know and might want to find out.

There are three sources: questions without an answer, searches without a hit, and names that a user mentioned once and
the agent did not mention. A gap expires two days after it last occurred. It is closed when a later search has hits, or
a later reply answers it.

Signals are processed in the order of time, so that a signal can only close gaps that were opened before it.

Few names qualify as mentioned without explanation. Excluded are: names that the sentence explains ("my sister Ann",
"Rex, our dog", "the Rockies"), places where someone goes or lives, well-known names, people who are addressed ("thanks,
Ann!"), the speaker, and names in requests or short answers, which the agent has to work with anyway. If in doubt, a
name is excluded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap
from inmind.core.language.spans import any_of, compile_cached, has_han
from inmind.core.text import shorten
from inmind.dreams.material import Activity, ActivityTurn, SearchUse, Utterance, split_turns, unanswered_turns
from inmind.dreams.sentences import (
    is_question,
    is_request,
    names_in_sentences,
    normalize_sentence,
    questions_in,
    split_unanswered,
)
from inmind.search.query import keywords
from inmind.search.tokenize import query_words

GAP_LIFETIME: Final = timedelta(hours=48)
"""Time after the last occurrence of a gap until it expires."""

MAX_GAPS: Final = 10

MAX_NEW_NAMES: Final = 3
"""New names per dream. Conversations are full of names; they must not displace real questions."""

MAX_OPEN_GAPS: Final = 100
"""Open gaps compared with each signal, the latest ones. Without a limit the time would grow with the square of the
number of messages."""

MAX_TOPIC_CHARACTERS: Final = 120
MAX_GAP_SOURCES: Final = 5

# The most specific reason first: of two gaps with the same topic, the text of the more specific one is kept.
_REASON_ORDER = ("unanswered", "not_found", "mentioned_once")


def update_gaps(activity: Activity, previous: Sequence[KnowledgeGap], now: datetime) -> tuple[KnowledgeGap, ...]:
    """All open gaps after this activity, newest first."""
    start = now - GAP_LIFETIME  # older activity could only open gaps that have expired
    utterances = [utterance for utterance in activity.utterances if utterance.at >= start]
    searches = [search for search in activity.searches if search.at >= start]
    signals = sorted(
        (*_signals_from_turns(utterances, previous, now), *_signals_from_searches(searches)),
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
        shared, min_length = len(self.words & other.words), min(len(self.words), len(other.words))
        if "mentioned_once" in (self.gap.reason, other.gap.reason):
            return shared == min_length
        return self.words == other.words or (shared > 1 and shared >= 0.6 * min_length)

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
    """Words of a statement that is known now."""
    question_words: frozenset[str] = frozenset()
    """Words of the question that it answers. They do not close a gap of a name that was only mentioned in the question.
    """

    def closes(self, open_gap: _OpenGap) -> bool:
        known = self.known_words if open_gap.gap.reason == "mentioned_once" else self.known_words | self.question_words
        return bool(self.known_words) and len(open_gap.words & known) >= 0.6 * len(open_gap.words)


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


def _signals_from_turns(
    utterances: Sequence[Utterance], previous: Sequence[KnowledgeGap], now: datetime
) -> Iterator[_Signal]:
    turns = split_turns(utterances)
    for turn in turns:
        if turn.final_reply:
            is_incomplete, answer = split_unanswered(turn.final_reply)
            known_words = frozenset(query_words(answer))
            open_questions = tuple(_unanswered_questions(turn, known_words)) if is_incomplete else ()
            question = "" if is_incomplete else "\n".join(message.text for message in turn.user_messages)
            yield _Signal(turn.responses[-1].at, open_questions, known_words, frozenset(query_words(question)))
    for turn in unanswered_turns(turns, now):
        yield _Signal(turn.user_messages[-1].at, tuple(_unanswered_questions(turn, frozenset())))
    yield from _signals_from_names(utterances, {gap.topic for gap in previous})


def _unanswered_questions(turn: ActivityTurn, known_words: frozenset[str]) -> Iterator[KnowledgeGap]:
    for utterance in turn.user_messages:
        for question in questions_in(utterance.sentences if utterance.trust >= Trust.PERSON else ()):
            words = _topic_words(question)
            if len(words & known_words) < 0.6 * len(words):
                yield _new_gap(question, "unanswered", utterance.at, utterance.id)


def _signals_from_names(utterances: Sequence[Utterance], gap_topics: set[str]) -> Iterator[_Signal]:
    """Names that occur in only one message, the latest ones, and names that already are a gap.

    Names that the agent wrote, in a text or to a tool, are left out. Tool results do not show what interests it.
    """
    agent_texts = (
        text
        for utterance in utterances
        if utterance.role == "assistant"
        for text in (utterance.text, *(tool_use.arguments for tool_use in utterance.tool_uses))
    )
    agent_words = {word for text in agent_texts for word in query_words(text)}
    messages = [one for one in utterances if one.role == "user" and one.trust >= Trust.PERSON]
    counts = Counter(name for message in messages for name in names_in_sentences(message.sentences))
    mentions = [
        (name, message)
        for message in messages
        for name in find_unknown_names(message.sentences)
        if not agent_words.issuperset(query_words(name))
    ]
    known_mentions = [mention for mention in mentions if mention[0] in gap_topics]
    single_mentions = [mention for mention in mentions if counts[mention[0]] == 1 and mention not in known_mentions]
    for name, utterance in (*known_mentions, *single_mentions[-MAX_NEW_NAMES:]):
        yield _Signal(utterance.at, (_new_gap(name, "mentioned_once", utterance.at, utterance.id),))


def _new_gap(topic: str, reason: str, at: datetime, source: str) -> KnowledgeGap:
    return KnowledgeGap(shorten(topic, MAX_TOPIC_CHARACTERS), reason, at.isoformat(), at.isoformat(), (source,))


def _topic_words(text: str) -> frozenset[str]:
    return keywords(text) or frozenset(query_words(text))


def _is_expired(gap: KnowledgeGap, now: datetime) -> bool:
    return now - datetime.fromisoformat(gap.last_seen) > GAP_LIFETIME


MIN_OTHER_WORDS = 3
"""Words of a sentence besides names. A shorter sentence is an answer."""


def find_unknown_names(sentences: Iterable[str]) -> list[str]:
    """Unexplained names in a person's sentences, in order, each once."""
    return list(
        dict.fromkeys(
            name
            for sentence in sentences
            if (names := names_in_sentences([sentence])) and not _is_not_narrative(sentence, names)
            for name in names
            if not (_WELL_KNOWN.issuperset(name.casefold().split()) or _is_explained(name, sentence))
        )
    )


def _is_not_narrative(sentence: str, names: Sequence[str]) -> bool:
    """True for a request, a question, an answer, or an introduction of the speaker."""
    text = normalize_sentence(sentence)
    if compile_cached(_INTRODUCTION).search(text) or compile_cached(_REQUEST).search(text):
        return True
    other_words = len(sentence.split()) - sum(len(name.split()) for name in names)
    is_answer = not has_han(sentence) and other_words < MIN_OTHER_WORDS
    return is_answer or is_question(sentence) or is_request(sentence)


def _is_explained(name: str, sentence: str) -> bool:
    """True if the words around the first mention explain a name, or set it apart.

    Names of a list share an explanation. "Wow, Ann, that is great!", "Alright Ann, have fun!", "Have fun, Ann!"; "one
    of them, Rex, barks".
    """
    before, _, after = sentence.partition(name)
    explained_before, contexts = compile_cached(_EXPLAINED_BEFORE), (before, compile_cached(_LISTED).sub("", before))
    if any(map(explained_before.search, contexts)) or compile_cached(_EXPLAINED_AFTER).match(after):
        return True
    ends = after.startswith((",", "!", " -")) or not after.strip(".!?。！？ ")
    return ends and (len(before.split()) <= 1 or before.rstrip().endswith((",", "，")))


_INTRODUCTION = (
    r"\b(?:my (?:\w+ )?name(?:'s| is)|call me|i am|i'm|this is|it's|regards|sincerely|cheers)\b|我叫|我是|我的名字"
)
_REQUEST = any_of(
    r"\b(?:i|we)(?:'d| would)? (?:\w+ )?(?:want|need|like to|prefer)\b|\b(?:looking for|interested in|please)\b",
    r"\bi'd (?:like|love|prefer)\b|\b(?:how|what) about\b|\blet's\b|请|想要|我要",
    r"^\W*(?:\*\*|[-•]\s)",
)

_LISTED = r"(?:\b[A-Z][\w’'-]*(?:,? and |,? or |, ))+$"
_POSSESSIVE = r"my|our|your|his|her|their|its"
_CONNECTIVES = "and|or|but|that|about|on|with|as|when|while|because|if|is|was|are|were|has|had|have|than|then|who|which"
_EXPLAINED_BEFORE = (
    "(?i)"
    + any_of(
        # a place, a maker, a part of something
        r"\b(?:in|into|near|around|at|across|via|through|outside|inside|towards?|visit(?:s|ed|ing)?|by|of|like)\s+(?:the\s+)?",
        r"(?<!talk)(?<!talked)(?<!talking)(?<!spoke)(?<!speak)(?<!wrote)\s(?:to|from)\s+(?:the\s+)?",
        # a determiner, with or without a noun
        rf"\b(?:{_POSSESSIVE}|an?|the|this|these|those|some)\s+",
        rf"\b(?:{_POSSESSIVE}|an?|the|this|\w+['’]s)\s+(?:(?!(?:{_CONNECTIVES})\b)[a-z][\w-]*,?\s+){{1,3}}",
        r"\b(?:called|named|name is|name['’]s)\s+",
        r"(?:名叫|叫做|叫作|叫)",
        # a person who is addressed
        r"^\W*(?:thanks|thank you|hey|hi|hello|yeah|yes|no|oh|wow|congrats|sorry|okay|ok|bye|sure|good \w+)[\s,!]+",
    )
    + r"[\"'“‘*(]*$"
)
_EXPLAINED_AFTER = any_of(
    rf"[\"'”’*)]*\s*,\s+(?:{_POSSESSIVE}|an?|the|who|which|one of|she|he|it|they|you)\b",
    rf"[\"'”’*)]*\s+(?:is|was|are|were)\s+(?:{_POSSESSIVE}|an?|the|one of)\b",
    r"\s*[(（]",
)
_WELL_KNOWN = frozenset(
    """
    europe asia africa america australia antarctica usa us uk eu uae england scotland wales ireland britain france
    germany italy spain portugal greece turkey poland russia ukraine sweden norway denmark finland iceland switzerland
    austria belgium netherlands holland hungary romania croatia czechia canada mexico brazil argentina chile peru
    colombia cuba jamaica barbados china japan korea taiwan singapore malaysia indonesia thailand vietnam philippines
    india pakistan bangladesh nepal iran iraq israel egypt morocco kenya nigeria ghana ethiopia zealand new south north
    east west london paris berlin madrid barcelona rome milan vienna amsterdam dublin moscow istanbul tokyo kyoto
    beijing shanghai hong kong seoul sydney melbourne toronto vancouver montreal york los angeles san francisco diego
    jose chicago boston seattle portland denver austin dallas houston miami atlanta philadelphia phoenix vegas las
    washington dc nyc la sf california texas florida hawaii alaska brooklyn manhattan google apple amazon microsoft
    facebook instagram twitter youtube netflix spotify whatsapp gmail iphone android windows linux mac macos excel
    word powerpoint zoom slack github uber airbnb paypal visa mastercard wikipedia reddit tiktok covid wifi wi-fi
    bluetooth python javascript typescript java html css sql json api pdf ai tv dj gps dna
    """.split()
)
