"""Run memory tools against given states, and track what the caller knows.

Nothing is appended here: a batch of calls collects drafts, and each call sees the changes of the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from inmind.core.events.base import Draft, EventId
from inmind.core.messages.model import Call, Reply
from inmind.documents.scratchpad.state import ScratchpadState, known_state_after
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.state import PromptState
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext
from inmind.session.entities import resolve
from inmind.session.prepare import PromptPreparer
from inmind.session.search import search_by_model
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.base import ToolAnswer, ToolContext, ToolResult
from inmind.session.tools.registry import CUT_OFF_ANSWER, adds_tools, route_call, run_tool, unknown_tool_answer

SeenPages = Mapping[str, Sequence[str]]
"""Pages that a caller has seen, with the ids of the events that wrote the versions it saw."""


class ResourceVersion(NamedTuple):
    """The state of the resource and the number of the last event in it."""

    state: ResourceState
    version: int


class ToolCallParts(NamedTuple):
    """The parts of a session that its tools work with."""

    context: SessionContext
    compactor: Compactor
    preparer: PromptPreparer


class ToolCallBatch:
    """Calls that run one after the other, each on the state after the one before.

    The model wrote all calls before it saw any answer. So it knows the pages that it had seen before (`seen`), and the
    text that its own calls write. It knows the answers only from its next reply on (`shown_by_answers`).
    """

    def __init__(
        self,
        parts: ToolCallParts,
        state: SessionState,
        resource: ResourceVersion,
        seen: SeenPages,
        now: datetime,
        *,
        already_applied: bool = False,
    ) -> None:
        """`already_applied`: these calls changed the resource when they were first recorded.

        Nothing is appended there again.
        """
        self._parts, self._context = parts, parts.context
        self.state, self._now, self._already_applied = state, now, already_applied
        self.resource_state, self._resource_version = resource
        self.drafts: list[Draft] = []
        self.resource_drafts: list[Draft] = []
        """Events for the resource's stream."""
        self.answers: list[ToolAnswer] = []
        self.seen = dict(seen)
        self.shown_by_answers: dict[str, str] = {}
        self._scratchpad = self._known_scratchpad()

    @property
    def result(self) -> ToolResult:
        """The result of the last call, for a call without a reply."""
        answer = self.answers[-1]
        return ToolResult(
            text=answer.text,
            content=dict[str, Any]() if answer.error else answer.content,
            error=answer.error,
            code=answer.code,
            seen=self.shown_by_answers,
        )

    @property
    def took_effect(self) -> bool:
        return not any(answer.refused for answer in self.answers)

    def run(self, call: Call) -> ToolCallBatch:
        """Run a call of a caller without a reply."""
        self.add(run_tool(call, self._tool_context()), "")
        return self

    def answer(self, call: Call, reply: Reply, prompt: PromptState) -> ToolAnswer | None:
        """Answer a call of a reply to `prompt`; None if the host has to run it."""
        messages = map(self._context.view.read_message, self.state.conversation)
        route = route_call(
            call.name,
            prompt.tools,
            lambda: adds_tools(messages),
            layer_tools=prompt.layer_tools,
            memory_tools=self._context.config.memory_tools,
        )
        if call.custom or route == "host":  # memory has no custom tools
            return None
        if route == "unknown":
            return unknown_tool_answer(call, tool_names(prompt.all_tools or ()))
        return run_tool(call, self._tool_context()) if reply.is_complete else CUT_OFF_ANSWER

    def add(self, answer: ToolAnswer, source: str) -> None:
        """Add an answer.

        `source`: id of the event that has the call; empty for a call without a reply.
        """
        drafts = [replace(draft, sources=(source, *draft.sources)) if source else draft for draft in answer.drafts]
        resource = self._context.resource
        before = self._source_of(answer.about)
        if answer.scope == "thread":
            self.state = self._context.stream.preview(self.state, self.state.seq, drafts, self._now)
            self.drafts += drafts
        else:
            version = self._resource_version + len(self.resource_drafts)
            self.resource_state = resource.preview(self.resource_state, version, drafts, self._now)
            self.resource_drafts += drafts
        after = self._source_of(answer.about)
        if self._already_applied and after.startswith(f"{resource.name}#"):
            after = ""
        self._update_knowledge(answer, before, after)
        self.answers.append(answer)

    def _update_knowledge(self, answer: ToolAnswer, before: str, after: str) -> None:
        """Update what the caller knows after an answer.

        `before`, `after`: ids of the events that wrote the answer's page before and after the call. An empty `after`:
        no page, or no event is appended.
        """
        self.shown_by_answers.update(answer.shows)
        for draft in answer.drafts:
            self._scratchpad = known_state_after(draft.payload, self._scratchpad)
        if not after:
            return
        was_known = answer.complete or before in self.seen.get(answer.about, ())
        if answer.complete or (answer.drafts and (was_known or self.shown_by_answers.get(answer.about) == before)):
            self.shown_by_answers[answer.about] = after
        if answer.drafts and was_known:
            self.seen[answer.about] = (after, after)

    def _tool_context(self) -> ToolContext:
        state, resource = self.state, self._context.resource
        next_in_resource = self._resource_version + len(self.resource_drafts) + 1
        return ToolContext(
            now=self._now,
            state=state,
            resource_state=self.resource_state,
            ancestors=[stream.state for stream in self._context.ancestors],
            layers=self._context.config.layers,
            seen=self.seen,
            page_as_seen=self._page_as_seen,
            scratchpad_as_seen=self._scratchpad,
            next_ids={"thread": f"{state.stream}#{state.seq + 1}", "resource": f"{resource.name}#{next_in_resource}"},
            resolve=partial(resolve, self._context),
            search=partial(search_by_model, self._context),
            compact=partial(self._parts.compactor.compact_by_model, state),
            memory_view=partial(self._parts.preparer.memory_view, state, self._now),
        )

    def _known_scratchpad(self) -> ScratchpadState | None:
        """The scratchpad as the model saw it; None if it did not see it.

        A reply that has changed the resource before was written by a model that knew the state at that time.
        """
        layer = find_scratchpad(self._context.config.layers)
        if layer is None:
            return None
        is_shared, seen = layer.scope == "resource", self.seen.get(SCRATCHPAD_PATH, ())
        stream = self._context.resource if is_shared else self._context.stream
        pads = self.resource_state.scratchpads if is_shared else self.state.scratchpads
        if layer.source(stream.name, pads) in seen or (self._already_applied and is_shared):
            return layer.current_state(pads)
        seqs = [EventId.of(id).seq for id in seen if id.startswith(f"{stream.name}#")]
        return layer.current_state(stream.state_at(max(seqs)).scratchpads) if seqs else None

    def _source_of(self, path: str) -> str:
        return page_source(self._context, path, self.state, self.resource_state)

    def _page_as_seen(self, path: str) -> str:
        seqs = [EventId.of(id).seq for id in self.seen.get(path, ()) if id]
        return self._context.stream.state_at(max(seqs)).documents.text(path) if seqs else ""


def page_source(context: SessionContext, path: str, state: SessionState, resource_state: ResourceState) -> str:
    """Id of the event that wrote the current version of a page or of the scratchpad."""
    layer = find_scratchpad(context.config.layers)
    if path == SCRATCHPAD_PATH and layer is not None:
        if layer.scope == "thread":
            return layer.source(state.stream, state.scratchpads)
        return layer.source(context.resource.name, resource_state.scratchpads)
    page = state.documents.by_path.get(path)
    return page.source if page else ""


def seen_at_prompt(state: SessionState) -> SeenPages:
    """The pages that the model has seen in its last prompt, and in answers to its calls since."""
    prompt, results = state.shown_in_prompt, state.shown_in_results
    return {path: (prompt.get(path, ""), results.get(path, "")) for path in {**prompt, **results}}


def seen_by_caller(context: SessionContext, seen: Mapping[str, str]) -> SeenPages:
    """The pages that a caller says it has seen. Ids of events that do not exist are ignored."""
    last = {stream.name: stream.version for stream in (context.stream, context.resource)}

    def exists(path: str, event: str) -> bool:
        if (id := EventId.parse(event)) is None:
            return False
        is_own = id.stream == context.stream.name or (path == SCRATCHPAD_PATH and id.stream in last)
        return is_own and id.seq <= last[id.stream]

    return {path: (event,) for path, event in seen.items() if exists(path, event)}


def all_pages(context: SessionContext, state: SessionState, resource_state: ResourceState) -> SeenPages:
    """The pages as a caller has seen them that knows the current version of each."""
    pages = {path: (page.source,) for path, page in state.documents.by_path.items()}
    return {**pages, SCRATCHPAD_PATH: (page_source(context, SCRATCHPAD_PATH, state, resource_state),)}
