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
from inmind.documents.scratchpad.merge import same
from inmind.documents.scratchpad.paths import ABSENT, Path, is_list, is_object, spelt
from inmind.documents.scratchpad.state import State


@frozen
class Clash:
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
class Reconciled:
    """What to apply to the parent's state, and what to tell. The path of a text, as of a whole state, is empty."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    delete: tuple[Path, ...] = ()
    text: str | None = None
    """The text from now on; None where it stays as it is."""
    brought: tuple[str, ...] = ()
    """What only the child had changed."""
    joined: tuple[str, ...] = ()
    """What both had appended to: the parent's, then what only the child had."""
    conflicts: tuple[Clash, ...] = ()


def reconciled(base: State, ours: State, theirs: State) -> Reconciled:
    """What the child's changes since `base` come to in the parent."""
    if same(theirs, base) or same(theirs, ours):
        return Reconciled()
    if isinstance(ours, str) and isinstance(theirs, str):
        return _text_home(base if isinstance(base, str) else "", ours, theirs)
    if not is_object(ours) or not is_object(theirs):
        return Reconciled(conflicts=(Clash("", base, ours, theirs),))
    found = list(_compared((), base, ours, theirs))
    changes = [one for one in found if isinstance(one, _Change)]
    return Reconciled(
        values=_nested(change for change in changes if change.value is not ABSENT),
        delete=tuple(change.path for change in changes if change.value is ABSENT),
        brought=tuple(spelt(change.path) for change in changes if not change.joined),
        joined=tuple(spelt(change.path) for change in changes if change.joined),
        conflicts=tuple(one for one in found if isinstance(one, Clash)),
    )


@frozen
class _Change:
    path: Path
    value: Any
    joined: bool = False


def _compared(path: Path, base: Any, ours: Any, theirs: Any) -> Iterator[_Change | Clash]:
    if same(theirs, base) or same(theirs, ours):
        return
    if is_object(ours) and is_object(theirs):
        began: Mapping[str, Any] = base if is_object(base) else {}
        for key in {**theirs, **began}:
            three = [state.get(key, ABSENT) for state in (began, ours, theirs)]
            yield from _compared((*path, key), *three)
    elif same(ours, base):
        yield _Change(path, theirs)
    elif (items := _items_home(base, ours, theirs)) is not None:
        if len(items) > len(ours):
            yield _Change(path, items, joined=True)
    else:
        yield Clash(spelt(path), base, ours, theirs)


def _items_home(base: Any, ours: Any, theirs: Any) -> list[Any] | None:
    """One list, where both have only added to it: ours, then what the child has appended and we have not added too."""
    began: Any = [] if base is ABSENT or base is None else base
    if not is_list(began) or not is_list(ours) or not is_list(theirs):
        return None
    length = len(began)
    mine = _added(began, ours)
    if mine is None or not same(theirs[:length], began):
        return None
    there = {_written(item) for item in mine}
    return [*ours, *(item for item in theirs[length:] if _written(item) not in there)]


def _added(began: Sequence[Any], items: Sequence[Any]) -> list[Any] | None:
    """What was added to a list, wherever; None if something was taken out of it, or moved.

    Another child may have come home before: what it brought stands among what this one began with.
    """
    added: list[Any] = []
    met = 0
    for item in items:
        if met < len(began) and same(item, began[met]):
            met += 1
        else:
            added.append(item)
    return added if met == len(began) else None


def _text_home(base: str, ours: str, theirs: str) -> Reconciled:
    if ours == base:
        return Reconciled(text=theirs, brought=("",))
    both = of_both(base, ours, theirs)
    if both is None:
        return Reconciled(conflicts=(Clash("", base, ours, theirs),))
    return Reconciled(text=both, joined=("",)) if both != ours else Reconciled()


def _nested(changes: Iterable[_Change]) -> dict[str, Any]:
    """One object that says all of them. Each has a place for itself, and none is inside another's."""
    values: dict[str, Any] = {}
    for change in changes:
        *above, last = change.path
        into = values
        for key in above:
            into = into.setdefault(key, {})
        into[last] = change.value
    return values


_written = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=dict).encode
