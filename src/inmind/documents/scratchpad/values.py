"""Values of a scratchpad: copies of input as plain JSON, and paths to values.

Input is validated and copied in one walk; errors name the exact path. It is a copy, because a caller that keeps the
original could change the state without an event. The walk uses an explicit stack and counts size, so depth, cycles and
large input raise an error with the path and never crash.

A key may have dots and slashes. So a path is a tuple of keys, and text only in messages and input: formatted so that
no two paths have the same text, and parsed with the keys of the state.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeGuard

from inmind.core.encoding import to_json
from inmind.core.json import MAX_DEPTH, MAX_INTEGER_BITS
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.errors import InvalidInput

Path = tuple[str, ...]

MAX_PATH_CHARACTERS = 200
"""Longer formatted paths are cut, to keep messages short."""


class Absent(Enum):
    """Marks a missing value, since null is a value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return self.value

    def __bool__(self) -> bool:
        return False


ABSENT = Absent.ABSENT


def format_path(path: Iterable[str | int], root: str = "") -> str:
    """Format a path: `owner.name`, `steps[2].title`, and `["a.b"].c` for an ambiguous key."""
    text = root
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _SIMPLE_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=not step.isprintable())}]"
        if len(text) > MAX_PATH_CHARACTERS:
            return f"{text[:MAX_PATH_CHARACTERS]}…"
    return text


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict | Mapping)  # dict first: an isinstance check of an ABC is slow


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)


def value_at(state: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return the value at a path; ABSENT if there is none. No path leads into a list."""
    held: Any = state
    for key in path:
        if not is_object(held):
            return ABSENT
        held = held.get(key, ABSENT)
    return held


def parse_pointer(pointer: str) -> Path | None:
    """Return the keys of a JSON Pointer that starts with a slash; None if it is invalid."""
    if not pointer.startswith("/") or _BAD_ESCAPE.search(pointer):
        return None
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])


def parse_path(path_input: object, state: Mapping[str, Any], field: str) -> Path:
    """Parse a list of keys, a JSON Pointer, or a name.

    A name is a key of the state, else keys separated by dots. An ambiguous name is refused, and so is a path into a
    list, which is replaced as a whole: a wrong guess deletes data.
    """
    path = _parse(path_input, state, field)
    if path is None:
        raise InvalidInput(
            field=field, value=path_input, expected='a path: ["owner", "name"], "owner.name", "/owner/name"'
        )
    held: Any = state
    for place, key in enumerate(path):
        if is_list(held):
            expected = f"a path that ends at {format_path(path[:place])}, since lists are replaced as a whole"
            raise InvalidInput(field=field, value=path_input, expected=expected)
        if not is_object(held):
            break
        held = held.get(key)
    return path


def _parse(path_input: object, state: Mapping[str, Any], field: str) -> Path | None:
    if is_list(path_input):
        return tuple(path_input) if path_input and all(isinstance(key, str) for key in path_input) else None
    if not isinstance(path_input, str):
        return None
    if path_input.startswith("/"):
        return parse_pointer(path_input)
    dotted = tuple(path_input.split("."))
    if path_input not in state:
        return dotted
    if len(dotted) > 1 and value_at(state, dotted) is not ABSENT:
        expected = f"a list of keys, since it can mean {[path_input]} or {list(dotted)}"
        raise InvalidInput(field=field, value=path_input, expected=expected)
    return (path_input,)


_SIMPLE_KEY = re.compile(r"[\w-]+")
_BAD_ESCAPE = re.compile(r"~(?![01])")


MAX_OBJECT_DEPTH = 32
"""Nested objects: more than any scratchpad needs, and few enough for every walk over them."""

# Keys for prototype pollution in JavaScript, refused like Python's dunder names (`__class__`): a reader of the state in
# any language never receives them.
_UNSAFE_KEYS = frozenset({"constructor", "prototype"})

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SIZE_LIMIT = f"at most {MAX_DOCUMENT_BYTES} bytes of JSON in all"


def copy_json(source: object, field: str) -> tuple[Any, tuple[str, ...]]:
    """Return a copy in plain objects, lists and scalars, and the paths of dropped unsafe keys.

    Raises InvalidInput with the path of any other value.
    """
    copier = _Copier(field)
    copier.copy_into(copier.copy, field, source, (), 1)
    return copier.copy[field], tuple(copier.dropped)


def too_large_error(value: Any, field: str) -> InvalidInput:
    """Return an error that names the largest part, as long as one part has most of the size."""
    path: list[str | int] = []
    size = len(to_json(value))
    while is_object(value) or is_list(value):
        parts = value.items() if is_object(value) else enumerate(value)
        sized = [(len(to_json(part)), step, part) for step, part in parts]
        largest, step, part = max(sized, key=lambda one: one[0], default=(0, "", None))
        if 2 * largest < size:
            break
        path.append(step)
        value, size = part, largest
    return InvalidInput(field=format_path(path, field), value=f"{size} characters or more", expected=_SIZE_LIMIT)


class _Copier:
    """Copies one value; keeps the size so far and the unsafe keys that it dropped."""

    def __init__(self, field: str) -> None:
        self.field, self.size = field, 0
        self.copy: dict[str, Any] = {}
        self.dropped: list[str] = []

    def copy_into(self, into: Any, slot: str | int, node: Any, path: _Steps, objects: int) -> None:
        """Copy a value to its slot in a container. `objects`: depth of nested objects."""
        if hasattr(node, "model_dump") and not isinstance(node, type):
            node = self._dump_model(node, path)
        if (is_object(node) or is_list(node)) and len(path) >= MAX_DEPTH:
            raise self._error(path, node, f"at most {MAX_DEPTH} levels of nesting")
        if is_object(node):
            if objects > MAX_OBJECT_DEPTH:
                raise self._error(path, node, f"at most {MAX_OBJECT_DEPTH} levels of objects")
            into[slot] = copy = dict[str, Any]()
            for key, item in self._safe_entries(node, path):
                self.size += len(key) + 4
                self.copy_into(copy, key, item, (*path, key), objects + 1)
        elif is_list(node):
            into[slot] = copy = list[Any]()
            for place, item in enumerate(node):
                copy.append(None)
                self.copy_into(copy, place, item, (*path, place), objects)
        else:
            into[slot] = copy = self._copy_scalar(node, path)
            self.size += len(copy) + 2 if isinstance(copy, str) else 2
        if self.size > MAX_DOCUMENT_BYTES:
            raise too_large_error(self.copy[self.field], self.field)

    def _safe_entries(self, node: Mapping[Any, Any], path: _Steps) -> list[tuple[str, Any]]:
        try:
            entries = list(node.items())
        except Exception as error:  # a mapping of the caller may raise anything
            raise self._error(path, node, "an object that can be read") from error
        kept: list[tuple[str, Any]] = []
        for key, item in entries:
            if not isinstance(key, str):
                raise self._error(path, key, "a string", at=" (a key)")
            plain = str(self._copy_scalar(key, path, at=" (a key)"))
            if plain in _UNSAFE_KEYS or (len(plain) > 4 and plain.startswith("__") and plain.endswith("__")):
                self.dropped.append(format_path((*path, plain)))
            else:
                kept.append((plain, item))
        return kept

    def _copy_scalar(self, value: object, path: _Steps, *, at: str = "") -> str | float | None:
        """Return a plain scalar; subclasses (enum members, numpy numbers) become their base type."""
        match value:
            case str() if len(value) > MAX_DOCUMENT_BYTES:
                raise self._error(path, f"{len(value)} characters", _SIZE_LIMIT, at=at)
            case str():
                if _UNSTORABLE.search(value):
                    raise self._error(path, value, "text without NUL characters and lone surrogates", at=at)
                return str.__str__(value)
            case None | bool():
                return value
            case int():
                if value.bit_length() > MAX_INTEGER_BITS:  # Python refuses to print the number itself
                    raise self._error(path, f"{value.bit_length()} bits", "a shorter integer")
                return int.__int__(value)
            case float():
                if not math.isfinite(value):
                    raise self._error(path, value, "a finite number")
                return float.__float__(value)
            case _:
                raise self._error(path, value, "a value that JSON can carry")

    def _dump_model(self, node: Any, path: _Steps) -> Any:
        """Return the fields that are set on a pydantic object."""
        try:
            return _by_validation_names(node.model_dump(mode="json", by_alias=True, exclude_unset=True), node)
        except Exception as error:  # an object of the caller may raise anything
            raise self._error(path, node, "an object that can be dumped") from error

    def _error(self, path: _Steps, value: object, expected: str, *, at: str = "") -> InvalidInput:
        return InvalidInput(field=format_path(path, self.field) + at, value=value, expected=expected)


_Steps = tuple[str | int, ...]


def _by_validation_names(dumped: Any, node: object) -> Any:
    """Rename dumped keys to the names that the model validates, as in its JSON Schema.

    Dump aliases may differ.
    """
    fields: Mapping[str, Any] = getattr(type(node), "model_fields", {})
    if is_object(dumped) and fields:
        written = {field.serialization_alias or name: name for name, field in fields.items()}
        return {
            _validation_name(fields, written.get(key, key)): _by_validation_names(
                value, getattr(node, written.get(key, key), None)
            )
            for key, value in dumped.items()
        }
    if is_object(dumped) and is_object(node) and len(dumped) == len(node):
        return {
            key: _by_validation_names(value, inner)
            for (key, value), inner in zip(dumped.items(), node.values(), strict=True)
        }
    if is_list(dumped) and is_list(node) and len(dumped) == len(node):
        return [_by_validation_names(value, inner) for value, inner in zip(dumped, node, strict=True)]
    return dumped


def _validation_name(fields: Mapping[str, Any], name: str) -> str:
    """Return the first alias, which the schema shows; a path alias has no name."""
    alias = fields[name].validation_alias if name in fields else name
    alias = next(iter(getattr(alias, "choices", [alias])))
    return alias if isinstance(alias, str) else name
