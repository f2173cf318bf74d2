"""The edits that a dream may apply to MEMORY.md, and comparisons of two wordings.

Rules and models propose the same edits. They name lines by their text, so a proposal can be applied to a page that was
edited since: either the line is still there, or the edit is refused.

Numbers, names, negation and topic must not get lost or invented. The rules are cautious. Refusing a correct rewrite
costs a better wording; accepting one that turns March 20 into "soon" costs the date.
"""

from __future__ import annotations

import re

from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.language.languages import is_negated
from inmind.core.language.spans import HAN_OR_KANA
from inmind.core.text import escape_markup
from inmind.dreams.page.page import Section
from inmind.dreams.page.pointers import distinctive_words

Add = PageLine
"""Among edits, a line to add."""


@frozen(kw_only=True)
class Rewrite:
    """Replace lines with one: a better wording, a merge of several, or another section."""

    lines: tuple[str, ...]
    """Their text on the page, without list marks."""
    section: Section
    text: str
    sources: tuple[str, ...] = ()
    """Sources in addition to those of the lines."""
    importance: float = 0.0
    """Minimum importance. It is never lower than that of the lines."""
    at: str = ""


@frozen(kw_only=True)
class Retire:
    """Remove a line from the page and put a pointer in its place.

    Expired gaps, refreshed skills or figures, and pointers whose topic is on the page again need no pointer: nothing is
    lost with them.
    """

    line: str
    topic: str = ""
    keywords: str = ""
    """Keywords that find the sources of the line; with a topic they become a pointer."""


Edit = Add | Rewrite | Retire


@frozen(kw_only=True)
class Proposal:
    """The proposed edits and their proposer."""

    edits: tuple[Edit, ...]
    by: str = "rules"
    fell_back: str = ""
    """Why rules proposed this instead of the model."""
    refused: tuple[str, ...] = ()
    """Edits of the model that were not accepted, each with the reason."""


MAX_ENTRY_CHARACTERS = 500

MIN_SHARED_WORDS = 0.25
"""Share of distinctive words that the new wording has to keep."""


def normalize_line(text: str) -> str:
    """The text as one list entry: one line, no hidden characters, no leading Markdown marks."""
    return _LEADING_MARKS.sub("", " ".join(escape_markup(text).split())).strip()


def normalize_words(text: str) -> str:
    """A key for equal statements: only letters and digits count."""
    return " ".join(_WORDS.findall(text.casefold())) or text.strip()


def find_numbers(text: str) -> frozenset[str]:
    return frozenset(_normalize_number(number) for number in _NUMBER.findall(text))


def find_names(text: str) -> frozenset[str]:
    """Capitalized words inside a sentence, and technical words: ids, versions, addresses."""
    return frozenset(match[0] for match in _NAME.finditer(text))


def lost_facts(before: str, after: str) -> tuple[str, ...]:
    """Numbers and names of one text that are missing in the other, and a changed negation."""
    lost_numbers = find_numbers(before) - find_numbers(after)
    after_lower = after.casefold()
    negation = () if is_negated(before) == is_negated(after) else ("the negation",)
    return (
        *sorted(lost_numbers),
        *sorted(name for name in find_names(before) if name.casefold() not in after_lower),
        *negation,
    )


def invented_facts(text: str, *sources: str) -> tuple[str, ...]:
    """Numbers and names that no source has."""
    source_text = "\n".join(sources).casefold()
    new_names = sorted(name for name in find_names(text) if name.casefold() not in source_text)
    return (*sorted(find_numbers(text).difference(*map(find_numbers, sources))), *new_names)


def contradicts(text: str, *sources: str) -> bool:
    """True if its negation differs from that of every source, and it quotes none of them."""
    is_opposite = all(is_negated(source) != is_negated(text) for source in sources)
    return is_opposite and not any(is_quote_of(text, source) for source in sources)


def is_quote_of(text: str, source: str) -> bool:
    """True if the text is verbatim in the source, possibly after the name of the speaker."""
    words = normalize_words(source)
    return normalize_words(text) in words or normalize_words(text.partition(": ")[2] or text) in words


def shares_topic(text: str, *sources: str) -> bool:
    """True if the text shares enough distinctive words with its sources."""
    return shared_word_ratio(_TOOL_MARK.sub("", text), " ".join(sources)) >= MIN_SHARED_WORDS


def is_related(text: str, other: str) -> bool:
    """True if they share any distinctive word.

    In scripts without spaces, two characters are enough.
    """
    return shared_word_ratio(text, other) > 0 or not _character_pairs(text).isdisjoint(_character_pairs(other))


def shared_word_ratio(before: str, after: str) -> float:
    """The share of distinctive words of one text that are in the other."""
    words = {normalize_words(word) for word in distinctive_words(before)}
    after_words = normalize_words(after)
    return sum(word in after_words for word in words) / len(words) if words else 1.0


def _character_pairs(text: str) -> frozenset[str]:
    return frozenset(run[at : at + 2] for run in _HAN_RUN.findall(text) for at in range(len(run) - 1))


def _normalize_number(number: str) -> str:
    """1,000 becomes 1000, and 03 becomes 3."""
    return number.replace(",", "").lstrip("0") or "0"


_LEADING_MARKS = re.compile(r"\A(?:(?:[-*+>]|#{1,6})(?:\s+|\Z))+")
_WORDS = re.compile(r"\w+")
_NUMBER = re.compile(
    r"\d+(?:[.,]\d+)*|[〇零一二三四五六七八九十百千万亿两]+(?=[月日号年点时分元块岁次天周])"
    r"|[〇零一二三四五六七八九十百千万亿两]{2,}"
)
_HAN_RUN = re.compile(f"{HAN_OR_KANA}{{2,}}")
_TOOL_MARK = re.compile(r"\A\((?:from a tool)\)\s*")
_NAME = re.compile(
    r"(?:(?<=[^\W_]\s)|(?<=[^\W_][,;]\s)|(?<=[(\"“'`«])|(?<=&\s))[A-ZÀ-ÞА-Я][\w.-]*\w"
    r"|(?<!\w)(?=[\w.@/-]*[A-Za-z])(?=[\w.@/-]*[\d_@/])[\w.@/-]*\w"
    r"|(?<!\w)[a-z]+[A-Z]\w*"
)
