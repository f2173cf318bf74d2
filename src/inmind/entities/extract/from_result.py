"""Which things a tool's outcome is about, without a model.

The type comes from the object's own `type`, else from the tool's name, else from the key that holds it. Whatever
has an id of its own at the top of a result is a *thing*; the ids inside it are its *parts* and ride with it. A list
brings in its first few things, and the ids of the rest ride with the best of them: nothing that the model might
pick is lost, and one search does not push everything else out of mind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from inmind.core.events.entities import EntityPart, EntitySighting
from inmind.core.events.session import ToolObserved
from inmind.entities.config import DEFAULT_RULES, EntityRules, Extractor
from inmind.entities.entity import MAX_PARTS
from inmind.entities.extract.names import name_of
from inmind.entities.extract.records import MOST_RECORDS, Record, Shapes, head_of, is_wrapped, keep
from inmind.entities.extract.tool_name import Tool, tool_named
from inmind.entities.ids.arguments import Found, ids_in
from inmind.entities.ids.prose import ids_in_text
from inmind.entities.ids.shapes import as_id, is_code, looks_like_id
from inmind.entities.nouns import UNTYPED, singular
from inmind.entities.outcome import deletion_refused, is_empty_result, reports_failure, split_deletion
from inmind.entities.parse_result import is_list, is_object, parse_layers, parse_name_list, parse_result
from inmind.entities.serialize import sighting_from
from inmind.errors import ExtractorFailed

_CREATES = frozenset("add book create insert make new register".split())
# What such tools answer with is many lines and no list of names.
_TEXTS = frozenset("comment detail error instruction line log lyric message news note output result step test".split())
_NO_KEY = "_"
"""Stands above a value that has no key, and says nothing of it."""

MOST_UNNAMED = 40
"""Entries of a list without ids that are looked through for those of others."""
MOST_USED = 10
"""Arguments of one call that count as used."""


def things_of(outcome: ToolObserved, rules: EntityRules = DEFAULT_RULES) -> tuple[EntitySighting, ...]:
    """What one outcome brings to mind, the best match first. A failed call brings nothing."""
    answer = parse_layers(outcome.result)
    if outcome.error or any(map(reports_failure, answer)):
        return ()
    own = rules.extractor_for(outcome.tool)
    if own is not None:
        return _by_host(*own, outcome)
    value = answer[-1]
    if is_empty_result(value) and tool_named(outcome.tool).reads:  # what is not there proves no id
        return ()
    return _Outcome(outcome, value, rules).things()


class _Outcome:
    """One call that succeeded: its tool's name, its arguments, and its result as a value."""

    def __init__(self, outcome: ToolObserved, value: Any, rules: EntityRules) -> None:
        self._rules, self._value = rules, head_of(value) if is_object(value) else value
        self._tool = _in_words_of(rules, tool_named(outcome.tool))
        self._arguments = parse_result(outcome.arguments)
        own, about = self._tool.type or UNTYPED, self._tool.nouns
        self._used = ids_in(self._arguments, own=own, one=self._tool.about_one, about=about, rules=rules)
        types = () if self._tool.out_of else self._tool.types
        self._shapes = Shapes(types, rules, many=self._tool.many)

    def things(self) -> tuple[EntitySighting, ...]:
        records = self._records()
        if self._tool.deletes:
            return self._deleted(records)
        if records:
            self._complete(records[0])
        seen = [self._thing(record, record.how) for record in records[: self._rules.window]]
        numbers = {part.id for thing in seen for part in thing.parts if part.type == "number"}  # the same by another id
        met = {thing.id for thing in seen} | numbers
        return (*seen, *self._mentioned([found for found in self._used if found.id not in met]))

    def _records(self) -> list[Record]:
        groups = self._by_names()
        about = None if groups else self._about()
        if about is not None:
            about.told = about.type != self._tool.type
            return [about]
        groups = groups or self._shapes.groups(self._listed())
        if not groups and isinstance(self._value, str | int) and not isinstance(self._value, bool):
            told = self._told(str(self._value).strip())
            return [told] if told else []
        groups = groups or self._beside()
        return [record for group in groups for record in _seated(group, self._rules)]

    def _listed(self) -> Any:
        """The value, or the lines of a text where a tool that speaks of many answers with one name a line."""
        names = self._tool.many and self._tool.reads and self._tool.type not in _TEXTS
        return (parse_name_list(self._value) or None) if names and isinstance(self._value, str) else self._value

    def _by_names(self) -> list[list[Record]]:
        """What was asked for by name, and is answered by name: {"City Hub": "Rating: 4.2"}."""
        asked = {found.id: found.type for found in self._used}
        if not is_object(self._value) or not self._value or not all(key in asked for key in self._value):
            return []
        return [[self._shapes.described(asked[key], key, {_NO_KEY: item}) for key, item in self._value.items()]]

    def _beside(self) -> list[list[Record]]:
        """The ids in a result whose objects have none: parts of what the arguments name, or things by themselves."""
        value = self._value[:MOST_UNNAMED] if is_list(self._value) else self._value
        found = self._shapes.described(UNTYPED, "", {self._tool.type or _NO_KEY: value}).parts
        named = self._named_by_arguments()
        if not found or named is None:
            return [[Record(part.type, part.id, part.name) for part in found.values()]] if found else []
        found.pop(named.id, None)
        return [[Record(named.type, named.id, parts=found, told=True)]]

    def _about(self) -> Record | None:
        """The thing that the arguments name and the result describes without repeating its id."""
        if not is_object(self._value) or self._shapes.own(self._value) or is_wrapped(self._value):
            return None
        if self._tool.out_of:  # what it answers with is what something was taken out of
            return None
        if any(singular(key.lower()) == self._tool.type for key in self._value):
            return None
        named = self._named_by_arguments()
        if named is None or named.type not in self._tool.types:
            return None
        return self._shapes.described(named.type, named.id, self._value)

    def _told(self, text: str) -> Record | None:
        """A result in words: a bare id, or ids among other words."""
        if looks_like_id(text) or (self._tool.verb in _CREATES and _is_handle(text)):
            return Record(self._tool.type or UNTYPED, text)
        found = [self._typed(f) for f in ids_in_text(text, rules=self._rules) if f.kind != "url"]
        named = self._named_by_arguments()
        if not found and (named is None or named.type not in self._tool.types):
            return None
        if named is None:
            named, *found = found
        parts = {f.id: EntityPart(f.type, f.id) for f in found[:MAX_PARTS] if f.id != named.id}
        return Record(named.type, named.id, parts=parts, told=named.type != self._tool.type)

    def _typed(self, found: Found) -> Found:
        """An id that the text says nothing about is of what the tool is about."""
        return replace(found, type=self._tool.type) if found.type == UNTYPED and self._tool.type else found

    def _named_by_arguments(self) -> Found | None:
        for type in self._tool.types:
            for found in self._used:
                if found.type == type:
                    return found
        return next((found for kind in ("id", "path", "name") for found in self._used if found.kind == kind), None)

    def _complete(self, main: Record) -> None:
        """What the arguments add: a name for what was made, the thing it was made in."""
        if not main.name and self._tool.names and is_object(self._arguments):
            main.name = name_of(self._arguments, main.type)
        taken = self._tool.type if self._tool.out_of else ""
        others = [found for found in self._used if found.id != main.id and found.type != taken]
        if main.parent is None and self._tool.names:
            main.parent = next(((f.type, f.id) for f in others if f.kind == "id" and f.type != main.type), None)
        for found in others:
            main.parts.setdefault(found.id, EntityPart(found.type, found.id))

    def _deleted(self, records: Sequence[Record]) -> tuple[EntitySighting, ...]:
        """Tombstones for what the verb was done to; everything else that the call names was only used."""
        if deletion_refused(self._value) or (is_object(self._arguments) and self._arguments.get("dry_run") is True):
            return tuple(self._mentioned(self._used))
        kept, gone = split_deletion(self._value)
        meant = {self._tool.type, UNTYPED} if self._tool.type else {found.type for found in self._used}
        dead = {record.id: record for record in records if record.type in meant and not record.told}
        for found in self._used:
            if found.type in meant and found.id not in dead:
                dead[found.id] = Record(found.type, found.id)
        dead = {id: record for id, record in dead.items() if id not in kept and (gone is None or id in gone)}
        graves = [self._thing(record, "deleted") for record in islice(dead.values(), MOST_RECORDS)]
        return (*self._mentioned([found for found in self._used if found.id not in dead]), *graves)

    def _mentioned(self, used: Sequence[Found]) -> Iterable[EntitySighting]:
        verb = self._tool.verb
        return (EntitySighting(f.type, f.id, how="used", action=verb) for f in used[:MOST_USED])

    def _thing(self, record: Record, how: str) -> EntitySighting:
        parts = tuple(list(record.parts.values())[:MAX_PARTS])
        return EntitySighting(
            type=record.type,
            id=record.id,
            name=record.name,
            how=how,
            action=self._tool.verb,
            parent=record.parent,
            parts=parts,
            omitted_parts=record.more + max(0, len(record.parts) - len(parts)),
        )


def _seated(group: Sequence[Record], rules: EntityRules) -> Sequence[Record]:
    """Those of one list that get a place. The others ride with the first."""
    things, others = group[: rules.max_per_list], group[rules.max_per_list :]
    for record in things:
        record.listed = len(group) > 1
    for record in others:
        keep(things[0].parts, EntityPart(record.type, record.id, record.name, from_same_list=True))
    things[0].more += sum(record.more for record in others)
    return things


def _is_handle(text: str) -> bool:
    """The whole answer of a tool that creates something: a number, or a word with a digit in it."""
    return text.isascii() and as_id(text) is not None and (text.isdigit() or is_code(text))


def _in_words_of(rules: EntityRules, tool: Tool) -> Tool:
    """A tool's nouns as the host's types, those first."""
    if not rules.types:
        return tool
    types = dict.fromkeys(map(rules.type_for, tool.types))
    return replace(tool, types=tuple(sorted(types, key=lambda type: type not in rules.types)))


def _by_host(pattern: str, extractor: Extractor, outcome: ToolObserved) -> tuple[EntitySighting, ...]:
    """A host's extractor: whatever it does wrong is said with its name."""
    try:
        found = [sighting_from(entity, f"answer[{n}]") for n, entity in enumerate(extractor(outcome))]
    except Exception as error:  # a host's code may raise anything, and answer with anything
        reason = f"{type(error).__name__}: {error}"
        raise ExtractorFailed(pattern=pattern, tool=outcome.tool, reason=reason) from error
    verb = tool_named(outcome.tool).verb
    return tuple(replace(thing, action=thing.action or verb) for thing in found)
