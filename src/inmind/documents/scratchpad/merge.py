"""Applies an update to a scratchpad state: objects are merged, everything else is replaced.

A model that sends one field means one field, so fields not in the update stay. Only objects on updated paths are
copied, each once and shallow; states share everything else and are never modified. Merging costs the size of the
update plus the keys next to it, not the size of the state. An explicit stack avoids Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inmind.documents.scratchpad.paths import ABSENT, is_list, is_object, value_at


def merge_update(
    state: Mapping[str, Any], values: Mapping[str, Any], delete: Iterable[Sequence[str]] = ()
) -> dict[str, Any]:
    """Return the state after an update.

    Deletions come first, so that an update can replace a whole object.
    """
    root = dict(delete_paths(state, delete))
    pending = [(root, values)]
    while pending:
        into, update = pending.pop()
        for key, value in update.items():
            held = into.get(key)
            if is_object(held) and is_object(value):
                into[key] = copy = dict(held)
                pending.append((copy, value))
            else:
                into[key] = value
    return root


def delete_paths(state: Mapping[str, Any], delete: Iterable[Sequence[str]]) -> Mapping[str, Any]:
    """Return the state without these paths; a path that does not exist is ignored."""
    copies: dict[int, dict[str, Any]] = {}

    def own_copy(held: Mapping[str, Any]) -> dict[str, Any]:
        if id(held) in copies:
            return copies[id(held)]
        copy = dict(held)
        return copies.setdefault(id(copy), copy)

    for path in delete:
        if not path or value_at(state, path) is ABSENT:
            continue
        state = into = own_copy(state)
        for key in path[:-1]:
            into[key] = inner = own_copy(into[key])
            into = inner
        del into[path[-1]]
    return state


def append_text(text: str, more: str) -> str:
    """Append text, starting a new line."""
    return f"{text}\n{more}" if text and more and not text.endswith("\n") else text + more


def json_equal(first: Any, second: Any) -> bool:
    """True if two values are the same JSON. In Python alone, 1 == True."""
    if first is second:
        return True
    if first != second or isinstance(first, bool) != isinstance(second, bool):
        return False
    if is_object(first):
        return all(json_equal(value, second[key]) for key, value in first.items())
    return all(map(json_equal, first, second)) if is_list(first) else True
