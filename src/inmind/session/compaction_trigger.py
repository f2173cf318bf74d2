"""Decide whether the history has to be compacted before the next prompt.

Reasons: the context window is full; the overview covers old messages and the prompt is rewritten anyway; the host's
policy asks for it at this fill level; or it saves money. Decides on values; `Compactor` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.core.tokens import Rates
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionRequest, CompressionPolicy, pays_off, with_stub_size
from inmind.history.compaction.retention import items_in_memory, retained_items, unsent_items
from inmind.history.compaction.select import (
    FURTHER_STUB_TOKENS,
    CompactionSelection,
    MessageSizes,
    select_covered,
    select_for_budget,
    select_requested,
)
from inmind.history.compaction.stubs import FRAME_TOKENS
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, band_for
from inmind.prompt.layers.builtin import RetainedLayer, render_items
from inmind.prompt.pressure import WindowPressure
from inmind.session.state import SessionState

MIN_RECORD_TOKENS = 10
"""Below this many tokens for records, a stub is not shortened further."""
COST_SAVING_RECORD_DIVISOR = 8
"""A compaction that saves cost has fewer records: all that stays is written to the cache again."""
MIN_GAIN_TOKENS = 300
"""Tokens that an optional compaction has to free."""

FULL = "the window was full"
COVERED = "the overview covers it"
PAYS = "it pays"


@frozen
class PlannedCompaction:
    """An automatic compaction: the messages to archive, and how."""

    selection: CompactionSelection
    request: CompactionRequest
    based_on: str
    """Digest of the messages that it was planned for."""
    is_over: bool = False
    """The prompt does not fit without it."""


class CompactionTrigger:
    """Plans automatic compactions of one session."""

    def __init__(
        self,
        policy: CompressionPolicy,
        meter: TokenMeter,
        *,
        records: Callable[[SessionState], MessageRecords],
        complete: Callable[[SessionState, CompactionRequest], CompactionRequest],
        measure: Callable[[SessionState, CompactionSelection, CompactionRequest], int],
    ) -> None:
        """`records` returns the sent messages with their records.

        `complete` adds the last request of the user. `measure` returns the tokens by which a compaction makes the
        prompt shorter.
        """
        self._policy, self._meter = policy, meter
        self._records, self._complete, self._measure = records, complete, measure

    def plan(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """The compaction that has to, or should, run before the next prompt; usually None."""
        if pressure.cannot_shrink:
            return None
        if pressure.is_full:
            return self._when_full(state, pressure)
        return self._when_covered(state, pressure) or self._by_policy(state, pressure)

    def _when_full(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact because the window is full.

        Details of records take what the target leaves. Stubs are shortened only if the prompt would not fit otherwise.
        """
        records = self._records(state)
        request = self._complete(
            state, with_stub_size(CompactionRequest(reason=FULL, strategy="summarize"), pressure.budget.threshold)
        )
        while True:
            sizes = records.sizes(record_tokens=request.record_tokens)
            selection = self._select_for_space(records, pressure, request, sizes)
            gain = self._gain(records.messages, selection, request, sizes)
            spare = max(0, pressure.budget.target - (pressure.history - gain))
            request = replace(request, detailed_record_tokens=_line_tokens(selection, request, sizes) + spare)
            needed = pressure.fixed + pressure.reserved + pressure.history - self._measure(state, selection, request)
            if needed <= pressure.available or request.record_tokens < MIN_RECORD_TOKENS:
                break
            request = request.with_less(needed - pressure.available)
        worth = pressure.is_over or gain >= pressure.min_gain
        planned = self._planned(state, selection, request)
        return replace(planned, is_over=pressure.is_over) if selection and worth else None

    def _when_covered(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact what the overview covers, if the prompt is rewritten anyway."""
        if not (pressure.rewrites_history and state.overview_covers):
            return None
        records = self._records(state)
        selection = select_covered(
            records.messages, before_seq=state.overview_covers, keep_recent=self._policy.keep_recent
        )
        request = self._complete(
            state, with_stub_size(CompactionRequest(reason=COVERED, target="conversation"), pressure.budget.threshold)
        )
        gain = self._gain(records.messages, selection, request, records.sizes(record_tokens=request.record_tokens))
        return self._planned(state, selection, request) if selection and gain >= MIN_GAIN_TOKENS else None

    def _by_policy(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact as the host's policy asks at this fill level, if it frees enough and pays off."""
        name = band_for(pressure.percent)
        policy_target = self._policy.target_for(name)
        rates = self._policy.rates
        # With prices a lower limit is enough. Without them, each message could cause a compaction.
        least = max(MIN_GAIN_TOKENS, pressure.min_gain // 4 if rates else pressure.min_gain)
        if policy_target is None or pressure.history < least:
            return None
        target, keep = policy_target
        records = self._records(state)
        messages = records.messages
        reason = PAYS if rates else name
        request = CompactionRequest(reason=reason, target=target, strategy="summarize")
        request = self._complete(state, with_stub_size(request, pressure.budget.threshold))
        if rates:
            request = replace(request, record_tokens=request.record_tokens // COST_SAVING_RECORD_DIVISOR)
        sizes = records.sizes(record_tokens=request.record_tokens)
        if rates:
            selection = self._select_for_space(records, pressure, request, sizes)
        else:
            selection = select_requested(messages, target=target, keep_recent=keep)
        gain = self._gain(messages, selection, request, sizes)
        worth = pressure.rewrites_history or rates is None or self._pays(rates, messages, gain, pressure)
        return self._planned(state, selection, request) if gain >= least and worth else None

    def _select_for_space(
        self, records: MessageRecords, pressure: WindowPressure, request: CompactionRequest, sizes: MessageSizes
    ) -> CompactionSelection:
        """Select messages to archive so that the rest fits, including the items that must survive."""
        history, messages = records.history, records.messages

        def selection(pressure: WindowPressure) -> CompactionSelection:
            room = pressure.cost_saving_budget if self._policy.rates else pressure.budget
            room = room._replace(stub_tokens=_stub_tokens(request), record_tokens=request.record_tokens)
            return select_for_budget(messages, room, sizes, keep_recent=self._policy.keep_recent)

        first = selection(pressure)
        remaining = pressure.memory + pressure.history - self._gain(messages, first, request, sizes)
        if remaining + RetainedLayer.budget.max <= pressure.available:  # the retained items fit at any size
            return first
        last = request.last_request
        kept = retained_items(history, messages, first, self._meter, request=last).kept
        more = self._meter.count(render_items(unsent_items(kept, messages, first)))
        more -= self._meter.count(render_items(items_in_memory(history, last)))
        return selection(pressure.with_reserved(more)) if more > 0 else first

    def _pays(self, rates: Rates, messages: Sequence[TurnMessage], gain: int, pressure: WindowPressure) -> bool:
        calls = sum(message.speaker == "assistant" and not message.stub for message in messages) or 1
        growth = sum(message.tokens for message in messages if not message.stub) / calls
        rewritten = max(0, pressure.history - gain) + pressure.memory
        return pays_off(rates, freed=gain, rewritten=rewritten, growth=growth)

    def _gain(
        self,
        messages: Sequence[TurnMessage],
        selection: CompactionSelection,
        request: CompactionRequest,
        sizes: MessageSizes,
    ) -> int:
        """Tokens that a compaction frees at least."""
        pruned = sum(
            messages[place].tokens - sizes.pruned(place, detail) for place, detail in selection.outputs.items()
        )
        whole = sum(messages[place].tokens for place in selection.removed)
        lines = _line_tokens(selection, request, sizes)
        cut = sum(messages[place].tokens - kept_tokens for place, kept_tokens in selection.cut.items())
        stubs = _stub_tokens(request) + FURTHER_STUB_TOKENS * (len(selection.runs) - 1) if selection.runs else 0
        return pruned + whole - lines - stubs + cut

    def _planned(
        self, state: SessionState, selection: CompactionSelection, request: CompactionRequest
    ) -> PlannedCompaction:
        return PlannedCompaction(selection, request, state.history.sent.prefix_digest())


def _line_tokens(selection: CompactionSelection, request: CompactionRequest, sizes: MessageSizes) -> int:
    """Tokens of the records of removed messages."""
    return min(request.record_tokens, sum(map(sizes.line, selection.removed)))


def _stub_tokens(request: CompactionRequest) -> int:
    """Usual size of a stub for messages, without its records."""
    return FRAME_TOKENS + request.stub_tokens // 2
