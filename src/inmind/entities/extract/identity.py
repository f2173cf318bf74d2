"""Finds id, type and name of an object in a result, and the type in a tool name.

This runs for every object of every result. List entries have the same keys, so the id key is found once per set of
keys and result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.entities.entity import EntityRules
from inmind.entities.ids import is_code, key_meaning, parse_code, parse_id
from inmind.entities.nouns import COMMON_TYPES, UNTYPED, is_plural, singular, split_words

_READ_VERBS = frozenset(
    "browse calculate call check count describe download execute extract fetch filter find get grep inspect invoke "
    "list lookup open peek query read retrieve run search show stat tail view watch".split()
)
_WRITE_VERBS = frozenset(
    "add append archive assign attach book build buy cancel change clone close complete compose convert copy "
    "create deploy draft duplicate edit exchange export finish generate hide import insert install invite issue "
    "make mark merge modify move new order patch pay place post publish put register rename replace reply "
    "reschedule reserve reset resize restore return revert save schedule send set share start stop submit "
    "subscribe swap sync toggle transfer undelete undo unpublish update upload upsert write".split()
)
_DELETE_VERBS = frozenset("delete destroy discard drop erase purge remove rm trash unlink".split())
_VERBS = _READ_VERBS | _WRITE_VERBS | _DELETE_VERBS
# Nouns as often as verbs: they count as a verb only in first position.
_NOUN_OR_VERB = frozenset(
    "book build call check copy count draft export import invite issue list mark order place post query return run "
    "schedule share show start stop tail view watch".split()
)
_PREPOSITIONS = frozenset(
    "about after and as at before by for from in into of on onto or per to using via with within without".split()
)
_IGNORED_WORDS = frozenset(
    "a all any available batch bulk by content contents current data detail details direct each every "
    "full id ids identifier info information latest many metadata most multiple my name names new next one "
    "onestop pending recent result results single specific status the text type types uuid value values v1 v2 v3 "
    "api tool async".split()
)
# Verbs whose `number` argument may be a quantity.
_QUANTITY_VERBS = frozenset(
    "add book buy create draw duplicate generate insert issue make new order place post register reserve return send "
    "transfer".split()
)
# Nouns that are too general without the preceding noun.
_WEAK_NOUNS = frozenset("group line link method plan point record request set unit".split())


@frozen
class ToolName:
    """A parsed tool name."""

    verb: str
    types: tuple[str, ...]
    """Types it may be about, in singular, most likely first."""
    plural: bool
    """True if its noun is a plural."""
    nouns: frozenset[str] = frozenset()
    """Every noun in the name, in singular."""
    removes_from: bool = False
    """True if it removes its object from a container, such as a cart, without deleting it."""

    @property
    def type(self) -> str:
        return self.types[0] if self.types else ""

    @property
    def is_delete(self) -> bool:
        return self.verb in _DELETE_VERBS and not self.removes_from

    @property
    def is_read(self) -> bool:
        return self.verb in _READ_VERBS

    @property
    def arguments_name_result(self) -> bool:
        """True if the arguments hold the name of the entity, not a search term."""
        return self.verb in _WRITE_VERBS

    @property
    def about_one(self) -> bool:
        """True if it is about one entity: a plain `number` argument is then an id, not a count."""
        return bool(self.verb) and not self.plural and self.verb not in _QUANTITY_VERBS


@lru_cache(maxsize=2048)
def parse_tool_name(name: str) -> ToolName:
    """Parse cms_createPage, create_page, pages.list or mcp__cms__get-page: all mean a page."""
    parts = split_words(name.rsplit("__", 1)[-1] if name.startswith("mcp__") else name)
    verb_index = _verb_index(parts)
    verb = parts[verb_index] if verb_index is not None else ""
    rest = parts[verb_index + 1 :] if verb_index is not None else parts
    nouns, plural = _nouns(rest)
    if not nouns and verb_index:  # pages.list is about pages; jira_search and web_search name the system
        nouns, plural = _nouns(parts[:verb_index])
        nouns = [noun for noun in nouns[-1:] if plural or noun in COMMON_TYPES]
    if verb not in _READ_VERBS and verb != "empty" and not {"trash", "bin"}.isdisjoint(parts):
        verb = "trash"
    all_nouns = frozenset(
        singular(word) for word in parts if word not in _IGNORED_WORDS | _PREPOSITIONS and word != verb
    )
    removes_from = verb in ("remove", "unlink") and not {"from", "off"}.isdisjoint(parts)
    return ToolName(verb=verb, types=_types(nouns), plural=plural, nouns=all_nouns, removes_from=removes_from)


def _verb_index(parts: tuple[str, ...]) -> int | None:
    certain = (n for n, word in enumerate(parts) if word in _VERBS and (n == 0 or word not in _NOUN_OR_VERB))
    return next(certain, next((n for n, word in enumerate(parts) if word in _VERBS), None))


def _nouns(parts: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return the nouns up to a preposition, and whether the last one is plural."""
    nouns: list[str] = []
    for word in parts:
        if word in _PREPOSITIONS and nouns:
            break
        if word not in _PREPOSITIONS and not word.isdigit():
            nouns.append(word)
    plain = [noun for noun in nouns if noun not in _IGNORED_WORDS]
    return plain, bool(plain) and is_plural(plain[-1])


def _types(nouns: list[str]) -> tuple[str, ...]:
    if not nouns:
        return ()
    single = [singular(noun) for noun in nouns]
    ends = ["_".join(single[-n:]) for n in range(2, len(single) + 1)]
    first = [ends[0]] if ends and single[-1] in _WEAK_NOUNS else []
    return tuple(dict.fromkeys([*first, *reversed(single), *ends]))


# Keys that identify an object without an id, best first.
_HANDLE_KEYS = tuple("username handle login slug iban path file_path filename email url link name".split())
_FALLBACK_KEYS = frozenset((*_HANDLE_KEYS, "number"))

# Alternate ids of the same object. They are not its parent.
_ALTERNATE_ID_NOUNS = frozenset("node i_cal ical external internal client request global public".split())
# Values of a `type` field that are not entity types.
_NOT_TYPES = tuple("success ok error list object array string text json result data".split())

OwnId = tuple[str, str, str]
"""Type and id of an object, and the key that holds the id."""


class IdentityFinder:
    """Finds the ids of the objects in one result."""

    def __init__(self, rules: EntityRules) -> None:
        self._rules = rules
        self._by_shape: dict[tuple[Any, ...], tuple[str, str]] = {}
        """Type and id key of objects with the same keys; no key if they have no id."""
        self._id_keys_by_shape: dict[tuple[str, ...], tuple[str, ...]] = {}

    def find_own(self, value: Mapping[str, Any], types: Sequence[str]) -> OwnId | None:
        """Return type, id and id key of an object."""
        keys = tuple(value)
        id_keys = self._id_keys(keys)
        if not id_keys:
            return None
        declared = value.get("type")
        shape = (*types, None, declared if isinstance(declared, str) else None, *keys)
        known = self._by_shape.get(shape)
        if known is not None and all(map(value.get, id_keys)):
            type, key = known
            if not key:
                return None
            if id := parse_id(value[key]):
                return type, id, key
        own = self._find_own(value, id_keys, types)
        if all(parse_id(value[key]) for key in id_keys):
            type, _, key = own or ("", "", "")
            self._by_shape[shape] = (type, key)
        return own

    def find_only(self, value: Mapping[str, Any]) -> OwnId | None:
        """Return the single id of a nested object, of any type."""
        id_keys = self._id_keys(tuple(value))
        return self._typed_id(id_keys[0], value, roles=("id",)) if len(id_keys) == 1 else None

    def find_fallback(self, value: Mapping[str, Any], types: Sequence[str]) -> OwnId | None:
        """Return any id or handle of a top-level object without an id of its type."""
        id_keys = self._id_keys(tuple(value))
        if not id_keys and _FALLBACK_KEYS.isdisjoint(value):
            return None
        for key in id_keys:
            if typed := self._typed_id(key, value):
                return typed
            if key_meaning(key).role == "own":  # its id is unusable, and its name is not an id
                return None
        hints = self._type_hints(value, types)
        if hints and (id := parse_id(value.get("number"))):
            return hints[0], id, "number"
        if not hints or any(is_object(item) or is_list(item) for item in value.values()):
            return None
        handles = ((key, parse_id(value[key])) for key in _HANDLE_KEYS if isinstance(value.get(key), str))
        return next(((hints[0], id, key) for key, id in handles if id), None)

    def find_parent(self, value: Mapping[str, Any], type: str, own_key: str) -> tuple[str, str] | None:
        """Return the first entity of another type that the object refers to."""
        for key in value:
            is_other = key != own_key and key_meaning(key).type not in {type, *_ALTERNATE_ID_NOUNS}
            if is_other and (other := self._typed_id(key, value, roles=("id",))):
                return other[:2]
        return None

    def _find_own(self, value: Mapping[str, Any], id_keys: Sequence[str], types: Sequence[str]) -> OwnId | None:
        for key in id_keys:
            id = parse_id(value[key])
            if id and key in self._rules.id_keys:
                return self._rules.id_keys[key], id, key
            if id and key_meaning(key).role == "own" and not (key == "key" and is_key_value_pair(value)):
                hints = self._type_hints(value, types)
                better = parse_id(value.get("key")) if id.isdigit() else None
                if better and is_code(better):  # users know it by this key, not by the row number
                    id, key = better, "key"
                return hints[0] if hints else UNTYPED, id, key
        typed_ids = [typed for key in id_keys if (typed := self._typed_id(key, value))]
        hints = self._type_hints(value, types) if typed_ids else []
        return next((typed for hint in hints for typed in typed_ids if typed[0] == hint), None)

    def _typed_id(self, key: str, value: Mapping[str, Any], *, roles: Collection[str] = ("id", "code")) -> OwnId | None:
        """Return the id under a key that says its type."""
        role, type = key_meaning(key)
        if role not in roles:
            return None
        id = parse_id(value[key]) if role == "id" else parse_code(type, value[key])
        return (self._rules.type_for(type), id, key) if id else None

    def _id_keys(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the keys of an object that hold ids."""
        if keys not in self._id_keys_by_shape:
            known = self._rules.id_keys
            id_keys = (key for key in keys if key_meaning(key).role in ("own", "id", "code") or key in known)
            self._id_keys_by_shape[keys] = tuple(id_keys)
        return self._id_keys_by_shape[keys]

    def _type_hints(self, value: Mapping[str, Any], types: Sequence[str]) -> list[str]:
        declared = _declared_type(value)
        hints = [declared, *types] if declared else list(types)
        return [self._rules.type_for(type) for type in hints] if self._rules.types else hints


def _declared_type(value: Mapping[str, Any]) -> str:
    """Return the type that an object states in a field, or ""."""
    for key in ("type", "__typename", "object", "kind"):
        word = value.get(key)
        if word in _NOT_TYPES:
            continue
        if isinstance(word, str) and 1 < len(word) <= 40 and word.replace("_", "").replace("-", "").isalpha():
            return singular("_".join(split_words(word)))
    return ""


def is_key_value_pair(value: Mapping[str, Any]) -> bool:
    """Return True for {"key": "colour", "value": "red"}: its key names a property."""
    return "key" in value and "value" in value


NAME_KEYS = ("title", "name", "heading", "label", "subject", "filename", "slug", "email")
_OTHER_NAME_KEYS = (("display", "name"), ("full", "name"), ("fullname",), ("summary",))
_MAX_NAME_CHARS = 80
_MAX_NAMED_KEYS = 1_000


def name_of(value: object, type: str) -> str:
    """Return the name of an object on one line, or ""."""
    if not is_object(value):
        return ""
    for key in _name_keys(tuple(value), type) if len(value) <= _MAX_NAMED_KEYS else ():
        if line := parse_name(value[key]):
            return line
    return _full_name(value)


@lru_cache(maxsize=2048)
def _name_keys(keys: tuple[str, ...], type: str) -> tuple[str, ...]:
    """Return the keys that may hold the name, best first, in any spelling."""
    by_words = {split_words(key): key for key in reversed(keys)}
    wanted = (*((name,) for name in NAME_KEYS), (*split_words(type), "name"), *_OTHER_NAME_KEYS)
    exact = [name for name in NAME_KEYS if name in keys]
    return tuple(dict.fromkeys([*exact, *(by_words[name] for name in wanted if name in by_words)]))


def parse_name(item: object) -> str:
    if is_object(item):
        item = _full_name(item)
    if not isinstance(item, str):
        return ""
    line = " ".join(item[: 2 * _MAX_NAME_CHARS].split())[:_MAX_NAME_CHARS]
    return line if line.isprintable() else "".join(filter(str.isprintable, line))


def _full_name(value: dict[str, Any]) -> str:
    pairs = (("first_name", "last_name"), ("firstName", "lastName"), ("given_name", "family_name"))
    names = [value[key] for pair in pairs for key in pair if key in value]
    return " ".join(name for name in names if isinstance(name, str))[:_MAX_NAME_CHARS]
