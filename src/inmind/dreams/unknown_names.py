"""Find names that were mentioned without explanation.

Few names qualify. Excluded are: names that the sentence explains ("my sister Ann", "Rex, our dog", "the Rockies"),
places where someone goes or lives, well-known names, people who are addressed ("thanks, Ann!"), the speaker, and names
in requests or short answers, which the agent has to work with anyway. If in doubt, a name is excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.core.language.spans import any_of, compile_cached, has_han
from inmind.dreams.names import names_in_sentences
from inmind.dreams.questions import is_question
from inmind.dreams.requests import is_request, normalize_sentence

MIN_OTHER_WORDS = 3
"""Words of a sentence besides names. A shorter sentence is an answer."""


def find_unknown_names(sentences: Iterable[str]) -> list[str]:
    """Unexplained names in a person's sentences, in order, each once."""
    return list(dict.fromkeys(name for sentence in sentences for name in _unknown_names(sentence)))


def _unknown_names(sentence: str) -> Iterator[str]:
    names = names_in_sentences([sentence])
    if not names or _is_not_narrative(sentence, names):
        return
    for name in names:
        if not (_is_well_known(name) or _is_explained(name, sentence)):
            yield name


def _is_not_narrative(sentence: str, names: list[str]) -> bool:
    """True for a request, a question, an answer, or an introduction of the speaker."""
    text = normalize_sentence(sentence)
    if compile_cached(_INTRODUCTION).search(text) or compile_cached(_REQUEST).search(text):
        return True
    other_words = len(sentence.split()) - sum(len(name.split()) for name in names)
    if not has_han(sentence) and other_words < MIN_OTHER_WORDS:
        return True
    return is_question(sentence) or is_request(sentence)


def _is_well_known(name: str) -> bool:
    lower = name.casefold()
    return lower in _WELL_KNOWN or all(word in _WELL_KNOWN for word in lower.split())


def _is_explained(name: str, sentence: str) -> bool:
    """True if the words around the first mention explain it.

    Names of a list share an explanation.
    """
    before, _, after = sentence.partition(name)
    contexts = (before, compile_cached(_LISTED).sub("", before))
    explained = (
        any(compile_cached(_EXPLAINED_BEFORE).search(context) for context in contexts)
        or compile_cached(_EXPLAINED_AFTER).match(after) is not None
    )
    return explained or _is_set_apart(before, after)


def _is_set_apart(before: str, after: str) -> bool:
    """True for a name that is addressed or in apposition.

    "Wow, Ann, that is great!", "Alright Ann, have fun!", "Have fun, Ann!"; "one of them, Rex, barks".
    """
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
