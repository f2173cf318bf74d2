"""What a query asks for: its words with their weights, whom and when it speaks of.

A question is mostly made of words that say nothing about its answer ("can you tell me when we first discussed…"). Those
of every sentence are left out, and those of every question count little: "list" and "order" are now and then what is
meant. "I" and "my" mean what the user has said; "you" means the assistant; a name means whoever bears it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from inmind.crystals.when import Span, span_in
from inmind.crystals.words import words_asked
from inmind.frozen import frozen

WEAK = 0.35
"""What a word counts that belongs to asking more than to what is asked about."""


@frozen(kw_only=True)
class Asked:
    """A query, read."""

    words: Mapping[str, float]
    """What to look for, each with its weight."""
    role: str = ""
    """Whose messages are meant: the user's, the assistant's, or nobody's in particular."""
    names: frozenset[str] = frozenset()
    """Speakers that it names."""
    span: Span | None = None
    """Days that it speaks of."""


def asked(text: str, *, now: datetime, speakers: Sequence[str] = ()) -> Asked:
    """`speakers`: names of those whose words are in memory."""
    found = words_asked(text)
    telling = {word: WEAK if _is_weak(word) else 1.0 for word in found if word not in _SILENT and not _is_silent(word)}
    names = frozenset(name for name in speakers if (parts := words_asked(name)) and set(parts) <= set(found))
    return Asked(
        words=telling or dict.fromkeys(found, 1.0),
        role="" if names else _role(text),
        names=names,
        span=span_in(text, now),
    )


def _role(text: str) -> str:
    if _FIRST_PERSON.search(text):
        return "user"
    return "assistant" if _SECOND_PERSON.search(text) else ""


def _is_silent(gram: str) -> bool:
    return not gram.isascii() and any(character in _SILENT_CHARACTERS for character in gram)


def _is_weak(word: str) -> bool:
    """Japanese writes in hiragana what holds its sentences together, and most of what they are about in others."""
    return word in _WEAK or all("\u3041" <= character <= "\u309f" for character in word)


_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|my|me|mine|myself|we|our)\b|我|私|僕|俺", re.IGNORECASE)
_SECOND_PERSON = re.compile(r"\b(?:you|your)\b|你|您|あなた", re.IGNORECASE)

_SILENT = frozenset(
    words_asked(
        """
        a about above after again against all am an and any are aren't as at be because been before being below between
        both but by can cannot could couldn't did didn't do does doesn't doing don't down during each few for from
        further had hadn't has hasn't have haven't having he her here hers herself him himself his how i if in into is
        isn't it its itself just me more most my myself no nor not now of off on once only or other our ours ourselves
        out over own same she should so some such than that the their theirs them themselves then there these they this
        those through to too under until up us very was wasn't we were weren't what when where which while who whom
        whose why will with won't would you your yours yourself yourselves
        """
    )
)

_WEAK = frozenset(
    words_asked(
        """
        across aspect based bring brought chat comprehensive considering conversation currently different discuss
        discussion ever get give got help item kind know like list many mention might much only order plan please
        provide recently remind said say summarize summary talk tell think throughout told type use walk way
        什么 时候 怎么 哪里 哪个 为什么 多少 有没有 是不是 我们 你们 关于
        """
    )
)

_SILENT_CHARACTERS = frozenset("的了吗呢吧啊是我你您他她它们和与就都而及着或谁")
