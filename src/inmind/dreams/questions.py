"""Detect questions that expect an answer, and replies that do not answer.

The form decides, in English and Chinese. Small talk ("how are you?", "right?", "who knows?") expects no answer; "can
you fix the header?" is a request. A reply that says "I don't know" is no answer, unless it continues with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.core.language.prose import is_greeting
from inmind.core.language.spans import any_of, compile_cached, split_sentences
from inmind.dreams.names import names_in_sentences
from inmind.dreams.requests import is_request, normalize_sentence
from inmind.search.query_parse import keywords

MAX_QUESTION_CHARACTERS = 300
"""Longer sentences are texts that end with a question mark."""


def questions_in(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences that are questions."""
    return (sentence for sentence in sentences if len(sentence) <= MAX_QUESTION_CHARACTERS and is_question(sentence))


def is_question(sentence: str) -> bool:
    """True if the sentence expects information as an answer."""
    text = normalize_sentence(sentence)
    if not (compile_cached(_QUESTION_END).search(text) or compile_cached(_QUESTION_START).match(text)):
        return False
    if is_greeting(text) or compile_cached(_SMALL_TALK).fullmatch(text) or compile_cached(_TAG_QUESTION).search(text):
        return False
    return _has_topic(sentence) and not is_request(sentence)


def _has_topic(sentence: str) -> bool:
    """True if the question can be understood without its context; "what happened?" cannot.

    It needs two key words, a name, or one Chinese key word.
    """
    words = keywords(sentence)
    return len(words) > 1 or any(not word.isascii() for word in words) or bool(names_in_sentences([sentence]))


def split_unanswered(reply: str) -> tuple[bool, str]:
    """Split a reply: True if it says that it does not know, and its other sentences."""
    reply_sentences = split_sentences(reply)
    answers = [sentence for sentence in reply_sentences if not _says_unknown(sentence)]
    return len(answers) < len(reply_sentences), "\n".join(answers)


def _says_unknown(sentence: str) -> bool:
    text = normalize_sentence(sentence)
    match = compile_cached(_UNKNOWN).search(text)
    return match is not None and not compile_cached(_ANSWERS_ANYWAY).search(text, match.end())


_QUESTION_END = r"[?？]\W*$|[吗嗎呢么]\W*$"
_QUESTION_WORD = r"(?:what|when|where|who|which|why|how)(?:'s)?\s+(?:\w+\s+)?"
_QUESTION_START = r"(?:(?:hi|hello|hey|so|and|but|ok|okay|well|also)[\s,]+)*" + any_of(
    _QUESTION_WORD + r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|many|much|long|far|often)\b",
    r"(?:do|does) (?:you|anyone|anybody) know\b",
    r"i (?:wonder|was wondering)\b",
    r"(?:请问|有谁知道|为什么|如何|什么时候|哪里|哪儿)",
)
_SMALL_TALK = (
    r"(?:(?:so|and|but|hey|well|oh|ok|haha|lol|wow|god|man)[\s,!.]+)*"
    + any_of(
        r"(?:right|ok|okay|really|seriously|huh|eh|yes|no|see|ready|deal|got it|get it)",
        r"(?:guess what|so what|anything else|(?:maybe|perhaps)\b.*)",
        r"(?:does that |that )?makes? sense",
        r"(?:you )?know(?: what i mean)?",
        r"what do you mean\b.*",
        r"what (?:happened|now|then|else)\b.*",
        r"what's (?:up|new|going on|wrong|the point|not to)\b.*",
        r"how (?:are|is|was|were) (?:you|your|things|life|it going|everything)\b.*",
        r"how's (?:it going|life|your)\b.*",
        r"how (?:hard|difficult|bad) can (?:it|that|this)\b.*",
        r"how (?:cool|great|nice|awesome|crazy|weird|funny|cute) (?:is|was)\b.*",
        r"(?:are|were) you (?:there|sure|serious|kidding|joking|ok|okay|alright|ready|with me)\b.*",
        r"(?:is|was) (?:that|this|it) (?:ok|okay|right|correct|clear|all|true)\b.*",
        r"(?:isn't|aren't|wasn't|don't|doesn't|didn't|wouldn't) (?:it|that|this|they|he|she|you|we)\b.*",
        r"(?:have|did) you ever\b.*",
        r"(?:do|don't) you (?:mind|think so|see)\b.*",
        r"(?:can|could|would) you (?:believe|imagine)\b.*",
        r"(?:can|may|could) i ask\b.*",
        r"(?:shall|should) we (?:start|begin|go)\b.*",
        r"who (?:knows|cares|doesn't|wouldn't)\b.*",
        r"why (?:not|me|bother)\b.*",
        r"what (?:could|can) (?:possibly )?go wrong\b.*",
        r"what would (?:i|we) do without\b.*",
        r"(?:难道|何必|凭什么|谁在乎|谁知道呢|何苦|怎么可能|怎么会|有什么(?:用|关系|大不了)|谁不|哪有|不是).*",
        r".*(?:好吗|好不好|行吗|行不行|可以吗|对吗|对吧|是吧|是吗|对不对|不是吗|没错吧|懂吗|明白吗|你觉得呢|在吗|好嘛)",
    )
    + r"\W*"
)
_TAG_QUESTION = (
    r"[,，]\s*"
    + any_of(
        "right|ok|okay|no|yes|huh|eh|correct|you know|isn't it|aren't they|don't you think|wouldn't you say",
        "是吧|对吧|对吗|对不对|不是吗",
    )
    + r"\W*$"
)

_CANNOT = any_of(
    r"can(?:'t|not| not)",
    r"could(?:n't| not)",
    r"(?:was|am|were|are)(?:n't| not) able to",
    r"(?:was|am|were|are) unable to",
)
_UNKNOWN = any_of(
    r"\bi (?:really |honestly |still )?(?:don't|do not) (?:actually )?(?:know|recall|remember)\b(?! about you| of)",
    r"\bi(?:'m| am) not (?:sure|certain|aware|familiar)\b",
    r"\bi have no (?:idea|information|record|memory|data|details|access)\b",
    r"\b(?:i|we) (?:currently )?(?:don't|do not) (?:currently )?have (?:\w+ ){0,3}?"
    r"(?:information|details?|records?|data|answer|access|knowledge|memory|context|mention)\b",
    rf"\b(?:i|we) {_CANNOT} (?:find|locate|determine|answer|tell|say|see|recall|retrieve|confirm)\b",
    r"\bi'm (?:not able|unable) to (?:find|locate|determine|answer|tell|say|see|recall|retrieve|confirm)\b",
    r"\b(?:i|we) (?:did not|didn't) (?:find|see|get)\b",
    r"\bno (?:results?|information|records?|mention|matches)\b(?: \w+){0,2} (?:found|available|about|on|of|for)\b",
    r"\bnothing (?:was |is )?(?:found|known|recorded)\b",
    r"\bthere(?:'s| is| was) no (?:information|mention|record|data|answer)\b",
    r"\bit(?:'s| is) (?:unclear|unknown|not clear|not known)\b",
    r"不知道|不清楚|不确定|不了解|不记得|没有提到|找不到|查不到|没(?:有|能)?(?:找到|查到|搜到)|未能?(?:找到|查到)",
    r"没有(?:任何|相关|这方面|关于).{0,12}?(?:信息|记录|资料|数据|结果)",
    r"无法(?:确定|回答|找到|得知|判断|查到|提供)",
)
_OFFERS = any_of(
    r"i(?:'d| can| could| will|'ll| would| am|'m)\b",
    r"(?:we|you) (?:can|could|may|might)\b",
    r"(?:if|would|could|maybe|perhaps) you\b",
    r"let me|feel free|please",
)
_OFFERS_ZH = "(?:我可以|我能|如果|您可以|你可以|请)"
# Continues with an answer, as opposed to an offer.
_ANSWERS_ANYWAY = any_of(
    rf"\b(?:but|however|though|although|yet)\b[\s,]+(?!{_OFFERS})(?:\w+\W+){{3}}",
    rf"(?:但是?|不过|然而)[，,]?(?!.{{0,4}}{_OFFERS_ZH})[^。！？]{{4}}",
)
