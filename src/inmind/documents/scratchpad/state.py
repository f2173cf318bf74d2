"""Scratchpads of a stream: a fold of its events.

Any sequence of events leads to a state, since a fold that raises would make the stream unreadable forever. An update of
an object or a text is also applied if the scratchpad held the other kind; it then starts empty.

A model that sends one field means one field, so objects are merged, and everything else is replaced. Only objects on
updated paths are copied, each once and shallow; states share everything else and are never modified. Merging costs the
size of the update plus the keys next to it, not the size of the state. An explicit stack avoids Python's recursion
limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.documents.scratchpad.values import ABSENT, is_list, is_object, value_at


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


ScratchpadState = str | Mapping[str, Any]


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
        if not isinstance(payload, ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside):
            return self
        saved = self.get(payload.scratchpad)
        state, is_new = _apply(saved.state if saved else None, payload)
        trust = event.trust if is_new or saved is None else min(saved.trust, event.trust)
        return Scratchpads(
            {
                **self.by_name,
                payload.scratchpad: SavedScratchpad(state, version=event.seq, source=event.id, trust=trust),
            }
        )

    def get(self, name: str) -> SavedScratchpad | None:
        return self.by_name.get(name)


def known_state_after(payload: EventPayload, known: ScratchpadState | None) -> ScratchpadState | None:
    """Return the state known to a reader after this event.

    Returns None if it was never known completely.
    """
    if not isinstance(payload, ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside):
        return known
    replaces = isinstance(payload, ScratchpadStarted | ScratchpadSetAside) or (
        isinstance(payload, ScratchpadWritten) and not payload.append
    )
    return _apply(known, payload)[0] if replaces or known is not None else None


def _apply(
    state: ScratchpadState | None,
    payload: ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside,
) -> tuple[ScratchpadState, bool]:
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
