"""Open child sessions and merge them back."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from typing import cast

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import ChildMerged, SessionOpened
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.prompt.layers.scratchpad import find_scratchpad
from inmind.session.children.inherit import RetainedItems, child_layers, inherit_policies, inherited_events
from inmind.session.children.merge_back import (
    ChildChanges,
    MergeChanges,
    MergeReport,
    conflict_json,
    merge_documents,
    merge_scratchpad,
)
from inmind.session.context import SessionContext
from inmind.session.state import MergePoint, SessionState
from inmind.store.stream import Decision, key_for


class ChildSessions:
    """The children of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._id, self._stream, self._resource = context.id, context.stream, context.resource
        self._entities, self._layers = context.entities, context.config.layers
        self._session_stream, self._ancestors, self._store = context.session_stream, context.ancestors, context.store

    def prepare_child(
        self, id: str | None, policy: object, key: str | None, retained: RetainedItems
    ) -> tuple[str, SessionOpened, list[Draft]]:
        """The id of a child, its opening event, and the events that it inherits.

        The same id is the same child. Without an id, it is derived from the key.
        """
        checked_key = key_for(key, "spawn")
        state, resource_state = self._stream.refresh(), self._resource.refresh()
        policies = inherit_policies(self._layers, policy)
        opened = state.opened or SessionOpened(resource="", cwd="")
        suffix = digest(checked_key.value) if checked_key else os.urandom(4).hex()
        child_id = f"{self._id}.{suffix}" if id is None else id
        opening = replace(opened, parent=self._id, inheritance=tuple(policies.items()))
        states = [state, *(ancestor.refresh() for ancestor in self._ancestors)]
        return child_id, opening, inherited_events(states, resource_state, self._layers, policies, retained)

    def merge_back(self, id: str, key: str | None) -> MergeReport:
        """Merge the changes of a child in one commit."""
        checked_key = key_for(key, "merge_back", id)
        stream = self._session_stream(validate_text(id, field="child"))
        child_state = stream.state
        if child_state.opened is None or child_state.opened.parent != self._id:
            raise InvalidInput(field="child", value=id, expected=f"a child session of {self._id}")
        layers = child_layers(self._layers, dict(child_state.opened.inheritance))
        layer = find_scratchpad(self._layers)
        self._resource.refresh()

        def decide(state: SessionState, at: datetime) -> Decision[SessionState, MergeReport]:
            last = state.merged_children.get(id, MergePoint(child_state.opening_end, child_state.opening_end, 0))
            base = stream.state_at(last.seq)
            is_same = last.scratchpad_seq == last.seq
            scratchpads = base.scratchpads if is_same else stream.state_at(last.scratchpad_seq).scratchpads
            child = ChildChanges(id=id, base=base, base_scratchpads=scratchpads, state=child_state, layers=layers)
            scratchpad = merge_scratchpad(child, state, self._resource.state, layer)
            if (
                last.event
                and last.seq == child_state.seq
                and (last.scratchpad_seq == child_state.seq or scratchpad.waiting)
            ):
                return Decision([], self._repeat_report(last.event))
            documents = merge_documents(child, state, self._layers)
            changes = scratchpad + documents
            seq = last.seq if documents.waiting else child_state.seq
            scratchpad_seq = last.scratchpad_seq if scratchpad.waiting else child_state.seq
            merged = _child_merged(id, seq, changes, scratchpad_seq=None if scratchpad_seq == seq else scratchpad_seq)
            companion = scratchpad.drafts if layer is not None and layer.scope == "resource" else ()
            drafts = [Draft(payload=merged, origin=Origin.OPERATOR), *changes.drafts[len(companion) :]]
            next_state = self._stream.preview(state, state.seq, drafts, at)
            drafts += self._entities.sightings_from_child(next_state, changes.entities, at)
            return Decision(drafts, MergeReport.of(merged), companion=companion)

        done = self._stream.commit(decide, key=checked_key, companion=self._resource)
        return done.result or self._repeat_report(self._stream.state_at(done.appended.last).merged_children[id].event)

    def _repeat_report(self, seq: int) -> MergeReport:
        """The report of an earlier merge, from its event."""
        (event,) = self._store.read(self._stream.name, after=seq - 1, until=seq)
        return MergeReport.of(cast(ChildMerged, event.payload), repeated=True)


def _child_merged(id: str, seq: int, changes: MergeChanges, *, scratchpad_seq: int | None) -> ChildMerged:
    conflicts = tuple(map(conflict_json, changes.conflicts))
    return ChildMerged(id, seq, changes.taken, changes.combined, conflicts, len(changes.entities), scratchpad_seq)
