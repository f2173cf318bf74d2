"""Ids that stand in running text: what a person writes, what a tool answers in words."""

from __future__ import annotations

import re

from inmind.entities.ids.arguments import TYPES, Found
from inmind.entities.ids.keys import NEVER, noun_of
from inmind.entities.ids.shapes import kind_of
from inmind.entities.nouns import UNTYPED, words
from inmind.entities.rules import DEFAULT_RULES, EntityRules

MOST_TEXT = 10_000
"""Characters of a text that are searched for ids: the beginning says what it is about."""

# A word that may be an id, an email or a file, by what it must have; a code in capitals; a word in quotes. The look
# ahead is short, so that no text can make it look at everything from everywhere.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])[#@]?"
    r"(?:(?=[\w.:/+~#-]{0,60}(?:\d|@|\.[A-Za-z]))[A-Za-z0-9][\w.:/@+~#-]*|[A-Z]{5,12}(?!\w))"
    r"|(?<=[\"'])[A-Za-z][\w-]{2,40}(?=[\"'])"
)
# Without any of these there is no such word, and most prose has none.
_TELLING = re.compile(r"[0-9@]|\.[A-Za-z]|[A-Z]{5}|[\"'][A-Za-z]")
_CUE = re.compile(
    r"(?:([A-Za-z][A-Za-z_]{1,30})(?:'s)?[ _])?\b(id|ID|Id|number|no\.?|code|reference|ref)(?: is| was|:|=)?"
    r"\s*[\"'(#]*$"
)
_NO_TYPE = frozenset("with the its an a whose my your our their his her this that has have and use by of".split())
_NO_IDS = NEVER | frozenset("card cvv cvc security verification house room page line".split())
_SECRET = re.compile(
    r"\b(?:password|passcode|passphrase|secret|token|api key|pin)\b\W{0,3}(?:is|was|to)?\W{0,4}$", re.IGNORECASE
)
_NOUN = re.compile(r"([A-Za-z][a-z]{1,30})\s*[:\"'(]*$")
_TYPES = frozenset(
    "account alarm album appointment article asset bill board booking branch bug build campaign card cart case "
    "category channel chapter chat claim client collection comment commit company contact contract conversation "
    "course customer dashboard database dataset deal delivery deployment device document draft email employee "
    "entry event expense feature file flight folder form game group hotel image incident inventory invoice issue "
    "item job key label lead lesson list loan location meeting member message milestone module movie node note "
    "notebook offer order organization package page parcel passenger patient payment person photo playlist policy "
    "post product profile project property purchase query quote receipt recipe record refund release reminder "
    "report repository request reservation resource restaurant return review role room route rule run sale "
    "schedule section server service session shipment shop site song space sprint stock store story student "
    "subscription supplier survey table tag task team template tenant test thread ticket tournament train "
    "transaction trip tweet user variant vehicle vendor version video visit volume voucher website widget "
    "workflow workspace".split()
)


def ids_in_text(text: str, *, rules: EntityRules = DEFAULT_RULES) -> list[Found]:
    """Ids that stand in running text, each with the type that the words before it say."""
    found: dict[str, Found] = {}
    text = text[:MOST_TEXT]
    if not _TELLING.search(text):
        return []
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".:/@+~#-")
        if len(token) < 2 or token in found:
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        if _SECRET.search(before):
            continue
        kind = kind_of(token)
        cue = _CUE.search(before)
        if cue is not None:
            said = (cue[1] or "").lower()
            type = "" if said in _NO_TYPE else noun_of(words(said))
            if type not in _NO_IDS and (type or kind or cue[2].lower() == "id"):
                found[token] = Found("", "", rules.type_named(type or UNTYPED), token, kind or "id")
        elif kind is not None:
            type = TYPES.get(kind) or _type_before(before) or UNTYPED
            found[token] = Found("", "", rules.type_named(type), token, kind)
        elif _is_capitals(token) and (type := _type_before(before)):
            found[token] = Found("", "", rules.type_named(type), token)
    return list(found.values())


def _is_capitals(token: str) -> bool:
    return 5 <= len(token) <= 12 and token.isupper() and token.isalpha()


def _type_before(before: str) -> str:
    """What the word before an id says that it is: "order #W2378156"."""
    noun = _NOUN.search(before)
    type = noun[1].lower() if noun else ""
    return type if type in _TYPES else ""
