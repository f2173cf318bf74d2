"""How full the window is, and whether something has to leave the conversation before the next call."""

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
    """How full the window is, as far as the conversation could be shorter; in tokens by our count."""

    available: int
    """What the window has beside system prompt, tools and the answer."""
    memory: int
    """What stands there beside the conversation: memory, and the words around it."""
    history: int
    fixed: int
    """Of that, what cannot be shorter: the guide and the meter."""
    reserved: int
    """And what must not be: what has to survive."""
    percent: float
    """Of the whole window, as the meter tells it."""
    rewrites_history: bool
    """What stands behind the anchor is written anew anyway."""

    @property
    def is_full(self) -> bool:
        return self.memory + self.history > COMPACTION_THRESHOLD * self.available

    @property
    def is_over(self) -> bool:
        return self.memory + self.history > self.available

    @property
    def cannot_shrink(self) -> bool:
        """System prompt and tools leave nothing that a compaction could make room in."""
        return self.available <= 2 * self.fixed

    @property
    def min_gain(self) -> int:
        """Tokens below which a compaction is not worth its page."""
        return max(100, self.available // 10)

    @property
    def budget(self) -> HistoryBudget:
        """In a window that memory itself half fills, the conversation still gets a quarter; and before a message has to
        be cut, memory makes do with half of what it wants. What is recent is not spared up to where the next compaction
        is due: each call would have one."""
        aim = max(int(COMPACTION_TARGET * self.available) - self.memory, self.available // 4)
        most = max(int(COMPACTION_THRESHOLD * self.available) - self.memory, aim + self.available // 8)
        least = self.fixed + self.reserved + (self.memory - self.fixed - self.reserved) // 2
        return HistoryBudget(
            target=aim, threshold=most, limit=max(most, self.available - least), recent_limit=(aim + most) // 2
        )

    @property
    def cost_saving_budget(self) -> HistoryBudget:
        """Where the price counts, much leaves at once, also of what is recent: all that stays is written anew."""
        return self.budget._replace(target=0, recent_limit=self.available // 4)

    def with_reserved(self, more: int) -> WindowPressure:
        """The same, once more has to survive."""
        return replace(self, memory=self.memory + more, reserved=self.reserved + more)


def measure_pressure(inputs: PlanInput, planned: PromptPlan | None) -> WindowPressure:
    """How a plan fills the window; None where it could not be made, since too much is said.

    Memory counts with what it wants: where the conversation has taken its place, that is the first to notice.
    """
    state, meter = inputs.state, inputs.meter
    current = replace(state, wording=current_wording(state))
    tokens = count_fixed_tokens(current, inputs.conversation, inputs.view, meter)
    fixed = tokens["guide"] + max_meta_tokens(current, inputs)
    demands = [
        (layer.budget, count_block(meter, to_block(layer, said), said.text)) for layer, said in inputs.layer_texts
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
