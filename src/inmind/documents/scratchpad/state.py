"""Scratchpads of a stream: updates, the fold of their events, and merging.

An update is a value: fields to merge and delete, and the report for the caller (dropped keys, filler, paths not found).
The state is not changed by planning it, so a refused update has no effect.

Models with structured output put null, [], {}, "" or [""] into every field for which they have no value. Taken
literally, an update of one field would clear all others. So an empty value counts only if it is the whole update:
`{"blockers": []}` clears the blockers; together with a new goal it is filler, and the blockers stay. Updates by a host
are always taken literally.

Any sequence of events leads to a state, since a fold that raises would make the stream unreadable forever. An update of
an object or a text is also applied if the scratchpad held the other kind; it then starts empty.

A model that sends one field means one field, so objects are merged, and everything else is replaced. Only objects on
updated paths are copied; states share everything else and are never modified. An imported journal can have deeper
states than an update may write, so states are merged and compared without recursion.

The three-way merge compares, for each field or line, the state at the fork (`base`), the parent's (`ours`) and the
child's (`theirs`). A change on one side is taken. If both appended, both stay. On any other conflict the parent's value
stays, and the report has all three. Merging a second time changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.core.merge3 import merge_lines
from inmind.documents.document import MAX_DOCUMENT_BYTES, validate_text
from inmind.documents.scratchpad.values import (
    ABSENT,
    Path,
    copy_json,
    format_path,
    is_list,
    is_object,
    parse_path,
    too_large_error,
    value_at,
)
from inmind.errors import InvalidInput


def merge_update(
    state: Mapping[str, Any], values: Mapping[str, Any], delete: Iterable[Sequence[str]] = ()
) -> dict[str, Any]:
    """Return the state after an update.

    Deletions come first, so that an update can replace a whole object.
    """
    merged = dict(delete_paths(state, delete))
    pending = [(merged, values)]
    while pending:
        into, update = pending.pop()
        for key, value in update.items():
            held = into.get(key)
            if is_object(held) and is_object(value):
                into[key] = copy = dict(held)
                pending.append((copy, value))
            else:
                into[key] = value
    return merged


def delete_paths(state: Mapping[str, Any], delete: Iterable[Sequence[str]]) -> Mapping[str, Any]:
    """Return the state without these paths; a path that does not exist is ignored."""
    for path in delete:
        if path and value_at(state, path) is not ABSENT:
            state = _without(state, path)
    return state


def _without(state: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    *above, last = path
    root = into = dict(state)
    for key in above:
        inner = into[key] = dict(into[key])
        into = inner
    del into[last]
    return root


def append_text(text: str, more: str) -> str:
    """Append text, starting a new line."""
    return f"{text}\n{more}" if text and more and not text.endswith("\n") else text + more


def json_equal(first: Any, second: Any) -> bool:
    """True if two values are the same JSON. In Python alone, 1 == True."""
    pending = [(first, second)]
    while pending:
        one, other = pending.pop()
        if one is other:
            continue
        if is_object(one) and is_object(other):
            if one.keys() != other.keys():
                return False
            pending += [(value, other[key]) for key, value in one.items()]
        elif is_list(one) and is_list(other):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif isinstance(one, bool) != isinstance(other, bool) or one != other:
            return False
    return True


ScratchpadState = str | Mapping[str, Any]
ScratchpadEvent = ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside


@frozen
class SavedScratchpad:
    state: ScratchpadState
    version: int
    """Sequence number of the last event that wrote it."""
    source: str
    """Id of that event."""
    trust: Trust
    """Lowest trust of all events since it started."""


@frozen
class Scratchpads:
    """All scratchpads of one stream, by name."""

    by_name: Mapping[str, SavedScratchpad] = field(default_factory=dict[str, SavedScratchpad])

    def apply(self, event: Event) -> Scratchpads:
        payload = event.payload
        if not isinstance(payload, ScratchpadEvent):
            return self
        saved = self.get(payload.scratchpad)
        state, is_new = _apply(saved.state if saved else None, payload)
        trust = event.trust if is_new or saved is None else min(saved.trust, event.trust)
        written = SavedScratchpad(state, version=event.seq, source=event.id, trust=trust)
        return Scratchpads({**self.by_name, payload.scratchpad: written})

    def get(self, name: str) -> SavedScratchpad | None:
        return self.by_name.get(name)


def known_state_after(payload: EventPayload, known: ScratchpadState | None) -> ScratchpadState | None:
    """Return the state known to a reader after this event.

    Returns None if it was never known completely.
    """
    if not isinstance(payload, ScratchpadEvent):
        return known
    replaces = isinstance(payload, ScratchpadStarted | ScratchpadSetAside) or (
        isinstance(payload, ScratchpadWritten) and not payload.append
    )
    return _apply(known, payload)[0] if replaces or known is not None else None


def _apply(state: ScratchpadState | None, payload: ScratchpadEvent) -> tuple[ScratchpadState, bool]:
    """Return the new state, and True if nothing of the previous state is in it."""
    match payload:
        case ScratchpadStarted():
            return payload.state, True
        case ScratchpadWritten(append=True) if isinstance(state, str):
            return append_text(state, payload.text), False
        case ScratchpadWritten():
            return payload.text, True
        case ScratchpadMerged() if isinstance(state, Mapping):
            return merge_update(state, payload.values, payload.delete), False
        case ScratchpadMerged():
            return merge_update({}, payload.values, payload.delete), True
        case ScratchpadSetAside():
            return {}, True


@frozen
class MergeConflict:
    """A value that parent and child changed differently; ABSENT for a missing one."""

    path: str
    base: Any
    ours: Any
    theirs: Any

    def __post_init__(self) -> None:
        """Copy the values: the report goes to the host, which must not modify the state."""
        for name in ("base", "ours", "theirs"):
            object.__setattr__(self, name, deepcopy(getattr(self, name)))


@frozen(kw_only=True)
class ScratchpadMerge:
    """Changes to apply to the parent's state, and the report.

    The path of a text or a whole state is empty.
    """

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """The new text; None if it stays."""
    taken: tuple[str, ...] = ()
    """Paths that only the child changed."""
    combined: tuple[str, ...] = ()
    """Paths to which both appended: the parent's items, then the child's new ones."""
    conflicts: tuple[MergeConflict, ...] = ()


def merge_three_way(base: ScratchpadState, ours: ScratchpadState, theirs: ScratchpadState) -> ScratchpadMerge:
    """Merge the child's changes since `base` into the parent's state."""
    if json_equal(theirs, base) or json_equal(theirs, ours):
        return ScratchpadMerge()
    if isinstance(ours, str) and isinstance(theirs, str):
        return _merge_text(base if isinstance(base, str) else "", ours, theirs)
    if not is_object(ours) or not is_object(theirs):
        return ScratchpadMerge(conflicts=(MergeConflict("", base, ours, theirs),))
    differences = list(_compare(base, ours, theirs))
    changes = [one for one in differences if isinstance(one, _Change)]
    return ScratchpadMerge(
        values=_to_nested_values(change for change in changes if change.value is not ABSENT),
        delete=tuple(change.path for change in changes if change.value is ABSENT),
        taken=tuple(format_path(change.path) for change in changes if not change.combined),
        combined=tuple(format_path(change.path) for change in changes if change.combined),
        conflicts=tuple(one for one in differences if isinstance(one, MergeConflict)),
    )


@frozen
class _Change:
    path: Path
    value: Any
    combined: bool = False


def _compare(*states: Any) -> Iterator[_Change | MergeConflict]:
    """Yield what the child changed, in the order of its fields. `states`: base, ours, theirs."""
    pending: list[tuple[Path, Any]] = [((), states)]
    while pending:
        path, (base, ours, theirs) = pending.pop()
        if json_equal(theirs, base) or json_equal(theirs, ours):
            continue
        if is_object(ours) and is_object(theirs):
            fields: list[Mapping[str, Any]] = [base if is_object(base) else {}, ours, theirs]
            keys = reversed({**theirs, **fields[0]})
            pending += [((*path, key), [state.get(key, ABSENT) for state in fields]) for key in keys]
        elif json_equal(ours, base):
            yield _Change(path, theirs)
        elif (items := _merge_lists(base, ours, theirs)) is not None:
            if len(items) > len(ours):
                yield _Change(path, items, combined=True)
        else:
            yield MergeConflict(format_path(path), base, ours, theirs)


def _merge_lists(base: Any, ours: Any, theirs: Any) -> list[Any] | None:
    """Merge lists to which both only added items; None for other lists.

    The result has our items, then the child's items that we do not have.
    """
    base_items: Any = [] if base is ABSENT or base is None else base
    if not is_list(base_items) or not is_list(ours) or not is_list(theirs):
        return None
    length = len(base_items)
    mine = _added_items(base_items, ours)
    if mine is None or not json_equal(theirs[:length], base_items):
        return None
    known = {_canonical_json(item) for item in mine}
    return [*ours, *(item for item in theirs[length:] if _canonical_json(item) not in known)]


def _added_items(base_items: Sequence[Any], items: Sequence[Any]) -> list[Any] | None:
    """Return the items added to a list at any place; None if items were removed or moved.

    Another child may have been merged before, so its items may be between the base items.
    """
    added: list[Any] = []
    matched = 0
    for item in items:
        if matched < len(base_items) and json_equal(item, base_items[matched]):
            matched += 1
        else:
            added.append(item)
    return added if matched == len(base_items) else None


def _merge_text(base: str, ours: str, theirs: str) -> ScratchpadMerge:
    if ours == base:
        return ScratchpadMerge(text=theirs, taken=("",))
    both = merge_lines(base, ours, theirs)
    if both is None:
        return ScratchpadMerge(conflicts=(MergeConflict("", base, ours, theirs),))
    return ScratchpadMerge(text=both, combined=("",)) if both != ours else ScratchpadMerge()


def _to_nested_values(changes: Iterable[_Change]) -> dict[str, Any]:
    """Return one object with all changes; no path is inside another."""
    values: dict[str, Any] = {}
    for change in changes:
        *above, last = change.path
        into = values
        for key in above:
            into = into.setdefault(key, {})
        into[last] = change.value
    return values


_canonical_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=dict).encode


def drop_filler(
    values: Mapping[str, Any], state: Mapping[str, Any], *, delete: Sequence[Path]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the values that take effect, and the fields that keep their value.

    `state`: the state without `delete`.
    """
    sent = [path for path, _ in leaf_values(values)]
    # A single value is meant, also if the value that it replaces is deleted with it.
    if len(sent) == 1 and all(sent[0][: len(path)] == path for path in delete):
        return dict(values), ()
    filler: list[str] = []

    def keep(update: Mapping[str, Any], held: Any, above: Path) -> dict[str, Any]:
        """`held`: the value that these values replace; that may be a scalar higher up."""
        kept: dict[str, Any] = {}
        for key, value in update.items():
            path, replaced = (*above, key), held.get(key) if is_object(held) else held
            if is_object(value) and value:
                if rest := keep(value, replaced, path):
                    kept[key] = rest
            elif is_empty(value) and not is_empty(replaced):
                filler.append(format_path(path))
            elif value is not None:  # a null for a field without a value would only be noise in the prompt
                kept[key] = value
        return kept

    return keep(values, state, ()), tuple(filler)


def is_empty(value: object) -> bool:
    """True for null, blank text, an empty object, and a list of only empty values.

    Some models fill a list with one empty item.
    """
    if isinstance(value, str):
        return not value.strip()
    return value is None or (is_object(value) and not value) or (is_list(value) and all(map(is_empty, value)))


def leaf_values(values: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in an update that is not a non-empty object."""
    for key, value in values.items():
        path = (*above, key)
        if is_object(value) and value:
            yield from leaf_values(value, path)
        else:
            yield path, value


@frozen(kw_only=True)
class ScratchpadUpdate:
    """The effect of an update, and the report for the caller."""

    state: ScratchpadState
    """The state after the update."""
    changed: bool
    """True if the state differs from the one before."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """The text written; None for an object."""
    append: bool = False
    dropped: tuple[str, ...] = ()
    """Paths of unsafe keys, like `__proto__`."""
    filler: tuple[str, ...] = ()
    """Paths that keep their value, because the empty value sent for them is filler."""
    missing: tuple[str, ...] = ()
    """Paths to delete that do not exist."""

    def event(self, pad: str) -> ScratchpadMerged | ScratchpadWritten:
        if self.text is not None:
            return ScratchpadWritten(scratchpad=pad, text=self.text, append=self.append)
        return ScratchpadMerged(scratchpad=pad, values=self.values, delete=self.delete)


def plan_object_update(
    state: ScratchpadState | None, values: object, delete: object = (), *, may_have_filler: bool = False
) -> ScratchpadUpdate:
    """Plan an update of an object. `may_have_filler`: the values come from a model."""
    held: Mapping[str, Any] = state if is_object(state) else {}
    accepted, dropped = copy_json(values, "values")
    if not is_object(accepted):
        raise InvalidInput(field="values", value=values, expected="an object, since this scratchpad holds an object")
    requested = {path: value_at(held, path) is not ABSENT for path in _parse_paths(held, delete)}
    existing = tuple(path for path, exists in requested.items() if exists)
    remaining = delete_paths(held, existing)
    filler: tuple[str, ...] = ()
    if may_have_filler:
        accepted, filler = drop_filler(accepted, remaining, delete=tuple(requested))
    after = merge_update(remaining, accepted)
    if len(to_json(after).encode()) > MAX_DOCUMENT_BYTES:
        raise too_large_error(accepted, "values")
    return ScratchpadUpdate(
        state=after,
        changed=not json_equal(after, held),
        values=accepted,
        delete=existing,
        dropped=dropped,
        filler=filler,
        missing=tuple(format_path(path) for path, exists in requested.items() if not exists),
    )


def plan_text_update(
    state: ScratchpadState | None, text: object, *, append: bool = False, may_have_filler: bool = False
) -> ScratchpadUpdate:
    """Plan an update of a text; an object is refused.

    `may_have_filler`: the text comes from a model. A blank text is then filler and changes nothing.
    """
    if not isinstance(text, str):
        raise InvalidInput(field="text", value=text, expected="a text, since this scratchpad holds text")
    held = state if isinstance(state, str) else ""
    if may_have_filler and not text.strip():
        return ScratchpadUpdate(
            state=held, changed=False, text=text, append=append, filler=("text",) if held and not append else ()
        )
    after = validate_text(append_text(held, validate_text(text)) if append else text)
    return ScratchpadUpdate(state=after, changed=after != held, text=text, append=append)


def _parse_paths(state: Mapping[str, Any], delete: object) -> list[Path]:
    """Parse the paths to delete; models may send null."""
    if delete is None:
        return []
    if not is_list(delete):
        raise InvalidInput(field="delete", value=delete, expected="a list of paths")
    return [parse_path(one, state, f"delete[{place}]") for place, one in enumerate(delete)]
