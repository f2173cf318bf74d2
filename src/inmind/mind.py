"""What is in mind: each room's fold, side by side, for a session and for a resource.

Nothing is decided here. Every event goes to every room, each takes what concerns it, and the sum is the state
that prompts, tools and time travel all look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inmind.documents import Documents
from inmind.entities.window import Entities
from inmind.history import Line
from inmind.journal import BOOKKEEPING, Event, SessionOpened
from inmind.prompt.standing import Standing


@dataclass(frozen=True, slots=True)
class Mind:
    """The state of a session after some event."""

    stream: str
    seq: int = 0
    opened: SessionOpened | None = None
    line: Line = field(default_factory=Line)
    documents: Documents = field(default_factory=Documents)
    entities: Entities = field(default_factory=Entities)
    standing: Standing = field(default_factory=Standing)
    begun: int = 0
    """Number of the last event that opening the session appended: nothing goes back beyond it."""
    before: int = 0
    """Number of the event that `undo` goes back to: the last one before the last change. 0: nothing to undo.

    A change is what was appended together and begins with something a person would call one; opening a
    session is not. Being part of the state, it is reverted too, so a second undo goes one step further.
    """


class MindFold:
    """Folds a session's stream."""

    version = 2

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
        return Mind(
            stream=state.stream,
            seq=event.seq,
            opened=opened,
            line=line,
            documents=state.documents.apply(event),
            entities=state.entities.apply(event),
            standing=state.standing.apply(event, messages=len(line)),
            begun=begun,
            before=before,
        )

    def reverted(self, past: Mind, present: Mind, event: Event) -> Mind:
        kept = _agreeing(past.line, present.line)
        return replace(past, seq=event.seq, standing=past.standing.reverted(present.standing, kept))

    def freeze(self, state: Mind) -> dict[str, Any]:
        opened = state.opened
        return {
            "seq": state.seq,
            "opened": [opened.resource, opened.cwd, opened.language] if opened else None,
            "line": state.line.freeze(),
            "documents": state.documents.freeze(),
            "entities": state.entities.freeze(),
            "standing": state.standing.freeze(),
            "begun": state.begun,
            "before": state.before,
        }

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> Mind:
        return Mind(
            stream=self._stream,
            seq=frozen["seq"],
            opened=SessionOpened(*frozen["opened"]) if frozen["opened"] else None,
            line=Line.thaw(frozen["line"], messages),
            documents=Documents.thaw(frozen["documents"], self._stream),
            entities=Entities.thaw(frozen["entities"]),
            standing=Standing.thaw(frozen["standing"]),
            begun=frozen["begun"],
            before=frozen["before"],
        )


class DocumentsFold:
    """Folds a resource's stream: for now it owns documents and nothing else."""

    version = 1

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> Documents:
        return Documents()

    def apply(self, state: Documents, event: Event) -> Documents:
        return state.apply(event)

    def reverted(self, past: Documents, present: Documents, event: Event) -> Documents:  # noqa: ARG002 -- the protocol's
        return past

    def freeze(self, state: Documents) -> dict[str, Any]:
        return state.freeze()

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> Documents:  # noqa: ARG002 -- the protocol's
        return Documents.thaw(frozen, self._stream)


def _agreeing(past: Line, present: Line) -> int:
    """Leading messages that both lines share."""
    pairs = zip(past, present, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a.seq != b.seq), min(len(past), len(present)))
