"""The limits of a window, and how layers share what is left for memory.

The block of each layer is built within its grant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from inmind.core.events.session import AnchoredBlock
from inmind.core.frozen import frozen
from inmind.core.text import truncate
from inmind.core.tokens import SAFETY_MARGIN, Counter
from inmind.history.view import TokenMeter
from inmind.prompt.layers.base import Layer, LayerText
from inmind.prompt.templates import block_text


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


@frozen
class LayerDemand:
    """Tokens that a layer would use, and its guaranteed minimum and maximum."""

    wanted: int
    min: int
    max: int
    reserved: bool = False
    """It gets all that it can use before others get anything."""

    @property
    def need(self) -> int:
        return min(self.wanted, self.max)

    @property
    def floor(self) -> int:
        return self.need if self.reserved else min(self.min, self.need)


def allocate(demands: Sequence[LayerDemand], max_tokens: int) -> list[int]:
    """Grant reserved layers their need, then minimums, scaled down if they do not fit.

    The rest is divided by the remaining demand. No layer gets more than it can use, so tokens remain only if every
    layer has enough.
    """
    room = max(0, max_tokens)
    grants = [0] * len(demands)
    for index, demand in enumerate(demands):
        if demand.reserved:
            grants[index] = min(demand.need, room)
            room -= grants[index]
    floors = [0 if demand.reserved else demand.floor for demand in demands]
    headroom = [demand.need - demand.floor for demand in demands]
    extra = _divide(headroom, max(0, room - sum(floors)))
    return [sum(parts) for parts in zip(grants, _divide(floors, room), extra, strict=True)]


def _divide(parts: Sequence[int], max_tokens: int) -> list[int]:
    """Divide whole tokens in proportion to the parts, none above its part.

    The largest remainders are rounded up.
    """
    total = sum(parts)
    if total <= max_tokens:
        return list(parts)
    shares = [part * max_tokens // total for part in parts]
    largest_remainder = sorted(range(len(parts)), key=lambda i: -(parts[i] * max_tokens % total))
    for index in largest_remainder[: max_tokens - sum(shares)]:
        shares[index] += 1
    return shares


def build_blocks(
    layer_texts: Sequence[tuple[Layer, LayerText]], max_tokens: int, meter: TokenMeter
) -> tuple[AnchoredBlock, ...]:
    """Return the block of each layer within its grant, in slot order."""
    full_blocks = [to_block(layer, layer_text) for layer, layer_text in layer_texts]
    budgets = [layer.budget for layer, _ in layer_texts]
    demands = [
        LayerDemand(block_tokens(block, meter), budget.min, budget.max, budget.reserved)
        for block, budget in zip(full_blocks, budgets, strict=True)
    ]
    grants = allocate(demands, max_tokens)
    return tuple(
        block if demand.wanted <= grant else _cut_block(block, layer_text, grant, demand, meter)
        for block, (_, layer_text), demand, grant in zip(full_blocks, layer_texts, demands, grants, strict=True)
    )


def _cut_block(
    block: AnchoredBlock, layer_text: LayerText, grant: int, demand: LayerDemand, meter: TokenMeter
) -> AnchoredBlock:
    """Shorten a block to its grant, by the function of its layer if that fits.

    The grant is rounded down to coarse steps: in a filling window a block that loses a line with every message would
    change every prompt and everything after it.
    """
    step = max(1, demand.need // 4)
    room = grant // step * step if grant >= step else grant
    count: Counter = partial(count_block, meter, block)
    kept = layer_text.shorten(room, count) if layer_text.shorten is not None else None
    if kept is None or count(kept.text) > room:
        kept = truncate(layer_text.text, budget=room, count=count, pointer=layer_text.pointer)
    text = "" if _is_cut_to_nothing(kept.text) else kept.text
    return replace(block, text=text, left_out=layer_text.left_out + kept.lines_left_out)


def _is_cut_to_nothing(text: str) -> bool:
    """True for headings with nothing under them, and perhaps the pointer to the rest."""
    *lines, last = [line for line in text.split("\n") if line.strip()] or [""]
    is_pointer = (last[:1], last[-1:]) in (("[", "]"), ("(", ")"))
    return all(
        line.startswith("#") or line.endswith(":") for line in (lines if is_pointer or not last else [*lines, last])
    )


def to_block(layer: Layer, layer_text: LayerText) -> AnchoredBlock:
    return AnchoredBlock(
        layer.name, layer_text.text, layer_text.left_out, layer_text.sources, layer_text.banner, layer_text.tag
    )


def block_tokens(block: AnchoredBlock, meter: TokenMeter) -> int:
    """Tokens of a block in the prompt; a block without text is not sent."""
    return count_block(meter, block, block.text) if block.text else 0


def count_block(meter: TokenMeter, block: AnchoredBlock, text: str) -> int:
    """Tokens of a block with this text as it is sent: escaped and with tags."""
    return meter.count(block_text(replace(block, text=text)))
