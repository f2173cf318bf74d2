"""Records: a tool result reduced to the fields that identify its things.

    order_id #W6247578, status pending, items [name T-Shirt, product_id 9523456873, item_id 3799046073, color black]

Each value keeps its key and its place: a model can only use an id if it sees which thing it belongs to. Fields are
chosen by rules over keys and values: ids, names and states first, then short values, then numbers and dates. Addresses,
time stamps and long texts are left out, and secrets always. A value that could pass for more than one is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from inmind.core.encoding import to_json
from inmind.core.json import is_list, is_object
from inmind.core.text import largest_that_fits, shorten
from inmind.core.tokens import Counter
from inmind.core.tool_outcome import SUCCESS_KEYS
from inmind.entities.extract.identity import NAME_KEYS, name_of
from inmind.entities.ids import handle_kind, has_secret, is_secret_key, key_meaning
from inmind.entities.nouns import split_words

MAX_ENTRIES = 60
"""Entries of one list in a record."""
MAX_FIELDS = 200
"""Fields of one object in a record."""
MAX_VALUE_CHARACTERS = 60
"""A longer text is no identifying value."""
MAX_KEY_CHARACTERS = 40
MAX_UNNAMED = 4
"""Entries of a list without names that are never counted."""
MIN_ID_DIGITS = 6
"""Minimum number of digits of a text that is an id."""
MAX_RECORD_CHARACTERS = 1_000
"""Size of the record that an entity keeps, as JSON."""
_MAX_DEPTH = 8


class Detail(IntEnum):
    """How much of a result a record has."""

    IDS = 0
    """Ids, names and states; in a list often only states that differ."""
    TRAITS = 1
    """Also short values."""
    FACTS = 2
    """Also numbers and dates."""


_ABOVE_ALL_DETAIL = Detail.FACTS + 1

# Objects under these keys say nothing by their key: their fields count as those of the object around them.
_WRAPPER_WORDS = frozenset(
    "attributes data details features fields info node options properties specs specifications values".split()
)
STATE_WORDS = frozenset("status state stage phase".split())
# Details of a person, a place or a row that neither identify a thing nor tell it apart.
_ASIDE_WORDS = frozenset(
    "address addresses avatar birth birthday birthdate checksum created dob hash lat latitude lng locale longitude "
    "modified street thumbnail timestamp timezone updated".split()
)
_ROLES_OF_IDS = frozenset({"own", "id", "code", "key", "path", "person", "name"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:.*)?$|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}$")


def prune(value: Any, detail: Detail = Detail.FACTS, *, is_record: bool = False) -> Any:
    """Return a parsed result with the fields of this detail; None if nothing remains.

    `is_record`: it was pruned before, so its counts are ours.
    """
    return _prune(value, _Pruning(detail, is_record, set()), 0)


def count_unnamed(value: Any) -> Any:
    """Return a pruned value with a number in place of each long list of objects without names.

    A short one has the parts of a thing, such as the flights of a booking; a long one has the choices in a catalogue.
    """
    if is_object(value):
        return {key: count_unnamed(item) for key, item in value.items()}
    if not is_list(value):
        return value
    counted = int(value[-1].strip("( more)")) if is_count(value[-1]) else 0
    entries = value[:-1] if counted else value
    is_unnamed = all(is_object(item) and not any(key in NAME_KEYS for key in item) for item in entries)
    if is_unnamed and len(entries) > MAX_UNNAMED:
        return _count_text(len(entries) + counted)
    return [count_unnamed(item) for item in value]


def bounded_record(value: Mapping[str, Any], *, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the record of one thing, with the most detail that fits MAX_RECORD_CHARACTERS.

    `without`: id and name of the thing, which stand beside its record. That the call succeeded is not a field of it.
    """
    own = {
        key: item
        for key, item in value.items()
        if not (isinstance(item, str | int) and str(item) in without) and not (key in SUCCESS_KEYS and item is True)
    }
    pruned: dict[str, Any] = {}
    for detail in reversed(Detail):
        pruned = _prune_object(own, _Pruning(detail, False, set()), 0) or {}
        if len(to_json(pruned)) <= MAX_RECORD_CHARACTERS:
            return pruned
    kept: dict[str, Any] = {}
    for key, item in pruned.items():
        fitting = _cut_list(item, MAX_RECORD_CHARACTERS - len(to_json(kept)) - len(key) - 6) if is_list(item) else item
        if fitting is not None and len(to_json({**kept, key: fitting})) <= MAX_RECORD_CHARACTERS:
            kept[key] = fitting
    return kept


def _cut_list(items: Sequence[Any], max_characters: int) -> list[Any] | None:
    """The first entries that fit, and the number of the others; None if none fits."""
    sizes = accumulate(len(to_json(item)) + 2 for item in items)
    number = sum(size <= max_characters - _COUNT_CHARACTERS for size in sizes)
    more = [_count_text(len(items) - number)] if number < len(items) else []
    return [*items[:number], *more] if number else None


def _count_text(number: int) -> str:
    return f"({number} more)"


def is_count(value: object) -> bool:
    return isinstance(value, str) and _COUNT.fullmatch(value.strip()) is not None


_COUNT = re.compile(r"\(\d+ more\)")
_COUNT_CHARACTERS = 16
"""Room for the number of entries that are left out."""


def merge_records(older: Mapping[str, Any], newer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge two records: newer values win, and older fields stay while there is room."""
    merged = dict(newer)
    for key, item in older.items():
        if key not in merged and len(to_json({**merged, key: item})) <= MAX_RECORD_CHARACTERS:
            merged[key] = item
    return merged


def without_id(record: Mapping[str, Any], id: str) -> dict[str, Any]:
    """Return a record without the objects and values that have this id."""
    return {key: kept for key, item in record.items() if (kept := _without_id(item, id)) is not None}


def _without_id(value: Any, id: str) -> Any:
    if is_object(value):
        return None if id in value.values() else without_id(value, id) or None
    if is_list(value):
        return [kept for item in value if (kept := _without_id(item, id)) is not None] or None
    return None if value == id else value


# -- pruning ----------------------------------------------------------------------------------------------


class _Pruning(NamedTuple):
    detail: Detail
    is_record: bool
    seen: set[tuple[str, str]]
    """Keys and values that the record has already."""


def _prune(value: Any, pruning: _Pruning, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, str):
        return _one_line(value) if pruning.is_record or not is_count(value) else None
    if is_object(value):
        entries = _keyed_entries(value)
        return _prune_list(entries, pruning, depth) if entries else _prune_object(value, pruning, depth)
    if is_list(value):
        return _prune_list(value, pruning, depth)
    return value


def _prune_object(value: Mapping[str, Any], pruning: _Pruning, depth: int) -> dict[str, Any] | None:
    kept: dict[str, Any] = {}
    fields, (most, is_record, seen) = _with_full_name(value), pruning
    for number, (key, item) in enumerate(fields.items()):
        if len(kept) >= MAX_FIELDS:
            kept["other fields" if "others" in kept else "others"] = _count_text(len(fields) - number)
            break
        if isinstance(item, str):
            is_short = len(item) <= MAX_VALUE_CHARACTERS and len(key) <= _MAX_CACHED_KEY_CHARACTERS
            detail, pruned = (_cached_rank_and_line if is_short else _rank_and_line)(key, item, is_record)
            pruned = pruned if detail <= most and depth < _MAX_DEPTH else None
        elif item is None or _rank(key, item) > most:
            continue
        else:
            pruned = name_of({"name": item}, "") if is_object(item) and key in NAME_KEYS else None
            pruned = pruned or _prune(item, pruning, depth + 1)
        if pruned is None or (key == "value" and names_secret(value)):
            continue
        if isinstance(pruned, str):
            seen.add((key, pruned))
        elif (
            is_list(pruned) and key.endswith("s") and all(is_scalar(one) and (key[:-1], one) in seen for one in pruned)
        ):
            continue  # `item_ids` with values that stand under `item_id` already
        elif is_object(pruned) and key.lower() in _WRAPPER_WORDS and {*kept, *value}.isdisjoint(pruned):
            kept |= pruned
            continue
        short = key[:MAX_KEY_CHARACTERS]
        kept[f"{short}~{number}" if short in kept else short] = pruned
    return kept or None


def names_secret(value: Mapping[str, Any]) -> bool:
    """True for `{"key": "SMTP_PASSWORD", "value": …}`."""
    names = (item for key, item in value.items() if key != "value" and isinstance(item, str))
    return any(len(name) <= MAX_KEY_CHARACTERS and is_secret_key(name) for name in names)


def _prune_list(items: Sequence[Any], pruning: _Pruning, depth: int) -> list[Any] | None:
    kept: list[Any] = []
    alike, detailed = set[int](), pruning
    if pruning.detail == Detail.IDS:
        items = _without_shared_states(items)
        alike, detailed = _alike_entries(items), pruning._replace(detail=Detail.TRAITS)
    before = frozenset(pruning.seen)
    for place, item in enumerate(items[:MAX_ENTRIES]):
        seen = set(before)  # an entry may repeat the ids of another
        pruned = _prune(item, (detailed if place in alike else pruning)._replace(seen=seen), depth + 1)
        pruning.seen.update(seen)
        if pruned is not None:
            kept.append(pruned)
    if len(items) > MAX_ENTRIES:
        kept.append(_count_text(len(items) - MAX_ENTRIES))
    return kept or None


def _without_shared_states(items: Sequence[Any]) -> Sequence[Any]:
    """The entries without a state that all of them have: it tells none of them apart.

    A few things with ids of their own keep it, and things without any id.
    """
    if len(items) < 2 or not all(is_object(item) for item in items):
        return items
    roles = {key_meaning(key).role for key in items[0]}
    if "code" not in roles and (len(items) <= MAX_UNNAMED or roles.isdisjoint({"own", "id"})):
        return items
    first = {key: item for key, item in items[0].items() if key.lower() in STATE_WORDS and is_scalar(item)}
    shared = {key for key, state in first.items() if all(item.get(key) == state for item in items)}
    return [{key: value for key, value in item.items() if key not in shared} for item in items] if shared else items


def _alike_entries(items: Sequence[Any]) -> set[int]:
    """Places of things that only their traits tell apart.

    They have no name, or that of another entry. A long list is a catalogue, and has no room for traits.
    """
    if len(items) > MAX_UNNAMED:
        return set()
    objects = [item if is_object(item) else {} for item in items]
    names = [next((str(item[key]) for key in NAME_KEYS if item.get(key)), "") for item in objects]
    has_id = [any(key_meaning(key).role == "own" for key in item) for item in objects]
    return {place for place, name in enumerate(names) if (names.count(name) > 1 if name else has_id[place])}


def _keyed_entries(value: Mapping[str, Any]) -> list[Any]:
    """The objects of a map from ids to objects that repeat their id, id first; else none."""
    entries: list[Any] = []
    for key, one in value.items():
        id = {name: item for name, item in one.items() if item == key and _is_id_key(name)} if is_object(one) else {}
        if not id:
            return []
        entries.append({**id, **one})
    return entries


def _is_id_key(key: str) -> bool:
    return key in NAME_KEYS or key_meaning(key).role in _ROLES_OF_IDS


def _with_full_name(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with first and last name joined, in the place of the first."""
    parts = [key for key, item in value.items() if split_words(key) in _NAME_PARTS and item and isinstance(item, str)]
    if len(parts) < 2 or "name" in value:
        return value
    joined = " ".join(str(value[key]) for key in parts)
    return {
        ("name" if key == parts[0] else key): (joined if key == parts[0] else item)
        for key, item in value.items()
        if key not in parts[1:]
    }


_NAME_PARTS = frozenset((first, "name") for first in ("first", "last", "given", "family"))


def _rank(key: str, item: Any) -> int:
    """The detail from which on a field that is no text is kept."""
    if is_aside(key):
        return _ABOVE_ALL_DETAIL
    if is_object(item) or is_list(item):
        return Detail.IDS
    if isinstance(item, bool):
        return Detail.TRAITS
    return Detail.IDS if key_meaning(key).role in ("own", "id") else Detail.FACTS


@lru_cache(maxsize=1024)
def is_aside(key: str) -> bool:
    """True for a key whose value no record has."""
    words = split_words(key)
    return key_meaning(key).role == "private" or not _ASIDE_WORDS.isdisjoint(words) or words[-1:] == ("at",)


def _rank_and_line(key: str, text: str, is_record: bool) -> tuple[int, str | None]:
    """The detail from which on a text is kept, and how."""
    detail = _rank_text(key, text) if text and not is_aside(key) else _ABOVE_ALL_DETAIL
    is_kept = detail < _ABOVE_ALL_DETAIL and (is_record or not is_count(text))
    return detail, _one_line(text) if is_kept else None


_cached_rank_and_line = lru_cache(maxsize=8192)(_rank_and_line)
_MAX_CACHED_KEY_CHARACTERS = 80


def _rank_text(key: str, text: str) -> int:
    if _is_id_key(key) or key.lower() in STATE_WORDS:
        return Detail.IDS
    if len(text) > MAX_VALUE_CHARACTERS:
        return _ABOVE_ALL_DETAIL
    kind = handle_kind(text)
    if kind == "url":
        return _ABOVE_ALL_DETAIL
    if kind or (text.isdigit() and len(text) >= MIN_ID_DIGITS):
        return Detail.IDS
    return Detail.FACTS if _DATE.match(text) else Detail.TRAITS


def _one_line(value: str) -> str | None:
    """A text on one line, cut if it is long; None for a secret."""
    line = " ".join(value.split()) if not value.isprintable() or "  " in value else value.strip()
    return shorten(line, 2 * MAX_VALUE_CHARACTERS) if line and not has_secret(line) else None


def is_scalar(value: Any) -> bool:
    return not (is_object(value) or is_list(value))


def render_record(value: Any, handled: Callable[[str], str] | None = None) -> str:
    """Render a pruned value on one line.

    `handled` returns words to add after an id in a list of ids, for example what was done with it.
    """
    return _render(value, handled, top=True)


def fit_record(value: Any, *, budget: int, count: Counter) -> str:
    """Render a parsed result with the most detail that fits, else cut it after a value."""
    text = ""
    for detail in reversed(Detail):
        text = render_record(prune(value, detail))
        if count(text) <= budget:
            return text
    return cut_record(text, budget=budget, count=count)


def cut_record(text: str, *, budget: int, count: Counter) -> str:
    """Cut a record after a value, and say how many values are left out."""
    ends = [match.start(1) for match in _SEPARATOR.finditer(text) if match[1]]

    def kept(number: int) -> str:
        head = text[: ends[number - 1]] if number else ""
        return f"{head} … ({len(ends) + 1 - number} more)".lstrip()

    return kept(largest_that_fits(len(ends), lambda number: count(kept(number)) <= budget))


_SEPARATOR = re.compile(r'"(?:[^"\\]|\\.)*"|([,;] )')
"""A separator of values, or a quoted text, which may contain one."""


def _render(value: Any, handled: Callable[[str], str] | None, *, top: bool = False) -> str:
    if isinstance(value, str):
        return _word(value)
    if is_object(value):
        pairs = ", ".join([f"{_key_word(key)} {_render_field(key, item, handled)}" for key, item in value.items()])
        return pairs if top else f"{{{pairs}}}"
    if is_list(value):
        if key := _only_key(value):
            return f"[{_key_word(key)} {', '.join([_render_entry(item[key], handled) for item in value])}]"
        if any(is_object(item) for item in value):
            return f"[{'; '.join([_render(item, handled, top=True) for item in value])}]"
        return f"[{', '.join([_render_entry(item, handled) for item in value])}]"
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.12g}"  # 121.20000000000005 is 121.2
    return str(value).lower() if isinstance(value, bool) else _word(str(value))


def _render_field(key: str, item: Any, handled: Callable[[str], str] | None) -> str:
    is_id = handled is not None and is_scalar(item) and key_meaning(key).role in ("own", "id", "code")
    return _render_entry(item, handled) if is_id else _render(item, handled)


def _only_key(items: Sequence[Any]) -> str:
    """The key of a list of objects that have one field, the same; else empty."""
    if len(items) < 2 or not is_object(items[0]) or len(items[0]) > 1:
        return ""
    keys = {key for item in items if is_object(item) for key in item}
    is_plain = len(keys) == 1 and all(is_object(item) and all(map(is_scalar, item.values())) for item in items)
    return keys.pop() if is_plain else ""


def _render_entry(item: Any, handled: Callable[[str], str] | None) -> str:
    text = _render(item, handled)
    words = handled(str(item)) if handled and isinstance(item, str | int) else ""
    return f"{text} ({words})" if words else text


@lru_cache(maxsize=1024)
def _key_word(key: str) -> str:
    return json.dumps(key, ensure_ascii=False) if is_count(key) else _word(key)


@lru_cache(maxsize=8192)
def _word(text: str) -> str:
    """Return the text, quoted if it could pass for more than one value.

    For example several values, a key with its value, an id with a verb, or a count.
    """
    return json.dumps(text, ensure_ascii=False) if _SPECIAL.search(text) and not is_count(text) else text


_KEY = r"(?:\w*_\w+|(?i:ids?|number|code|name|status)|\w+(?:I[dD]s?|Number|Code|Name|Status))"
_SPECIAL = re.compile(rf"[,;()\[\]{{}}\"…]|(?:^|\s){_KEY}\s+\S|^\s|\s$|[^\S ]")
