"""Paths into a scratchpad: formatting for messages and parsing of input.

Keys may contain dots and slashes. So a path is a tuple of keys, and text only in messages and input: formatted so that
no two paths have the same text, and parsed with the keys of the state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeGuard

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
