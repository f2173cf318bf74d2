"""The scratchpad of a session for its host: read, update, list versions set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import ScratchpadSetAside
from inmind.core.frozen import frozen
from inmind.documents.scratchpad.state import ScratchpadState
from inmind.documents.scratchpad.values import copy_json
from inmind.errors import InvalidInput
from inmind.history.view import deep_copy
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import ScratchpadLayer, find_visible_scratchpad
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Store
from inmind.store.stream import Decision, Stream, key_for

ScratchpadOwner = SessionState | ResourceState
_NOTHING: Mapping[str, Any] = {}


@frozen(kw_only=True)
class SetAside:
    """A version that no longer fits the schema, the reason, and when it was written."""

    state: ScratchpadState
    reason: str
    at: datetime


def open_scratchpad(
    layers: Sequence[Layer], streams: Sequence[Stream[SessionState]], resource: Stream[ResourceState], store: Store
) -> Scratchpad | None:
    """The scratchpad of a session, or the one of an ancestor that it has a view of.

    `streams`: the stream of the session and those of its ancestors.
    """
    visible = find_visible_scratchpad(layers)
    if visible is None:
        return None
    layer, height = visible
    stream = streams[height] if layer.scope == "thread" else resource
    return Scratchpad(layer.as_read_only() if height else layer, stream, store)


class Scratchpad:
    """A text, or an object that is checked by a schema."""

    def __init__(self, layer: ScratchpadLayer, stream: Stream[Any], store: Store) -> None:
        self._layer, self._stream, self._store = layer, stream, store

    @property
    def snapshot(self) -> ScratchpadState:
        """A copy of the current content."""
        return deep_copy(self._layer.current_state(self._stream.refresh().scratchpads))

    def update(
        self,
        values: ScratchpadState = _NOTHING,
        *,
        delete: Sequence[str | Sequence[str]] = (),
        append: bool = False,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> None:
        """Merge values, after deleting the paths in `delete`; or replace a text, or append to it.

        Values are taken literally: null is a value, and an empty list empties. If the result does not fit the schema,
        this raises and nothing is changed.
        """
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        if key is not None and not isinstance(values, str):
            values, _ = copy_json(values, "values")  # before the key is made, so that an error names the field
        checked_key = key_for(key, "update", values, delete, append, origin)

        def decide(state: ScratchpadOwner, _: datetime) -> Decision[Any, None]:
            revision = self._layer.revise(state.scratchpads, values, delete=delete, append=append)
            return Decision([Draft(payload=payload, origin=origin) for payload in revision.payloads], None)

        self._stream.commit(decide, key=checked_key)

    @property
    def misfit(self) -> str:
        """Why the saved content does not fit the schema; empty if it does."""
        return self._layer.mismatch_reason(self._stream.refresh().scratchpads)

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """Versions that no longer fit the schema, oldest first.

        One that the next update will set aside is included. Opening a session changes nothing, because two versions of
        a program may use one scratchpad.
        """
        aside = [
            (event.seq - 1, event.payload.reason)
            for event in self._store.read(self._stream.name, kind=ScratchpadSetAside.kind)
            if isinstance(event.payload, ScratchpadSetAside) and event.payload.scratchpad == self._layer.name
        ]
        if misfit := self.misfit:
            aside.append((self._stream.version, misfit))
        pads = ((self._stream.state_at(seq).scratchpads.get(self._layer.name), reason) for seq, reason in aside)
        by_version = {
            pad.version: (pad.state, reason) for pad, reason in pads
        }  # after an undo a version may appear twice
        versions: list[SetAside] = []
        for version, (state, reason) in by_version.items():
            (written,) = self._store.read(self._stream.name, after=version - 1, until=version)
            versions.append(SetAside(state=deep_copy(state), reason=reason, at=written.at))
        return tuple(versions)

    def __repr__(self) -> str:
        return f"<Scratchpad {self._layer.name!r} of the {self._layer.scope}>"
