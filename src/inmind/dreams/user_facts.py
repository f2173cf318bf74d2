"""Find lasting facts in a user's messages: a name, a preference, a deadline.

The agent did not note these facts. Only a user's statements about themselves count: no questions, hypotheses, quotes,
pasted texts or tool results. They are stored verbatim, because rewriting by rules could change the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from inmind.core.events.base import Origin, Trust
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words
from inmind.core.language.spans import has_han, has_quote, split_sentences
from inmind.history.compaction.detection import find_rules
from inmind.search.crystal import Crystal

MAX_FACTS: Final = 200
"""Facts of one dream, the newest. More facts than this are pasted text."""

MAX_SENTENCE_CHARACTERS: Final = 220
"""Longer sentences stay searchable and get no line on the page."""

# Characters of a message that are searched.
_MAX_MESSAGE_CHARACTERS = 4_000

_USER = "User"


@frozen(kw_only=True)
class UserFact:
    """A sentence of a user."""

    text: str
    """The line for the page: speaker and sentence."""
    kind: str
    importance: float
    source: str
    """The crystal of the message."""
    at: str


def find_user_facts(crystals: Iterable[Crystal]) -> list[UserFact]:
    """New facts in the order of time. Of equal sentences the latest counts."""
    newest = sorted(
        (crystal for crystal in crystals if _is_user_message(crystal)),
        key=lambda crystal: (crystal.at, crystal.id),
        reverse=True,
    )
    facts: dict[str, UserFact] = {}
    for fact in (fact for crystal in newest for fact in _facts_in(crystal)):
        facts.setdefault(fact.text.casefold(), fact)
        if len(facts) == MAX_FACTS:
            break
    return sorted(facts.values(), key=lambda fact: (fact.at, fact.source, fact.text))


def to_third_person(line: str) -> str:
    """A line in the third person: "User: I live in Rome" becomes "User lives in Rome".

    For comparison with other lines only: just the beginning is rewritten.
    """
    match = _SPEAKER_LINE.fullmatch(line)
    if not match:
        return line
    speaker, sentence = match["speaker"], _LEAD_IN.sub("", match["text"], count=1)
    speaker = "用户" if speaker == _USER and has_han(sentence) else speaker
    for pattern, replacement in _THIRD_PERSON:
        if person_match := pattern.match(sentence):
            return speaker + person_match.expand(replacement) + sentence[person_match.end() :]
    return sentence


class _FactPattern(NamedTuple):
    """One form of a fact.

    `cues`: a text without any of these words cannot match. Checking them is much faster, and most messages have none.
    """

    kind: str
    importance: float
    cues: tuple[str, ...]
    pattern: str


def _fact_pattern(kind: str, importance: float, cues: str, *patterns: str) -> _FactPattern:
    return _FactPattern(kind, importance, tuple(cues.split("|")), "|".join(patterns))


_FACT_IMPORTANCE, _PREFERENCE_IMPORTANCE, _HEALTH_IMPORTANCE, _GOAL_IMPORTANCE, _RULE_IMPORTANCE = (
    0.7,
    0.65,
    0.85,
    0.6,
    0.8,
)

_I_AM = r"\bi(?:['’]m| am)"
_RELATIVE = (
    "(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|kids?|children|baby|mother|mom|mum|"
    "father|dad|brother|sister|dog|cat)"
)
# Objects of a momentary preference: "I like it", "I prefer the second one".
_MOMENTARY_OBJECT = (
    r"(?:it|this|that|these|those|them|you|your|yours|how|what|where|the (?:idea|first|second|third|last|other|former|"
    r"latter|way|look|sound|new|one|current|previous)|option|version|number|both|neither|either|"
    r"to (?:see|know|hear|thank|say)|a (?:bit|little)|[ab])\b"
)
_SENTENCE_START = r"(?:^|[.!?\n]\s*)(?:please )?"
_FACT_PATTERNS = (
    _fact_pattern(
        "relationship",
        _RULE_IMPORTANCE,
        "my name|my full name|my first name|my last name|my nickname|call me",
        r"\bmy (?:full |first |last |nick)?name(?:['’]s| is) (?!not\b)\S",
        r"\bcall me (?!when|if|back|at|on|later|crazy|old)\S",
    ),
    _fact_pattern(
        "relationship",
        _FACT_IMPORTANCE,
        "i live|i grew|i was born|i work|i moved|i go by",
        r"\bi (?:live (?:in|at|on|near)|grew up|was born|work (?:at|for|as|from)|go by) (?!the (?:code|file|line))\S",
        r"\bi moved to (?!the\b)\S",
    ),
    _fact_pattern(
        "relationship",
        _FACT_IMPORTANCE,
        "i'm |i’m |i am ",
        rf"{_I_AM} (?:based in|(?:originally )?from (?!the\b)|married|divorced|retired|\d+ years old)",
        rf"{_I_AM} an? (?!bit|little|lot|few|big|huge|fan)(?:[\w-]+ ){{0,2}}?(?:\w{{2,}}(?:er|or|ist|ian|eer)|nurse|"
        r"student|chef|freelance\w*|mom|dad|parent)\b(?! (?:of|than))",
    ),
    _fact_pattern(
        "relationship",
        _FACT_IMPORTANCE,
        "my |our |i have ",
        rf"\b(?:my|our) {_RELATIVE} (?:is (?:called|named|\d+|in|from)|turns|works|lives|loves|likes)\b",
        rf"\b(?:my|our) {_RELATIVE}['’]s (?:name|birthday) (?:is|['’]s)\b",
        rf"\bi have (?:an?|one|two|three|four|\d+) {_RELATIVE}s?\b(?!['’])",
        r"\bmy (?:birthday|anniversary|time ?zone|pronouns|e-?mail(?: address)?|phone(?: number)?|address|job|"
        r"profession|native language|mother tongue|hometown|favou?rite [\w ]{1,30}?|doctor|boss|manager) (?:is|are)\b",
    ),
    _fact_pattern(
        "relationship",
        _HEALTH_IMPORTANCE,
        "allerg|vegan|vegetarian|diabet|pregnant|intoleran|celiac|coeliac|blind|deaf|asthma|epilep| eat | drink ",
        rf"{_I_AM} (?:\w+ )?(?:allergic|vegan|vegetarian|diabetic|pregnant|(?:lactose|gluten)[ -]intolerant|celiac|"
        r"coeliac|colou?r-?blind|deaf|blind)\b",
        r"\bi have (?:an? )?(?:[\w-]+ ){0,3}(?:allergy|allergies|diabetes|asthma|epilepsy)\b",
        r"\bi (?:don['’]t|do not|can['’]t|cannot|never) (?:eat|drink)\b",
    ),
    _fact_pattern(
        "preference",
        _PREFERENCE_IMPORTANCE,
        "prefer|love|hate|like|detest|can't stand|can’t stand",
        rf"\bi (?:\w+ly |always )?prefer (?!{_MOMENTARY_OBJECT})\S",
        r"\bi (?:really |absolutely )?(?:love|hate|dislike|detest|can['’]t stand|don['’]t like|do not like) "
        rf"(?!{_MOMENTARY_OBJECT})\S",
        rf"\bi (?:\w+ly|always) like (?!{_MOMENTARY_OBJECT})\S",
        r"\bi like my \S",
    ),
    _fact_pattern(
        "goal",
        _GOAL_IMPORTANCE,
        "my goal|my plan|my dream|my aim|my target|my resolution|learning|studying|training|preparing|saving",
        r"\bmy (?:goal|plan|dream|aim|target|resolution)(?: \w+ \w+)? is\b",
        rf"{_I_AM} (?:learning|studying|training for|preparing for|saving (?:up )?for)\b",
    ),
    _fact_pattern(
        "goal",
        _FACT_IMPORTANCE,
        "deadline|due ",
        r"\b(?:deadline|due date)\b[^?]{0,60}? (?:is|moved|has moved|was moved|changed)\b",
        r"\bis due (?:on|by)\b",
    ),
    _fact_pattern(
        "fact",
        _RULE_IMPORTANCE,
        "remember|in mind|forget|note",
        rf"{_SENTENCE_START}(?:remember|(?:keep|bear) in mind|(?:don['’]t|do not) forget|note)(?:,? that\b|:|,)",
    ),
    _fact_pattern(
        "relationship",
        _RULE_IMPORTANCE,
        "我",
        r"我(?:的(?:名字|姓名)(?:是|叫)|叫(?!你|他|她|什么)|姓)",
        "(?:叫|称呼)我(?!们)",
    ),
    _fact_pattern(
        "relationship",
        _FACT_IMPORTANCE,
        "我",
        r"我(?:现在)?(?:住在|来自|出生[在于]|搬到|是一?[名位个](?!问题)|在.{1,12}(?:工作|上班|上学|读书))|我今年\d+岁",
        "我(?:的)?(?:妻子|丈夫|太太|先生|老婆|老公|儿子|女儿|孩子|妈妈|爸爸|母亲|父亲|哥哥|弟弟|姐姐|妹妹|狗|猫)"
        "(?:叫|是|今年|在|的生日)",
        "我的(?:生日|时区|邮箱|电话|母语|职业|爱好)是|我最喜欢的.{1,10}是",
    ),
    _fact_pattern(
        "relationship",
        _HEALTH_IMPORTANCE,
        "我",
        "我对.{1,10}过敏|我(?:吃素|是素食|不吃|不喝|不能吃|不能喝|有糖尿病|有哮喘)",
    ),
    _fact_pattern(
        "preference",
        _PREFERENCE_IMPORTANCE,
        "喜欢|偏好|习惯|讨厌",
        "我(?:一直|总是|通常|平时|更|最|比较|特别|很|非常|不|不太)?(?:喜欢|偏好|习惯|讨厌)(?!你|这|那|它)",
    ),
    _fact_pattern(
        "goal",
        _FACT_IMPORTANCE,
        "我的|我在|我正在|截止",
        "我的(?:目标|计划|梦想)是|我(?:正)?在(?:学习|备考|准备)|截止(?:日期|时间)(?:是|为|改[到成]|推迟到|提前到)",
    ),
    _fact_pattern(
        "fact", _RULE_IMPORTANCE, "记住|记得|忘", "(?:^|[。！？\n])(?:请)?(?:记住|记得|别忘了|不要忘记)(?!吗)"
    ),
)
# Words that make an instruction a standing rule; other instructions are for the current task.
_STANDING_RULE = (
    r"\b(?:always|never|from now on|in (?:the )?future|every time|whenever|going forward|at all times|don['’]t ever|"
    r"no matter what)\b|以后|永远|总是|始终|每次|从现在起|从今以后|绝不|绝对不|一律|不要再|再也不"
)
_STANDING_CUES = (
    *("always", "never", "now on", "future", "every time", "whenever", "forward", "at all times", "ever ", "no matter"),
    *("以后", "永远", "总是", "始终", "每次", "从现在", "从今", "绝", "一律", "不要再", "再也不"),
)
# Hypotheses, questions, quotes, statements about others, or temporary facts.
_NOT_A_FACT = (
    r"[?？]\s*[\"'”’)]*$|[吗呢]\W*$|"
    r"^(?:if|when|suppose|imagine|pretend|say|let['’]s say|assume|what if|unless|would|could|should|do|does|did|can|is|"
    r"are|am|who|what|where|why|how)\b|"
    r"\b(?:let['’]s say|suppose|imagine|pretend|for example|for instance|e\.g\.|hypothetically|in the story|"
    r"my character|role-?play|i wish|would have|used to|might|maybe|perhaps|not sure|i think|i guess|today|tonight|"
    r"right now|for now|at the moment|this time|this morning|says|said|wrote|told me|according to)\b|"
    r"假设|比如|例如|假如|如果|要是|想象|也许|可能|大概|今天|今晚|暂时|这次|刚才|以前|说过"
)
_SPEAKER_LINE = re.compile(r"(?P<speaker>[^\n:]{1,40}): (?P<text>.+)", re.DOTALL)
_LEAD_IN = re.compile(
    r"^(?:(?:hi|hello|hey|also|and|oh|by the way|btw|so|well|please|actually|fyi|just so you know|remember|"
    r"keep in mind|don['’]t forget|note|that)\b[,:!]? +)+",
    re.IGNORECASE,
)
_THIRD_PERSON = tuple(
    (re.compile(first, re.IGNORECASE), third)
    for first, third in (
        (r"I(?:['’]m| am)\b", " is"),
        (r"I(?:['’]ve| have)\b", " has"),
        (r"I (?:don['’]t|do not)\b", " does not"),
        (r"I (can(?:['’]t|not)?|never|was|moved|grew|switched|started)\b", r" \1"),
        (r"I ((?:\w+ly|always) |)(go|\w+[sc]h)\b", r" \1\2es"),
        (r"I ((?:\w+ly|always) |)(\w+)\b", r" \1\2s"),
        (r"my\b", "'s"),
        (r"call me\b", "'s name is"),
        (r"我的?", ""),
    )
)


def _is_user_message(crystal: Crystal) -> bool:
    return crystal.kind == "episode" and crystal.origin is Origin.USER and crystal.trust >= Trust.PERSON


def _facts_in(crystal: Crystal) -> Iterator[UserFact]:
    speaker = crystal.speaker if crystal.speaker not in ("", "user") else _USER
    text = crystal.text[:_MAX_MESSAGE_CHARACTERS].removeprefix(f"{speaker}: ")
    for kind, importance, sentence in (*_pattern_facts(text), *_rule_facts(text)):
        at = crystal.at.isoformat()
        yield UserFact(text=f"{speaker}: {sentence}", kind=kind, importance=importance, source=crystal.id, at=at)


def _pattern_facts(text: str) -> Iterator[tuple[str, float, str]]:
    lowered = text.lower()
    patterns = [
        pattern
        for pattern in _FACT_PATTERNS
        if any(map(lowered.__contains__, pattern.cues)) and _compiled(pattern.pattern).search(lowered)
    ]
    if not patterns:
        return
    for sentence in (" ".join(sentence.split()) for line in own_words(text) for sentence in split_sentences(line)):
        if len(sentence) <= MAX_SENTENCE_CHARACTERS and not has_quote(sentence):
            lowered = sentence.lower()
            pattern = next((pattern for pattern in patterns if _compiled(pattern.pattern).search(lowered)), None)
            if pattern and not _compiled(_NOT_A_FACT).search(lowered):
                yield pattern.kind, pattern.importance, sentence


def _rule_facts(text: str) -> Iterator[tuple[str, float, str]]:
    lowered = text.lower()
    if not any(map(lowered.__contains__, _STANDING_CUES)):
        return
    for kind, sentence in find_rules(text):
        is_rule = kind == "rule" and len(sentence) <= MAX_SENTENCE_CHARACTERS and not has_quote(sentence)
        if is_rule and _compiled(_STANDING_RULE).search(sentence.lower()):
            yield "preference", _RULE_IMPORTANCE, sentence


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use."""
    return re.compile(pattern)
