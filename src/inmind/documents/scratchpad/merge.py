"""How a scratchpad takes in an update: objects merge, everything else replaces.

A model that sends one field means one field, so what an update does not mention stays. Only the objects along the
paths that it touches are copied, each once and none of what is inside it; all else is shared between the states, which
nobody ever changes. So merging costs what the update says and the keys beside it, and not what the pad holds. It keeps
its own stack, so no depth can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inmind.documents.scratchpad.paths import ABSENT, is_list, is_object, value_at


def merge_update(
    state: Mapping[str, Any], values: Mapping[str, Any], delete: Iterable[Sequence[str]] = ()
) -> dict[str, Any]:
    """The state after an update: what it deletes goes first, so that it can also replace an object whole."""
    root = dict(delete_paths(state, delete))
    pending = [(root, values)]
    while pending:
        into, said = pending.pop()
        for key, value in said.items():
            held = into.get(key)
            if is_object(held) and is_object(value):
                into[key] = copy = dict(held)
                pending.append((copy, value))
            else:
                into[key] = value
    return root


def delete_paths(state: Mapping[str, Any], delete: Iterable[Sequence[str]]) -> Mapping[str, Any]:
    """The state less what these paths lead to. One that leads nowhere takes nothing with it."""
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
    """Notes are lines: what is appended begins one of its own."""
    return f"{text}\n{more}" if text and more and not text.endswith("\n") else text + more


def json_equal(first: Any, second: Any) -> bool:
    """Whether two values are the same JSON. Of 1 and true, Python alone would say so."""
    if first is second:
        return True
    if first != second or isinstance(first, bool) != isinstance(second, bool):
        return False
    if is_object(first):
        return all(json_equal(value, second[key]) for key, value in first.items())
    return all(map(json_equal, first, second)) if is_list(first) else True
