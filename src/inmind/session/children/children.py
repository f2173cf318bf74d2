"""The children of one session: begun, and brought home."""

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
    """What a session does with its children. Streams are asked for by a session's id."""

    def __init__(self, parts: SessionContext) -> None:
        self._id, self._stream, self._resource = parts.id, parts.stream, parts.resource
        self._attention, self._layers, self._stream_of = parts.entities, parts.config.layers, parts.session_stream
        self._ancestors, self._store = parts.ancestors, parts.store

    def prepare_child(
        self, id: str | None, policy: object, key: str | None, kept: RetainedItems
    ) -> tuple[str, SessionOpened, list[Draft]]:
        """A child's id, how it opens, and what it is handed, decided on what its parent has in mind now.

        An id is what makes two calls the same; without one, a key makes it.
        """
        named = key_for(key, "spawn")
        state, resource_state = self._stream.refresh(), self._resource.refresh()
        handed = inherit_policies(self._layers, policy)
        opened = state.opened or SessionOpened(resource="", cwd="")
        own = digest(named.value) if named else os.urandom(4).hex()
        name = f"{self._id}.{own}" if id is None else id
        opening = replace(opened, parent=self._id, inheritance=tuple(handed.items()))
        states = [state, *(ancestor.refresh() for ancestor in self._ancestors)]
        return name, opening, inherited_events(states, resource_state, self._layers, handed, kept)

    def merge_back(self, id: str, key: str | None) -> MergeReport:
        """What the child has changed, in one commit; also where the scratchpad belongs to the resource."""
        named = key_for(key, "merge_back", id)
        stream = self._stream_of(validate_text(id, field="child"))
        now = stream.state
        if now.opened is None or now.opened.parent != self._id:
            raise InvalidInput(field="child", value=id, expected=f"a session that {self._id} has spawned")
        layers = child_layers(self._layers, dict(now.opened.inheritance))
        pad = find_scratchpad(self._layers)
        self._resource.refresh()

        def decide(state: SessionState, at: datetime) -> Decision[SessionState, MergeReport]:
            last = state.merged_children.get(id, MergePoint(now.opening_end, now.opening_end, 0))
            then = stream.state_at(last.seq)
            pads = (
                then.scratchpads
                if last.scratchpad_seq == last.seq
                else stream.state_at(last.scratchpad_seq).scratchpads
            )
            child = ChildChanges(id=id, base=then, base_scratchpads=pads, state=now, layers=layers)
            written = merge_scratchpad(child, state, self._resource.state, pad)
            if last.event and last.seq == now.seq and (last.scratchpad_seq == now.seq or written.waiting):
                return Decision([], self._repeat_report(last.event))
            rest = merge_documents(child, state, self._layers)
            came = written + rest
            seq, wrote = (last.seq if rest.waiting else now.seq), (last.scratchpad_seq if written.waiting else now.seq)
            home = _child_merged(id, seq, came, pad=None if wrote == seq else wrote)
            abroad = written.drafts if pad is not None and pad.scope == "resource" else ()
            here = came.drafts[len(abroad) :]
            drafts = [Draft(payload=home, origin=Origin.OPERATOR), *here]
            foreseen = self._stream.preview(state, state.seq, drafts, at)
            drafts += self._attention.sightings_from_child(foreseen, came.entities, at)
            return Decision(drafts, MergeReport.of(home), companion=abroad)

        done = self._stream.commit(decide, key=named, companion=self._resource)
        return done.result or self._repeat_report(self._stream.state_at(done.appended.last).merged_children[id].event)

    def _repeat_report(self, event: int) -> MergeReport:
        """What was reported then, once more."""
        (home,) = self._store.read(self._stream.name, after=event - 1, until=event)
        return MergeReport.of(cast(ChildMerged, home.payload), repeated=True)


def _child_merged(id: str, seq: int, came: MergeChanges, *, pad: int | None) -> ChildMerged:
    conflicts = tuple(map(conflict_json, came.conflicts))
    return ChildMerged(id, seq, came.taken, came.combined, conflicts, len(came.entities), pad)
