"""What the next prompt will be: a decision, taken on values, that the journal then records.

The order is the argument: first what cannot be cut (the host's own prompt, tools and history), then how much
room that leaves, then how the layers share it, then whether the anchor moves, then what it all costs.
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
from inmind.core.text import Cut, cut
from inmind.core.tokens import MARGIN, PER_MESSAGE, Counter
from inmind.errors import ContextOverflow
from inmind.history import Conversation
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View
from inmind.prompt.anchor import Anchor, Stake, settle
from inmind.prompt.budget import Wish, allocate
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.base import Layer, Recalled
from inmind.prompt.meter import STRONG_FROM, most_context_meta, reading_of
from inmind.prompt.state import Standing
from inmind.prompt.templates import block_text, changes_text, wording_for


@frozen(kw_only=True)
class Limits:
    """What the model takes, and how much of that is kept free for its answer."""

    window: int
    reserve: int
    exact: bool = False
    """The counter is the model's own tokenizer: no margin is needed."""
    cache_seconds: float

    @property
    def spendable(self) -> int:
        free = self.window - self.reserve
        return free if self.exact else int(free * (1 - MARGIN))


@frozen(kw_only=True)
class Plan:
    """The events that come before this call's own, that one still without the name of its bytes, and the numbers."""

    drafts: tuple[Draft, ...]
    prepared: PromptPrepared
    tokens: dict[str, int]
    cut: tuple[tuple[str, int], ...]
    """Layers that did not get all they wanted, and how many lines of each stayed out."""
    unchanged: int
    """Leading tokens that equal the previous prompt's, cached or not."""
    cold: bool


@frozen(kw_only=True)
class Occasion:
    """All that one call is decided on."""

    standing: Standing
    line: Conversation
    """The conversation, as it is sent."""
    view: View
    recalled: Sequence[tuple[Layer, Recalled]]
    shared: int
    """Leading wires of the view that stood at their places in the previous prompt."""
    limits: Limits
    meter: TokenMeter
    now: datetime


def plan(occasion: Occasion) -> Plan:
    """Decide one call."""
    standing, line, view, recalled = occasion.standing, occasion.line, occasion.view, occasion.recalled
    limits, meter, shared = occasion.limits, occasion.meter, occasion.shared
    drafts: list[Draft] = []
    if (wording := wording_of(standing)) != standing.wording:
        standing = replace(standing, wording=wording)
        drafts.append(Draft(payload=WordingSet(wording=dict(wording)), origin=Origin.OPERATOR))
    tokens = without_memory(standing, line, view, meter)
    room = _room(standing, limits, sum(tokens.values()) + most_meta(standing, occasion))
    blocks = _fill(recalled, room, meter)
    cold = is_cold(standing, occasion.now, limits.cache_seconds)
    settled = settle(
        standing.anchor,
        blocks,
        call=standing.calls + 1,
        cold=cold,
        count=meter.count,
        own={layer.name: said.since for layer, said in recalled if said.since is not None},
        stake=Stake(
            anchored=tokens["guide"] + sum(_block_tokens(block, meter) for block in standing.blocks),
            behind=meter.count_view(line, view, shared),
            ridden=standing.ridden,
            room=tokens["guide"] + room,
            frame=meter.count(changes_text(standing.wording, ".")),
            rides=view.carrier is not None,
            rewritten=standing.compacted or (standing.spliced and not shared),
        ),
    )
    trust = min((said.trust for _, said in recalled), default=Trust.OPERATOR)
    if settled.moved:
        sources = tuple(dict.fromkeys(source for block in blocks for source in block.sources))
        moved = AnchorMoved(reason=settled.moved, blocks=blocks)
        drafts.append(Draft(payload=moved, origin=Origin.OPERATOR, sources=sources, trust=trust))
        anchor = Anchor(blocks=blocks, reason=settled.moved, seq=0, call=standing.calls + 1)
        standing = replace(standing, anchor=anchor, tail="", fresh=(), tail_sources=())
    elif (settled.changes, settled.fresh) != (standing.tail, standing.fresh):
        changed = TailChanged(text=settled.changes, new_blocks=settled.fresh)
        drafts.append(Draft(payload=changed, origin=Origin.OPERATOR, sources=settled.sources, trust=trust))
        standing = replace(standing, tail=settled.changes, fresh=settled.fresh, tail_sources=settled.sources)
    tokens = measure(standing, line, view, meter, limits.window)
    unchanged = unchanged_prefix(standing, tokens, view.format, meter.count_view(line, view, shared))
    prepared = _prepared(standing, line, view, tokens, limits, meter, cached=0 if cold else unchanged)
    cut = tuple((block.layer, block.left_out) for block in blocks if block.left_out)
    return Plan(drafts=tuple(drafts), prepared=prepared, tokens=tokens, cut=cut, unchanged=unchanged, cold=cold)


def is_cold(standing: Standing, now: datetime, cache_seconds: float) -> bool:
    """Has the provider dropped its cache since the last call? A clock that went back says nothing, so: yes."""
    if standing.asked is None:
        return True
    return not 0 <= (now - standing.asked).total_seconds() <= cache_seconds


def measure(standing: Standing, line: Conversation, view: View, meter: TokenMeter, window: int) -> dict[str, int]:
    """Tokens by part, in the order of the prompt. Where nothing carries a tail there is none to count."""
    tokens = without_memory(standing, line, view, meter)
    history = tokens.pop("history")
    tokens |= {f"memory:{block.layer}": _block_tokens(block, meter) for block in standing.blocks}
    tokens["history"] = history
    if view.carrier is None:
        return {**tokens, "changes": 0, "context_meta": 0}
    told = changes_text(standing.wording, standing.tail, standing.fresh)
    changes = meter.count(told) if told else 0
    reading = reading_of(standing, line, sum(tokens.values()) + changes, window)
    return {**tokens, "changes": changes, "context_meta": most_context_meta(meter, reading, standing.wording)}


def without_memory(standing: Standing, line: Conversation, view: View, meter: TokenMeter) -> dict[str, int]:
    return {
        "tools": meter.count_value(standing.tools_name, standing.all_tools),
        "system": meter.count_value(standing.system_name, standing.system),
        "guide": meter.count(standing.wording["guide"]) + PER_MESSAGE,
        "history": meter.count_view(line, view),
    }


def wording_of(standing: Standing) -> Mapping[str, str]:
    """What we say depends on the tools that are offered: a sentence about another is wasted."""
    return wording_for(frozenset(tool_names(standing.offered)))


def most_meta(standing: Standing, occasion: Occasion) -> int:
    """What the meter takes where the window is full."""
    window = occasion.limits.window
    return most_context_meta(occasion.meter, reading_of(standing, occasion.line, window, window), standing.wording)


def _is_strong(standing: Standing, without_meta: int, window: int) -> bool:
    """Is so much of the window used that the reminder names the largest messages?"""
    return 100 * standing.calibration.correct(without_meta) > STRONG_FROM * window


def _room(standing: Standing, limits: Limits, needed: int) -> int:
    """What memory may take, by our count. The limit is the provider's, so it is corrected before it is compared."""
    spendable = int(limits.spendable / standing.calibration.cautious)
    if needed > spendable:
        raise ContextOverflow(needed=standing.calibration.correct(needed), spendable=limits.spendable)
    return spendable - needed


def _fill(recalled: Sequence[tuple[Layer, Recalled]], room: int, meter: TokenMeter) -> tuple[AnchoredBlock, ...]:
    """Each layer's text inside what it was granted, in slot order."""
    whole = [block_of(layer, said) for layer, said in recalled]
    wishes = [
        Wish(wanted=framed(meter, block, said.text), min=layer.budget.min, max=layer.budget.max)
        for block, (layer, said) in zip(whole, recalled, strict=True)
    ]
    filled: list[AnchoredBlock] = []
    for block, (_, said), wish, grant in zip(whole, recalled, wishes, _granted(recalled, wishes, room), strict=True):
        if wish.wanted <= grant:
            filled.append(block)
            continue
        kept = _shortened(said, _stepped(grant, wish), partial(framed, meter, block))
        filled.append(replace(block, text=kept.text, left_out=said.left_out + kept.lines_left_out))
    return tuple(filled)


def _granted(recalled: Sequence[tuple[Layer, Recalled]], wishes: Sequence[Wish], room: int) -> list[int]:
    """What each gets: those that are firm all that they want, as long as there is any; the others share the rest."""
    firm: dict[int, int] = {}
    for place, ((layer, _), wish) in enumerate(zip(recalled, wishes, strict=True)):
        if layer.budget.firm:
            firm[place] = min(wish.wanted, wish.max, room)
            room -= firm[place]
    shared = iter(allocate([wish for place, wish in enumerate(wishes) if place not in firm], room))
    return [firm[place] if place in firm else next(shared) for place in range(len(wishes))]


def block_of(layer: Layer, said: Recalled) -> AnchoredBlock:
    return AnchoredBlock(layer.name, said.text, said.left_out, said.sources, said.banner, said.tag)


def _shortened(said: Recalled, budget: int, count: Counter) -> Cut:
    """A layer's text in so many tokens: its own way, if it has one and keeps to them, or cut at the end."""
    if said.shorten is not None:
        kept = said.shorten(budget, count)
        if count(kept.text) <= budget:
            return kept
    return cut(said.text, budget=budget, count=count, pointer=said.pointer)


def _stepped(grant: int, wish: Wish) -> int:
    """A grant in coarse steps: in a window that fills up, a block that lost a line with every message would be new
    in every prompt, and with it everything behind it."""
    step = max(1, wish.need // 4)
    return grant // step * step if grant >= step else grant


def _prepared(
    standing: Standing,
    line: Conversation,
    view: View,
    tokens: dict[str, int],
    limits: Limits,
    meter: TokenMeter,
    *,
    cached: int,
) -> PromptPrepared:
    used = sum(tokens.values())
    tail = tokens["changes"] + tokens["context_meta"]
    if view.after_carrier:
        tail += tokens["history"] - meter.count_view(line, view, len(view.wires) - view.after_carrier)
    strong = view.carrier is not None and _is_strong(standing, used - tokens["context_meta"], limits.window)
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
        largest=meter.largest_messages(line) if strong else (),
    )


def unchanged_prefix(standing: Standing, tokens: dict[str, int], format: str, shared: int) -> int:
    """How many leading tokens stood at the same place in the prompt before, `shared` of them in the history."""
    sizes = list(tokens.values())[: 3 + len(standing.blocks)]
    parts, before = standing.parts(format), standing.sent.parts
    if parts != before:
        same = takewhile(lambda pair: pair[0] == pair[1], zip(parts, before, strict=False))
        return sum(size for size, _ in zip(sizes, same, strict=False))
    return sum(sizes) + shared


def _block_tokens(block: AnchoredBlock, meter: TokenMeter) -> int:
    return framed(meter, block, block.text) if block.text else 0


def framed(meter: TokenMeter, block: AnchoredBlock, text: str) -> int:
    """What a block costs as it is sent, with this text: escaped, and with the tags around it."""
    return meter.count(block_text(replace(block, text=text)))
