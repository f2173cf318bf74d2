"""What an object calls itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from inmind.entities.nouns import split_words
from inmind.entities.parse_result import is_object

NAMES = ("title", "name", "heading", "label", "subject", "filename", "slug", "email")
_OTHER_NAMES = (("display", "name"), ("full", "name"), ("fullname",), ("summary",))
_LONGEST = 80
_MOST_KEYS = 1_000


def name_of(value: object, type: str) -> str:
    """What an object calls itself, in one line; nothing where it does not."""
    if not is_object(value):
        return ""
    for key in _name_keys(tuple(value), type) if len(value) <= _MOST_KEYS else ():
        if line := as_name(value[key]):
            return line
    return _whole_name(value)


@lru_cache(maxsize=2048)
def _name_keys(keys: tuple[str, ...], type: str) -> tuple[str, ...]:
    """Those of an object's keys that may hold its name, the best first, in any spelling."""
    spelt = {split_words(key): key for key in reversed(keys)}
    wanted = (*((name,) for name in NAMES), (*split_words(type), "name"), *_OTHER_NAMES)
    exact = [name for name in NAMES if name in keys]
    return tuple(dict.fromkeys([*exact, *(spelt[name] for name in wanted if name in spelt)]))


def as_name(item: object) -> str:
    if is_object(item):
        item = _whole_name(item)
    if not isinstance(item, str):
        return ""
    line = " ".join(item[: 2 * _LONGEST].split())[:_LONGEST]
    return line if line.isprintable() else "".join(filter(str.isprintable, line))


def _whole_name(value: dict[str, Any]) -> str:
    pairs = (("first_name", "last_name"), ("firstName", "lastName"), ("given_name", "family_name"))
    names = [value[key] for pair in pairs for key in pair if key in value]
    return " ".join(name for name in names if isinstance(name, str))[:_LONGEST]
