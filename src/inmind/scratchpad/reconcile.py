"""What a child has changed comes home: its changes are taken over, and nobody's work is lost without a word.

Three states decide, field by field: what the child began with, what the parent has now, what the child has now. Where
only one of them changed something, that is taken. Where both appended, both stay. Where both changed the same thing
otherwise, the parent's stays, and the report has all three. Coming home a second time changes nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from inmind.scratchpad.merge import appended, same
from inmind.scratchpad.pad import State
from inmind.scratchpad.paths import ABSENT, Path, is_list, is_object, spelt


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
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
    """One list, where both have only appended to it: ours, then what of theirs we have not appended too."""
    began: Any = [] if base is ABSENT or base is None else base
    if not is_list(began) or not is_list(ours) or not is_list(theirs):
        return None
    length = len(began)
    if not same(ours[:length], began) or not same(theirs[:length], began):
        return None
    there = {_written(item) for item in ours[length:]}
    return [*ours, *(item for item in theirs[length:] if _written(item) not in there)]


def _text_home(base: str, ours: str, theirs: str) -> Reconciled:
    if ours == base:
        return Reconciled(text=theirs, brought=("",))
    mine, more = _lines_after(base, ours), _lines_after(base, theirs)
    if mine is None or more is None:
        both = _lines_of_both(base, ours, theirs)
        if both is None:
            return Reconciled(conflicts=(Clash("", base, ours, theirs),))
        return Reconciled(text=both, joined=("",)) if both != ours else Reconciled()
    new = more.strip("\n")
    if not new or f"\n{new}\n" in f"\n{mine}\n":
        return Reconciled()
    return Reconciled(text=appended(ours, more), joined=("",))


def _lines_of_both(base: str, ours: str, theirs: str) -> str | None:
    """The text with what both have done to it, where they have touched different lines; None where they have not."""
    lines = base.split("\n")
    edits = {*_edits(lines, ours.split("\n")), *_edits(lines, theirs.split("\n"))}
    made: list[str] = []
    done = -1
    for begin, end, put in sorted(edits):
        if begin <= done:
            return None
        made += [*lines[max(done, 0) : begin], *put]
        done = end
    return "\n".join([*made, *lines[max(done, 0) :]])


def _edits(base: list[str], text: list[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    for tag, begin, end, first, last in SequenceMatcher(None, base, text, autojunk=False).get_opcodes():
        if tag != "equal":
            yield begin, end, tuple(text[first:last])


def _lines_after(base: str, text: str) -> str | None:
    """The lines that were appended; None if something else was done, a line that was continued among it."""
    if not text.startswith(base):
        return None
    more = text[len(base) :]
    if not base or base.endswith("\n") or not more:
        return more
    return more[1:] if more.startswith("\n") else None


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
