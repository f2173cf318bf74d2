"""The children of one session: begun, and brought home."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from inmind.attention import Attention
from inmind.documents import checked_text
from inmind.errors import InvalidInput
from inmind.family.handing import handed_on, inheritance, policies
from inmind.family.homecoming import Arrivals, Child, MergeReport, pad_home, rest_home, told
from inmind.journal import ChildCameHome, Draft, Origin, SessionOpened
from inmind.mind import Belongings, Mind
from inmind.prompt.layer import Layer
from inmind.prompt.pads import ScratchpadLayer, scratchpad_of
from inmind.stores.base import Key
from inmind.stores.stream import Decision, Stream, key_for


class Family:
    """What a session does with its children. Streams are asked for by a session's id."""

    def __init__(
        self,
        id: str,
        stream: Stream[Mind],
        resource: Stream[Belongings],
        attention: Attention,
        layers: Sequence[Layer],
        stream_of: Callable[[str], Stream[Mind]],
    ) -> None:
        self._id, self._stream, self._resource = id, stream, resource
        self._attention, self._layers, self._stream_of = attention, layers, stream_of

    def birth(self, id: str | None, policy: object) -> tuple[str, SessionOpened, list[Draft]]:
        """A child's id, how it opens, and what it is handed, decided on what its parent has in mind now."""
        mind, belongings = self._stream.refresh(), self._resource.refresh()
        handed = policies(self._layers, policy)
        opened = mind.opened or SessionOpened(resource="", cwd="")
        name = f"{self._id}.{os.urandom(4).hex()}" if id is None else id
        opening = replace(opened, parent=self._id, handed=tuple(handed.items()))
        return name, opening, inheritance(mind, belongings, self._layers, handed)

    def bring_home(self, id: str, key: str | None) -> MergeReport:
        """One commit, but for a scratchpad that belongs to the resource: that comes first, under a key of its own, so
        that whoever repeats a homecoming that was cut off in between finishes it."""
        named = key_for(key, "merge_back", id)
        stream = self._stream_of(checked_text(id, field="child"))
        now = stream.state
        if now.opened is None or now.opened.parent != self._id:
            raise InvalidInput(field="child", value=id, expected=f"a session that {self._id} has spawned")
        layers = handed_on(self._layers, dict(now.opened.handed))

        def child(mind: Mind) -> Child:
            last = mind.came_home.get(id)
            then = stream.at(max(now.begun, last.seq if last else 0))
            return Child(id=id, then=then, now=now, layers=layers)

        pad = scratchpad_of(self._layers)
        abroad = Arrivals()
        if pad is not None and pad.scope == "resource":
            abroad = self._pad_abroad(pad, child(self._stream.refresh()), now.seq)

        def decide(mind: Mind, at: datetime) -> Decision[Mind, MergeReport]:
            if (last := mind.came_home.get(id)) is not None and last.seq == now.seq:
                return Decision([], MergeReport.of(last, repeated=True))
            they, came = child(mind), abroad
            if pad is not None and pad.scope == "thread":
                came += pad_home(they, mind, self._resource.state, pad)
            came += rest_home(they, mind)
            home = _came_home(id, now.seq, came)
            drafts = [Draft(what=home, origin=Origin.OPERATOR), *came.happening]
            foreseen = self._stream.foresee(mind, mind.seq, drafts, at)
            drafts += self._attention.brought_home(foreseen, came.things, at)
            return Decision(drafts, MergeReport.of(home))

        done = self._stream.commit(decide, key=named)
        return done.answer or MergeReport.of(self._stream.at(done.appended.last).came_home[id], repeated=True)

    def _pad_abroad(self, pad: ScratchpadLayer, child: Child, seq: int) -> Arrivals:
        """The scratchpad's part, where it is the resource's; answers with what the report will say of it."""

        def decide(belongings: Belongings, _: datetime) -> Decision[Belongings, Arrivals]:
            came = pad_home(child, self._stream.state, belongings, pad)
            return Decision(list(came.happening), replace(came, happening=()))

        done = self._resource.commit(decide, key=Key(f"came home {child.id} {seq}", ""))
        return done.answer or Arrivals()


def _came_home(id: str, seq: int, came: Arrivals) -> ChildCameHome:
    return ChildCameHome(
        id, seq, came.brought, came.joined, conflicts=tuple(map(told, came.conflicts)), things=len(came.things)
    )
