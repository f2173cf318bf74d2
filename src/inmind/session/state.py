"""The state of a session and of a resource: the folds of all their parts.

Nothing is decided here. Every event is passed to every part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, NamedTuple

from inmind.core.encoding import decode, encode_fields
from inmind.core.events import KINDS_SKIPPED_BY_UNDO
from inmind.core.events.base import Event, Origin
from inmind.core.events.crystals import NoteWithdrawn
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import (
    ChildMerged,
    Compacted,
    CompactionUndone,
    MessageAdded,
    PromptPrepared,
    SessionImported,
    SessionOpened,
    SessionTitled,
    ToolObserved,
    UsageReported,
)
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.paths import ANONYMOUS
from inmind.core.text import count_noun, shorten
from inmind.documents.document import OVERVIEW_PATH, Documents
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.page import is_maintained, written_lines
from inmind.documents.scratchpad.state import Scratchpads
from inmind.dreams.affect import AffectState
from inmind.dreams.state import DreamingState
from inmind.entities.window import Entities
from inmind.history.history import Conversation, History
from inmind.prompt.state import PromptState

MAX_TITLE_LENGTH = 80


class MergePoint(NamedTuple):
    """The last events of a child that were merged."""

    seq: int
    """Last event of the child whose pages and entities were merged."""
    scratchpad_seq: int
    """Last event of the child whose scratchpad was merged; it may be older."""
    event: int
    """Event of the parent with the report."""


@frozen
class SessionState:
    """The state of a session after some event."""

    stream: str
    seq: int = 0
    opened: SessionOpened | None = None
    history: History = field(default_factory=History)
    documents: Documents = field(default_factory=Documents)
    entities: Entities = field(default_factory=Entities)
    scratchpads: Scratchpads = field(default_factory=Scratchpads)
    prompt: PromptState = field(default_factory=PromptState)
    opening_end: int = 0
    """Number of the last event of the opening batch. Undo cannot go before it."""
    undo_target: int = 0
    """Number of the event that `undo` goes back to: the last one before the last change. 0: nothing to undo.

    A change is a batch that starts with something a person would call a change. Opening a session is not one, and edits
    that people save in files are theirs. Being part of the state, it is reverted too, so a second undo goes one step
    further."""
    merged_children: Mapping[str, MergePoint] = field(default_factory=dict[str, "MergePoint"])
    """Children whose changes were merged."""
    shown_in_prompt: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pages, and the scratchpad, that the last prompt showed in full, with the event that wrote each version."""
    shown_in_results: Mapping[str, str] = field(default_factory=dict[str, str])
    """The same for results of memory tools since then, including what the calls have written."""
    overview_covers: int = 0
    """Number of the event up to which the overview can cover the conversation: when it was last written.

    0 if it was never written or is empty. Lines by memory itself do not count."""
    overview_lines: OverviewLog = field(default_factory=OverviewLog)
    """The lines that memory maintains on the overview."""
    working_tools: frozenset[str] = frozenset()
    """Tools that were observed to succeed, outside of the conversation."""
    withdrawn_notes: frozenset[str] = frozenset()
    """Ids of the notes that this session has withdrawn."""
    title: str = ""
    """The title: the last rename, or the first words of the user."""
    model: str = ""
    """The model that answered last, as the provider names it."""

    def __str__(self) -> str:
        return f"{self.stream} after event {self.seq}: {count_noun(len(self.conversation), 'message')}"

    @property
    def language(self) -> str:
        """The language in which the session was opened."""
        return self.opened.language if self.opened else "en"

    @property
    def is_anonymous(self) -> bool:
        """True if the session was opened without a resource.

        It then must not read resource-level memory.
        """
        return self.opened is not None and self.opened.resource == ANONYMOUS

    @property
    def is_child(self) -> bool:
        return self.opened is not None and bool(self.opened.parent)

    @property
    def conversation(self) -> Conversation:
        """The messages as the host has them."""
        return self.history.messages


class SessionFold:
    """Folds a session's stream."""

    version = 10

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> SessionState:
        return SessionState(stream=self._stream)

    def apply(self, state: SessionState, event: Event) -> SessionState:
        payload = event.payload
        opened = payload if isinstance(payload, SessionOpened) else state.opened
        history = state.history.apply(event)
        undo_target, opening_end = state.undo_target, state.opening_end
        # Memory's own lines on the overview follow from other events: if they were undone, they would be written again.
        is_upkeep = isinstance(payload, DocumentWritten) and payload.upkeep and payload.path == OVERVIEW_PATH
        if event.seq == opening_end + 1 and (event.seq == 1 or not event.starts_batch):
            opening_end = event.seq
        if (
            event.kind not in KINDS_SKIPPED_BY_UNDO
            and event.starts_batch
            and not is_upkeep
            and not is_file_edit(event)
            and not (isinstance(payload, Compacted) and payload.is_thread)
        ):
            undo_target = event.seq - 1
        merged_children = state.merged_children
        if isinstance(payload, ChildMerged):
            point = MergePoint(
                payload.seq, payload.seq if payload.scratchpad_seq is None else payload.scratchpad_seq, event.seq
            )
            merged_children = {**merged_children, payload.child: point}
        in_prompt, in_results = state.shown_in_prompt, state.shown_in_results
        if isinstance(payload, PromptPrepared) and payload.shown_versions is not None:
            in_prompt = dict(payload.shown_versions)
        if isinstance(payload, MessageAdded) and payload.shown_versions:
            in_results = {**in_results, **dict(payload.shown_versions)}
        return SessionState(
            stream=state.stream,
            seq=event.seq,
            opened=opened,
            history=history,
            documents=state.documents.apply(event),
            entities=state.entities.apply(event),
            scratchpads=state.scratchpads.apply(event),
            prompt=state.prompt.apply(
                event, message_count=len(history.sent), common_length=_unchanged_prefix(state.history, history)
            ),
            opening_end=opening_end,
            undo_target=undo_target,
            merged_children=merged_children,
            shown_in_prompt=in_prompt,
            shown_in_results=in_results,
            overview_covers=_overview_coverage(state, event),
            overview_lines=state.overview_lines.apply(event),
            working_tools=_working_tools(state.working_tools, event),
            withdrawn_notes=_withdrawn_notes(state.withdrawn_notes, event),
            title=title_after(state.title, event),
            model=payload.model or state.model if isinstance(payload, UsageReported | SessionImported) else state.model,
        )

    def revert(self, past: SessionState, present: SessionState, event: Event) -> SessionState:
        common_length = past.history.sent.common_length(present.history.sent[:])
        prompt = past.prompt.revert_to_past(present.prompt, common_length)
        history = replace(past.history, stub_ranges=present.history.stub_ranges)
        compaction_undone = len(past.history.compactions) < len(present.history.compactions)
        return replace(
            past,
            seq=event.seq,
            history=history,
            prompt=prompt,
            title=present.title,
            model=present.model,
            overview_covers=0 if compaction_undone else past.overview_covers,
        )

    def freeze(self, state: SessionState) -> dict[str, Any]:
        return {**encode_fields(state), "history": state.history.freeze()}

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> SessionState:
        history = History.thaw(frozen["history"], messages)
        return replace(decode(SessionState, {**frozen, "history": {}}), history=history)


@frozen
class ResourceState:
    """The state of a resource, shared by its sessions."""

    documents: Documents = field(default_factory=Documents)
    scratchpads: Scratchpads = field(default_factory=Scratchpads)
    affect: AffectState = field(default_factory=AffectState)
    """Levels of affect."""
    dreams: DreamingState = field(default_factory=DreamingState)
    """The state of its dreams."""
    withdrawn_notes: frozenset[str] = frozenset()
    """Ids of its notes that were withdrawn."""

    def __str__(self) -> str:
        pages = ", ".join(sorted(self.documents.by_path)) or "no pages"
        return f"{pages}; {self.affect.levels}"


class ResourceFold:
    """Folds a resource's stream."""

    version = 9

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def initial(self) -> ResourceState:
        return ResourceState()

    def apply(self, state: ResourceState, event: Event) -> ResourceState:
        return ResourceState(
            documents=state.documents.apply(event),
            scratchpads=state.scratchpads.apply(event),
            affect=state.affect.apply(event),
            dreams=state.dreams.apply(event),
            withdrawn_notes=_withdrawn_notes(state.withdrawn_notes, event),
        )

    def revert(self, past: ResourceState, present: ResourceState, event: Event) -> ResourceState:  # noqa: ARG002 -- the protocol's
        """An undo does not revert affect."""
        return replace(past, affect=present.affect)

    def freeze(self, state: ResourceState) -> dict[str, Any]:
        return encode_fields(state)

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> ResourceState:  # noqa: ARG002 -- the protocol's
        return decode(ResourceState, frozen)


def _withdrawn_notes(before: frozenset[str], event: Event) -> frozenset[str]:
    payload = event.payload
    if not isinstance(payload, NoteWithdrawn):
        return before
    return before | {payload.note} if payload.withdrawn else before - {payload.note}


def _unchanged_prefix(before: History, after: History) -> int | None:
    """Number of sent messages at the start that did not change; None if nothing was changed."""
    if after.sent is before.sent or len(after.messages) > len(before.messages):
        return None
    return before.sent.common_length(after.sent[:])


def is_file_edit(event: Event) -> bool:
    """True if a person saved a page in its file."""
    return isinstance(event.payload, DocumentWritten) and event.origin is Origin.FILE


def _working_tools(before: frozenset[str], event: Event) -> frozenset[str]:
    payload = event.payload
    if not isinstance(payload, ToolObserved) or payload.tool in before or payload.error:
        return before
    from inmind.core.tool_outcome import is_failure  # its words are looked up only where a tool was observed

    return before if is_failure(payload.result) else before | {payload.tool}


def title_after(before: str, event: Event) -> str:
    """The title of a session after an event, see `SessionState.title`."""
    payload = event.payload
    if isinstance(payload, SessionTitled):
        return payload.title
    if before or not isinstance(payload, MessageAdded) or event.origin is not Origin.USER:
        return before
    return shorten(FORMATS[payload.format].read(payload.wire).text, MAX_TITLE_LENGTH)


def _overview_coverage(state: SessionState, event: Event) -> int:
    """The new value of `overview_covers`.

    After an undone compaction the person wants the messages to stay: it becomes 0 until the page is written again.
    """
    payload = event.payload
    if isinstance(payload, CompactionUndone):
        return 0
    if not isinstance(payload, DocumentWritten) or payload.path != OVERVIEW_PATH or payload.upkeep:
        return state.overview_covers
    if not is_maintained(payload.text):
        return 0
    is_copy = bool(event.sources) and not any(source.startswith(f"{state.stream}#") for source in event.sources)
    is_same_text = written_lines(payload.text) == written_lines(state.documents.text(OVERVIEW_PATH))
    return state.overview_covers if is_copy or is_same_text else event.seq
