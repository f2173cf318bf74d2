"""Plans the next prompt: a pure decision that the journal then records.

The order matters: first the fixed parts (system prompt, tools and history of the host), then the remaining tokens, how
layers share them, if the anchor moves, and the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import takewhile

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.prompt import AnchoredBlock, AnchorMoved, PromptPrepared, TailChanged, WordingSet
from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText, truncate
from inmind.core.tokens import SAFETY_MARGIN, TOKENS_PER_MESSAGE, Counter
from inmind.errors import ContextOverflow
from inmind.history import Conversation
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, View
from inmind.prompt.anchor import MOVED_IN_THREAD, Anchor, AnchorCosts, decide_anchor
from inmind.prompt.budget import LayerDemand, allocate
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.render import (
    STRONG_REMINDER_PERCENT,
    can_compact,
    min_named_tokens,
    name_largest,
    reserved_meta_tokens,
    take_reading,
)
from inmind.prompt.state import PromptState
from inmind.prompt.templates import (
    COMPACTED,
    block_text,
    changes_text,
    memory_tools,
    offered_commands,
    without_compact,
    without_reminders,
    wording_for,
)


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
    turn_messages: Callable[[], Sequence[TurnMessage]]
    """The conversation as compaction sees it; read only if the meter names its largest messages."""
    in_thread: bool = False
    """The provider holds the messages before the conversation."""
    held_tokens: int = 0
    """Tokens of those messages."""
    in_other_thread: bool = False
    """The thread does not continue the previous prompt, so the changes in that prompt are not in it."""
    now: datetime


def plan_prompt(inputs: PlanInput) -> PromptPlan:
    """Plan one call.

    If the reserved layers do not fit beside the others, the others are left out, with what the guide says of them, and
    the meter has only its numbers.
    """
    wording = longest_wording(inputs)
    is_tight = not _fits_with_reserved(inputs, wording)
    if is_tight:
        inputs = _with_reserved_only(inputs)
        wording = _wording(inputs.state, inputs.conversation, _full_blocks(inputs.layer_texts))
        wording = without_reminders(wording)
    state, conversation, view, layer_texts = inputs.state, inputs.conversation, inputs.view, inputs.layer_texts
    limits, meter, shared_wires = inputs.limits, inputs.meter, inputs.shared_wires
    drafts: list[Draft] = []
    before = state.wording
    state = replace(state, wording=wording)
    tokens = count_fixed_tokens(state, conversation, view, meter)
    room = count_room(state, limits, tokens)
    note_tokens = meter.count(changes_text(state.wording, MOVED_IN_THREAD)) if inputs.in_thread else 0
    needed = sum(tokens.values()) + max_meta_tokens(state, inputs) + note_tokens
    memory_room = _memory_tokens(state, limits, needed, meter)
    blocks = _build_blocks(layer_texts, memory_room, meter)
    cold = is_cache_cold(state, inputs.now, limits.cache_seconds)
    kept = count_kept_changes(state, view)
    decision = decide_anchor(
        state.anchor,
        {0: state.known_blocks, 1: state.earlier_blocks}.get(len(state.changes) - kept),
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
            cached_history_tokens=inputs.held_tokens + meter.count_view(conversation, view, shared_wires),
            change_tokens=_change_tokens(state, meter, kept),
            tail_tokens_since_anchor=state.tail_tokens_since_anchor,
            max_memory_tokens=tokens["guide"] + memory_room,
            tail_frame_tokens=meter.count(changes_text(state.wording, ".")),
            has_tail_carrier=view.carrier is not None,
            history_rewritten=state.compacted or inputs.in_other_thread or (state.spliced and not shared_wires),
        ),
    )
    trust = min((layer_text.trust for _, layer_text in layer_texts), default=Trust.OPERATOR)
    changes = decision.changes
    if decision.move_reason:
        changes = MOVED_IN_THREAD if inputs.in_thread and state.anchor and view.carrier is not None else ""
        sources = tuple(dict.fromkeys(source for block in blocks for source in block.sources))
        moved = AnchorMoved(reason=decision.move_reason, blocks=blocks)
        drafts.append(Draft(payload=moved, origin=Origin.OPERATOR, sources=sources, trust=trust))
        kept = 0
        state = state.with_anchor(Anchor(blocks=blocks, reason=decision.move_reason, seq=0, call=state.calls + 1))
    if changes or decision.new_blocks or kept < len(state.changes) or state.tail or state.new_blocks:
        place = view.carrier
        changed = TailChanged(
            text=changes,
            new_blocks=decision.new_blocks,
            place=place or 0,
            view_digest="" if place is None else view.prefix_digests[place],
            changed_blocks=decision.changed_blocks,
            kept=kept,
        )
        drafts.append(Draft(payload=changed, origin=Origin.OPERATOR, sources=decision.sources, trust=trust))
        state = state.with_changes(changed, decision.sources)
    wording = _wording(state, conversation, state.blocks)
    if is_tight:
        wording = without_reminders(wording)
    elif wording["largest"] and not can_compact(inputs.conversation, inputs.turn_messages, room):
        wording = without_compact(wording)
    state = replace(state, wording=wording)
    if state.wording != before:
        drafts.insert(0, Draft(payload=WordingSet(wording=dict(state.wording)), origin=Origin.OPERATOR))
    tokens = count_tokens(state, conversation, view, meter, room)
    shared_tokens = meter.count_view(conversation, view, shared_wires)
    shared_tokens += _change_tokens(state, meter, sum(one.place < shared_wires for one in state.changes[:kept]))
    unchanged = count_unchanged_prefix(state, tokens, view.format, shared_tokens)
    prepared = _prompt_prepared(state, inputs, tokens, room, cached=0 if cold else unchanged)
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
    state: PromptState, conversation: Conversation, view: View, meter: TokenMeter, room: int
) -> dict[str, int]:
    """Tokens by part, in prompt order. Without a carrier there is no tail."""
    tokens = count_fixed_tokens(state, conversation, view, meter)
    history = tokens.pop("history")
    tokens |= {f"memory:{block.layer}": _block_tokens(block, meter) for block in state.blocks}
    tokens["history"] = history
    if view.carrier is None:
        return {**tokens, "changes": 0, "context_meta": 0}
    at_end = changes_text(state.wording, state.tail, state.new_blocks)
    changes = _change_tokens(state, meter) + (meter.count(at_end) if at_end else 0)
    reading = take_reading(state, conversation, count_in_room(tokens) + changes, room)
    return {**tokens, "changes": changes, "context_meta": reserved_meta_tokens(meter, reading, state.wording)}


def count_kept_changes(state: PromptState, view: View) -> int:
    """Number of leading changes whose message, and all before it, is sent as it was."""
    kept = takewhile(
        lambda one: one.place < len(view.wires) and view.prefix_digests[one.place] == one.view_digest, state.changes
    )
    return sum(1 for _ in kept)


def _change_tokens(state: PromptState, meter: TokenMeter, length: int | None = None) -> int:
    """Tokens of the first `length` changes, by default of all."""
    return sum(meter.count(one.render(state.wording)) for one in state.changes[:length])


def count_fixed_tokens(state: PromptState, conversation: Conversation, view: View, meter: TokenMeter) -> dict[str, int]:
    return {
        "tools": meter.count_value(state.tools_digest, state.all_tools),
        "system": meter.count_value(state.system_digest, state.system),
        "guide": count_guide(state.wording, meter),
        "history": meter.count_view(conversation, view),
    }


def count_guide(wording: Mapping[str, str], meter: TokenMeter) -> int:
    """Tokens of the guide and of the message that has it."""
    return meter.count(wording["guide"]) + TOKENS_PER_MESSAGE if wording["guide"] else 0


def count_room(state: PromptState, limits: WindowLimits, tokens: Mapping[str, int]) -> int:
    """Room for memory and history, in tokens by our count.

    It is the window without the reserve for the answer, system prompt and tools.
    """
    free = int((limits.window - limits.reserve) / state.calibration.cautious)
    return max(0, free - tokens["system"] - tokens["tools"])


def count_in_room(tokens: Mapping[str, int]) -> int:
    """Tokens of memory and history: all parts except system prompt and tools."""
    return sum(tokens.values()) - tokens["system"] - tokens["tools"]


def longest_wording(inputs: PlanInput) -> Mapping[str, str]:
    """The wording if every layer with a text is sent."""
    return _wording(inputs.state, inputs.conversation, [*inputs.state.blocks, *_full_blocks(inputs.layer_texts)])


def _wording(state: PromptState, conversation: Conversation, blocks: Sequence[AnchoredBlock]) -> Mapping[str, str]:
    """The wording for anchored blocks, stubs and offered tools.

    The guide is a part of the cached prefix. It changes only with one of these, so it never breaks the cache alone.
    """
    present = {block.layer for block in blocks if block.text}
    if any(entry.is_stub for entry in conversation):
        present.add(COMPACTED)
    return wording_for(offered_commands(state.layer_tools), present)


def max_meta_tokens(state: PromptState, inputs: PlanInput) -> int:
    """Size of context_meta in a full window."""
    window = inputs.limits.window
    return reserved_meta_tokens(inputs.meter, take_reading(state, inputs.conversation, window, window), state.wording)


def _fits_with_reserved(inputs: PlanInput, wording: Mapping[str, str]) -> bool:
    """True if the prompt has room for the reserved layers, with this wording."""
    state = replace(inputs.state, wording=wording)
    tokens = count_fixed_tokens(state, inputs.conversation, inputs.view, inputs.meter)
    reserved = [
        _block_tokens(to_block(layer, text), inputs.meter)
        for layer, text in inputs.layer_texts
        if layer.budget.reserved
    ]
    needed = sum(tokens.values()) + max_meta_tokens(state, inputs) + sum(reserved)
    return needed <= _spendable(state, inputs.limits)


def _with_reserved_only(inputs: PlanInput) -> PlanInput:
    texts = [
        (layer, text if layer.budget.reserved else replace(text, text="", shorten=None))
        for layer, text in inputs.layer_texts
    ]
    return replace(inputs, layer_texts=texts)


def _spendable(state: PromptState, limits: WindowLimits) -> int:
    """Tokens that may be sent, by our count.

    The limit is in provider tokens, so it is corrected first.
    """
    return int(limits.spendable / state.calibration.cautious)


def _memory_tokens(state: PromptState, limits: WindowLimits, needed: int, meter: TokenMeter) -> int:
    """Tokens left for memory, by our count."""
    spendable = _spendable(state, limits)
    if needed > spendable:
        correct, offered = state.calibration.correct, memory_tools(state.layer_tools)
        raise ContextOverflow(
            needed=correct(needed),
            spendable=limits.spendable,
            memory_tools=correct(meter.count(to_json(offered))) if offered else 0,
        )
    return spendable - needed


def _build_blocks(
    layer_texts: Sequence[tuple[Layer, LayerText]], max_tokens: int, meter: TokenMeter
) -> tuple[AnchoredBlock, ...]:
    """Return the block of each layer within its grant, in slot order."""
    full_blocks = _full_blocks(layer_texts)
    demands = [
        LayerDemand(wanted=_block_tokens(block, meter), min=layer.budget.min, max=layer.budget.max)
        for block, (layer, _) in zip(full_blocks, layer_texts, strict=True)
    ]
    filled: list[AnchoredBlock] = []
    for block, (_, layer_text), demand, grant in zip(
        full_blocks, layer_texts, demands, _grant_tokens(layer_texts, demands, max_tokens), strict=True
    ):
        if demand.wanted <= grant:
            filled.append(block)
            continue
        kept = _shorten(layer_text, _round_down(grant, demand), partial(count_block, meter, block))
        text = "" if _is_cut_to_nothing(kept.text) else kept.text
        filled.append(replace(block, text=text, left_out=layer_text.left_out + kept.lines_left_out))
    return tuple(filled)


def _is_cut_to_nothing(text: str) -> bool:
    """True for headings with nothing under them, and perhaps the pointer to the rest."""
    *lines, last = [line for line in text.split("\n") if line.strip()] or [""]
    is_pointer = (last[:1], last[-1:]) in (("[", "]"), ("(", ")"))
    return all(
        line.startswith("#") or line.endswith(":") for line in (lines if is_pointer or not last else [*lines, last])
    )


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


def _full_blocks(layer_texts: Sequence[tuple[Layer, LayerText]]) -> list[AnchoredBlock]:
    return [to_block(layer, layer_text) for layer, layer_text in layer_texts]


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
    state: PromptState, inputs: PlanInput, tokens: dict[str, int], room: int, *, cached: int
) -> PromptPrepared:
    view, limits = inputs.view, inputs.limits
    used, room_used = sum(tokens.values()), count_in_room(tokens)
    tail = tokens["context_meta"]
    if view.after_carrier:
        before_tail = len(view.wires) - view.after_carrier
        tail += tokens["history"] - inputs.meter.count_view(inputs.conversation, view, before_tail)
    without_meta = take_reading(state, inputs.conversation, room_used - tokens["context_meta"], room)
    strong = view.carrier is not None and without_meta.percent > STRONG_REMINDER_PERCENT
    # Messages are read only if one of them is large: in a long conversation that takes longer than the whole plan.
    names_largest = strong and bool(state.wording["largest"])
    names_largest = names_largest and inputs.meter.largest_message(inputs.conversation) >= min_named_tokens(room)
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
        largest=name_largest(inputs.turn_messages(), room) if names_largest else (),
        room=room,
        room_used=room_used,
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
