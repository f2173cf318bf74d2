"""Prepare the next prompt: intake, recall, plan, render, commit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from inmind.core.events.base import Draft, Origin
from inmind.core.events.prompt import AnchorMoved, PromptPrepared
from inmind.core.messages.model import Format
from inmind.errors import ContextOverflow
from inmind.history import Conversation
from inmind.history.compaction.report import describe_left_out
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View, ViewBuilder
from inmind.prompt.ingest import (
    PrepareInput,
    cache_marks,
    ingest_events,
)
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
        self._handed = CopyCache()
        self._sent = _LastPrompt()

    def prepare(
        self, given: PrepareInput, fmt: Format, notices: tuple[str, ...], key: Key | None
    ) -> CommitResult[Prompt]:
        """Commit the next prompt. `result` is None if a call with the same key has committed it before."""
        done = self._commit(given, fmt, notices, key)
        if done.result is None:
            return CommitResult(done.appended, None, done.events)
        prompt, view = done.result
        self._sent = _LastPrompt(prompt.call, done.appended.last, view)
        return CommitResult(done.appended, prompt, done.events)

    def preview(self, state: SessionState, now: datetime, *, given: PrepareInput, fmt: Format) -> PromptPreview:
        """The same without committing anything."""
        decide = partial(self._decide_prompt, given=given, fmt=fmt, notices=())
        try:
            decision = decide(state, now, compacted=False)
        except _CompactionDue as compaction_due:
            due = compaction_due.planned
            state = self._stream.preview(state, state.seq, self._intake(state, now, given, fmt).session_events, now)
            state = self._stream.preview(
                state, state.seq, self._compactor.planned_drafts(state, due.selection, due.request), now
            )
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
        """What memory would say in a prompt that begins a conversation."""
        nothing = Conversation()
        recalled = self._layer_calls.recall(state, now)
        occasion = PlanInput(
            state=PromptState(),
            conversation=nothing,
            view=self._view.build(nothing, "openai"),
            layer_texts=recalled,
            shared_wires=0,
            limits=self._limits,
            meter=self._meter,
            now=now,
        )
        planned = plan_prompt(occasion)
        blocks = [block for d in planned.drafts if isinstance(d.payload, AnchorMoved) for block in d.payload.blocks]
        return MemoryView(
            blocks, self._layer_calls.fully_shown_documents(replace(state, shown_in_prompt={}), planned, recalled) or ()
        )

    def _commit(
        self, given: PrepareInput, fmt: Format, notices: tuple[str, ...], key: Key | None
    ) -> CommitResult[tuple[Prompt, View]]:
        """Commit the next prompt; where a compaction is due before it, that is a change of its own.

        Then first what the host has handed in is kept, so that taking back the compaction takes back nothing else.
        """
        decide = partial(self._decide_prompt, given=given, fmt=fmt)
        commit = partial(self._stream.commit, key=key, companion=self._resource)
        for _ in range(MAX_COMPACTIONS_PER_PROMPT):
            try:
                return commit(partial(decide, notices=notices, compacted=False))
            except _CompactionDue as compaction_due:
                self._stream.commit(partial(self._decide_intake, given=given, fmt=fmt), companion=self._resource)
                relieved = self._compactor.run_planned(compaction_due.planned)
                notices += relieved.notices
                if relieved.done:
                    with suppress(ContextOverflow):  # others may have said more meanwhile: then once more
                        return commit(partial(decide, notices=notices, compacted=True))
        return commit(partial(decide, notices=notices, compacted=True))

    def _decide_intake(
        self, state: SessionState, now: datetime, *, given: PrepareInput, fmt: Format
    ) -> Decision[SessionState, None]:
        taken = self._intake(state, now, given, fmt)
        return Decision(taken.session_events, None, companion=taken.resource_events)

    def _intake(self, state: SessionState, now: datetime, given: PrepareInput, fmt: Format) -> DerivedEvents:
        """What the host has handed in, and what that brings to mind."""
        theirs = self._layer_calls.tools(fmt)
        ours = tool_schemas(self._config.layers, fmt.name) if self._config.memory_tools else []
        drafts = ingest_events(state.prompt, state.history, given, [*theirs, *ours], fmt)
        drafts += self._compactor.undone_by_edits(state, drafts, now)
        here, abroad = self._deriver.derive(state, now, drafts)
        return DerivedEvents([*drafts, *here], abroad)

    def _decide_prompt(
        self,
        state: SessionState,
        now: datetime,
        *,
        given: PrepareInput,
        fmt: Format,
        notices: tuple[str, ...],
        compacted: bool,
    ) -> Decision[SessionState, tuple[Prompt, View]]:
        """`compacted`: the history is compacted for this prompt, as far as it can be."""
        drafts, abroad = self._intake(state, now, given, fmt)
        state = self._stream.preview(state, state.seq, drafts, now)
        view = self._view.build(state.history.sent, fmt.name)
        recalled = self._layer_calls.recall(state, now)
        planned = self._plan(state, view, recalled, now, compacted=compacted)
        state = self._stream.preview(state, state.seq, planned.drafts, now)
        wires = self._view.copy_wires(view)
        shown = self._layer_calls.fully_shown_documents(state, planned, recalled)
        prepared = replace(
            planned.prepared, cache_marks=cache_marks(given, state.conversation, view), shown_versions=shown
        )
        rendered = render(state.prompt, state.history.sent, prepared, view, wires, self._handed)
        asked = Draft(payload=replace(prepared, digest=rendered.digest), origin=Origin.OPERATOR)
        foreseen = self._stream.preview(state, state.seq, [asked], now)
        call = foreseen.prompt.calls
        left = self._compactor.automatic_since(state.history, since=self._previous_prompt_seq(state))
        notices += tuple(describe_left_out(one.left_out) for one in left if one.left_out)
        compactions = tuple(self._compactor.report_for(one, state.history) for one in left)
        report = build_report(call, state.prompt, planned, view, notices, compactions)
        prompt = Prompt(call=call, format=fmt.name, request=rendered.request, report=report, memory=rendered.memory)
        return Decision([*drafts, *planned.drafts, asked], (prompt, view), next_state=foreseen, companion=abroad)

    def _plan(
        self,
        state: SessionState,
        view: View,
        recalled: Sequence[tuple[Layer, LayerText]],
        now: datetime,
        *,
        compacted: bool,
    ) -> PromptPlan:
        """The plan of a prompt, unless something has to leave the conversation first."""
        occasion = PlanInput(
            state=state.prompt,
            conversation=state.history.sent,
            view=view,
            layer_texts=recalled,
            shared_wires=self._shared_prefix(state, view),
            limits=self._limits,
            meter=self._meter,
            now=now,
        )
        try:
            planned = plan_prompt(occasion)
        except ContextOverflow:
            if not compacted:
                self._check_compaction_due(state, occasion, None)
            raise
        if not compacted:
            self._check_compaction_due(state, occasion, planned)
        return planned

    def _check_compaction_due(self, state: SessionState, occasion: PlanInput, planned: PromptPlan | None) -> None:
        if (due := self._compactor.planned(state, measure_pressure(occasion, planned))) is not None:
            raise _CompactionDue(due)

    def _shared_prefix(self, state: SessionState, view: View) -> int:
        """Leading wires that the previous prompt had at the same place; by its events, if others have sent it."""
        if self._sent.view is not None and self._sent.call == state.prompt.calls:
            return view.common_prefix(self._sent.view)
        return assumed_shared_wires(state.prompt, state.history.sent, view)

    def _previous_prompt_seq(self, state: SessionState) -> int:
        """The number of the last prompt's event, where it matters; looked up if this object has not made it."""
        known = self._sent.call == state.prompt.calls or not state.history.compactions
        return self._sent.seq if known else self._prompts.last_prepared(until=state.seq)


MAX_COMPACTIONS_PER_PROMPT = 3
"""Compactions tried before one prompt while other writers change the conversation."""
