"""Normalises the text of a statement: spelling, sentences, tokens and comparable wording."""

from __future__ import annotations

import re
from collections.abc import Callable

from inmind.core.language.spans import has_han
from inmind.core.language.tables import MONTHS

MONTH = rf"(?:{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"


_NORMALISATIONS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile("[‘’]"), "'"),
    (re.compile(r"\bcan(?:'t|not)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"(?<=\d),(?=\d{3}\b)"), ""),
    (re.compile(r"(?<=\d)k\b", re.IGNORECASE), "000"),
    (re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b", re.IGNORECASE), r"\1"),
    (
        re.compile(r"\b(\d{4})-(0[1-9]|1[0-2])-0?(\d{1,2})\b"),
        lambda day: f"{MONTHS[int(day[2]) - 1]} {day[3]} {day[1]}",
    ),
    (re.compile(rf"\b(\d{{1,2}}) (?:of )?({MONTH})\b", re.IGNORECASE), r"\2 \1"),
    (re.compile(rf"\b({MONTH} \d{{1,2}}), (?=\d{{4}}\b)", re.IGNORECASE), r"\1 "),
    (re.compile(r"^(?:(?:note|remember|reminder|fyi|btw|please|we)\b[:,]? +)+", re.IGNORECASE), ""),
)

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


_PUNCTUATION = " \t.,;:!\"'()[]{}。，；：！、“”"

# Words that do not change the meaning. Notes are about the user unless they say otherwise.
_FILLER_WORDS = frozenset("a an the user is are that current really very explicitly actually just".split())


PREPOSITIONS = frozenset(
    "about after as at because before by during for from if in instead into of on over per since than through to under "
    "unless until via when while with without".split()
)


def normalise(text: str) -> str:
    """Unify contractions, ordinals, thousands and date order; remove introductory words."""
    for pattern, replacement in _NORMALISATIONS:
        text = pattern.sub(replacement, text.strip())
    return text


def split_sentences(text: str) -> list[str]:
    return [stripped for sentence in _SENTENCE_END.split(text) if (stripped := sentence.strip(_PUNCTUATION))]


def tokenise(text: str) -> list[str]:
    """Return words without punctuation and filler words.

    Plain words are lower-cased; passwords, variable names and "plan A" keep their case.
    """
    bare = (token.strip(_PUNCTUATION).removesuffix("'s").removesuffix("s'") for token in text.split())
    lowered = (token.lower() if token[1:].isalpha() and token[1:].islower() else token for token in bare)
    return [token for token in lowered if token and token not in _FILLER_WORDS]


def sentence_wording(sentence: str) -> str:
    """Return the words with prepositional phrases in sorted order.

    "on Fridays by train" equals "by train on Fridays". All other order counts, because "Anna manages Bob" has the
    words of "Bob manages Anna"; and so does every word form, because "lived" is not "lives".
    """
    if has_han(sentence):
        return strip_filler_zh(sentence)
    parts: list[list[str]] = [[]]
    for token in tokenise(sentence):
        if token in PREPOSITIONS:
            parts.append([])
        parts[-1].append(token)
    first, *others = (" ".join(part) for part in parts)
    return "|".join([first, *sorted(others)])


_FILLER_ZH = re.compile(r"[\s的了]|用户|[，。、；：！]")


def strip_filler_zh(text: str) -> str:
    return _FILLER_ZH.sub("", text.casefold())
