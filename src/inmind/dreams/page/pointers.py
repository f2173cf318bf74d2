"""Pointers: one line for a topic removed from the page, with keywords that find it.

    Past: P2P bridge CORS debugging → search: `CORS P2P EigenTrust`

The model trusts pointers, so each must find its topic: there are several candidates for a line, shortest first, and the
caller tests them with a search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inmind.core.frozen import frozen
from inmind.core.language.spans import HAN_OR_KANA
from inmind.core.text import shorten

MAX_POINTERS = 20
"""With more pointers, lines are retired faster than the page is read."""

MAX_TOPIC_CHARACTERS = 48
MAX_KEYWORDS_CHARACTERS = 80
MAX_KEYWORDS = 8
"""More keywords are hard to read and match anything."""
TOPIC_SEPARATOR = "; "
"""Separates topics that share a pointer."""


@frozen
class Pointer:
    topic: str
    keywords: str


def format_pointer(pointer: Pointer) -> str:
    return f"Past: {pointer.topic} → search: `{pointer.keywords}`"


def parse_pointer(line: str) -> Pointer | None:
    """The pointer in a line of a dream or a user; None for other lines."""
    match = _POINTER.fullmatch(line.strip())
    return Pointer(match[1].strip(), match[2].strip()) if match else None


def make_pointer(*topics: str, keywords: str) -> Pointer:
    """A pointer without characters that would break its syntax."""
    short_topics = (shorten(_POINTER_SYNTAX.sub(" ", topic), MAX_TOPIC_CHARACTERS) for topic in topics)
    topic = shorten(TOPIC_SEPARATOR.join(filter(None, short_topics)), 2 * MAX_TOPIC_CHARACTERS)
    return Pointer(topic, _fit_words(_POINTER_SYNTAX.sub(" ", keywords), MAX_KEYWORDS_CHARACTERS))


def candidate_pointers(text: str) -> Iterator[Pointer]:
    """Pointers for a line, with its two most distinctive words, then with more of them."""
    topic = text.split("\n", 1)[0]
    words = distinctive_words(text)
    keyword_lists = dict.fromkeys(" ".join(words[:count]) for count in (2, 3, 5, MAX_KEYWORDS))
    pointers = [make_pointer(topic, keywords=keywords) for keywords in keyword_lists if keywords]
    yield from dict.fromkeys(pointer for pointer in pointers if pointer.topic and pointer.keywords)


def distinctive_words(text: str) -> list[str]:
    """Words that distinguish a line from others: names first, then longer words."""
    all_words = dict.fromkeys(word for run in _WORD.findall(text) for word in _split_particles(run))
    first_spelling = {word.casefold(): word for word in reversed(all_words)}
    words = [
        word for word in all_words if first_spelling[word.casefold()] is word and word.casefold() not in _STOP_WORDS
    ]
    first = next(iter(all_words), "")
    return sorted(words, key=lambda word: (not _is_name(word) or word == first, -len(word)))


def _is_name(word: str) -> bool:
    """True for a word with a capital or a digit. Numbers alone mean nothing to a reader."""
    return not word.isdigit() and any(letter.isdigit() or letter.isupper() for letter in word)


def _split_particles(run: str) -> list[str]:
    """Split runs of scripts without spaces at particles."""
    return [piece for piece in _PARTICLES.split(run) if len(piece) > 1] if _HAN.search(run) else [run]


def _fit_words(text: str, max_characters: int) -> str:
    fitted = ""
    for word in text.split():
        if len(longer := f"{fitted} {word}".strip()) > max_characters:
            break
        fitted = longer
    return fitted or " ".join(text.split())[:max_characters]


_POINTER = re.compile(r"Past: (.+?) (?:→|->) search: `([^`\n]+)`")
_POINTER_SYNTAX = re.compile(r"[`\s]+|→|->")
_WORD = re.compile(r"[^\W_](?:[\w.@/'’-]*\w)?")
_HAN = re.compile(HAN_OR_KANA)
_PARTICLES = re.compile(r"[的了是在和与及或我你他她它们这那就都也把被给对从到用要会吗呢吧，。、]")
_STOP_WORDS = frozenset(
    """
    a about after all also always an and any are as at avoid be because been before being both but by can could did do
    does done each for from get got had has have he her here him his how i if in into is it its just like likes made
    make many may me more most much must my need needs never no not now of off on once one only or other our out over
    own past prefers same say says search she should so some still such than that the their them then there these they
    this those through to too under until up us use used user very want wants was we were what when where which while
    who why will with worked would yes yet you your
    """.split()
)
