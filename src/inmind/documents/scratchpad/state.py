"""The scratchpads of a stream, as folded so far.

Whatever the journal has for a pad, in whichever order, leads to a state: a fold that raises would close the stream for
ever. So an update for an object finds an object, and one for a text a text, even where the pad held the other kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.frozen import frozen
from inmind.documents.scratchpad.merge import appended, merged

State = str | Mapping[str, Any]


@frozen
class Pad:
    state: State
    version: int
    """Sequence number of the event that wrote it last."""
    source: str
    """Id of that event."""
    trust: Trust
    """The least of all that went into it since it began."""


@frozen
class Pads:
    """All scratchpads of one stream, by name."""

    by_name: Mapping[str, Pad] = field(default_factory=dict[str, Pad])

    def apply(self, event: Event) -> Pads:
        what = event.payload
        if not isinstance(what, ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside):
            return self
        held = self.get(what.scratchpad)
        state, begins = _after(held.state if held else None, what)
        trust = event.trust if begins or held is None else min(held.trust, event.trust)
        return Pads({**self.by_name, what.scratchpad: Pad(state, version=event.seq, source=event.id, trust=trust)})

    def get(self, name: str) -> Pad | None:
        return self.by_name.get(name)

    def freeze(self) -> dict[str, Any]:
        return {name: [pad.state, pad.version, int(pad.trust)] for name, pad in self.by_name.items()}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], stream: str) -> Pads:
        return cls(
            {
                name: Pad(state, version=version, source=f"{stream}#{version}", trust=Trust(trust))
                for name, (state, version, trust) in frozen.items()
            }
        )


def changed_by(what: EventPayload, held: State | None) -> State | None:
    """What somebody knows of a pad who knew this and then did that; None where they never knew it."""
    if not isinstance(what, ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside):
        return held
    whole = isinstance(what, ScratchpadStarted | ScratchpadSetAside) or (
        isinstance(what, ScratchpadWritten) and not what.append
    )
    return _after(held, what)[0] if whole or held is not None else None


def _after(
    held: State | None, what: ScratchpadStarted | ScratchpadWritten | ScratchpadMerged | ScratchpadSetAside
) -> tuple[State, bool]:
    """What the pad holds now, and whether it begins there: nothing of what it held before went into it."""
    match what:
        case ScratchpadStarted():
            return what.state, True
        case ScratchpadWritten(append=True) if isinstance(held, str):
            return appended(held, what.text), False
        case ScratchpadWritten():
            return what.text, True
        case ScratchpadMerged() if isinstance(held, Mapping):
            return merged(held, what.values, what.delete), False
        case ScratchpadMerged():
            return merged({}, what.values, what.delete), True
        case ScratchpadSetAside():
            return {}, True
