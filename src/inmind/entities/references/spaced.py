"""Finds references in a language with spaces, from its tables.

It scans for words that begin a reference ("it", "the", "both") and reads up to its noun. The caller passes the
known types. Another noun after "that" is kept as the type, because "that invoice" is not a pronoun even if no
invoice is known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from inmind.core.language.languages import any_word
from inmind.core.language.spans import Token, compile_cached, tokens
from inmind.core.language.tables import ReferenceWords
from inmind.entities.nouns import SYNONYMS, is_plural, plural, singular
from inmind.entities.references.result import Phrase, Pick

_WORD_OR_SIGN = r"[^\W_]+(?:_[^\W_]+)*(?:['’][^\W\d_]{1,2}(?![^\W_]))?|[^\w\s]"
_CLITIC = r"['’](?:s|ll|d|re|ve|m)?$"
# A longer number is found as an id.
_NUMBER_AFTER = r"(?i)\s*(?:#|number |no\. ?|nr\. ?)?\s?([0-9]{1,3})(?!\w)"
_MAX_NOUN_PHRASE_WORDS = 12
_MAX_DESCRIPTIVE_WORDS = 6
_SENTENCE_END = frozenset({".", ";", "!", "?", "then"})


@dataclass(kw_only=True)
class _NounPhrase(Phrase):
    """A reference while it is read."""

    start: int
    end: int
    first: str
    """Its first word."""
    has_head: bool = False
    """It has a noun, which may be "one"; `noun` is that noun as a type."""
    unknown_noun: str = ""
    """A noun that is not a known type."""


class PhraseFinder:
    """Finds the references of a text. `known_types` are nouns in singular."""

    def __init__(self, text: str, known_types: Collection[str], table: ReferenceWords) -> None:
        self.text, self.table = text, table
        self.words = [replace(word, base=_base(word)) for word in tokens(text, _WORD_OR_SIGN)]
        own_nouns = {noun: noun for noun in table.nouns} | dict(table.plurals)
        self.nouns = {noun: noun for noun in known_types} | {plural(noun): noun for noun in known_types} | own_nouns
        self.expletive_ends = {match.end() for match in compile_cached(table.expletive_after).finditer(text)}

    def find(self) -> list[Phrase]:
        """Return the references in order."""
        phrases: list[Phrase] = []
        index = 0
        while index < len(self.words):
            phrase, next_index = self._phrase_at(index)
            if phrase is not None:
                phrases.append(phrase)
            index = max(next_index, index + 1)
        return phrases

    def _base(self, index: int) -> str:
        return self.words[index].base if 0 <= index < len(self.words) else ""

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return self.words[start].start, self.words[end - 1].end

    def _types(self, noun: str) -> tuple[str, ...]:
        return self.table.nouns.get(noun, (noun,) if noun else ())

    def _phrase_at(self, index: int) -> tuple[Phrase | None, int]:
        """Return the reference that begins at this word, if any, and the index after it."""
        table, word = self.table, self._base(index)
        if word in table.indefinite:
            return self._indefinite_phrase(index)
        if any(word in kind for kind in (table.articles, table.demonstratives, table.universal, table.possessives)):
            draft = self._read_noun_phrase(index)
            if self._is_reference(draft):
                return self._completed(draft), draft.end
            if draft.unknown_noun and draft.demonstrative and not self._is_expletive(index):
                noun = singular(draft.unknown_noun)
                phrase = Phrase(
                    span=self._span(index, draft.end),
                    nouns=(noun,),
                    noun=noun,
                    plural=is_plural(draft.unknown_noun),
                    demonstrative=True,
                )
                return phrase, draft.end
        if word in table.pronouns:
            return self._pronoun_phrase(index), index + 1
        if word in table.number_nouns and (position := self._parse_number(index + 1)):
            return Phrase(span=self._span(index, index + 2), pick="place", position=position), index + 2
        noun = self.nouns.get(word, "")
        position, end = self._number_after(index + 1)
        if noun and position:
            span, types = self._span(index, end), self._types(noun)
            return Phrase(span=span, nouns=types, noun=noun, pick="place", position=position, numbered=True), end
        return None, index + 1

    def _indefinite_phrase(self, index: int) -> tuple[Phrase | None, int]:
        """Return an indefinite phrase. Its span is kept, so that no word of it is taken for a name."""
        draft = self._read_noun_phrase(index)
        if not draft.noun and not draft.unknown_noun:
            return None, index + 1
        end = draft.end
        if any_word("naming_verbs").fullmatch(self._base(end)):
            while end < len(self.words) and self._base(end) not in _SENTENCE_END:
                end += 1
        nouns = self._types(draft.noun)
        return Phrase(span=self._span(index, end), nouns=nouns, noun=draft.noun, indefinite=True), end

    def _pronoun_phrase(self, index: int) -> Phrase | None:
        table, word = self.table, self._base(index)
        if self._is_expletive(index):
            return None
        if word in table.relative and self.words[index].text.lower() == word:
            before, following = self._base(index - 1), self._base(index + 1)
            if following in table.clause_subjects or (following in table.finite_verbs and before[:1].isalnum()):
                return None  # "I think that the …", "the one that you …", "a house that has …"
        return Phrase(
            span=self._span(index, index + 1),
            plural=word in table.plural_pronouns,
            maybe_singular=word in table.maybe_singular,
            demonstrative=True,
        )

    def _is_expletive(self, index: int) -> bool:
        """Return True if a pronoun refers to no entity.

        Praise refers to nothing if it is the whole message. Before a request it names the subject of the request.
        """
        word = self.words[index]
        return (
            word.end in self.expletive_ends
            or compile_cached(self.table.expletive).match(self.text, word.start) is not None
            or (word.base in self.table.demonstratives and self._is_praise())
        )

    def _is_praise(self) -> bool:
        return compile_cached(self.table.praise).fullmatch(self.text) is not None

    def _parse_number(self, index: int) -> int:
        base = self._base(index)
        return int(base) if base.isascii() and base.isdigit() and len(base) <= 2 else self.table.numbers.get(base, 0)

    def _number_after(self, index: int) -> tuple[int, int]:
        """Return the number after a noun ("image 3", "image #3") or 0, and the index after it."""
        match = compile_cached(_NUMBER_AFTER).match(self.text, self.words[index - 1].end)
        if match is None:
            return 0, index
        end = next((at for at in range(index, len(self.words)) if self.words[at].start >= match.end()), len(self.words))
        return int(match[1]), end

    # -- noun phrases --------------------------------------------------------------------------------------------

    def _read_noun_phrase(self, start: int) -> _NounPhrase:
        """Read from the first word of a reference to its noun, and the words after it."""
        table, first = self.table, self._base(start)
        draft = _NounPhrase(
            span=(0, 0),
            start=start,
            end=start + 1,
            first=first,
            plural=first in table.universal,
            count=2 if first in table.pair else 0,
            demonstrative=first in table.demonstratives,
        )
        for at in range(start + 1, min(len(self.words), start + 1 + _MAX_NOUN_PHRASE_WORDS)):
            if self._read_head(draft, at):
                self._read_following(draft)
                break
            if not self._read_modifier(draft, at):
                break
        return draft

    def _read_modifier(self, draft: _NounPhrase, at: int) -> bool:
        """Read a word before the noun. Return False if the phrase ends before or with it."""
        table, base = self.table, self._base(at)
        if self._is_in_set_phrase(draft, at):
            if base in table.plural_pronouns and base not in table.demonstratives:
                draft.has_head, draft.plural, draft.end = True, True, at + 1
                return False
            return True
        if base in table.ordinals and not draft.words:
            draft.pick, draft.position = "place", table.ordinals[base]
        elif base in table.other:
            draft.pick = "other"
            draft.plural = draft.plural or is_plural(base)
        elif base in table.picks and not draft.words:
            draft.pick = table.picks[base]
        elif base in table.deleted:
            draft.deleted = True
        elif (number := self._parse_number(at)) > 1 and not draft.words:
            draft.count = number
        elif base in table.skipped:
            return True
        elif base in table.joining:
            return bool(draft.words) and self._leads_to_noun(at)
        elif not base[:1].isalnum() or (base in table.stop and not self._is_part_of_a_name(draft, at)):
            return False
        else:
            return self._read_description(draft, at)
        draft.end = at + 1
        return True

    def _read_description(self, draft: _NounPhrase, at: int) -> bool:
        if len(draft.words) >= _MAX_DESCRIPTIVE_WORDS:
            return False
        draft.words += (self._base(at),)
        draft.unknown_noun = self._base(at)
        if draft.pick == "recent" and not draft.count:
            draft.end = at + 1
        return True

    def _read_head(self, draft: _NounPhrase, at: int) -> bool:
        """Read the noun at this position. Of several nouns the last counts: "the page section"."""
        width = self._noun_width(at)
        if not width:
            return False
        while next_width := self._noun_width(at + width, generic=False):
            draft.words += tuple(word.base for word in self.words[at : at + width])
            at, width = at + width, next_width
        noun = " ".join(word.base for word in self.words[at : at + width])
        one = self.nouns.get(noun, singular(noun))
        if one == noun and singular(noun) != noun:
            draft.maybe_singular = True  # a type that is a plural word: trousers, shoes
        elif one != noun or (is_plural(noun) and draft.plural):
            draft.plural = True
        draft.noun = "" if one in self.table.generic_nouns and one not in self.nouns else one
        if draft.demonstrative or (draft.position and not draft.count):
            draft.plural = draft.plural and one != noun
        draft.has_head, draft.end = True, at + width
        return True

    def _noun_width(self, index: int, *, generic: bool = True) -> int:
        """Return the number of words of the noun at this position, or 0."""
        one, two = self._base(index), f"{self._base(index)} {self._base(index + 1)}"
        if two in self.nouns:
            return 2
        return int(one in self.nouns or (generic and singular(one) in self.table.generic_nouns))

    def _is_in_set_phrase(self, draft: _NounPhrase, at: int) -> bool:
        """Return True inside "both of the …", "all three of them", "the first two of these"."""
        table, base, before = self.table, self._base(at), self._base(at - 1)
        if draft.words:
            return False
        if base in table.partitive:
            return bool(draft.count or draft.position or before in table.universal)
        return base in table.articles | table.plural_pronouns and (
            before in table.partitive or before in table.universal
        )

    def _leads_to_noun(self, at: int) -> bool:
        """Return True if a joining word is followed by more description and a noun."""
        for word in self.words[at + 1 : at + 8]:
            if word.base in self.nouns or singular(word.base) in self.table.generic_nouns:
                return True
            if word.base in self.table.stop or not (word.base[:1].isalnum() or word.base in self.table.joining):
                return False
        return False

    def _is_part_of_a_name(self, draft: _NounPhrase, at: int) -> bool:
        """Return True for the "About" of "the About page", which is not a preposition."""
        first = at == draft.start + 1 and draft.first in self.table.articles
        return first or (self.words[at].text[:1].isupper() and self._base(at) != "i")

    def _read_following(self, draft: _NounPhrase) -> None:
        """Read the words after the noun: "before that", "I deleted", "I opened first", "3"."""
        table = self.table
        following = [self._base(index) for index in range(draft.end, draft.end + 6)]
        position, end = self._number_after(draft.end)
        if position and draft.noun and draft.pick == "recent" and not draft.plural:
            draft.pick, draft.position, draft.numbered, draft.end = "place", position, True, end
        elif age := self._age_pick(draft, following):
            draft.pick, draft.position = age, 0
        elif following[0] in table.before:
            draft.pick = "previous"
            draft.end += 2 if following[1] in table.pronouns else 1
        elif table.deleted.intersection(following[:5]) and (table.speakers | table.relative_words).intersection(
            following[:3]
        ):
            draft.deleted = True
        elif following[0] in table.speakers and table.mention_verbs.intersection(following[1:3]):
            draft.demonstrative = True
        elif following[0] in table.qualifying and not draft.noun and not draft.words:
            draft.qualified = True

    def _age_pick(self, draft: _NounPhrase, following: Sequence[str]) -> Pick | None:
        """Read "the first page I opened", "the page that I made last": ordered by time."""
        words = [*(word for word in following if word not in self.table.relative_words), "", "", ""]
        uses = words[0] in self.table.speakers and words[1] in self.table.use_verbs
        if draft.plural or draft.count or not uses:
            return None
        position = draft.position or self.table.ordinals.get(words[2], 0)
        return "oldest" if position == 1 else "newest" if position == -1 else None

    def _is_reference(self, draft: _NounPhrase) -> bool:
        table, first = self.table, draft.first
        if draft.has_head:
            return first not in table.possessives or draft.noun != ""
        if first in table.possessives:
            return False
        if first in table.universal:
            return not draft.words if first in table.pair else draft.count > 0
        last = self._base(draft.end - 1)
        if draft.words or (draft.position and (last[:1].isdigit() or last in table.places)):
            return False  # "the second shelf" is no entity, "the 7th" is a day, "the top" is a place
        return draft.pick != "recent" or (draft.demonstrative and draft.count > 0)

    def _completed(self, draft: _NounPhrase) -> Phrase:
        table, synonyms = self.table, SYNONYMS.get(draft.noun, ())
        draft.span, draft.nouns = self._span(draft.start, draft.end), self._types(draft.noun)
        draft.words = tuple(word for word in draft.words if word not in synonyms) if draft.has_head else ()
        draft.plural = draft.plural or draft.count > 1
        draft.exhaustive = draft.first in table.universal and draft.noun != ""
        if draft.first in table.possessives:
            plural = draft.first in table.plural_pronouns
            draft.possessor = Phrase(span=draft.span, plural=plural, maybe_singular=plural, demonstrative=True)
        return draft


def _base(word: Token) -> str:
    return compile_cached(_CLITIC).sub("", word.text.lower())
