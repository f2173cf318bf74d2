"""Finds references in English text.

It scans for words that begin a reference ("it", "the", "both") and reads up to its noun. The caller passes the
known types. Another noun after "that" is kept as the type, because "that invoice" is not a pronoun even if no
invoice is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.entities.nouns import SYNONYMS, is_plural, plural, singular
from inmind.entities.references.english_words import (
    AFTER_DO_IT,
    AGE_WORDS,
    BEFORE_PRONOUN_WORDS,
    CLAUSE_SUBJECTS,
    DEFINITE_WORDS,
    DELETED_WORDS,
    DEMONSTRATIVES,
    DO_IT,
    EXPLETIVE,
    EXPLETIVE_BEFORE,
    EXPLETIVE_END,
    FINITE_VERBS,
    GENERIC_NOUNS,
    INDEFINITE_WORDS,
    JOINING_WORDS,
    MENTION_VERBS,
    NAMING_WORDS,
    NUMBERS,
    ORDINALS,
    OTHER_WORDS,
    PLURAL_DEMONSTRATIVES,
    PLURAL_PRONOUNS,
    POSSESSIVES,
    PRAISE,
    PREVIOUS_WORDS,
    QUALIFYING_WORDS,
    RESTORE_PHRASE,
    RESTORE_VERBS,
    SINGULAR_PRONOUNS,
    SKIPPED_WORDS,
    STOP_WORDS,
    UNDO_PHRASE,
    USE_VERBS,
)
from inmind.entities.references.phrase import Phrase, Pick

_TOKEN = re.compile(r"[^\W_]+(?:_[^\W_]+)*(?:['’][^\W\d_]{1,2}(?![^\W_]))?|[^\w\s]")
_CLITIC = re.compile(r"['’](?:s|ll|d|re|ve|m)?$")

_MAX_POSITION_DIGITS = 3
"""Digits of a position after a noun, "PR 125". A longer number is found as an id."""


@frozen
class _EnglishWord:
    start: int
    end: int
    text: str
    base: str
    """Lower case, without 's."""

    @property
    def is_word(self) -> bool:
        return self.base[:1].isalnum()


def find_phrases(text: str, nouns: Collection[str]) -> list[Phrase]:
    """Return the references of a text in order. `nouns` are the known types, in singular."""
    words = [_make_word(match) for match in _TOKEN.finditer(text)]
    forms = {noun: noun for noun in nouns} | {plural(noun): noun for noun in nouns}
    restores = any(word.base in RESTORE_VERBS for word in words) or RESTORE_PHRASE.search(text) is not None
    undoes = UNDO_PHRASE.search(text) is not None
    phrases: list[Phrase] = []
    index = 0
    while index < len(words):
        phrase, next_index = _phrase_at(text, words, index, forms, restores=restores)
        if phrase is not None:
            phrases.append(replace(phrase, undo=undoes))
        index = max(next_index, index + 1)
    return phrases


def _make_word(match: re.Match[str]) -> _EnglishWord:
    return _EnglishWord(match.start(), match.end(), match.group(), _CLITIC.sub("", match.group().lower()))


def _phrase_at(
    text: str, words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str], *, restores: bool
) -> tuple[Phrase | None, int]:
    """Return the reference that begins at this word, if any, and the index after it."""
    word = words[index].base
    if word in INDEFINITE_WORDS:
        return _indefinite_phrase(words, index, nouns)
    if word in DEFINITE_WORDS:
        scanner = _PhraseScanner(words, index, nouns)
        if scanner.is_reference:
            return scanner.to_phrase(restores=restores), scanner.end
        if scanner.unknown_noun and word in DEMONSTRATIVES and not _is_expletive(text, words, index):
            noun = singular(scanner.unknown_noun)
            plural = word in PLURAL_DEMONSTRATIVES
            phrase = Phrase(
                span=_span(words, index, scanner.end),
                nouns=(noun,),
                noun=noun,
                plural=plural,
                demonstrative=True,
                deleted=restores,
            )
            return phrase, scanner.end
    if word in SINGULAR_PRONOUNS or word in PLURAL_PRONOUNS or word in DEMONSTRATIVES:
        return _pronoun_phrase(text, words, index, restores=restores), index + 1
    if word in {"number", "option", "choice", "no"} and index + 1 < len(words):
        position = _parse_number(words[index + 1].base)
        if position:
            return Phrase(span=_span(words, index, index + 2), pick="place", position=position), index + 2
    noun = nouns.get(word, "")
    position, next_index = _number_after(words, index + 1)
    if noun and position:
        span = _span(words, index, next_index)
        return Phrase(span=span, nouns=(noun,), noun=noun, pick="place", position=position, numbered=True), next_index
    return None, index + 1


def _number_after(words: Sequence[_EnglishWord], index: int) -> tuple[int, int]:
    """Return the number after a noun ("image 3", "image #3") or 0, and the index after it."""
    for prefix in ((), ("#",), ("number",), ("no", ".")):
        next_index = index + len(prefix)
        if tuple(word.base for word in words[index:next_index]) == prefix and next_index < len(words):
            digits = words[next_index].base
            if (
                digits.isascii()
                and digits.isdigit()
                and len(digits) <= _MAX_POSITION_DIGITS
                and (number := int(digits))
            ):
                return number, next_index + 1
    return 0, index


def _indefinite_phrase(
    words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str]
) -> tuple[Phrase | None, int]:
    """Return an indefinite phrase. Its span is kept, so that no word of it is taken for a name."""
    if words[index].base == "one" and not (index and words[index - 1].base in INDEFINITE_WORDS):
        return None, index + 1  # "one of the pages", "that one": decided by the other words
    scanner = _PhraseScanner(words, index, nouns)
    if not scanner.head and not scanner.unknown_noun and words[index].base != "another":
        return None, index + 1
    next_index = scanner.end
    if next_index < len(words) and words[next_index].base in NAMING_WORDS:
        while next_index < len(words) and words[next_index].base not in {".", ";", "!", "?", "then"}:
            next_index += 1
    return Phrase(
        span=_span(words, index, next_index), nouns=_as_types(scanner.head), noun=scanner.head, indefinite=True
    ), next_index


def _pronoun_phrase(text: str, words: Sequence[_EnglishWord], index: int, *, restores: bool) -> Phrase | None:
    word = words[index].base
    if _is_expletive(text, words, index):
        return None
    before = words[index - 1] if index else None
    following = words[index + 1].base if index + 1 < len(words) else ""
    if word == "that" and words[index].text.lower() == "that":
        if following in CLAUSE_SUBJECTS:
            return None  # "I think that the …", "the one that you …"
        if (
            following in FINITE_VERBS
            and before is not None
            and before.is_word
            and before.base not in BEFORE_PRONOUN_WORDS
        ):
            return None  # "a house that has …"
        if following in FINITE_VERBS and before is not None and before.base in {"have", "has", "had"}:
            return None  # "do you have that is …"
    plural = word in PLURAL_PRONOUNS
    maybe_singular = word in {"they", "their", "theirs"}
    return Phrase(
        span=_span(words, index, index + 1),
        plural=plural,
        maybe_singular=maybe_singular,
        demonstrative=True,
        deleted=restores,
    )


def _is_expletive(text: str, words: Sequence[_EnglishWord], index: int) -> bool:
    word = words[index]
    if word.base not in {"it", "that", "this"}:
        return False
    if EXPLETIVE.match(text, word.start) or PRAISE.fullmatch(text):
        return True
    following = words[index + 1].base if index + 1 < len(words) else "."
    if following in AFTER_DO_IT and DO_IT.search(text, max(0, word.start - 20), word.end):
        return True
    return following in EXPLETIVE_END and EXPLETIVE_BEFORE.search(text, max(0, word.start - 20), word.end) is not None


class _PhraseScanner:
    """Scans from the first word of a reference to its noun."""

    MAX_WORDS = 12

    def __init__(self, text_words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str]) -> None:
        self.text_words = text_words
        self.first_word = text_words[index].base
        self.nouns = nouns
        self.head = ""
        """The noun as a type; empty for "one" and if there is none."""
        self.has_head = False
        self.unknown_noun = ""
        """A noun that is not a known type."""
        self.words: list[str] = []
        self.pick: Pick = "recent"
        self.position = 0
        self.count = 0
        self.plural = self.first_word in PLURAL_DEMONSTRATIVES or self.first_word in {"all", "both", "each", "every"}
        self.deleted = self.maybe_singular = self.qualified = self.numbered = False
        self.at = self.start = index
        self.end = index + 1
        self.demonstrative = self.first_word in DEMONSTRATIVES
        if self.first_word == "both":
            self.count = 2
        self._scan(index + 1)
        if self.has_head:
            self._read_following()

    @property
    def is_reference(self) -> bool:
        if self.has_head:
            return not (self.first_word in POSSESSIVES and not self.head)
        if self.first_word in POSSESSIVES | {"my", "your", "our", "each", "every"}:
            return False
        if self.first_word == "both":
            return not self.words
        if self.first_word == "all":
            return self.count > 0
        last = self.text_words[self.end - 1].base
        if self.words or (self.position and (last[:1].isdigit() or last in {"top", "bottom"})):
            return False  # "the second shelf" is no entity, "the 7th" is a day, "the top" is a place
        return self.pick != "recent" or (self.first_word in PLURAL_DEMONSTRATIVES and self.count > 0)

    def to_phrase(self, *, restores: bool) -> Phrase:
        plural = self.plural or self.count > 1
        return Phrase(
            span=_span(self.text_words, self.start, self.end),
            nouns=_as_types(self.head),
            noun=self.head,
            words=tuple(word for word in self.words if word not in SYNONYMS.get(self.head, ()))
            if self.has_head
            else (),
            pick=self.pick,
            position=self.position,
            numbered=self.numbered,
            plural=plural,
            count=self.count,
            exhaustive=self.first_word in {"both", "all"} and self.head != "",
            maybe_singular=self.maybe_singular,
            qualified=self.qualified,
            possessive=self.first_word if self.first_word in POSSESSIVES else "",
            demonstrative=self.demonstrative,
            deleted=self.deleted or restores,
        )

    def _scan(self, index: int) -> None:
        for word in self._iter_words(index):
            base = word.base
            if self._read_head():
                return
            if base in {"of", "the", "these", "those", "them", "my", "your", "our"} and self._is_in_set_phrase():
                if base == "them":
                    self.has_head, self.plural, self.end = True, True, self.at + 1
                    return
                continue
            if base in ORDINALS and not self.words:
                self.pick, self.position = "place", ORDINALS[base]
            elif base in OTHER_WORDS:
                self.pick = "other"
                self.plural = self.plural or base == "others"
            elif base in PREVIOUS_WORDS:
                self.pick = "previous"
            elif base in AGE_WORDS and not self.words:
                self.pick = AGE_WORDS[base]
            elif base in DELETED_WORDS:
                self.deleted = True
            elif _parse_number(base) > 1 and not self.words:
                self.count = _parse_number(base)
            elif base in SKIPPED_WORDS:
                continue
            elif base in JOINING_WORDS:
                if not self.words or not self._leads_to_noun():
                    return
                continue
            elif not word.is_word or (base in STOP_WORDS and not self._is_part_of_a_name(word)):
                return
            elif len(self.words) < 6:
                self.words.append(base)
                self.unknown_noun = base
                if self.pick == "recent" and not self.count:
                    self.end = self.at + 1
                continue
            else:
                return
            self.end = self.at + 1

    def _iter_words(self, index: int) -> Iterator[_EnglishWord]:
        for position in range(index, min(len(self.text_words), index + self.MAX_WORDS)):
            self.at = position
            yield self.text_words[position]

    def _read_head(self) -> bool:
        """Read the noun at this position. Of several nouns the last counts: "the page section"."""
        last = self.at
        width = self._noun_width(last)
        if not width:
            return False
        while next_width := self._noun_width(last + width):
            if self.text_words[last + width].base in {"one", "ones"}:
                break
            self.words += [word.base for word in self.text_words[last : last + width]]
            last, width = last + width, next_width
        noun = " ".join(word.base for word in self.text_words[last : last + width])
        noun_singular = self.nouns.get(noun, singular(noun))
        if noun_singular == noun and singular(noun) != noun:
            self.maybe_singular = True  # a type that is a plural word: trousers, shoes
        elif noun_singular != noun or (
            noun == noun_singular and is_plural(noun) and self.first_word in {"all", "both", *PLURAL_DEMONSTRATIVES}
        ):
            self.plural = True
        self.head = "" if noun_singular in GENERIC_NOUNS and noun_singular not in self.nouns else noun_singular
        if self.first_word in {"this", "that"} or (self.position and not self.count):
            self.plural = self.plural and noun_singular != noun
        self.has_head, self.end = True, last + width
        return True

    def _noun_width(self, index: int) -> int:
        """Return the number of words of the noun at this position, or 0."""
        for width in (2, 1):
            words = self.text_words[index : index + width]
            if len(words) == width and all(word.is_word for word in words):
                noun = " ".join(word.base for word in words)
                if noun in self.nouns or (width == 1 and singular(noun) in GENERIC_NOUNS):
                    return width
        return 0

    def _is_in_set_phrase(self) -> bool:
        """Return True inside "both of the …", "all three of them", "the first two of these"."""
        before = self.text_words[self.at - 1].base
        if self.text_words[self.at].base == "of":
            return bool(self.count or self.position or before in {"all", "each"}) and not self.words
        return before in {"of", "all", "both", "each"} and not self.words

    def _leads_to_noun(self) -> bool:
        """Return True if a joining word is followed by more description and a noun."""
        for word in self.text_words[self.at + 1 : self.at + 8]:
            if word.base in self.nouns or singular(word.base) in GENERIC_NOUNS:
                return True
            if word.base in STOP_WORDS or not (word.is_word or word.base in JOINING_WORDS):
                return False
        return False

    def _is_part_of_a_name(self, word: _EnglishWord) -> bool:
        """Return True for the "About" of "the About page", which is not a preposition."""
        first = self.at == self.start + 1 and self.first_word in {"the", "my", "your", "our"}
        return first or (word.text[:1].isupper() and word.base != "i")

    def _read_following(self) -> None:
        """Read the words after the noun: "before that", "I deleted", "I opened first", "3"."""
        following = [word.base for word in self.text_words[self.end : self.end + 6]]
        position, next_index = _number_after(self.text_words, self.end)
        if position and self.head and self.pick == "recent" and not self.plural:
            self.pick, self.position, self.numbered, self.end = "place", position, True, next_index
        elif age := self._age_pick(following):
            self.pick, self.position = age, 0
        elif following[:1] == ["before"]:
            self.pick = "previous"
            self.end += 2 if following[1:2] and following[1] in {"that", "it", "this"} else 1
        elif DELETED_WORDS.intersection(following[:5]) and {
            "i",
            "we",
            "you",
            "was",
            "were",
            "that",
            "just",
        }.intersection(following[:3]):
            self.deleted = True
        elif following[:1] and following[0] in {"you", "we", "i"} and MENTION_VERBS.intersection(following[1:3]):
            self.demonstrative = True
        elif following[:1] and following[0] in QUALIFYING_WORDS and not self.head and not self.words:
            self.qualified = True

    def _age_pick(self, following: Sequence[str]) -> Pick | None:
        """Read "the first page I opened", "the page that I made last": ordered by time."""
        words = [word for word in following if word not in {"that", "which", "just", "ever"}][:3]
        if (
            self.plural
            or self.count
            or words[:1] not in (["i"], ["we"], ["you"])
            or not USE_VERBS.intersection(words[1:2])
        ):
            return None
        position = self.position or (ORDINALS.get(words[2], 0) if len(words) > 2 else 0)
        return "oldest" if position == 1 else "newest" if position == -1 else None


def _parse_number(base: str) -> int:
    return int(base) if base.isascii() and base.isdigit() and len(base) <= 2 else NUMBERS.get(base, 0)


def _as_types(head: str) -> tuple[str, ...]:
    return (head,) if head else ()


def _span(words: Sequence[_EnglishWord], start: int, end: int) -> tuple[int, int]:
    return words[start].start, words[end - 1].end
