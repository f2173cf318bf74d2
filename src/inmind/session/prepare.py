"""Prepare the next prompt, in five steps.

1. ingest: match the host's messages and tools with the conversation, as events.
2. derive: add the events that follow from them: entities, overview lines, affect.
3. fit: ask the layers, share the budget and plan the prompt; or plan the compaction that has to come first.
4. render: write the request of the provider and the report.
5. commit: append everything at once; after a compaction, decide again.

Steps 1 to 4 decide on values and change nothing, so a conflict with another writer just repeats them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.session import AnchorMoved, PromptPrepared
from inmind.core.messages.format import Format
from inmind.errors import ContextOverflow, NotFound
from inmind.history.compaction.build import held_tokens, memory_index
from inmind.history.compaction.policy import describe_left_out
from inmind.history.history import Conversation
from inmind.history.view import View
from inmind.prompt.ingest import PrepareInput, cache_marks, continue_thread, ingest_events
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.plan import PlanInput, PromptPlan, measure_pressure, plan_prompt
from inmind.prompt.render import render
from inmind.prompt.report import (
    Explanation,
    Prompt,
    PromptPreview,
    assumed_shared_wires,
    build_report,
    explain_prompt,
    rebuild_prompt,
)
from inmind.prompt.state import PromptState
from inmind.session.compaction import Compactor, automatic_compactions
from inmind.session.compaction_plan import CompactionPlanner, PlannedCompaction
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver, LayerCalls
from inmind.session.state import SessionState
from inmind.session.tools.base import MemoryView
from inmind.session.tools.registry import tool_schemas
from inmind.store.protocol import Key
from inmind.store.stream import CommitResult, Decision


class _LastPrompt(NamedTuple):
    """The last prompt that this process has prepared."""

    call: int = 0
    seq: int = 0
    view: View | None = None


MAX_COMPACTIONS_PER_PROMPT = 3
"""Compactions tried before one prompt while other writers change the conversation."""


class PromptRequest(NamedTuple):
    """The arguments of `prepare`, notices for the report, and the compactions made for it."""

    inputs: PrepareInput
    fmt: Format
    notices: tuple[str, ...] = ()
    compactions_left: int = MAX_COMPACTIONS_PER_PROMPT
    is_compacted: bool = False
    """One was committed, so another is planned only if the prompt does not fit."""


class _FittedPrompt(NamedTuple):
    """A prompt that fits the window."""

    view: View
    layer_texts: Sequence[tuple[Layer, LayerText]]
    plan: PromptPlan


class PromptPreparer:
    """Decides and commits the prompts of one session."""

    def __init__(
        self,
        context: SessionContext,
        planner: CompactionPlanner,
        compactor: Compactor,
        layer_calls: LayerCalls,
        deriver: EventDeriver,
        prompts: PromptHistory,
    ) -> None:
        self._stream, self._resource, self._config = context.stream, context.resource, context.config
        self._planner, self._compactor, self._prompts = planner, compactor, prompts
        self._layer_calls, self._deriver = layer_calls, deriver
        self._meter, self._view, self._limits = context.meter, context.view, context.config.limits
        self._last_prompt = _LastPrompt()

    def prepare(self, request: PromptRequest, key: Key | None) -> CommitResult[Prompt]:
        """Commit the next prompt.

        `result` is None if a call with the same key has committed it before. A compaction that is due is a commit of
        its own, after the host's input, so that undoing it undoes nothing else.
        """
        while True:
            decide = partial(self._decide, request=request)
            done = self._stream.commit(decide, key=key, companion=self._resource)
            if not isinstance(done.result, PlannedCompaction):
                break
            is_compacted, notices = self._compactor.run_planned(done.result)
            request = request._replace(
                notices=request.notices + notices,
                compactions_left=request.compactions_left - 1,
                is_compacted=is_compacted,
            )
        if done.result is None:
            return CommitResult(done.appended, None, done.events)
        prompt, view = done.result
        self._last_prompt = _LastPrompt(prompt.call, done.appended.last, view)
        return CommitResult(done.appended, prompt, done.events)

    def refresh(self) -> None:
        """Read what other writers have added to the resource and to the parents of the session."""
        self._resource.refresh()
        self._layer_calls.refresh_ancestors()

    def preview(self, state: SessionState, now: datetime, *, request: PromptRequest) -> PromptPreview:
        """Compute the next prompt without committing anything."""
        decision = self._decide(state, now, request)
        if isinstance(decision.result, PlannedCompaction):
            state = self._stream.preview(state, state.seq, decision.drafts, now)
            compaction = self._planner.build_planned(state, decision.result)
            state = self._stream.preview(state, state.seq, compaction.drafts, now)
            decision = self._decide(state, now, request._replace(compactions_left=0))
        prompt, _ = cast(tuple[Prompt, View], decision.result)  # no second compaction is planned
        (prepared,) = (draft.payload for draft in decision.drafts if isinstance(draft.payload, PromptPrepared))
        state = self._stream.preview(state, state.seq, decision.drafts[:-1], now)
        why = explain_prompt(state.prompt, state.history.sent, prepared, counter=self._meter.count)
        return PromptPreview(
            call=prompt.call,
            format=prompt.format,
            request=prompt.request,
            report=prompt.report,
            memory=prompt.memory,
            explanation=why,
        )

    def memory_view(self, state: SessionState, now: datetime) -> MemoryView:
        """The memory blocks that the first prompt of a conversation would have."""
        empty = Conversation()
        layer_texts = self._layer_calls.recall(state, now)
        plan_input = PlanInput(
            state=PromptState(),
            conversation=empty,
            has_stubs=False,
            view=self._view.build(empty, "openai"),
            layer_texts=layer_texts,
            shared_wires=0,
            limits=self._limits,
            meter=self._meter,
            turn_messages=list,
            now=now,
        )
        planned = plan_prompt(plan_input)
        if isinstance(planned, ContextOverflow):
            raise planned
        moves = (draft.payload for draft in planned.drafts if isinstance(draft.payload, AnchorMoved))
        versions = self._layer_calls.fully_shown_documents(replace(state, shown_in_prompt={}), planned, layer_texts)
        return MemoryView([block for move in moves for block in move.blocks], versions or ())

    def _decide(
        self, state: SessionState, now: datetime, request: PromptRequest
    ) -> Decision[SessionState, tuple[Prompt, View] | PlannedCompaction]:
        """Decide the next prompt on a given state, or the compaction that has to come first.

        With a compaction, only the host's input is committed.
        """
        request = request._replace(inputs=continue_thread(request.inputs, state.conversation, request.fmt))
        ingested = self._ingest(state, now, request)
        derived = self._deriver.derive(state, now, ingested, None)
        drafts, companion = derived.drafts, derived.companion
        state = self._stream.preview(state, state.seq, drafts, now)
        fitted = self._fit(state, now, request)
        if isinstance(fitted, PlannedCompaction):
            return Decision(drafts, fitted, next_state=state, companion=companion, consumes_key=False)
        state = self._stream.preview(state, state.seq, fitted.plan.drafts, now)
        prompt, view, draft = self._render(state, fitted, request)
        next_state = self._stream.preview(state, state.seq, [draft], now)
        drafts = [*drafts, *fitted.plan.drafts, draft]
        return Decision(drafts, (prompt, view), next_state=next_state, companion=companion)

    def _ingest(self, state: SessionState, now: datetime, request: PromptRequest) -> list[Draft]:
        """Events for the host's messages and tools, and for compactions that they undo or contain."""
        inputs, fmt = request.inputs, request.fmt
        layer_tools = self._layer_calls.tools(fmt)
        memory_tools = tool_schemas(self._config.layers, fmt.name) if self._config.memory_tools else []
        drafts = ingest_events(state.prompt, state.history, inputs, [*layer_tools, *memory_tools], fmt)
        drafts += self._compactor.undone_by_edits(state, drafts, now)
        drafts += self._compactor.by_provider(state, drafts, now, fmt.name, held_count=inputs.held_count)
        return drafts

    def _fit(self, state: SessionState, now: datetime, request: PromptRequest) -> _FittedPrompt | PlannedCompaction:
        """Ask the layers and plan the prompt, or the compaction that is due."""
        thread = request.inputs.thread
        view = self._view.build(state.history.sent, request.fmt.name, in_thread=bool(thread))
        layer_texts = self._layer_calls.recall(state, now)
        plan_input = PlanInput(
            state=state.prompt,
            conversation=state.history.sent,
            has_stubs=bool(state.history.compactions) and any(entry.is_stub for entry in state.history.sent),
            view=view,
            layer_texts=layer_texts,
            shared_wires=self._shared_prefix(state, view),
            limits=self._limits,
            meter=self._meter,
            turn_messages=partial(self._planner.messages, state.history),
            in_thread=bool(thread),
            held_tokens=held_tokens(state.history),
            in_other_thread=bool(thread) and not _continues_last_prompt(state, thread),
            now=now,
        )
        plan = plan_prompt(plan_input)
        if request.compactions_left and (isinstance(plan, ContextOverflow) or not request.is_compacted):
            due = self._planner.plan(state, measure_pressure(plan_input, plan))
            if due is not None:
                return due
        if isinstance(plan, ContextOverflow):
            raise plan
        return _FittedPrompt(view, layer_texts, plan)

    def _render(self, state: SessionState, fitted: _FittedPrompt, request: PromptRequest) -> tuple[Prompt, View, Draft]:
        """Write the request, its report, and the event of the prompt."""
        view, layer_texts, plan = fitted
        inputs, fmt, notices = request.inputs, request.fmt, request.notices
        prepared = replace(
            plan.prepared,
            cache_marks=cache_marks(inputs, state.conversation, view),
            shown_versions=self._layer_calls.fully_shown_documents(state, plan, layer_texts),
            memory_index=memory_index(state.history, view),
            thread=inputs.thread,
        )
        wires = self._view.copy_wires(view)
        rendered = render(state.prompt, state.history.sent, prepared, view, wires)
        call = state.prompt.calls + 1
        is_known = self._last_prompt.call == state.prompt.calls or not state.history.compactions
        previous_seq = self._last_prompt.seq if is_known else self._prompts.last_prepared(until=state.seq)
        automatic = automatic_compactions(state.history, since=previous_seq)
        notices += tuple(describe_left_out(event.left_out) for event in automatic if event.left_out)
        compactions = tuple(self._compactor.report_for(event, state.history) for event in automatic)
        report = build_report(call, state.prompt, plan, view, notices, compactions)
        prompt = Prompt(call=call, format=fmt.name, request=rendered.request, report=report, memory=rendered.memory)
        return prompt, view, Draft(payload=replace(prepared, digest=rendered.digest), origin=Origin.OPERATOR)

    def _shared_prefix(self, state: SessionState, view: View) -> int:
        """Number of leading messages that the previous prompt had too.

        The number is an estimate if another process prepared that prompt.
        """
        if self._last_prompt.view is not None and self._last_prompt.call == state.prompt.calls:
            return view.common_prefix(self._last_prompt.view)
        return assumed_shared_wires(state.prompt, state.history.sent, view)


def _continues_last_prompt(state: SessionState, thread: str) -> bool:
    """True if a thread holds the previous prompt and ends with its recorded reply."""
    last_held = next((one.payload.provider_item for one in state.history.compactions if one.payload.is_thread), 0)
    reply_id = next((entry.reply_id for entry in reversed(state.conversation[:]) if entry.seq == last_held), "")
    return bool(reply_id) and thread in (reply_id, state.prompt.last_prompt.thread)


class PromptHistory:
    """Past prompts of one session, rebuilt from the journal."""

    def __init__(self, context: SessionContext, compactor: Compactor) -> None:
        self._stream, self._store, self._limits = context.stream, context.store, context.config.limits
        self._compactor, self._meter = compactor, context.meter

    def find(self, call: int) -> tuple[Event, PromptPrepared]:
        """The event and payload of a numbered call. Raises NotFound."""
        events = self._store.read(self._stream.name, kind=PromptPrepared.kind)
        if not 0 < whole_number(call, "call") <= len(events):
            hint = f"this session has made {len(events)}" if events else "this session has not made one yet"
            raise NotFound(what="call", name=call, hint=hint)
        return events[call - 1], _payload(events[call - 1])

    def last_prepared(self, *, until: int) -> int:
        """Number of the last event up to `until` that prepared a prompt; 0 if there is none."""
        events = self._store.read(self._stream.name, until=until, kind=PromptPrepared.kind)
        return events[-1].seq if events else 0

    def rebuild(self, seq: int) -> Prompt:
        """Rebuild the prompt that the event with this number prepared."""
        (event,) = self._store.read(self._stream.name, after=seq - 1, until=seq)
        state = self._stream.state_at(seq - 1)
        prompt = rebuild_prompt(
            state.prompt,
            state.history.sent,
            _payload(event),
            at=event.at,
            counter=self._meter.count,
            cache_seconds=self._limits.cache_seconds,
        )
        compacted = automatic_compactions(state.history, since=self.last_prepared(until=seq - 1))
        compactions = tuple(self._compactor.report_for(event_payload, state.history) for event_payload in compacted)
        return replace(prompt, report=replace(prompt.report, compactions=compactions))

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: its layer, tokens, source events and reason."""
        event, prepared = self.find(self._stream.refresh().prompt.calls if call is None else call)
        state = self._stream.state_at(event.seq - 1)
        return explain_prompt(state.prompt, state.history.sent, prepared, counter=self._meter.count)


def _payload(event: Event) -> PromptPrepared:
    if not isinstance(event.payload, PromptPrepared):
        raise NotFound(what="prompt", name=event.id)
    return event.payload
