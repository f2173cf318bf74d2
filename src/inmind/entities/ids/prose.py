"""Ids that stand in running text: what a person writes, what a tool answers in words."""

from __future__ import annotations

import re
from typing import NamedTuple

from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.ids.arguments import TYPES, Found
from inmind.entities.ids.keys import NEVER, noun_of
from inmind.entities.ids.shapes import LONGEST, kind_of
from inmind.entities.nouns import COMMON_TYPES, UNTYPED

_LONG_NUMBER = 3
"""Digits of what is called a number: "order number 7" may be the seventh."""
MOST_FOUND = 64
"""Ids that are taken from one text."""
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
_CUES = frozenset("id number no code reference ref".split())
_NO_TYPE = frozenset(
    "with the its an a whose my your our their his her this that has have and use by of after before for from in on at "
    "to is was or as".split()
)
_NO_IDS = NEVER | frozenset(
    "card cvv cvc security verification house room page line status error exit http version build".split()
)
_NUMBERED = re.compile(r"#\d{1,9}")
_SECRETS = frozenset("password passcode passphrase secret token pin".split())
_AND_IS = frozenset({"is", "was", "to"})
_WORD = re.compile(r"[A-Za-z]+")


class _Before(NamedTuple):
    """What the words right before an id say of it."""

    type: str = ""
    sure: bool = False
    """They speak of an id, or of a number or code of something."""
    by_id: bool = False
    secret: bool = False


def ids_in_text(text: str, *, rules: EntityRules = DEFAULT_RULES) -> list[Found]:
    """Ids that stand in running text, each with the type that the words before it say."""
    found: dict[str, Found] = {}
    text = text[:MOST_TEXT]
    if not _TELLING.search(text):
        return []
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".:/@+~#-")
        if not 2 <= len(token) <= LONGEST or token in found:
            continue
        kind = kind_of(token)
        said = _said_before(text, match.start())
        if said.secret:
            continue
        if said.sure:
            sure = said.by_id or (said.type and (len(token) >= _LONG_NUMBER or not token.isdigit()))
            if said.type not in _NO_IDS and (kind or sure):
                found[token] = Found("", "", rules.type_for(said.type or UNTYPED), token, kind or "id")
        elif kind is not None:
            type = TYPES.get(kind) or (said.type if said.type in COMMON_TYPES else UNTYPED)
            found[token] = Found("", "", rules.type_for(type), token, kind)
        elif said.type in COMMON_TYPES and (_is_capitals(token) or _NUMBERED.fullmatch(token)):
            found[token] = Found("", "", rules.type_for(said.type), token)
        if len(found) >= MOST_FOUND:
            break
    return list(found.values())


def _is_capitals(token: str) -> bool:
    return 5 <= len(token) <= 12 and token.isupper() and token.isalpha()


def _said_before(text: str, place: int) -> _Before:
    """ "order #W2378156", "user ID: mei_8020", "its number is 4711", "the token 9f3a"."""
    if text[max(0, place - 2) : place] == "  ":  # the next column of a table
        return _Before()
    near = text[max(0, place - 40) : place].rstrip(" \t\"'(#:=")
    said = [word.lower() for word in _WORD.findall(near[near.rfind("\n") + 1 :])[-4:]]
    if not said or (not near[-1:].isalpha() and near[-1:] != "."):
        return _Before()
    if said[-1] in _AND_IS and len(said) > 1:
        said.pop()
    if said[-1] in _SECRETS or said[-2:] == ["api", "key"]:
        return _Before(secret=True)
    if said[-1] not in _CUES:
        return _Before(said[-1])
    noun = said[-2] if len(said) > 1 else ""
    noun = said[-3] if noun == "s" and len(said) > 2 else noun
    return _Before("" if noun in _NO_TYPE else noun_of((noun,)), sure=True, by_id=said[-1] == "id")
