"""Events that are derived from other events and share their commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from inmind.core.events.base import Draft
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.session.affect import SessionAffect
from inmind.session.context import SessionContext
from inmind.session.layer_calls import LayerCalls
from inmind.session.overview import OverviewWriter
from inmind.session.state import SessionState
from inmind.store.stream import Decision


class DerivedEvents(NamedTuple):
    """Events derived from a change and committed with it."""

    session_events: list[Draft]
    """For the session's stream."""
    resource_events: list[Draft]
    """For the resource's stream."""


class EventDeriver:
    """Derives the events that go into the same commit as some drafts."""

    def __init__(
        self, context: SessionContext, layer_calls: LayerCalls, overview: OverviewWriter, affect: SessionAffect
    ) -> None:
        self._stream, self._entities = context.stream, context.entities
        self._layer_calls, self._overview, self._affect = layer_calls, overview, affect

    def derive(self, state: SessionState, now: datetime, drafts: Sequence[Draft]) -> DerivedEvents:
        """Events derived from drafts.

        What layers store, entity sightings, overview lines, and affect.
        """
        kept = self._layer_calls.store_replies(state, now, drafts)
        told = self._entities.observations(state, [*drafts, *kept])
        more = [*kept, *self._entities.sightings(state, told, len(drafts) + len(kept), now)]
        wrote = any(isinstance(draft.payload, DocumentWritten | OverviewEvent) for draft in (*drafts, *kept))
        then = partial(self._stream.preview, state, state.seq, [*drafts, *more], now)
        entered = self._overview.entries_for(then, state, told, wrote=wrote)
        return DerivedEvents([*more, *entered], self._affect.spikes_for(state, told, now))

    def decide_with_derived(
        self, decide: Callable[[SessionState], list[Draft]], state: SessionState, now: datetime
    ) -> Decision[SessionState, bool]:
        """The decision to append the drafts of `decide` together with the events derived from them."""
        drafts = decide(state)
        return Decision([*drafts, *(self.derive(state, now, drafts).session_events if drafts else [])], True)
