"""What is in mind: each room's fold, side by side, for a session and for a resource.

Nothing is decided here. Every event goes to every room, each takes what concerns it, and the sum is the state
that prompts, tools and time travel all look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from inmind.documents import Documents
from inmind.entities.window import Entities
from inmind.history import Line
from inmind.journal import BOOKKEEPING, ChildCameHome, Event, MessageAdded, PromptPrepared, SessionOpened
from inmind.prompt.standing import Standing
from inmind.scratchpad.pad import Pads


class Home(NamedTuple):
    """Up to where a child has come home."""

    seq: int
    """Up to which of its events its pages and things were brought."""
    pad: int
    """And its scratchpad, which may have had to wait."""
    event: int
    """The event of this stream that has the report."""


@dataclass(frozen=True, slots=True)
class Mind:
    """The state of a session after some event."""

    stream: str
    seq: int = 0
    opened: SessionOpened | None = None
    line: Line = field(default_factory=Line)
    documents: Documents = field(default_factory=Documents)
    entities: Entities = field(default_factory=Entities)
    pads: Pads = field(default_factory=Pads)
    standing: Standing = field(default_factory=Standing)
    begun: int = 0
    """Number of the last event that opening the session appended: nothing goes back beyond it."""
    before: int = 0
    """Number of the event that `undo` goes back to: the last one before the last change. 0: nothing to undo.

    A change is what was appended together and begins with something a person would call one; opening a
    session is not. Being part of the state, it is reverted too, so a second undo goes one step further.
    """
    came_home: Mapping[str, Home] = field(default_factory=dict[str, "Home"])
    """Children whose changes were brought home."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the last prompt has shown all of: pages and the scratchpad, and the event that wrote what was shown."""
    heard: Mapping[str, str] = field(default_factory=dict[str, str])
    """The same of what calls were answered, or have written."""


class MindFold:
    """Folds a session's stream."""

    version = 4

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> Mind:
        return Mind(stream=self._stream)

    def apply(self, state: Mind, event: Event) -> Mind:
        what = event.what
        opened = what if isinstance(what, SessionOpened) else state.opened
        line = state.line.apply(event)
        before, begun = state.before, state.begun
        if event.seq == begun + 1 and (event.seq == 1 or not event.opens):
            begun = event.seq
        if event.kind not in BOOKKEEPING and event.opens:
            before = event.seq - 1
        came_home = state.came_home
        if isinstance(what, ChildCameHome):
            home = Home(what.seq, what.seq if what.pad is None else what.pad, event.seq)
            came_home = {**came_home, what.child: home}
        shown, heard = state.shown, state.heard
        if isinstance(what, PromptPrepared) and what.shown is not None:
            shown = dict(what.shown)
        if isinstance(what, MessageAdded) and what.shown:
            heard = {**heard, **dict(what.shown)}
        return Mind(
            stream=state.stream,
            seq=event.seq,
            opened=opened,
            line=line,
            documents=state.documents.apply(event),
            entities=state.entities.apply(event),
            pads=state.pads.apply(event),
            standing=state.standing.apply(event, messages=len(line)),
            begun=begun,
            before=before,
            came_home=came_home,
            shown=shown,
            heard=heard,
        )

    def reverted(self, past: Mind, present: Mind, event: Event) -> Mind:
        kept = _agreeing(past.line, present.line)
        return replace(past, seq=event.seq, standing=past.standing.reverted(present.standing, kept))

    def freeze(self, state: Mind) -> dict[str, Any]:
        return {
            "seq": state.seq,
            "opened": _freeze_opened(state.opened),
            "line": state.line.freeze(),
            "documents": state.documents.freeze(),
            "entities": state.entities.freeze(),
            "pads": state.pads.freeze(),
            "standing": state.standing.freeze(),
            "begun": state.begun,
            "before": state.before,
            "came_home": dict(state.came_home),
            "seen": [dict(state.shown), dict(state.heard)],
        }

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> Mind:
        return Mind(
            stream=self._stream,
            seq=frozen["seq"],
            opened=SessionOpened(*frozen["opened"]) if frozen["opened"] else None,
            line=Line.thaw(frozen["line"], messages),
            documents=Documents.thaw(frozen["documents"], self._stream),
            entities=Entities.thaw(frozen["entities"]),
            pads=Pads.thaw(frozen["pads"], self._stream),
            standing=Standing.thaw(frozen["standing"]),
            begun=frozen["begun"],
            before=frozen["before"],
            came_home={child: Home(*home) for child, home in frozen["came_home"].items()},
            shown=frozen["seen"][0],
            heard=frozen["seen"][1],
        )


@dataclass(frozen=True, slots=True)
class Belongings:
    """What a resource owns, shared by all of its sessions."""

    documents: Documents = field(default_factory=Documents)
    pads: Pads = field(default_factory=Pads)


class BelongingsFold:
    """Folds a resource's stream."""

    version = 2

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> Belongings:
        return Belongings()

    def apply(self, state: Belongings, event: Event) -> Belongings:
        return Belongings(state.documents.apply(event), state.pads.apply(event))

    def reverted(self, past: Belongings, present: Belongings, event: Event) -> Belongings:  # noqa: ARG002 -- the protocol's
        return past

    def freeze(self, state: Belongings) -> dict[str, Any]:
        return {"documents": state.documents.freeze(), "pads": state.pads.freeze()}

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> Belongings:  # noqa: ARG002 -- the protocol's
        documents = Documents.thaw(frozen["documents"], self._stream)
        return Belongings(documents, Pads.thaw(frozen["pads"], self._stream))


def _freeze_opened(opened: SessionOpened | None) -> list[Any] | None:
    if opened is None:
        return None
    return [opened.resource, opened.cwd, opened.language, opened.parent, opened.handed]


def _agreeing(past: Line, present: Line) -> int:
    """Leading messages that both lines share."""
    pairs = zip(past, present, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a.seq != b.seq), min(len(past), len(present)))
