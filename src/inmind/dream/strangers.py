"""Names that whoever listens would ask about: who is that, what is that?

Few are. Whom or what a sentence says itself ("my sister Ann", "Rex, our dog", "the Rockies") needs no asking; nor does
a place where somebody goes or lives, what the whole world knows, whoever is spoken to ("thanks, Ann!"), who the speaker
is, and what is named in a request or in a short answer, as that is what the agent has to work with. A question that
bores is worse than none, so in doubt there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from inmind.dream.names import names_said
from inmind.dream.plain import any_of, plain
from inmind.dream.questions import wants_answer
from inmind.dream.requests import asks_for_deed
from inmind.history.prose import compiled

LEAST_WORDS = 4
"""Of a sentence, beside names: what is shorter answers somebody."""


def strangers_in(said: Iterable[str]) -> list[str]:
    """In what a person tells, in order, each once."""
    return list(dict.fromkeys(name for sentence in said for name in _strangers(sentence)))


def _strangers(sentence: str) -> Iterator[str]:
    names = names_said([sentence])
    if not names or _is_no_tale(sentence, names):
        return
    for name in names:
        if not (_is_known(name) or _is_explained(name, sentence)):
            yield name


def _is_no_tale(sentence: str, names: list[str]) -> bool:
    """Somebody asks for something, gives an answer, or says who they are."""
    said = plain(sentence)
    if compiled(_INTRODUCES).search(said) or compiled(_WANTS).search(said):
        return True
    others = sum(map(len, (sentence.split(), *()))) - sum(len(name.split()) for name in names)
    if not compiled(_HAN).search(sentence) and others < LEAST_WORDS:
        return True
    return wants_answer(sentence) or asks_for_deed(sentence)


def _is_known(name: str) -> bool:
    """To everybody."""
    low = name.casefold()
    return low in _KNOWN or all(word in _KNOWN for word in low.split())


def _is_explained(name: str, sentence: str) -> bool:
    """By what stands around it, wherever it comes up first."""
    before, _, behind = sentence.partition(name)
    return bool(compiled(_BEFORE).search(before) or compiled(_BEHIND).match(behind))


_HAN = "[一-鿿]"
_INTRODUCES = r"\b(?:my (?:\w+ )?name(?:'s| is)|call me|i am|i'm|this is|it's|regards|sincerely|cheers)\b|我叫|我是|我的名字"
_WANTS = any_of(
    r"\b(?:i|we)(?:'d| would)? (?:\w+ )?(?:want|need|like to|prefer)\b|\b(?:looking for|interested in|please)\b",
    r"\bi'd (?:like|love|prefer)\b|\b(?:how|what) about\b|\blet's\b|请|想要|我要",
)

_STEPS = "and|or|but|that|with|by|of|on|about|as|when|while|because|if|is|was|are|were|has|had|have|than|then|who|which"
_BEFORE = (
    any_of(
        # a place, or the way to one; whom somebody talks to is none
        r"\b(?:in|into|near|around|at|across|via|through|throughout|outside|inside|towards?|visit(?:s|ed|ing)?)\s+(?:\w+\s+)?",
        r"(?<!talk)(?<!talked)(?<!talking)(?<!spoke)(?<!speak)(?<!listen)(?<!introduced)(?<!introduced me)\s(?:to|from)\s+(?:the\s+)?",
        # one of its kind, and what kind that is
        r"\b(?:my|our|your|his|her|their|its|an?|the|this|that|these|those|some)\s+",
        rf"\b(?:my|our|your|his|her|their|an?|the|this|\w+['’]s)\s+(?:(?!(?:{_STEPS})\b)[a-z][\w-]*,?\s+){{1,3}}",
        r"\b(?:called|named)\s+",
        # whoever is spoken to
        r"^\W*(?:\w+[!,]?\s+)?(?:thanks|thank you|hey|hi|hello|yeah|yes|no|oh|wow|congrats|sorry|okay|ok|bye|sure)[\s,!]+",
        r",\s+(?=$)",
        r"有?[一-鿿]{0,6}(?:名叫|叫做|叫作|叫)$",
    )
    + r"[\"'“‘*(]*$"
)
_BEHIND = any_of(
    r"[\"'”’*)]*\s*,\s+(?:my|our|your|his|her|their|an?|the|who|which|one of)\b",
    r"[\"'”’*)]*\s+(?:is|was|are|were)\s+(?:my|our|your|his|her|their|an?|the|one of)\b",
    r"\s*[(（]|\s+[a-z]+\s*$",
    r"\s*[!,]\s*(?:you|your|i)\b",
)
_KNOWN = frozenset(
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
