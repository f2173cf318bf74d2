"""Finds ids in the arguments of a tool call and in running text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, NamedTuple

from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.parse_result import parse_result
from inmind.entities.entity import DEFAULT_RULES, EntityRules
from inmind.entities.ids import (
    MAX_ID_CHARS,
    PRIVATE_WORDS,
    handle_kind,
    is_name,
    key_meaning,
    noun_from_words,
    parse_code,
    parse_id,
)
from inmind.entities.nouns import COMMON_TYPES, UNTYPED

MAX_NODES = 20_000
"""Number of values of one call that are read."""


@frozen
class FoundId:
    """An id in the arguments of a call or in a text."""

    path: str
    key: str
    type: str
    id: str
    kind: str = "id"
    """`id`, or a handle that a call may use for the first time: `path`, `email`, `url`, `name`."""


def find_ids(
    value: object,
    *,
    own_type: str = UNTYPED,
    about_one: bool = False,
    tool_nouns: Collection[str] = (),
    rules: EntityRules = DEFAULT_RULES,
) -> list[FoundId]:
    """Return the ids in the arguments of a call, in order.

    `own_type` is the type the tool is about, which a plain `id` refers to; with `about_one`, a plain `number` is
    read like `pr_number`. `tool_nouns` are the nouns in the tool name: a value under one of them is a name, such as
    the channel of `get_users_in_channel`.
    """
    ids: dict[tuple[str, str], FoundId] = {}
    for path, key, item in _iter_leaves(value):
        is_host_key = key in rules.id_keys
        numbered = about_one and path == "number" and own_type != UNTYPED and not is_host_key
        handle = parse_handle(f"{own_type}_number" if numbered else key, item, rules)
        if handle := handle or _parse_named(key, item, tool_nouns, rules):
            type, id, kind = handle
            if key_meaning(key).role == "own" and not is_host_key:
                type = rules.type_for(own_type)
            ids.setdefault((type, id), FoundId(path, key, type, id, kind))
    return list(ids.values())


def _iter_leaves(value: object) -> Iterator[tuple[str, str, Any]]:
    """Yield every scalar with its path and nearest key, in order, without recursion."""
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    for _ in range(MAX_NODES):
        if not pending:
            return
        path, key, node = pending.pop()
        if isinstance(node, str) and node[:1] in ("[", "{"):
            node = parse_result(node)
        if is_object(node):
            pairs = islice(node.items(), MAX_NODES)
            pending.extend(reversed([(f"{path}.{k}" if path else k, k, v) for k, v in pairs]))
        elif is_list(node):
            pending.extend(reversed([(f"{path}[{n}]", key, v) for n, v in enumerate(node[:MAX_NODES])]))
        else:
            yield path, key, node


# Properties of an entity, which are not entities.
_NOT_ENTITIES = frozenset(
    "address amount body category city content country currency date day description direction language location "
    "message mode month name option order_type price priority query reason size state status street summary text time "
    "title topic value weather year".split()
)


Handle = tuple[str, str, str]
"""Type, id and kind, as in FoundId."""


def _parse_named(key: str, value: object, tool_nouns: Collection[str], rules: EntityRules) -> Handle | None:
    """Return a name under a key for a name, or under a noun of the tool."""
    role, type = key_meaning(key)
    if type in _NOT_ENTITIES or not isinstance(value, str) or not (role == "name" or (not role and type in tool_nouns)):
        return None
    text = value.strip()
    return (rules.type_for(type), text, "name") if is_name(text) else None


def parse_handle(key: str, value: object, rules: EntityRules = DEFAULT_RULES) -> Handle | None:
    """Return type, id and kind of the handle under a key, or None."""
    if key in rules.id_keys:
        text = parse_id(value)
        return (rules.id_keys[key], text, "id") if text else None
    role, type = key_meaning(key)
    if role == "private":
        return None
    if role in ("own", "id"):
        text = parse_id(value)
        return (rules.type_for(type), text, "email" if handle_kind(text) == "email" else "id") if text else None
    if role == "code" and (text := parse_code(type, value)):
        return rules.type_for(type), text, "id"
    if not isinstance(value, str):
        return None
    text = value.strip()
    if role == "path" and 0 < len(text) <= 200 and "\n" not in text:
        return type, text, "path"
    kind = handle_kind(text)
    if kind is None:
        return (rules.type_for(type), text, "name") if role == "person" and is_name(text) else None
    return HANDLE_TYPES.get(kind) or rules.type_for(type), text, kind


HANDLE_TYPES = {"path": "file", "email": "email", "url": "url"}


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
_ID_CUE = re.compile("(?=[INCRincr])(?i:id|number|no|code|ref(?:erence)?)")  # the lookahead makes it fast
_CUE_CHARS = 40
"""Length of the text before a word that may tell its type."""
_NOT_TYPE_WORDS = frozenset(
    "with the its an a whose my your our their his her this that has have and use by of after before for from in on at "
    "to is was or as".split()
)
_NOT_ID_TYPES = PRIVATE_WORDS | frozenset(
    "card cvv cvc security verification house room page line status error exit http version build".split()
)
_CODE_IN_TEXT = re.compile(r"#\d{1,9}|[A-Z]{5,12}")
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
    cue_ends = [cue.end() for cue in _ID_CUE.finditer(text)]
    for match in _TOKEN.finditer(text):
        token = match[0].rstrip(".:/@+~#-")
        if not 2 <= len(token) <= MAX_ID_CHARS or token in ids:
            continue
        kind, is_code = handle_kind(token), _CODE_IN_TEXT.fullmatch(token) is not None
        start = match.start()
        cues_before = bisect_right(cue_ends, start)
        is_announced = cues_before > 0 and start - cue_ends[cues_before - 1] < _CUE_CHARS
        if kind is None and not is_code and not is_announced:
            continue  # most numbers
        preceding = _preceding_words(text, start)
        if type := "" if preceding.secret else _type_in_text(token, kind, is_code, preceding):
            ids[token] = FoundId("", "", rules.type_for(type), token, kind or "id")
        if len(ids) >= MAX_IDS:
            break
    return list(ids.values())


def _type_in_text(token: str, kind: str | None, is_code: bool, preceding: _PrecedingWords) -> str:
    """Return the type of an id after these words; empty if it is none."""
    noun = preceding.type
    if preceding.announces_id:
        is_long = len(token) >= _MIN_NUMBER_DIGITS or not token.isdigit()
        is_id = noun not in _NOT_ID_TYPES and (kind or preceding.says_id or (noun and is_long))
        return (noun or UNTYPED) if is_id else ""
    if kind is not None:
        return HANDLE_TYPES.get(kind) or (noun if noun in COMMON_TYPES else UNTYPED)
    return noun if noun in COMMON_TYPES and is_code else ""


def _preceding_words(text: str, start: int) -> _PrecedingWords:
    """Parse "order #W2378156", "user ID: mei_8020", "its number is 4711", "the token 9f3a"."""
    if text[max(0, start - 2) : start] == "  ":  # the next column of a table
        return _PrecedingWords()
    near = text[max(0, start - _CUE_CHARS) : start].rstrip(" \t\"'(#:=")
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
