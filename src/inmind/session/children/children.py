"""The children of one session: begun, and brought home."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from typing import cast

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import ChildMerged, SessionOpened
from inmind.documents.document import checked_text
from inmind.errors import InvalidInput
from inmind.prompt.layers.scratchpad import scratchpad_of
from inmind.session.children.inherit import Kept, handed_on, inheritance, policies
from inmind.session.children.merge_back import Arrivals, Child, MergeReport, pad_home, rest_home, told
from inmind.session.context import Parts
from inmind.session.state import Home, SessionState
from inmind.store.stream import Decision, key_for


class Family:
    """What a session does with its children. Streams are asked for by a session's id."""

    def __init__(self, parts: Parts) -> None:
        self._id, self._stream, self._resource = parts.id, parts.stream, parts.resource
        self._attention, self._layers, self._stream_of = parts.attention, parts.setup.layers, parts.stream_of
        self._ancestors, self._store = parts.ancestors, parts.store

    def birth(
        self, id: str | None, policy: object, key: str | None, kept: Kept
    ) -> tuple[str, SessionOpened, list[Draft]]:
        """A child's id, how it opens, and what it is handed, decided on what its parent has in mind now.

        An id is what makes two calls the same; without one, a key makes it.
        """
        named = key_for(key, "spawn")
        mind, belongings = self._stream.refresh(), self._resource.refresh()
        handed = policies(self._layers, policy)
        opened = mind.opened or SessionOpened(resource="", cwd="")
        own = digest(named.value) if named else os.urandom(4).hex()
        name = f"{self._id}.{own}" if id is None else id
        opening = replace(opened, parent=self._id, handed=tuple(handed.items()))
        minds = [mind, *(ancestor.refresh() for ancestor in self._ancestors)]
        return name, opening, inheritance(minds, belongings, self._layers, handed, kept)

    def bring_home(self, id: str, key: str | None) -> MergeReport:
        """What the child has changed, in one commit; also where the scratchpad belongs to the resource."""
        named = key_for(key, "merge_back", id)
        stream = self._stream_of(checked_text(id, field="child"))
        now = stream.state
        if now.opened is None or now.opened.parent != self._id:
            raise InvalidInput(field="child", value=id, expected=f"a session that {self._id} has spawned")
        layers = handed_on(self._layers, dict(now.opened.handed))
        pad = scratchpad_of(self._layers)
        self._resource.refresh()

        def decide(mind: SessionState, at: datetime) -> Decision[SessionState, MergeReport]:
            last = mind.came_home.get(id, Home(now.begun, now.begun, 0))
            then = stream.at(last.seq)
            pads = then.pads if last.pad == last.seq else stream.at(last.pad).pads
            child = Child(id=id, then=then, pads=pads, now=now, layers=layers)
            written = pad_home(child, mind, self._resource.state, pad)
            if last.event and last.seq == now.seq and (last.pad == now.seq or written.waiting):
                return Decision([], self._reported(last.event))
            rest = rest_home(child, mind, self._layers)
            came = written + rest
            seq, wrote = (last.seq if rest.waiting else now.seq), (last.pad if written.waiting else now.seq)
            home = _came_home(id, seq, came, pad=None if wrote == seq else wrote)
            abroad = written.happening if pad is not None and pad.scope == "resource" else ()
            here = came.happening[len(abroad) :]
            drafts = [Draft(payload=home, origin=Origin.OPERATOR), *here]
            foreseen = self._stream.foresee(mind, mind.seq, drafts, at)
            drafts += self._attention.brought_home(foreseen, came.things, at)
            return Decision(drafts, MergeReport.of(home), beside=abroad)

        done = self._stream.commit(decide, key=named, beside=self._resource)
        return done.answer or self._reported(self._stream.at(done.appended.last).came_home[id].event)

    def _reported(self, event: int) -> MergeReport:
        """What was reported then, once more."""
        (home,) = self._store.read(self._stream.name, after=event - 1, until=event)
        return MergeReport.of(cast(ChildMerged, home.payload), repeated=True)


def _came_home(id: str, seq: int, came: Arrivals, *, pad: int | None) -> ChildMerged:
    conflicts = tuple(map(told, came.conflicts))
    return ChildMerged(id, seq, came.brought, came.joined, conflicts, len(came.things), pad)
