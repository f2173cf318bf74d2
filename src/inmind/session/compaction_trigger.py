"""What has to leave the conversation before the next prompt, or may as well, without anybody having asked.

The window is full; or the overview tells what is old, and everything is written anew anyway; or the host's policy says
so in this band, or its prices do. Found on values, and carried out by whoever keeps the archive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.core.pricing import Rates
from inmind.history import History
from inmind.history.compaction.policy import CompressionPolicy, pays_off
from inmind.history.compaction.request import CompactionRequest, with_stub_size
from inmind.history.compaction.retention import retained_items, unsent_items
from inmind.history.compaction.select import (
    CompactionSelection,
    output_stub_tokens,
    select_covered,
    select_for_budget,
    select_requested,
)
from inmind.history.compaction.stubs import estimate_stub_tokens
from inmind.history.token_meter import TokenMeter, band_for
from inmind.history.turns import TurnMessage
from inmind.prompt.layers.retained import RetainedLayer, render_items
from inmind.prompt.pressure import WindowPressure
from inmind.session.state import SessionState

MIN_NAMED_ID_TOKENS = 100
"""Tokens of ids below which a stub is not made shorter any more."""
MIN_GAIN_TOKENS = 300
"""Tokens that a compaction which nothing forces has to make free."""

FULL = "the window was full"
COVERED = "the overview covers it"
PAYS = "it pays"


@frozen
class PlannedCompaction:
    """A compaction that has come due by itself: what leaves, and how it is to be done."""

    selection: CompactionSelection
    request: CompactionRequest
    based_on: str
    """The name of what was sent when it was found."""


class CompactionTrigger:
    """The judgement of one session."""

    def __init__(
        self,
        policy: CompressionPolicy,
        meter: TokenMeter,
        *,
        said: Callable[[History], Sequence[TurnMessage]],
        complete: Callable[[SessionState, CompactionRequest], CompactionRequest],
    ) -> None:
        """`said`: what is sent, message by message. `complete`: a wish, with what is known at the moment."""
        self._policy, self._meter, self._said, self._complete = policy, meter, said, complete

    def plan(self, state: SessionState, crowd: WindowPressure) -> PlannedCompaction | None:
        """What has to leave before the next prompt, or may as well: nothing, most of the time."""
        if crowd.cannot_shrink:
            return None
        if crowd.is_full:
            return self._when_full(state, crowd)
        return self._when_covered(state, crowd) or self._by_policy(state, crowd)

    def _when_full(self, state: SessionState, crowd: WindowPressure) -> PlannedCompaction | None:
        """A stub says all that it has to say, unless nothing could be sent for it."""
        said = self._said(state.history)
        wanted = self._complete(
            state, with_stub_size(CompactionRequest(reason=FULL, strategy="summarize"), crowd.budget.threshold)
        )
        while True:
            stub = estimate_stub_tokens(said, wanted, self._meter)
            leaving = self._relieved(state.history, said, crowd, stub)
            gain = self._gain(said, leaving, stub)
            if crowd.history - gain <= crowd.available - crowd.fixed or wanted.id_tokens < MIN_NAMED_ID_TOKENS:
                break
            wanted = replace(wanted, id_tokens=wanted.id_tokens // 2, stub_tokens=wanted.stub_tokens // 2)
        worth = crowd.is_over or gain >= crowd.min_gain
        return self._due(state, leaving, wanted) if leaving and worth else None

    def _when_covered(self, state: SessionState, crowd: WindowPressure) -> PlannedCompaction | None:
        """Where the overview tells it and everything is written anew anyway."""
        if not (crowd.rewrites_history and state.overview_covers):
            return None
        said = self._said(state.history)
        leaving = select_covered(said, before_seq=state.overview_covers, keep_recent=self._policy.keep_recent)
        wanted = self._complete(
            state, with_stub_size(CompactionRequest(reason=COVERED, target="conversation"), crowd.budget.threshold)
        )
        gain = self._gain(said, leaving, estimate_stub_tokens(said, wanted, self._meter))
        return self._due(state, leaving, wanted) if leaving and gain >= MIN_GAIN_TOKENS else None

    def _by_policy(self, state: SessionState, crowd: WindowPressure) -> PlannedCompaction | None:
        """What the host's policy asks for in this band, where there is enough to gain and the price agrees."""
        name = band_for(crowd.percent)
        asks = self._policy.target_for(name)
        rates = self._policy.rates
        # Where prices decide, they know best; otherwise each message would be followed by a compaction of its own.
        least = max(MIN_GAIN_TOKENS, crowd.min_gain // 4 if rates else crowd.min_gain)
        if asks is None or crowd.history < least:
            return None
        target, keep = asks
        said = self._said(state.history)
        reason = PAYS if rates else name
        wanted = CompactionRequest(reason=reason, target=target, strategy="summarize")
        wanted = self._complete(state, with_stub_size(wanted, crowd.budget.threshold))
        stub = estimate_stub_tokens(said, wanted, self._meter)
        if rates:
            leaving = self._relieved(state.history, said, crowd, stub)
        else:
            leaving = select_requested(said, target=target, keep_recent=keep)
        gain = self._gain(said, leaving, stub)
        worth = crowd.rewrites_history or rates is None or self._pays(rates, said, gain, crowd)
        return self._due(state, leaving, wanted) if gain >= least and worth else None

    def _relieved(
        self, history: History, said: Sequence[TurnMessage], crowd: WindowPressure, stub: int
    ) -> CompactionSelection:
        """What leaves when memory itself makes room: for what must survive of it, too."""

        def leaving(crowd: WindowPressure) -> CompactionSelection:
            room = crowd.cost_saving_budget if self._policy.rates else crowd.budget
            return select_for_budget(said, room._replace(stub_tokens=stub), keep_recent=self._policy.keep_recent)

        first = leaving(crowd)
        left = crowd.memory + crowd.history - self._gain(said, first, stub)
        if left + RetainedLayer.budget.max <= crowd.available:  # there is room, however much it is
            return first
        items = unsent_items(retained_items(history, said, first, self._meter).kept, said, first)
        more = self._meter.count(render_items(items)) - self._meter.count(render_items(history.unsent_items))
        return leaving(crowd.with_reserved(more)) if more > 0 else first

    def _pays(self, rates: Rates, said: Sequence[TurnMessage], gain: int, crowd: WindowPressure) -> bool:
        calls = sum(one.speaker == "assistant" and not one.stub for one in said) or 1
        growth = sum(one.tokens for one in said if not one.stub) / calls
        stays = max(0, crowd.history - gain) + crowd.memory
        return pays_off(rates, freed=gain, rewritten=stays, growth=growth)

    def _gain(self, said: Sequence[TurnMessage], leaving: CompactionSelection, stub: int) -> int:
        """Tokens that a compaction makes free, at the least."""
        sizes = [sum(answer.tokens for answer in said[place].results) for place in leaving.outputs]
        outputs, stubs = sum(sizes), sum(map(output_stub_tokens, sizes))
        whole = sum(said[place].tokens for place in leaving.removed)
        cut = sum(said[place].tokens - stays for place, stays in leaving.cut.items())
        return outputs - stubs + whole - stub * len(leaving.runs) + cut

    def _due(self, state: SessionState, leaving: CompactionSelection, wanted: CompactionRequest) -> PlannedCompaction:
        return PlannedCompaction(leaving, wanted, state.history.sent.prefix_digest())
