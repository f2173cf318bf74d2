"""Run memory tools: what a caller knows, and a batch of calls that each see the changes of the one before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Self

from inmind.core.events.base import Draft
from inmind.core.events.crystals import SearchRecorded
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call
from inmind.core.messages.replies import Reply
from inmind.documents.scratchpad.state import ScratchpadState, known_state_after
from inmind.history.compaction.build import CompactionPlan
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.state import PromptState
from inmind.search.query import Hit, Query
from inmind.session.affect import SearchCall
from inmind.session.context import SessionContext
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.base import MemoryView, ToolAnswer, ToolContext, ToolResult
from inmind.session.tools.registry import adds_tools, cut_off_answer, route_call, run_tool, unknown_tool_answer

_SEARCH = "memory_search"

_NUMBER = re.compile(r"[0-9]{1,15}")


@frozen
class ResourceVersion:
    """What the resource has, and the number of the last event that it was folded from."""

    resource_state: ResourceState
    version: int


class CallerKnowledge:
    """What the model knows of memory while calls of its are carried out.

    It wrote all of the calls before it had heard any answer. So beyond what it had seen, by the events that had written
    that, it knows what it writes itself; what the calls are answered it will know from the next reply on (`told`).
    """

    def __init__(self, seen: Mapping[str, Sequence[str]]) -> None:
        self.seen = dict(seen)
        self.told: dict[str, str] = {}
        self.pad: ScratchpadState | None = None

    @classmethod
    def by_prompt(cls, knew: SessionState) -> Self:
        """By the last prompt, and by what its calls were answered since."""
        paths = {**knew.shown_in_prompt, **knew.shown_in_results}
        return cls({path: (knew.shown_in_prompt.get(path, ""), knew.shown_in_results.get(path, "")) for path in paths})

    def take(self, answer: ToolAnswer, before: str, after: str) -> None:
        """An answer; with the events that had written what it is about, and have now. None where there is no such."""
        self.told.update(answer.shows)
        for draft in answer.drafts:
            self.pad = known_state_after(draft.payload, self.pad)
        if not after:
            return
        knew = answer.complete or before in self.seen.get(answer.about, ())
        if answer.complete or (answer.drafts and (knew or self.told.get(answer.about) == before)):
            self.told[answer.about] = after
        if answer.drafts and knew:
            self.seen[answer.about] = (after, after)


class ToolCallBatch:
    """Calls that are carried out one after the other, each on what the one before it has left."""

    def __init__(self, state: SessionState, owned: ResourceVersion, known: CallerKnowledge) -> None:
        self.state, self.resource_state, self.version, self.known = state, owned.resource_state, owned.version, known
        self.drafts: list[Draft] = []
        self.abroad: list[Draft] = []
        """What happens in the resource's stream."""
        self.answers: list[ToolAnswer] = []
        self.lookups: list[SearchCall] = []

    @property
    def owned(self) -> ResourceVersion:
        return ResourceVersion(self.resource_state, self.version + len(self.abroad))

    @property
    def called(self) -> ToolResult:
        """What the last call is told, where it stands by itself."""
        answer = self.answers[-1]
        return ToolResult(
            text=answer.text,
            content=dict[str, Any]() if answer.error else answer.content,
            error=answer.error,
            code=answer.code,
            seen=self.known.told,
        )

    @property
    def took_effect(self) -> bool:
        return not any(answer.refused for answer in self.answers)


class ToolCallRunner:
    """Runs memory tools of one session against given states. It appends nothing."""

    def __init__(
        self,
        context: SessionContext,
        *,
        compact: Callable[[SessionState, dict[str, Any]], CompactionPlan],
        search: Callable[[Query], Sequence[Hit]],
        memory_view: Callable[[SessionState, datetime], MemoryView],
    ) -> None:
        self._stream, self._resource, self._entities = context.stream, context.resource, context.entities
        self._ancestors, self._config = context.ancestors, context.config
        self._compact, self._search, self._memory_view = compact, search, memory_view

    def run_call(
        self, call: Call, state: SessionState, owned: ResourceVersion, known: CallerKnowledge, now: datetime
    ) -> ToolCallBatch:
        """One call and nothing else, carried out by somebody who knows so much."""
        work = ToolCallBatch(state, owned, known)
        known.pad = self.known_scratchpad(state, owned.resource_state, known.seen.get(SCRATCHPAD_PATH, ()), done=False)
        self.apply(work, call, run_tool(call, self.context_for(work, now)), "", now)
        return work

    @property
    def resource_version(self) -> ResourceVersion:
        return ResourceVersion(self._resource.state, self._resource.version)

    def knowledge_from(self, seen: Mapping[str, str]) -> CallerKnowledge:
        """By what a caller says that it was told. An event that there is none of makes nothing known."""
        last = {self._stream.name: self._stream.version, self._resource.name: self._resource.version}

        def is_one(path: str, event: str) -> bool:
            stream, _, seq = event.rpartition("#")
            whose = stream == self._stream.name or (path == SCRATCHPAD_PATH and stream in last)
            return whose and _NUMBER.fullmatch(seq) is not None and int(seq) <= last[stream]

        return CallerKnowledge({path: (event,) for path, event in seen.items() if is_one(path, event)})

    def full_knowledge(self, state: SessionState, resource_state: ResourceState) -> CallerKnowledge:
        pages = {path: page.source for path, page in state.documents.by_path.items()}
        seen = {**pages, SCRATCHPAD_PATH: self.source_of(SCRATCHPAD_PATH, state, resource_state)}
        return CallerKnowledge({path: (event,) for path, event in seen.items()})

    def answer(self, call: Call, reply: Reply, asked: PromptState, reach: ToolContext) -> ToolAnswer | None:
        match self._route(call, asked, reach.state):
            case "memory":
                return run_tool(call, reach) if reply.whole else cut_off_answer()
            case "unknown":
                return unknown_tool_answer(call, tool_names(asked.all_tools or ()))
            case _:
                return None

    def apply(
        self, work: ToolCallBatch, call: Call, answer: ToolAnswer, by: str, now: datetime, *, done: bool = False
    ) -> None:
        """What a call was answered, entered into the work. `by`: the event that it stands in, where there is one.

        `done`: what belongs to the resource was changed by it before.
        """
        drafts = [replace(draft, sources=(by, *draft.sources)) if by else draft for draft in answer.drafts]
        before = self.source_of(answer.about, work.state, work.resource_state)
        if answer.scope == "thread":
            work.state = self._stream.preview(work.state, work.state.seq, drafts, now)
            work.drafts += drafts
        else:
            owned = work.owned
            work.resource_state = self._resource.preview(owned.resource_state, owned.version, drafts, now)
            work.abroad += drafts
        after = self.source_of(answer.about, work.state, work.resource_state)
        if done and after.startswith(f"{self._resource.name}#"):
            after = ""  # nothing is appended there once more
        work.known.take(answer, before, after)
        work.answers.append(answer)
        if call.name == _SEARCH and not answer.error:
            found = any(isinstance(one.payload, SearchRecorded) and one.payload.hits for one in drafts)
            work.lookups.append(SearchCall(found, by or f"{work.state.stream}#{work.state.seq}"))

    def context_for(self, work: ToolCallBatch, now: datetime) -> ToolContext:
        state, owned, known = work.state, work.owned, work.known
        nexts = {"thread": f"{state.stream}#{state.seq + 1}", "resource": f"{self._resource.name}#{owned.version + 1}"}
        return ToolContext(
            now=now,
            state=state,
            resource_state=owned.resource_state,
            ancestors=[stream.state for stream in self._ancestors],
            layers=self._config.layers,
            seen=known.seen,
            page_as_seen=partial(self._page_as_seen, known.seen),
            scratchpad_as_seen=known.pad,
            next_id=nexts.__getitem__,
            resolve=self._entities.resolve,
            search=self._search,
            compact=partial(self._compact, state),
            memory_view=partial(self._memory_view, state, now),
        )

    def known_scratchpad(
        self, state: SessionState, resource_state: ResourceState, seen: Sequence[str], *, done: bool
    ) -> ScratchpadState | None:
        """The scratchpad as the model knew it, by the events that wrote what it was shown; None if it was not.

        `done`: what belongs to the resource was changed by this reply before, so the model knew what there was.
        """
        layer = find_scratchpad(self._config.layers)
        if layer is None:
            return None
        pads, stream = (
            (state.scratchpads, self._stream)
            if layer.scope == "thread"
            else (resource_state.scratchpads, self._resource)
        )
        if layer.source(stream.name, pads) in seen or (done and layer.scope == "resource"):
            return layer.current_state(pads)
        seqs = [_seq(id) for id in seen if id.startswith(f"{stream.name}#")]
        return layer.current_state(stream.state_at(max(seqs)).scratchpads) if seqs else None

    def source_of(self, path: str, state: SessionState, resource_state: ResourceState) -> str:
        """The event that wrote a page, or the scratchpad, as it is."""
        layer = find_scratchpad(self._config.layers)
        if path == SCRATCHPAD_PATH and layer is not None:
            if layer.scope == "thread":
                return layer.source(state.stream, state.scratchpads)
            return layer.source(self._resource.name, resource_state.scratchpads)
        page = state.documents.by_path.get(path)
        return page.source if page else ""

    def _page_as_seen(self, seen: Mapping[str, Sequence[str]], path: str) -> str:
        seqs = [_seq(id) for id in seen.get(path, ()) if id]
        return self._stream.state_at(max(seqs)).documents.text(path) if seqs else ""

    def _route(self, call: Call, asked: PromptState, state: SessionState) -> str:
        """By the tools of the prompt that was answered. Memory has no custom tools."""
        if call.custom:
            return "host"
        said = (FORMATS[entry.format].read(entry.wire) for entry in state.conversation)
        return route_call(
            call.name,
            asked.tools,
            lambda: adds_tools(said),
            layer_tools=asked.layer_tools,
            memory_tools=self._config.memory_tools,
        )


def _seq(id: str) -> int:
    return int(id.rpartition("#")[2])
