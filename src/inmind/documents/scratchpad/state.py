"""Scratchpads of a stream: a fold of its events.

Any sequence of events leads to a state, since a fold that raises would make the stream unreadable forever. An update of
an object or a text is also applied if the scratchpad held the other kind; it then starts empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.documents.scratchpad.merge import append_text, merge_update

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
