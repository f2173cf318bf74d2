"""Decides when the anchor moves, and what the tail says about changes until then.

Providers charge a tenth for a prefix that they have cached, byte for byte. A memory block that changes before the
history invalidates the whole cached history; the same change in the tail costs only its own length, on every call. So
the blocks are anchored, and changes go into the tail. The anchor moves when the changes have grown and the tails have
cost as much as moving, or when the cache is lost anyway. This costs at most twice the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from inmind.core.events.prompt import AnchoredBlock
from inmind.core.frozen import frozen
from inmind.prompt.templates import block_text

MAX_CHANGE_RATIO = 0.15
MAX_CALLS_PER_ANCHOR = 50
CACHE_SECONDS = 300.0

REWRITE_COST_FACTOR = 1.15
"""Extra price of writing a cached token again, relative to uncached input: 1.25 (write) - 0.1 (read)."""

CHEAP_REWRITE_TOKENS = 500
"""Cached history below which moving is always cheap: a conversation that has just started."""

DescribeChanges = Callable[[AnchoredBlock, Callable[[str], int]], str | None]
"""A layer's description of changes since its block was shown; None for a line diff."""


@frozen
class Anchor:
    """The memory blocks in the prefix, and the call and reason for which they were set."""

    blocks: tuple[AnchoredBlock, ...]
    reason: str
    seq: int
    call: int


@frozen
class AnchorDecision:
    """Decision for one call: move the anchor for a reason, or put the changes into the tail."""

    move_reason: str
    changes: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had none when the anchor was set; the tail contains them completely."""
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class AnchorCosts:
    """Token counts that decide whether the anchor moves."""

    anchored_tokens: int
    """Memory in the prefix, including the guide."""
    cached_history_tokens: int
    """History in the provider's cache, which would be written again."""
    tail_tokens_since_anchor: int
    """Sum of the changes in all tails since the anchor was set."""
    max_memory_tokens: int
    """Limit for memory and changes together."""
    tail_frame_tokens: int = 0
    """Fixed text around the changes in the tail."""
    has_tail_carrier: bool = True
    """A message can carry a tail."""
    history_rewritten: bool = False
    """The conversation starts differently than before: nothing after the anchor is cached."""


def decide_anchor(
    anchor: Anchor | None,
    blocks: Sequence[AnchoredBlock],
    *,
    call: int,
    cold: bool,
    count: Callable[[str], int],
    costs: AnchorCosts,
    describe_changes: Mapping[str, DescribeChanges] = {},
) -> AnchorDecision:
    """Move the anchor, or describe the changes in the tail.

    `describe_changes`: layers with their own description. A layer may describe nothing because the conversation shows
    the change; its block is still updated when the anchor moves.
    """
    if anchor is None:
        return AnchorDecision(move_reason="first call", changes="")
    if _texts(anchor.blocks) == _texts(blocks):
        return AnchorDecision(move_reason="", changes="")
    changes, sources = changes_between(anchor.blocks, blocks, describe_changes, count)
    known = {block.layer for block in anchor.blocks}
    new_blocks = tuple(block for block in blocks if block.layer not in known and block.text)
    has_changes = bool(changes or new_blocks)
    if has_changes and not costs.has_tail_carrier:
        return AnchorDecision(move_reason="no message carries changes", changes="")
    if cold:
        return AnchorDecision(move_reason="the provider's cache is cold", changes="")
    if costs.history_rewritten:
        return AnchorDecision(move_reason="the history was rewritten", changes="")
    if call - anchor.call >= MAX_CALLS_PER_ANCHOR:
        return AnchorDecision(move_reason=f"{MAX_CALLS_PER_ANCHOR} calls", changes="")
    size = count(changes) + sum(count(block_text(block)) for block in new_blocks)
    cost = REWRITE_COST_FACTOR * (costs.anchored_tokens + costs.cached_history_tokens)
    if size > MAX_CHANGE_RATIO * costs.anchored_tokens and (
        costs.cached_history_tokens <= CHEAP_REWRITE_TOKENS or costs.tail_tokens_since_anchor + size >= cost
    ):
        return AnchorDecision(move_reason=f"changes exceed {MAX_CHANGE_RATIO:.0%}", changes="")
    if costs.anchored_tokens + (costs.tail_frame_tokens + size if has_changes else 0) > costs.max_memory_tokens:
        return AnchorDecision(move_reason="no room for changes", changes="")
    sources = tuple(dict.fromkeys([*sources, *(source for block in new_blocks for source in block.sources)]))
    return AnchorDecision(move_reason="", changes=changes, new_blocks=new_blocks, sources=sources)


def changes_between(
    before: Sequence[AnchoredBlock],
    after: Sequence[AnchoredBlock],
    describe_changes: Mapping[str, DescribeChanges] = {},
    count: Callable[[str], int] = len,
) -> tuple[str, tuple[str, ...]]:
    """Describe the changes of existing blocks for the model, with the events they come from."""
    old = {block.layer: block for block in before}
    new = {block.layer: block for block in after}
    descriptions: list[str] = []
    sources: list[str] = []
    for layer in dict.fromkeys([*(layer for layer in new if layer in old), *old]):
        now = new.get(layer)
        if description := _describe_layer(old[layer], now, describe_changes.get(layer), count):
            descriptions.append(description)
            sources.extend(now.sources if now else ())
    return "\n".join(descriptions), tuple(dict.fromkeys(sources))


def _describe_layer(
    before: AnchoredBlock, now: AnchoredBlock | None, describe: DescribeChanges | None, count: Callable[[str], int]
) -> str:
    """Describe the change of one layer; empty if there is none or the layer reports none."""
    if now is None:
        return f"{before.layer}: now empty"
    if now.text == before.text:
        return ""
    description = describe(before, count) if describe is not None else None
    if description is None:
        return _line_diff(before.layer, before.text, now.text)
    return description and f"{before.layer}, newest first: {description}"


def _texts(blocks: Sequence[AnchoredBlock]) -> dict[str, str]:
    return {block.layer: block.text for block in blocks if block.text}


@lru_cache(maxsize=64)
def _line_diff(layer: str, before: str, now: str) -> str:
    """Return added and removed lines under headings, or the full text if that is shorter."""
    from difflib import SequenceMatcher  # imported here because it is slow and rarely needed

    old, new = before.split("\n"), now.split("\n")
    lines = [f"{layer}:"]
    heading = ""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        above = next((line for line in reversed(new[:j1]) if line.startswith("#")), "")
        if above and above != heading:
            lines.append(f"  {above}")
            heading = above
        lines += [f"- {line}" for line in old[i1:i2] if line.strip()]
        lines += [f"+ {line}" for line in new[j1:j2] if line.strip()]
    diff = "\n".join(lines)
    full_text = f"{layer}, now in full:\n{now}"
    return diff if len(diff) < len(full_text) else full_text
