"""Word tables and patterns of English references."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inmind.entities.references.phrase import Pick

# Nouns that can replace a noun of any type.
GENERIC_NOUNS = frozenset(
    "one thing item option result match choice object selection place location spot venue record".split()
)

NUMBERS = {word: n for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}

ORDINALS = {
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

OTHER_WORDS = frozenset("other others remaining".split())

PREVIOUS_WORDS = frozenset("previous prior earlier preceding".split())

AGE_WORDS: Mapping[str, Pick] = {"oldest": "oldest", "earliest": "oldest", "newest": "newest", "latest": "newest"}

DELETED_WORDS = frozenset("deleted removed trashed erased".split())

RESTORE_VERBS = frozenset("restore undelete recover revive unarchive resurrect restoring recovering".split())

RESTORE_PHRASE = re.compile(
    r"\bbring(?:ing)?\b[^.;!?]{0,40}?\bback\b(?! to\b)|\b(?:get|want|have) (?:it|them|th\w+(?: \w+)?) back\b(?! to\b)",
    re.IGNORECASE,
)

UNDO_PHRASE = re.compile(r"\b(?:undo|undoing|revert|reverse)\b|\bput \w+(?: \w+)? back\b(?! to\b)", re.IGNORECASE)

DEMONSTRATIVES = frozenset("this that these those".split())

PLURAL_DEMONSTRATIVES = frozenset("these those".split())

DEFINITE_WORDS = frozenset("the my your our his her their its both all each every".split()) | DEMONSTRATIVES

POSSESSIVES = frozenset("its their his her".split())

INDEFINITE_WORDS = frozenset("a an another some any no one new different more".split())

SINGULAR_PRONOUNS = frozenset("it its itself".split())

PLURAL_PRONOUNS = frozenset("them they their theirs themselves these those".split())

# Words that do not identify an entity: they are skipped.
SKIPPED_WORDS = frozenset(
    "whole entire same current exact actual particular specific very new newly most recent recently just "
    "created updated old existing nice great good lovely beautiful perfect amazing own said mentioned above "
    "following original main so pretty really right".split()
)

JOINING_WORDS = frozenset(["and", ",", "&", "-", "or"])

# Words that end the scan for a noun. After "this" and "that" they make it a pronoun.
STOP_WORDS = frozenset(
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

CLAUSE_SUBJECTS = frozenset("i you he she we they it there the a an my your our his her their this these those".split())

FINITE_VERBS = frozenset(
    "is are was were has have had can could will would does do did fits matches contains costs includes works says "
    "looks serves starts plays offers allows comes goes accepts".split()
)

BEFORE_PRONOUN_WORDS = frozenset(
    "and or but so then is are was were will would can could should does do did has have may might to of in on at by "
    "for from with into onto about like than as if when while because please yes no ok okay what how".split()
)

QUALIFYING_WORDS = frozenset("on in at with from by near behind beside under above below between next hanging".split())

MENTION_VERBS = frozenset(
    "found mentioned said offered suggested showed listed recommended discussed created made".split()
)

USE_VERBS = frozenset("opened made created added edited visited viewed uploaded wrote built started saw".split())

NAMING_WORDS = frozenset("called named titled labeled labelled entitled".split())

# Here "it" and "that" refer to no entity. Each is matched at the pronoun or directly before it.
EXPLETIVE = re.compile(
    r"(?:that|this|it)(?:['’](?:s|ll|d)| is| was| will| would)?(?: be)? "
    r"(?:all|it|everything|enough|correct|right|true|raining|time|late|possible|important|necessary)\b"
    r"|(?:that|this|it) (?:ok|okay|alright|fine)\b"
    r"|it (?:seems|looks like|turns out|appears|takes|would be (?:nice|great|good|better|helpful))\b"
    r"|(?:that|this) (?:way|time|morning|afternoon|evening|week|month|year|weekend|day|date|info|information)\b",
    re.IGNORECASE,
)

EXPLETIVE_BEFORE = re.compile(
    r"\b(?:(?:got|get|forget|appreciate|do|did|doing|time is|hear) it|(?:do|did|doing|say|said|like|hear|such) that)$",
    re.IGNORECASE,
)

# Praise refers to nothing if it is the whole message. Before a request it names the subject of the request.
PRAISE = re.compile(
    r"\W*(?:(?:ok|okay|yes|wow|oh|ah|thanks|thank you|so|well)\W+)*(?:that|this)(?:['’]?s| is| was)"
    r"(?: (?:so|really|very|just|pretty|absolutely))? (?:great|good|fine|perfect|nice|awesome|cool|wonderful|amazing|"
    r"excellent|fantastic|interesting|lovely|ok|okay|alright)"
    r"(?:\W+(?:thanks|thank you|so much|very much|a lot|then))*\W*",
    re.IGNORECASE,
)

EXPLETIVE_END = frozenset("?.!,;")

DO_IT = re.compile(r"\b(?:do|did|doing|done) (?:it|that|this)$", re.IGNORECASE)

AFTER_DO_IT = frozenset("again now too please anyway then instead for with yourself later once first".split())
