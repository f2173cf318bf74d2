"""How full the window is, and whether something has to leave the conversation before the next call."""

from __future__ import annotations

from dataclasses import replace

from inmind.core.events.prompt import AnchorMoved
from inmind.core.frozen import frozen
from inmind.history.compaction.policy import COMPACTION_TARGET, COMPACTION_THRESHOLD
from inmind.history.compaction.select import HistoryBudget
from inmind.prompt.plan import Occasion, Plan, block_of, framed, most_meta, without_memory, wording_of


@frozen(kw_only=True)
class Crowd:
    """How full the window is, as far as the conversation could be shorter; in tokens by our count."""

    available: int
    """What the window has beside system prompt, tools and the answer."""
    around: int
    """What stands there beside the conversation: memory, and the words around it."""
    history: int
    fixed: int
    """Of that, what cannot be shorter: the guide and the meter."""
    firm: int
    """And what must not be: what has to survive."""
    percent: float
    """Of the whole window, as the meter tells it."""
    moves: bool
    """What stands behind the anchor is written anew anyway."""

    @property
    def full(self) -> bool:
        return self.around + self.history > COMPACTION_THRESHOLD * self.available

    @property
    def over(self) -> bool:
        return self.around + self.history > self.available

    @property
    def hopeless(self) -> bool:
        """System prompt and tools leave nothing that a compaction could make room in."""
        return self.available <= 2 * self.fixed

    @property
    def least_gain(self) -> int:
        """Tokens below which a compaction is not worth its page."""
        return max(100, self.available // 10)

    @property
    def room(self) -> HistoryBudget:
        """In a window that memory itself half fills, the conversation still gets a quarter; and before a message has to
        be cut, memory makes do with half of what it wants. What is recent is not spared up to where the next compaction
        is due: each call would have one."""
        aim = max(int(COMPACTION_TARGET * self.available) - self.around, self.available // 4)
        most = max(int(COMPACTION_THRESHOLD * self.available) - self.around, aim + self.available // 8)
        least = self.fixed + self.firm + (self.around - self.fixed - self.firm) // 2
        return HistoryBudget(
            target=aim, threshold=most, limit=max(most, self.available - least), recent_limit=(aim + most) // 2
        )

    @property
    def thrifty(self) -> HistoryBudget:
        """Where the price counts, much leaves at once, also of what is recent: all that stays is written anew."""
        return self.room._replace(target=0, recent_limit=self.available // 4)

    def with_firm(self, more: int) -> Crowd:
        """The same, once more has to survive."""
        return replace(self, around=self.around + more, firm=self.firm + more)


def crowd(occasion: Occasion, planned: Plan | None) -> Crowd:
    """How a plan fills the window; None where it could not be made, since too much is said.

    Memory counts with what it wants: where the conversation has taken its place, that is the first to notice.
    """
    standing, meter = occasion.standing, occasion.meter
    told = replace(standing, wording=wording_of(standing))
    tokens = without_memory(told, occasion.line, occasion.view, meter)
    fixed = tokens["guide"] + most_meta(told, occasion)
    wishes = [(layer.budget, framed(meter, block_of(layer, said), said.text)) for layer, said in occasion.recalled]
    around = fixed + sum(min(size, budget.max) for budget, size in wishes)
    firm = sum(min(size, budget.max) for budget, size in wishes if budget.firm)
    used = sum(planned.tokens.values()) if planned else sum(tokens.values()) + around
    moved = planned is None or any(isinstance(draft.payload, AnchorMoved) for draft in planned.drafts)
    moves = moved or (planned is not None and planned.cold) or (standing.spliced and not occasion.shared)
    spendable = int(occasion.limits.spendable / standing.calibration.cautious)
    return Crowd(
        available=max(0, spendable - tokens["system"] - tokens["tools"]),
        around=around,
        history=tokens["history"],
        fixed=fixed,
        firm=firm,
        percent=100 * standing.calibration.correct(used) / occasion.limits.window,
        moves=moves and standing.calls > 0,
    )
