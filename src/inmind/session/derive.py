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
        """Events derived from drafts: layer documents, entity sightings, overview lines and affect."""
        layer_drafts = self._layer_calls.store_replies(state, now, drafts)
        observations = self._entities.observations(state, [*drafts, *layer_drafts])
        more = [*layer_drafts, *self._entities.sightings(state, observations, len(drafts) + len(layer_drafts), now)]
        wrote = any(isinstance(draft.payload, DocumentWritten | OverviewEvent) for draft in (*drafts, *layer_drafts))
        next_state = partial(self._stream.preview, state, state.seq, [*drafts, *more], now)
        overview_drafts = self._overview.entries_for(next_state, state, observations, wrote=wrote)
        return DerivedEvents([*more, *overview_drafts], self._affect.spikes_for(state, observations, now))

    def decide_with_derived(
        self, decide: Callable[[SessionState], list[Draft]], state: SessionState, now: datetime
    ) -> Decision[SessionState, bool]:
        """The decision to append the drafts of `decide` together with the events derived from them."""
        drafts = decide(state)
        return Decision([*drafts, *(self.derive(state, now, drafts).session_events if drafts else [])], True)
