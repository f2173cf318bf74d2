"""The children of one session: begun, and brought home."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime

from inmind.documents import checked_text
from inmind.errors import InvalidInput
from inmind.family.handing import handed_on, inheritance, policies
from inmind.family.homecoming import Arrivals, Child, MergeReport, pad_home, rest_home, told
from inmind.journal import ChildCameHome, Draft, Origin, SessionOpened
from inmind.mind import Mind
from inmind.parts import Parts
from inmind.prompt.pads import scratchpad_of
from inmind.stores.stream import Decision, key_for


class Family:
    """What a session does with its children. Streams are asked for by a session's id."""

    def __init__(self, parts: Parts) -> None:
        self._id, self._stream, self._resource = parts.id, parts.stream, parts.resource
        self._attention, self._layers, self._stream_of = parts.attention, parts.setup.layers, parts.stream_of

    def birth(self, id: str | None, policy: object) -> tuple[str, SessionOpened, list[Draft]]:
        """A child's id, how it opens, and what it is handed, decided on what its parent has in mind now."""
        mind, belongings = self._stream.refresh(), self._resource.refresh()
        handed = policies(self._layers, policy)
        opened = mind.opened or SessionOpened(resource="", cwd="")
        name = f"{self._id}.{os.urandom(4).hex()}" if id is None else id
        opening = replace(opened, parent=self._id, handed=tuple(handed.items()))
        return name, opening, inheritance(mind, belongings, self._layers, handed)

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

        def decide(mind: Mind, at: datetime) -> Decision[Mind, MergeReport]:
            if (last := mind.came_home.get(id)) is not None and last.seq == now.seq:
                return Decision([], MergeReport.of(last, repeated=True))
            then = stream.at(max(now.begun, last.seq if last else 0))
            child = Child(id=id, then=then, now=now, layers=layers)
            written = pad_home(child, mind, self._resource.state, pad)
            came = written + rest_home(child, mind)
            home = _came_home(id, then.seq if came.waiting else now.seq, came)
            abroad = written.happening if pad is not None and pad.scope == "resource" else ()
            here = came.happening[len(abroad) :]
            drafts = [Draft(what=home, origin=Origin.OPERATOR), *here]
            foreseen = self._stream.foresee(mind, mind.seq, drafts, at)
            drafts += self._attention.brought_home(foreseen, came.things, at)
            return Decision(drafts, MergeReport.of(home), beside=abroad)

        done = self._stream.commit(decide, key=named, beside=self._resource)
        return done.answer or MergeReport.of(self._stream.at(done.appended.last).came_home[id], repeated=True)


def _came_home(id: str, seq: int, came: Arrivals) -> ChildCameHome:
    return ChildCameHome(
        id, seq, came.brought, came.joined, conflicts=tuple(map(told, came.conflicts)), things=len(came.things)
    )
