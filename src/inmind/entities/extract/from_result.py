"""Turns a tool result into entity sightings, without a model.

The type comes from the object's `type` field, else from the tool name, else from the key that holds the object. An
object with an id at the top of a result is an entity; the ids inside it are its parts. Of a list, the first few
entries become entities and the ids of the others become parts of the first: every id stays available, and one
search does not evict everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from inmind.core.events.session import EntityPart, EntitySighting, ToolObserved
from inmind.core.json import is_list, is_object
from inmind.core.parse_result import parse_name_list
from inmind.core.tool_outcome import ToolOutcome, deletion_refused, is_empty_result, split_deletion
from inmind.entities.entity import DEFAULT_RULES, MAX_PARTS, EntityRules, Extractor
from inmind.entities.extract.identity import ToolName, name_of, parse_tool_name
from inmind.entities.extract.records import (
    MAX_RECORDS,
    RecordReader,
    ResultRecord,
    add_part,
    is_only_wrappers,
    limit_keys,
)
from inmind.entities.find_ids import FoundId, find_ids, find_ids_in_text
from inmind.entities.ids import is_code, looks_like_id, parse_id
from inmind.entities.nouns import UNTYPED, singular
from inmind.entities.serialize import sighting_from
from inmind.errors import ExtractorFailed

_CREATE_VERBS = frozenset("add book create insert make new register".split())
# Tools for these types return text of many lines, not a list of names.
_TEXT_TYPES = frozenset(
    "comment detail error instruction line log lyric message news note output result step test".split()
)
_NO_KEY = "_"
"""Placeholder key for a value without a key."""

MAX_UNNAMED_ENTRIES = 40
"""Number of entries of a list without own ids that are searched for other ids."""
MAX_USED_ARGUMENTS = 10
"""Number of arguments of one call that count as used."""


def sightings_from_result(outcome: ToolOutcome, rules: EntityRules = DEFAULT_RULES) -> tuple[EntitySighting, ...]:
    """Return the entities of one tool outcome, best match first. A failed call returns none."""
    if outcome.failed:
        return ()
    extractor = rules.extractor_for(outcome.tool)
    if extractor is not None and outcome.observed is not None:
        return _from_host_extractor(*extractor, outcome.observed)
    # An empty result does not prove that the id exists.
    if is_empty_result(outcome.value) and parse_tool_name(outcome.tool).is_read:
        return ()
    return _ResultExtractor(outcome, rules).sightings()


class _ResultExtractor:
    """Extracts from one successful call: tool name, arguments and parsed result."""

    def __init__(self, outcome: ToolOutcome, rules: EntityRules) -> None:
        value = outcome.value
        self._rules, self._value = rules, limit_keys(value) if is_object(value) else value
        self._tool_name = _with_host_types(rules, parse_tool_name(outcome.tool))
        self._arguments = outcome.arguments
        tool = self._tool_name
        self._used = find_ids(
            self._arguments,
            own_type=tool.type or UNTYPED,
            about_one=tool.about_one,
            tool_nouns=tool.nouns,
            rules=rules,
        )
        self._reader = RecordReader(() if tool.removes_from else tool.types, rules, plural=tool.plural)

    def sightings(self) -> tuple[EntitySighting, ...]:
        records = self._records()
        if self._tool_name.is_delete:
            return self._deletion_sightings(records)
        if records:
            self._add_from_arguments(records[0])
        sightings = [self._sighting(record, record.how) for record in records[: self._rules.window]]
        # A number is another id of the same entity.
        numbers = {part.id for sighting in sightings for part in sighting.parts if part.type == "number"}
        return (*sightings, *self._used_sightings(without=numbers.union(sighting.id for sighting in sightings)))

    def _records(self) -> list[ResultRecord]:
        groups = self._records_by_name()
        target_record = None if groups else self._record_of_target()
        if target_record is not None:
            target_record.from_arguments = target_record.type != self._tool_name.type
            return [target_record]
        groups = groups or self._reader.groups(self._value_or_lines())
        if not groups and isinstance(self._value, str | int) and not isinstance(self._value, bool):
            record = self._record_from_text(str(self._value).strip())
            return [record] if record else []
        groups = groups or self._records_from_loose_ids()
        return [record for group in groups for record in _limit_list(group, self._rules)]

    def _value_or_lines(self) -> Any:
        """Return the value, or the lines if a listing tool returned one name per line."""
        names = self._tool_name.plural and self._tool_name.is_read and self._tool_name.type not in _TEXT_TYPES
        return (parse_name_list(self._value) or None) if names and isinstance(self._value, str) else self._value

    def _records_by_name(self) -> list[list[ResultRecord]]:
        """Records for a result keyed by the requested names: {"City Hub": "Rating: 4.2"}."""
        requested = {found_id.id: found_id.type for found_id in self._used}
        if not is_object(self._value) or not self._value or not all(key in requested for key in self._value):
            return []
        return [[self._reader.describe(requested[key], key, {_NO_KEY: item}) for key, item in self._value.items()]]

    def _records_from_loose_ids(self) -> list[list[ResultRecord]]:
        """Records for a result whose objects have no id.

        The ids found are parts of the entity named by the arguments, or entities if there is none.
        """
        value = self._value[:MAX_UNNAMED_ENTRIES] if is_list(self._value) else self._value
        parts = self._reader.describe(UNTYPED, "", {self._tool_name.type or _NO_KEY: value}).parts
        target = self._target()
        if not parts or target is None:
            return [[ResultRecord(part.type, part.id, part.name) for part in parts.values()]] if parts else []
        parts.pop(target.id, None)
        return [[ResultRecord(target.type, target.id, parts=parts, from_arguments=True)]]

    def _record_of_target(self) -> ResultRecord | None:
        """Record of the entity that the arguments name and the result describes without its id."""
        if not is_object(self._value) or self._reader.has_own_id(self._value) or is_only_wrappers(self._value):
            return None
        if self._tool_name.removes_from:  # the result describes the container
            return None
        if any(singular(key.lower()) == self._tool_name.type for key in self._value):
            return None
        target = self._target()
        if target is None or target.type not in self._tool_name.types:
            return None
        return self._reader.describe(target.type, target.id, self._value)

    def _record_from_text(self, text: str) -> ResultRecord | None:
        """Record for a text result: a bare id, or ids in prose."""
        own_type = self._tool_name.type or UNTYPED
        if looks_like_id(text) or (self._tool_name.verb in _CREATE_VERBS and _is_created_id(text)):
            return ResultRecord(own_type, text)
        found_ids = (found_id for found_id in find_ids_in_text(text, rules=self._rules) if found_id.kind != "url")
        ids = [replace(one, type=own_type) if one.type == UNTYPED else one for one in found_ids]
        target = self._target()
        if not ids and (target is None or target.type not in self._tool_name.types):
            return None
        if target is None:
            target, *ids = ids
        parts = {one.id: EntityPart(one.type, one.id) for one in ids[:MAX_PARTS] if one.id != target.id}
        return ResultRecord(target.type, target.id, parts=parts, from_arguments=target.type != self._tool_name.type)

    def _target(self) -> FoundId | None:
        """Return the argument that names the entity the call is about."""
        by_type = (found_id for type in self._tool_name.types for found_id in self._used if found_id.type == type)
        by_kind = (found_id for kind in ("id", "path", "name") for found_id in self._used if found_id.kind == kind)
        return next(chain(by_type, by_kind), None)

    def _add_from_arguments(self, main: ResultRecord) -> None:
        """Add the name, parent and parts that the arguments give."""
        if not main.name and self._tool_name.arguments_name_result and is_object(self._arguments):
            main.name = name_of(self._arguments, main.type)
        removed_type = self._tool_name.type if self._tool_name.removes_from else ""
        others = [found_id for found_id in self._used if found_id.id != main.id and found_id.type != removed_type]
        if main.parent is None and self._tool_name.arguments_name_result:
            parents = ((one.type, one.id) for one in others if one.kind == "id" and one.type != main.type)
            main.parent = next(parents, None)
        for found_id in others:
            main.parts.setdefault(found_id.id, EntityPart(found_id.type, found_id.id))

    def _deletion_sightings(self, records: Sequence[ResultRecord]) -> tuple[EntitySighting, ...]:
        """Return deletions for the ids that were deleted; other ids were only used."""
        if deletion_refused(self._value) or (is_object(self._arguments) and self._arguments.get("dry_run") is True):
            return tuple(self._used_sightings())
        not_deleted, confirmed = split_deletion(self._value)
        types = {self._tool_name.type, UNTYPED} if self._tool_name.type else {found_id.type for found_id in self._used}
        deleted = {record.id: record for record in records if record.type in types and not record.from_arguments}
        for found_id in self._used:
            if found_id.type in types:
                deleted.setdefault(found_id.id, ResultRecord(found_id.type, found_id.id))
        ids = [id for id in deleted if id not in not_deleted and (confirmed is None or id in confirmed)]
        deletions = [self._sighting(deleted[id], "deleted") for id in ids[:MAX_RECORDS]]
        return (*self._used_sightings(without=ids), *deletions)

    def _used_sightings(self, *, without: Collection[str] = ()) -> Iterator[EntitySighting]:
        used = (found_id for found_id in self._used if found_id.id not in without)
        for found_id in islice(used, MAX_USED_ARGUMENTS):
            yield EntitySighting(found_id.type, found_id.id, how="used", action=self._tool_name.verb)

    def _sighting(self, record: ResultRecord, how: str) -> EntitySighting:
        parts = tuple(list(record.parts.values())[:MAX_PARTS])
        return EntitySighting(
            type=record.type,
            id=record.id,
            name=record.name,
            how=how,
            action=self._tool_name.verb,
            parent=record.parent,
            parts=parts,
            record=record.fields,
            omitted_parts=record.omitted_parts + max(0, len(record.parts) - len(parts)),
        )


def _limit_list(group: Sequence[ResultRecord], rules: EntityRules) -> Sequence[ResultRecord]:
    """Return the entries of a list that become entities; the others become parts of the first."""
    kept, rest = group[: rules.max_per_list], group[rules.max_per_list :]
    for record in kept:
        record.listed = len(group) > 1
    for record in rest:
        add_part(kept[0].parts, EntityPart(record.type, record.id, record.name, from_same_list=True))
    kept[0].omitted_parts += sum(record.omitted_parts for record in rest)
    return kept


def _is_created_id(text: str) -> bool:
    """Return True for the whole result of a create tool: a number, or a word with a digit."""
    return text.isascii() and parse_id(text) is not None and (text.isdigit() or is_code(text))


def _with_host_types(rules: EntityRules, tool: ToolName) -> ToolName:
    """Map the nouns of a tool name to the host's types, those types first."""
    if not rules.types:
        return tool
    types = dict.fromkeys(map(rules.type_for, tool.types))
    return replace(tool, types=tuple(sorted(types, key=lambda type: type not in rules.types)))


def _from_host_extractor(pattern: str, extractor: Extractor, outcome: ToolObserved) -> tuple[EntitySighting, ...]:
    """Run a host extractor. Any error is raised as ExtractorFailed with its pattern."""
    try:
        sightings = [sighting_from(entity, f"answer[{n}]") for n, entity in enumerate(extractor(outcome))]
    except Exception as error:  # host code may raise and return anything
        reason = f"{type(error).__name__}: {error}"
        raise ExtractorFailed(pattern=pattern, tool=outcome.tool, reason=reason) from error
    verb = parse_tool_name(outcome.tool).verb
    return tuple(replace(sighting, action=sighting.action or verb) for sighting in sightings)
