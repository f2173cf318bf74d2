"""Plans the next prompt: a pure decision that the journal then records.

The order matters: first the fixed parts (system prompt, tools and history of the host), then the remaining tokens, how
layers share them, if the anchor moves, and the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.session import AnchoredBlock, AnchorMoved, PromptPrepared, TailChanged, WordingSet
from inmind.core.frozen import frozen
from inmind.core.tokens import TOKENS_PER_MESSAGE
from inmind.errors import ContextOverflow
from inmind.history.compaction.policy import COMPACTION_THRESHOLD, PRUNED_TARGET, compaction_target
from inmind.history.compaction.select import HistoryBudget
from inmind.history.history import Conversation
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, View
from inmind.prompt.anchor import MOVED_IN_THREAD, Anchor, AnchorCosts, decide_anchor
from inmind.prompt.budget import WindowLimits, block_tokens, build_blocks, count_block, to_block
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.render import (
    STRONG_REMINDER_PERCENT,
    can_compact,
    min_named_tokens,
    name_largest,
    reserved_meta_tokens,
    share_of_room,
    take_reading,
)
from inmind.prompt.state import PromptState
from inmind.prompt.templates import (
    COMPACTED,
    changes_text,
    memory_tools,
    offered_commands,
    without_compact,
    without_reminders,
    wording_for,
)


@frozen(kw_only=True)
class PromptPlan:
    """Drafts before the call, the call's own event (still without digest), and token counts."""

    drafts: Sequence[Draft]
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
    has_stubs: bool
    """Some of its messages replace others."""
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

    @property
    def full_blocks(self) -> list[AnchoredBlock]:
        """The blocks of all layers, uncut."""
        return [to_block(layer, layer_text) for layer, layer_text in self.layer_texts]

    @property
    def spendable(self) -> int:
        """Tokens that may be sent, by our count.

        The limit is in provider tokens, so it is corrected first.
        """
        return int(self.limits.spendable / self.state.calibration.cautious)

    def count_fixed(self, wording: Mapping[str, str]) -> dict[str, int]:
        """Tokens of what the host gives and of the guide, with this wording."""
        return count_fixed_tokens(replace(self.state, wording=wording), self.conversation, self.view, self.meter)

    def count_meta(self, wording: Mapping[str, str]) -> int:
        """Tokens of context_meta in a full window, with this wording."""
        reading = take_reading(self.state, self.conversation, self.limits.window, self.limits.window)
        return reserved_meta_tokens(self.meter, reading, wording)


def plan_prompt(inputs: PlanInput) -> PromptPlan | ContextOverflow:
    """Plan one call, or return the error of a prompt that does not fit.

    If the reserved layers do not fit beside the others, the others are left out, with what the guide says of them, and
    the meter has only its numbers.
    """
    wording = longest_wording(inputs)
    is_tight = not _fits_with_reserved(inputs, wording)
    if is_tight:
        texts = [
            (layer, text if layer.budget.reserved else replace(text, text="", shorten=None))
            for layer, text in inputs.layer_texts
        ]
        inputs = replace(inputs, layer_texts=texts)
        wording = without_reminders(_wording(inputs.state, inputs.has_stubs, inputs.full_blocks))
    view, meter = inputs.view, inputs.meter
    tokens = inputs.count_fixed(wording)
    note_tokens = meter.count(changes_text(wording, MOVED_IN_THREAD)) if inputs.in_thread else 0
    needed = sum(tokens.values()) + inputs.count_meta(wording) + note_tokens
    if needed > inputs.spendable:
        correct, offered = inputs.state.calibration.correct, memory_tools(inputs.state.layer_tools)
        tool_tokens = correct(meter.count(to_json(offered))) if offered else 0
        return ContextOverflow(needed=correct(needed), spendable=inputs.limits.spendable, memory_tools=tool_tokens)
    blocks = build_blocks(inputs.layer_texts, inputs.spendable - needed, meter)
    cold = is_cache_cold(inputs.state, inputs.now, inputs.limits.cache_seconds)
    state = replace(inputs.state, wording=wording)
    room = count_room(state, inputs.limits, tokens)
    state, drafts, kept = _place_memory(inputs, state, blocks, memory_room=inputs.spendable - needed, cold=cold)
    wording = _wording(state, inputs.has_stubs, state.blocks)
    if is_tight:
        wording = without_reminders(wording)
    elif wording["largest"] and not can_compact(inputs.conversation, inputs.turn_messages, room):
        wording = without_compact(wording)
    if wording != inputs.state.wording:
        drafts.insert(0, Draft(payload=WordingSet(wording=dict(wording)), origin=Origin.OPERATOR))
    state = replace(state, wording=wording)
    tokens = count_tokens(state, inputs.conversation, view, meter, room)
    shared_tokens = meter.count_view(inputs.conversation, view, inputs.shared_wires)
    shared_tokens += _change_tokens(state, meter, sum(one.place < inputs.shared_wires for one in state.changes[:kept]))
    unchanged = count_unchanged_prefix(state, tokens, view.format, shared_tokens)
    prepared = _prompt_prepared(state, inputs, tokens, room, cached=0 if cold else unchanged)
    cut = tuple((block.layer, block.left_out) for block in blocks if block.left_out)
    return PromptPlan(drafts=drafts, prepared=prepared, tokens=tokens, cut=cut, unchanged_tokens=unchanged, cold=cold)


def _place_memory(
    inputs: PlanInput, state: PromptState, blocks: tuple[AnchoredBlock, ...], *, memory_room: int, cold: bool
) -> tuple[PromptState, list[Draft], int]:
    """Move the anchor to these blocks, or send how they changed.

    Returns the state and the drafts of that, and the number of earlier changes that stay in place.
    """
    view, meter = inputs.view, inputs.meter
    kept = _count_kept_changes(state, view)
    guide = count_guide(state.wording, meter)
    decision = decide_anchor(
        state.anchor,
        {0: state.known_blocks, 1: state.earlier_blocks}.get(len(state.changes) - kept),
        blocks,
        call=state.calls + 1,
        cold=cold,
        count=meter.count,
        describe_changes={layer.name: layer_text.describe_changes for layer, layer_text in inputs.layer_texts},
        costs=AnchorCosts(
            anchored_tokens=guide + sum(block_tokens(block, meter) for block in state.blocks),
            cached_history_tokens=inputs.held_tokens + meter.count_view(inputs.conversation, view, inputs.shared_wires),
            change_tokens=_change_tokens(state, meter, kept),
            tail_tokens_since_anchor=state.tail_tokens_since_anchor,
            max_memory_tokens=guide + memory_room,
            tail_frame_tokens=meter.count(changes_text(state.wording, ".")),
            has_tail_carrier=view.carrier is not None,
            history_rewritten=state.compacted or inputs.in_other_thread or (state.spliced and not inputs.shared_wires),
        ),
    )
    trust = min((layer_text.trust for _, layer_text in inputs.layer_texts), default=Trust.OPERATOR)
    drafts: list[Draft] = []
    changes = decision.changes
    if decision.move_reason:
        changes = MOVED_IN_THREAD if inputs.in_thread and state.anchor and view.carrier is not None else ""
        sources = tuple(dict.fromkeys(source for block in blocks for source in block.sources))
        moved = AnchorMoved(reason=decision.move_reason, blocks=blocks)
        drafts.append(Draft(payload=moved, origin=Origin.OPERATOR, sources=sources, trust=trust))
        kept = 0
        state = state.with_anchor(Anchor(blocks=blocks, reason=decision.move_reason, seq=0, call=state.calls + 1))
    if changes or decision.new_blocks or kept < len(state.changes) or state.tail or state.new_blocks:
        changed = TailChanged(
            text=changes,
            new_blocks=decision.new_blocks,
            place=view.carrier or 0,
            view_digest="" if view.carrier is None else view.prefix_digests[view.carrier],
            changed_blocks=decision.changed_blocks,
            kept=kept,
        )
        drafts.append(Draft(payload=changed, origin=Origin.OPERATOR, sources=decision.sources, trust=trust))
        state = state.with_changes(changed, decision.sources)
    return state, drafts, kept


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
    tokens |= {f"memory:{block.layer}": block_tokens(block, meter) for block in state.blocks}
    tokens["history"] = history
    if view.carrier is None:
        return {**tokens, "changes": 0, "context_meta": 0}
    at_end = changes_text(state.wording, state.tail, state.new_blocks)
    changes = _change_tokens(state, meter) + (meter.count(at_end) if at_end else 0)
    reading = take_reading(state, conversation, count_in_room(tokens) + changes, room)
    return {**tokens, "changes": changes, "context_meta": reserved_meta_tokens(meter, reading, state.wording)}


def _count_kept_changes(state: PromptState, view: View) -> int:
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
    return _wording(inputs.state, inputs.has_stubs, [*inputs.state.blocks, *inputs.full_blocks])


def _wording(state: PromptState, has_stubs: bool, blocks: Sequence[AnchoredBlock]) -> Mapping[str, str]:
    """The wording for anchored blocks, stubs and offered tools.

    The guide is a part of the cached prefix. It changes only with one of these, so it never breaks the cache alone.
    """
    present = {block.layer for block in blocks if block.text}
    if has_stubs:
        present.add(COMPACTED)
    return wording_for(offered_commands(state.layer_tools), present)


def _fits_with_reserved(inputs: PlanInput, wording: Mapping[str, str]) -> bool:
    """True if the prompt has room for the reserved layers, with this wording."""
    reserved = (to_block(layer, text) for layer, text in inputs.layer_texts if layer.budget.reserved)
    fixed = sum(inputs.count_fixed(wording).values()) + inputs.count_meta(wording)
    return fixed + sum(block_tokens(block, inputs.meter) for block in reserved) <= inputs.spendable


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
    if parts == before:
        return sum(sizes) + shared_tokens
    same = takewhile(lambda one: one[1] == one[2], zip(sizes, parts, before, strict=False))
    return sum(size for size, _, _ in same)


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


def measure_pressure(inputs: PlanInput, plan: PromptPlan | ContextOverflow) -> WindowPressure:
    """Measure the pressure of a plan, or of a prompt that did not fit.

    Memory counts with its full demand, because a large conversation shrinks memory first.
    """
    state, wording = inputs.state, longest_wording(inputs)
    tokens = inputs.count_fixed(wording)
    fixed = tokens["guide"] + inputs.count_meta(wording)
    demands = [
        (layer.budget.reserved, min(layer.budget.max, count_block(inputs.meter, block, block.text)))
        for (layer, _), block in zip(inputs.layer_texts, inputs.full_blocks, strict=True)
    ]
    memory = fixed + sum(size for _, size in demands)
    reserved = sum(size for is_reserved, size in demands if is_reserved)
    room = count_room(state, inputs.limits, tokens)
    used, rewrites = memory + tokens["history"], True
    if isinstance(plan, PromptPlan):
        used = count_in_room(plan.tokens)
        moved = any(isinstance(draft.payload, AnchorMoved) for draft in plan.drafts)
        rewrites = moved or plan.cold or (state.spliced and not inputs.shared_wires)
    return WindowPressure(
        room=room,
        available=max(0, inputs.spendable - tokens["system"] - tokens["tools"]),
        memory=memory,
        history=tokens["history"],
        fixed=fixed,
        reserved=reserved,
        percent=share_of_room(state.calibration.correct(used), state.calibration.correct(room)),
        rewrites_history=rewrites and state.calls > 0,
    )
