"""The tables of one language: a field for each kind of words.

A list of words is a string with the words separated by `|`. A word may be a pattern; it is matched in lower case. In a
language with spaces the words match as whole words, and `'` also matches the curly apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal

from inmind.core.frozen import frozen

TimePick = Literal["previous", "oldest", "newest"]

Remark = Literal["thanks", "praise", "anger", "urgency"]
"""A kind of remark that users address to the agent."""


@frozen(kw_only=True)
class AffectPatterns:
    """Patterns of remarks in lower-case text with single spaces.

    A remark begins a clause.
    """

    spaced: bool = True
    """As in Language."""
    cues: Mapping[Remark, frozenset[str]]
    """Words without which no pattern of a kind matches.

    Most messages have none, and looking them up is fast."""
    lead_in: str
    """Words that may precede a remark."""
    remarks: Mapping[Remark, str]
    clause_end: str
    condition: str
    """Begins a conditional clause. The next clause does not count either."""
    reported: str
    """Anywhere in a clause: the following words are reported speech."""
    denial: str
    """Anywhere in a clause: it means the opposite."""
    retraction: str
    """Begins a clause that retracts the previous one."""
    refusal: str
    """A clause that is a refusal."""
    thanks_formula: str
    """Thanks that are a formula if `request` matches a previous clause."""
    request: str


@frozen(kw_only=True)
class ResultWords:
    """Words of tool results, matched without case."""

    failure: str
    """Begins the result of a call that failed."""
    completed: str = ""
    """Begins a sentence about a completed action: words of a refusal have another meaning in it."""
    refusal: str
    """In a single sentence that refuses a call."""
    not_deleted: str
    """Denies a deletion, or does not confirm it."""
    no_matches: str
    """Begins the result of a search without matches."""


@frozen(kw_only=True)
class Language:
    """The words of one language."""

    code: str
    """ISO 639-1."""
    spaced: bool = True
    """Words are separated by spaces."""
    common_words: frozenset[str] = frozenset()
    """Frequent function words, by which a text of this language is recognised."""

    negations: str = ""
    hedges: str = ""
    """The speaker is not sure: maybe, I think."""
    hypotheticals: str = ""
    """A case that is not said to be true: if, suppose, for example."""
    reports: str = ""
    """The words of another person: said, according to."""
    temporary: str = ""
    """True only for a short time: today, right now."""
    question_starts: str = ""
    """Words with which a question begins."""
    question_ends: str = ""
    """Particles with which a question ends, before its punctuation."""

    prepositions: str = ""
    """Before what a verb does not act on: "from the page"."""
    target_prepositions: str = ""
    """Before what receives something new: "add a section to it"."""
    object_markers: str = ""
    """Before what a verb acts on, in a language that marks it: 把."""
    exclusions: str = ""
    """Before what is not meant: not, except."""
    all_but: str = ""
    """Before the only exception: "every page but"."""
    verbs_after: str = ""
    """After the subject of a sentence."""
    conjunctions: str = ""
    """Between two things of one list: and, or."""
    clause_breaks: str = ""
    naming_verbs: str = ""
    """Between a noun and its name: called."""
    new_name: str = ""
    """Before a name that nothing has yet: "rename it to"."""
    which_question: str = ""
    """Asks which of several things is meant; {noun}, {first} and {last} are filled in."""
    which_noun: str = ""
    """The noun of that question if none is known."""
    confirm_question: str = ""
    """Asks if {last} is meant."""
    listed_name: str = "{}"
    list_separator: str = ", "

    affect: AffectPatterns | None = None
    dates: DateWords | None = None

    results: ResultWords | None = None
    references: ReferenceWords | ReferenceForms | None = None
    """Words of references, or their patterns if the language has no spaces."""

    @property
    def nouns(self) -> Mapping[str, tuple[str, ...]]:
        """Entity types by noun."""
        return self.references.nouns if self.references else {}


MONTHS = "january february march april may june july august september october november december".split()


def words(text: str) -> frozenset[str]:
    """Return a set of words."""
    return frozenset(text.split())


def time_picks(*, previous: str, oldest: str, newest: str) -> dict[str, TimePick]:
    """Map words to what they pick."""
    picks: dict[TimePick, str] = {"previous": previous, "oldest": oldest, "newest": newest}
    return {word: pick for pick, line in picks.items() for word in line.split()}


def numbered(*lines: str, start: int = 1) -> dict[str, int]:
    """Map each word to the number of its line."""
    return {word: number for number, line in enumerate(lines, start) for word in line.split()}


def group(name: str, words: Iterable[str]) -> str:
    """Return the pattern of a named group that matches one of these words."""
    return f"(?P<{name}>{'|'.join(sorted(words, key=len, reverse=True))})"


@frozen(kw_only=True)
class DateWords:
    """Words of dates, and the forms in which a language writes dates.

    A form is a pattern for lower-case text. `search/dates.py` says what its named groups mean.
    """

    numbers: Mapping[str, Mapping[str, int]]
    """Words with their numbers, by the named group that they are in."""
    units: Mapping[str, str]
    """Spellings of `minute`, `hour`, `day`, `week`, `month` and `year`."""
    ranges: tuple[str, ...]
    days: tuple[str, ...]
    """Days, weeks, and times ago, most exact first."""
    longer: tuple[str, ...]
    """Months, quarters, seasons and years, most exact first."""
    range_ends: tuple[str, ...] = ()
    """Dates only in a range: "may" is usually another word."""


YEAR = r"(?P<year>(?:19|20)\d\d)"
MONTH, DAY = r"(?P<month>\d\d?)", r"(?P<day>\d\d?)"


@frozen(kw_only=True)
class ReferenceWords:
    """Words from which a reference to an entity is read, in a language with spaces."""

    nouns: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Entity types by noun; English nouns are the types themselves."""
    plurals: Mapping[str, str] = field(default_factory=dict[str, str])
    """Singular of the nouns that have an own plural."""
    generic_nouns: frozenset[str]
    """Nouns that can replace a noun of any type."""
    number_nouns: frozenset[str] = frozenset()
    """Nouns that only number: "option 2"."""
    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    """Counted from 1, or from the end if negative."""
    places: frozenset[str] = frozenset()
    """Ordinals that are also nouns: "the top"."""
    other: frozenset[str]
    picks: Mapping[str, TimePick]
    deleted: frozenset[str]
    restore: str
    """Pattern of a request to restore something deleted."""
    undo: str

    articles: frozenset[str]
    """Definite articles, and possessives of the speakers."""
    demonstratives: frozenset[str]
    universal: frozenset[str]
    """Words for all of them; `pair` for both."""
    pair: frozenset[str]
    possessives: frozenset[str]
    indefinite: frozenset[str]
    pronouns: frozenset[str]
    plural_pronouns: frozenset[str]
    maybe_singular: frozenset[str] = frozenset()
    """Plural pronouns that are also used for one thing."""
    partitive: frozenset[str] = frozenset()
    """"of", in "both of them"."""

    skipped: frozenset[str] = frozenset()
    """Words that do not identify an entity."""
    joining: frozenset[str]
    stop: frozenset[str]
    """Words that end the scan for a noun. After a demonstrative they make it a pronoun."""
    relative: frozenset[str] = frozenset()
    """Conjunctions that are also pronouns: "that"."""
    clause_subjects: frozenset[str] = frozenset()
    finite_verbs: frozenset[str] = frozenset()
    qualifying: frozenset[str] = frozenset()
    """Words after "the one" that select by something unknown: "on the left"."""
    speakers: frozenset[str]
    relative_words: frozenset[str] = frozenset()
    """Words between a noun and its relative clause."""
    before: frozenset[str] = frozenset()
    """"before", in "the one before that"."""
    mention_verbs: frozenset[str] = frozenset()
    use_verbs: frozenset[str] = frozenset()
    expletive: str = "(?!)"
    """Pattern of a pronoun that refers to no entity, with the words after it."""
    expletive_after: str = "(?!)"
    """Pattern that ends with such a pronoun."""
    praise: str = "(?!)"
    """Pattern of a message that is only praise."""


@frozen(kw_only=True)
class ReferenceForms:
    """Patterns from which a reference to an entity is read, in a language without spaces."""

    nouns: Mapping[str, tuple[str, ...]]
    """Entity types by noun."""
    forms: Mapping[str, str]
    """Patterns by kind, longer ones first. N is a noun, B an unambiguous noun, M a measure word, H any character, # a
    number and % a number above one. A reference ends with its noun, unless a number follows it."""
    measure: str
    numbers: Mapping[str, int]
    creates: str
    """Verb before something new."""
    restore: str
    undo: str
    all_after: tuple[str, ...]
    not_descriptive: frozenset[str]
    """Words that do not describe the noun after them."""
    predicates: frozenset[str]
    """Other words after a demonstrative that are not nouns: adjectives and verbs."""
    particles: str
    """Predicates that end a noun also after its first character."""
    verb_suffixes: str
    demonstratives: str
    plural_persons: frozenset[str]
    name_verbs: str
    """Verbs before nouns that name something: "open settings"."""
    attributive: str
    """Particle between a description and its noun."""
    simplified: Mapping[int, int]
    """Other spellings of characters."""
