"""Spans of a text: words, sentences, quotes, and runs of Chinese characters.

Every rule that reads text takes its word and script patterns from here, so that all of them agree on where a word or a
sentence ends. Patterns are strings: compile them with `compile_cached` on first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from inmind.core.frozen import frozen

HAN = "[\u3400-\u9fff]"
"""A Chinese character."""

HAN_OR_KANA = "[\u3041-\u30ff\u3400-\u9fff]"
"""A character of Chinese or Japanese."""

WORD = r"[^\W_]+"
"""A word of any script with spaces; a run of characters in the others."""

NAME_WORD = rf"{HAN}|[^\W_\u3400-\u9fff]+"
"""A word of a name: a Chinese character counts as one."""

IDENTIFIER_WORD = r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+"
"""A word of an identifier: create, Page, HTTP, URLs."""

QUOTE = r"[\"“”「」『』`]"
"""A quotation mark. A sentence with one repeats the words of another text."""


@cache
def compile_cached(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use.

    Compiling all of them would be a quarter of the import time.
    """
    return re.compile(pattern)


@frozen
class Token:
    """A word of a text and its place."""

    start: int
    end: int
    text: str
    base: str
    """Case-folded; for texts of a language also without a clitic such as 's."""


def any_of(*patterns: str) -> str:
    """A pattern that matches any of these."""
    return f"(?:{'|'.join(patterns)})"


def tokens(text: str, pattern: str = NAME_WORD) -> list[Token]:
    """Return the words of a text that a pattern matches, in order."""
    return [
        Token(match.start(), match.end(), match[0], match[0].casefold())
        for match in compile_cached(pattern).finditer(text)
    ]


def has_han(text: str) -> bool:
    """True if the text has a Chinese character. Most texts are ASCII, which is checked first."""
    return not text.isascii() and compile_cached(HAN).search(text) is not None


def has_quote(text: str) -> bool:
    """True if the text quotes: its words may be those of another person."""
    return compile_cached(QUOTE).search(text) is not None


def without_quotes(text: str) -> str:
    """The text without quotations, which are the words of another person."""
    return compile_cached(_QUOTATION).sub(" ", text)


def split_identifier(name: str) -> list[str]:
    """Split a tool name or key into lower-case words: cms_createPage, get-page, HTTPServer."""
    return [word.lower() for word in compile_cached(IDENTIFIER_WORD).findall(name)]


def cue_words(text: str) -> list[str]:
    """Return the lower-case ASCII words of a text, to look up cues.

    It is ten times as fast as a pattern.
    """
    plain = text.replace("’", "'").encode("ascii", "replace").translate(_CUE_CHARACTERS)
    return plain.decode("ascii").split()


def split_sentences(text: str) -> list[str]:
    """The sentences of an English or Chinese text.

    A period in a number, name or abbreviation does not end a sentence.
    """
    borders = [0, *_sentence_ends(text), len(text)]
    return [one for start, end in pairwise(borders) if (one := text[start:end].strip())]


def first_sentences(words: str, max_characters: int) -> str:
    """The text, or its first sentences up to a limit, with an ellipsis if it was cut."""
    text = words.strip()
    if len(text) <= max_characters:
        return text
    head = text[: max_characters - 2]
    stop = max(_sentence_ends(head), default=0)
    if stop < max_characters // 4:
        # One long sentence: cut after a word, or anywhere in a script without spaces.
        stop = head.rfind(" ") if " " in head else len(head)
    return f"{head[:stop].rstrip()} …"


# An apostrophe inside a word does not open a quotation.
_QUOTATION = (
    r"\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’(?!\w)|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`"
)
# Maps bytes to lower case, and everything between words to a space.
_CUE_CHARACTERS = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789'" else 32 for code in bytes(range(256)).lower()
)


def _sentence_ends(text: str) -> Iterator[int]:
    """Positions after the end of each sentence."""
    for end in compile_cached(_SENTENCE_END).finditer(text):
        place = end.end()
        last = text[max(0, place - _MAX_ABBREVIATION_CHARACTERS) : place].lower().rpartition(" ")[2]
        continues = _ABBREVIATIONS.get(last.lstrip(_OPENING_MARKS))
        if continues is None or not compile_cached(continues).match(text, place):
            yield place


# The final punctuation comes first in the pattern, so that a search skips to it directly.
_SENTENCE_END = (
    r"[.!?…。！？；\n](?:(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’)*]*(?=\s)|"
    r"(?<=[。！？；])[。！？；]*[”』」）]?|(?<=\n)\n*)"
)
# Words that start a sentence but not a name.
_SENTENCE_STARTERS = (
    r"(?:A|All|Always|And|Any|Are|Ask|Avoid|But|Can|Could|Do|Don|Every|For|From|He|How|I|If|In|Is|It|Keep|Let|Make|My|"
    r"Never|Nothing|Only|Our|Please|She|So|Stop|Thanks|That|The|Then|There|These|They|This|Use|We|What|When|Why|You|Your)"
)
# Abbreviations after which a period may not end a sentence, and the pattern of the following text if it does not.
_ABBREVIATIONS = {
    word: continues
    for words, continues in (
        (
            "approx. capt. cf. dr. e.g. gen. hon. i.e. lt. mr. mrs. ms. mt. prof. rev. st. u.k. u.s. vs.",
            rf"\s+(?!\s|{_SENTENCE_STARTERS}\b)",
        ),
        ("a.m. co. corp. dept. etc. inc. jr. ltd. p.m. sr.", r"\s+[^\sA-Z]"),
        ("art. eq. fig. no. nos. p. pp. sec. vol.", r"\s+#?\d"),
    )
    for word in words.split()
}
# More than the longest of them, so that none is matched as the end of another word.
_MAX_ABBREVIATION_CHARACTERS = 10
_OPENING_MARKS = "(\"'“‘*"
