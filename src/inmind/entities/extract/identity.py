"""Which id is an object's own, and of what type it is.

Asked of every object of every result. The entries of a list are alike, so what objects with the same keys have for an
id is worked out once for each result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inmind.entities.config import EntityRules
from inmind.entities.ids.keys import sense
from inmind.entities.ids.shapes import as_code, as_id, is_code
from inmind.entities.nouns import UNTYPED, singular, split_words
from inmind.entities.parse_result import is_list, is_object

# What some applications have instead of an id, the best first.
_HANDLES = (
    "username",
    "handle",
    "login",
    "slug",
    "iban",
    "path",
    "file_path",
    "filename",
    "email",
    "url",
    "link",
    "name",
)
_BY_HANDLE = frozenset((*_HANDLES, "number"))

# Other ids of the same object, which are no parents of it.
_TWINS = ("node", "i_cal", "ical", "external", "internal", "client", "request", "global", "public")
# What a `type` may say that is no type.
_OUTCOMES = ("success", "ok", "error", "list", "object", "array", "string", "text", "json", "result", "data")

Own = tuple[str, str, str]
"""Type and id of an object, and the key that holds the id."""


class _Alike(NamedTuple):
    """What objects of one make have for an id."""

    type: str
    key: str
    """Empty where they have none."""


class Identity:
    """Tells the ids of the objects in one result."""

    def __init__(self, rules: EntityRules) -> None:
        self._rules = rules
        self._alike: dict[tuple[Any, ...], _Alike] = {}
        self._met: dict[tuple[str, ...], tuple[str, ...]] = {}

    def own(self, value: Mapping[str, Any], types: Sequence[str]) -> Own | None:
        """Type and id of an object, and the key that holds the id."""
        keys = tuple(value)
        speaking = self._speaking(keys)
        if not speaking:
            return None
        declared = value.get("type")
        alike = (*types, None, declared if isinstance(declared, str) else None, *keys)
        met = self._alike.get(alike)
        if met is not None and all(map(value.get, speaking)):
            if not met.key:
                return None
            if id := as_id(value[met.key]):
                return met.type, id, met.key
        own = self._at_first_sight(value, types)
        if all(as_id(value[key]) for key in speaking):
            type, _, key = own or ("", "", "")
            self._alike[alike] = _Alike(type, key)
        return own

    def only(self, value: Mapping[str, Any]) -> Own | None:
        """For an object inside of another: the one id that it has, whatever its type."""
        speaking = self._speaking(tuple(value))
        if len(speaking) != 1 or not (id := as_id(value[speaking[0]])):
            return None
        says, type = sense(speaking[0])
        return (self._rules.type_for(type), id, speaking[0]) if says == "id" else None

    def otherwise(self, value: Mapping[str, Any], types: Sequence[str]) -> Own | None:
        """For an object at the top without an id of its type: any id it has, or what it goes by instead of one."""
        speaking = self._speaking(tuple(value))
        if not speaking and _BY_HANDLE.isdisjoint(value):
            return None
        for key in speaking:
            says, type = sense(key)
            if says == "id" and (id := as_id(value[key])):
                return self._rules.type_for(type), id, key
            if says == "code" and (id := as_code(type, value[key])):
                return self._rules.type_for(type), id, key
            if says == "own":  # it has an id, and one that cannot be used: its name is none
                return None
        hints = self._hints(value, types)
        if hints and (id := as_id(value.get("number"))):
            return hints[0], id, "number"
        if not hints or any(is_object(item) or is_list(item) for item in value.values()):
            return None
        for key in _HANDLES:
            if isinstance(value.get(key), str) and (id := as_id(value[key])):
                return hints[0], id, key
        return None

    def parent(self, value: Mapping[str, Any], type: str, own: str) -> tuple[str, str] | None:
        """The thing of another type that an object names first."""
        for key, item in value.items():
            said = sense(key)
            if said.says == "id" and key != own and said.type not in (type, *_TWINS) and (id := as_id(item)):
                return self._rules.type_for(said.type), id
        return None

    def _at_first_sight(self, value: Mapping[str, Any], types: Sequence[str]) -> Own | None:
        typed: dict[str, tuple[str, str]] = {}
        for key, item in value.items():
            if key in self._rules.id_keys and (id := as_id(item)):
                return self._rules.id_keys[key], id, key
            says, type = sense(key)
            if says == "own":
                if (id := as_id(item)) and not (key == "key" and is_pair(value)):
                    hints = self._hints(value, types)
                    better = as_id(value.get("key")) if id.isdigit() else None
                    if better and is_code(better):  # what people call it by, beside the number of a row
                        id, key = better, "key"
                    return hints[0] if hints else UNTYPED, id, key
            elif says == "id":
                if id := as_id(item):
                    typed.setdefault(self._rules.type_for(type), (id, key))
            elif says == "code" and (id := as_code(type, item)):
                typed.setdefault(self._rules.type_for(type), (id, key))
        if typed:
            for hint in self._hints(value, types):
                if hint in typed:
                    return (hint, *typed[hint])
        return None

    def _speaking(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Those of an object's keys that speak of ids."""
        speaking = self._met.get(keys)
        if speaking is None:
            known = self._rules.id_keys
            speaking = tuple(key for key in keys if sense(key).says in ("own", "id", "code") or key in known)
            self._met[keys] = speaking
        return speaking

    def _hints(self, value: Mapping[str, Any], types: Sequence[str]) -> list[str]:
        declared = _declared(value)
        hints = [declared, *types] if declared else list(types)
        return [self._rules.type_for(type) for type in hints] if self._rules.types else hints


def _declared(value: Mapping[str, Any]) -> str:
    """An object's own word for what it is, if it is one."""
    for key in ("type", "__typename", "object", "kind"):
        word = value.get(key)
        if word in _OUTCOMES:
            continue
        if isinstance(word, str) and 1 < len(word) <= 40 and word.replace("_", "").replace("-", "").isalpha():
            return singular("_".join(split_words(word)))
    return ""


def is_pair(value: Mapping[str, Any]) -> bool:
    """{"key": "colour", "value": "red"}: its key is the name of a property and no id."""
    return "key" in value and "value" in value
