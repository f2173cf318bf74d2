"""What a child has changed comes home: its changes are taken over, and nobody's work is lost without a word.

Three states decide, field by field, or line by line: what the child began with, what the parent has now, what the child
has now. Where only one of them changed something, that is taken. Where both appended, both stay. Where both changed the
same thing otherwise, the parent's stays, and the report has all three. Coming home a second time changes nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.merge3 import of_both
from inmind.documents.scratchpad.merge import json_equal
from inmind.documents.scratchpad.paths import ABSENT, Path, format_path, is_list, is_object
from inmind.documents.scratchpad.state import ScratchpadState


@frozen
class MergeConflict:
    """What parent and child have both changed, each in its own way. ABSENT where there is nothing."""

    path: str
    base: Any
    ours: Any
    theirs: Any

    def __post_init__(self) -> None:
        """Copies: a report goes to the host, and the state's own objects stay here."""
        for name in ("base", "ours", "theirs"):
            object.__setattr__(self, name, deepcopy(getattr(self, name)))


@frozen(kw_only=True)
class ScratchpadMerge:
    """What to apply to the parent's state, and what to tell. The path of a text, as of a whole state, is empty."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """The text from now on; None where it stays as it is."""
    taken: tuple[str, ...] = ()
    """What only the child had changed."""
    combined: tuple[str, ...] = ()
    """What both had appended to: the parent's, then what only the child had."""
    conflicts: tuple[MergeConflict, ...] = ()


def merge_three_way(base: ScratchpadState, ours: ScratchpadState, theirs: ScratchpadState) -> ScratchpadMerge:
    """What the child's changes since `base` come to in the parent."""
    if json_equal(theirs, base) or json_equal(theirs, ours):
        return ScratchpadMerge()
    if isinstance(ours, str) and isinstance(theirs, str):
        return _merge_text(base if isinstance(base, str) else "", ours, theirs)
    if not is_object(ours) or not is_object(theirs):
        return ScratchpadMerge(conflicts=(MergeConflict("", base, ours, theirs),))
    found = list(_compare((), base, ours, theirs))
    changes = [one for one in found if isinstance(one, _Change)]
    return ScratchpadMerge(
        values=_to_nested_values(change for change in changes if change.value is not ABSENT),
        delete=tuple(change.path for change in changes if change.value is ABSENT),
        taken=tuple(format_path(change.path) for change in changes if not change.combined),
        combined=tuple(format_path(change.path) for change in changes if change.combined),
        conflicts=tuple(one for one in found if isinstance(one, MergeConflict)),
    )


@frozen
class _Change:
    path: Path
    value: Any
    combined: bool = False


def _compare(path: Path, base: Any, ours: Any, theirs: Any) -> Iterator[_Change | MergeConflict]:
    if json_equal(theirs, base) or json_equal(theirs, ours):
        return
    if is_object(ours) and is_object(theirs):
        began: Mapping[str, Any] = base if is_object(base) else {}
        for key in {**theirs, **began}:
            three = [state.get(key, ABSENT) for state in (began, ours, theirs)]
            yield from _compare((*path, key), *three)
    elif json_equal(ours, base):
        yield _Change(path, theirs)
    elif (items := _merge_lists(base, ours, theirs)) is not None:
        if len(items) > len(ours):
            yield _Change(path, items, combined=True)
    else:
        yield MergeConflict(format_path(path), base, ours, theirs)


def _merge_lists(base: Any, ours: Any, theirs: Any) -> list[Any] | None:
    """One list, where both have only added to it: ours, then what the child has appended and we have not added too."""
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
    """What was added to a list, wherever; None if something was taken out of it, or moved.

    Another child may have come home before: what it brought stands among what this one began with.
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
    both = of_both(base, ours, theirs)
    if both is None:
        return ScratchpadMerge(conflicts=(MergeConflict("", base, ours, theirs),))
    return ScratchpadMerge(text=both, combined=("",)) if both != ours else ScratchpadMerge()


def _to_nested_values(changes: Iterable[_Change]) -> dict[str, Any]:
    """One object that says all of them. Each has a place for itself, and none is inside another's."""
    values: dict[str, Any] = {}
    for change in changes:
        *above, last = change.path
        into = values
        for key in above:
            into = into.setdefault(key, {})
        into[last] = change.value
    return values


_canonical_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=dict).encode
