"""How a scratchpad takes in an update: objects merge, everything else replaces.

A model that sends one field means one field, so what an update does not mention stays. Only the objects along the
paths that it touches are copied, and all others are shared between the states, which nobody ever changes: an update
costs what it says, and not what the pad holds. Merging keeps its own stack, so no depth can exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inmind.scratchpad.paths import is_list, is_object


def merged(state: Mapping[str, Any], values: Mapping[str, Any], delete: Iterable[Sequence[str]] = ()) -> dict[str, Any]:
    """The state after an update: what it deletes goes first, so that it can also replace an object whole."""
    root = dict(without(state, delete))
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


def without(state: Mapping[str, Any], delete: Iterable[Sequence[str]]) -> Mapping[str, Any]:
    """The state less what these paths lead to. One that leads nowhere takes nothing with it."""
    for path in delete:
        state = _less(state, path)
    return state


def appended(text: str, more: str) -> str:
    """Notes are lines: what is appended begins one of its own."""
    return f"{text}\n{more}" if text and more and not text.endswith("\n") else text + more


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON. Of 1 and true, Python alone would say so."""
    if one is other:
        return True
    if one != other or isinstance(one, bool) != isinstance(other, bool):
        return False
    if is_object(one):
        return all(same(value, other[key]) for key, value in one.items())
    return all(map(same, one, other)) if is_list(one) else True


def _less(state: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    if not path:
        return state
    *above, last = path
    root = into = dict(state)
    for key in above:
        held = into.get(key)
        if not is_object(held):
            return state
        copy = dict(held)
        into[key] = copy
        into = copy
    into.pop(last, None)
    return root
