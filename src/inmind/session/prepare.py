"""Prepare the next prompt: record the host's input, recall, plan, render, and commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from inmind.core.events.base import Draft, Origin
from inmind.core.events.prompt import AnchorMoved, PromptPrepared
from inmind.core.messages.format import Format
from inmind.errors import ContextOverflow
from inmind.history import Conversation
from inmind.history.compaction.build import describe_left_out
from inmind.history.compaction.by_provider import held_tokens, memory_index
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View, ViewBuilder
from inmind.prompt.ingest import PrepareInput, cache_marks, continue_thread, ingest_events
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.plan import PlanInput, PromptPlan, plan_prompt
from inmind.prompt.pressure import measure_pressure
from inmind.prompt.rebuild import assumed_shared_wires, explain_prompt
from inmind.prompt.render import CopyCache, render
from inmind.prompt.report import Prompt, PromptPreview, build_report
from inmind.prompt.state import PromptState
from inmind.session.compaction import Compactor
from inmind.session.compaction_trigger import PlannedCompaction
from inmind.session.context import SessionContext
from inmind.session.derive import DerivedEvents, EventDeriver
from inmind.session.layer_calls import LayerCalls
from inmind.session.prompt_history import PromptHistory
from inmind.session.state import SessionState
from inmind.session.tools.base import MemoryView
from inmind.session.tools.registry import tool_schemas
from inmind.store.protocol import Key
from inmind.store.stream import CommitResult, Decision


class _CompactionDue(Exception):
    """The conversation has to be compacted before this prompt can be committed."""

    def __init__(self, planned: PlannedCompaction) -> None:
        super().__init__(planned.request.reason)
        self.planned = planned


class _LastPrompt(NamedTuple):
    """The last prompt that this process has prepared."""

    call: int = 0
    seq: int = 0
    view: View | None = None


class PromptPreparer:
    """Decides and commits the prompts of one session."""

    def __init__(
        self,
        context: SessionContext,
        layer_calls: LayerCalls,
        deriver: EventDeriver,
        compactor: Compactor,
        prompts: PromptHistory,
        *,
        meter: TokenMeter,
        view: ViewBuilder,
    ) -> None:
        self._stream, self._resource, self._config = context.stream, context.resource, context.config
        self._layer_calls, self._deriver, self._compactor, self._prompts = layer_calls, deriver, compactor, prompts
        self._meter, self._view, self._limits = meter, view, context.config.limits
        self._copies = CopyCache()
        self._last_prompt = _LastPrompt()

    def prepare(
        self, inputs: PrepareInput, fmt: Format, notices: tuple[str, ...], key: Key | None
    ) -> CommitResult[Prompt]:
        """Commit the next prompt.

        `result` is None if a call with the same key has committed it before.
        """
        done = self._commit(inputs, fmt, notices, key)
        if done.result is None:
            return CommitResult(done.appended, None, done.events)
        prompt, view = done.result
        self._last_prompt = _LastPrompt(prompt.call, done.appended.last, view)
        return CommitResult(done.appended, prompt, done.events)

    def refresh(self) -> None:
        """Read what other writers have added to the resource and to the parents of the session."""
        self._resource.refresh()
        self._layer_calls.refresh_ancestors()

    def preview(self, state: SessionState, now: datetime, *, inputs: PrepareInput, fmt: Format) -> PromptPreview:
        """Compute the next prompt without committing anything."""
        decide = partial(self._decide_prompt, inputs=inputs, fmt=fmt, notices=())
        try:
            decision = decide(state, now, compacted=False)
        except _CompactionDue as compaction_due:
            compaction = compaction_due.planned
            state = self._stream.preview(state, state.seq, self._intake(state, now, inputs, fmt).session_events, now)
            state = self._stream.preview(state, state.seq, self._compactor.planned_drafts(state, compaction), now)
            decision = decide(state, now, compacted=True)
        prompt, _ = decision.result
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
            view=self._view.build(empty, "openai"),
            layer_texts=layer_texts,
            shared_wires=0,
            limits=self._limits,
            meter=self._meter,
            turn_messages=list,
            now=now,
        )
        planned = plan_prompt(plan_input)
        blocks = [
            block
            for draft in planned.drafts
            if isinstance(draft.payload, AnchorMoved)
            for block in draft.payload.blocks
        ]
        return MemoryView(
            blocks,
            self._layer_calls.fully_shown_documents(replace(state, shown_in_prompt={}), planned, layer_texts) or (),
        )

    def _commit(
        self, inputs: PrepareInput, fmt: Format, notices: tuple[str, ...], key: Key | None
    ) -> CommitResult[tuple[Prompt, View]]:
        """Commit the next prompt. A compaction that is due first is a commit on its own.

        The host's input is then committed before the compaction, so that undoing the compaction undoes nothing else.
        """
        decide = partial(self._decide_prompt, inputs=inputs, fmt=fmt)
        commit = partial(self._stream.commit, key=key, companion=self._resource)
        for _ in range(MAX_COMPACTIONS_PER_PROMPT):
            try:
                return commit(partial(decide, notices=notices, compacted=False))
            except _CompactionDue as compaction_due:
                self._stream.commit(partial(self._decide_intake, inputs=inputs, fmt=fmt), companion=self._resource)
                compaction = self._compactor.run_planned(compaction_due.planned)
                notices += compaction.notices
                if compaction.done:
                    with suppress(ContextOverflow):  # another writer has added messages: try again
                        return commit(partial(decide, notices=notices, compacted=True))
        return commit(partial(decide, notices=notices, compacted=True))

    def _decide_intake(
        self, state: SessionState, now: datetime, *, inputs: PrepareInput, fmt: Format
    ) -> Decision[SessionState, None]:
        intake = self._intake(state, now, inputs, fmt)
        return Decision(intake.session_events, None, companion=intake.resource_events)

    def _intake(self, state: SessionState, now: datetime, inputs: PrepareInput, fmt: Format) -> DerivedEvents:
        """Events for the host's input, and the events derived from them."""
        inputs = continue_thread(inputs, state.conversation, fmt)
        layer_tools = self._layer_calls.tools(fmt)
        memory_tools = tool_schemas(self._config.layers, fmt.name) if self._config.memory_tools else []
        drafts = ingest_events(state.prompt, state.history, inputs, [*layer_tools, *memory_tools], fmt)
        drafts += self._compactor.undone_by_edits(state, drafts, now)
        drafts += self._compactor.by_provider(state, drafts, now, fmt.name, held_count=inputs.held_count)
        derived_events, resource_events = self._deriver.derive(state, now, drafts)
        return DerivedEvents([*drafts, *derived_events], resource_events)

    def _decide_prompt(
        self,
        state: SessionState,
        now: datetime,
        *,
        inputs: PrepareInput,
        fmt: Format,
        notices: tuple[str, ...],
        compacted: bool,
    ) -> Decision[SessionState, tuple[Prompt, View]]:
        """Decide the next prompt on a given state.

        Raises _CompactionDue, unless `compacted` says that it was tried.
        """
        drafts, resource_events = self._intake(state, now, inputs, fmt)
        state = self._stream.preview(state, state.seq, drafts, now)
        view = self._view.build(state.history.sent, fmt.name, in_thread=bool(inputs.thread))
        layer_texts = self._layer_calls.recall(state, now)
        planned = self._plan(state, view, layer_texts, now, thread=inputs.thread, compacted=compacted)
        state = self._stream.preview(state, state.seq, planned.drafts, now)
        wires = self._view.copy_wires(view)
        shown_versions = self._layer_calls.fully_shown_documents(state, planned, layer_texts)
        prepared = replace(
            planned.prepared,
            cache_marks=cache_marks(inputs, state.conversation, view),
            shown_versions=shown_versions,
            memory_index=memory_index(state.history, view),
            thread=inputs.thread,
        )
        rendered = render(state.prompt, state.history.sent, prepared, view, wires, self._copies)
        draft = Draft(payload=replace(prepared, digest=rendered.digest), origin=Origin.OPERATOR)
        next_state = self._stream.preview(state, state.seq, [draft], now)
        call = next_state.prompt.calls
        automatic = self._compactor.automatic_since(state.history, since=self._previous_prompt_seq(state))
        notices += tuple(describe_left_out(event.left_out) for event in automatic if event.left_out)
        compactions = tuple(self._compactor.report_for(event, state.history) for event in automatic)
        report = build_report(call, state.prompt, planned, view, notices, compactions)
        prompt = Prompt(call=call, format=fmt.name, request=rendered.request, report=report, memory=rendered.memory)
        return Decision(
            [*drafts, *planned.drafts, draft], (prompt, view), next_state=next_state, companion=resource_events
        )

    def _plan(
        self,
        state: SessionState,
        view: View,
        layer_texts: Sequence[tuple[Layer, LayerText]],
        now: datetime,
        *,
        thread: str,
        compacted: bool,
    ) -> PromptPlan:
        """Plan the prompt, or raise _CompactionDue."""
        plan_input = PlanInput(
            state=state.prompt,
            conversation=state.history.sent,
            view=view,
            layer_texts=layer_texts,
            shared_wires=self._shared_prefix(state, view),
            limits=self._limits,
            meter=self._meter,
            turn_messages=partial(self._compactor.messages, state.history),
            in_thread=bool(thread),
            held_tokens=held_tokens(state.history),
            in_other_thread=bool(thread) and not _continues_last_prompt(state, thread),
            now=now,
        )
        try:
            planned = plan_prompt(plan_input)
        except ContextOverflow:
            if not compacted:
                self._check_compaction_due(state, plan_input, None)
            raise
        if not compacted:
            self._check_compaction_due(state, plan_input, planned)
        return planned

    def _check_compaction_due(self, state: SessionState, plan_input: PlanInput, planned: PromptPlan | None) -> None:
        if (compaction := self._compactor.planned(state, measure_pressure(plan_input, planned))) is not None:
            raise _CompactionDue(compaction)

    def _shared_prefix(self, state: SessionState, view: View) -> int:
        """Number of leading messages that the previous prompt had too.

        The number is an estimate if another process prepared that prompt.
        """
        if self._last_prompt.view is not None and self._last_prompt.call == state.prompt.calls:
            return view.common_prefix(self._last_prompt.view)
        return assumed_shared_wires(state.prompt, state.history.sent, view)

    def _previous_prompt_seq(self, state: SessionState) -> int:
        """Number of the event of the previous prompt; read from the store only if it is needed."""
        known = self._last_prompt.call == state.prompt.calls or not state.history.compactions
        return self._last_prompt.seq if known else self._prompts.last_prepared(until=state.seq)


def _continues_last_prompt(state: SessionState, thread: str) -> bool:
    """True if a thread holds the previous prompt and ends with its recorded reply."""
    last_held = next((one.payload.provider_item for one in state.history.compactions if one.payload.is_thread), 0)
    reply_id = next((entry.reply_id for entry in reversed(state.conversation[:]) if entry.seq == last_held), "")
    return bool(reply_id) and thread in (reply_id, state.prompt.last_prompt.thread)


MAX_COMPACTIONS_PER_PROMPT = 3
"""Compactions tried before one prompt while other writers change the conversation."""
