"""Events derived from others of the same commit, and the calls to layers.

What layers store, entity sightings, memory's lines on the overview, and affect. One undo reverts them with their cause.
Affect belongs to the resource, so its events go into the resource's stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.dreams import AffectSpiked
from inmind.core.events.session import MessageAdded, ShownVersions, ToolObserved
from inmind.core.language.prose import ends_with_shell_prompt, has_output_heading, own_words, starts_like_output
from inmind.core.language.spans import split_sentences
from inmind.core.messages import FORMATS
from inmind.core.messages.format import Format
from inmind.core.messages.model import Call, Result, Text
from inmind.core.tool_outcome import ToolOutcome, is_failure, read_outcome
from inmind.documents.document import NOTES_PAGE_PATH, Documents
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.maintain import overview_updates
from inmind.documents.overview.tool_rules import overview_events
from inmind.dreams.affect import AffectState, add_auto_notes
from inmind.dreams.affect_rules import (
    AffectSignal,
    may_have_affect,
    signal_from_outcome,
    signal_from_search,
    signals_from_text,
)
from inmind.entities.observe import Observation, draft_entity_events
from inmind.history.compaction.stubs import shown_ids
from inmind.history.history import Conversation, ConversationEntry, History
from inmind.history.turns import ReadMessage
from inmind.prompt.layers.base import Layer, LayerContext, LayerText, ViewLayer, call_layer, check_stored_draft
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.plan import PromptPlan
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.stream import Decision, Stream

R = TypeVar("R")

MAX_LOOKBACK = 64
"""Messages to search backwards for the call of a result. Most providers require it right before."""


AffectCause = tuple[str | ToolOutcome | bool, Origin, str]
"""A possible cause of affect: its content, origin, and the id of its event.

The content is a message of the user, the outcome of a tool, or whether a search had hits.
"""


_LIST = (list, tuple)
_RECALLED = (LayerText, type(None))


class LayerCalls:
    """Calls the layers of one session: `recall`, `store` and `tools`."""

    def __init__(self, context: SessionContext, planner: CompactionPlanner) -> None:
        self._context, self._resource, self._ancestors = context, context.resource, context.ancestors
        self._layers, self._planner = context.config.layers, planner
        self._ids_by_message: dict[str, frozenset[str]] = {}

    def recall(self, state: SessionState, now: datetime) -> list[tuple[Layer, LayerText]]:
        """The texts of all layers for a prompt.

        An empty one is not rendered, but the tail describes how it changes.
        """
        context = self.layer_context(state, now)
        texts = [(layer, call_layer(layer, partial(layer.recall, context), _RECALLED)) for layer in self._layers]
        return [(layer, text) for layer, text in texts if text is not None]

    def tools(self, fmt: Format) -> list[Any]:
        """The tools that the layers offer to the model, in a provider's format."""
        return [tool for layer in self._layers for tool in call_layer(layer, partial(layer.tools, fmt.name), _LIST)]

    def store_replies(self, state: SessionState, now: datetime, drafts: Sequence[Draft]) -> list[Draft]:
        """Events by which layers store the assistant's messages among these drafts."""
        replies = [
            d.payload.wire for d in drafts if isinstance(d.payload, MessageAdded) and d.origin is Origin.ASSISTANT
        ]
        if not replies:
            return []
        context = self.layer_context(state, now)
        return [
            check_stored_draft(layer, draft)
            for wire in replies
            for layer in self._layers
            for draft in call_layer(layer, partial(layer.store, context, wire), _LIST)
        ]

    def layer_context(
        self, state: SessionState, now: datetime, ancestors: Sequence[Stream[SessionState]] | None = None
    ) -> LayerContext:
        """The values that a layer may read.

        `parent` has the current values of the parent session, and so on.
        """
        is_own = ancestors is None
        streams = self._ancestors if ancestors is None else ancestors
        resource_state = self._resource.state
        resource_pages = {
            path: page
            for path, page in resource_state.documents.by_path.items()
            if not (path == NOTES_PAGE_PATH and self._context.is_anonymous)  # it has its own notes page
        }
        return LayerContext(
            session=state.stream.removeprefix("session/"),
            resource=self._context.resource_name,
            now=now,
            documents={**resource_pages, **state.documents.by_path},
            messages=state.history.sent.wires,
            entities=state.entities,
            scratchpads={"thread": state.scratchpads, "resource": resource_state.scratchpads},
            is_visible=state.history.sent.contains_event if is_own else lambda _: False,
            visible_ids=self._shown_ids(state.history) if is_own else frozenset(),
            parent=self.layer_context(streams[0].state, now, streams[1:]) if streams else None,
            language=state.language,
            retained=self._planner.items_in_memory(state.history),
            window=self._context.config.limits.window,
        )

    def refresh_ancestors(self) -> None:
        """Load changes of the ancestors if a layer is a view of one of them."""
        if any(isinstance(layer, ViewLayer) for layer in self._layers):
            for ancestor in self._ancestors:
                ancestor.refresh()

    def fully_shown_documents(
        self, state: SessionState, planned: PromptPlan, recalled: Sequence[tuple[Layer, LayerText]]
    ) -> ShownVersions | None:
        """Pages, and the scratchpad, that a prompt shows in full.

        None if they are the same as in the prompt before.

        A scratchpad with a schema counts even if it is cut: each of its fields is shown in full or left out.
        """
        cut = {layer for layer, _ in planned.cut}
        pages = state.documents.by_path
        paths = [layer.path for layer, _ in recalled if isinstance(layer, DocumentLayer) and layer.name not in cut]
        seen = {path: pages[path].source for path in paths if path in pages}
        pad = find_scratchpad(self._layers)
        if pad is not None and (pad.schema is not None or pad.name not in cut):
            thread = pad.scope == "thread"
            stream, pads = (
                (state.stream, state.scratchpads) if thread else (self._resource.name, self._resource.state.scratchpads)
            )
            seen[SCRATCHPAD_PATH] = pad.source(stream, pads)
        return None if seen == state.shown_in_prompt else tuple(seen.items())

    def _shown_ids(self, history: History) -> frozenset[str]:
        """Ids in the stubs and calls that are sent; each message is read once."""
        known = self._ids_by_message
        self._ids_by_message = {
            entry.digest: known[entry.digest]
            if entry.digest in known
            else shown_ids(entry, self._context.view.read_message(entry))
            for entry in (history.sent if history.compactions else ())
        }
        return frozenset[str]().union(*self._ids_by_message.values())


class EventDeriver:
    """Derives the events that go into the same commit as some drafts. It keeps only caches.

    It also maintains memory's lines on the overview: rules derive them from tool results, and the index of pages
    follows the pages.
    """

    def __init__(self, context: SessionContext, layer_calls: LayerCalls) -> None:
        self._context, self._stream, self._layer_calls = context, context.stream, layer_calls
        self._read = context.view.read_message
        self._current: tuple[Documents, OverviewLog] | None = None
        """The documents and lines for which the overview was last found up to date."""
        self._working_tools: tuple[int, str, frozenset[str]] = (0, "", frozenset())
        """A prefix of the conversation (its length and digest), and the tools that have succeeded in it."""

    def derive(
        self, state: SessionState, now: datetime, drafts: Sequence[Draft], result: R
    ) -> Decision[SessionState, R]:
        """The decision to append drafts with the events that follow from them."""
        layer_drafts = self._layer_calls.store_replies(state, now, drafts)
        given = [*drafts, *layer_drafts]
        observations = observations_in(state, given, self._read)
        given += draft_entity_events(
            state.entities,
            observations,
            self._context.config.entities,
            now=now,
            stream=state.stream,
            version=state.seq + len(given),
        )
        spikes: list[Draft] = []
        if self._context.config.affect and not self._context.is_anonymous:
            causes = [*_newest_causes(state, observations), *_searches(state, drafts)]
            spikes = _spikes(self._context.resource.state.affect, state, now, causes)
        return Decision([*given, *self._overview_drafts(state, now, given, observations)], result, companion=spikes)

    def refresh_overview(self) -> bool:
        """Update the overview for pages that people wrote as files.

        Returns whether anything changed.
        """

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, tuple[Documents, OverviewLog]]:
            drafts = overview_updates(state.documents, state.language, log=state.overview_lines)
            return Decision(drafts, (state.documents, state.overview_lines))

        state = self._stream.state
        if (state.documents, state.overview_lines) == self._current:
            return False
        done = self._stream.commit(decide)
        if not done.events:
            self._current = done.result
        return bool(done.events)

    def _overview_drafts(
        self, before: SessionState, now: datetime, drafts: Sequence[Draft], observations: Sequence[Observation]
    ) -> list[Draft]:
        """Events that update the overview for tool calls and pages among these drafts."""
        outcomes = [
            (item.content, item.source)
            for item in observations
            if isinstance(item.content, ToolOutcome) and not is_memory_tool(item.content.tool)
        ]
        events = overview_events(
            (outcome for outcome, _ in outcomes),
            before.overview_lines,
            has_worked=lambda tool: tool in before.working_tools or tool in self._working_tools_in(before.conversation),
            language=before.language,
        )
        wrote = any(isinstance(draft.payload, DocumentWritten | OverviewEvent) for draft in drafts)
        if not events and not wrote and (before.documents, before.overview_lines) == self._current:
            return []
        after = self._stream.preview(before, before.seq, drafts, now)
        sources = tuple(dict.fromkeys(source for _, source in outcomes)) if events else ()
        updates = overview_updates(
            after.documents, before.language, events, log=after.overview_lines, trust=Trust.DATA, sources=sources
        )
        if not updates:
            self._current = (after.documents, after.overview_lines)
        return updates

    def _working_tools_in(self, conversation: Conversation) -> frozenset[str]:
        """Tools that have succeeded in the conversation.

        Reading continues where the last call stopped.
        """
        length, digest, worked = self._working_tools
        if not conversation.begins_with(length, digest):
            length, worked = 0, frozenset[str]()
        if length < len(conversation):
            outcomes = tool_results_in(conversation[max(0, length - MAX_LOOKBACK) :], self._read)
            worked |= {
                result.tool
                for result in outcomes
                if result.tool not in worked and not (result.error or is_failure(result.result))
            }
            self._working_tools = (len(conversation), conversation.prefix_digest(), worked)
        return worked


def _newest_causes(state: SessionState, observations: Sequence[Observation]) -> list[AffectCause]:
    """The last message and what follows it: a host may pass a long old conversation at once.

    Messages of child sessions come from the parent agent and carry no affect.
    """
    last = max((index for index, item in enumerate(observations) if isinstance(item.content, str)), default=0)
    return [
        (item.content, item.origin, item.source)
        for item in observations[last:]
        if not (state.is_child and isinstance(item.content, str))
    ]


def _searches(state: SessionState, drafts: Sequence[Draft]) -> list[AffectCause]:
    """The searches of the model among drafts. Their source is the call, if it is in a reply."""
    return [
        (bool(draft.payload.hits), Origin.ASSISTANT, next(iter(draft.sources), f"{state.stream}#{seq}"))
        for seq, draft in enumerate(drafts, start=state.seq + 1)
        if isinstance(draft.payload, SearchRecorded)
    ]


def _spikes(before: AffectState, state: SessionState, now: datetime, causes: Iterable[AffectCause]) -> list[Draft]:
    """Spikes of several causes, each computed on the affect after the ones before.

    Each kind of spike is raised once: three calls that fail together are one error.
    """
    affect, session = before, state.stream.removeprefix("session/")
    spikes: dict[str, Draft] = {}
    for content, origin, source in causes:
        for signal in _signals(content, affect, now):
            payload = AffectSpiked(signal.spike, reason=signal.why, subject=signal.about, session=session)
            draft = Draft(payload=payload, origin=origin, sources=(source,))
            if spikes.setdefault(signal.spike, draft) is draft:
                affect = affect.with_spike(payload, at=now, trust=draft.effective_trust)
    return add_auto_notes(before, spikes.values(), now)


def _signals(content: str | ToolOutcome | bool, affect: AffectState, now: datetime) -> list[AffectSignal]:
    if isinstance(content, str):
        return affect_from_text(content)
    if isinstance(content, bool):
        return [signal_from_search(has_hits=content)]
    # A search without hits counts as a success, for any exit code.
    failed = content.failed and bool(
        overview_events([content], OverviewLog(), has_worked=lambda _: True, language="en")
    )
    signal = signal_from_outcome(replace(content, failed=failed), affect, now)
    return [] if signal is None else [signal]


def affect_from_text(text: str) -> list[AffectSignal]:
    """Affect signals in a user's message, in the user's own words only."""
    if (
        not may_have_affect(text)
        or has_output_heading(text)
        or starts_like_output(text)
        or ends_with_shell_prompt(text)
    ):
        return []
    return signals_from_text([sentence for line in own_words(text) for sentence in split_sentences(line)])


def observations_in(state: SessionState, drafts: Sequence[Draft], read: ReadMessage) -> list[Observation]:
    """Tool results and user messages among drafts that will be appended after `state`.

    Results of memory tools in messages come from memory and are not learned again.
    """
    observations: list[Observation] = []
    observed: list[Observation] = []
    calls: dict[str, Call] = {}
    for seq, draft in enumerate(drafts, start=state.seq + 1):
        source = f"{state.stream}#{seq}"
        if isinstance(draft.payload, ToolObserved):
            observed.append(Observation(read_outcome(draft.payload), draft.origin, source))
        if not isinstance(draft.payload, MessageAdded):
            continue
        message = FORMATS[draft.payload.format].read(draft.payload.wire)
        calls.update((call.id, call) for call in message.calls)
        for result in message.results:
            call = calls.get(result.id) or _find_call(state.conversation, result.id, read)
            outcome = _outcome(result, call, draft.payload.wire)
            if not is_memory_tool(outcome.tool):
                observations.append(Observation(read_outcome(outcome), draft.origin, source))
        if draft.origin is Origin.USER and message.text:
            observations.append(Observation(message.text, draft.origin, source))
    return [*observations, *observed]


def tool_results_in(entries: Sequence[ConversationEntry], read: ReadMessage) -> Iterator[ToolObserved]:
    """Tool results in messages of the conversation."""
    calls: dict[str, Call] = {}
    for entry in entries:
        message = read(entry)
        calls.update((call.id, call) for call in message.calls)
        yield from (_outcome(result, calls.get(result.id), entry.wire) for result in message.results)


def _outcome(result: Result, call: Call | None, wire: Mapping[str, Any]) -> ToolObserved:
    return ToolObserved(
        tool=call.name if call else str(wire.get("name") or ""),
        arguments=call.arguments if call else None,
        result=text_of_result(result),
        error=result.error,
        call_id=result.id,
    )


def _find_call(line: Conversation, id: str, read: ReadMessage) -> Call | None:
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        for call in read(entry).calls:
            if call.id == id:
                return call
    return None


def text_of_result(result: Result) -> Any:
    """The text of a result; several texts as content blocks."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
