"""Finds the objects with ids in a tool result, in every structure that tools use.

Supported: `{page: {...}}`, `{pages: [...]}`, `{matches: [...]}`, a bare object or list, wrappers, GraphQL edges,
JSON:API attributes, objects keyed by id, ids keyed by name. This runs on every result of every tool, so it visits
each value once, decides by keys before values, and stops at its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from inmind.core.events.session import EntityPart
from inmind.core.json import is_list, is_object
from inmind.core.parse_result import parse_result
from inmind.entities.entity import MAX_PARTS, EntityRules
from inmind.entities.extract.identity import NAME_KEYS, IdentityFinder, is_key_value_pair, name_of, parse_name
from inmind.entities.find_ids import find_ids_in_text, parse_handle
from inmind.entities.ids import handle_kind, key_meaning, looks_like_id, parse_id
from inmind.entities.nouns import UNTYPED
from inmind.entities.record import bounded_record

MAX_RECORDS = 120
"""Number of entries of one list that are read."""
MAX_KEYS = 1_000
"""Number of keys of one object that are read."""
MAX_TEXT_CHARS = 8_000
"""Total length of text inside a result that is searched for ids."""
_SHORT_TEXT_CHARS = 24
"""Texts up to this length are a word or two, and are classified by shape only."""
_MAX_DEPTH = 30

_DELETED_FLAGS = ("deleted", "is_deleted", "isDeleted", "trashed", "in_trash")

# Keys that hold entities but do not name their type.
_WRAPPERS = frozenset(
    "attributes body content data edges hits items list matches node nodes objects output payload records "
    "response result results rows value values".split()
)
_BUILT_IN_TYPES = frozenset("page section collection entry media image post task".split())
# Tools for these types return a number per name, not an id.
_NUMBER_TYPES = frozenset(
    "phone contact fax price count total amount population score balance rate stat zip number".split()
)
# Keys next to a nested object that holds the properties.
_ENVELOPE_KEYS = frozenset({"id", "Id", "ID", "key", "kind", "uid"})

_MAY_HAVE_ID = re.compile(r"[0-9@]|\.[A-Za-z]")
"""A text without these characters contains no id."""


@dataclass(slots=True)
class ResultRecord:
    """An object with an id, and the ids inside it."""

    type: str
    id: str
    name: str = ""
    parent: tuple[str, str] | None = None
    parts: dict[str, EntityPart] = field(default_factory=dict[str, EntityPart])
    listed: bool = False
    """True for an entry of a list."""
    deleted: bool = False
    """True if the object itself says that it was deleted."""
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its record."""
    omitted_parts: int = 0
    """Number of ids inside it that are not in `parts`."""
    from_arguments: bool = False
    """True if the id comes from the arguments and the result only describes it, which does not prove that it exists."""

    @property
    def how(self) -> str:
        if self.deleted:
            return "deleted"
        return "told" if self.from_arguments else "listed" if self.listed else "seen"


class RecordReader:
    """Reads one result. `types` are the types the tool may be about, most likely first."""

    def __init__(self, types: Sequence[str], rules: EntityRules, *, plural: bool) -> None:
        self._types, self._rules, self._plural = types, rules, plural
        self._text_budget = MAX_TEXT_CHARS
        self._omitted_parts = 0
        self._identity = IdentityFinder(rules)

    def groups(self, value: Any) -> list[list[ResultRecord]]:
        """Return the records grouped by the list or key that held them, in order."""
        return self._groups(value, self._types, 0)

    def has_own_id(self, value: Mapping[str, Any]) -> bool:
        """Return True if an object has an id."""
        return self._identity.find_own(value, self._types) is not None

    def describe(self, type: str, id: str, value: dict[str, Any]) -> ResultRecord:
        """Return a record with a known id and everything that an object says about it."""
        record = ResultRecord(type, id, name_of(value, type))
        self._collect_details(value, record)
        return record

    # -- records -------------------------------------------------------------------------------------------

    def _groups(self, value: Any, types: Sequence[str], depth: int) -> list[list[ResultRecord]]:
        if depth > _MAX_DEPTH:
            return []
        if isinstance(value, str):
            value = parse_result(value)
        if is_list(value):
            return self._list_records(value, types)
        if not is_object(value):
            return []
        value = limit_keys(value)
        if record := self._record(value, types):
            return [[record]]
        if mapped := self._map_records(value, types):
            return [mapped]
        nested_items = [
            (key, item) for key, item in value.items() if is_object(item) or is_list(item) or _may_be_json(item)
        ]
        single = sum(key.lower() not in _WRAPPERS for key, _ in nested_items) <= 1
        groups: list[list[ResultRecord]] = []
        for key, item in nested_items:
            groups += self._groups(item, self._types_for(key, types, single=single), depth + 1)
        return groups

    def _types_for(self, key: str, types: Sequence[str], *, single: bool) -> Sequence[str]:
        """Return the types for a key's value: those of the tool, unless the key is specific."""
        if key.lower() in _WRAPPERS:
            return types
        noun = self._rules.type_for(key_meaning(key).type)
        if noun in types or noun in _BUILT_IN_TYPES or noun in self._rules.types or not single or not types:
            return (noun, *(type for type in types if type != noun))
        return (*types, noun)

    def _list_records(self, items: list[Any], types: Sequence[str]) -> list[list[ResultRecord]]:
        """Return each entry once. Only entries that can become entities are searched for parts."""
        records: dict[str, ResultRecord] = {}
        for item in islice(_flatten(items), MAX_RECORDS):
            if is_object(item):
                can_be_entity = len(records) < self._rules.max_per_list
                record = self._record(item, types, with_parts=can_be_entity) or self._nested_record(item, types)
            else:
                record = self._scalar_record(item, types)
            if record is not None:
                records.setdefault(record.id, record)
        group = list(records.values())
        if group:
            group[-1].omitted_parts += max(0, len(items) - MAX_RECORDS)
        return [group] if group else []

    def _nested_record(self, item: dict[str, Any], types: Sequence[str]) -> ResultRecord | None:
        """Record of an entry that holds its object under one key: {"page": {...}}."""
        inner = [value for value in item.values() if is_object(value)]
        return self._record(inner[0], types) if len(inner) == 1 else None

    def _scalar_record(self, item: object, types: Sequence[str]) -> ResultRecord | None:
        """Record of a plain text entry: channels, hotels and files are identified by name."""
        if not isinstance(item, str):
            return None
        text = item.strip()
        kind = handle_kind(text)
        if kind in ("id", "email", "path"):
            by_shape = {"email": "email", "path": "file"}.get(kind, UNTYPED)
            return ResultRecord(types[0] if types else by_shape, text)
        named = bool(types) and self._plural and 0 < len(text) <= 60 and text.isprintable()
        plain = named and text.count(" ") < 6 and any(map(str.isalpha, text)) and not _starts_like_number(text)
        return ResultRecord(types[0], text) if plain else None

    def _map_records(self, value: dict[str, Any], types: Sequence[str]) -> list[ResultRecord]:
        """Records of an object that maps ids to objects, or names to ids."""
        noun = types[0] if types else UNTYPED
        items = list(islice(value.items(), MAX_RECORDS))
        if items and is_object(items[0][1]):
            is_by_id = all(is_object(item) and _is_map_key(key, item) for key, item in value.items())
            if not is_by_id and not _are_entries(value):
                return []
            return [self._keyed_record(key, item, types, noun) for key, item in items]
        if types and _NUMBER_TYPES.isdisjoint(types) and _are_names_of_ids(value):
            return [ResultRecord(noun, id, parse_name(name)) for name, id in items]
        return []

    def _keyed_record(self, key: str, item: dict[str, Any], types: Sequence[str], noun: str) -> ResultRecord:
        """Record of an object keyed by its id, which it may repeat."""
        record = self._record(item, types) if self._identity.find_own(_unwrap_node(item), types) else None
        return record or self.describe(noun, key, item)

    def _record(self, value: dict[str, Any], types: Sequence[str], *, with_parts: bool = True) -> ResultRecord | None:
        """Record of a top-level object. Without `with_parts` it has id and name only."""
        value = _unwrap_node(value)
        own = self._identity.find_own(value, types) or self._identity.find_fallback(value, types)
        if own is None:
            return None
        type, id, key = own
        record = ResultRecord(type, id, name_of(value, type))
        if with_parts:
            self._collect_details(value, record, key)
            record.parent = self._identity.find_parent(value, type, key)
        return record

    def _collect_details(self, value: Mapping[str, Any], record: ResultRecord, key: str = "") -> None:
        """Add the parts of an object and whether it is deleted."""
        self._omitted_parts = 0
        self._collect_parts(value, record.parts, 0, skip=key)
        for own in (record.id, record.name):
            record.parts.pop(own, None)
        number = parse_id(value.get("number"))
        if number and number != record.id:  # users know it by this number, not by the row id
            record.parts.setdefault(number, EntityPart("number", number))
        record.omitted_parts = self._omitted_parts
        record.fields = bounded_record(value, without=(record.id, record.name))
        record.deleted = any(value.get(flag) is True for flag in _DELETED_FLAGS)

    # -- parts ---------------------------------------------------------------------------------------------

    def _collect_parts(
        self, value: Mapping[str, Any], parts: dict[str, EntityPart], depth: int, *, skip: str = ""
    ) -> None:
        """Collect every id below an object, in order, typed by its key or its object."""
        if depth > _MAX_DEPTH:
            return
        for key, item in value.items():
            if len(parts) >= MAX_PARTS:
                return
            if key == skip:
                continue
            role, noun = key_meaning(key)
            if isinstance(item, str):
                if role or _MAY_HAVE_ID.search(item):
                    self._collect_from_text(key, role, item, parts)
            elif is_object(item):
                if role != "private":
                    self._collect_from_object(item, parts, depth + 1, noun)
            elif is_list(item):
                if role != "private":
                    self._collect_from_list(key, role, item, parts, depth + 1, noun)
            elif item is not None and role in ("own", "id"):
                self._add_handle(key, item, parts)
            if role == "key":
                add_part(parts, EntityPart(noun, key))

    def _collect_from_text(self, key: str, role: str, text: str, parts: dict[str, EntityPart]) -> None:
        if role == "private" or self._add_handle(key, text, parts):
            return
        if self._text_budget > 0 and len(text) > _SHORT_TEXT_CHARS and " " in text and key not in NAME_KEYS:
            head = text[: self._text_budget]
            self._text_budget -= len(head)
            for found_id in find_ids_in_text(head, rules=self._rules):
                if found_id.kind != "url":
                    add_part(parts, EntityPart(found_id.type, found_id.id))

    def _add_handle(self, key: str, value: Any, parts: dict[str, EntityPart]) -> bool:
        """Add the id under a key as a part. Return False if there is no handle."""
        handle = parse_handle(key, value, self._rules)
        if handle and handle[2] != "url" and (handle[2] != "path" or handle_kind(handle[1]) == "path"):
            add_part(parts, EntityPart(*handle[:2]))
        return handle is not None

    def _collect_from_list(
        self, key: str, role: str, items: list[Any], parts: dict[str, EntityPart], depth: int, noun: str
    ) -> None:
        are_codes = _are_similar_codes(items)
        for index, item in enumerate(items):
            if len(parts) >= MAX_PARTS or index >= MAX_RECORDS:
                self._omitted_parts += len(items) - index
                return
            if are_codes:
                add_part(parts, EntityPart(self._rules.type_for(noun), item))
            elif is_object(item):
                self._collect_from_object(item, parts, depth, noun, entry=True)
            elif is_list(item):
                if depth < _MAX_DEPTH:
                    self._collect_from_list(key, role, item, parts, depth + 1, noun)
            else:
                self._add_handle(key, item, parts)

    def _collect_from_object(
        self, item: dict[str, Any], parts: dict[str, EntityPart], depth: int, noun: str, *, entry: bool = False
    ) -> None:
        item = _unwrap_node(item)
        own = self._identity.find_own(item, (noun,)) or self._identity.find_only(item)
        if own is not None:
            type, id, key = own
            name = name_of(item, type)
            add_part(parts, EntityPart(type, id, name))
            known = name in parts
            self._collect_parts(item, parts, depth, skip=key)
            if not known and name != id:
                parts.pop(name, None)
        elif not entry and (mapped := self._map_records(item, (noun,))):
            for record in mapped:
                add_part(parts, EntityPart(record.type, record.id, record.name))
                for part in record.parts.values():
                    add_part(parts, part)
        else:
            self._collect_parts(item, parts, depth, skip="key" if is_key_value_pair(item) else "")


def add_part(parts: dict[str, EntityPart], part: EntityPart) -> None:
    """Add a part once, keeping a name if any occurrence has one."""
    known = parts.get(part.id)
    if known is None:
        parts[part.id] = part
    elif part.name and not known.name:
        parts[part.id] = known._replace(name=part.name)


def is_only_wrappers(value: Mapping[str, Any]) -> bool:
    """Return True if all nested values are under wrapper keys."""
    nested_keys = [key.lower() for key, item in value.items() if is_object(item) or is_list(item)]
    return bool(nested_keys) and all(key in _WRAPPERS for key in nested_keys)


def _unwrap_node(value: dict[str, Any]) -> dict[str, Any]:
    """Unwrap an object from GraphQL and JSON:API envelopes."""
    if "node" in value and is_object(value["node"]):
        return value["node"]
    for inner in ("attributes", "metadata", "fields", "properties"):
        if inner in value and is_object(value[inner]) and not _ENVELOPE_KEYS.isdisjoint(value):
            return {**value[inner], **{k: v for k, v in value.items() if k != inner}}
    return limit_keys(value)


def limit_keys(value: dict[str, Any]) -> dict[str, Any]:
    """Return the object with at most MAX_KEYS keys."""
    return value if len(value) <= MAX_KEYS else dict(islice(value.items(), MAX_KEYS))


def _flatten(items: list[Any], depth: int = 1) -> Iterator[Any]:
    """Yield the entries of a list and its nested lists."""
    for item in items:
        if not is_list(item):
            yield item
        elif depth < _MAX_DEPTH:
            yield from _flatten(item, depth + 1)


def _may_be_json(item: object) -> bool:
    """Return True for text that may be JSON."""
    return isinstance(item, str) and item[:1] in ("{", "[") and item[-1:] in ("}", "]")


def _is_map_key(key: str, value: Mapping[str, Any]) -> bool:
    if key_meaning(key).role == "key" or (key.isdigit() and len(key) > 4):
        return True
    return " " not in key and any(key == item or (key.isdigit() and key == str(item)) for item in value.values())


def _are_entries(value: Mapping[str, Any]) -> bool:
    """Return True for objects with equal keys under generated keys: {"u1": {…}, "u2": {…}}."""
    if len(value) < 2 or not all(is_object(item) and item for item in value.values()):
        return False
    alike = len({tuple(item) for item in value.values()}) == 1
    return alike and any(map(str.isdigit, "".join(value))) and not any(key_meaning(key).role for key in value)


def _are_names_of_ids(value: Mapping[str, Any]) -> bool:
    """Return True if all keys may be names and all values are ids, or numbers of one length."""
    ids = list(value.values())
    if len(ids) < 3 or not all(type(id) is str for id in ids) or any(key_meaning(key).role for key in value):
        return False
    are_numbers = len({len(id) for id in ids}) == 1 and len(ids[0]) > 4 and all(map(str.isdigit, ids))
    return are_numbers or all(map(looks_like_id, ids))


def _are_similar_codes(items: Sequence[Any]) -> bool:
    """Return True for codes of one format, such as booking codes; some may have no digit."""
    if not items or not all(type(item) is str and 5 <= len(item) <= 40 and item.isalnum() for item in items):
        return False
    if len({len(item) for item in items}) > 1 or any(item.isdigit() for item in items):
        return False
    return all(item.isupper() for item in items) or any(map(looks_like_id, items))


def _starts_like_number(text: str) -> bool:
    return text[0].isdigit() or text[0] in "+-$€£¥"
