"""The scratchpad of a session, as its host holds it: look at it, update it, see what had to be set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from inmind.errors import InvalidInput, StoreError
from inmind.journal import Draft, Happened, Origin, PadSetAside
from inmind.mind import Belongings, Mind
from inmind.prompt.layer import Layer
from inmind.prompt.pads import ScratchpadLayer, scratchpad_in_sight
from inmind.prompt.view import copied
from inmind.scratchpad.pad import State
from inmind.stores.base import Appended, Store
from inmind.stores.stream import Decision, Stream, key_for

Whose = Mind | Belongings
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A state that no longer fitted the schema, as it was, and why."""

    state: State
    reason: str
    at: datetime


def scratchpad_among(
    layers: Sequence[Layer], streams: Sequence[Stream[Mind]], resource: Stream[Belongings], store: Store
) -> Scratchpad | None:
    """The scratchpad of a session, or the one that it has a view of: `streams` are its own and its ancestors'."""
    found = scratchpad_in_sight(layers)
    if found is None:
        return None
    layer, height = found
    stream = streams[height] if layer.scope == "thread" else resource
    return Scratchpad(layer.viewed() if height else layer, stream, store)


class Scratchpad:
    """Text, or an object that its schema checks. Whoever updates it, the state is the same for all."""

    def __init__(self, layer: ScratchpadLayer, stream: Stream[Any], store: Store) -> None:
        self._layer, self._stream, self._store = layer, stream, store

    @property
    def snapshot(self) -> State:
        """What it holds now, as a copy: changing it changes nothing."""
        return copied(self._layer.held(self._stream.refresh().pads))

    def update(
        self,
        values: State = _NOTHING,
        *,
        delete: Sequence[str | Sequence[str]] = (),
        append: bool = False,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> Appended:
        """Merge values in, after removing what `delete` names; or replace a text, or add to its end.

        What is given is taken literally: null is a value and an empty list empties. The result must fit the schema,
        or nothing is changed.
        """
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        named = key_for(key, "update", values, delete, append)

        def decide(state: Whose, _: datetime) -> Decision[Any, None]:
            revision = self._layer.revised(state.pads, values, delete=delete, append=append)
            return Decision(_drafts(revision.happened, origin), None)

        return self._stream.commit(decide, key=named).appended

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        """States that no longer fitted the schema when a session was opened with it, the oldest first."""
        events = self._store.read(self._stream.name, kind=PadSetAside.kind)
        return tuple(
            SetAside(state=copied(pad.state), reason=event.what.reason, at=event.at)
            for event in events
            if isinstance(event.what, PadSetAside) and event.what.pad == self._layer.name
            if (pad := self._stream.at(event.seq - 1).pads.get(self._layer.name)) is not None
        )

    def settle(self) -> str:
        """Set aside what does not fit the schema any more; answers with what to tell the host.

        A store that takes no writes is no reason not to open a session: the misfit is as good as nothing either way.
        """
        misfit = self._layer.misfit(self._stream.state.pads)
        if not misfit or self._layer.read_only:
            return ""

        def decide(state: Whose, _: datetime) -> Decision[Any, None]:
            why = self._layer.misfit(state.pads)
            return Decision(_drafts([PadSetAside(self._layer.name, why)] if why else [], Origin.OPERATOR), None)

        with suppress(StoreError):
            self._stream.commit(decide)
        return f"the scratchpad no longer fits its schema ({misfit}): it was set aside, and begins anew"

    def __repr__(self) -> str:
        return f"<Scratchpad {self._layer.name!r} of the {self._layer.scope}>"


def _drafts(happened: Sequence[Happened], origin: Origin) -> list[Draft]:
    return [Draft(what=what, origin=origin) for what in happened]
