"""Detects empty values in a model's update that are filler and not meant to clear a field.

Models with structured output put null, [], {}, "" or [""] into every field for which they have no value. Taken
literally, an update of one field would clear all others. So an empty value counts only if it is the whole update:
`{"blockers": []}` clears the blockers; together with a new goal it is filler, and the blockers stay. Updates by a host
are always taken literally.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from inmind.core.frozen import frozen
from inmind.documents.scratchpad.paths import Path, is_list, is_object


@frozen
class FilteredValues:
    values: Mapping[str, Any]
    filler: tuple[Path, ...]
    """Fields that keep their value, because the empty value sent for them is filler."""


def drop_filler(values: Mapping[str, Any], state: Mapping[str, Any], *, delete: Sequence[Path]) -> FilteredValues:
    """Return the values that take effect on a state from which `delete` was already removed."""
    sent = dict(leaf_values(values))
    if _is_single_change(sent, delete):
        return FilteredValues(values, ())
    empty = [path for path, value in sent.items() if is_empty(value)]
    filler = tuple(path for path in empty if not is_empty(_replaced_value(state, path)))
    # A null for a field without a value would only be noise in the prompt.
    noise = (path for path in empty if sent[path] is None)
    return FilteredValues(_without_leaves(values, {*filler, *noise}), filler)


def is_empty(value: object) -> bool:
    """True for null, blank text, an empty object, and a list of only empty values.

    Some models fill a list with one empty item.
    """
    if isinstance(value, str):
        return not value.strip()
    return value is None or (is_object(value) and not value) or (is_list(value) and all(map(is_empty, value)))


def _is_single_change(sent: Mapping[Path, Any], delete: Sequence[Path]) -> bool:
    """True if one value is sent and nothing is deleted except the value that it replaces."""
    return len(sent) == 1 and all(path[: len(deleted)] == deleted for path in sent for deleted in delete)


def leaf_values(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in an update that is not a non-empty object."""
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            yield from leaf_values(value, path)
        else:
            yield path, value


def _replaced_value(state: Mapping[str, Any], path: Path) -> Any:
    """Return the value that a write to this path replaces; that may be a scalar higher up."""
    held: Any = state
    for key in path:
        if not is_object(held):
            break
        held = held.get(key)
    return held


def _without_leaves(values: Mapping[str, Any], omitted: Collection[Path], above: Path = ()) -> dict[str, Any]:
    """Return the values without these leaves and without objects that become empty."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            if rest := _without_leaves(value, omitted, path):
                kept[key] = rest
        elif path not in omitted:
            kept[key] = value
    return kept
