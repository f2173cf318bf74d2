"""Measures how full the context window is, to decide if a compaction is due."""

from __future__ import annotations

from dataclasses import replace

from inmind.core.events.prompt import AnchorMoved
from inmind.core.frozen import frozen
from inmind.history.compaction.policy import COMPACTION_THRESHOLD, PRUNED_TARGET, compaction_target
from inmind.history.compaction.select import HistoryBudget
from inmind.prompt.plan import (
    PlanInput,
    PromptPlan,
    count_block,
    count_fixed_tokens,
    count_in_room,
    count_room,
    longest_wording,
    max_meta_tokens,
    to_block,
)
from inmind.prompt.render import share_of_room


@frozen(kw_only=True)
class WindowPressure:
    """Use of the window, in tokens by our count."""

    room: int
    """The window without system prompt, tools and the reserve for the answer."""
    available: int
    """The room without the safety margin for estimated counts."""
    memory: int
    """Part of `available` used by memory blocks, guide and context_meta."""
    history: int
    fixed: int
    """Part of `memory` that cannot be shortened: guide and context_meta."""
    reserved: int
    """Part of `memory` that must not be shortened: retained items."""
    percent: float
    """Share of `room` that memory and history take as they are sent: the one of context_meta and the bands."""
    rewrites_history: bool
    """The history is written to the cache again anyway."""

    @property
    def is_full(self) -> bool:
        return self.percent > 100 * COMPACTION_THRESHOLD or self.is_over

    @property
    def is_over(self) -> bool:
        return self.memory + self.history > self.available

    @property
    def cannot_shrink(self) -> bool:
        """True if system prompt and tools leave nothing that a compaction could free."""
        return self.available <= 2 * self.fixed

    @property
    def min_gain(self) -> int:
        """Tokens that a compaction must free to be worth its page."""
        return max(100, self.available // 20)

    @property
    def budget(self) -> HistoryBudget:
        """Target sizes of the history.

        History gets at least 25% of the available window; layers shrink to 50% before a message is cut. Recent messages
        are spared up to the threshold.
        """
        least = self.available // 4
        min_memory = self.fixed + self.reserved + (self.memory - self.fixed - self.reserved) // 2
        limit = max(self.available - min_memory, least)

        def history_tokens(share: float) -> int:
            return min(max(int(share * self.room) - self.memory, least), limit)

        target = history_tokens(compaction_target(self.room))
        threshold = min(max(history_tokens(COMPACTION_THRESHOLD), target + self.available // 16), limit)
        return HistoryBudget(
            pruned=history_tokens(PRUNED_TARGET),
            target=target,
            threshold=threshold,
            limit=limit,
            recent_limit=threshold,
        )

    @property
    def cost_saving_budget(self) -> HistoryBudget:
        """Budget of a compaction that saves cost.

        It removes much at once, since everything that stays is cached again.
        """
        return self.budget._replace(pruned=0, target=0, recent_limit=self.available // 6)

    def with_reserved(self, more: int) -> WindowPressure:
        """Return the pressure with more retained items."""
        return replace(self, memory=self.memory + more, reserved=self.reserved + more)


def measure_pressure(inputs: PlanInput, planned: PromptPlan | None) -> WindowPressure:
    """Measure the pressure of a plan; `planned` is None if the prompt did not fit.

    Memory counts with its full demand, because a large conversation shrinks memory first.
    """
    state, meter = inputs.state, inputs.meter
    current = replace(state, wording=longest_wording(inputs))
    tokens = count_fixed_tokens(current, inputs.conversation, inputs.view, meter)
    fixed = tokens["guide"] + max_meta_tokens(current, inputs)
    demands = [
        (layer.budget, count_block(meter, to_block(layer, layer_text), layer_text.text))
        for layer, layer_text in inputs.layer_texts
    ]
    memory = fixed + sum(min(size, budget.max) for budget, size in demands)
    reserved = sum(min(size, budget.max) for budget, size in demands if budget.reserved)
    room = count_room(current, inputs.limits, tokens)
    spendable = int(inputs.limits.spendable / state.calibration.cautious)
    used = count_in_room(planned.tokens) if planned else memory + tokens["history"]
    moved = planned is None or any(isinstance(draft.payload, AnchorMoved) for draft in planned.drafts)
    moves = moved or (planned is not None and planned.cold) or (state.spliced and not inputs.shared_wires)
    return WindowPressure(
        room=room,
        available=max(0, spendable - tokens["system"] - tokens["tools"]),
        memory=memory,
        history=tokens["history"],
        fixed=fixed,
        reserved=reserved,
        percent=share_of_room(state.calibration.correct(used), state.calibration.correct(room)),
        rewrites_history=moves and state.calls > 0,
    )
