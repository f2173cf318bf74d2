"""Run memory tools against given states, and track what the caller knows.

Nothing is appended here: a batch of calls collects drafts, and each call sees the changes of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Self

from inmind.core.events.base import Draft, EventId, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.frozen import frozen
from inmind.core.messages.model import Call, Reply
from inmind.documents.scratchpad.state import ScratchpadState, known_state_after
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.state import PromptState
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext
from inmind.session.derive import AffectCause
from inmind.session.entities import resolve
from inmind.session.prepare import PromptPreparer
from inmind.session.search import SessionSearch
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.base import ToolAnswer, ToolContext, ToolResult
from inmind.session.tools.registry import adds_tools, cut_off_answer, route_call, run_tool, unknown_tool_answer


@frozen
class ResourceVersion:
    """The state of the resource and the number of the last event in it."""

    resource_state: ResourceState
    version: int


class CallerKnowledge:
    """The versions of pages that the model knows while its calls run.

    It wrote all calls before it saw any answer. So it knows the pages that it had seen before (`seen`, by the events
    that wrote them) and the text that its own calls write. It knows the answers only from its next reply on
    (`shown_by_answers`).
    """

    def __init__(self, seen: Mapping[str, Sequence[str]]) -> None:
        self.seen = dict(seen)
        self.shown_by_answers: dict[str, str] = {}
        self.scratchpad: ScratchpadState | None = None

    @classmethod
    def by_prompt(cls, state_at_prompt: SessionState) -> Self:
        """Knowledge from the last prompt and from answers to calls since."""
        prompt, results = state_at_prompt.shown_in_prompt, state_at_prompt.shown_in_results
        return cls({path: (prompt.get(path, ""), results.get(path, "")) for path in {**prompt, **results}})

    def update(self, answer: ToolAnswer, before: str, after: str) -> None:
        """Update after an answer.

        `before`, `after`: ids of the events that wrote the answer's page before and after the call. An empty `after`:
        no page, or no event is appended.
        """
        self.shown_by_answers.update(answer.shows)
        for draft in answer.drafts:
            self.scratchpad = known_state_after(draft.payload, self.scratchpad)
        if not after:
            return
        was_known = answer.complete or before in self.seen.get(answer.about, ())
        if answer.complete or (answer.drafts and (was_known or self.shown_by_answers.get(answer.about) == before)):
            self.shown_by_answers[answer.about] = after
        if answer.drafts and was_known:
            self.seen[answer.about] = (after, after)


class ToolCallBatch:
    """Calls that run one after the other, each on the state after the one before."""

    def __init__(self, state: SessionState, resource: ResourceVersion, knowledge: CallerKnowledge) -> None:
        self.state, self.knowledge = state, knowledge
        self.resource_state, self._resource_version = resource.resource_state, resource.version
        self.drafts: list[Draft] = []
        self.resource_drafts: list[Draft] = []
        """Events for the resource's stream."""
        self.answers: list[ToolAnswer] = []
        self.searches: list[AffectCause] = []

    @property
    def resource(self) -> ResourceVersion:
        return ResourceVersion(self.resource_state, self._resource_version + len(self.resource_drafts))

    @property
    def result(self) -> ToolResult:
        """The result of the last call, for a call without a reply."""
        answer = self.answers[-1]
        return ToolResult(
            text=answer.text,
            content=dict[str, Any]() if answer.error else answer.content,
            error=answer.error,
            code=answer.code,
            seen=self.knowledge.shown_by_answers,
        )

    @property
    def took_effect(self) -> bool:
        return not any(answer.refused for answer in self.answers)


class ToolCallRunner:
    """Runs memory tools of one session against given states. It appends nothing."""

    def __init__(
        self, context: SessionContext, compactor: Compactor, search: SessionSearch, preparer: PromptPreparer
    ) -> None:
        self._context, self._stream, self._resource = context, context.stream, context.resource
        self._layers, self._compactor, self._search, self._preparer = context.config.layers, compactor, search, preparer

    def start_batch(
        self,
        state: SessionState,
        resource: ResourceVersion,
        knowledge: CallerKnowledge,
        *,
        already_applied: bool = False,
    ) -> ToolCallBatch:
        """An empty batch. `already_applied`: this reply has changed the resource before."""
        seen = knowledge.seen.get(SCRATCHPAD_PATH, ())
        knowledge.scratchpad = self._known_scratchpad(state, resource.resource_state, seen, already_applied)
        return ToolCallBatch(state, resource, knowledge)

    def run_call(
        self, call: Call, state: SessionState, resource: ResourceVersion, knowledge: CallerKnowledge, now: datetime
    ) -> ToolCallBatch:
        """Run a single call for a caller with this knowledge."""
        batch = self.start_batch(state, resource, knowledge)
        self.apply(batch, run_tool(call, self.context_for(batch, now)), "", now)
        return batch

    @property
    def resource_version(self) -> ResourceVersion:
        return ResourceVersion(self._resource.state, self._resource.version)

    def knowledge_from(self, seen: Mapping[str, str]) -> CallerKnowledge:
        """Knowledge of a caller, by its `seen`. Ids of events that do not exist are ignored."""
        last = {self._stream.name: self._stream.version, self._resource.name: self._resource.version}

        def exists(path: str, event: str) -> bool:
            if (id := EventId.parse(event)) is None:
                return False
            is_own = id.stream == self._stream.name or (path == SCRATCHPAD_PATH and id.stream in last)
            return is_own and id.seq <= last[id.stream]

        return CallerKnowledge({path: (event,) for path, event in seen.items() if exists(path, event)})

    def full_knowledge(self, state: SessionState, resource_state: ResourceState) -> CallerKnowledge:
        """The knowledge of a caller that has seen the current version of every page."""
        pages = {path: page.source for path, page in state.documents.by_path.items()}
        seen = {**pages, SCRATCHPAD_PATH: self.source_of(SCRATCHPAD_PATH, state, resource_state)}
        return CallerKnowledge({path: (event,) for path, event in seen.items()})

    def answer(self, call: Call, reply: Reply, prompt: PromptState, context: ToolContext) -> ToolAnswer | None:
        """Answer a call of a reply to `prompt`; None if the host has to run it."""
        match self._route(call, prompt, context.state):
            case "memory":
                return run_tool(call, context) if reply.is_complete else cut_off_answer()
            case "unknown":
                return unknown_tool_answer(call, tool_names(prompt.all_tools or ()))
            case _:
                return None

    def apply(
        self,
        batch: ToolCallBatch,
        answer: ToolAnswer,
        source: str,
        now: datetime,
        *,
        already_applied: bool = False,
    ) -> None:
        """Add an answer to the batch.

        `source`: id of the event that has the call; empty for a call without a reply. `already_applied`: the call
        changed the resource when it was first recorded, so nothing is appended there again.
        """
        drafts = [replace(draft, sources=(source, *draft.sources)) if source else draft for draft in answer.drafts]
        before = self.source_of(answer.about, batch.state, batch.resource_state)
        if answer.scope == "thread":
            batch.state = self._stream.preview(batch.state, batch.state.seq, drafts, now)
            batch.drafts += drafts
        else:
            resource = batch.resource
            batch.resource_state = self._resource.preview(resource.resource_state, resource.version, drafts, now)
            batch.resource_drafts += drafts
        after = self.source_of(answer.about, batch.state, batch.resource_state)
        if already_applied and after.startswith(f"{self._resource.name}#"):
            after = ""
        batch.knowledge.update(answer, before, after)
        batch.answers.append(answer)
        for draft in drafts:
            if isinstance(draft.payload, SearchRecorded):
                at = source or f"{batch.state.stream}#{batch.state.seq}"
                batch.searches.append(AffectCause(bool(draft.payload.hits), Origin.ASSISTANT, at))

    def context_for(self, batch: ToolCallBatch, now: datetime) -> ToolContext:
        state, resource, knowledge = batch.state, batch.resource, batch.knowledge
        return ToolContext(
            now=now,
            state=state,
            resource_state=resource.resource_state,
            ancestors=[stream.state for stream in self._context.ancestors],
            layers=self._layers,
            seen=knowledge.seen,
            page_as_seen=partial(self._page_as_seen, knowledge.seen),
            scratchpad_as_seen=knowledge.scratchpad,
            next_ids={
                "thread": f"{state.stream}#{state.seq + 1}",
                "resource": f"{self._resource.name}#{resource.version + 1}",
            },
            resolve=partial(resolve, self._context),
            search=self._search.search_by_model,
            compact=partial(self._compactor.compact_by_model, state),
            memory_view=partial(self._preparer.memory_view, state, now),
        )

    def _known_scratchpad(
        self, state: SessionState, resource_state: ResourceState, seen: Sequence[str], already_applied: bool
    ) -> ScratchpadState | None:
        """The scratchpad as the model saw it, given the ids of the events that it saw.

        None if it did not see it. A reply that has changed the resource before was written by a model that knew the
        state at that time.
        """
        layer = find_scratchpad(self._layers)
        if layer is None:
            return None
        pads, stream = (
            (state.scratchpads, self._stream)
            if layer.scope == "thread"
            else (resource_state.scratchpads, self._resource)
        )
        if layer.source(stream.name, pads) in seen or (already_applied and layer.scope == "resource"):
            return layer.current_state(pads)
        seqs = [EventId.of(id).seq for id in seen if id.startswith(f"{stream.name}#")]
        return layer.current_state(stream.state_at(max(seqs)).scratchpads) if seqs else None

    def source_of(self, path: str, state: SessionState, resource_state: ResourceState) -> str:
        """Id of the event that wrote the current version of a page or of the scratchpad."""
        layer = find_scratchpad(self._layers)
        if path == SCRATCHPAD_PATH and layer is not None:
            if layer.scope == "thread":
                return layer.source(state.stream, state.scratchpads)
            return layer.source(self._resource.name, resource_state.scratchpads)
        page = state.documents.by_path.get(path)
        return page.source if page else ""

    def _page_as_seen(self, seen: Mapping[str, Sequence[str]], path: str) -> str:
        seqs = [EventId.of(id).seq for id in seen.get(path, ()) if id]
        return self._stream.state_at(max(seqs)).documents.text(path) if seqs else ""

    def _route(self, call: Call, prompt: PromptState, state: SessionState) -> str:
        """Route a call by the tools of the prompt that the reply answers.

        Memory has no custom tools.
        """
        if call.custom:
            return "host"
        messages = map(self._context.view.read_message, state.conversation)
        return route_call(
            call.name,
            prompt.tools,
            lambda: adds_tools(messages),
            layer_tools=prompt.layer_tools,
            memory_tools=self._context.config.memory_tools,
        )
