"""The layer of retained items: goal, decisions, rules and pinned texts, in every prompt.

A sent message contains its own words. After it was archived, its items are shown here, before the conversation, so that
they stay in the provider's cache. If not all fit, the oldest rules and decisions are dropped first and counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from inmind.core.events.base import Trust
from inmind.core.events.session import RetainedItem
from inmind.core.text import TruncatedText, count_noun
from inmind.core.tokens import Counter
from inmind.prompt.layers.base import Budget, LayerContext, LayerText, PlainLayer, Slot

LAYER_NAME = "retained"

_HEADINGS = {
    "goal": "Goal, verbatim:",
    "earlier_goal": "Earlier goal:",
    "request": "Last request, verbatim:",
    "pinned": "Pinned:",
    "decision": "Decisions:",
    "open_decision": "Open decisions:",
    "rule": "Rules from people; later ones win:",
}
_KEPT_KINDS = ("goal", "request", "pinned")
_BUDGET = Budget(max=2_000, reserved=True)


@dataclass(frozen=True)
class RetainedLayer(PlainLayer):
    """Part of every session, in addition to the host's layers."""

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
    """Render the items; empty if there are none."""
    lines: list[str] = []
    for kind, heading in _HEADINGS.items():
        of_kind = [item.text.replace("\x00", " ") for item in items if item.kind == kind]
        if of_kind:
            lines += [heading, *(f"- {' '.join(text.split())}" for text in of_kind)]
    if left_out:
        lines.append(f"({count_noun(left_out, 'older one')} only in archive/)")
    return "\n".join(lines)


def _render_within(items: Sequence[RetainedItem], budget: int, count: Counter) -> TruncatedText:
    """Drop the oldest rules, decisions and earlier goals until the rest fits.

    If that is not enough, the caller cuts the text.
    """
    droppable = sorted((item for item in items if item.kind not in _KEPT_KINDS), key=lambda item: item.seq)

    def without(number: int) -> str:
        dropped = set(droppable[:number])
        return render_items([item for item in items if item not in dropped], number)

    drop_count = bisect_left(range(len(droppable)), True, key=lambda number: count(without(number)) <= budget)
    return TruncatedText(without(drop_count), drop_count)
