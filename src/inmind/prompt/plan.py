"""Plans the next prompt: a pure decision that the journal then records.

The order matters: first the fixed parts (system prompt, tools and history of the host), then the remaining tokens, how
layers share them, if the anchor moves, and the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import takewhile

from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.prompt import AnchoredBlock, AnchorMoved, PromptPrepared, TailChanged, WordingSet
from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText, truncate
from inmind.core.tokens import SAFETY_MARGIN, TOKENS_PER_MESSAGE, Counter
from inmind.errors import ContextOverflow
from inmind.history import Conversation
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View
from inmind.prompt.anchor import Anchor, AnchorCosts, decide_anchor
from inmind.prompt.budget import LayerDemand, allocate
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.meter import STRONG_REMINDER_PERCENT, reserved_meta_tokens, take_reading
from inmind.prompt.state import PromptState
from inmind.prompt.templates import block_text, changes_text, wording_for


@frozen(kw_only=True)
class WindowLimits:
    """Context window of the model, and the reserve for its answer."""

    window: int
    reserve: int
    exact: bool = False
    """The counter is the model's tokenizer, so no safety margin is needed."""
    cache_seconds: float

    @property
    def spendable(self) -> int:
        free = self.window - self.reserve
        return free if self.exact else int(free * (1 - SAFETY_MARGIN))


@frozen(kw_only=True)
class PromptPlan:
    """Drafts before the call, the call's own event (still without digest), and token counts."""

    drafts: tuple[Draft, ...]
    prepared: PromptPrepared
    tokens: dict[str, int]
    cut: tuple[tuple[str, int], ...]
    """Layers that were cut, and the number of lines left out of each."""
    unchanged_tokens: int
    """Leading tokens equal to the previous prompt, cached or not."""
    cold: bool


@frozen(kw_only=True)
class PlanInput:
    """Everything that the plan of one call depends on."""

    state: PromptState
    conversation: Conversation
    """The conversation as it is sent."""
    view: View
    layer_texts: Sequence[tuple[Layer, LayerText]]
    shared_wires: int
    """Leading wires of the view that are equal to the previous prompt."""
    limits: WindowLimits
    meter: TokenMeter
    now: datetime


def plan_prompt(inputs: PlanInput) -> PromptPlan:
    """Plan one call."""
    state, conversation, view, layer_texts = inputs.state, inputs.conversation, inputs.view, inputs.layer_texts
    limits, meter, shared_wires = inputs.limits, inputs.meter, inputs.shared_wires
    drafts: list[Draft] = []
    if (wording := current_wording(state)) != state.wording:
        state = replace(state, wording=wording)
        drafts.append(Draft(payload=WordingSet(wording=dict(wording)), origin=Origin.OPERATOR))
    tokens = count_fixed_tokens(state, conversation, view, meter)
    room = _memory_tokens(state, limits, sum(tokens.values()) + max_meta_tokens(state, inputs))
    blocks = _build_blocks(layer_texts, room, meter)
    cold = is_cache_cold(state, inputs.now, limits.cache_seconds)
    decision = decide_anchor(
        state.anchor,
        blocks,
        call=state.calls + 1,
        cold=cold,
        count=meter.count,
        describe_changes={
            layer.name: layer_text.describe_changes
            for layer, layer_text in layer_texts
            if layer_text.describe_changes is not None
        },
        costs=AnchorCosts(
            anchored_tokens=tokens["guide"] + sum(_block_tokens(block, meter) for block in state.blocks),
            cached_history_tokens=meter.count_view(conversation, view, shared_wires),
            tail_tokens_since_anchor=state.tail_tokens_since_anchor,
            max_memory_tokens=tokens["guide"] + room,
            tail_frame_tokens=meter.count(changes_text(state.wording, ".")),
            has_tail_carrier=view.carrier is not None,
            history_rewritten=state.compacted or (state.spliced and not shared_wires),
        ),
    )
    trust = min((layer_text.trust for _, layer_text in layer_texts), default=Trust.OPERATOR)
    if decision.move_reason:
        sources = tuple(dict.fromkeys(source for block in blocks for source in block.sources))
        moved = AnchorMoved(reason=decision.move_reason, blocks=blocks)
        drafts.append(Draft(payload=moved, origin=Origin.OPERATOR, sources=sources, trust=trust))
        anchor = Anchor(blocks=blocks, reason=decision.move_reason, seq=0, call=state.calls + 1)
        state = replace(state, anchor=anchor, tail="", new_blocks=(), tail_sources=())
    elif (decision.changes, decision.new_blocks) != (state.tail, state.new_blocks):
        changed = TailChanged(text=decision.changes, new_blocks=decision.new_blocks)
        drafts.append(Draft(payload=changed, origin=Origin.OPERATOR, sources=decision.sources, trust=trust))
        state = replace(state, tail=decision.changes, new_blocks=decision.new_blocks, tail_sources=decision.sources)
    tokens = count_tokens(state, conversation, view, meter, limits.window)
    unchanged = count_unchanged_prefix(state, tokens, view.format, meter.count_view(conversation, view, shared_wires))
    prepared = _prompt_prepared(state, conversation, view, tokens, limits, meter, cached=0 if cold else unchanged)
    cut = tuple((block.layer, block.left_out) for block in blocks if block.left_out)
    return PromptPlan(
        drafts=tuple(drafts), prepared=prepared, tokens=tokens, cut=cut, unchanged_tokens=unchanged, cold=cold
    )


def is_cache_cold(state: PromptState, now: datetime, cache_seconds: float) -> bool:
    """True if the provider has dropped its cache since the last call, or the clock went back."""
    if state.last_call_at is None:
        return True
    return not 0 <= (now - state.last_call_at).total_seconds() <= cache_seconds


def count_tokens(
    state: PromptState, conversation: Conversation, view: View, meter: TokenMeter, window: int
) -> dict[str, int]:
    """Tokens by part, in prompt order. Without a carrier there is no tail."""
    tokens = count_fixed_tokens(state, conversation, view, meter)
    history = tokens.pop("history")
    tokens |= {f"memory:{block.layer}": _block_tokens(block, meter) for block in state.blocks}
    tokens["history"] = history
    if view.carrier is None:
        return {**tokens, "changes": 0, "context_meta": 0}
    changes = changes_text(state.wording, state.tail, state.new_blocks)
    changes = meter.count(changes) if changes else 0
    reading = take_reading(state, conversation, sum(tokens.values()) + changes, window)
    return {**tokens, "changes": changes, "context_meta": reserved_meta_tokens(meter, reading, state.wording)}


def count_fixed_tokens(state: PromptState, conversation: Conversation, view: View, meter: TokenMeter) -> dict[str, int]:
    return {
        "tools": meter.count_value(state.tools_digest, state.all_tools),
        "system": meter.count_value(state.system_digest, state.system),
        "guide": meter.count(state.wording["guide"]) + TOKENS_PER_MESSAGE,
        "history": meter.count_view(conversation, view),
    }


def current_wording(state: PromptState) -> Mapping[str, str]:
    """The wording for the offered tools, without sentences about others."""
    return wording_for(frozenset(tool_names(state.layer_tools)))


def max_meta_tokens(state: PromptState, inputs: PlanInput) -> int:
    """Size of context_meta in a full window."""
    window = inputs.limits.window
    return reserved_meta_tokens(inputs.meter, take_reading(state, inputs.conversation, window, window), state.wording)


def _needs_strong_reminder(state: PromptState, without_meta: int, window: int) -> bool:
    """True if the reminder names the largest messages."""
    return 100 * state.calibration.correct(without_meta) > STRONG_REMINDER_PERCENT * window


def _memory_tokens(state: PromptState, limits: WindowLimits, needed: int) -> int:
    """Tokens left for memory, by our count.

    The limit is in provider tokens, so it is corrected first.
    """
    spendable = int(limits.spendable / state.calibration.cautious)
    if needed > spendable:
        raise ContextOverflow(needed=state.calibration.correct(needed), spendable=limits.spendable)
    return spendable - needed


def _build_blocks(
    layer_texts: Sequence[tuple[Layer, LayerText]], max_tokens: int, meter: TokenMeter
) -> tuple[AnchoredBlock, ...]:
    """Return the block of each layer within its grant, in slot order."""
    full_blocks = [to_block(layer, layer_text) for layer, layer_text in layer_texts]
    demands = [
        LayerDemand(wanted=count_block(meter, block, layer_text.text), min=layer.budget.min, max=layer.budget.max)
        for block, (layer, layer_text) in zip(full_blocks, layer_texts, strict=True)
    ]
    filled: list[AnchoredBlock] = []
    for block, (_, layer_text), demand, grant in zip(
        full_blocks, layer_texts, demands, _grant_tokens(layer_texts, demands, max_tokens), strict=True
    ):
        if demand.wanted <= grant:
            filled.append(block)
            continue
        kept = _shorten(layer_text, _round_down(grant, demand), partial(count_block, meter, block))
        filled.append(replace(block, text=kept.text, left_out=layer_text.left_out + kept.lines_left_out))
    return tuple(filled)


def _grant_tokens(
    layer_texts: Sequence[tuple[Layer, LayerText]], demands: Sequence[LayerDemand], max_tokens: int
) -> list[int]:
    """Grant reserved layers their full demand first; the others share the rest."""
    reserved: dict[int, int] = {}
    for index, ((layer, _), demand) in enumerate(zip(layer_texts, demands, strict=True)):
        if layer.budget.reserved:
            reserved[index] = min(demand.wanted, demand.max, max_tokens)
            max_tokens -= reserved[index]
    shared = iter(allocate([demand for index, demand in enumerate(demands) if index not in reserved], max_tokens))
    return [reserved[index] if index in reserved else next(shared) for index in range(len(demands))]


def to_block(layer: Layer, layer_text: LayerText) -> AnchoredBlock:
    return AnchoredBlock(
        layer.name, layer_text.text, layer_text.left_out, layer_text.sources, layer_text.banner, layer_text.tag
    )


def _shorten(layer_text: LayerText, budget: int, count: Counter) -> TruncatedText:
    """Shorten a layer's text by its own function if that keeps the budget, else cut the end."""
    if layer_text.shorten is not None:
        kept = layer_text.shorten(budget, count)
        if count(kept.text) <= budget:
            return kept
    return truncate(layer_text.text, budget=budget, count=count, pointer=layer_text.pointer)


def _round_down(grant: int, demand: LayerDemand) -> int:
    """Round a grant down to coarse steps.

    In a filling window a block that loses a line with every message would change every prompt and everything after it.
    """
    step = max(1, demand.need // 4)
    return grant // step * step if grant >= step else grant


def _prompt_prepared(
    state: PromptState,
    conversation: Conversation,
    view: View,
    tokens: dict[str, int],
    limits: WindowLimits,
    meter: TokenMeter,
    *,
    cached: int,
) -> PromptPrepared:
    used = sum(tokens.values())
    tail = tokens["changes"] + tokens["context_meta"]
    if view.after_carrier:
        tail += tokens["history"] - meter.count_view(conversation, view, len(view.wires) - view.after_carrier)
    strong = view.carrier is not None and _needs_strong_reminder(state, used - tokens["context_meta"], limits.window)
    return PromptPrepared(
        digest="",
        used=used,
        cached=cached,
        written=used - tail - cached,
        changes=tokens["changes"],
        messages_after_tail=view.after_carrier,
        format=view.format,
        window=limits.window,
        reserve=limits.reserve,
        largest=meter.largest_messages(conversation) if strong else (),
    )


def count_unchanged_prefix(state: PromptState, tokens: dict[str, int], format: str, shared_tokens: int) -> int:
    """Number of leading tokens equal to the previous prompt.

    `shared_tokens`: those of them in the history.
    """
    sizes = list(tokens.values())[: 3 + len(state.blocks)]
    parts, before = state.prefix_digests(format), state.last_prompt.prefix_digests
    if parts != before:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(parts, before, strict=False))
        return sum(size for size, _ in zip(sizes, same, strict=False))
    return sum(sizes) + shared_tokens


def _block_tokens(block: AnchoredBlock, meter: TokenMeter) -> int:
    return count_block(meter, block, block.text) if block.text else 0


def count_block(meter: TokenMeter, block: AnchoredBlock, text: str) -> int:
    """Tokens of a block with this text as it is sent: escaped and with tags."""
    return meter.count(block_text(replace(block, text=text)))
