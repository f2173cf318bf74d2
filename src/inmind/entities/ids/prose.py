"""Finds ids in running text: user messages and text results of tools."""

from __future__ import annotations

import re
from typing import NamedTuple

from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.ids.arguments import HANDLE_TYPES, FoundId
from inmind.entities.ids.keys import PRIVATE_WORDS, noun_from_words
from inmind.entities.ids.shapes import MAX_ID_CHARS, handle_kind
from inmind.entities.nouns import COMMON_TYPES, UNTYPED

_MIN_NUMBER_DIGITS = 3
"""Shorter numbers after "number" may be a position: "order number 7"."""
MAX_IDS = 64
"""Number of ids taken from one text."""
MAX_TEXT_CHARS = 10_000
"""Length of a text that is searched for ids."""

# A word that may be an id, an email or a file; a code in capitals; a quoted word. The lookahead is bounded, so that no
# text causes quadratic time.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_])[#@]?"
    r"(?:(?=[\w.:/+~#-]{0,60}(?:\d|@|\.[A-Za-z]))[A-Za-z0-9][\w.:/@+~#-]*|[A-Z]{5,12}(?!\w))"
    r"|(?<=[\"'])[A-Za-z][\w-]{2,40}(?=[\"'])"
)
# A text without any of these has no such word; most prose has none.
_MAY_HAVE_ID = re.compile(r"[0-9@]|\.[A-Za-z]|[A-Z]{5}|[\"'][A-Za-z]")
_ID_CUES = frozenset("id number no code reference ref".split())
_NOT_TYPE_WORDS = frozenset(
    "with the its an a whose my your our their his her this that has have and use by of after before for from in on at "
    "to is was or as".split()
)
_NOT_ID_TYPES = PRIVATE_WORDS | frozenset(
    "card cvv cvc security verification house room page line status error exit http version build".split()
)
_NUMBERED = re.compile(r"#\d{1,9}")
_SECRET_WORDS = frozenset("password passcode passphrase secret token pin".split())
_LINKING_WORDS = frozenset({"is", "was", "to"})
_WORD = re.compile(r"[A-Za-z]+")


class _PrecedingWords(NamedTuple):
    """Information about an id from the words directly before it."""

    type: str = ""
    announces_id: bool = False
    """They mention an id, or a number or code of something."""
    says_id: bool = False
    secret: bool = False


def find_ids_in_text(text: str, *, rules: EntityRules = DEFAULT_RULES) -> list[FoundId]:
    """Return the ids in running text, typed by the words before them."""
    ids: dict[str, FoundId] = {}
    text = text[:MAX_TEXT_CHARS]
    if not _MAY_HAVE_ID.search(text):
        return []
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".:/@+~#-")
        if not 2 <= len(token) <= MAX_ID_CHARS or token in ids:
            continue
        kind = handle_kind(token)
        preceding = _preceding_words(text, match.start())
        if preceding.secret:
            continue
        if preceding.announces_id:
            is_announced = preceding.says_id or (
                preceding.type and (len(token) >= _MIN_NUMBER_DIGITS or not token.isdigit())
            )
            if preceding.type not in _NOT_ID_TYPES and (kind or is_announced):
                ids[token] = FoundId("", "", rules.type_for(preceding.type or UNTYPED), token, kind or "id")
        elif kind is not None:
            type = HANDLE_TYPES.get(kind) or (preceding.type if preceding.type in COMMON_TYPES else UNTYPED)
            ids[token] = FoundId("", "", rules.type_for(type), token, kind)
        elif preceding.type in COMMON_TYPES and (_is_capital_code(token) or _NUMBERED.fullmatch(token)):
            ids[token] = FoundId("", "", rules.type_for(preceding.type), token)
        if len(ids) >= MAX_IDS:
            break
    return list(ids.values())


def _is_capital_code(token: str) -> bool:
    return 5 <= len(token) <= 12 and token.isupper() and token.isalpha()


def _preceding_words(text: str, start: int) -> _PrecedingWords:
    """Parse "order #W2378156", "user ID: mei_8020", "its number is 4711", "the token 9f3a"."""
    if text[max(0, start - 2) : start] == "  ":  # the next column of a table
        return _PrecedingWords()
    near = text[max(0, start - 40) : start].rstrip(" \t\"'(#:=")
    words = [word.lower() for word in _WORD.findall(near[near.rfind("\n") + 1 :])[-4:]]
    if not words or (not near[-1:].isalpha() and near[-1:] != "."):
        return _PrecedingWords()
    if words[-1] in _LINKING_WORDS and len(words) > 1:
        words.pop()
    if words[-1] in _SECRET_WORDS or words[-2:] == ["api", "key"]:
        return _PrecedingWords(secret=True)
    if words[-1] not in _ID_CUES:
        return _PrecedingWords(words[-1])
    noun = words[-2] if len(words) > 1 else ""
    noun = words[-3] if noun == "s" and len(words) > 2 else noun
    return _PrecedingWords(
        "" if noun in _NOT_TYPE_WORDS else noun_from_words((noun,)), announces_id=True, says_id=words[-1] == "id"
    )
