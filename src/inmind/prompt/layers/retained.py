"""What must survive, in every prompt: the goal, what was decided, the rules, and what the host has declared.

A message that is still sent says its own words. When it has left, what must survive of it stands here, in front of the
conversation, where it is paid for once and stays in the provider's cache. Where there is no room for all of it the
oldest rules and decisions go first, and are counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from inmind.core.events.base import Trust
from inmind.core.events.session import RetainedItem
from inmind.core.text import Cut, counted
from inmind.core.tokens import Counter
from inmind.prompt.layers.base import Budget, LayerContext, LayerText, PlainLayer, Slot

LAYER_NAME = "retained"

_HEADINGS = {
    "goal": "The goal, as it was given:",
    "pinned": "To keep in mind:",
    "decision": "Decided:",
    "rule": "Rules that people gave; later words win:",
}
_ALWAYS_KEPT = ("goal", "pinned")
_BUDGET = Budget(max=2_000, reserved=True)


@dataclass(frozen=True)
class RetainedLayer(PlainLayer):
    """Every session has it, whatever layers its host names."""

    name: str = LAYER_NAME
    slot: int = Slot.RETAINED
    budget: Budget = _BUDGET

    def recall(self, context: LayerContext) -> LayerText | None:
        items = context.retained
        if not items:
            return None
        sources = tuple(dict.fromkeys(f"session/{context.session}#{item.seq}" for item in items if item.seq))
        return LayerText(
            render_items(items),
            sources=sources,
            trust=Trust.PERSON,
            shorten=lambda budget, count: _render_within(items, budget, count),
        )


def render_items(items: Sequence[RetainedItem], left_out: int = 0) -> str:
    """What the block says of these items; nothing where there are none."""
    lines: list[str] = []
    for kind, heading in _HEADINGS.items():
        of_kind = [item.text.replace("\x00", " ") for item in items if item.kind == kind]
        if of_kind:
            lines += [heading, *(f"- {' '.join(text.split())}" for text in of_kind)]
    if left_out:
        lines.append(f"({counted(left_out, 'older one')} in archive/ alone)")
    return "\n".join(lines)


def _render_within(items: Sequence[RetainedItem], budget: int, count: Counter) -> Cut:
    """Without the oldest rules and decisions; without all of them, what is left is cut by whoever asks."""
    going = sorted((item for item in items if item.kind not in _ALWAYS_KEPT), key=lambda item: item.seq)

    def without(number: int) -> str:
        gone = set(going[:number])
        return render_items([item for item in items if item not in gone], number)

    fewest = bisect_left(range(len(going)), True, key=lambda number: count(without(number)) <= budget)
    return Cut(without(fewest), fewest)
