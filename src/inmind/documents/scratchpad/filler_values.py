"""What a model meant to empty, and what it merely filled in.

Models that answer in a structured form put something into every field of it: null, [], {}, "" or [""] wherever they
have nothing to say. Taken at its word, an update of one field would wipe all the others. So an empty value counts only
where it is all that was said: `{"blockers": []}` clears the blockers, the same beside a new goal is padding, and the
blockers stay. A host's own update is never read like this: it means what it says.
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
    """Fields that keep what they hold, since the empty value for them was padding."""


def drop_filler(values: Mapping[str, Any], state: Mapping[str, Any], *, delete: Sequence[Path]) -> FilteredValues:
    """What of a model's values takes effect on a state from which it has already deleted something."""
    sent = dict(leaf_values(values))
    if _is_single_change(sent, delete):
        return FilteredValues(values, ())
    empty = [path for path, value in sent.items() if is_empty(value)]
    filler = tuple(path for path in empty if not is_empty(_replaced_value(state, path)))
    # A null where there is nothing anyway would only be noise in the prompt.
    noise = (path for path in empty if sent[path] is None)
    return FilteredValues(_without_leaves(values, {*filler, *noise}), filler)


def is_empty(value: object) -> bool:
    """Blank text is, and so is a list of nothing but empty values: some models fill in a list by one item."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (is_object(value) and not value) or (is_list(value) and all(map(is_empty, value)))


def _is_single_change(sent: Mapping[Path, Any], delete: Sequence[Path]) -> bool:
    """One thing is said, and whatever is deleted is only what that replaces."""
    return len(sent) == 1 and all(path[: len(gone)] == gone for path in sent for gone in delete)


def leaf_values(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What an update says, field by field: everything in it that is no object with something inside."""
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            yield from leaf_values(value, path)
        else:
            yield path, value


def _replaced_value(state: Mapping[str, Any], path: Path) -> Any:
    """What a value at this path takes the place of: also a scalar further up, where the state has no object."""
    held: Any = state
    for key in path:
        if not is_object(held):
            break
        held = held.get(key)
    return held


def _without_leaves(values: Mapping[str, Any], omitted: Collection[Path], above: Path = ()) -> dict[str, Any]:
    """Without these leaves, and without the objects in which nothing else was said."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            if rest := _without_leaves(value, omitted, path):
                kept[key] = rest
        elif path not in omitted:
            kept[key] = value
    return kept
