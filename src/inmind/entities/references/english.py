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
_ANY = frozenset("one thing item option result match choice object selection place location spot venue record".split())
_LONGEST_NUMBER = 3
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
_OTHER = frozenset("other others remaining".split())
_PREVIOUS = frozenset("previous prior earlier preceding".split())
_BY_AGE: Mapping[str, Pick] = {"oldest": "oldest", "earliest": "oldest", "newest": "newest", "latest": "newest"}
_DELETED = frozenset("deleted removed trashed erased".split())
_REVIVE = frozenset("restore undelete recover revive unarchive resurrect restoring recovering".split())
_REVIVES = re.compile(
    r"\bbring(?:ing)?\b[^.;!?]{0,40}?\bback\b(?! to\b)|\b(?:get|want|have) (?:it|them|th\w+(?: \w+)?) back\b(?! to\b)",
    re.IGNORECASE,
)
_UNDOES = re.compile(r"\b(?:undo|undoing|revert|reverse)\b|\bput \w+(?: \w+)? back\b(?! to\b)", re.IGNORECASE)

_POINTING = frozenset("this that these those".split())
_SEVERAL = frozenset("these those".split())
_DEFINITE = frozenset("the my your our his her their its both all each every".split()) | _POINTING
_POSSESSIVE = frozenset("its their his her".split())
_INDEFINITE = frozenset("a an another some any no one new different more".split())
_ONE = frozenset("it its itself".split())
_THEM = frozenset("them they their theirs themselves these those".split())

# Words that say nothing about which thing: they are stepped over.
_PALE = frozenset(
    "whole entire same current exact actual particular specific very new newly most recent recently just "
    "created updated old existing nice great good lovely beautiful perfect amazing own said mentioned above "
    "following original main so pretty really right".split()
)
_JOINING = frozenset(["and", ",", "&", "-", "or"])

# Words that end the walk to a noun. After "this" and "that" they make it a pronoun.
_ENDING = frozenset(
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
_SUBJECT = frozenset("i you he she we they it there the a an my your our his her their this these those".split())
_FINITE = frozenset(
    "is are was were has have had can could will would does do did fits matches contains costs includes works says "
    "looks serves starts plays offers allows comes goes accepts".split()
)
_BEFORE_PRONOUN = frozenset(
    "and or but so then is are was were will would can could should does do did has have may might to of in on at by "
    "for from with into onto about like than as if when while because please yes no ok okay what how".split()
)
_NARROWING = frozenset("on in at with from by near behind beside under above below between next hanging".split())
_SPOKEN_OF = frozenset(
    "found mentioned said offered suggested showed listed recommended discussed created made".split()
)
_DONE = frozenset("opened made created added edited visited viewed uploaded wrote built started saw".split())
_CALLED = frozenset("called named titled labeled labelled entitled".split())

# "it" and "that" in these stand for a state of affairs. Each is matched at the pronoun or just before it.
_IDLE = re.compile(
    r"(?:that|this|it)(?:['’](?:s|ll|d)| is| was| will| would)?(?: be)? "
    r"(?:all|it|everything|enough|correct|right|true|raining|time|late|possible|important|necessary)\b"
    r"|(?:that|this|it) (?:ok|okay|alright|fine)\b"
    r"|it (?:seems|looks like|turns out|appears|takes|would be (?:nice|great|good|better|helpful))\b"
    r"|(?:that|this) (?:way|time|morning|afternoon|evening|week|month|year|weekend|day|date|info|information)\b",
    re.IGNORECASE,
)
_IDLE_BEFORE = re.compile(
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
_IDLE_NEXT = frozenset("?.!,;")
_DO = re.compile(r"\b(?:do|did|doing|done) (?:it|that|this)$", re.IGNORECASE)
_DO_NEXT = frozenset("again now too please anyway then instead for with yourself later once first".split())


@frozen
class _Word:
    start: int
    end: int
    text: str
    base: str
    """In small letters, without 's."""

    @property
    def is_word(self) -> bool:
        return self.base[:1].isalnum()


def read(text: str, nouns: Collection[str]) -> list[Phrase]:
    """The references in a text, in its order. `nouns` are the types that are known, in the singular."""
    said = [_word(match) for match in _TOKEN.finditer(text)]
    forms = {noun: noun for noun in nouns} | {plural(noun): noun for noun in nouns}
    revives = any(word.base in _REVIVE for word in said) or _REVIVES.search(text) is not None
    undoes = _UNDOES.search(text) is not None
    found: list[Phrase] = []
    at = 0
    while at < len(said):
        phrase, after = _phrase(text, said, at, forms, revives=revives)
        if phrase is not None:
            found.append(replace(phrase, undone=undoes))
        at = max(after, at + 1)
    return found


def _word(match: re.Match[str]) -> _Word:
    return _Word(match.start(), match.end(), match.group(), _CLITIC.sub("", match.group().lower()))


def _phrase(
    text: str, said: Sequence[_Word], at: int, nouns: Mapping[str, str], *, revives: bool
) -> tuple[Phrase | None, int]:
    """The reference that begins at this word, if one does, and the place of the first word behind it."""
    word = said[at].base
    if word in _INDEFINITE:
        return _indefinite(said, at, nouns)
    if word in _DEFINITE:
        walk = _Walk(said, at, nouns)
        if walk.refers:
            return walk.phrase(revives=revives), walk.after
        if walk.stranger and word in _POINTING and not _is_idle(text, said, at):
            noun = singular(walk.stranger)
            many = word in _SEVERAL
            phrase = Phrase(
                span=_span(said, at, walk.after), nouns=(noun,), noun=noun, many=many, pointing=True, deleted=revives
            )
            return phrase, walk.after
    if word in _ONE or word in _THEM or word in _POINTING:
        return _pronoun(text, said, at, revives=revives), at + 1
    if word in {"number", "option", "choice", "no"} and at + 1 < len(said):
        place = _number(said[at + 1].base)
        if place:
            return Phrase(span=_span(said, at, at + 2), pick="place", place=place), at + 2
    noun = nouns.get(word, "")
    place, after = _numbered(said, at + 1)
    if noun and place:
        span = _span(said, at, after)
        return Phrase(span=span, nouns=(noun,), noun=noun, pick="place", place=place, numbered=True), after
    return None, at + 1


def _numbered(said: Sequence[_Word], at: int) -> tuple[int, int]:
    """The small number behind a noun ("image 3", "image #3"), or 0, and the place of the first word behind it."""
    for before in ((), ("#",), ("number",), ("no", ".")):
        after = at + len(before)
        if tuple(word.base for word in said[at:after]) == before and after < len(said):
            digits = said[after].base
            if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER and (place := int(digits)):
                return place, after + 1
    return 0, at


def _indefinite(said: Sequence[_Word], at: int, nouns: Mapping[str, str]) -> tuple[Phrase | None, int]:
    """Something new, or any: its span is kept, so that no word of it is taken for a name."""
    if said[at].base == "one" and not (at and said[at - 1].base in _INDEFINITE):
        return None, at + 1  # "one of the pages", "that one": the other words of it decide
    walk = _Walk(said, at, nouns)
    if not walk.head and not walk.stranger and said[at].base != "another":
        return None, at + 1
    after = walk.after
    if after < len(said) and said[after].base in _CALLED:
        while after < len(said) and said[after].base not in {".", ";", "!", "?", "then"}:
            after += 1
    return Phrase(span=_span(said, at, after), nouns=_types(walk.head), noun=walk.head, new=True), after


def _pronoun(text: str, said: Sequence[_Word], at: int, *, revives: bool) -> Phrase | None:
    word = said[at].base
    if _is_idle(text, said, at):
        return None
    before = said[at - 1] if at else None
    behind = said[at + 1].base if at + 1 < len(said) else ""
    if word == "that" and said[at].text.lower() == "that":
        if behind in _SUBJECT:
            return None  # "I think that the …", "the one that you …"
        if behind in _FINITE and before is not None and before.is_word and before.base not in _BEFORE_PRONOUN:
            return None  # "a house that has …"
        if behind in _FINITE and before is not None and before.base in {"have", "has", "had"}:
            return None  # "do you have that is …"
    many = word in _THEM
    loose = word in {"they", "their", "theirs"}
    return Phrase(span=_span(said, at, at + 1), many=many, loose=loose, pointing=True, deleted=revives)


def _is_idle(text: str, said: Sequence[_Word], at: int) -> bool:
    word = said[at]
    if word.base not in {"it", "that", "this"}:
        return False
    if _IDLE.match(text, word.start) or _PRAISE.fullmatch(text):
        return True
    behind = said[at + 1].base if at + 1 < len(said) else "."
    if behind in _DO_NEXT and _DO.search(text, max(0, word.start - 20), word.end):
        return True
    return behind in _IDLE_NEXT and _IDLE_BEFORE.search(text, max(0, word.start - 20), word.end) is not None


class _Walk:
    """From the word that begins a reference to the noun that ends it."""

    LONGEST = 12

    def __init__(self, said: Sequence[_Word], at: int, nouns: Mapping[str, str]) -> None:
        self.said = said
        self.begin = said[at].base
        self.nouns = nouns
        self.head = ""
        """The noun as a type; empty for "one" and for none."""
        self.headed = False
        self.stranger = ""
        """A noun that is no known type."""
        self.words: list[str] = []
        self.pick: Pick = "recent"
        self.place = 0
        self.count = 0
        self.many = self.begin in _SEVERAL or self.begin in {"all", "both", "each", "every"}
        self.deleted = self.loose = self.narrowed = self.numbered = False
        self.at = self.start = at
        self.after = at + 1
        self.pointing = self.begin in _POINTING
        if self.begin == "both":
            self.count = 2
        self._go(at + 1)
        if self.headed:
            self._look_behind()

    @property
    def refers(self) -> bool:
        if self.headed:
            return not (self.begin in _POSSESSIVE and not self.head)
        if self.begin in _POSSESSIVE | {"my", "your", "our", "each", "every"}:
            return False
        if self.begin == "both":
            return not self.words
        if self.begin == "all":
            return self.count > 0
        last = self.said[self.after - 1].base
        if self.words or (self.place and (last[:1].isdigit() or last in {"top", "bottom"})):
            return False  # "the second shelf" is no thing of ours, "the 7th" is a day, "the top" a place
        return self.pick != "recent" or (self.begin in _SEVERAL and self.count > 0)

    def phrase(self, *, revives: bool) -> Phrase:
        many = self.many or self.count > 1
        return Phrase(
            span=_span(self.said, self.start, self.after),
            nouns=_types(self.head),
            noun=self.head,
            words=tuple(word for word in self.words if word not in SYNONYMS.get(self.head, ())) if self.headed else (),
            pick=self.pick,
            place=self.place,
            numbered=self.numbered,
            many=many,
            count=self.count,
            whole=self.begin in {"both", "all"} and self.head != "",
            loose=self.loose,
            narrowed=self.narrowed,
            whose=self.begin if self.begin in _POSSESSIVE else "",
            pointing=self.pointing,
            deleted=self.deleted or revives,
        )

    def _go(self, at: int) -> None:
        for word in self._ahead(at):
            base = word.base
            if self._is_head():
                return
            if base in {"of", "the", "these", "those", "them", "my", "your", "our"} and self._opens_a_set():
                if base == "them":
                    self.headed, self.many, self.after = True, True, self.at + 1
                    return
                continue
            if base in _ORDINALS and not self.words:
                self.pick, self.place = "place", _ORDINALS[base]
            elif base in _OTHER:
                self.pick = "other"
                self.many = self.many or base == "others"
            elif base in _PREVIOUS:
                self.pick = "previous"
            elif base in _BY_AGE and not self.words:
                self.pick = _BY_AGE[base]
            elif base in _DELETED:
                self.deleted = True
            elif _number(base) > 1 and not self.words:
                self.count = _number(base)
            elif base in _PALE:
                continue
            elif base in _JOINING:
                if not self.words or not self._goes_on():
                    return
                continue
            elif not word.is_word or (base in _ENDING and not self._is_part_of_a_name(word)):
                return
            elif len(self.words) < 6:
                self.words.append(base)
                self.stranger = base
                if self.pick == "recent" and not self.count:
                    self.after = self.at + 1
                continue
            else:
                return
            self.after = self.at + 1

    def _ahead(self, at: int) -> Iterator[_Word]:
        for place in range(at, min(len(self.said), at + self.LONGEST)):
            self.at = place
            yield self.said[place]

    def _is_head(self) -> bool:
        """Is the noun here? In a row of nouns it is the last: "the page section" is a section."""
        last = self.at
        width = self._noun_at(last)
        if not width:
            return False
        while wider := self._noun_at(last + width):
            if self.said[last + width].base in {"one", "ones"}:
                break
            self.words += [word.base for word in self.said[last : last + width]]
            last, width = last + width, wider
        noun = " ".join(word.base for word in self.said[last : last + width])
        one = self.nouns.get(noun, singular(noun))
        if one == noun and singular(noun) != noun:
            self.loose = True  # a type that is a plural itself: trousers, shoes
        elif one != noun or (noun == one and is_plural(noun) and self.begin in {"all", "both", *_SEVERAL}):
            self.many = True
        self.head = "" if one in _ANY and one not in self.nouns else one
        if self.begin in {"this", "that"} or (self.place and not self.count):
            self.many = self.many and one != noun
        self.headed, self.after = True, last + width
        return True

    def _noun_at(self, at: int) -> int:
        """How many words the noun at this place has; 0 if there is none."""
        for width in (2, 1):
            said = self.said[at : at + width]
            if len(said) == width and all(word.is_word for word in said):
                noun = " ".join(word.base for word in said)
                if noun in self.nouns or (width == 1 and singular(noun) in _ANY):
                    return width
        return 0

    def _opens_a_set(self) -> bool:
        """Are we in "both of the …", "all three of them", "the first two of these"?"""
        before = self.said[self.at - 1].base
        if self.said[self.at].base == "of":
            return bool(self.count or self.place or before in {"all", "each"}) and not self.words
        return before in {"of", "all", "both", "each"} and not self.words

    def _goes_on(self) -> bool:
        """Does a joining word lead to more of the description, and that to a noun?"""
        for word in self.said[self.at + 1 : self.at + 8]:
            if word.base in self.nouns or singular(word.base) in _ANY:
                return True
            if word.base in _ENDING or not (word.is_word or word.base in _JOINING):
                return False
        return False

    def _is_part_of_a_name(self, word: _Word) -> bool:
        """The "About" of "the About page" is no preposition, nor is what follows an article."""
        first = self.at == self.start + 1 and self.begin in {"the", "my", "your", "our"}
        return first or (word.text[:1].isupper() and word.base != "i")

    def _look_behind(self) -> None:
        """What follows the noun: "before that", "from earlier", "I deleted", "I opened first", "3"."""
        behind = [word.base for word in self.said[self.after : self.after + 6]]
        place, after = _numbered(self.said, self.after)
        if place and self.head and self.pick == "recent" and not self.many:
            self.pick, self.place, self.numbered, self.after = "place", place, True, after
        elif age := self._age(behind):
            self.pick, self.place = age, 0
        elif behind[:1] == ["before"]:
            self.pick = "previous"
            self.after += 2 if behind[1:2] and behind[1] in {"that", "it", "this"} else 1
        elif _DELETED.intersection(behind[:5]) and {"i", "we", "you", "was", "were", "that", "just"}.intersection(
            behind[:3]
        ):
            self.deleted = True
        elif behind[:1] and behind[0] in {"you", "we", "i"} and _SPOKEN_OF.intersection(behind[1:3]):
            self.pointing = True
        elif behind[:1] and behind[0] in _NARROWING and not self.head and not self.words:
            self.narrowed = True

    def _age(self, behind: Sequence[str]) -> Pick | None:
        """ "the first page I opened", "the page that I made last": counted by when it was, in no list."""
        said = [word for word in behind if word not in {"that", "which", "just", "ever"}][:3]
        if self.many or self.count or said[:1] not in (["i"], ["we"], ["you"]) or not _DONE.intersection(said[1:2]):
            return None
        place = self.place or (_ORDINALS.get(said[2], 0) if len(said) > 2 else 0)
        return "oldest" if place == 1 else "newest" if place == -1 else None


def _number(base: str) -> int:
    return int(base) if base.isascii() and base.isdigit() and len(base) <= 2 else _NUMBERS.get(base, 0)


def _types(head: str) -> tuple[str, ...]:
    return (head,) if head else ()


def _span(said: Sequence[_Word], at: int, after: int) -> tuple[int, int]:
    return said[at].start, said[after - 1].end
