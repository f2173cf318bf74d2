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
from typing import Any, NamedTuple, TypeGuard

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
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

MAX_DEPTH = 200
"""Nested objects and lists together; every JSON parser involved supports this."""

# Python refuses to print longer integers (4,300 digits by default), so they could be stored and never sent.
_MAX_INTEGER_BITS = 13_000

# Keys for prototype pollution in JavaScript, refused like Python's dunder names (`__class__`): a reader of the state in
# any language never receives them.
_UNSAFE_KEYS = frozenset({"constructor", "prototype"})

_SIZE_LIMIT = f"at most {MAX_DOCUMENT_BYTES} bytes of JSON in all"


@frozen
class JsonCopy:
    value: Any
    dropped_keys: tuple[str, ...]
    """Paths of unsafe keys that were dropped."""


def copy_json(source: object, field: str) -> JsonCopy:
    """Return a copy in plain objects, lists and scalars.

    Raises InvalidInput with the path of any other value.
    """
    copy: dict[str, Any] = {}
    dropped: list[str] = []
    size = 0
    pending = [_Visit(source, copy, field)]
    while pending:
        visit = pending.pop()
        node, into, slot = visit.node, visit.into, visit.slot
        if is_object(node):
            entries = _object_items(node, visit)
            dropped += [format_path((*visit.steps[1:], key)) for key, _ in entries if _is_unsafe_key(key)]
            into[slot] = an_object = dict[str, Any]()
            size += visit.fill(an_object, [entry for entry in entries if not _is_unsafe_key(entry[0])], pending)
        elif is_list(node):
            into[slot] = a_list = [None] * _check_length(node, visit)
            size += visit.fill(a_list, enumerate(node), pending)
        elif node is None or isinstance(node, str | int | float):
            into[slot] = scalar = _copy_scalar(node, visit)
            size += _scalar_size(scalar)
        else:
            pending.append(visit._replace(node=_dump_model(node, visit), depth=visit.depth + 1))
        if size > MAX_DOCUMENT_BYTES:
            raise too_large_error(copy[field], field)
    return JsonCopy(copy[field], tuple(dropped))


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


class _Visit(NamedTuple):
    """A value to be copied and its slot in the copy."""

    node: Any
    into: Any
    slot: str | int
    parent: _Visit | None = None
    depth: int = 1
    """Nesting depth, counting objects and lists including itself."""
    object_depth: int = 1
    """Nesting depth, counting objects only."""

    def fill(self, container: Any, parts: Iterable[tuple[str | int, Any]], pending: list[_Visit]) -> int:
        """Copy simple scalars now and queue visits for the rest; returns the size so far."""
        size = 0
        levels, objects = self.depth + 1, self.object_depth + is_object(self.node)
        visits: list[_Visit] = []
        for step, part in parts:
            weight = _scalar_size(part)
            container[step] = part if weight else None
            if not weight:
                visits.append(_Visit(part, container, step, self, levels, objects))
            size += weight + (1 if isinstance(step, int) else len(step) + 4)
        pending += reversed(visits)
        return size

    @property
    def steps(self) -> list[str | int]:
        """Field name and path from there."""
        return [*(self.parent.steps if self.parent else ()), self.slot]

    def error(self, expected: str, value: object = ..., *, at: str = "") -> InvalidInput:
        field, *path = self.steps
        value = self.node if value is ... else value
        return InvalidInput(field=format_path(path, str(field)) + at, value=value, expected=expected)


def _object_items(node: Mapping[Any, Any], visit: _Visit) -> list[tuple[str, Any]]:
    if visit.object_depth > MAX_OBJECT_DEPTH:
        raise visit.error(f"at most {MAX_OBJECT_DEPTH} levels of objects")
    _check_length(node, visit)
    try:
        entries = list(node.items())
    except Exception as error:  # a mapping of the caller may raise anything
        raise visit.error("an object that can be read") from error
    return [(_check_key(key, visit), item) for key, item in entries]


def _check_key(key: Any, visit: _Visit) -> str:
    if type(key) is str and _scalar_size(key):
        return key
    if not isinstance(key, str):
        raise visit.error("a string", key, at=" (a key)")
    return str(_copy_scalar(key, visit, at=" (a key)"))


def _check_length(node: Mapping[Any, Any] | Sequence[Any], visit: _Visit) -> int:
    if visit.depth > MAX_DEPTH:
        raise visit.error(f"at most {MAX_DEPTH} levels of nesting")
    if 2 * len(node) > MAX_DOCUMENT_BYTES:
        raise visit.error(_SIZE_LIMIT, f"{len(node)} items")
    return len(node)


def _scalar_size(value: object) -> int:
    """Return the minimum JSON size of a plain scalar; 0 if it needs a visit."""
    if value is None or isinstance(value, bool):
        return 4
    if type(value) is str:
        return len(value) + 2 if len(value) <= MAX_DOCUMENT_BYTES and _is_storable_text(value) else 0
    if type(value) is int:
        return 1 if value.bit_length() <= _MAX_INTEGER_BITS else 0
    return 1 if type(value) is float and math.isfinite(value) else 0


def _copy_scalar(value: str | float | None, visit: _Visit, *, at: str = "") -> str | float | None:
    """Return a plain scalar; subclasses (enum members, numpy numbers) become their base type."""
    if isinstance(value, str):
        if len(value) > MAX_DOCUMENT_BYTES:
            raise visit.error(_SIZE_LIMIT, f"{len(value)} characters", at=at)
        if not _is_storable_text(value):
            raise visit.error("text without NUL characters and lone surrogates", value, at=at)
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MAX_INTEGER_BITS:
            # Python refuses to print the number itself.
            raise visit.error("a shorter integer", f"{value.bit_length()} bits")
        return int.__int__(value)
    if not math.isfinite(value):
        raise visit.error("a finite number")
    return float.__float__(value)


def _is_storable_text(value: str) -> bool:
    if "\x00" in value:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _dump_model(node: Any, visit: _Visit) -> Any:
    """Return the fields that are set on a pydantic object."""
    if visit.depth > MAX_DEPTH or isinstance(node, type) or not hasattr(node, "model_dump"):
        raise visit.error("a value that JSON can carry")
    try:
        return _by_validation_names(node.model_dump(mode="json", by_alias=True, exclude_unset=True), node)
    except Exception as error:  # an object of the caller may raise anything
        raise visit.error("an object that can be dumped") from error


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


def _is_unsafe_key(key: str) -> bool:
    return key in _UNSAFE_KEYS or (len(key) > 4 and key.startswith("__") and key.endswith("__"))
