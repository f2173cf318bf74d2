"""Measures how full the context window is, to decide if a compaction is due."""

from __future__ import annotations

from dataclasses import replace

from inmind.core.events.prompt import AnchorMoved
from inmind.core.frozen import frozen
from inmind.history.compaction.policy import COMPACTION_TARGET, COMPACTION_THRESHOLD
from inmind.history.compaction.select import HistoryBudget
from inmind.prompt.plan import (
    PlanInput,
    PromptPlan,
    count_block,
    count_fixed_tokens,
    current_wording,
    max_meta_tokens,
    to_block,
)


@frozen(kw_only=True)
class WindowPressure:
    """Use of the window, in tokens by our count."""

    available: int
    """The window without system prompt, tools and the reserve for the answer."""
    memory: int
    """Part of `available` used by memory blocks, guide and context_meta."""
    history: int
    fixed: int
    """Part of `memory` that cannot be shortened: guide and context_meta."""
    reserved: int
    """Part of `memory` that must not be shortened: retained items."""
    percent: float
    """Use of the whole window, as in context_meta."""
    rewrites_history: bool
    """The history is written to the cache again anyway."""

    @property
    def is_full(self) -> bool:
        return self.memory + self.history > COMPACTION_THRESHOLD * self.available

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
        return max(100, self.available // 10)

    @property
    def budget(self) -> HistoryBudget:
        """Target sizes of the history.

        History gets at least 25% of the available window; layers shrink to 50% before a message is cut. Recent
        messages are spared only up to halfway between target and threshold, otherwise every call would compact.
        """
        target = max(int(COMPACTION_TARGET * self.available) - self.memory, self.available // 4)
        threshold = max(int(COMPACTION_THRESHOLD * self.available) - self.memory, target + self.available // 8)
        min_memory = self.fixed + self.reserved + (self.memory - self.fixed - self.reserved) // 2
        return HistoryBudget(
            target=target,
            threshold=threshold,
            limit=max(threshold, self.available - min_memory),
            recent_limit=(target + threshold) // 2,
        )

    @property
    def cost_saving_budget(self) -> HistoryBudget:
        """Budget of a compaction that saves cost.

        It removes much at once, since everything that stays is cached again.
        """
        return self.budget._replace(target=0, recent_limit=self.available // 4)

    def with_reserved(self, more: int) -> WindowPressure:
        """Return the pressure with more retained items."""
        return replace(self, memory=self.memory + more, reserved=self.reserved + more)


def measure_pressure(inputs: PlanInput, planned: PromptPlan | None) -> WindowPressure:
    """Measure the pressure of a plan; `planned` is None if the prompt did not fit.

    Memory counts with its full demand, because a large conversation shrinks memory first.
    """
    state, meter = inputs.state, inputs.meter
    current = replace(state, wording=current_wording(state))
    tokens = count_fixed_tokens(current, inputs.conversation, inputs.view, meter)
    fixed = tokens["guide"] + max_meta_tokens(current, inputs)
    demands = [
        (layer.budget, count_block(meter, to_block(layer, layer_text), layer_text.text))
        for layer, layer_text in inputs.layer_texts
    ]
    memory = fixed + sum(min(size, budget.max) for budget, size in demands)
    reserved = sum(min(size, budget.max) for budget, size in demands if budget.reserved)
    used = sum(planned.tokens.values()) if planned else sum(tokens.values()) + memory
    moved = planned is None or any(isinstance(draft.payload, AnchorMoved) for draft in planned.drafts)
    moves = moved or (planned is not None and planned.cold) or (state.spliced and not inputs.shared_wires)
    spendable = int(inputs.limits.spendable / state.calibration.cautious)
    return WindowPressure(
        available=max(0, spendable - tokens["system"] - tokens["tools"]),
        memory=memory,
        history=tokens["history"],
        fixed=fixed,
        reserved=reserved,
        percent=100 * state.calibration.correct(used) / inputs.limits.window,
        rewrites_history=moves and state.calls > 0,
    )
