"""What is in mind: each room's fold, side by side, for a session and for a resource.

Nothing is decided here. Every event goes to every room, each takes what concerns it, and the sum is the state
that prompts, tools and time travel all look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from inmind.core.events.base import Event, Origin
from inmind.core.events.codec import BOOKKEEPING
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.prompt import PromptPrepared, UsageReported
from inmind.core.events.session import (
    ChildMerged,
    CompactionUndone,
    MessageAdded,
    SessionImported,
    SessionOpened,
    SessionTitled,
    ToolObserved,
)
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.text import shortened
from inmind.documents.document import OVERVIEW, Documents
from inmind.documents.overview import is_maintained, written_part
from inmind.documents.overview.event_log import Noted
from inmind.documents.scratchpad.state import Pads
from inmind.dreams.affect.state import Felt
from inmind.dreams.state import Dreaming
from inmind.entities.window import Entities
from inmind.history import Conversation, History
from inmind.prompt.state import Standing

MOST_TITLE = 80


class Home(NamedTuple):
    """Up to where a child has come home."""

    seq: int
    """Up to which of its events its pages and things were brought."""
    pad: int
    """And its scratchpad, which may have had to wait."""
    event: int
    """The event of this stream that has the report."""


@frozen
class SessionState:
    """The state of a session after some event."""

    stream: str
    seq: int = 0
    opened: SessionOpened | None = None
    history: History = field(default_factory=History)
    documents: Documents = field(default_factory=Documents)
    entities: Entities = field(default_factory=Entities)
    pads: Pads = field(default_factory=Pads)
    standing: Standing = field(default_factory=Standing)
    begun: int = 0
    """Number of the last event that opening the session appended: nothing goes back beyond it."""
    before: int = 0
    """Number of the event that `undo` goes back to: the last one before the last change. 0: nothing to undo.

    A change is what was appended together and begins with something a person would call one; opening a
    session is not, and what people save in files is theirs. Being part of the state, it is reverted too, so a
    second undo goes one step further.
    """
    came_home: Mapping[str, Home] = field(default_factory=dict[str, "Home"])
    """Children whose changes were brought home."""
    shown: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the last prompt has shown all of: pages and the scratchpad, and the event that wrote what was shown."""
    heard: Mapping[str, str] = field(default_factory=dict[str, str])
    """The same of what calls were answered, or have written."""
    covered: int = 0
    """Number of the event up to which the overview can know the conversation: when somebody last wrote it.

    0 while nobody has, or nothing is left of it. What memory enters there by itself does not count.
    """
    noted: Noted = field(default_factory=Noted)
    """The lines that memory keeps on the overview."""
    worked: frozenset[str] = frozenset()
    """Tools that were observed to work, outside of the conversation."""
    title: str = ""
    """What the session is called: as somebody has named it, or by the first words of what it was asked."""
    model: str = ""
    """The model that last answered, as the provider calls it."""

    @property
    def language(self) -> str:
        """That the session began in."""
        return self.opened.language if self.opened else "en"

    @property
    def line(self) -> Conversation:
        """The conversation, as the host has it."""
        return self.history.line


class MindFold:
    """Folds a session's stream."""

    version = 7

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> SessionState:
        return SessionState(stream=self._stream)

    def apply(self, state: SessionState, event: Event) -> SessionState:
        what = event.payload
        opened = what if isinstance(what, SessionOpened) else state.opened
        history = state.history.apply(event)
        before, begun = state.before, state.begun
        if event.seq == begun + 1 and (event.seq == 1 or not event.starts_batch):
            begun = event.seq
        if event.kind not in BOOKKEEPING and event.starts_batch and not _is_upkeep(event) and not is_saved(event):
            before = event.seq - 1
        came_home = state.came_home
        if isinstance(what, ChildMerged):
            home = Home(what.seq, what.seq if what.pad is None else what.pad, event.seq)
            came_home = {**came_home, what.child: home}
        shown, heard = state.shown, state.heard
        if isinstance(what, PromptPrepared) and what.shown is not None:
            shown = dict(what.shown)
        if isinstance(what, MessageAdded) and what.shown:
            heard = {**heard, **dict(what.shown)}
        return SessionState(
            stream=state.stream,
            seq=event.seq,
            opened=opened,
            history=history,
            documents=state.documents.apply(event),
            entities=state.entities.apply(event),
            pads=state.pads.apply(event),
            standing=state.standing.apply(event, messages=len(history.sent), kept=_kept(state.history, history)),
            begun=begun,
            before=before,
            came_home=came_home,
            shown=shown,
            heard=heard,
            covered=_covered(state, event),
            noted=state.noted.apply(event),
            worked=_worked(state.worked, event),
            title=title_after(state.title, event),
            model=what.model or state.model if isinstance(what, UsageReported | SessionImported) else state.model,
        )

    def reverted(self, past: SessionState, present: SessionState, event: Event) -> SessionState:
        kept = past.history.sent.agreeing(present.history.sent[:])
        standing = past.standing.reverted(present.standing, kept)
        history = replace(past.history, stood_for=present.history.stood_for)
        lifted = len(past.history.compactions) < len(present.history.compactions)
        return replace(
            past,
            seq=event.seq,
            history=history,
            standing=standing,
            title=present.title,
            model=present.model,
            covered=0 if lifted else past.covered,
        )

    def freeze(self, state: SessionState) -> dict[str, Any]:
        return {
            "seq": state.seq,
            "opened": _freeze_opened(state.opened),
            "history": state.history.freeze(),
            "documents": state.documents.freeze(),
            "entities": state.entities.freeze(),
            "pads": state.pads.freeze(),
            "standing": state.standing.freeze(),
            "begun": state.begun,
            "before": state.before,
            "came_home": dict(state.came_home),
            "seen": [dict(state.shown), dict(state.heard)],
            "covered": state.covered,
            "noted": [state.noted.freeze(), sorted(state.worked)],
            "title": [state.title, state.model],
        }

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> SessionState:
        return SessionState(
            stream=self._stream,
            seq=frozen["seq"],
            opened=SessionOpened(*frozen["opened"]) if frozen["opened"] else None,
            history=History.thaw(frozen["history"], messages, self._stream),
            documents=Documents.thaw(frozen["documents"], self._stream),
            entities=Entities.thaw(frozen["entities"]),
            pads=Pads.thaw(frozen["pads"], self._stream),
            standing=Standing.thaw(frozen["standing"]),
            begun=frozen["begun"],
            before=frozen["before"],
            came_home={child: Home(*home) for child, home in frozen["came_home"].items()},
            shown=frozen["seen"][0],
            heard=frozen["seen"][1],
            covered=frozen["covered"],
            noted=Noted.thaw(frozen["noted"][0]),
            worked=frozenset(frozen["noted"][1]),
            title=frozen["title"][0],
            model=frozen["title"][1],
        )


@frozen
class ResourceState:
    """What a resource owns, shared by all of its sessions."""

    documents: Documents = field(default_factory=Documents)
    pads: Pads = field(default_factory=Pads)
    felt: Felt = field(default_factory=Felt)
    """How things have been going for it."""
    dreams: Dreaming = field(default_factory=Dreaming)
    """Where its dreaming stands."""


class BelongingsFold:
    """Folds a resource's stream."""

    version = 7

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> ResourceState:
        return ResourceState()

    def apply(self, state: ResourceState, event: Event) -> ResourceState:
        return ResourceState(
            documents=state.documents.apply(event),
            pads=state.pads.apply(event),
            felt=state.felt.apply(event),
            dreams=state.dreams.apply(event),
        )

    def reverted(self, past: ResourceState, present: ResourceState, event: Event) -> ResourceState:  # noqa: ARG002 -- the protocol's
        """What was felt was felt."""
        return replace(past, felt=present.felt)

    def freeze(self, state: ResourceState) -> dict[str, Any]:
        return {
            "documents": state.documents.freeze(),
            "pads": state.pads.freeze(),
            "felt": state.felt.freeze(),
            "dreams": state.dreams.freeze(),
        }

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> ResourceState:  # noqa: ARG002 -- the protocol's
        return ResourceState(
            documents=Documents.thaw(frozen["documents"], self._stream),
            pads=Pads.thaw(frozen["pads"], self._stream),
            felt=Felt.thaw(frozen["felt"]),
            dreams=Dreaming.thaw(frozen["dreams"]),
        )


def _freeze_opened(opened: SessionOpened | None) -> list[Any] | None:
    if opened is None:
        return None
    return [opened.resource, opened.cwd, opened.language, opened.parent, opened.handed]


def _kept(before: History, after: History) -> int | None:
    """Leading messages of those that were sent which still stand in their places; None where nothing was changed."""
    if after.sent is before.sent or len(after.line) > len(before.line):
        return None
    return before.sent.agreeing(after.sent[:])


def _is_upkeep(event: Event) -> bool:
    """Memory's own entries follow from what others have written, by themselves: taken back, they would come again."""
    return isinstance(event.payload, DocumentWritten) and event.payload.upkeep and event.payload.path == OVERVIEW


def is_saved(event: Event) -> bool:
    """A person has saved a page in its file."""
    return isinstance(event.payload, DocumentWritten) and event.origin is Origin.FILE


def _worked(before: frozenset[str], event: Event) -> frozenset[str]:
    what = event.payload
    if not isinstance(what, ToolObserved) or what.tool in before or what.error:
        return before
    from inmind.entities.outcome import failed  # its words are looked up only where a tool was observed

    return before if failed(what.result) else before | {what.tool}


def title_after(before: str, event: Event) -> str:
    """What a session is called after some event: see `Mind.title`."""
    what = event.payload
    if isinstance(what, SessionTitled):
        return what.title
    if before or not isinstance(what, MessageAdded) or event.origin is not Origin.USER:
        return before
    return shortened(FORMATS[what.format].read(what.wire).text, MOST_TITLE)


def _covered(state: SessionState, event: Event) -> int:
    """A lifted compaction is what a person wants to see again: until the page is written anew nothing is stripped."""
    what = event.payload
    if isinstance(what, CompactionUndone):
        return 0
    if not isinstance(what, DocumentWritten) or what.path != OVERVIEW or what.upkeep:
        return state.covered
    if not is_maintained(what.text):
        return 0
    brought = bool(event.sources) and not any(source.startswith(f"{state.stream}#") for source in event.sources)
    says_the_same = written_part(what.text) == written_part(state.documents.text(OVERVIEW))
    return state.covered if brought or says_the_same else event.seq
