"""The references in an English text.

A reader, not a parser: it looks for the few words that begin a reference ("it", "the", "both") and walks from there
to the noun that ends it, over what describes it. It knows which nouns are types from whoever asks; to any other
noun after "that" it answers with the noun, since "that invoice" is no pronoun even if nobody has seen an invoice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.entities.nouns import SYNONYMS, is_plural, plural, singular
from inmind.entities.references.phrase import Phrase, Pick

_TOKEN = re.compile(r"[^\W_]+(?:_[^\W_]+)*(?:['’][^\W\d_]{1,2}(?![^\W_]))?|[^\w\s]")
_CLITIC = re.compile(r"['’](?:s|ll|d|re|ve|m)?$")

# What stands for a noun of any type.
_GENERIC_NOUNS = frozenset(
    "one thing item option result match choice object selection place location spot venue record".split()
)
_MAX_POSITION_DIGITS = 3
"""Digits behind a noun that say which one, "PR 125". What is longer is found as the id that it is."""
_NUMBERS = {word: n for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_ORDINALS = {
    word: place
    for place, several in enumerate(
        (
            "first 1st top former",
            "second 2nd",
            "third 3rd",
            "fourth 4th",
            "fifth 5th",
            "sixth 6th",
            "seventh 7th",
            "eighth 8th",
            "ninth 9th",
            "tenth 10th",
        ),
        start=1,
    )
    for word in several.split()
} | {"last": -1, "final": -1, "bottom": -1, "latter": -1, "penultimate": -2}
_OTHER_WORDS = frozenset("other others remaining".split())
_PREVIOUS_WORDS = frozenset("previous prior earlier preceding".split())
_AGE_WORDS: Mapping[str, Pick] = {"oldest": "oldest", "earliest": "oldest", "newest": "newest", "latest": "newest"}
_DELETED_WORDS = frozenset("deleted removed trashed erased".split())
_RESTORE_VERBS = frozenset("restore undelete recover revive unarchive resurrect restoring recovering".split())
_RESTORE_PHRASE = re.compile(
    r"\bbring(?:ing)?\b[^.;!?]{0,40}?\bback\b(?! to\b)|\b(?:get|want|have) (?:it|them|th\w+(?: \w+)?) back\b(?! to\b)",
    re.IGNORECASE,
)
_UNDO_PHRASE = re.compile(r"\b(?:undo|undoing|revert|reverse)\b|\bput \w+(?: \w+)? back\b(?! to\b)", re.IGNORECASE)

_DEMONSTRATIVES = frozenset("this that these those".split())
_PLURAL_DEMONSTRATIVES = frozenset("these those".split())
_DEFINITE_WORDS = frozenset("the my your our his her their its both all each every".split()) | _DEMONSTRATIVES
_POSSESSIVES = frozenset("its their his her".split())
_INDEFINITE_WORDS = frozenset("a an another some any no one new different more".split())
_SINGULAR_PRONOUNS = frozenset("it its itself".split())
_PLURAL_PRONOUNS = frozenset("them they their theirs themselves these those".split())

# Words that say nothing about which thing: they are stepped over.
_SKIPPED_WORDS = frozenset(
    "whole entire same current exact actual particular specific very new newly most recent recently just "
    "created updated old existing nice great good lovely beautiful perfect amazing own said mentioned above "
    "following original main so pretty really right".split()
)
_JOINING_WORDS = frozenset(["and", ",", "&", "-", "or"])

# Words that end the walk to a noun. After "this" and "that" they make it a pronoun.
_STOP_WORDS = frozenset(
    "is are was were be been being am do does did done has have had having can could will would shall should may "
    "might must to of in on at by for from with without into onto over under about as than like if when while because "
    "so but then now not also too please thanks again instead here there up down out off back away i you he she we "
    "they it me us them him who which what where how why the a an this these that those my your our its before after "
    "until since once only just still already yet maybe actually and or sounds sound looks look seems seem works work "
    "fits fit feels feel goes go comes come costs cost gets get makes make needs need means mean helps happens happen "
    "matches match says say takes take includes include involves run going right correct fine great good perfect nice "
    "okay ok all enough alone one's yes no today tomorrow tonight later first next sometime either sure available "
    "possible really very well better best much more less".split()
)
_CLAUSE_SUBJECTS = frozenset(
    "i you he she we they it there the a an my your our his her their this these those".split()
)
_FINITE_VERBS = frozenset(
    "is are was were has have had can could will would does do did fits matches contains costs includes works says "
    "looks serves starts plays offers allows comes goes accepts".split()
)
_BEFORE_PRONOUN_WORDS = frozenset(
    "and or but so then is are was were will would can could should does do did has have may might to of in on at by "
    "for from with into onto about like than as if when while because please yes no ok okay what how".split()
)
_QUALIFYING_WORDS = frozenset("on in at with from by near behind beside under above below between next hanging".split())
_MENTION_VERBS = frozenset(
    "found mentioned said offered suggested showed listed recommended discussed created made".split()
)
_USE_VERBS = frozenset("opened made created added edited visited viewed uploaded wrote built started saw".split())
_NAMING_WORDS = frozenset("called named titled labeled labelled entitled".split())

# "it" and "that" in these stand for a state of affairs. Each is matched at the pronoun or just before it.
_EXPLETIVE = re.compile(
    r"(?:that|this|it)(?:['’](?:s|ll|d)| is| was| will| would)?(?: be)? "
    r"(?:all|it|everything|enough|correct|right|true|raining|time|late|possible|important|necessary)\b"
    r"|(?:that|this|it) (?:ok|okay|alright|fine)\b"
    r"|it (?:seems|looks like|turns out|appears|takes|would be (?:nice|great|good|better|helpful))\b"
    r"|(?:that|this) (?:way|time|morning|afternoon|evening|week|month|year|weekend|day|date|info|information)\b",
    re.IGNORECASE,
)
_EXPLETIVE_BEFORE = re.compile(
    r"\b(?:(?:got|get|forget|appreciate|do|did|doing|time is|hear) it|(?:do|did|doing|say|said|like|hear|such) that)$",
    re.IGNORECASE,
)
# Praise is idle when it is all that was said. Before a request it says what the request is about.
_PRAISE = re.compile(
    r"\W*(?:(?:ok|okay|yes|wow|oh|ah|thanks|thank you|so|well)\W+)*(?:that|this)(?:['’]?s| is| was)"
    r"(?: (?:so|really|very|just|pretty|absolutely))? (?:great|good|fine|perfect|nice|awesome|cool|wonderful|amazing|"
    r"excellent|fantastic|interesting|lovely|ok|okay|alright)"
    r"(?:\W+(?:thanks|thank you|so much|very much|a lot|then))*\W*",
    re.IGNORECASE,
)
_EXPLETIVE_END = frozenset("?.!,;")
_DO_IT = re.compile(r"\b(?:do|did|doing|done) (?:it|that|this)$", re.IGNORECASE)
_AFTER_DO_IT = frozenset("again now too please anyway then instead for with yourself later once first".split())


@frozen
class _EnglishWord:
    start: int
    end: int
    text: str
    base: str
    """In small letters, without 's."""

    @property
    def is_word(self) -> bool:
        return self.base[:1].isalnum()


def find_phrases(text: str, nouns: Collection[str]) -> list[Phrase]:
    """The references in a text, in its order. `nouns` are the types that are known, in the singular."""
    words = [_make_word(match) for match in _TOKEN.finditer(text)]
    forms = {noun: noun for noun in nouns} | {plural(noun): noun for noun in nouns}
    restores = any(word.base in _RESTORE_VERBS for word in words) or _RESTORE_PHRASE.search(text) is not None
    undoes = _UNDO_PHRASE.search(text) is not None
    found: list[Phrase] = []
    index = 0
    while index < len(words):
        phrase, next_index = _phrase_at(text, words, index, forms, restores=restores)
        if phrase is not None:
            found.append(replace(phrase, undo=undoes))
        index = max(next_index, index + 1)
    return found


def _make_word(match: re.Match[str]) -> _EnglishWord:
    return _EnglishWord(match.start(), match.end(), match.group(), _CLITIC.sub("", match.group().lower()))


def _phrase_at(
    text: str, words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str], *, restores: bool
) -> tuple[Phrase | None, int]:
    """The reference that begins at this word, if one does, and the place of the first word behind it."""
    word = words[index].base
    if word in _INDEFINITE_WORDS:
        return _indefinite_phrase(words, index, nouns)
    if word in _DEFINITE_WORDS:
        walk = _PhraseScanner(words, index, nouns)
        if walk.is_reference:
            return walk.to_phrase(restores=restores), walk.end
        if walk.unknown_noun and word in _DEMONSTRATIVES and not _is_expletive(text, words, index):
            noun = singular(walk.unknown_noun)
            plural = word in _PLURAL_DEMONSTRATIVES
            phrase = Phrase(
                span=_span(words, index, walk.end),
                nouns=(noun,),
                noun=noun,
                plural=plural,
                demonstrative=True,
                deleted=restores,
            )
            return phrase, walk.end
    if word in _SINGULAR_PRONOUNS or word in _PLURAL_PRONOUNS or word in _DEMONSTRATIVES:
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
    """The small number behind a noun ("image 3", "image #3"), or 0, and the place of the first word behind it."""
    for prefix in ((), ("#",), ("number",), ("no", ".")):
        next_index = index + len(prefix)
        if tuple(word.base for word in words[index:next_index]) == prefix and next_index < len(words):
            digits = words[next_index].base
            if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_POSITION_DIGITS and (place := int(digits)):
                return place, next_index + 1
    return 0, index


def _indefinite_phrase(
    words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str]
) -> tuple[Phrase | None, int]:
    """Something new, or any: its span is kept, so that no word of it is taken for a name."""
    if words[index].base == "one" and not (index and words[index - 1].base in _INDEFINITE_WORDS):
        return None, index + 1  # "one of the pages", "that one": the other words of it decide
    walk = _PhraseScanner(words, index, nouns)
    if not walk.head and not walk.unknown_noun and words[index].base != "another":
        return None, index + 1
    next_index = walk.end
    if next_index < len(words) and words[next_index].base in _NAMING_WORDS:
        while next_index < len(words) and words[next_index].base not in {".", ";", "!", "?", "then"}:
            next_index += 1
    return Phrase(
        span=_span(words, index, next_index), nouns=_as_types(walk.head), noun=walk.head, indefinite=True
    ), next_index


def _pronoun_phrase(text: str, words: Sequence[_EnglishWord], index: int, *, restores: bool) -> Phrase | None:
    word = words[index].base
    if _is_expletive(text, words, index):
        return None
    before = words[index - 1] if index else None
    following = words[index + 1].base if index + 1 < len(words) else ""
    if word == "that" and words[index].text.lower() == "that":
        if following in _CLAUSE_SUBJECTS:
            return None  # "I think that the …", "the one that you …"
        if (
            following in _FINITE_VERBS
            and before is not None
            and before.is_word
            and before.base not in _BEFORE_PRONOUN_WORDS
        ):
            return None  # "a house that has …"
        if following in _FINITE_VERBS and before is not None and before.base in {"have", "has", "had"}:
            return None  # "do you have that is …"
    plural = word in _PLURAL_PRONOUNS
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
    if _EXPLETIVE.match(text, word.start) or _PRAISE.fullmatch(text):
        return True
    following = words[index + 1].base if index + 1 < len(words) else "."
    if following in _AFTER_DO_IT and _DO_IT.search(text, max(0, word.start - 20), word.end):
        return True
    return following in _EXPLETIVE_END and _EXPLETIVE_BEFORE.search(text, max(0, word.start - 20), word.end) is not None


class _PhraseScanner:
    """From the word that begins a reference to the noun that ends it."""

    MAX_WORDS = 12

    def __init__(self, text_words: Sequence[_EnglishWord], index: int, nouns: Mapping[str, str]) -> None:
        self.text_words = text_words
        self.first_word = text_words[index].base
        self.nouns = nouns
        self.head = ""
        """The noun as a type; empty for "one" and for none."""
        self.has_head = False
        self.unknown_noun = ""
        """A noun that is no known type."""
        self.words: list[str] = []
        self.pick: Pick = "recent"
        self.position = 0
        self.count = 0
        self.plural = self.first_word in _PLURAL_DEMONSTRATIVES or self.first_word in {"all", "both", "each", "every"}
        self.deleted = self.maybe_singular = self.qualified = self.numbered = False
        self.at = self.start = index
        self.end = index + 1
        self.demonstrative = self.first_word in _DEMONSTRATIVES
        if self.first_word == "both":
            self.count = 2
        self._scan(index + 1)
        if self.has_head:
            self._read_following()

    @property
    def is_reference(self) -> bool:
        if self.has_head:
            return not (self.first_word in _POSSESSIVES and not self.head)
        if self.first_word in _POSSESSIVES | {"my", "your", "our", "each", "every"}:
            return False
        if self.first_word == "both":
            return not self.words
        if self.first_word == "all":
            return self.count > 0
        last = self.text_words[self.end - 1].base
        if self.words or (self.position and (last[:1].isdigit() or last in {"top", "bottom"})):
            return False  # "the second shelf" is no thing of ours, "the 7th" is a day, "the top" a place
        return self.pick != "recent" or (self.first_word in _PLURAL_DEMONSTRATIVES and self.count > 0)

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
            possessive=self.first_word if self.first_word in _POSSESSIVES else "",
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
            if base in _ORDINALS and not self.words:
                self.pick, self.position = "place", _ORDINALS[base]
            elif base in _OTHER_WORDS:
                self.pick = "other"
                self.plural = self.plural or base == "others"
            elif base in _PREVIOUS_WORDS:
                self.pick = "previous"
            elif base in _AGE_WORDS and not self.words:
                self.pick = _AGE_WORDS[base]
            elif base in _DELETED_WORDS:
                self.deleted = True
            elif _parse_number(base) > 1 and not self.words:
                self.count = _parse_number(base)
            elif base in _SKIPPED_WORDS:
                continue
            elif base in _JOINING_WORDS:
                if not self.words or not self._leads_to_noun():
                    return
                continue
            elif not word.is_word or (base in _STOP_WORDS and not self._is_part_of_a_name(word)):
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
        """Is the noun here? In a row of nouns it is the last: "the page section" is a section."""
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
            self.maybe_singular = True  # a type that is a plural itself: trousers, shoes
        elif noun_singular != noun or (
            noun == noun_singular and is_plural(noun) and self.first_word in {"all", "both", *_PLURAL_DEMONSTRATIVES}
        ):
            self.plural = True
        self.head = "" if noun_singular in _GENERIC_NOUNS and noun_singular not in self.nouns else noun_singular
        if self.first_word in {"this", "that"} or (self.position and not self.count):
            self.plural = self.plural and noun_singular != noun
        self.has_head, self.end = True, last + width
        return True

    def _noun_width(self, index: int) -> int:
        """How many words the noun at this place has; 0 if there is none."""
        for width in (2, 1):
            words = self.text_words[index : index + width]
            if len(words) == width and all(word.is_word for word in words):
                noun = " ".join(word.base for word in words)
                if noun in self.nouns or (width == 1 and singular(noun) in _GENERIC_NOUNS):
                    return width
        return 0

    def _is_in_set_phrase(self) -> bool:
        """Are we in "both of the …", "all three of them", "the first two of these"?"""
        before = self.text_words[self.at - 1].base
        if self.text_words[self.at].base == "of":
            return bool(self.count or self.position or before in {"all", "each"}) and not self.words
        return before in {"of", "all", "both", "each"} and not self.words

    def _leads_to_noun(self) -> bool:
        """Does a joining word lead to more of the description, and that to a noun?"""
        for word in self.text_words[self.at + 1 : self.at + 8]:
            if word.base in self.nouns or singular(word.base) in _GENERIC_NOUNS:
                return True
            if word.base in _STOP_WORDS or not (word.is_word or word.base in _JOINING_WORDS):
                return False
        return False

    def _is_part_of_a_name(self, word: _EnglishWord) -> bool:
        """The "About" of "the About page" is no preposition, nor is what follows an article."""
        first = self.at == self.start + 1 and self.first_word in {"the", "my", "your", "our"}
        return first or (word.text[:1].isupper() and word.base != "i")

    def _read_following(self) -> None:
        """What follows the noun: "before that", "from earlier", "I deleted", "I opened first", "3"."""
        following = [word.base for word in self.text_words[self.end : self.end + 6]]
        position, next_index = _number_after(self.text_words, self.end)
        if position and self.head and self.pick == "recent" and not self.plural:
            self.pick, self.position, self.numbered, self.end = "place", position, True, next_index
        elif age := self._age_pick(following):
            self.pick, self.position = age, 0
        elif following[:1] == ["before"]:
            self.pick = "previous"
            self.end += 2 if following[1:2] and following[1] in {"that", "it", "this"} else 1
        elif _DELETED_WORDS.intersection(following[:5]) and {
            "i",
            "we",
            "you",
            "was",
            "were",
            "that",
            "just",
        }.intersection(following[:3]):
            self.deleted = True
        elif following[:1] and following[0] in {"you", "we", "i"} and _MENTION_VERBS.intersection(following[1:3]):
            self.demonstrative = True
        elif following[:1] and following[0] in _QUALIFYING_WORDS and not self.head and not self.words:
            self.qualified = True

    def _age_pick(self, following: Sequence[str]) -> Pick | None:
        """ "the first page I opened", "the page that I made last": counted by when it was, in no list."""
        words = [word for word in following if word not in {"that", "which", "just", "ever"}][:3]
        if (
            self.plural
            or self.count
            or words[:1] not in (["i"], ["we"], ["you"])
            or not _USE_VERBS.intersection(words[1:2])
        ):
            return None
        position = self.position or (_ORDINALS.get(words[2], 0) if len(words) > 2 else 0)
        return "oldest" if position == 1 else "newest" if position == -1 else None


def _parse_number(base: str) -> int:
    return int(base) if base.isascii() and base.isdigit() and len(base) <= 2 else _NUMBERS.get(base, 0)


def _as_types(head: str) -> tuple[str, ...]:
    return (head,) if head else ()


def _span(words: Sequence[_EnglishWord], start: int, end: int) -> tuple[int, int]:
    return words[start].start, words[end - 1].end
